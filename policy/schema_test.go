package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// schemaNode is as much of JSON Schema as docs/policy.schema.json uses.
type schemaNode struct {
	Ref        string                   `json:"$ref"`
	Properties map[string]schemaValue   `json:"properties"`
	Closed     *schemaValue             `json:"additionalProperties"`
	Items      *schemaValue             `json:"items"`
	AnyOf      []schemaValue            `json:"anyOf"`
	Enum       []any                    `json:"enum"`
	Names      *struct{ Enum []string } `json:"propertyNames"`
	Defs       map[string]schemaValue   `json:"$defs"`
}

// schemaValue is a schema, or true or false.
type schemaValue struct {
	schemaNode
	open bool
}

func (v *schemaValue) UnmarshalJSON(b []byte) error {
	if string(b) == "true" || string(b) == "false" {
		v.open = string(b) == "true"
		return nil
	}
	return json.Unmarshal(b, &v.schemaNode)
}

// TestSchemaAgreesWithParser holds the published schema to the parser in both
// directions: at every object, each word that the parser knows anywhere is a key of
// the schema exactly if the parser takes it there.
func TestSchemaAgreesWithParser(t *testing.T) {
	raw, err := os.ReadFile("../docs/policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var root schemaValue
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	words := parserWords(t)
	objects := 0
	var walk func(s schemaValue, wrap func(string) string, at string, depth int)
	walk = func(s schemaValue, wrap func(string) string, at string, depth int) {
		if s.Ref != "" {
			s = root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
		}
		if depth > 6 {
			return
		}
		for _, alternative := range s.AnyOf {
			walk(alternative, wrap, at, depth)
		}
		if s.Items != nil {
			walk(*s.Items, func(x string) string { return wrap("[" + x + "]") }, at+"[]", depth+1)
		}
		if len(s.Properties) == 0 {
			return
		}
		objects++
		for _, word := range append(words, "no-such-key") {
			text := wrap(`{"` + word + `":null}`)
			_, err := Parse(Source{File: "x.json", Raw: []byte(text), Layer: LayerUser})
			unknown := err != nil && (strings.Contains(err.Error(), `unknown key "`+word+`"`) || strings.Contains(err.Error(), word+" has no effect") || strings.Contains(err.Error(), word+" stands in registries.json"))
			if _, listed := s.Properties[word]; listed == unknown {
				t.Errorf("%s: %q: in the schema %v, unknown to the parser %v: %v", at, word, listed, unknown, err)
			}
		}
		if s.Closed == nil || s.Closed.open {
			t.Errorf("%s takes keys that nobody knows", at)
		}
		for key, member := range s.Properties {
			inside := func(x string) string { return wrap(`{"` + key + `":` + x + `}`) }
			walk(member, inside, at+"."+key, depth+1)
		}
	}
	walk(root, func(x string) string { return x }, "", 0)
	if objects < 20 {
		t.Errorf("only %d objects were compared", objects)
	}
	for _, name := range root.Defs["switch"].Enum {
		if !isSwitch(name.(string)) {
			t.Errorf("%v is no switch", name)
		}
	}
	if got, want := len(root.Defs["switch"].Enum), len(switchTable); got != want {
		t.Errorf("the schema has %d switches, the parser %d", got, want)
	}
	for _, name := range root.Defs["danger"].Enum {
		if _, ok := dangerByKey(name.(string)); !ok {
			t.Errorf("%v is no danger", name)
		}
	}
}

// parserWords lists every word that a case of the parser names.
func parserWords(t *testing.T) []string {
	files, err := filepath.Glob("parse*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var out []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile(`(?m)^\s*case ".*$|key == ".*$`).FindAllString(string(raw), -1) {
			for _, m := range regexp.MustCompile(`"([A-Za-z0-9]+)"`).FindAllStringSubmatch(line, -1) {
				if !seen[m[1]] {
					seen[m[1]] = true
					out = append(out, m[1])
				}
			}
		}
	}
	if len(out) < 60 {
		t.Fatalf("only %d words were found", len(out))
	}
	return out
}
