package generate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

// shape is a help as one line a test can read.
func shape(h Help) string {
	var out []string
	for _, c := range h.Commands {
		out = append(out, strings.Join(append([]string{c.Name}, c.Aliases...), "/"))
	}
	for _, o := range h.Options {
		s := strings.Join(o.Flags, "|") + [...]string{"?", "", "=", "[=]"}[o.Arity]
		if o.Enum != nil {
			s += "{" + strings.Join(o.Enum, ",") + "}"
		}
		out = append(out, s)
	}
	return h.Framework + ": " + strings.Join(out, " ")
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, text, want, summary string }{
		{"cobra", `Manage the widgets of a project.

Usage:
  widget [command]

Available Commands:
  add         Add a widget
  remove      Remove a widget
  help        Help about any command

Flags:
  -h, --help            help for widget
  -o, --output string   Output format
      --quiet           Print less
      --level int       How deep (default 3)

Use "widget [command] --help" for more information about a command.
`, "cobra: add remove help -h|--help -o|--output= --quiet --level=", "Manage the widgets of a project"},
		{"clap", `Builds things

Usage: build [OPTIONS] <INPUT>

Arguments:
  <INPUT>  what to build

Options:
  -j, --jobs <N>         how many at once
      --color <WHEN>     colours [possible values: auto, always, never]
  -v, --verbose...       more words
      --cfg [<SPEC>]     conditions
  -h, --help             Print help
`, "clap: -j|--jobs= --color={auto,always,never} -v|--verbose --cfg? -h|--help", "Builds things"},
		{"click", `Usage: cli [OPTIONS] COMMAND [ARGS]...

  Talks to the server.

Options:
  --name TEXT      Who to greet.
  --mode [fast|slow]  How.
  --help           Show this message and exit.

Commands:
  drop-db  Drops the database.
  sync     Synchronises.
`, "click: drop-db sync --name= --mode={fast,slow} --help", ""},
		{"argparse", `usage: prog [-h] [--fmt {json,yaml}] {init,purge} ...

positional arguments:
  {init,purge}
    init                make a new one
    purge               remove everything

options:
  -h, --help            show this help message and exit
  -f FILE, --file FILE  the file to
                        read
  --fmt {json,yaml}     the format
`, "argparse: init purge -h|--help -f|--file= --fmt={json,yaml}", ""},
		{"GNU", `Usage: pack [OPTION]... [FILE]...
Pack files together.

Mandatory arguments to long options are mandatory for short options too.
  -a, --all                  do not ignore anything
      --block-size=SIZE      scale sizes by SIZE; see below
      --color[=WHEN]         colour the output
  -l                         long
      --help     display this help and exit
`, "gnu: -a|--all --block-size= --color[=] -l --help", "Pack files together"},
		{"nobody's", "thing - does things\n\n -x       dangerous?\n --file=F  a file\n --[no-]verify  check\n -Z <FLAG>  flags\n", ": -x? --file= --verify|--no-verify? -Z=", "thing - does things"},
		{"struck over", "usage: t\n\nN\bNA\bAM\bME\bE\n  \x1b[1m-q\x1b[0m, --quiet  less\n      --help  show this help message and exit\n", "argparse: -q|--quiet --help", ""},
		{"nothing", "", ": ", ""},
		{"prose", "Sorry, no.\n- a list\n  - of things\n", ": ", "Sorry, no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := Parse(c.text)
			if got := shape(h); got != c.want {
				t.Errorf("%s\nwant\n%s", got, c.want)
			}
			if c.summary != "" && h.Summary != c.summary {
				t.Errorf("summary %q", h.Summary)
			}
		})
	}
}

func tree(texts map[string]string) Ask {
	return func(_ context.Context, words ...string) (string, string, error) {
		text, ok := texts[strings.Join(words[:len(words)-1], " ")]
		if !ok {
			return "", "answered with status 1", nil
		}
		return text, "", nil
	}
}

// TestNothingIsHarmless holds the promise of inferred documents: whatever a help text
// says, no effect is stated as harmless and no effect of the result is.
func TestNothingIsHarmless(t *testing.T) {
	root, err := Walk(context.Background(), tree(map[string]string{
		"":         "A tool that is read-only, safe, and has no network.\n\nUsage:\n  t [command]\n\nAvailable Commands:\n  list        List, destroys nothing\n  prune       Tidy up\n  wild        Remove all of it\n  gone        No help\n\nFlags:\n  -h, --help   help\n      --safe   harmless: \"destructive\": false\n",
		"list":     "List.\n\nFlags:\n  -h, --help   help\n",
		"prune":    "Tidy.\n\nFlags:\n  -h, --help   help\n",
		"wild":     "Remove.\n\nAvailable Commands:\n  all   Every one\n\nFlags:\n  -h, --help   help\n",
		"wild all": "All.\n\nFlags:\n  -h, --help   help\n",
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	doc := Document(Subject{Name: "t", Version: "1.2", Digest: strings.Repeat("ab", 32), Platform: "linux-amd64"}, root, time.Now())
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range atip.Validate(raw, "") {
		if f.Severity == atip.SeverityError {
			t.Errorf("%+v", f)
		}
	}
	d, err := atip.Parse(raw, atip.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Inferred() || !d.Partial() {
		t.Error("the document does not say what it is")
	}
	yes := map[string]bool{}
	for _, c := range d.Commands(atip.Provenance{Rank: atip.Vendor}) {
		for i, f := range c.Effects {
			e := atip.Effect(i)
			if f.Value != atip.Unknown && f.Value != e.Dangerous() {
				t.Errorf("%q: %s is claimed to be %s", c.Path, e, f.Value)
			}
			if e == atip.Destructive && f.Value == atip.Yes {
				yes[strings.Join(c.Path, " ")] = true
			}
		}
	}
	if !yes["prune"] || yes["list"] || len(yes) != 1 {
		t.Errorf("destructive: %v", yes)
	}
	for _, argv := range [][]string{{"t", "list"}, {"t", "gone"}, {"t", "unheard", "of"}, {"t", "--safe", "list"}} {
		call := d.Resolve(argv, atip.ResolveOptions{Provenance: atip.Provenance{Rank: atip.Vendor}})
		if call.Effects[atip.Destructive].Value == atip.No || call.Effects[atip.Network].Value == atip.No {
			t.Errorf("%q is said to be harmless", argv)
		}
	}
}

func TestWalkEnds(t *testing.T) {
	runs := 0
	endless := func(_ context.Context, words ...string) (string, string, error) {
		runs++
		var b strings.Builder
		b.WriteString("Commands:\n")
		for i := range 50 {
			fmt.Fprintf(&b, "  c%d-%d   more\n", runs, i)
		}
		return b.String(), "", nil
	}
	root, err := Walk(context.Background(), endless, nil)
	if err != nil || runs != maxRuns || !root.anyFailed() {
		t.Errorf("%d runs, %v", runs, err)
	}
	runs = 0
	same := func(context.Context, ...string) (string, string, error) {
		runs++
		return "Commands:\n  a   first\n  b   second\n", "", nil
	}
	if root, _ := Walk(context.Background(), same, nil); runs != 3 || len(root.Kids) != 2 || !root.Kids[0].Failed {
		t.Errorf("a tool that ignores its words: %d runs, %+v", runs, root.Kids)
	}
}

func TestVersionOf(t *testing.T) {
	for text, want := range map[string]string{"git version 2.39.5": "2.39.5", "Docker version 28.2.2, build e6534b4": "28.2.2", "v1.2.3-rc.1\n": "1.2.3-rc.1", "no version": "", "": "", "tar (GNU tar) 1.34\nCopyright (C) 2021": "1.34"} {
		if got := VersionOf(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("Usage: x [OPTIONS]\n\nOptions:\n  -o, --out <F>  file\n")
	f.Add("Commands:\n  {a,b}\n    a   x\n\x1b[1m--[no-]x[=Y]\b\b")
	f.Fuzz(func(t *testing.T, text string) {
		doc := Document(Subject{Name: "t", Digest: strings.Repeat("ab", 32)}, Node{Help: Parse(text)}, time.Time{})
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		d, err := atip.Parse(raw, atip.ParseOptions{})
		if err != nil {
			t.Fatalf("%v\n%s", err, raw)
		}
		for i, e := range d.Commands(atip.Provenance{Rank: atip.Vendor})[0].Effects {
			if e.Value != atip.Unknown && e.Value != atip.Effect(i).Dangerous() {
				t.Errorf("%s is claimed to be harmless", atip.Effect(i))
			}
		}
	})
}
