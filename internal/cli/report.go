package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/run"
	"github.com/atip-dev/atip-exec/internal/tty"
)

// Mode is how output is written.
type Mode uint8

// Output modes; Auto is text on a terminal and JSON elsewhere, for our own
// documents only: the bytes of a command always pass through.
const (
	Auto Mode = iota
	Text
	JSON
	JSONL
)

func modeOf(name string) Mode {
	switch name {
	case "text":
		return Text
	case "json":
		return JSON
	case "jsonl":
		return JSONL
	}
	return Auto
}

// Console is where the program prints, and how.
type Console struct {
	Out, Err       io.Writer
	OutTTY, ErrTTY bool
	Mode           Mode
	Quiet          bool
	Verbose        int
	noColor        bool
	getenv         func(string) string
	warned         map[string]bool
	mistyped       string // the command word, where a verb could have stood

	// Shorten prints a document of which --fields and --max-items ask for a part; nil for
	// the whole. Columns says that it is printed even where people read text.
	Shorten func(doc any) error
	Columns bool
}

// NewConsole prints to the standard streams of this process.
func NewConsole() *Console {
	return &Console{Out: tty.Steady(os.Stdout), Err: tty.Steady(os.Stderr), OutTTY: tty.IsTerminal(os.Stdout.Fd()), ErrTTY: tty.IsTerminal(os.Stderr.Fd()), getenv: os.Getenv}
}

// Apply takes over the output flags of a command line.
func (c *Console) Apply(v *Values) {
	if v.Has("output") {
		c.Mode = modeOf(v.Get("output"))
	} else if c.Mode == Auto && c.getenv("TYPER_AGENT_OUTPUT") == "json" {
		c.Mode = JSON
	}
	c.Quiet = c.Quiet || v.Has("quiet")
	c.Verbose += v.CountOf("verbose")
	c.noColor = c.noColor || v.Has("no-color")
}

// jsonErrors reports whether errors are written as JSON lines.
func (c *Console) jsonErrors() bool {
	switch c.Mode {
	case JSON, JSONL:
		return true
	case Text:
		return false
	}
	return !c.ErrTTY
}

// Documents reports whether our own documents are written as JSON.
func (c *Console) Documents() bool {
	return c.Columns || c.Mode == JSON || c.Mode == JSONL || (c.Mode == Auto && !c.OutTTY)
}

// Fail prints an error on stderr and returns its exit status.
func (c *Console) Fail(err error) int {
	f := fault.From(err)
	if f.Code == errcode.CommandNotFound {
		if verb := nearVerb(c.mistyped); verb != "" {
			f.WithFix("did you mean the verb "+verb+"?", "atip-exec "+verb)
		}
	}
	if c.jsonErrors() {
		c.Err.Write(append(f.Brief(), '\n'))
	} else {
		c.errLine(f.BriefLine(), "31")
		if f.Suggestion.Example != "" {
			c.errLine("  for example: "+f.Suggestion.Example, "")
		}
	}
	c.annotate(f)
	return f.Exit
}

// Warn prints a warning once per text.
func (c *Console) Warn(text string) {
	if c.Quiet || c.warned[text] {
		return
	}
	if c.warned == nil {
		c.warned = map[string]bool{}
	}
	c.warned[text] = true
	c.errLine("atip-exec: warning: "+text, "33")
}

// Note prints a line on stderr unless quiet.
func (c *Console) Note(text string) {
	if !c.Quiet {
		c.errLine("atip-exec: "+text, "")
	}
}

func (c *Console) errLine(text, color string) {
	text = Printable(oneLine(text))
	if color != "" && c.color(c.ErrTTY) {
		text = "\x1b[" + color + "m" + text + "\x1b[0m"
	}
	io.WriteString(c.Err, text+"\n")
}

// color decides for one stream: --no-color, NO_COLOR, CLICOLOR_FORCE, then the terminal.
func (c *Console) color(isTTY bool) bool {
	switch {
	case c.noColor || c.getenv("NO_COLOR") != "":
		return false
	case c.getenv("CLICOLOR_FORCE") != "" && c.getenv("CLICOLOR_FORCE") != "0":
		return true
	}
	return isTTY && c.getenv("TERM") != "dumb"
}

// Document prints one JSON document on stdout, or the part of it that was asked for.
func (c *Console) Document(doc any) error {
	if c.Shorten != nil {
		return c.Shorten(doc)
	}
	return c.Encode(doc)
}

// Encode prints a value as JSON on stdout.
func (c *Console) Encode(doc any) error {
	enc := json.NewEncoder(c.Out)
	enc.SetEscapeHTML(false)
	if c.OutTTY {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(doc); err != nil {
		return fault.New(errcode.OutputWrite, "stdout: "+err.Error())
	}
	return nil
}

// Text prints text on stdout.
func (c *Console) Text(text string) error {
	if _, err := io.WriteString(c.Out, Printable(text)); err != nil {
		return fault.New(errcode.OutputWrite, "stdout: "+err.Error())
	}
	return nil
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }

// lines keeps what we say apart from a line that the command has not finished: who reads
// line by line would else find neither.
type lines struct {
	mu   sync.Mutex
	open bool // the last byte that was written ends no line
}

// theirs passes on what the command writes.
func (l *lines) theirs(w io.Writer) io.Writer { return lineWriter{l, w, false} }

// ours begins a line if the command has left one open.
func (l *lines) ours(w io.Writer) io.Writer { return lineWriter{l, w, true} }

type lineWriter struct {
	*lines
	to  io.Writer
	own bool
}

func (w lineWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	w.mu.Lock()
	begin := w.own && w.open
	w.open = p[len(p)-1] != '\n'
	w.mu.Unlock()
	if begin {
		if _, err := io.WriteString(w.to, "\n"); err != nil {
			return 0, err
		}
	}
	return w.to.Write(p)
}

// oneStream reports whether standard output and standard error go to the same place.
func oneStream() bool {
	out, err := os.Stdout.Stat()
	if err != nil {
		return false
	}
	other, err := os.Stderr.Stat()
	return err == nil && os.SameFile(out, other)
}

// annotate tells GitHub Actions of an error of ours: a workflow command on stderr,
// after the error itself, and a line in the job's summary. See "Workflow commands for
// GitHub Actions".
func (c *Console) annotate(f *fault.Fault) {
	if c.getenv("GITHUB_ACTIONS") != "true" {
		return
	}
	io.WriteString(c.Err, "::error title="+escapeProperty("atip-exec "+f.Code)+"::"+escapeData(f.Message)+"\n")
	path := c.getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return
	}
	summary, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return // the error itself is on stderr
	}
	defer summary.Close()
	io.WriteString(summary, "- **atip-exec "+f.Code+"**: `"+strings.NewReplacer("`", "'", "\n", " ", "\r", " ").Replace(f.Message)+"`\n")
}

// escapeData keeps a text inside the value of a workflow command: a command line of
// an agent must not begin a command of its own.
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}

// Printable shows what a terminal would obey: control characters and marks that turn
// the direction of a line (CVE-2021-42574). Names of files and messages of others
// stand in our reports, and an agent can choose them. Lines and tabs stay.
func Printable(s string) string {
	if !strings.ContainsFunc(s, obeyed) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case obeyed(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		case r == unicode.ReplacementChar:
			b.WriteByte(s[i]) // a byte that is not UTF-8, or the first one of the mark itself
			if strings.HasPrefix(s[i:], string(unicode.ReplacementChar)) {
				b.WriteString(s[i+1 : i+3])
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}

// onBehalf runs a command for a run inside of another. What went wrong goes to the one
// who asked, which prints it.
func (c *Console) onBehalf() int {
	c.Out, c.Err = unbroken(c.Out), unbroken(c.Err)
	if f := run.Behalf(caller.Here(), run.Output{Stdout: c.Out, Stderr: c.Err, Warn: c.Warn, Note: c.noteLine}); f != nil {
		return c.Fail(f)
	}
	return 0
}
