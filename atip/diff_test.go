package atip

import (
	"sort"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	operands := func(commands string) string {
		return `{"atip":"0.6","name":"t","version":"1","description":"d","x-atip-operands":true,"commands":{` + commands + `}}`
	}
	doc := func(inside string) string {
		return `{"atip":"0.6","name":"t","version":"1","description":"d","effects":{"subprocess":false},"commands":{"c":{"description":"d",` + inside + `}}}`
	}
	clause := func(list string) string {
		return doc(`"effects":{"network":true,"destructive":true},"options":[{"name":"f","flags":["-f"],"type":"boolean"}],"x-atip-effects":{"v":1,"base":{"network":true},` + list + `}`)
	}
	const when = `"when":[{"id":"w","if":{"anyOption":["-f"]},"add":{"destructive":true}}]`
	for _, c := range []struct{ name, from, to, want string }{
		{"same", doc(`"effects":{"network":true}`), doc(`"effects": {"network": true}`), ""},
		{"yes added", doc(`"effects":{"network":true}`), doc(`"effects":{"network":true,"destructive":true}`), "danger"},
		{"no withdrawn", doc(`"effects":{"destructive":false}`), doc(`"effects":{"reversible":true}`), "danger loosened"},
		{"yes withdrawn", doc(`"effects":{"destructive":true,"network":false}`), doc(`"effects":{"destructive":false,"network":false}`), "loosened"},
		{"idempotent withdrawn", doc(`"effects":{"idempotent":true}`), doc(`"effects":{"idempotent":false}`), "danger"},
		{"when added", clause(`"narrow":[]`), clause(when), "danger"},
		{"when removed", clause(when), clause(`"narrow":[]`), "loosened"},
		{"when weakened", clause(when), clause(strings.Replace(when, `"if":{"anyOption":["-f"]}`, `"if":{"all":[{"anyOption":["-f"]},{"argCount":{"min":9}}]}`, 1)), "loosened"},
		{"narrow added", clause(when), clause(when + `,"narrow":[{"id":"n","if":{"argCount":{"max":0}},"effects":{}}]`), "loosened"},
		{"only a reason", clause(when), clause(strings.Replace(when, `"id":"w"`, `"id":"w","because":"x"`, 1)), ""},
		{"arity", doc(`"effects":{"network":true},"options":[{"name":"q","flags":["-q"],"type":"boolean"}]`), doc(`"effects":{"network":true},"options":[{"name":"q","flags":["-q"],"type":"string"}]`), "loosened"},
		{"option", doc(`"effects":{"network":true}`), doc(`"effects":{"network":true},"options":[{"name":"q","flags":["-q"],"type":"string"}]`), "surface"},
		{"text", doc(`"effects":{"network":true}`), strings.Replace(doc(`"effects":{"network":true}`), `{"c":{"description":"d"`, `{"c":{"description":"e"`, 1), "text"},
		{"harmless command", doc(`"effects":{}`), strings.Replace(doc(`"effects":{}`), `"commands":{`, `"commands":{"b":{"description":"d","effects":{"destructive":false}},`, 1), "loosened"},
		{"destructive command", doc(`"effects":{}`), strings.Replace(doc(`"effects":{}`), `"commands":{`, `"commands":{"b":{"description":"d","effects":{"destructive":true}},`, 1), "danger loosened"},
		{"unknown command", doc(`"effects":{}`), strings.Replace(doc(`"effects":{}`), `"commands":{`, `"commands":{"b":{"description":"d"},`, 1), "loosened"},
		{"command gone", strings.Replace(doc(`"effects":{}`), `"commands":{`, `"commands":{"b":{"description":"d","effects":{"destructive":true}},`, 1), doc(`"effects":{}`), "surface"},
		{"command gone where words are arguments", operands(`"":{"description":"d","arguments":[{"name":"w"}],"effects":{"destructive":false}},"b":{"description":"d","effects":{"destructive":true}},"e":{"description":"d"}`),
			operands(`"":{"description":"d","arguments":[{"name":"w"}],"effects":{"destructive":false}},"e":{"description":"d"}`), "loosened"},
		{"operands", strings.Replace(operands(`"":{"description":"d","arguments":[{"name":"w"}]},"e":{"description":"d"}`), `"x-atip-operands":true,`, "", 1), operands(`"":{"description":"d","arguments":[{"name":"w"}]},"e":{"description":"d"}`), "loosened"},
		{"command gone", strings.Replace(doc(`"effects":{}`), `"commands":{`, `"commands":{"b":{"description":"d"},`, 1), doc(`"effects":{}`), "surface"},
		{"credential", doc(`"effects":{}`), strings.Replace(doc(`"effects":{}`), `"commands"`, `"authentication":{"methods":[{"type":"token","envVar":"AWS_SECRET_ACCESS_KEY"}]},"commands"`, 1), "danger"},
		{"source raised", strings.Replace(doc(`"effects":{}`), `"commands"`, `"trust":{"source":"community"},"commands"`, 1), strings.Replace(doc(`"effects":{}`), `"commands"`, `"trust":{"source":"vendor"},"commands"`, 1), "loosened"},
		{"detail", doc(`"effects":{"network":true}`), doc(`"effects":{"network":true,"duration":{"timeout":"5s"}}`), "surface"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := map[string]bool{}
			changes := Diff(mustParse(t, c.from), mustParse(t, c.to))
			for _, x := range changes {
				seen[x.Class] = true
			}
			var got []string
			for class := range seen {
				got = append(got, class)
			}
			sort.Strings(got)
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, want %q: %+v", got, c.want, changes)
			}
		})
	}
}
