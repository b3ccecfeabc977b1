package runfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// check says whether a text is a value of the parameter's type.
func check(p *Param, text string) error {
	switch p.Type {
	case Integer:
		if _, err := strconv.ParseInt(text, 10, 64); err != nil || text[0] == '+' {
			return fmt.Errorf("%q is not an integer", short(text))
		}
	case Number:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n != n || n-n != 0 || strings.ContainsAny(text, "xX_+pP") && !strings.ContainsAny(text, "eE") {
			return fmt.Errorf("%q is not a number", short(text))
		}
	case Boolean:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is not true or false", short(text))
		}
	case JSONObject:
		var v map[string]any
		if json.Unmarshal([]byte(text), &v) != nil || v == nil {
			return fmt.Errorf("%q is not a JSON object", short(text))
		}
	}
	return nil
}

// Bind checks the words of a call and fills in defaults. Nothing is taken out of a word
// and nothing is put into one: they reach the function as they are. Words beyond the
// parameters stay.
func (fn *Function) Bind(words []string) ([]string, error) {
	out := append([]string{}, words...)
	for i := range fn.Params {
		p := &fn.Params[i]
		switch {
		case p.Rest:
			return out, nil
		case i < len(words):
			if strings.IndexByte(words[i], 0) >= 0 {
				return nil, fn.wrong(p, fmt.Errorf("it holds a NUL byte"))
			}
			if err := check(p, words[i]); err != nil {
				return nil, fn.wrong(p, err)
			}
		case p.HasDefault:
			out = append(out, p.Default)
		default:
			return nil, &Error{Code: errcode.ParameterMissing, Message: fn.Name + ": the parameter " + p.Name + " is missing", Fix: "give " + p.Name, Example: "atip run " + fn.usage(),
				Details: map[string]any{"function": fn.Name, "parameter": p.Name}}
		}
	}
	return out, nil
}

func (fn *Function) wrong(p *Param, err error) error {
	return &Error{Code: errcode.ArgumentType, Message: fn.Name + ": " + p.Name + ": " + err.Error(), Fix: "give " + article(p.Type.String()), Example: "atip run " + fn.usage(),
		Details: map[string]any{"function": fn.Name, "parameter": p.Name, "type": p.Type.String()}}
}

func article(s string) string {
	if strings.ContainsRune("aeio", rune(s[0])) {
		return "an " + s
	}
	return "a " + s
}

// usage is the call of a function with its parameters as placeholders.
func (fn *Function) usage() string {
	words := []string{fn.Name}
	for _, p := range fn.Params {
		switch {
		case p.Rest:
			words = append(words, "["+strings.ToUpper(p.Name)+"…]")
		case p.HasDefault:
			words = append(words, "["+strings.ToUpper(p.Name)+"]")
		default:
			words = append(words, strings.ToUpper(p.Name))
		}
	}
	return strings.Join(words, " ")
}

// BindNamed turns the object that an agent sends into words, in the order of the
// parameters. Each value must have the JSON type of the schema.
func (fn *Function) BindNamed(object map[string]json.RawMessage) ([]string, error) {
	for name := range object {
		if paramIndex(fn.Params, name) < 0 {
			return nil, &Error{Code: errcode.ArgumentType, Message: fn.Name + ": there is no parameter " + strconv.Quote(short(name)), Fix: "see the input schema of the function", Details: map[string]any{"function": fn.Name, "parameter": name}}
		}
	}
	var words []string
	last := 0 // words up to the last one that was given
	for i := range fn.Params {
		p := &fn.Params[i]
		raw, given := object[p.Name]
		if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) {
			given = false
		}
		if p.Rest {
			var list []string
			if given && json.Unmarshal(raw, &list) != nil {
				return nil, fn.wrong(p, fmt.Errorf("it is not an array of strings"))
			}
			if words = append(words, list...); len(list) > 0 {
				last = len(words)
			}
			break
		}
		if !given {
			if !p.HasDefault {
				return nil, &Error{Code: errcode.ParameterMissing, Message: fn.Name + ": the parameter " + p.Name + " is missing", Fix: "give " + p.Name, Details: map[string]any{"function": fn.Name, "parameter": p.Name}}
			}
			words = append(words, p.Default)
			continue
		}
		text, err := textOf(p, raw)
		if err != nil {
			return nil, fn.wrong(p, err)
		}
		words = append(words, text)
		last = len(words)
	}
	return fn.Bind(words[:last])
}

// textOf is the word for a JSON value.
func textOf(p *Param, raw json.RawMessage) (string, error) {
	wrong := fmt.Errorf("%s is not %s", short(string(raw)), article(p.Type.String()))
	switch p.Type {
	case String:
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return "", wrong
		}
		return s, nil
	case Boolean:
		var b bool
		if json.Unmarshal(raw, &b) != nil {
			return "", wrong
		}
		return strconv.FormatBool(b), nil
	case JSONObject:
		var b bytes.Buffer
		if len(raw) == 0 || raw[0] != '{' || json.Compact(&b, raw) != nil {
			return "", wrong
		}
		return b.String(), nil
	}
	var n json.Number
	if len(raw) == 0 || raw[0] == '"' || json.Unmarshal(raw, &n) != nil {
		return "", wrong
	}
	text := n.String()
	if whole, err := n.Float64(); p.Type == Integer && err == nil && strings.ContainsAny(text, ".eE") && whole == float64(int64(whole)) {
		text = strconv.FormatInt(int64(whole), 10) // 3.0 is an integer in JSON Schema
	}
	return text, nil
}
