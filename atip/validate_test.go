package atip

import (
	"os"
	"strings"
	"testing"
)

func codes(list []Finding) string {
	var out []string
	for _, f := range list {
		s := f.Code
		if f.Severity == SeverityWarning {
			s += "?"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestValidate(t *testing.T) {
	const head = `"atip":"0.6","name":"t","version":"1","description":"d"`
	hash := strings.Repeat("ab", 32)
	command := func(inside string) string {
		return `{` + head + `,"commands":{"c":{"description":"d",` + inside + `}}}`
	}
	for _, c := range []struct{ text, file, load, strict string }{
		{`{` + head + `}`, "t.json", "", ""},
		{`{"atip":"0.7","name":"t","version":"1","description":"d"}`, "", "version?", "version"},
		{`{"atip":{"version":"0.6.1","features":["trust-v1","telepathy"]},"name":"t","version":"1","description":"d"}`, "", "version? feature?", "version feature"},
		{`{"atip":"0.6"}`, "", "description? name? version?", "description name version"},
		{`{"atip":"0.6","name":"a b","version":"1","description":"` + strings.Repeat("d", 201) + `"}`, "", "name? description?", "name description"},
		{`{` + head + `,"homepage":"ftp://x"}`, "", "url?", "url"},
		{`{` + head + `,"colour":1,"x-a":2,"_b":3,"$schema":"s"}`, "", "", "field?"},
		{`{` + head + `,"omitted":{"safetyAssumption":"fine"}}`, "", "enum?", "enum"},
		{`{` + head + `,"trust":{"source":"me"}}`, "", "enum?", "enum"},
		{command(`"effects":{"network":"no"}`), "", "effect-type?", "effect-type"},
		{command(`"effects":{"explodes":true,"boils":false}`), "", "effect-key? effect-key?", "effect-key? effect-key?"},
		{command(`"effects":{"destructive":false,"reversible":false,"deletes":["x"]}`), "", "contradiction?", "contradiction?"},
		{command(`"effects":{"duration":{"typical":"1-5s","timeout":"soon"}}`), "", "duration?", "duration"},
		{command(`"options":[{"name":"o","type":"string","description":"d"}]`), "", "flags?", "flags"},
		{command(`"options":[{"name":"o","flags":["o"],"type":"string","description":"d"}]`), "", "flags?", "flags"},
		{command(`"options":[{"name":"o","flags":["-o"],"type":"string"}]`), "", "description?", "description"},
		{command(`"options":[{"name":"o","flags":["-o"],"type":"thing","description":"d"}]`), "", "enum?", "enum"},
		{command(`"options":[{"name":"o","flags":["-o"],"type":"string","description":"d"},{"name":"p","flags":["-o"],"type":"boolean","description":"d"}]`), "", "arity?", "arity?"},
		{command(`"arguments":[{"type":"string","description":"d"}]`), "", "name?", "name"},
		{command(`"x-atip-effects":{"v":2}`), "", "extension?", "extension"},
		{command(`"effects":{"network":false},"x-atip-effects":{"v":1,"base":{"network":true}}`), "", "", "bound"},
		{command(`"x-atip-effects":{"v":1,"base":{"network":true,"secretRead":true}}`), "", "", "bound?"},
		{command(`"x-atip-effects":{"v":1,"when":[{"id":"w","if":{"anyOption":["--gone"]}}]}`), "", "", "flag"},
		{command(`"x-atip-effects":{"v":1,"when":[{"id":"w","if":{"anyArg":{"match":{"re":"("}}}}]}`), "", "extension?", "extension"},
		{command(`"x-atip-effects":{"v":1,"narrow":[{"id":"n","if":{"argCount":{"max":0}},"effects":{},"despite":["gone"]}]}`), "", "", "id"},
		{`{"atip":"0.6","binary":{"hash":"sha256:` + hash + `","name":"t","version":"1"},"description":"d"}`, "shims/sha256/" + hash + ".json", "", ""},
		{`{"atip":"0.6","binary":{"hash":"sha256:` + hash + `","name":"t","version":"1"},"description":"d"}`, strings.Repeat("cd", 32) + ".json", "", "E1105"},
		{`{` + head + `,"patterns":[{"name":"p","description":"d","executable":true,"steps":[{"command":"a | b"}]},{"name":"q","description":"d","steps":[{"command":"a | b"}]}]}`, "", "", "step"},
		{`{"atip":"0.6","Atip":"0.6"}`, "", "refused", "E1101"},
	} {
		if got := codes(Validate([]byte(c.text), c.file)); got != c.strict {
			t.Errorf("validate %.200s: %q, want %q", c.text, got, c.strict)
		}
		d, err := Parse([]byte(c.text), ParseOptions{})
		got := "refused"
		if err == nil {
			got = codes(d.Warnings())
		}
		if got != c.load {
			t.Errorf("load %.200s: %q, want %q", c.text, got, c.load)
		}
	}
}

// The seeds' own examples load; validate finds what their text says is required.
func TestValidateSeeds(t *testing.T) {
	for file, want := range map[string]string{
		"gh-0.6.json": "description", "shim-curl-0.6.json": "description", "curl-legacy.json": "description", "git.json": "",
	} {
		raw, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		found := Validate(raw, file)
		if want == "" && len(found) > 0 || want != "" && !strings.Contains(codes(found), want) {
			t.Errorf("%s: %s", file, codes(found))
		}
		for _, f := range found {
			if f.Line == 0 || f.Col == 0 {
				t.Errorf("%s: %+v has no position", file, f)
			}
		}
	}
}
