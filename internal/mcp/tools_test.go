package mcp_test

import (
	"strings"
	"testing"

	server "github.com/atip-dev/atip-exec/internal/mcp"
)

type object = map[string]any

// TestToolsThatNoClientTakes: names that clash, names and schemas that clients drop a tool for
// are refused before anything is served.
func TestToolsThatNoClientTakes(t *testing.T) {
	closed := func(properties object) object {
		return object{"type": "object", "properties": properties, "required": []string{}, "additionalProperties": false}
	}
	good := closed(object{"a": object{"type": "string", "enum": []string{"x"}}, "oneOf": object{"type": "array", "items": object{"type": "integer"}}})
	for what, c := range map[string]struct {
		tools []server.Tool
		want  string // part of the message, "" if it is served
	}{
		"good":              {[]server.Tool{{Name: "a", Schema: good}, {Name: "b-C_9", Schema: good}}, ""},
		"two of one name":   {[]server.Tool{{Name: "a", Schema: good}, {Name: "b", Schema: good}, {Name: "a", Schema: good}}, "two tools are called a"},
		"no name":           {[]server.Tool{{Schema: good}}, "is not a name"},
		"a long name":       {[]server.Tool{{Name: strings.Repeat("a", 65), Schema: good}}, "is not a name"},
		"a name with a dot": {[]server.Tool{{Name: "a.b", Schema: good}}, "is not a name"},
		"no schema":         {[]server.Tool{{Name: "a"}}, "not an object"},
		"a string":          {[]server.Tool{{Name: "a", Schema: object{"type": "string"}}}, "not an object"},
		"a reference":       {[]server.Tool{{Name: "a", Schema: closed(object{"x": object{"$ref": "#/$defs/x"}})}}, "$ref"},
		"definitions":       {[]server.Tool{{Name: "a", Schema: object{"type": "object", "$defs": object{}}}}, "$defs"},
		"a union":           {[]server.Tool{{Name: "a", Schema: closed(object{"x": object{"oneOf": []any{object{"type": "string"}}}})}}, "oneOf"},
		"another":           {[]server.Tool{{Name: "a", Schema: closed(object{"x": object{"type": "array", "items": object{"anyOf": []any{}}}})}}, "anyOf"},
		"two types":         {[]server.Tool{{Name: "a", Schema: closed(object{"x": object{"type": []string{"string", "null"}}})}}, "type that is a list"},
		"what is no JSON":   {[]server.Tool{{Name: "a", Schema: make(chan int)}}, "not an object"},
	} {
		_, err := server.New(server.Config{Tools: c.tools})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
