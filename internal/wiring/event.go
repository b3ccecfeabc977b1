package wiring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
)

// MaxEvent bounds an event.
const MaxEvent = 1 << 20

// Call is what an event asks for.
type Call struct {
	Shell     bool // a command of the host's shell; else another tool, which is none of ours
	Command   string
	Directory string // absolute, "" if the host did not say

	ask   *Ask
	input map[string]json.RawMessage
}

// Bad says that an event is not what the table describes: it may mean anything, so the
// command is not run.
func Bad(why string) error {
	return &errcode.Error{Code: errcode.HookEvent, Msg: "event of the agent: " + why}
}

func bad(format string, args ...any) error { return Bad(fmt.Sprintf(format, args...)) }

// Decode reads an event strictly: a key that is not in the table may change what the command
// does, so that an event which has one is of no known version.
func (a *Ask) Decode(raw []byte) (Call, error) {
	c := Call{ask: a}
	if len(raw) > MaxEvent {
		return c, bad("longer than %d KiB", MaxEvent>>10)
	}
	event, err := object(raw)
	if err != nil {
		return c, err
	}
	if a.Kind[0] != "" {
		if kind, err := text(event, a.Kind[0]); err != nil {
			return c, err
		} else if kind != a.Kind[1] {
			return c, bad("%s is %q, not %s", a.Kind[0], kind, a.Kind[1])
		}
	}
	if a.ToolKey != "" {
		if tool, err := text(event, a.ToolKey); err != nil {
			return c, err
		} else if !slices.Contains(a.Tools, tool) {
			return c, nil
		}
	}
	if err := only(event, a.Known, ""); err != nil {
		return c, err
	}
	input := []byte(event[a.Input])
	if a.InText && !bytes.HasPrefix(input, []byte("{")) {
		inner, err := text(event, a.Input)
		if err != nil {
			return c, err
		}
		input = []byte(inner)
	} else if input == nil {
		return c, bad("%s is missing", a.Input)
	}
	if c.input, err = object(input); err != nil {
		return c, err
	}
	if _, ok := c.input[""]; ok {
		return c, bad("a key of %s is empty", a.Input)
	}
	if err := only(c.input, append([]string{a.Command, a.Dir}, a.Inputs...), a.Input+"."); err != nil {
		return c, err
	}
	if c.Command, err = text(c.input, a.Command); err != nil {
		return c, err
	}
	if c.Directory, err = a.directory(event, c.input); err != nil {
		return c, err
	}
	c.Shell = true
	return c, nil
}

// directory is where the command will run.
func (a *Ask) directory(event, input map[string]json.RawMessage) (string, error) {
	dir, err := "", error(nil)
	if a.Cwd != "" {
		if dir, err = text(event, a.Cwd); err == nil && !filepath.IsAbs(dir) {
			err = bad("%s is not an absolute path", a.Cwd)
		}
	}
	if err != nil || a.Dir == "" || input[a.Dir] == nil || string(input[a.Dir]) == "null" {
		return dir, err
	}
	below, err := text(input, a.Dir)
	if filepath.IsAbs(below) {
		return below, err
	}
	return filepath.Join(dir, below), err
}

// object reads a JSON object, each key of which stands once.
func object(raw []byte) (map[string]json.RawMessage, error) {
	if err := atip.ScanStrict(raw, atip.ParseOptions{}); err != nil {
		return nil, bad("%v", err)
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal(raw, &out); err != nil || out == nil {
		return nil, bad("not an object")
	}
	return out, nil
}

func text(from map[string]json.RawMessage, key string) (string, error) {
	var out *string
	if raw, ok := from[key]; !ok {
		return "", bad("%s is missing", key)
	} else if json.Unmarshal(raw, &out) != nil || out == nil {
		return "", bad("%s is not a string", key)
	}
	return *out, nil
}

func only(have map[string]json.RawMessage, known []string, where string) error {
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if !slices.Contains(known, key) {
			return bad("%s%s is not known to this version of atip-exec; the agent may be newer", where, key)
		}
	}
	return nil
}

// Rewritten is the answer that lets another command run, "" if the host takes none. What else
// the input says stays as it was.
func (c Call) Rewritten(command string) string {
	if c.ask.Rewrite == "" {
		return ""
	}
	input := maps.Clone(c.input)
	input[c.ask.Command] = json.RawMessage(Quoted(command))
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(input) != nil {
		return ""
	}
	return strings.ReplaceAll(c.ask.Rewrite, "$INPUT", strings.TrimSpace(out.String()))
}

// Denied is the answer that keeps a command from running, "" if it is exit status 2 with the
// reason on stderr.
func (a *Ask) Denied(reason string) string {
	if a.Deny == "" {
		return ""
	}
	return strings.ReplaceAll(a.Deny, "$REASON", Quoted(reason))
}

// Quoted writes a string as JSON.
func Quoted(s string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can be encoded
	return strings.TrimSpace(out.String())
}

// Synthetic is an event as this row describes it, for tests of an installation.
func (a *Ask) Synthetic(command, directory string) []byte {
	input := map[string]any{a.Command: command}
	event := map[string]any{}
	if a.ToolKey != "" {
		event[a.ToolKey] = a.Tools[0]
	}
	if a.Kind[0] != "" {
		event[a.Kind[0]] = a.Kind[1]
	}
	if a.Cwd != "" {
		event[a.Cwd] = directory
	} else if a.Dir != "" {
		input[a.Dir] = directory
	}
	event[a.Input] = input
	if a.InText {
		raw, _ := json.Marshal(input)
		event[a.Input] = string(raw)
	}
	raw, _ := json.Marshal(event)
	return raw
}
