package prime

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemaOf reads a schema of the RFC, which stands in docs unchanged.
func schemaOf(t testing.TB, name string) *jsonschema.Resolved {
	t.Helper()
	raw, err := os.ReadFile("../../docs/prime-" + name + ".schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// holds reports whether a document is one by the schema.
func holds(s *jsonschema.Resolved, raw string) bool {
	var v any
	return json.Unmarshal([]byte(raw), &v) == nil && s.Validate(v) == nil
}

// TestSection8_1 reads requests and holds the answer against the schema. What only the reader
// refuses is what a schema cannot say.
func TestSection8_1(t *testing.T) {
	schema := schemaOf(t, "request")
	for _, c := range []struct {
		raw  string
		more bool // the reader refuses it, and the schema does not
	}{
		{raw: `{"agentId":"a","sessionId":"s"}`},
		{raw: `{"agentId":"a","sessionId":"s","capabilities":{"supportsStreaming":true},"locale":"en-US","userRole":"end_user","metadata":{"x":[1]}}`},
		{raw: `{"agentId":"a"}`}, {raw: `{"sessionId":"s"}`}, {raw: `{}`}, {raw: `[]`}, {raw: `"x"`},
		{raw: `{"agentId":1,"sessionId":"s"}`}, {raw: `{"agentId":"a","sessionId":null}`}, {raw: `{"agentId":"a","sessionId":"s","userRole":"root"}`},
		{raw: `{"agentId":"a","sessionId":"s","userRole":"system"}`}, {raw: `{"agentId":"a","sessionId":"s","capabilities":[]}`},
		{raw: `{"agentId":"a","sessionId":"s","metadata":"x"}`}, {raw: `{"agentId":"a","sessionId":"s","extra":1}`}, {raw: `{"agentId":"a","sessionId":"s","locale":5}`},
		{raw: `{"agentId":"","sessionId":"s"}`, more: true}, {raw: `{"agentId":"a","sessionId":"s","agentId":"b"}`, more: true}, {raw: `{"agentId":"a\n","sessionId":"s"}`, more: true},
	} {
		_, err := ParseRequest([]byte(c.raw))
		if byReader, bySchema := err == nil, holds(schema, c.raw); byReader != (bySchema && !c.more) || c.more && !bySchema {
			t.Errorf("%s: read %v (%v), by the schema %v", c.raw, byReader, err, bySchema)
		}
	}
}

// TestSection8_2 changes one part of a response after the other.
func TestSection8_2(t *testing.T) {
	schema := schemaOf(t, "response")
	const whole = `{"version":"1","toolName":"t","session":{"sessionId":"s","expiresAt":"2026-01-25T12:00:00Z"},"usageDirectives":{"primaryIntents":["i"],"do":["d"],"dont":["n"]},` +
		`"capabilities":{"any":[1]},"rateLimits":{"requestsPerMinute":5,"burst":2,"other":"x"},"schema":{"preferredCommands":["p"],"deprecatedCommands":["o"],"other":{}},` +
		`"examples":[{"description":"e","sequence":["a","b"]}],"breakingChangeSince":"1","minAgentVersion":"1"}`
	for _, c := range []struct {
		old, new string
		more     bool
	}{
		{"", "", false},
		{`"version":"1",`, ``, false}, {`"version":"1"`, `"version":1`, false}, {`"toolName":"t"`, `"toolName":[]`, false}, {`"toolName":"t"`, `"toolname":"t"`, false},
		{`"sessionId":"s",`, ``, false}, {`"sessionId":"s"`, `"sessionId":"s","x":1`, false}, {`"2026-01-25T12:00:00Z"`, `5`, false},
		{`"do":["d"]`, `"do":"d"`, false}, {`"do":["d"]`, `"do":[1]`, false}, {`"do":["d"]`, `"Do":["d"]`, false}, {`"dont":["n"]`, `"dont":[]`, false},
		{`{"any":[1]}`, `[]`, false}, {`{"any":[1]}`, `{}`, false}, {`"requestsPerMinute":5`, `"requestsPerMinute":"5"`, false}, {`"requestsPerMinute":5`, `"requestsPerMinute":0.5`, false},
		{`"preferredCommands":["p"]`, `"preferredCommands":{}`, false}, {`"deprecatedCommands":["o"]`, `"deprecatedCommands":[null]`, false},
		{`"description":"e",`, ``, false}, {`"sequence":["a","b"]`, `"sequence":[]`, false}, {`"sequence":["a","b"]`, `"sequence":["a"],"x":1`, false}, {`[{"description"`, `[5,{"description"`, false},
		{`"minAgentVersion":"1"`, `"minAgentVersion":1`, false}, {`"breakingChangeSince":"1"`, `"breakingChangeSince":"1","more":1`, false},
		// What a schema does not say, or does not hold: formats, limits that mean nothing, a key twice.
		{`"2026-01-25T12:00:00Z"`, `"soon"`, true}, {`"requestsPerMinute":5`, `"requestsPerMinute":0`, true}, {`"burst":2`, `"burst":-1`, true}, {`"version":"1"`, `"version":"1","version":"2"`, true},
	} {
		raw := strings.Replace(whole, c.old, c.new, 1)
		if raw == whole && c.old != c.new {
			t.Fatalf("%s is not in the response", c.old)
		}
		_, err := Parse([]byte(raw))
		if byReader, bySchema := err == nil, holds(schema, raw); byReader != (bySchema && !c.more) || c.more && !bySchema {
			t.Errorf("%s: read %v (%v), by the schema %v", c.new, byReader, err, bySchema)
		}
	}
}
