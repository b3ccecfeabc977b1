package atip

import (
	"strings"
	"testing"
)

func TestJoin(t *testing.T) {
	quiet := parse(t, `{"atip":"0.6","name":"t","arguments":[{"name":"f","type":"file"}],
		"effects":{"network":false,"destructive":false,"idempotent":true,"filesystem":{"read":true,"write":false,"delete":false}}}`)
	loud := parse(t, `{"atip":"0.6","name":"t","arguments":[{"name":"f","type":"file"}],"effects":{"destructive":true,"idempotent":false,"interactive":{"stdin":"password","tty":true}},
		"x-atip-effects":{"v":1,"args":[{"name":"f","kind":"path","access":"delete"}],"exec":[{"from":"file","index":0,"kind":"code"}]}}`)
	a, b := resolve(quiet, Org, "t x"), resolve(loud, User, "t x")
	c := JoinDanger(a, b)
	want := "destructive=yes idempotent=no network=no write=no"
	if got := effectsOf(c, want); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := resources(c); got != "x:read,delete" || len(c.Nested) != 1 || c.Interactive.Stdin != "password" || c.Interactive.TTY != Yes {
		t.Errorf("%s %v %+v", got, c.Nested, c.Interactive)
	}
	if got := resources(a); got != "x:read" || len(a.Nested) != 0 {
		t.Errorf("the first call has changed: %s", got)
	}
	if c.Effects[Destructive].Rank != User || c.Effects[Network].Rank != Org {
		t.Errorf("ranks %+v", c.Effects)
	}
	joined := JoinEffects(a.Effects, UnknownCall([]string{"t"}, "").Effects)
	if joined[Network].Value != Unknown || joined[Read].Value != Yes {
		t.Errorf("joined with nothing: %+v", joined)
	}
}

func TestUnknownCall(t *testing.T) {
	c := UnknownCall([]string{"/usr/bin/mystery", "-v", "repo", "delete", "--yes", "x"}, "")
	if c.Tool != "mystery" || c.Exactness != Unresolved || len(c.Path) != 0 || !hasPath(c, "repo delete x") || len(c.Resources) != 0 {
		t.Errorf("%+v", c)
	}
	for e := range c.Effects {
		if c.Effects[e].Value != Unknown {
			t.Errorf("%s is %s", Effect(e), c.Effects[e].Value)
		}
	}
	if c := UnknownCall(nil, ""); c.Tool != "" || len(c.AltPaths) != 0 {
		t.Errorf("%+v", c)
	}
	if c := load(t, "git.json").Resolve(nil, at(Org)); c.Tool != "git" {
		t.Errorf("%+v", c)
	}
}

func TestSublanguage(t *testing.T) {
	psql := parse(t, `{"atip":"0.6","name":"psql","options":[`+opt("-c", "string")+`,`+opt("-f", "file")+`],
		"arguments":[{"name":"db","type":"string","required":false}],
		"effects":{"network":true,"destructive":true,"subprocess":true,"filesystem":{"read":true,"write":true,"delete":false}},
		"x-atip-effects":{"v":1,"base":{"network":true,"filesystem":{"read":true}},
			"sublanguage":[{"from":"optionValue","flags":["-c"],"language":"sql"},{"from":"file","flags":["-f"],"language":"sql"},{"from":"stdin","language":"sql"}]}}`)
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"psql", "-c", "select 1"}, "destructive=no remoteMutation=no execOpaque=no write=no"},
		{[]string{"psql", "-c", "insert into t values (1)"}, "destructive=no remoteMutation=yes execOpaque=no write=no"},
		{[]string{"psql", "-c", "select 1", "-c", "drop table t"}, "destructive=yes remoteMutation=yes execOpaque=no"},
		{[]string{"psql", "-cDROP TABLE t"}, "destructive=yes"},
		{[]string{"psql", "-c", `\! sh`}, "execOpaque=yes write=yes destructive=yes"},
		{[]string{"psql", "-f", "x.sql"}, "execOpaque=yes destructive=yes"},
		{[]string{"psql", "db"}, "execOpaque=yes destructive=yes"},
	} {
		if got := effectsOf(psql.Resolve(c.argv, at(Org)), c.want); got != c.want {
			t.Errorf("%q: %s, want %s", c.argv, got, c.want)
		}
	}
}

// Every field of an extension that is not what it must be is found, and the extension
// with it is not used.
func TestExtensionFields(t *testing.T) {
	for _, ext := range []string{
		`"base":[]`, `"base":{"filesystem":true}`, `"base":{"filesystem":{"rm":true}}`, `"base":{"cost":1}`, `"base":{"cost":{"billable":1}}`,
		`"base":{"interactive":{"stdin":"maybe"}}`, `"base":{"interactive":{"tty":1}}`, `"base":{"creates":"x"}`,
		`"when":{}`, `"when":[1]`, `"when":[{"id":"a b","if":{"argCount":{"min":1}}}]`, `"when":[{"id":"a"}]`,
		`"when":[{"id":"a","if":{"argCount":{"min":1}},"effects":{}}]`, `"when":[{"id":"a","if":{"argCount":{"min":1}},"addAll":1}]`,
		`"narrow":[{"id":"a","if":{"argCount":{"min":1}},"effects":{},"minRank":"god"}]`, `"narrow":[{"id":"a","if":{"argCount":{"min":1}},"effects":{},"despite":"x"}]`,
		`"args":[{"index":0,"kind":"thing","access":"read"}]`, `"args":[{"index":0,"kind":"path","access":"lick"}]`, `"args":[{"index":0,"kind":"path"}]`,
		`"args":[{"kind":"path","access":"read"}]`, `"args":[{"index":0.5,"kind":"path","access":"read"}]`, `"args":[{"index":0,"kind":"path","access":"read","default":1}]`,
		`"args":[{"index":0,"kind":"path","access":"read","accessIf":[{"if":{"x":1},"access":"read"}]}]`, `"args":[{"index":0,"kind":"path","access":"read","recursiveIf":{}}]`,
		`"exec":[{"from":"moon","kind":"argv"}]`, `"exec":[{"from":"rest","kind":"spell"}]`, `"exec":[{"from":"rest"}]`, `"exec":[{"from":"optionValue","kind":"argv"}]`,
		`"exec":[{"from":"rest","kind":"argv","skip":"1"}]`, `"exec":[{"from":"rest","kind":"argv","assignments":"yes"}]`, `"exec":[{"from":"rest","kind":"argv","terminator":1}]`,
		`"env":[{"name":"*","kind":"exec"}]`, `"env":[{"name":"X","kind":"odd"}]`, `"env":[{"name":"X"}]`,
		`"files":[{"path":"x","relativeTo":"moon","kind":"k"}]`, `"files":[{"path":"x","kind":"k"}]`, `"files":[{"path":"x","relativeTo":"cwd","kind":"k","safeKeys":"x"}]`,
		`"sublanguage":[{"from":"rest","language":"cobol"}]`, `"sublanguage":[{"language":"sql"}]`,
		`"parse":[]`, `"parse":{"bundle":1}`, `"parse":{"arity":[]}`, `"parse":{"arity":{"-x":"lots"}}`, `"parse":{"options":"some"}`, `"parse":{"responseFiles":""}`, `"parse":{"chdir":"-C"}`,
		`"unknownOption":"ignore"`, `"surprise":1`,
		`"when":[{"id":"a","if":{"anyOption":[]}}]`, `"when":[{"id":"a","if":{"optionValue":{"match":{"equals":"x"}}}}]`, `"when":[{"id":"a","if":{"optionValue":{"flags":["-x"]}}}]`,
		`"when":[{"id":"a","if":{"argCount":{}}}]`, `"when":[{"id":"a","if":{"argCount":{"most":1}}}]`, `"when":[{"id":"a","if":{"keyValue":{}}}]`, `"when":[{"id":"a","if":{"all":[]}}]`,
		`"when":[{"id":"a","if":{"not":{}}}]`, `"when":[{"id":"a","if":{"sometimes":true}}]`, `"when":[{"id":"a","if":{"anyArg":{"match":{"like":"x"}}}}]`,
		`"when":[{"id":"a","if":{"anyArg":{"match":{"re":"` + strings.Repeat("x", 257) + `"}}}}]`, `"when":[{"id":"a","if":{"anyArg":{"match":{"equals":"x","ci":1}}}}]`,
	} {
		text := tool("", files, ext)
		if !strings.Contains(codes(Validate([]byte(text), "t.json")), "extension") {
			t.Errorf("validate accepts %s", ext)
		}
		if n := parse(t, text).rootNode(); !n.extBad {
			t.Errorf("%s is used", ext)
		}
	}
}

func TestEnvCondition(t *testing.T) {
	d := parse(t, tool("", files, `"base":{},"when":[{"id":"e","if":{"env":{"name":"MODE","match":{"equals":"x"}}},"add":{"destructive":true}},
		{"id":"p","if":{"env":{"name":"PRE_*"}},"add":{"network":true}}],"exec":[{"from":"env","flags":["HOOK"],"kind":"shell"}]`))
	o := at(Org)
	o.Env = func(name string) (string, bool) { return "x", name == "MODE" || name == "HOOK" }
	o.EnvNames = []string{"MODE", "HOOK"}
	c := d.Resolve([]string{"t"}, o)
	want := "destructive=yes network=no"
	if got := effectsOf(c, want); got != want || len(c.Nested) != 1 || c.Nested[0].Text != "x" {
		t.Errorf("%s %v", got, c.Nested)
	}
	o.EnvNames = append(o.EnvNames, "PRE_1")
	if c := d.Resolve([]string{"t"}, o); c.Effects[Network].Value != Yes {
		t.Error("a variable with the prefix is set")
	}
}

func TestDocumentFields(t *testing.T) {
	d := load(t, "git.json")
	if d.Description() == "" || strings.Join(d.Names(), " ") != "git git-*" || !d.Multicall() || d.Inferred() || d.BinaryHash() != "" {
		t.Errorf("%q %v", d.Description(), d.Names())
	}
	for source, want := range map[string]Rank{`"vendor"`: Vendor, `"community"`: Community, `"user"`: User, `"admin"`: Inferred, `7`: Inferred} {
		d := parse(t, `{"atip":"0.6","trust":{"source":`+source+`}}`)
		if r, ok := d.DeclaredSource(); r != want || !ok || d.Inferred() != (want == Inferred) {
			t.Errorf("source %s: %s %v", source, r, ok)
		}
	}
	for _, text := range []string{`{"atip":"0.6"}`, `{"atip":"0.6","trust":{"source":"native"}}`} {
		if _, ok := parse(t, text).DeclaredSource(); ok {
			t.Errorf("%s declares a source", text)
		}
	}
	_, err := Parse([]byte("{\n  \"atip\": \"9.1\"}"), ParseOptions{})
	if err == nil || !strings.Contains(err.Error(), "line 2, column 11") || !strings.Contains(err.Error(), "/atip") {
		t.Errorf("error %v", err)
	}
}
