package generate

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

const (
	byHand = `.TH PACK 1
.SH NAME
pack \- put files \fItogether\fR
.SH SYNOPSIS
.B pack
[\fB\-a\fR] \fIfile\fR...
.SH OPTIONS
.TP
\fB\-a\fR, \fB\-\-all\fR
Do not ignore entries; see \(lqx\(rq.
.TP
.BR \-o ", " \-\-output = \fIFILE\fR
Write there.
.TP
.B \-\-color\fR[=\fIWHEN\fR]
Colours.
.IP "\fB\-\-depth\fR \fIN\fR" 4
How deep.
.PP
\-q, \-\-quiet
.RS 4
Less words.
.RE
.PP
-this is prose
.PP
More.
.SH EXAMPLES
.TP
\-x not an option
of the example
.SH COMMANDS
.TP
\fBprune\fR [\fIage\fR]
Throws away old packs.
`
	semantic = `.Dd today
.Dt SEND 1
.Sh NAME
.Nm send
.Nd deliver things
.Sh SYNOPSIS
.Nm
.Op Fl v
.Sh DESCRIPTION
.Bl -tag -width Ds
.It Fl v , Fl -verbose
More words.
.It Fl o Ar option Ns Op = Ns Ar value
Sets an option.
.It Fl -to Ns = Ns Ar host
Where to.
.It Fl Fl dry-run
Nothing.
.El
`
)

func TestReadMan(t *testing.T) {
	for _, c := range []struct{ name, source, want, summary string }{
		{"man", byHand, ": prune -a|--all? -o|--output= --color[=] --depth= -q|--quiet?", "put files together"},
		{"mdoc", semantic, ": -v|--verbose? -o= --to= --dry-run?", ""},
		{"empty", "", ": ", ""},
		{"odd", ".TP\n.TP\n\\f(\\*\n.IP\n.It\n.It Fl\n.SH\n\\", ": ", ""},
	} {
		page := readMan(c.source)
		if got := shape(page.help); got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, got, c.want)
		}
		if page.help.Summary != c.summary {
			t.Errorf("%s: summary %q", c.name, page.help.Summary)
		}
	}
	var many strings.Builder
	for i := range 700 {
		fmt.Fprintf(&many, ".TP\n\\-\\-opt%d\nx\n", i)
	}
	harmlessNowhere(t, Node{Help: readMan(many.String()).help})
	if d := readMan(byHand).help.Options[0].Description; d != `Do not ignore entries; see "x".` {
		t.Errorf("%q", d)
	}
}

func TestMan(t *testing.T) {
	share := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(share, "man", "man1", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write([]byte(text))
			z.Close()
			text = b.String()
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page := func(synopsis, option string) string {
		return ".SH NAME\nx \\- does " + option + "\n.SH SYNOPSIS\n\\fB" + synopsis + "\\fR [options]\n.SH OPTIONS\n.TP\n\\-\\-" + option + " \\fIX\\fR\nThat.\n"
	}
	put("tool.1.gz", page("tool", "root"))
	put("tool-push.1", page("tool push", "remote"))
	put("tool-cherry-pick.1", page("tool cherry-pick", "mainline"))
	put("tool-box-delete.1.gz", page("tool box delete", "all"))
	put("tool-ar.1", page("tool-ar", "not-a-command"))
	put("alias.1", ".so man1/tool-push.1\n")
	put("loop.1", ".so man1/loop.1\n")
	put("away.1", ".so ../../../../../../etc/passwd\n")
	if err := os.WriteFile(filepath.Join(share, "man", "man1", "broken.1.gz"), []byte("no gzip"), 0o644); err != nil {
		t.Fatal(err)
	}
	dirs := []string{filepath.Join(share, "none", "man"), filepath.Join(share, "man")}

	root, ok := Man("tool", dirs)
	if !ok || shape(root.Help) != ": --root=" || len(root.Kids) != 3 {
		t.Fatalf("%v %s %+v", ok, shape(root.Help), root.Kids)
	}
	if root.Kids[0].Name != "box" || root.Kids[0].Kids[0].Name != "delete" || shape(root.Kids[0].Kids[0].Help) != ": --all=" ||
		root.Kids[1].Name != "cherry-pick" || root.Kids[2].Name != "push" || root.Kids[2].Description != "does remote" {
		t.Errorf("%+v", root.Kids)
	}
	if root, ok := Man("alias", dirs); !ok || shape(root.Help) != ": --remote=" {
		t.Errorf("alias: %v %s", ok, shape(root.Help))
	}
	for _, name := range []string{"loop", "away", "broken", "nothing"} {
		if root, ok := Man(name, dirs); ok {
			t.Errorf("%s: %s", name, shape(root.Help))
		}
	}
}

func TestMerge(t *testing.T) {
	a := Node{Help: Parse("A tool.\n\nOptions:\n  -a, --all   every\n  --deep N    how deep\n  --mode M    how\n\nCommands:\n  drop   Drops\n"), Kids: []Node{{Command: Command{Name: "drop"}, Failed: true}}}
	b := Node{Help: Parse("Options:\n  --all=X\n  -d, --deep=N\n  --mode=M\n  --new  x\n"), Kids: []Node{{Command: Command{Name: "drop", Description: "Drops it", Aliases: []string{"rm"}}}, {Command: Command{Name: "more"}}}}
	b.Help.Options[2].Arity = Attached
	m := Merge(a, b)
	if got := shape(Help{Options: m.Help.Options}); got != ": -a|--all= --deep|-d= --mode? --new?" {
		t.Error(got)
	}
	if m.Help.Summary != "A tool" || len(m.Kids) != 2 || m.Kids[0].Failed || m.Kids[0].Aliases[0] != "rm" {
		t.Errorf("%+v", m)
	}
}

// FuzzMan: no page makes the reader fail, and what it writes loads and claims nothing
// harmless.
func FuzzMan(f *testing.F) {
	f.Add(byHand)
	f.Add(semantic)
	f.Add(".TP\n\\f[B]\\-x\\s+1\n.IP \"\\*(Aq\" \\\"\n.It Fl Oo Ar\n")
	f.Fuzz(func(t *testing.T, source string) { harmlessNowhere(t, Node{Help: readMan(source).help}) })
}

func harmlessNowhere(t *testing.T, root Node) {
	t.Helper()
	raw, err := json.Marshal(Document(Subject{Name: "t", Digest: strings.Repeat("ab", 32)}, root, time.Time{}))
	if err != nil {
		t.Fatal(err)
	}
	d, err := atip.Parse(raw, atip.ParseOptions{})
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	for _, c := range d.Commands(atip.Provenance{Rank: atip.Vendor}) {
		for i, e := range c.Effects {
			if e.Value != atip.Unknown && e.Value != atip.Effect(i).Dangerous() {
				t.Errorf("%v: %s is claimed to be harmless", c.Path, atip.Effect(i))
			}
		}
	}
}
