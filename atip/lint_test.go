package atip

import (
	"sort"
	"strings"
	"testing"
)

func TestLint(t *testing.T) {
	const head = `{"atip":"0.6","name":"t","version":"1","description":"d",`
	command := func(name, inside string) string {
		return head + `"commands":{"` + name + `":{"description":"d",` + inside + `}}}`
	}
	for _, c := range []struct{ name, text, want string }{
		{"clean", command("list", `"effects":{"network":true,"destructive":false}`), ""},
		{"no effects", head + `"commands":{"list":{"description":"d"}}}`, "L01"},
		{"inherited effects", head + `"effects":{"network":true},"commands":{"list":{"description":"d"}}}`, ""},
		{"beyond the bound", command("push", `"effects":{"network":false,"destructive":false},"x-atip-effects":{"v":1,"base":{"network":true}}`), "L02"},
		{"delete-like", command("drop-table", `"effects":{"network":true,"destructive":false}`), "L03"},
		{"delete-like, said", command("drop-table", `"effects":{"destructive":true}`), ""},
		{"reversible", command("rm", `"effects":{"destructive":true,"reversible":true}`), "L04"},
		{"deletes", command("gc", `"effects":{"deletes":["x"],"network":true}`), "L05"},
		{"flag twice", command("c", `"effects":{"network":true},"options":[{"name":"a","flags":["-a"],"type":"boolean"},{"name":"b","flags":["-a","-b"],"type":"boolean"}]`), "L06"},
		{"flag of another arity above", head + `"effects":{"network":true},"globalOptions":[{"name":"a","flags":["-a"],"type":"string"}],"commands":{"c":{"description":"d","options":[{"name":"a","flags":["-a"],"type":"boolean"}]}}}`, "L06"},
		{"arity", command("c", `"effects":{"network":true},"options":[{"name":"a","flags":["-a"]}]`), "L07"},
		{"arity unknown on purpose", command("c", `"effects":{"network":true},"options":[{"name":"a","flags":["-a"]}],"x-atip-effects":{"v":1,"parse":{"arity":{"-a":"unknown"}}}`), ""},
		{"example", command("c", `"effects":{"network":true},"arguments":[],"examples":["t c --gone","t c | sort","other x"]`), "L08"},
		{"example of another command", head + `"effects":{"network":true},"commands":{"c":{"description":"d","examples":["t b 'x y'"]},"b":{"description":"d"}}}`, "L08"},
		{"pattern", head + `"effects":{"network":true},"commands":{"c":{"description":"d","arguments":[{"name":"n","type":"string"}]}},"patterns":[{"name":"p","description":"d","steps":[{"command":"t c {n}"},{"command":"t gone {n}"}]}]}`, "L08"},
		{"narrow defeated by the same flag", command("c", `"effects":{"network":true,"destructive":true},"options":[{"name":"n","flags":["-n"],"type":"boolean"}],"x-atip-effects":{"v":1,"when":[{"id":"w","if":{"anyOption":["-n","-n"]},"add":{"destructive":true}}],"narrow":[{"id":"n","if":{"anyOption":["-n"]},"effects":{"network":true}}]}`), "L09"},
		{"narrow despite it", command("c", `"effects":{"network":true,"destructive":true},"options":[{"name":"n","flags":["-n"],"type":"boolean"}],"x-atip-effects":{"v":1,"when":[{"id":"w","if":{"anyOption":["-n"]},"add":{"destructive":true}}],"narrow":[{"id":"n","if":{"anyOption":["-n"]},"effects":{"network":true},"despite":["w"]}]}`), ""},
		{"count", command("c", `"effects":{"destructive":true},"x-atip-effects":{"v":1,"when":[{"id":"w","if":{"argCount":{"min":3,"max":1}},"add":{"destructive":true}}]}`), "L09"},
		{"no such value", command("c", `"effects":{"destructive":true},"options":[{"name":"m","flags":["-m"],"type":"enum","enum":["a"]}],"x-atip-effects":{"v":1,"when":[{"id":"w","if":{"optionValue":{"flags":["-m"],"match":{"equals":"z"}}},"add":{"destructive":true}}]}`), "L09"},
		{"no such flag", command("c", `"effects":{"destructive":true},"x-atip-effects":{"v":1,"when":[{"id":"w","if":{"anyOption":["--gone"]},"add":{"destructive":true}}]}`), "L09"},
		{"unknown key", command("c", `"effects":{"explodes":true}`), "L01 L10"},
		{"arguments beside commands", head + `"effects":{"network":true},"commands":{"":{"description":"d","arguments":[{"name":"w"}]},"c":{"description":"d"}}}`, "L11"},
		{"own arguments beside commands", head + `"effects":{"network":true},"arguments":[{"name":"w"}],"commands":{"c":{"description":"d"}}}`, "L11"},
		{"operands", head + `"effects":{"network":true},"x-atip-operands":true,"commands":{"":{"description":"d","arguments":[{"name":"w"}]},"c":{"description":"d"}}}`, ""},
		{"operands without arguments", head + `"effects":{"network":true},"x-atip-operands":true,"commands":{"":{"description":"d"},"c":{"description":"d"}}}`, "L11"},
		{"operands without commands", head + `"effects":{"network":true},"x-atip-operands":true,"arguments":[{"name":"w"}]}`, "L11"},
		{"operands of another type", head + `"effects":{"network":true},"x-atip-operands":1,"commands":{"c":{"description":"d"}}}`, "L11"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, f := range mustParse(t, c.text).Lint() {
				seen[f.Code] = true
				if f.Line == 0 || f.Message == "" {
					t.Errorf("finding without a place: %+v", f)
				}
			}
			var got []string
			for code := range seen {
				got = append(got, code)
			}
			sort.Strings(got)
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestExampleWords(t *testing.T) {
	for line, want := range map[string]string{
		`gh pr create --title "Fix bug" --body 'a "b"'`: `gh|pr|create|--title|Fix bug|--body|a "b"`,
		`$ ls -l | wc`:      `ls|-l`,
		`a '' b\ c # note`:  `a||b c`,
		``:                  ``,
		`git push && reset`: `git|push`,
	} {
		if got := strings.Join(exampleWords(line), "|"); got != want {
			t.Errorf("%q: %q", line, got)
		}
	}
	if got := fillVariables("t {a} {b"); got != "t x {b" {
		t.Error(got)
	}
}
