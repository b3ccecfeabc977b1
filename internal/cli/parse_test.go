package cli

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/step"
)

func none(string) string { return "" }

func TestParse(t *testing.T) {
	root, _ := SpecOf("")
	list, _ := SpecOf("list")
	tests := []struct {
		name string
		spec Spec
		args []string
		rest []string
		set  map[string][]string
		code string
	}{
		{"dashes end the flags", root, []string{"-q", "--", "-q", "ls"}, []string{"-q", "ls"}, map[string][]string{"quiet": {"true"}}, ""},
		{"a word ends the flags", root, []string{"ls", "-q"}, []string{"ls", "-q"}, nil, ""},
		{"a lone dash is a word", root, []string{"-", "-q"}, []string{"-", "-q"}, nil, ""},
		{"the last one wins", root, []string{"-o", "json", "--output=text", "ls"}, []string{"ls"}, map[string][]string{"output": {"json", "text"}}, ""},
		{"cluster and attached value", root, []string{"-qvvojson", "ls"}, []string{"ls"}, map[string][]string{"quiet": {"true"}, "verbose": {"true", "true"}, "output": {"json"}}, ""},
		{"a value may look like a flag", root, []string{"--policy", "-x", "ls"}, []string{"ls"}, map[string][]string{"policy": {"-x"}}, ""},
		{"-c takes what follows", root, []string{"-c", "ls -l", "name", "-q"}, []string{"name", "-q"}, map[string][]string{"command": {"ls -l"}}, ""},
		{"verbs take flags anywhere", list, []string{"a", "-q", "b"}, []string{"a", "b"}, map[string][]string{"quiet": {"true"}}, ""},
		{"no abbreviation", root, []string{"--out", "json"}, nil, nil, "E1001"},
		{"unknown letter", root, []string{"-Z"}, nil, nil, "E1001"},
		{"no value", root, []string{"--timeout"}, nil, nil, "E1002"},
		{"a value where none belongs", root, []string{"--quiet=yes"}, nil, nil, "E1002"},
		{"not in the list", root, []string{"-o", "xml"}, nil, nil, "E1002"},
		{"too small", root, []string{"--status-fd", "2"}, nil, nil, "E1002"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, err := Parse(tt.spec, tt.args, none)
			if tt.code != "" {
				var f *fault.Fault
				if !errors.As(err, &f) || f.Code != tt.code {
					t.Fatalf("error %v, want %s", err, tt.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(v.Rest, tt.rest) {
				t.Errorf("rest %q, want %q", v.Rest, tt.rest)
			}
			if tt.set == nil {
				tt.set = map[string][]string{}
			}
			if !reflect.DeepEqual(v.set, tt.set) {
				t.Errorf("set %v, want %v", v.set, tt.set)
			}
		})
	}
}

func TestParseEnvironment(t *testing.T) {
	root, _ := SpecOf("")
	env := func(name string) string {
		return map[string]string{"ATIP_EXEC_OUTPUT": "json", "ATIP_EXEC_POLICY": "p.json"}[name]
	}
	v, err := Parse(root, []string{"--policy", "q.json", "-o", "text", "ls"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if v.Get("output") != "text" {
		t.Error("a flag beats its variable")
	}
	if got := v.All("policy"); len(got) != 2 {
		t.Errorf("policies add up: %q", got)
	}
	if _, err := Parse(root, []string{"ls"}, func(string) string { return "xml" }); err == nil {
		t.Error("a bad variable is an error")
	}
}

func TestParseDuration(t *testing.T) {
	good := map[string]time.Duration{"90": 90 * time.Second, "1.5": 1500 * time.Millisecond, "250ms": 250 * time.Millisecond, "5m": 5 * time.Minute, "24h": 24 * time.Hour, "0.001s": time.Millisecond}
	for text, want := range good {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "5 m", "5d", "25h", "1e9", "1e400", "NaN", "Inf", "0x10", "1_0", "ms"} {
		if got, err := ParseDuration(text); err == nil {
			t.Errorf("%q is accepted as %v", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	root, _ := SpecOf("")
	f.Add("-q", "--output=json", "ls")
	f.Add("--", "-c", "x")
	f.Add("-ojson", "-vvv", "--status-fd=9")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		v, err := Parse(root, []string{a, b, c}, none)
		if err == nil && len(v.Rest) > 3 {
			t.Errorf("more words out than in: %q", v.Rest)
		}
	})
}

func TestEveryFlagIsDescribed(t *testing.T) {
	for _, s := range Specs() {
		for _, f := range s.Flags {
			if f.Help == "" || f.Name == "" || (f.takesValue() && f.Value == "") {
				t.Errorf("%s %s: flag %q lacks a description", s.Program, s.Verb, f.Name)
			}
		}
		if s.Summary == "" || len(s.Examples) == 0 {
			t.Errorf("%s %s lacks a summary or an example", s.Program, s.Verb)
		}
	}
}

// What a run knows of our own command lines, to judge one inside another, is what they
// are.
func TestOwnLinesAreKnown(t *testing.T) {
	root := Root()
	script, _ := SpecOf("script")
	for _, f := range concat(root.Flags, script.Flags) {
		names := []string{"--" + f.Name}
		if f.Short != 0 {
			names = append(names, "-"+string(f.Short))
		}
		for _, name := range names {
			if value, known := step.OwnFlag(name); !known || value != f.takesValue() {
				t.Errorf("%s: known %v, takes a value %v", name, known, value)
			}
		}
	}
	for _, s := range verbs() {
		if !step.OwnVerb(s.Verb) {
			t.Errorf("%s is not known as a verb", s.Verb)
		}
	}
	if len(verbs()) == 0 || step.OwnVerb("git") || step.OwnVerb("") || step.OwnVerb("script.sh") {
		t.Error("what is no verb is taken for one")
	}
}
