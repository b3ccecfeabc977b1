package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

func untrusted(t *testing.T, text string) *Document {
	t.Helper()
	d, err := Parse(Source{File: "project.json", Raw: []byte(text), Layer: LayerProject})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const openPR = `{"version":1,"rules":[{"id":"open-pr","decision":"allow","when":{"tool":"gh","command":["pr create"]},"grants":["network","remoteMutation"]}]}`

func TestLayers(t *testing.T) {
	pr := tool("gh pr create", "network", "remoteMutation")
	prGrown := tool("gh pr create", "network", "remoteMutation", "destructive")
	force := tool("git push", "network", "remoteMutation", "destructive")
	status := tool("git status")
	secret := tool("cat").on("read:secret:/home/u/.aws/credentials")
	rm := tool("rm -rf /", "delete", "destructive").on("delete+rec:root:/")
	foo := unknown("foo")
	allowForce := func(more string) string {
		return `{"version":1,"rules":[{"id":"force","decision":"allow","when":{"tool":"git","command":["push"]},"grants":["network","remoteMutation","destructive"]` + more + `}]}`
	}
	denyForce := func(more string) string {
		return `{"version":1,"rules":[{"id":"no-force","decision":"deny","when":{"tool":"git","command":["push"],"effects":{"destructive":true}}` + more + `}]}`
	}
	user := func(s string) *Document { return mustParse(t, LayerUser, s) }
	managed := func(s string) *Document { return mustParse(t, LayerManaged, s) }
	for _, row := range []struct {
		name string
		docs []*Document
		step Step
		want Action
	}{
		{"a user's allow", []*Document{user(openPR)}, pr, Allow},
		{"the tool gains an effect", []*Document{user(openPR)}, prGrown, Confirm},
		{"an untrusted project's allow", []*Document{untrusted(t, openPR)}, pr, Confirm},
		{"a trusted project beyond its ceiling", []*Document{mustParse(t, LayerProject, openPR)}, pr, Confirm},
		{"a trusted project within the user's ceiling", []*Document{user(`{"version":1,"ceiling":{"allow":["network","remoteMutation"]}}`), mustParse(t, LayerProject, openPR)}, pr, Allow},
		{"a flag's allow", []*Document{mustParse(t, LayerFlag, openPR)}, pr, Confirm},
		{"a delegated allow", []*Document{mustParse(t, LayerDelegated, openPR)}, pr, Confirm},
		{"an organisation's allow", []*Document{mustParse(t, LayerOrg, openPR)}, pr, Confirm},
		{"a managed ceiling", []*Document{managed(`{"version":1,"ceiling":{"allow":["network"]}}`), user(openPR)}, pr, Confirm},
		{"an untrusted project's deny", []*Document{untrusted(t, denyForce(""))}, force, Deny},
		{"deny beats allow in one layer", []*Document{user(allowForce("")), user(denyForce(""))}, force, Deny},
		{"a managed deny without floor", []*Document{managed(denyForce("")), user(allowForce(`,"lifts":["no-force"]`))}, force, Deny},
		{"a managed deny, floor confirm, named", []*Document{managed(denyForce(`,"floor":"confirm"`)), user(allowForce(`,"lifts":["no-force"]`))}, force, Confirm},
		{"a managed deny, floor confirm, not named", []*Document{managed(denyForce(`,"floor":"confirm"`)), user(allowForce(""))}, force, Deny},
		{"a managed deny, floor allow, named", []*Document{managed(denyForce(`,"floor":"allow"`)), user(allowForce(`,"lifts":["managed/no-force"]`))}, force, Allow},
		{"a ceiling without lifts", []*Document{managed(strings.Replace(denyForce(`,"floor":"allow"`), `"version":1`, `"version":1,"ceiling":{"lifts":[]}`, 1)), user(allowForce(`,"lifts":["no-force"]`))}, force, Deny},
		{"an organisation's rule is never lifted", []*Document{mustParse(t, LayerOrg, denyForce(`,"floor":"allow"`)), user(allowForce(`,"lifts":["no-force"]`))}, force, Deny},
		{"a built-in deny, lifted to its floor", []*Document{user(`{"version":1,"rules":[{"id":"creds","decision":"allow","when":{"tool":"cat","path":{"class":"secret"}},"grants":["secretRead"],"lifts":["secret_read"]}]}`)}, secret, Confirm},
		{"nothing lifts root_tree", []*Document{user(`{"version":1,"rules":[{"id":"all","decision":"allow","when":{"path":{"class":"root"}},"grants":["delete","destructive"],"lifts":["root_tree","builtin/root_tree"]}]}`)}, rm, Deny},
		{"default deny", []*Document{user(`{"version":1,"default":"deny"}`)}, foo, Deny},
		{"default deny and a read", []*Document{user(`{"version":1,"default":"deny"}`)}, status, Allow},
		{"a flag's default deny", []*Document{mustParse(t, LayerFlag, `{"version":1,"default":"deny"}`)}, foo, Deny},
		{"a user's switch", []*Document{user(`{"version":1,"switches":{"unknown_tools":true}}`)}, foo, Allow},
		{"a flag's switch", []*Document{mustParse(t, LayerFlag, `{"version":1,"switches":{"unknown_tools":true}}`)}, foo, Confirm},
		{"an untrusted project's switch", []*Document{untrusted(t, `{"version":1,"switches":{"unknown_tools":true}}`)}, foo, Confirm},
		{"a switch above a ceiling", []*Document{managed(`{"version":1,"ceiling":{"switches":["loopback"]}}`), user(`{"version":1,"switches":{"unknown_tools":true}}`)}, foo, Confirm},
		{"a profile", []*Document{user(`{"version":1,"profile":"read-only"}`)}, tool("touch a", "write").on("write:workspace:/home/u/p/a"), Confirm},
		{"a flag's profile only narrows", []*Document{user(`{"version":1,"profile":"read-only"}`), mustParse(t, LayerFlag, `{"version":1,"profile":"workspace"}`)}, tool("touch a", "write").on("write:workspace:/home/u/p/a"), Confirm},
		{"a profile of one's own", []*Document{user(`{"version":1,"profile":"mine","profiles":{"mine":{"base":"read-only","switches":{"unknown_tools":true}}}}`)}, foo, Allow},
		{"inline code in profile ci", []*Document{user(`{"version":1,"profile":"ci"}`)}, interpreter("python3 -c 1", CodeInline), Confirm},
	} {
		s := mustCompile(t, row.docs...)
		if d := s.Decide(requestOf(row.step)); d.Action != row.want {
			t.Errorf("%s: %v, want %v: %v; warnings %v", row.name, d.Action, row.want, ruleNames(d), s.Warnings())
		}
	}
}

func TestIgnoredLooseningWarns(t *testing.T) {
	for _, d := range []*Document{untrusted(t, openPR), mustParse(t, LayerFlag, openPR), untrusted(t, `{"version":1,"switches":{"unknown_tools":true}}`),
		untrusted(t, `{"version":1,"network":{"allow":["docs.rs"]}}`)} {
		if w := mustCompile(t, d).Warnings(); len(w) != 1 || !strings.Contains(w[0], "ignored") {
			t.Errorf("%s: warnings %v", d.File(), w)
		}
	}
}

func TestUnknownProfile(t *testing.T) {
	for _, docs := range [][]*Document{
		{mustParse(t, LayerUser, `{"version":1,"profile":"nope"}`)},
		{mustParse(t, LayerUser, `{"version":1,"profile":"a","profiles":{"a":{"base":"b"},"b":{"base":"a"}}}`)},
		// A workspace cannot supply what its user's policy names.
		{mustParse(t, LayerUser, `{"version":1,"profile":"mine"}`), untrusted(t, `{"version":1,"profiles":{"mine":{"switches":{"remote_change":true}}}}`)},
	} {
		_, err := Compile(docs)
		if pe, ok := err.(*ParseError); !ok || pe.Line != 1 || pe.Col != 24 || pe.Code != "E2040" {
			t.Errorf("%v", err)
		}
	}
}

func TestAutoApprove(t *testing.T) {
	s := mustCompile(t, mustParse(t, LayerUser, `{"autoApprove":{"effects.idempotent":true,"effects.network":false}}`))
	both := mustCompile(t, mustParse(t, LayerUser, `{"autoApprove":{"effects.idempotent":true,"effects.network":false},"requireConfirmation":{"effects.write":true}}`))
	remove := tool("remove x", "delete").on("delete:workspace:/home/u/p/x")
	for _, row := range []struct {
		name string
		set  *Set
		step Step
		want Action
	}{
		{"both proven", s, remove, Allow},
		{"idempotent unknown", s, with(remove, "idempotent?"), Confirm},
		{"network", s, with(remove, "network"), Confirm},
		{"destructive is never implied", s, with(remove, "destructive"), Confirm},
		{"outside the workspace", s, tool("remove x", "delete").on("delete:outside:/x"), Confirm},
		{"requireConfirmation too", both, with(remove, "write"), Confirm},
		{"requireConfirmation, unknown", both, with(remove, "write?"), Confirm},
	} {
		req := requestOf(row.step)
		if row.name == "requireConfirmation, unknown" {
			req.Enforce = Enforce{}
		}
		if d := row.set.Decide(req); d.Action != row.want {
			t.Errorf("%s: %v, want %v: %v", row.name, d.Action, row.want, ruleNames(d))
		}
	}
}

func TestDelegation(t *testing.T) {
	const text = `{"delegation":{"allowedTools":["gh","git","sh"],"deniedCommands":["gh repo delete"],"effectRestrictions":{"destructive":false}}}`
	doc := mustCompile(t, mustParse(t, LayerFlag, text))
	plain := mustCompile(t)
	chain := []Restrict{{AllowedTools: []string{"gh", "git", "sh"}, DeniedCommands: []string{"gh repo delete"}, EffectRestrictions: map[string]bool{"destructive": false}}}
	view := tool("gh repo view", "network")
	del := tool("gh repo delete", "network", "remoteMutation", "destructive")
	viaEnv := del
	viaEnv.Via = []string{"env"}
	fullPath := del
	fullPath.Call.Argv = []string{"/usr/bin/gh", "repo", "delete", "x"}
	fullPath.Call.InvokedAs = "/usr/bin/gh"
	renamed := del
	renamed.Call.Tool, renamed.Call.InvokedAs = "other", "other"
	renamed.File.Names = []string{"/usr/bin/gh"}
	alt := tool("gh repo view", "network")
	alt.Call.AltPaths, alt.Call.Exactness = [][]string{{"repo", "delete"}}, atip.Bounded
	planted := tool("git status")
	planted.File.InWorkspace = true
	viaSudo := tool("git status")
	viaSudo.Via = []string{"sudo"}
	nested := tool("git status")
	nested.NestedTools = []string{"curl"}
	for _, row := range []struct {
		name string
		step Step
		want Action
	}{
		{"listed", view, Allow},
		{"denied command", del, Deny}, {"behind env", viaEnv, Deny}, {"by its path", fullPath, Deny}, {"another name of the file", renamed, Deny},
		{"on some reading", alt, Deny}, {"unresolved", unknown("gh --x repo delete y"), Deny},
		{"not listed", tool("rg x"), Deny}, {"exempt", tool("echo x"), Allow}, {"listed name, file of the workspace", planted, Deny},
		{"behind an unlisted wrapper", viaSudo, Deny}, {"an unlisted tool within", nested, Deny},
		{"destructive", tool("git push", "destructive", "network", "remoteMutation"), Deny},
		{"destructive unknown, not enforceable", tool("gh pr list", "network", "destructive?"), Confirm},
	} {
		if d := doc.Decide(requestOf(row.step)); d.Action != row.want {
			t.Errorf("%s: %v, want %v: %v", row.name, d.Action, row.want, ruleNames(d))
		}
		req := requestOf(row.step)
		req.Chain = chain
		if d := plain.Decide(req); d.Action != row.want {
			t.Errorf("%s, by chain: %v, want %v: %v", row.name, d.Action, row.want, ruleNames(d))
		}
	}
	for name, r := range map[string]Restrict{
		"profile": {Profile: "nope"}, "default": {Default: "allow"}, "effect": {EffectRestrictions: map[string]bool{"x": false}},
		"host": {Hosts: []string{"*"}}, "path": {Paths: []string{"a"}}, "command": {DeniedCommands: []string{" "}},
	} {
		req := requestOf(tool("git status"))
		req.Chain = []Restrict{r}
		if d := plain.Decide(req); d.Action != Deny {
			t.Errorf("a block with a bad %s: %v", name, d.Action)
		}
	}
}

// What the kernel can withhold is withheld: the tool runs, without the effect.
func TestEffectRestrictionIsEnforced(t *testing.T) {
	s := mustCompile(t, mustParse(t, LayerFlag, `{"delegation":{"effectRestrictions":{"network":false,"filesystem.write":false}}}`))
	tests := with(tool("npm test").code(CodeProject), "network?", "write?", "delete?", "destructive?")
	d := s.Decide(requestOf(tests))
	if d.Action != Allow || d.Grants.Effects&(fWrite|fNetwork) != 0 {
		t.Errorf("%v with %s: %v", d.Action, setNames(d.Grants.Effects), ruleNames(d))
	}
	if d := s.Decide(requestOf(tool("touch x", "write").on("write:workspace:/home/u/p/x"))); d.Action != Deny {
		t.Errorf("declared: %v", d.Action)
	}
}

func TestChainHostsAndPaths(t *testing.T) {
	s := mustCompile(t, mustParse(t, LayerUser, `{"version":1,"switches":{"url_fetch":true}}`))
	for _, row := range []struct {
		step Step
		r    Restrict
		want Action
	}{
		{tool("curl", "network").host("docs.rs", 443), Restrict{Hosts: []string{"docs.rs"}}, Allow},
		{tool("curl", "network").host("evil.example", 443), Restrict{Hosts: []string{"docs.rs"}}, Deny},
		{tool("curl", "network").host("docs.rs", 443), Restrict{Hosts: []string{}}, Deny},
		{tool("touch x", "write").on("write:workspace:/home/u/p/src/x"), Restrict{Paths: []string{"/home/u/p/src"}}, Allow},
		{tool("touch x", "write").on("write:workspace:/home/u/p/x"), Restrict{Paths: []string{"/home/u/p/src"}}, Deny},
		{tool("git status"), Restrict{Profile: "read-only"}, Allow},
		{tool("touch x", "write").on("write:workspace:/home/u/p/src/x"), Restrict{Profile: "read-only"}, Confirm},
		{tool("touch x", "write").on("write:workspace:/home/u/p/src/x"), Restrict{Profile: "read-only", Default: "deny"}, Deny},
	} {
		req := requestOf(row.step)
		req.Chain = []Restrict{{}, row.r}
		if d := s.Decide(req); d.Action != row.want {
			t.Errorf("%v under %+v: %v, want %v: %v", row.step.Call.Argv, row.r, d.Action, row.want, ruleNames(d))
		}
	}
}

func TestConditions(t *testing.T) {
	push := tool("kubectl delete pod", "network", "remoteMutation")
	push.Call.Options = []atip.OptionUse{{Name: "context", Flag: "--context", Value: "prod-eu"}}
	maybe := push
	maybe.Call.Options = []atip.OptionUse{{Name: "context", Flag: "--context", Value: "prod-eu", Maybe: true}}
	get := push
	get.Call.Path = []string{"get", "pods"}
	prod := `{"id":"prod","decision":"deny","when":{"tool":"kubectl","option":{"context":"prod*"}},"unless":[{"command":["get","logs"]}]}`
	for _, row := range []struct {
		name, rule string
		step       Step
		want       Action
	}{
		{"option", prod, push, Deny}, {"option on some reading", prod, maybe, Confirm}, {"exception", prod, get, Confirm},
		{"confidence", `{"id":"a","decision":"deny","when":{"confidence":["bounded"]}}`, func() Step { s := tool("ls"); s.Confidence = Bounded; return s }(), Deny},
		{"level", `{"id":"a","decision":"deny","when":{"trust":{"level":["UNSIGNED"]}}}`, tool("ls"), Deny},
		{"rank", `{"id":"a","decision":"deny","when":{"rank":{"below":"vendor"}}}`, tool("ls"), Deny},
		{"metadata", `{"id":"a","decision":"deny","when":{"metadata":["builtin"]}}`, tool("ls"), Deny},
		{"digest", `{"id":"a","decision":"deny","when":{"tool":"sha256:` + strings.Repeat("a", 64) + `"}}`, tool("ls"), Deny},
		{"place", `{"id":"a","decision":"deny","when":{"tool":"/usr/bin/ls"}}`, tool("ls"), Deny},
		{"no command", `{"id":"a","decision":"deny","when":{"tool":"npm","command":""}}`, tool("npm"), Deny},
		{"no command, but one", `{"id":"a","decision":"deny","when":{"tool":"git","command":""}}`, tool("git status"), Allow},
		{"path glob", `{"id":"a","decision":"deny","when":{"path":{"glob":"/home/u/p/a/**"}}}`, tool("cat a").on("read:workspace:/home/u/p/a/b"), Deny},
		{"path glob below a recursive act", `{"id":"a","decision":"deny","when":{"path":{"glob":"/home/u/p/a/**"}}}`, tool("grep -r x").on("read+rec:workspace:/home/u/p"), Confirm},
		{"path glob elsewhere", `{"id":"a","decision":"deny","when":{"path":{"glob":"/home/u/p/a/**"}}}`, tool("cat b").on("read:workspace:/home/u/p/b"), Allow},
		{"agent", `{"id":"a","decision":"deny","when":{"agent":"claude*"}}`, tool("ls"), Deny},
		{"cwd", `{"id":"a","decision":"deny","when":{"cwd":"/home/u/**"}}`, tool("ls"), Deny},
		{"unknown options", `{"id":"a","decision":"deny","when":{"unknownOptions":true}}`, func() Step { s := tool("ls"); s.Call.UnknownOptions = []string{"--x"}; return s }(), Deny},
	} {
		s := mustCompile(t, mustParse(t, LayerUser, `{"version":1,"rules":[`+row.rule+`]}`))
		req := requestOf(row.step)
		req.Agent = "claude-code"
		if d := s.Decide(req); d.Action != row.want {
			t.Errorf("%s: %v, want %v: %v", row.name, d.Action, row.want, ruleNames(d))
		}
	}
}

func TestExpiry(t *testing.T) {
	s := mustCompile(t, mustParse(t, LayerUser, strings.Replace(openPR, `"grants"`, `"expires":"2026-12-01","grants"`, 1)))
	for now, want := range map[time.Time]Action{
		{}: Confirm, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC): Allow, time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC): Confirm,
	} {
		req := requestOf(tool("gh pr create", "network", "remoteMutation"))
		req.Now = now
		if d := s.Decide(req); d.Action != want {
			t.Errorf("at %v: %v, want %v", now, d.Action, want)
		}
	}
}

func TestBillableNeedsRuleAndBudget(t *testing.T) {
	run := tool("aws run", "network", "remoteMutation", "billable")
	rule := mustCompile(t, mustParse(t, LayerUser, `{"version":1,"rules":[{"id":"a","decision":"allow","when":{"tool":"aws"},"grants":["network","remoteMutation","billable"]}]}`))
	for _, row := range []struct {
		set  *Set
		left int
		want Action
	}{{rule, 0, Confirm}, {rule, 1, Allow}, {mustCompile(t), 1, Confirm}} {
		req := requestOf(run)
		req.BillableLeft = row.left
		if d := row.set.Decide(req); d.Action != row.want {
			t.Errorf("budget %d: %v, want %v", row.left, d.Action, row.want)
		}
	}
}

func TestOwnPathClasses(t *testing.T) {
	s := mustCompile(t, mustParse(t, LayerProject, `{"version":1,"paths":{"secret":["vault/**","*.pfx"],"protected":["infra"]}}`))
	for _, row := range []struct {
		step Step
		want Action
	}{
		{tool("cat").on("read:workspace:/home/u/p/vault/a"), Deny},
		{tool("cat").on("read:workspace:/home/u/p/x/k.pfx"), Deny},
		{tool("cat").on("read:workspace:/home/u/p/x/k.txt"), Allow},
		{tool("touch x", "write").on("write:workspace:/home/u/p/infra/main.tf"), Deny},
	} {
		if d := s.Decide(requestOf(row.step)); d.Action != row.want {
			t.Errorf("%v: %v, want %v", row.step.Call.Resources, d.Action, row.want)
		}
	}
}

func TestEntitled(t *testing.T) {
	s := mustCompile(t)
	gh := tool("gh pr list", "network").on("read:secret:/home/u/.config/gh/hosts.yml")
	if d := s.Decide(requestOf(gh)); d.Action != Deny {
		t.Errorf("not entitled: %v", d.Action)
	}
	gh.Entitled = []string{"/home/u/.config/gh"}
	if d := s.Decide(requestOf(gh)); d.Action != Allow {
		t.Errorf("entitled: %v %v", d.Action, ruleNames(d))
	}
	write := gh.on("write:secret:/home/u/.config/gh/hosts.yml")
	if d := s.Decide(requestOf(write)); d.Action != Deny {
		t.Errorf("entitled to read, writes: %v", d.Action)
	}
}

func TestListedHosts(t *testing.T) {
	s := mustCompile(t, mustParse(t, LayerUser, `{"version":1,"network":{"allow":["docs.rs","*.python.org"],"deny":["bad.python.org"]}}`))
	for host, want := range map[string]Action{"docs.rs": Allow, "pypi.python.org": Allow, "bad.python.org": Deny, "python.org": Confirm, "evil.example": Confirm} {
		if d := s.Decide(requestOf(tool("curl", "network").host(host, 443))); d.Action != want {
			t.Errorf("%s: %v, want %v: %v", host, d.Action, want, ruleNames(d))
		}
	}
}

func TestSettingsOnlyTighten(t *testing.T) {
	user := mustParse(t, LayerUser, `{"version":1,"sandbox":{"accept":["files.meta","proc.signal"],"write":["/data"],"confine":"none"},"env":{"pass":["MY_*"],"set":{"A":"user"}},
		"limits":{"timeout":"10m","openFiles":4096},"trust":{"pins":{"gh":["`+strings.Repeat("a", 64)+`"]},"onUnsigned":"confirm"},"approval":{"lockKeys":["ssh-ed25519 K u"]},"output":{"maxBytes":"64KiB"}}`)
	proj := untrusted(t, `{"version":1,"sandbox":{"accept":["files.meta"],"require":["net"],"write":["/etc"],"delete":"strict"},"env":{"pass":["AWS_*"],"drop":["X"],"set":{"A":"project"}},
		"limits":{"timeout":"1h","openFiles":128},"trust":{"pins":{"evil":["`+strings.Repeat("b", 64)+`"]},"onUnsigned":"allow","requireSignature":"tool"},"approval":{"lockKeys":["ssh-ed25519 K p"]},"output":{"maxBytes":"1KiB"}}`)
	s := mustCompile(t, user, proj)
	sb := s.Sandbox()
	if !slices.Equal(sb.Accept, []string{"files.meta"}) || !slices.Equal(sb.Require, []string{"net"}) || !sb.DeleteStrict || len(sb.Write) != 1 || sb.Write[0].Path != "/data" || sb.Confine != "none" {
		t.Errorf("sandbox %+v", sb)
	}
	if e := s.Env(); !slices.Equal(e.Pass, []string{"MY_*"}) || e.Set["A"] != "user" || !slices.Equal(e.Drop, []string{"X"}) {
		t.Errorf("env %+v", e)
	}
	if l := s.Limits(); l.Timeout != 10*time.Minute || l.OpenFiles != 128 {
		t.Errorf("limits %+v", l)
	}
	if p := s.TrustPolicy(); len(p.Pins) != 1 || p.OnUnsigned != "confirm" || !p.RequireTool {
		t.Errorf("trust %+v", p)
	}
	if a := s.Approval(); !slices.Equal(a.LockKeys, []string{"ssh-ed25519 K u"}) {
		t.Errorf("approval %+v", a)
	}
	if o := s.Output(); o.MaxBytes != 1024 {
		t.Errorf("output %+v", o)
	}
	if got := mustCompile(t, mustParse(t, LayerManaged, `{"version":1,"sandbox":{"confine":"kernel"}}`), user).Sandbox().Confine; got != "" {
		t.Errorf("confine %q against a managed kernel", got)
	}
}

func TestDigestOfSet(t *testing.T) {
	a, b := mustParse(t, LayerUser, openPR), untrusted(t, `{"version":1,"default":"deny"}`)
	if mustCompile(t, a, b).Digest() != mustCompile(t, b, a).Digest() {
		t.Error("order changes the digest")
	}
	seen := map[string]bool{}
	for _, s := range []*Set{mustCompile(t), mustCompile(t, a), mustCompile(t, b), mustCompile(t, a, b), mustCompile(t, mustParse(t, LayerUser, openPR+" "))} {
		if seen[s.Digest()] {
			t.Error("two policies have one digest")
		}
		seen[s.Digest()] = true
	}
}

// Where the default is a denial, a rule that says confirm makes its commands ask, if it
// stands with whoever denied or above. A flag, a project or a delegation cannot make a
// question of a denial.
func TestWhoAnswersForTheDefault(t *testing.T) {
	deny, ask := `{"version":1,"default":"deny","switches":{"workspace_write":false}}`, `{"version":1,"rules":[{"id":"r","decision":"confirm","when":{"tool":"touch"}}]}`
	// Nothing is known against it, and no built-in row allows it.
	idle := requestOf(tool("touch a", "write").on("write:workspace:/home/u/p/a"))
	if d := mustCompile(t, mustParse(t, LayerUser, deny)).Decide(idle); d.Action != Deny || d.Reasons[0].Rule != "builtin/default" {
		t.Fatalf("the default does not decide: %v: %v", d.Action, d.Reasons)
	}
	for _, row := range []struct {
		denies, asks Layer
		want         Action
	}{
		{LayerUser, LayerUser, Confirm}, {LayerUser, LayerManaged, Confirm}, {LayerManaged, LayerUser, Deny}, {LayerUser, LayerFlag, Deny}, {LayerUser, LayerProject, Deny},
		{LayerManaged, LayerFlag, Deny}, {LayerFlag, LayerUser, Confirm}, {LayerProject, LayerFlag, Deny}, {LayerFlag, LayerFlag, Confirm},
	} {
		if d := mustCompile(t, mustParse(t, row.denies, deny), mustParse(t, row.asks, ask)).Decide(idle); d.Action != row.want {
			t.Errorf("%v denies by default, %v asks: %v, want %v: %v", row.denies, row.asks, d.Action, row.want, d.Reasons)
		}
	}
	// What is allowed is asked about, whoever says so.
	allow := `{"version":1,"default":"deny","rules":[{"id":"a","decision":"allow","when":{"tool":"touch"},"grants":["write"]}]}`
	if d := mustCompile(t, mustParse(t, LayerUser, allow), mustParse(t, LayerFlag, ask)).Decide(idle); d.Action != Confirm {
		t.Errorf("allowed, and a flag asks: %v: %v", d.Action, d.Reasons)
	}
}

// TestCredentials: whoever withholds wins, and only an owner's policy gives away.
func TestCredentials(t *testing.T) {
	says := func(layer Layer, word string) *Document {
		return mustParse(t, layer, `{"version":1,"delegation":{"credentials":"`+word+`"}}`)
	}
	for _, row := range []struct {
		name     string
		docs     []*Document
		want     Credentials
		warnings int
	}{
		{"nobody", nil, CredentialsByParent, 0},
		{"a user", []*Document{says(LayerUser, "pass")}, CredentialsPassed, 0},
		{"a managed policy", []*Document{says(LayerManaged, "pass")}, CredentialsPassed, 0},
		{"a managed policy against a user", []*Document{says(LayerManaged, "withhold"), says(LayerUser, "pass")}, CredentialsWithheld, 0},
		{"a user against a managed policy", []*Document{says(LayerUser, "withhold"), says(LayerManaged, "pass")}, CredentialsWithheld, 0},
		{"a flag", []*Document{says(LayerFlag, "pass")}, CredentialsByParent, 1},
		{"a flag against a user", []*Document{says(LayerUser, "pass"), says(LayerFlag, "withhold")}, CredentialsWithheld, 0},
		{"an organisation", []*Document{says(LayerOrg, "pass")}, CredentialsByParent, 1},
		{"a trusted project", []*Document{says(LayerProject, "pass")}, CredentialsByParent, 1},
		{"a project against a user", []*Document{says(LayerUser, "pass"), says(LayerProject, "withhold")}, CredentialsWithheld, 0},
	} {
		s := mustCompile(t, row.docs...)
		if got := s.Credentials(); got != row.want || len(s.Warnings()) != row.warnings {
			t.Errorf("%s: %v, want %v; warnings %v", row.name, got, row.want, s.Warnings())
		}
	}
	if Credentials(0) != CredentialsWithheld {
		t.Error("the zero value gives something away")
	}
}

// TestProfileOfAFlag: what a flag chooses narrows, whatever the layers above chose.
func TestProfileOfAFlag(t *testing.T) {
	user := func(s string) *Document { return mustParse(t, LayerUser, s) }
	quiet := `"profiles":{"quiet":{"base":"ci","switches":{"loopback":true},"default":"deny","rules":[
		{"id":"no-gh","decision":"deny","when":{"tool":"gh"}},
		{"id":"gh","decision":"allow","when":{"tool":"gh","command":["pr create"]},"grants":["network","remoteMutation"]}]}}`
	for _, row := range []struct {
		name    string
		docs    []*Document
		profile string
		on      []string
		ci      bool
	}{
		{"none", nil, "workspace", profileSwitches("workspace").names(), false},
		{"a narrower one", []*Document{ProfileChoice("read-only")}, "read-only", []string{"network_read"}, false},
		{"one that is neither", []*Document{ProfileChoice("ops")}, "workspace+ops", []string{"workspace_write", "git_local", "regenerable_delete", "network_read", "declared_dependencies"}, false},
		{"two", []*Document{ProfileChoice("ci"), ProfileChoice("read-only")}, "ci+read-only", []string{"network_read"}, true},
		{"a looser one than the user's", []*Document{user(`{"version":1,"profile":"read-only"}`), ProfileChoice("workspace")}, "read-only+workspace", []string{"network_read"}, false},
		{"one beside the user's switches", []*Document{user(`{"version":1,"switches":{"loopback":true,"remote_change":true}}`), ProfileChoice("ops")}, "workspace+ops",
			[]string{"workspace_write", "git_local", "regenerable_delete", "network_read", "declared_dependencies", "loopback"}, false},
		{"the user's in place of the managed one", []*Document{mustParse(t, LayerManaged, `{"version":1,"profile":"read-only"}`), user(`{"version":1,"profile":"ci"}`), ProfileChoice("ci")}, "ci", profileSwitches("ci").names(), true},
		{"one that the user defines", []*Document{user(`{"version":1,` + quiet + `}`), ProfileChoice("quiet")}, "workspace+quiet",
			[]string{"workspace_write", "git_local", "regenerable_delete", "undoable", "project_code", "network_read", "declared_dependencies"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := Compile(row.docs)
			if err != nil {
				t.Fatal(err)
			}
			if s.Profile() != row.profile || !slices.Equal(s.Switches(), row.on) || s.UsesProfile("ci") != row.ci {
				t.Errorf("profile %s, switches %v, ci %t", s.Profile(), s.Switches(), s.UsesProfile("ci"))
			}
		})
	}
	s, err := Compile([]*Document{user(`{"version":1,` + quiet + `}`), ProfileChoice("quiet")})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []Step{tool("gh pr create", "network", "remoteMutation"), unknown("foo")} {
		if d := s.Decide(requestOf(step)); d.Action != Deny {
			t.Errorf("%v under the default and the rules of a chosen profile: %v", step.Call.Tool, d.Action)
		}
	}
	if w := s.Warnings(); len(w) != 1 || !strings.Contains(w[0], "allow rule gh is ignored") {
		t.Errorf("warnings %v", w)
	}
	for _, name := range []string{"", "nope", "worksp"} {
		_, err := Compile([]*Document{user(`{"version":1,` + quiet + `}`), ProfileChoice(name)})
		if err == nil || !strings.Contains(err.Error(), "--profile: unknown profile") || !strings.Contains(err.Error(), "there are ci, ops, quiet, read-only, workspace") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
