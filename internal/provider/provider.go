// Package provider reads the tool calls out of a model's response and writes their results
// in the form in which the provider wants them back (ATIP 0.6 section 7).
package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// MaxResponse is the longest response that is read, in bytes.
const MaxResponse = 8 << 20

// maxCalls bounds the calls of one response.
const maxCalls = 128

func bad(why string) error { return &errcode.Error{Code: errcode.ProviderCall, Msg: why} }

// Call is one call that the model asks for.
type Call struct {
	ID        string // "" where the provider has none
	Name      string
	Arguments map[string]json.RawMessage
	Bad       string // why the arguments cannot be used, "" if they can
}

// Result is the outcome of a call.
type Result struct {
	Call    Call
	Text    string
	IsError bool
}

// Calls finds the calls in a response, in their order. It takes a whole response, one
// message of it, or the list of calls alone.
func Calls(provider string, raw []byte) ([]Call, error) {
	if len(raw) > MaxResponse {
		return nil, bad("the response is longer than 8 MiB")
	}
	var root any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&root); err != nil {
		return nil, bad("the response is not JSON: " + err.Error())
	}
	if dec.More() {
		return nil, bad("there is something behind the response")
	}
	f := finder{provider: provider}
	f.walk(root, 0)
	if f.err == nil && len(f.calls) > maxCalls {
		f.err = bad(fmt.Sprintf("the response has more than %d calls", maxCalls))
	}
	return f.calls, f.err
}

type finder struct {
	provider string
	calls    []Call
	err      error
}

func member(v any, keys ...string) any {
	o, _ := v.(map[string]any)
	for _, key := range keys {
		if e, ok := o[key]; ok {
			return e
		}
	}
	return nil
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// walk goes down the members that hold calls in the form of the provider, and no others:
// what a model quotes in a text is no call.
func (f *finder) walk(v any, depth int) {
	if depth > 8 || f.err != nil {
		return
	}
	if list, ok := v.([]any); ok {
		for _, e := range list {
			f.walk(e, depth+1)
		}
		return
	}
	switch f.provider {
	case "openai":
		if fn := member(v, "function"); fn != nil {
			f.add(text(member(v, "id")), fn, "arguments")
			return
		}
		if text(member(v, "type")) == "function_call" { // the Responses API
			id := text(member(v, "call_id"))
			f.add(id, v, "arguments")
			return
		}
		for _, key := range [...]string{"choices", "message", "tool_calls", "output"} {
			f.walk(member(v, key), depth+1)
		}
	case "anthropic":
		if text(member(v, "type")) == "tool_use" {
			f.add(text(member(v, "id")), v, "input")
			return
		}
		for _, key := range [...]string{"content", "message"} {
			f.walk(member(v, key), depth+1)
		}
	case "gemini":
		if fn := member(v, "functionCall", "function_call"); fn != nil {
			f.add(text(member(fn, "id")), fn, "args")
			return
		}
		for _, key := range [...]string{"candidates", "content", "parts"} {
			f.walk(member(v, key), depth+1)
		}
	}
}

func (f *finder) add(id string, fn any, key string) {
	c := Call{ID: id, Name: text(member(fn, "name"))}
	if c.Name == "" {
		f.err = bad("call " + strconv.Itoa(len(f.calls)+1) + " names no function")
		return
	}
	raw, _ := json.Marshal(member(fn, key))
	if s, ok := member(fn, key).(string); ok {
		raw = []byte(s) // OpenAI sends the object as a text
		if len(bytes.TrimSpace(raw)) == 0 {
			raw = []byte("{}")
		}
	} else if member(fn, key) == nil {
		raw = []byte("{}")
	}
	if err := json.Unmarshal(raw, &c.Arguments); err != nil || c.Arguments == nil {
		c.Bad = "its arguments are no JSON object"
	}
	f.calls = append(f.calls, c)
}

// Results writes results for the provider, to be added to the conversation.
func Results(provider string, results []Result) any {
	list := []any{}
	for _, r := range results {
		switch provider {
		case "openai":
			list = append(list, map[string]any{"role": "tool", "tool_call_id": r.Call.ID, "content": r.Text})
		case "anthropic":
			block := map[string]any{"type": "tool_result", "tool_use_id": r.Call.ID, "content": r.Text}
			if r.IsError {
				block["is_error"] = true
			}
			list = append(list, block)
		case "gemini":
			key := "result"
			if r.IsError {
				key = "error"
			}
			part := map[string]any{"name": r.Call.Name, "response": map[string]any{key: r.Text}}
			if r.Call.ID != "" {
				part["id"] = r.Call.ID
			}
			list = append(list, map[string]any{"function_response": part})
		}
	}
	switch provider {
	case "anthropic":
		return map[string]any{"role": "user", "content": list}
	case "gemini":
		return map[string]any{"role": "user", "parts": list}
	}
	return list
}
