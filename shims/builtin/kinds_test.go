package builtin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// TestKindsOfRows holds that the rows show each way in which a command line can hide
// what it does, and for how many tools.
func TestKindsOfRows(t *testing.T) {
	t.Parallel()
	rows := 0
	tools := map[string]map[string]bool{} // kind to tools
	count := map[string]int{}
	for _, e := range All() {
		doc := parsed(t, e.Raw)
		raw, err := os.ReadFile(e.Name + "_test.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
			var r row
			if json.Unmarshal(lines.Bytes(), &r) != nil || len(r.Argv) == 0 {
				continue
			}
			rows++
			for _, kind := range append(kinds(resolve(doc, r), r), "row") {
				if tools[kind] == nil {
					tools[kind] = map[string]bool{}
				}
				tools[kind][e.Name] = true
				count[kind]++
			}
		}
	}
	for _, want := range []struct {
		kind        string
		rows, tools int
	}{
		{"row", 600, 80},
		{"danger by an option", 600, 80},
		{"option before the command", 40, 15},
		{"attached long value", 100, 40},
		{"attached short value", 40, 20},
		{"cluster", 40, 20},
		{"abbreviated option", 20, 10},
		{"other name of a command", 20, 10},
		{"unknown option", 20, 10},
	} {
		if count[want.kind] < want.rows || len(tools[want.kind]) < want.tools {
			t.Errorf("%s: %d rows of %d tools, want %d of %d", want.kind, count[want.kind], len(tools[want.kind]), want.rows, want.tools)
		}
	}
}

// kinds says what is particular about a call.
func kinds(c atip.Call, r row) (out []string) {
	add := func(kind string) {
		if !slices.Contains(out, kind) {
			out = append(out, kind)
		}
	}
	for i, f := range c.Effects {
		if f.Value == atip.Effect(i).Dangerous() && f.Clause != "" && f.Clause != "base" && f.Clause != "derived" && len(c.Options) > 0 {
			add("danger by an option")
		}
	}
	if len(c.Path) > 0 {
		at := slices.IndexFunc(r.Argv[1:], func(w string) bool { return w == c.Path[0] })
		if at > 0 && strings.HasPrefix(r.Argv[1], "-") {
			add("option before the command")
		}
		if at < 0 && c.Exactness != atip.Unresolved {
			add("other name of a command")
		}
	}
	for _, o := range c.Options {
		long := strings.HasPrefix(o.Flag, "--")
		switch {
		case long && !strings.HasPrefix("--"+o.Name, o.Flag):
		case long && len(o.Flag) < len(o.Name)+2:
			add("abbreviated option")
		}
		if o.Value != "" && slices.Contains(r.Argv, o.Flag+"="+o.Value) {
			add("attached long value")
		}
		if o.Value != "" && !long && slices.Contains(r.Argv, o.Flag+o.Value) {
			add("attached short value")
		}
	}
	for _, w := range r.Argv[1:] {
		letters := 0
		for _, o := range c.Options {
			if len(o.Flag) == 2 && len(w) > 2 && w[0] == '-' && w[1] != '-' && strings.Contains(w[1:], o.Flag[1:]) {
				letters++
			}
		}
		if letters > 1 {
			add("cluster")
		}
	}
	if len(c.UnknownOptions) > 0 {
		add("unknown option")
	}
	return out
}
