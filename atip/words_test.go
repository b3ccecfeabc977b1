package atip

import (
	"fmt"
	"strings"
	"testing"
)

// tool is a document with one command, whose extension is given.
func tool(options, arguments, ext string) string {
	return `{"atip":"0.6","name":"t","options":[` + options + `],"arguments":[` + arguments + `],
		"effects":{"network":false,"destructive":true,"subprocess":true,"filesystem":{"read":true,"write":true,"delete":false}},
		"x-atip-effects":{"v":1,` + ext + `}}`
}

func opt(flags, typ string) string {
	return `{"name":"x","type":"` + typ + `","flags":["` + strings.ReplaceAll(flags, " ", `","`) + `"]}`
}

func arg(name, extra string) string { return `{"name":"` + name + `","type":"file"` + extra + `}` }

const files = `{"name":"f","type":"file","variadic":true,"required":false}`

func TestWords(t *testing.T) {
	for _, c := range []struct {
		name, doc, line, want string
	}{
		{"attached and next", tool(opt("-o --out", "string"), files, `"parse":{}`), "t -oa --out b --out=c -o d e", "exact out=a out=b out=c out=d | e"},
		{"option eats dashes", tool(opt("--out", "string"), files, `"parse":{}`), "t --out -- --out --out x", "exact out=-- out=--out | x"},
		{"dash is positional", tool("", files, `"parse":{}`), "t - x", "exact | - x"},
		{"cluster", tool(opt("-a", "boolean")+","+opt("-b", "boolean")+","+opt("-o", "string"), files, `"parse":{}`), "t -abofile x", "exact a b o=file | x"},
		{"cluster takes next", tool(opt("-a", "boolean")+","+opt("-o", "string"), files, `"parse":{}`), "t -ao x y", "exact a o=x | y"},
		{"unknown letter", tool(opt("-a", "boolean"), files, `"parse":{}`), "t -za", "bounded -z=a? a? !-za"},
		{"dangling", tool(opt("-o", "string"), files, `"parse":{}`), "t -o", "bounded o"},
		{"optional value", tool(opt("-i --in-place", "string"), files, `"parse":{"optionalValue":["-i"]}`), "t -i.bak -i x --in-place=y", "exact in-place=.bak in-place in-place=y | x"},
		{"not interspersed", tool(opt("-a", "boolean"), files, `"parse":{"interspersed":false}`), "t -a cmd -a -- x", "exact a | cmd -a -- x"},
		{"single dash long", tool(opt("-name", "string"), files, `"parse":{"singleDashLong":true,"bundle":false}`), "t . -name x -name=y", "exact name=x name=y | ."},
		{"not bundled", tool(opt("-a", "boolean")+","+opt("-b", "boolean"), files, `"parse":{"bundle":false}`), "t -ab", "bounded -ab !-ab"},
		{"numeric", tool("", files, `"parse":{"numericOption":true}`), "t -5 x", "exact number=5 | x"},
		{"bare cluster", tool(opt("-x", "boolean")+","+opt("-f", "string")+","+opt("-z", "boolean"), files, `"parse":{"bareCluster":true}`), "t xfz a.tar b", "exact x f=a.tar z | b"},
		{"key value", tool("", files, `"parse":{"keyValueArgs":true}`), "t of=a b", "exact | b"},
		{"no options", tool("", files, `"parse":{"options":"none"}`), "t -x -- y", "exact | -x -- y"},
		{"negation", tool(opt("--force", "boolean"), files, `"parse":{"negation":true}`), "t --no-force", "exact no-force"},
		{"no negation", tool(opt("--force", "boolean"), files, `"parse":{}`), "t --no-force", "bounded --no-force !--no-force"},
		{"abbreviation", tool(opt("--recursive", "boolean"), files, `"parse":{"abbrev":true}`), "t --rec x", "bounded recursive | x"},
		{"no abbreviation", tool(opt("--recursive", "boolean"), files, `"parse":{"abbrev":false}`), "t --rec", "bounded --rec !--rec"},
		{"arity 2", tool(opt("--pair", "string"), files, `"parse":{"arity":{"--pair":2}}`), "t --pair a b c", "exact pair=a | c"},
		{"arity rest", tool(opt("-e", "string"), files, `"parse":{"arity":{"-e":"rest"}}`), "t -e a -b --c", "exact e=a"},
		{"arity terminator", tool(opt("-exec", "string"), files, `"parse":{"arity":{"-exec":"terminator"}}`), "t . -exec rm {} ; b", "exact exec=rm | . b"},
		{"arity plus", tool(opt("-exec", "string"), files, `"parse":{"arity":{"-exec":"terminator"}}`), "t . -exec a + {} + b", "exact exec=a | . b"},
		{"surplus", tool("", arg("a", ""), `"parse":{}`), "t x y", "bounded | x y"},
		{"response file", tool("", files, `"parse":{"responseFiles":"@"}`), "t @x", "unresolved"},
	} {
		call := resolve(parse(t, c.doc), Org, c.line)
		got := call.Exactness.String()
		for _, o := range call.Options {
			name := o.Name
			if name == "" {
				name = o.Flag
			}
			got += " " + name
			if o.Value != "" {
				got += "=" + o.Value
			}
			if o.Maybe {
				got += "?"
			}
		}
		for i, p := range call.Positionals {
			if i == 0 {
				got += " |"
			}
			got += " " + p.Value
		}
		for _, u := range call.UnknownOptions {
			got += " !" + u
		}
		if got != c.want {
			t.Errorf("%s: %s: %s, want %s", c.name, c.line, got, c.want)
		}
	}
}

func TestArgumentNames(t *testing.T) {
	doc := tool("", `{"name":"src","type":"file","variadic":true},{"name":"dst","type":"file"}`,
		`"args":[{"name":"src","kind":"path","access":"read"},{"name":"dst","kind":"path","access":"write"}]`)
	for line, want := range map[string]string{
		"t a":     "a:read",
		"t a b":   "a:read b:write",
		"t a b c": "a:read b:read c:write",
	} {
		if got := resources(resolve(parse(t, doc), Org, line)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func resources(c Call) string {
	var out []string
	for _, r := range c.Resources {
		s := r.Value + ":" + r.Access.String()
		if r.Recursive {
			s += "*"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestResources(t *testing.T) {
	doc := tool(opt("-o --out", "file")+","+opt("-r", "boolean"), files, `"parse":{"keyValueArgs":true},
		"args":[{"name":"f","kind":"path","access":"delete","recursiveIf":[{"anyOption":["-r"]}],"default":"."},
			{"key":"of","kind":"path","access":["read","write"]},
			{"flag":"--out","kind":"path","access":"none","accessIf":[{"if":{"argCount":{"min":2}},"access":"write"}]}]`)
	for line, want := range map[string]string{
		"t":             ".:delete",
		"t -r a b":      "a:delete* b:delete*",
		"t of=x a":      "a:delete x:read,write",
		"t -o y a":      "a:delete",
		"t -o y a b":    "a:delete b:delete y:write",
		"t -- -r":       "-r:delete",
		"t - a":         "a:delete",
		"t --out=y/.. ": ".:delete",
	} {
		if got := resources(resolve(parse(t, doc), Org, line)); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	typed := `{"atip":"0.6","name":"t","arguments":[{"name":"d","type":"directory"}],"effects":{"filesystem":{%s}}}`
	for effects, want := range map[string]string{
		`"write":false,"delete":false`:             "a:read*",
		`"read":true,"write":true,"delete":false`:  "a:read,write*",
		`"read":false,"write":true,"delete":false`: "a:write*",
		``: "a:read,write,delete*",
	} {
		if got := resources(resolve(parse(t, fmt.Sprintf(typed, effects)), Org, "t a")); got != want {
			t.Errorf("%s: %s, want %s", effects, got, want)
		}
	}
}

func TestURLs(t *testing.T) {
	for in, want := range map[string]string{
		"https://u:p@Example.com:8443/x?y": "https example.com", "example.com/x": " example.com", "git@github.com:o/r": " github.com",
		"http://[::1]:80/": "http ::1", "http://a.b.": "http a.b", "http://evil.com#@good.com/": "http evil.com",
		`http://evil.com\@good.com/`: "http evil.com", "ssh://git@h/x": "ssh h", "": " ",
	} {
		scheme, host := splitURL(in)
		if got := scheme + " " + host; got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

func TestNested(t *testing.T) {
	for _, c := range []struct{ name, doc, line, want string }{
		{"rest", tool("", files, `"parse":{"interspersed":false},"exec":[{"from":"rest","kind":"argv","skip":1}]`), "t 5 rm -rf x", "argv[rm -rf x]"},
		{"assignments", tool("", files, `"parse":{"interspersed":false},"exec":[{"from":"rest","kind":"argv","assignments":true}]`), "t A=1 B=2 cmd x=y", "argv[cmd x=y]"},
		{"code variable", tool("", files, `"parse":{"interspersed":false},"exec":[{"from":"rest","kind":"argv","assignments":true}]`), "t LD_PRELOAD=x cmd", "argv[cmd] opaque"},
		{"ssh", tool("", arg("host", "")+","+files, `"parse":{"interspersed":false},"exec":[{"from":"rest","index":1,"kind":"shell"}]`), "t h rm -rf x", "shell(rm -rf x)"},
		{"dash dash", tool("", files, `"exec":[{"from":"afterDashDash","kind":"argv"}]`), "t pod -- ls -l", "argv[ls -l]"},
		{"no dash dash", tool("", files, `"exec":[{"from":"afterDashDash","kind":"argv"}]`), "t pod", ""},
		{"option", tool(opt("-c", "string"), files, `"when":[{"id":"c","if":{"anyOption":["-c"]},"exec":[{"from":"optionValue","flags":["-c"],"kind":"shell"}]}]`), "t -c ls", "shell(ls)"},
		{"find", tool(opt("-exec", "string"), files, `"parse":{"singleDashLong":true,"arity":{"-exec":"terminator"}},"exec":[{"from":"untilTerminator","flags":["-exec"],"kind":"argv","placeholder":"{}"}]`), "t a b -exec rm {} ;", "argv[rm a] argv[rm b]"},
		{"find here", tool(opt("-exec", "string"), files, `"parse":{"singleDashLong":true,"arity":{"-exec":"terminator"}},"exec":[{"from":"untilTerminator","flags":["-exec"],"kind":"argv","placeholder":"{}"}]`), "t -exec rm {}/x +", "argv[rm ./x +]"},
		{"file", tool("", files, `"exec":[{"from":"file","index":0,"kind":"code","language":"python"}]`), "t x.py a", "code<x.py>"},
		{"stdin", tool("", files, `"when":[{"id":"in","if":{"argCount":{"max":0}},"exec":[{"from":"stdin","kind":"shell"}]}]`), "t", "shell<->"},
		{"terminator", tool("", files, `"exec":[{"from":"rest","kind":"argv","terminator":":::"}]`), "t echo ::: a b", "argv[echo]"},
	} {
		call := resolve(parse(t, c.doc), Org, c.line)
		var got []string
		for _, n := range call.Nested {
			switch {
			case n.File != "":
				got = append(got, n.Kind+"<"+n.File+">")
			case n.Kind == "argv":
				got = append(got, "argv"+fmt.Sprint(n.Argv))
			default:
				got = append(got, n.Kind+"("+n.Text+")")
			}
		}
		if call.Effects[ExecOpaque].Value == Yes {
			got = append(got, "opaque")
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

func TestConditions(t *testing.T) {
	options := opt("-f --force", "boolean") + "," + opt("-o --out", "string") + "," + opt("-q", "boolean")
	for _, c := range []struct{ cond, line, want string }{
		{`{"anyOption":["--force"]}`, "t -f", "true"},
		{`{"anyOption":["--force"]}`, "t -q", "false"},
		{`{"anyOption":["--force"]}`, "t --force=false", "maybe"},
		{`{"anyOption":["--force"]}`, "t --force=yes", "true"},
		{`{"anyOption":["--force"]}`, "t -f --no-force", "maybe"},
		{`{"anyOption":["--force"]}`, "t --no-force", "false"},
		{`{"allOptions":["-f","-q"]}`, "t -fq", "true"},
		{`{"allOptions":["-f","-q"]}`, "t -f", "false"},
		{`{"optionValue":{"flags":["-o"],"match":{"in":["a","b"]}}}`, "t --out=b", "true"},
		{`{"optionValue":{"flags":["-o"],"match":{"equals":"a"}}}`, "t -o a -o b", "maybe"},
		{`{"optionValue":{"flags":["-o"],"match":{"equals":"a"}}}`, "t -o=a", "maybe"},
		{`{"optionValue":{"flags":["-o"],"match":{"equals":"A","ci":true}}}`, "t -o a", "true"},
		{`{"anyArg":{"from":1,"match":{"prefix":"+"}}}`, "t +a", "false"},
		{`{"anyArg":{"from":1,"match":{"prefix":"+"}}}`, "t a +a", "true"},
		{`{"anyArg":{"index":-1,"match":{"suffix":".c"}}}`, "t a.c b", "false"},
		{`{"anyArg":{"name":"f","match":{"re":"^x+$"}}}`, "t xxx", "true"},
		{`{"anyArg":{"match":{"glob":"*.pem"}}}`, "t a/b.pem", "true"},
		{`{"anyArg":{"match":{"contains":"b"}}}`, "t abc", "true"},
		{`{"argCount":{"min":1,"max":2}}`, "t a b", "true"},
		{`{"argCount":{"max":0}}`, "t a", "false"},
		{`{"keyValue":{"key":"of"}}`, "t of=x", "true"},
		{`{"keyValue":{"key":"of","match":{"prefix":"/dev/"}}}`, "t of=/dev/sda", "true"},
		{`{"not":{"anyOption":["-f"]}}`, "t", "true"},
		{`{"not":{"anyOption":["-f"]}}`, "t --force=0", "maybe"},
		{`{"all":[{"anyOption":["-f"]},{"anyOption":["-q"]}]}`, "t -f", "false"},
		{`{"any":[{"anyOption":["-f"]},{"anyOption":["-q"]}]}`, "t -q", "true"},
		{`{"env":{"name":"UNSET"}}`, "t", "false"},
	} {
		d := parse(t, tool(options, files, `"parse":{"negation":true},"base":{},"when":[{"id":"w","if":`+c.cond+`,"add":{"destructive":true}}]`))
		n := parse(t, tool(options, files, `"parse":{"negation":true},"narrow":[{"id":"n","if":`+c.cond+`,"effects":{}}]`))
		fires := resolve(d, Org, c.line).Effects[Destructive].Value == Yes
		narrows := resolve(n, Org, c.line).Effects[Destructive].Value == No
		got := map[[2]bool]string{{false, false}: "false", {true, false}: "maybe", {true, true}: "true"}[[2]bool{fires, narrows}]
		if got != c.want {
			t.Errorf("%s on %s: %q, want %s", c.cond, c.line, got, c.want)
		}
	}
}

// A malformed extension is ignored whole, and what only it could state is unknown.
func TestMalformedExtension(t *testing.T) {
	for _, ext := range []string{
		`"base":{},"wehn":[]`, `"base":{"network":"no"}`, `"base":{},"when":[{"id":"x","if":{}}]`, `"base":{},"when":[{"if":{"anyOption":["-f"]}}]`,
		`"base":{},"when":[{"id":"x","if":{"anyOption":["-f"]},"add":{"destroys":true}}]`, `"base":{},"narrow":[{"id":"x","if":{"anyOption":["-f"]}}]`,
		`"base":{},"parse":{"bundel":true}`, `"base":{},"args":[{"index":0,"name":"f","kind":"path","access":"read"}]`,
		`"base":{},"when":[{"id":"a","if":{"anyOption":["-f"]}},{"id":"a","if":{"anyOption":["-f"]}}]`,
		`"base":{},"when":[{"id":"a","if":{"anyArg":{"match":{"equals":"a","prefix":"b"}}}}]`,
	} {
		c := resolve(parse(t, tool("", files, ext)), Org, "t")
		if c.Effects[Destructive].Value != Yes || c.Effects[Privileged].Value != Unknown {
			t.Errorf("%s: destructive %s, privileged %s", ext, c.Effects[Destructive].Value, c.Effects[Privileged].Value)
		}
	}
	c := resolve(parse(t, strings.Replace(tool("", files, `"base":{}`), `"v":1`, `"v":2`, 1)), Org, "t")
	if c.Effects[Destructive].Value != Yes {
		t.Error("an extension of version 2 is read")
	}
}

func TestAnchoredPrefix(t *testing.T) {
	for expr, want := range map[string]string{
		"^file:": "file:", "^a+": "", "^ab?c": "a", "^ab{2}": "", "^ab(": "", "^ab**": "", "^ab.*$": "ab", "^a$": "a", "^ab|c": "", "ab": "", "^": "", "^?": "", "^[+:]": "", "^(a)": "", `^a\.b`: "", "^@/dev/.*": "@/dev/", "^ab*": "a", "^é": "",
	} {
		if got := anchoredPrefix(expr); got != want {
			t.Errorf("%s: %q, want %q", expr, got, want)
		}
	}
}
