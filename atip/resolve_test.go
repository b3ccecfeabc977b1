package atip

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func load(t testing.TB, name string) *Document {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(raw))
}

func parse(t testing.TB, text string) *Document {
	t.Helper()
	d, err := Parse([]byte(text), ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// at is the options of a call answered by a document of the given rank.
func at(rank Rank) ResolveOptions {
	return ResolveOptions{Provenance: Provenance{Channel: "shim", Rank: rank, Source: "test"}}
}

func resolve(d *Document, rank Rank, line string) Call {
	return d.Resolve(strings.Fields(line), at(rank))
}

// effects lists the values of the keys in want, in its order.
func effectsOf(c Call, want string) string {
	var out []string
	for _, w := range strings.Fields(want) {
		key, _, _ := strings.Cut(w, "=")
		e, ok := EffectByKey(key)
		if !ok {
			return "no effect " + key
		}
		out = append(out, key+"="+c.Effects[e].Value.String())
	}
	return strings.Join(out, " ")
}

type row struct {
	argv      string
	path      string
	exactness Exactness
	effects   string
}

func checkRows(t *testing.T, d *Document, rank Rank, rows []row) {
	t.Helper()
	for _, r := range rows {
		c := resolve(d, rank, r.argv)
		if got := strings.Join(c.Path, " "); got != r.path {
			t.Errorf("%s: path %q, want %q", r.argv, got, r.path)
		}
		if c.Exactness != r.exactness {
			t.Errorf("%s: %s, want %s (unknown %v, readings %d)", r.argv, c.Exactness, r.exactness, c.UnknownOptions, c.Readings)
		}
		if got := effectsOf(c, r.effects); got != r.effects {
			t.Errorf("%s: %s, want %s", r.argv, got, r.effects)
		}
	}
}

func TestGit(t *testing.T) {
	checkRows(t, load(t, "git.json"), Org, []row{
		{"git status", "status", Exact, "destructive=no write=no network=no remoteMutation=no privileged=no"},
		{"git push", "push", Exact, "destructive=no network=yes remoteMutation=yes billable=unknown reversible=no"},
		{"git push -f", "push", Exact, "destructive=yes subprocess=no"},
		{"git push -vf", "push", Exact, "destructive=yes"},
		{"git push origin +main", "push", Exact, "destructive=yes"},
		{"git push +main", "push", Exact, "destructive=no"},
		{"git push --forc", "push", Bounded, "destructive=yes"},
		{"git push -n", "push", Exact, "destructive=no network=yes reversible=yes"},
		{"git push -n -f origin +x", "push", Exact, "destructive=no remoteMutation=no"},
		{"git push -n --exec=x", "push", Exact, "subprocess=yes reversible=no"},
		{"git push -n --forc", "push", Bounded, "destructive=yes reversible=no"},
		{"git push -nq", "push", Bounded, "reversible=no destructive=yes"},
		{"git push --force-with-lease=a:b origin", "push", Exact, "destructive=no"},
		{"git push --signed origin", "push", Exact, "destructive=no"},
		{"git push -- -f", "push", Exact, "destructive=no"},
		{"git -C x push --mirror", "push", Exact, "destructive=yes"},
		{"git -c a=b status", "status", Exact, "destructive=unknown write=unknown execOpaque=unknown read=yes"},
		{"git stash", "stash", Exact, "destructive=no network=no"},
		{"git stash drop", "stash drop", Exact, "destructive=yes network=no"},
		{"git stash list x", "stash list", Bounded, "destructive=no"},
		{"git stash frob", "stash", Unresolved, "destructive=unknown network=unknown"},
		{"git stash -- drop", "stash", Unresolved, "destructive=unknown"},
		{"git frobnicate", "", Unresolved, "destructive=unknown execOpaque=unknown"},
		{"git remove -r a b", "rm", Exact, "delete=yes destructive=yes"},
		{"git", "", Exact, "destructive=unknown"},
	})
}

func TestNarrowNeedsRank(t *testing.T) {
	d := load(t, "git.json")
	for rank, want := range map[Rank]string{Vendor: "reversible=yes", Org: "reversible=yes", Community: "reversible=no", User: "reversible=no"} {
		if got := effectsOf(resolve(d, rank, "git push -n"), want); got != want {
			t.Errorf("rank %s: %s, want %s", rank, got, want)
		}
	}
	// At rank user the base claims "no", with a rank that policy does not believe.
	f := resolve(d, User, "git push").Effects[Destructive]
	if f.Value != No || f.Rank != User || f.Clause != "base" {
		t.Errorf("base at rank user: %+v", f)
	}
}

func TestInferredClaimsDangerOnly(t *testing.T) {
	d := load(t, "git.json")
	for _, line := range []string{"git status", "git push", "git push -n", "git push -f", "git stash list"} {
		c := resolve(d, Inferred, line)
		for e, f := range c.Effects {
			if f.Value == harmless(Effect(e)) {
				t.Errorf("%s: inferred document claims %s=%s", line, Effect(e), f.Value)
			}
		}
	}
	if c := resolve(d, Inferred, "git push -f"); c.Effects[Destructive].Value != Yes {
		t.Error("inferred danger is lost")
	}
	text := `{"atip":"0.6","name":"x","trust":{"source":"inferred"},"effects":{"network":false,"destructive":true}}`
	c := resolve(parse(t, text), Org, "x")
	if c.Effects[Network].Value != Unknown || c.Effects[Destructive].Value != Yes {
		t.Errorf("trust.source inferred is not capped: %v", c.Effects[Network])
	}
}

func TestSeeds(t *testing.T) {
	gh := load(t, "gh-0.6.json")
	checkRows(t, gh, Org, []row{
		{"gh pr merge 42", "pr merge", Exact, "network=yes destructive=unknown reversible=no idempotent=no"},
		{"gh pr list -s open", "pr list", Exact, "network=yes idempotent=yes destructive=unknown remoteMutation=unknown"},
		{"gh pr list -sopen", "pr list", Exact, "network=yes"},
		{"gh pr list --state=weird", "pr list", Bounded, "network=yes"},
		{"gh pr create -t x", "pr create", Exact, "remoteMutation=yes"},
		{"gh repo delete x", "repo delete", Exact, "destructive=yes remoteMutation=yes"},
		{"gh pr list --json a", "pr list", Bounded, "network=yes idempotent=yes destructive=unknown"},
		{"gh pr", "pr", Exact, "network=unknown"},
		{"gh pr nosuch", "pr", Unresolved, "network=unknown"},
	})
	curl := load(t, "shim-curl-0.6.json")
	checkRows(t, curl, User, []row{
		{"curl -X POST http://h/ -o f", "", Exact, "network=yes write=yes destructive=unknown"},
		{"curl -sX DELETE http://h/", "", Exact, "network=yes"},
		{"curl -X BREW http://h/", "", Bounded, "network=yes"},
		{"curl", "", Exact, "network=yes"},
	})
	if curl.Name() != "curl" || curl.Version() != "8.4.0" || len(curl.BinaryHash()) != 64 {
		t.Errorf("shim lends %q %q %q", curl.Name(), curl.Version(), curl.BinaryHash())
	}
	if r, ok := curl.DeclaredSource(); r != Community || !ok {
		t.Errorf("declared source %s %v", r, ok)
	}
	checkRows(t, load(t, "curl-legacy.json"), User, []row{{"curl http://h/", "", Exact, "network=yes idempotent=no"}})
	load(t, "gh-0.1.json")
	if got := resolve(curl, User, "curl http://u@Example.com:80/x -o /tmp/f").Resources; len(got) != 2 ||
		got[0].Host != "example.com" || got[0].Scheme != "http" || got[1].Value != "/tmp/f" || got[1].Access&AccessWrite == 0 {
		t.Errorf("resources %+v", got)
	}
}

func TestUnknownOptions(t *testing.T) {
	gh := load(t, "gh-0.6.json")
	c := resolve(gh, Org, "gh --weird pr merge 1")
	if c.Readings != 2 || c.Exactness == Exact || c.Effects[Destructive].Value != Unknown || !hasPath(c, "pr merge") {
		t.Errorf("gh --weird pr merge 1: readings %d, %s, path %v, alt %v", c.Readings, c.Exactness, c.Path, c.AltPaths)
	}
	c = resolve(gh, Org, "gh pr list --json a")
	if strings.Join(c.UnknownOptions, " ") != "--json" {
		t.Errorf("unknown options %v", c.UnknownOptions)
	}
	git := load(t, "git.json")
	if got := effectsOf(resolve(git, Org, "git status --purge-all"), "destructive=unknown subprocess=unknown write=no"); got != "destructive=unknown subprocess=unknown write=no" {
		t.Error(got)
	}
	if got := effectsOf(resolve(git, Org, "git status --plain"), "destructive=no"); got != "destructive=no" {
		t.Error(got)
	}
	if c := resolve(gh, Org, "gh pr list --a 1 --b 2 --c 3 --d 4 --e 5"); c.Exactness != Unresolved || c.Effects[Network].Value != Unknown {
		t.Errorf("more than 16 readings: %s", c.Exactness)
	}
}

// TestUpperBound: what only an option that is not known may mean is told from what a call says, unless its name or
// value speak of a command; and two dashes are one for a flag that is declared with one.
func TestUpperBound(t *testing.T) {
	tool := parse(t, `{"atip":"0.6","name":"t","version":"1","description":"d","trust":{"source":"org"},"arguments":[{"name":"w","type":"string","description":"w","required":false,"variadic":true}],
		"options":[{"name":"run","flags":["-run"],"type":"string","description":"r"}],"effects":{"filesystem":{"read":true,"write":false,"delete":false},"network":false,"subprocess":false,"destructive":false},
		"x-atip-effects":{"v":1,"when":[{"id":"run","if":{"anyOption":["-run"]},"add":{"execOpaque":true}}],"parse":{"singleDashLong":true}}}`)
	for words, upper := range map[string]bool{"t -run x": false, "t --run x": false, "t --run=x": false, "t --frob a": true, "t --frob=http://h/ a": true, "t --frob-exec=a": false} {
		if f := resolve(tool, Org, words).Effects[ExecOpaque]; f.Value != Yes || f.Clause != "run" || f.Upper != upper {
			t.Errorf("%s: %s by %q, upper bound %v", words, f.Value, f.Clause, f.Upper)
		}
	}
	for _, argv := range [][]string{{"t", "--frob=a b"}, {"t", "--frob", "a;b"}, {"t", "--frob=$(x)"}} {
		if f := tool.Resolve(argv, at(Org)).Effects[ExecOpaque]; f.Clause != "run" || f.Upper {
			t.Errorf("%q: by %q", argv, f.Clause)
		}
	}
}

func hasPath(c Call, path string) bool {
	for _, p := range append([][]string{c.Path}, c.AltPaths...) {
		if strings.Join(p, " ") == path {
			return true
		}
	}
	return false
}

func TestOptionBeforeCommand(t *testing.T) {
	const merge = `{"description":"m","arguments":[{"name":"n","type":"integer"}],"options":[%OPT%],"effects":{"destructive":false}}`
	opt := `{"name":"repo","flags":["-R","--repo"],"type":"string","description":"r"}`
	atLeaf := strings.ReplaceAll(merge, "%OPT%", opt)
	plain := strings.ReplaceAll(merge, "%OPT%", "")
	for name, text := range map[string]string{
		"leaf":   `{"atip":"0.6","name":"gh","commands":{"pr":{"commands":{"merge":` + atLeaf + `}}}}`,
		"group":  `{"atip":"0.6","name":"gh","commands":{"pr":{"options":[` + opt + `],"commands":{"merge":` + plain + `}}}}`,
		"global": `{"atip":"0.6","name":"gh","globalOptions":[` + opt + `],"commands":{"pr":{"commands":{"merge":` + plain + `}}}}`,
	} {
		d := parse(t, text)
		for _, line := range []string{"gh -R o/r pr merge 42", "gh pr merge --repo=o/r 42", "gh pr -Ro/r merge 42", "gh pr merge 42 --repo o/r"} {
			c := resolve(d, Org, line)
			if strings.Join(c.Path, " ") != "pr merge" || c.Exactness != Exact || c.Options[0].Value != "o/r" || c.Options[0].Name != "repo" {
				t.Errorf("%s: %s: %v %s %+v", name, line, c.Path, c.Exactness, c.Options)
			}
		}
	}
	// A flag that the commands below read differently forks.
	d := parse(t, `{"atip":"0.6","name":"t","commands":{
		"a":{"options":[{"name":"x","flags":["-x"],"type":"string"}],"effects":{"destructive":false}},
		"b":{"options":[{"name":"x","flags":["-x"],"type":"boolean"}],"effects":{"destructive":true}}}}`)
	c := resolve(d, Org, "t -x a b")
	if !hasPath(c, "b") || !hasPath(c, "a") || c.Effects[Destructive].Value != Yes {
		t.Errorf("t -x a b: %v %v %s", c.Path, c.AltPaths, c.Effects[Destructive].Value)
	}
}

func TestMerge(t *testing.T) {
	doc := func(root, group, leaf string) *Document {
		return parse(t, `{"atip":"0.6","name":"t","effects":{`+root+`},"commands":{"g":{"effects":{`+group+`},"commands":{"l":{"effects":{`+leaf+`}}}}}}`)
	}
	for _, c := range []struct{ root, group, leaf, want string }{
		{``, `"destructive":true`, `"destructive":false`, "destructive=no"},
		{`"destructive":true`, ``, `"destructive":false`, "destructive=yes"},
		{``, ``, ``, "destructive=unknown network=unknown"},
		{`"idempotent":false`, ``, `"idempotent":true`, "idempotent=no"},
		{``, `"network":true`, ``, "network=yes"},
		{`"network":false`, ``, ``, "network=no remoteMutation=no"},
		{``, `"filesystem":{"write":true}`, `"filesystem":{"read":true}`, "write=yes read=yes delete=unknown"},
		{``, `"network":false`, `"network":"yes"`, "network=unknown"},
		{``, ``, `"network":false,"exfiltrates":true`, "network=unknown"},
		{``, ``, `"network":false,"exfiltrates":false,"x-a":1,"_b":2`, "network=no"},
		{``, ``, `"filesystem":{"write":false,"append":true},"network":false`, "write=unknown network=no"},
		{``, ``, `"destructive":false,"reversible":false,"deletes":["x"]`, "destructive=unknown"},
		{``, ``, `"network":true,"destructive":false,"creates":["x"]`, "remoteMutation=yes"},
		{``, ``, `"network":true,"destructive":false`, "remoteMutation=no"},
		{``, ``, `"cost":{"billable":true}`, "billable=yes"},
		{``, ``, `"secretRead":true,"network":false`, "secretRead=no network=unknown"},
	} {
		if got := effectsOf(resolve(doc(c.root, c.group, c.leaf), Org, "t g l"), c.want); got != c.want {
			t.Errorf("root %s group %s leaf %s: %s, want %s", c.root, c.group, c.leaf, got, c.want)
		}
	}
}

func TestPartial(t *testing.T) {
	const commands = `"commands":{"a":{"effects":{"destructive":true,"network":false}},"b":{"effects":{"destructive":false,"network":false}}}`
	for _, c := range []struct{ fields, line, want string }{
		{`"omitted":{"safetyAssumption":"same-as-included"},`, "t zzz", "destructive=yes network=no write=unknown"},
		{`"omitted":{"safetyAssumption":"known-unsafe"},`, "t zzz", "destructive=yes network=unknown"},
		{`"omitted":{"safetyAssumption":"known-safe"},`, "t zzz", "destructive=no network=unknown"},
		{`"omitted":{"safetyAssumption":"unknown"},`, "t zzz", "destructive=unknown network=unknown"},
		{`"omitted":{},`, "t zzz", "destructive=unknown"},
		{`"partial":true,`, "t zzz", "destructive=unknown network=unknown"},
		{``, "t zzz", "destructive=unknown network=unknown"},
		{`"partial":true,"filter":{"depth":1},"omitted":{"safetyAssumption":"known-unsafe"},`, "t b deeper", "destructive=yes network=unknown"},
		{`"partial":true,"filter":{"depth":2},`, "t b x", "destructive=no"},
	} {
		d := parse(t, `{"atip":"0.6","name":"t",`+c.fields+commands+`}`)
		if got := effectsOf(resolve(d, Org, c.line), c.want); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.fields, c.line, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	box := parse(t, `{"atip":"0.6","name":"box","x-atip-names":["box","box.*"],"x-atip-multicall":true,"commands":{
		"rm":{"effects":{"destructive":true}},"ls":{"effects":{"destructive":false}}}}`)
	for _, c := range []struct{ invoked, argv, path, want string }{
		{"rm", "rm x", "rm", "destructive=yes"},
		{"ls", "ls x", "ls", "destructive=no"},
		{"box", "box ls", "ls", "destructive=no"},
		{"box.static", "box.static rm x", "rm", "destructive=yes"},
		{"reboot", "reboot", "", "destructive=yes"},
		{"other", "other ls", "", "destructive=yes"},
	} {
		o := at(Org)
		o.InvokedAs = c.invoked
		call := box.Resolve(strings.Fields(c.argv), o)
		if got := effectsOf(call, c.want); got != c.want || strings.Join(call.Path, " ") != c.path {
			t.Errorf("%s: %v %s, want %s", c.argv, call.Path, got, c.want)
		}
	}
	rm := parse(t, `{"atip":"0.6","name":"rm","effects":{"destructive":true}}`)
	o := at(Org)
	o.InvokedAs, o.Effective = "ls", "rm"
	if c := rm.Resolve([]string{"./ls", "-l"}, o); c.Effects[Destructive].Value != Yes || c.Exactness == Exact || c.Tool != "rm" {
		t.Errorf("link ls to rm: %+v", c.Effects[Destructive])
	}
}

func TestCallFields(t *testing.T) {
	d := parse(t, `{"atip":"0.6","name":"t","authentication":{"methods":[{"type":"token","envVar":"T_TOKEN"},{"type":"token","envVar":"not a name"}]},
		"effects":{"filesystem":{"paths":["~/.t"]},"interactive":{"stdin":"optional","tty":false}},
		"commands":{"login":{"effects":{"interactive":{"stdin":"password","tty":true},"duration":{"timeout":"60s"},"filesystem":{"paths":["./"]}}}}}`)
	c := resolve(d, Org, "t login")
	if c.Interactive.Stdin != "password" || c.Interactive.TTY != Yes || c.Interactive.Prompts != Unknown || c.Timeout.Seconds() != 60 ||
		strings.Join(c.Secrets, " ") != "T_TOKEN" || strings.Join(c.Paths, " ") != "./ ~/.t" {
		t.Errorf("%+v", c)
	}
	hosts := parse(t, `{"atip":"0.6","name":"t","x-atip-hosts":["a.example"],"commands":{"up":{"x-atip-hosts":["b.example","*.c.example"]},"down":{}}}`)
	for line, want := range map[string]string{"t up": "b.example *.c.example", "t down": "a.example", "t": "a.example"} {
		if c := resolve(hosts, Org, line); strings.Join(c.Hosts, " ") != want {
			t.Errorf("%s: hosts %v, want %s", line, c.Hosts, want)
		}
	}
	if c := resolve(hosts, User, "t up"); len(c.Hosts) != 0 {
		t.Errorf("hosts at rank user: %v", c.Hosts)
	}
	if c := resolve(d, User, "t login"); len(c.Secrets) != 0 {
		t.Errorf("secrets at rank user: %v", c.Secrets)
	}
	if c := resolve(load(t, "git.json"), Org, "git -C a -C b status x"); c.Chdir != "a/b" || len(c.CodeFiles) != 1 || strings.Join(c.Secrets, "") != "GIT_ASKPASS_TOKEN" {
		t.Errorf("chdir %q, files %v, secrets %v", c.Chdir, c.CodeFiles, c.Secrets)
	}
}

func TestEnvironment(t *testing.T) {
	git := load(t, "git.json")
	env := func(set ...string) ResolveOptions {
		o := at(Org)
		o.Env = func(name string) (string, bool) {
			for _, s := range set {
				if k, v, _ := strings.Cut(s, "="); k == name {
					return v, true
				}
			}
			return "", false
		}
		o.EnvNames = []string{}
		for _, s := range set {
			k, _, _ := strings.Cut(s, "=")
			o.EnvNames = append(o.EnvNames, k)
		}
		return o
	}
	argv := []string{"git", "status"}
	for _, c := range []struct {
		o    ResolveOptions
		want Value
	}{
		{env(), No},
		{env("GIT_EXTERNAL_DIFF=x"), Yes},
		{env("GIT_CONFIG_COUNT=1"), Yes},
		{env("OTHER=1"), No},
	} {
		if got := git.Resolve(argv, c.o).Effects[ExecOpaque].Value; got != c.want {
			t.Errorf("%v: execOpaque %s, want %s", c.o.EnvNames, got, c.want)
		}
	}
	o := env()
	o.EnvNames = nil
	if got := git.Resolve(argv, o).Effects[ExecOpaque].Value; got != Unknown {
		t.Errorf("unlisted environment: execOpaque %s", got)
	}
	// An option set by its variable fires a when but is a maybe.
	c := git.Resolve([]string{"git", "push", "-n"}, env("GIT_TEST_SIGNED=1"))
	if len(c.Options) != 2 || !c.Options[1].Maybe {
		t.Errorf("options %+v", c.Options)
	}
}

// TestChdirOfAnotherOption: a command that declares the flag of a global option itself has another option under it,
// also if that stands in a group with others.
func TestChdirOfAnotherOption(t *testing.T) {
	d, err := Parse([]byte(`{"atip":{"version":"0.6"},"name":"git","version":"1","description":"d","trust":{"source":"org","verified":false},
		"globalOptions":[{"name":"C","flags":["-C"],"type":"directory","description":"d"}],
		"commands":{
			"commit":{"description":"d","options":[{"name":"other","flags":["-C","-m","--message"],"type":"string","description":"d"}],"effects":{"network":false}},
			"build":{"description":"d","options":[{"name":"C","flags":["-C"],"type":"directory","description":"d"}],"effects":{"network":false}},
			"log":{"description":"d","effects":{"network":false}}},
		"x-atip-effects":{"v":1,"parse":{"chdir":["-C"]},"args":[{"flag":"-C","kind":"path","access":"read"}]}}`), ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ words, chdir, paths string }{
		{"git commit -m src", "", ""},
		{"git commit --message=src", "", ""},
		{"git commit -C src", "", ""},
		{"git -C src commit -m x", "src", "src"},
		{"git -C src commit -C x", "src", "src"},
		{"git -C src -C below log", "src/below", "src below"},
		{"git log -C src", "src", "src"},
		{"git build -C src", "src", "src"},
	} {
		call := d.Resolve(strings.Fields(row.words), ResolveOptions{})
		var paths []string
		for _, r := range call.Resources {
			paths = append(paths, r.Value)
		}
		if call.Chdir != row.chdir || strings.Join(paths, " ") != row.paths {
			t.Errorf("%s: in %q, paths %v", row.words, call.Chdir, paths)
		}
	}
}
