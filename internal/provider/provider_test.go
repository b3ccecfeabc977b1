package provider

import (
	"encoding/json"
	"testing"
)

func TestCalls(t *testing.T) {
	for _, c := range []struct{ provider, raw, name, id, argument, bad string }{
		{"openai", `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"gh_pr_list","arguments":"{\"state\":\"open\"}"}}]}}]}`, "gh_pr_list", "c1", `"open"`, ""},
		{"openai", `{"output":[{"type":"function_call","call_id":"c1","name":"gh_pr_list","arguments":"{\"state\":\"open\"}"}]}`, "gh_pr_list", "c1", `"open"`, ""},
		{"openai", `[{"id":"c1","function":{"name":"f","arguments":"not json"}}]`, "f", "c1", "", "x"},
		{"openai", `[{"id":"c1","function":{"name":"f","arguments":"[1]"}}]`, "f", "c1", "", "x"},
		{"anthropic", `{"content":[{"type":"text","text":"{\"type\":\"tool_use\"}"},{"type":"tool_use","id":"t1","name":"f","input":{"state":"open"}}]}`, "f", "t1", `"open"`, ""},
		{"gemini", `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"state":"open"}}}]}}]}`, "f", "", `"open"`, ""},
		{"gemini", `{"parts":[{"function_call":{"name":"f","args":{"state":"open"}}}]}`, "f", "", `"open"`, ""},
	} {
		calls, err := Calls(c.provider, []byte(c.raw))
		if err != nil || len(calls) != 1 || calls[0].Name != c.name || calls[0].ID != c.id || string(calls[0].Arguments["state"]) != c.argument || (calls[0].Bad == "") != (c.bad == "") {
			t.Errorf("%s %s: %+v %v", c.provider, c.raw, calls, err)
		}
	}
	for _, raw := range []string{"", "x", `[{"function":{}}]`, `{} {}`} {
		if _, err := Calls("openai", []byte(raw)); err == nil {
			t.Errorf("%q is read", raw)
		}
	}
}

// FuzzCalls: no response makes the reader panic, and each call it finds has a name.
func FuzzCalls(f *testing.F) {
	f.Add("openai", []byte(`[{"id":"c1","function":{"name":"f","arguments":"{}"}}]`))
	f.Add("anthropic", []byte(`{"content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]}`))
	f.Add("gemini", []byte(`{"parts":[{"function_call":{"name":"f","args":{}}}]}`))
	f.Fuzz(func(t *testing.T, provider string, raw []byte) {
		calls, err := Calls(provider, raw)
		for _, c := range calls {
			if err == nil && c.Name == "" {
				t.Fatalf("%+v", c)
			}
		}
		if _, err := json.Marshal(Results(provider, []Result{{}})); err != nil {
			t.Fatal(err)
		}
	})
}
