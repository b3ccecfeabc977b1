package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/authority"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/idempotency"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/permit"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/run"
	"github.com/atip-dev/atip-exec/internal/tty"
)

// Version is the version of both programs; release builds set it with -X.
var Version = "0.1.0-dev"

func init() { authority.Version = Version }

// Main is atip-exec. It returns the exit status.
func Main(argv []string) (status int) {
	var behalf *nest.Process
	var f *fault.Fault
	if len(argv) > 0 && argv[0] == nest.ProcessName {
		behalf, f = nest.Accept() // it gets its descriptors with its order
	}
	c := NewConsole()
	defer func() {
		if r := recover(); r != nil {
			status = c.Fail(Panicked(r, c))
		}
	}()
	if len(argv) > 0 {
		if argv[0] == nest.ProcessName {
			return c.onBehalf(behalf, f)
		}
		if f, ok := nest.StoodIn(); ok {
			return c.Fail(f)
		}
		if name, ok := isShellName(argv[0]); ok {
			return c.asShell(name, argv[1:])
		}
		argv = argv[1:]
	}
	return c.root(argv)
}

// Panicked turns a panic into the error the user sees; the stack is printed with
// -vv only.
func Panicked(r any, c *Console) error {
	if c.Verbose > 1 {
		c.Err.Write(debug.Stack())
	}
	return fault.New(errcode.Internal, fmt.Sprintf("internal error: %v", r))
}

func (c *Console) root(args []string) int {
	spec, _ := SpecOf("")
	v, err := Parse(spec, args, os.Getenv)
	if err != nil {
		c.Mode = modeOf(typedValue(args, "--output", "-o"))
		run.ReportUsage(typedValue(args, "--status-file"), args, fault.From(err))
		return c.Fail(err)
	}
	c.Apply(v)
	switch {
	case v.Has("help"):
		return c.done(c.Text(Help(spec)))
	case v.Has("version"):
		return c.version()
	case v.Has("serve-mcp"):
		words := []string{"mcp", "--transport", v.Get("serve-mcp")}
		for _, name := range []string{"port", "prime"} {
			if v.Has(name) {
				words = append(words, "--"+name, v.Get(name))
			}
		}
		for _, file := range v.All("policy") {
			words = append(words, "--policy", file)
		}
		return c.Fail(HandOver("atip", words))
	case v.Has("agent"):
		doc, err := agentPart(v)
		if err != nil {
			return c.Fail(err)
		}
		return c.done(c.Document(doc))
	case v.Has("commands") || v.Has("depth"):
		return c.Fail(fault.New(errcode.FlagValue, "--commands and --depth choose a part of what --agent prints").WithFix("add --agent", "atip-exec --agent --commands explain"))
	case !v.Dash && !v.Has("command") && len(v.Rest) > 0:
		if verb, ok := SpecOf(v.Rest[0]); ok && v.Rest[0] != "" {
			if verb.Program == "atip" {
				return c.Fail(HandOver("atip", args))
			}
			return c.verb(verb, v, v.Rest[1:])
		}
	}
	inv, err := invocation(v)
	if err == nil && len(inv.Argv) == 0 && !inv.IsShell {
		err = noCommand(v)
	}
	if err != nil {
		run.ReportUsage(v.Get("status-file"), args, fault.From(err))
		return c.Fail(err)
	}
	if v.Has("dry-run") {
		return c.dryRun(inv)
	}
	if !v.Dash && len(inv.Argv) > 0 {
		c.mistyped = inv.Argv[0]
	}
	return c.run(inv)
}

// NearVerb is the verb that a word which is no command was probably meant to be, "" if
// none is near.
func NearVerb(word string) string {
	if len(word) < 4 {
		return ""
	}
	best, least := "", 3
	for _, s := range verbs() {
		if d := distance(word, s.Verb); d < least {
			best, least = s.Verb, d
		}
	}
	return best
}

func (c *Console) verb(spec Spec, global *Values, args []string) int {
	v, err := Parse(spec, args, os.Getenv)
	if err != nil {
		return c.Fail(err)
	}
	c.Apply(v)
	if v.Has("help") {
		return c.done(c.Text(Help(spec)))
	}
	switch spec.Verb {
	case "version":
		return c.version()
	case "help":
		return c.help(v.Rest)
	}
	// Flags typed before the verb count too.
	for name, values := range global.set {
		v.set[name] = append(values, v.set[name]...)
	}
	switch spec.Verb {
	case "script":
		return c.script(v)
	case "hook":
		return c.hook(v)
	}
	return c.explain(v)
}

func (c *Console) done(err error) int {
	if err != nil {
		return c.Fail(err)
	}
	return 0
}

func (c *Console) help(words []string) int {
	if len(words) == 0 {
		spec, _ := SpecOf("")
		return c.done(c.Text(Help(spec)))
	}
	return c.HelpOn(words)
}

// HelpOn prints the help on a topic or a verb, of either program.
func (c *Console) HelpOn(words []string) int {
	if text, ok := Topic(words[0]); ok {
		return c.done(c.Text(text))
	}
	if spec, ok := SpecOf(words[0]); ok {
		return c.done(c.Text(Help(spec)))
	}
	return c.Fail(fault.New(errcode.Arguments, fmt.Sprintf("no help on %q", words[0])).WithFix("topics: environment, exit-codes, output, files, agents, or a verb", "atip-exec help exit-codes"))
}

func (c *Console) version() int {
	commit, changed := builtFrom()
	if c.Documents() {
		doc := map[string]any{"kind": "atip-exec.version/1", "version": Version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}
		if commit != "" {
			doc["commit"], doc["modified"] = commit, changed
		}
		return c.done(c.Document(doc))
	}
	text := "atip-exec " + Version + " (" + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	if commit != "" {
		text += ", commit " + commit[:min(len(commit), 12)]
	}
	if changed {
		text += " with changes"
	}
	return c.done(c.Text(text + ")\n"))
}

// builtFrom is the commit that the toolchain recorded, "" for none, and whether files differed
// from it.
func builtFrom() (commit string, changed bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			changed = s.Value == "true"
		}
	}
	return commit, changed
}

func noCommand(v *Values) error {
	if v.Dash {
		return fault.New(errcode.NoCommand, "no command after --").WithFix("write the command after `--`", "atip-exec -- git status")
	}
	return fault.New(errcode.NoCommand, "no command given").WithFix("write the command after `--`", "atip-exec -- git status")
}

func invocation(v *Values) (plan.Invocation, error) {
	inv := plan.Invocation{
		Argv: v.Rest, Shell: v.Get("command"), IsShell: v.Has("command"), Directory: v.Get("directory"), Policies: v.All("policy"), Profiles: v.All("profile"),
		ExplainDenials:  v.Has("explain-denials"),
		DeclaredTimeout: v.Get("timeout") == "declared", KillAfter: v.DurationOf("kill-after"), Wait: v.DurationOf("wait"), MaxOutput: v.SizeOf("max-output"), Stdin: v.Get("stdin"), Terminal: v.Has("tty"), Refresh: v.Has("refresh"), CI: v.Has("ci"),
		StatusFile: v.Get("status-file"), StatusFD: v.IntOf("status-fd"),
		Prime: v.Get("prime"), IdempotencyKey: v.Get("idempotency-key"), Version: Version,
	}
	inv.Paths = OwnPaths(Root(), v)
	if !inv.DeclaredTimeout {
		inv.Timeout = v.DurationOf("timeout")
	}
	if inv.IsShell {
		inv.Argv, inv.ShellArgs = nil, v.Rest
	}
	if inv.Wait > permit.MaxWait {
		return inv, fault.New(errcode.FlagValue, "--wait: longer than "+permit.MaxWait.String()).With("flag", "--wait").WithFix("wait at most ten minutes", "--wait 10m")
	}
	if v.Has("idempotency-key") {
		if err := idempotency.Check(inv.IdempotencyKey); err != nil {
			return inv, fault.New(errcode.FlagValue, "--idempotency-key: "+err.Error()).With("flag", "--idempotency-key").WithFix("use printable ASCII without blanks", "--idempotency-key deploy-42")
		}
		if inv.Terminal {
			return inv, fault.New(errcode.FlagValue, "--idempotency-key: the output of a terminal cannot be replayed").With("flag", "--idempotency-key").WithFix("leave out -t", "")
		}
	}
	if inv.MaxOutput > 0 && inv.Terminal {
		return inv, fault.New(errcode.FlagValue, "--max-output: the output of a terminal is not bounded").With("flag", "--max-output").WithFix("leave out -t or --max-output", "")
	}
	if len(inv.Argv) > 0 && inv.Argv[0] == "" && !v.Has("code-fd") {
		return inv, fault.New(errcode.NoCommand, "the command word is empty").WithFix("write the command after `--`", "atip-exec -- git status")
	}
	return inv, nil
}

// HandOver replaces this process by a program of ours beside our own executable: a verb is
// never looked up through PATH, which the caller of an agent may have chosen.
func HandOver(program string, args []string) error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		if self, err = os.Executable(); err != nil {
			return fault.New(errcode.NoCompanion, "cannot find our own executable: "+err.Error())
		}
	}
	sibling := filepath.Join(filepath.Dir(self), program+exeSuffix)
	err = replaceProcess(sibling, append([]string{program}, args...), os.Environ())
	return fault.New(errcode.NoCompanion, sibling+": "+err.Error()).WithFix("install `"+program+"` beside `atip-exec`", "go install github.com/atip-dev/atip-exec/cmd/...")
}

// typedValue finds the value of a flag in words that could not be parsed, so that
// a usage error still reaches the place the caller asked for.
func typedValue(args []string, names ...string) string {
	for i, word := range args {
		if word == "--" {
			return ""
		}
		for _, name := range names {
			if word == name && i+1 < len(args) {
				return args[i+1]
			}
			if value, ok := strings.CutPrefix(word, name+"="); ok {
				return value
			}
		}
	}
	return ""
}

// OwnPaths are the files that the flags and arguments of a command line make this program
// itself read or write.
func OwnPaths(spec Spec, v *Values) []plan.OwnPath {
	var out []plan.OwnPath
	add := func(name, value string, access Access) {
		path := plan.OwnPath{Name: name, Access: atip.AccessRead}
		switch access {
		case Read:
		case Write:
			path.Access = atip.AccessWrite
		default:
			return
		}
		if abs, err := filepath.Abs(value); err == nil {
			value = abs
		}
		path.Value = value
		out = append(out, path)
	}
	for _, f := range spec.Flags {
		for _, value := range v.All(f.Name) {
			if f.Access != NoFile && !slices.Contains(f.Words, value) {
				add("--"+f.Name, value, f.Access)
			}
		}
	}
	if spec.Stops {
		return out // the words right of the flags are the command's
	}
	for i, word := range v.Rest {
		if len(spec.Args) == 0 {
			break
		}
		arg := spec.Args[min(i, len(spec.Args)-1)]
		if i < len(spec.Args) || arg.Variadic {
			add(arg.Name, word, arg.Access)
		}
	}
	return out
}

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
		if verb := NearVerb(c.mistyped); verb != "" {
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

// Limited returns a context that ends after a time, or when a signal ends the program.
func Limited(d time.Duration) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, func() { cancel(); stop() }
}

// Answer prints the document, or the text where documents are not asked for.
func (c *Console) Answer(doc any, text string) error {
	if c.Documents() {
		return c.Document(doc)
	}
	return c.Text(text)
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
func (c *Console) onBehalf(process *nest.Process, f *fault.Fault) int {
	if f != nil {
		return c.Fail(f)
	}
	c.Out, c.Err = unbroken(c.Out), unbroken(c.Err)
	if f := run.Behalf(process, caller.Here(), run.Output{Stdout: c.Out, Stderr: c.Err, Warn: c.Warn, Note: c.noteLine}); f != nil {
		return c.Fail(f)
	}
	return 0
}
