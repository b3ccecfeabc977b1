package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/excerpt"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/outside"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/run"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/tty"
	"github.com/atip-dev/atip-exec/internal/wiring"
	"github.com/atip-dev/atip-exec/policy"
)

// maxCaptured is how much of each stream an envelope holds, as head and tail.
const maxCaptured = 1 << 20

// run carries out a command and prints what the output mode asks for.
func (c *Console) run(inv plan.Invocation) int {
	c.Out, c.Err = unbroken(c.Out), unbroken(c.Err)
	switch c.Mode {
	case JSON:
		return c.runEnvelope(inv)
	case JSONL:
		return c.runEvents(inv)
	}
	var l lines
	stdout, stderr := c.Out, l.theirs(c.Err)
	if oneStream() {
		stdout = l.theirs(stdout)
	}
	c.Err = l.ours(c.Err)
	r := run.Run(inv, caller.Here(), run.Output{Stdout: stdout, Stderr: stderr, Warn: c.Warn, Note: c.noteLine})
	if r.Fault != nil {
		return c.Fail(r.Fault)
	}
	c.verdictLine(r)
	return r.ExitCode
}

// noteLine says on stderr what the caller would else wonder about.
func (c *Console) noteLine(n status.Note) {
	if f, ok := n.Value.(*fault.Fault); ok {
		c.Fail(f) // a start that was refused while the run goes on
		return
	}
	if n.Code == "denied" {
		// The one thing a reader of a failed command cannot guess.
		c.Note(fmt.Sprint(n.Value))
		return
	}
	if n.Code == "leftovers" {
		// The command said that it started something, and ended with 0.
		c.Note(fmt.Sprint("processes that the command left in the background were ended with it: ", n.Value))
		return
	}
	if c.Verbose == 0 {
		return
	}
	value, _ := json.Marshal(n.Value)
	c.Note(n.Code + " " + string(value))
}

func (c *Console) verdictLine(r *run.Result) {
	if c.Verbose == 0 || r.Plan == nil {
		return
	}
	c.Note(r.Plan.Decision.Action.String() + ", sandbox " + r.Plan.Setup.Tier().String() + ", exit " + strconv.Itoa(r.ExitCode))
	if c.Verbose > 1 {
		t := r.Status.Timing
		c.Note("plan " + strconv.Itoa(int(t.PlanUS)) + " µs, start " + strconv.Itoa(int(t.StartUS)) + " µs, run " + strconv.Itoa(int(t.RunMS)) + " ms, audit " + r.Status.Audit)
	}
}

// put stores a stream under name, or name_b64 if it is not UTF-8.
func put(stream *excerpt.Ends, into map[string]any, truncated map[string]bool, name string) {
	data, cut := stream.Bytes()
	truncated[name] = cut
	if utf8.Valid(data) {
		into[name] = string(data)
	} else {
		into[name+"_b64"] = data
	}
}

func (c *Console) runEnvelope(inv plan.Invocation) int {
	stdout, stderr := excerpt.Ends{Limit: maxCaptured}, excerpt.Ends{Limit: maxCaptured}
	var warnings []string
	r := run.Run(inv, caller.Here(), run.Output{Stdout: &stdout, Stderr: &stderr, Warn: func(w string) { warnings = append(warnings, w) }})
	result, truncated := map[string]any{"exit_code": r.ExitCode, "signal": nil}, map[string]bool{}
	if child := r.Status.Child; child != nil && child.Signal != "" {
		result["signal"] = child.Signal
	}
	put(&stdout, result, truncated, "stdout")
	put(&stderr, result, truncated, "stderr")
	result["truncated"] = truncated
	result["redactions"] = redactions(r)
	if len(r.Bounds) > 0 {
		result["output"] = r.Bounds
	}
	doc := map[string]any{"ok": r.Fault == nil && r.ExitCode == 0, "result": result, "meta": meta(r, warnings)}
	if r.Fault != nil {
		doc["error"] = r.Fault
		c.Fail(r.Fault)
	}
	if err := c.Document(doc); err != nil {
		return c.Fail(err)
	}
	return r.ExitCode
}

func meta(r *run.Result, warnings []string) map[string]any {
	m := map[string]any{"version": Version, "duration_ms": r.Duration.Milliseconds(), "dry_run": false, "decision": nil, "tool": nil, "warnings": append([]string{}, warnings...), "audit_id": r.Status.Audit}
	if r.Plan != nil {
		if tool := r.Plan.Tool(); tool != "" {
			m["tool"] = tool
			m["decision"] = r.Plan.Decision.Action.String()
			m["effects"] = r.Plan.Granted()
		}
	}
	return m
}

func redactions(r *run.Result) []any {
	out := []any{}
	for _, report := range r.Reports {
		for _, found := range report.Redactions {
			out = append(out, found)
		}
	}
	return out
}

// events writes one JSON object a line, whole lines only.
type events struct {
	mu  sync.Mutex
	out io.Writer
	seq int
	err error
}

func (e *events) emit(kind string, fields any) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return
	}
	line := append([]byte(`{"type":"`+kind+`"`), ',')
	line = append(line, raw[1:]...)
	if len(raw) == 2 {
		line = append(line[:len(line)-2], '}')
	}
	if _, err := e.out.Write(append(line, '\n')); err != nil && e.err == nil {
		e.err = err
	}
}

// eventStream turns the writes of one stream into events, cut at line ends or at
// 64 KiB, never inside a rune.
type eventStream struct {
	*events
	name string
	rest []byte
}

func (s *eventStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, p...)
	for {
		n := cut(s.rest)
		if n == 0 {
			return len(p), s.err
		}
		s.data(s.rest[:n])
		s.rest = append(s.rest[:0], s.rest[n:]...)
	}
}

// cut returns the length of the next event, 0 to wait for more.
func cut(p []byte) int {
	for i, b := range p {
		if b == '\n' || i == 64<<10-1 {
			n := i + 1
			for back := 0; b != '\n' && back < 3 && n > 1 && !utf8.RuneStart(p[n-1]); back++ {
				n--
			}
			if b != '\n' && n > 1 && p[n-1] >= utf8.RuneSelf && n <= i {
				n--
			}
			return n
		}
	}
	return 0
}

func (s *eventStream) data(p []byte) {
	fields := map[string]any{"seq": s.seq}
	s.seq++
	if utf8.Valid(p) {
		fields["data"] = string(p)
	} else {
		fields["data_b64"] = append([]byte{}, p...)
	}
	s.emit(s.name, fields)
}

func (s *eventStream) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) > 0 {
		s.data(s.rest)
		s.rest = nil
	}
}

func (c *Console) runEvents(inv plan.Invocation) int {
	e := &events{out: c.Out}
	stdout, stderr := &eventStream{events: e, name: "stdout"}, &eventStream{events: e, name: "stderr"}
	var warnings []string
	r := run.Run(inv, caller.Here(), run.Output{Stdout: stdout, Stderr: stderr,
		Start: func(s run.Started) { e.locked("start", s) }, Note: func(n status.Note) { e.locked("note", n) }, Warn: func(w string) { warnings = append(warnings, w) }})
	stdout.flush()
	stderr.flush()
	if r.Fault != nil {
		e.locked("error", map[string]any{"exit_code": r.ExitCode, "error": r.Fault, "child": r.Status.Child, "meta": meta(r, warnings)})
		c.Fail(r.Fault)
		return r.ExitCode
	}
	last := map[string]any{"exit_code": r.ExitCode, "signal": nil, "duration_ms": r.Duration.Milliseconds(), "redactions": redactions(r), "meta": meta(r, warnings)}
	if len(r.Bounds) > 0 {
		last["output"] = r.Bounds
	}
	if child := r.Status.Child; child != nil {
		if child.Signal != "" {
			last["signal"] = child.Signal
		}
		last["core"] = child.Core
		last["user_ms"], last["sys_ms"], last["max_rss_kb"] = r.Status.Timing.UserMS, r.Status.Timing.SysMS, r.Status.Timing.MaxRSSKB
	}
	e.locked("exit", last)
	if e.err != nil {
		return c.Fail(fault.New(errcode.OutputWrite, "stdout: "+e.err.Error()))
	}
	return r.ExitCode
}

func (e *events) locked(kind string, fields any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.emit(kind, fields)
}

// isShellName reports whether the program was started under a name by which callers
// start a shell; a login shell has a dash in front.
func isShellName(argv0 string) (name string, ok bool) {
	name = strings.TrimPrefix(strings.TrimSuffix(filepath.Base(argv0), exeSuffix), "-")
	switch name {
	case "atip-sh", "bash", "sh", "zsh":
		return name, true
	}
	return "", false
}

// asShell runs what a shell of this name would run. Flags of ours cannot stand on such a
// command line; policy and output mode come from files and the environment.
func (c *Console) asShell(name string, args []string) int {
	v, err := Parse(Root(), nil, os.Getenv)
	if err != nil {
		return c.Fail(err)
	}
	c.Apply(v)
	inv, err := invocation(v)
	if err == nil {
		err = shellLine(&inv, name, args, tty.IsTerminal(os.Stdin.Fd()))
	}
	if err != nil {
		run.ReportUsage("", args, fault.From(err))
		return c.Fail(err)
	}
	if m := caller.Here(); inv.IsShell && inv.Script == "" && len(inv.ShellArgs) == 0 {
		if words, env := ofHost(m, inv.Shell, args); words != nil {
			return c.Fail(replaceProcess(words[0], words, env))
		}
	}
	return c.run(inv)
}

// ofHost are the words to go on with if a text is the agent's own and no command of its model:
// exactly the call of our hook, which judges commands and runs none, or a script that the table
// knows. Inside of a sandbox the one would see too little to judge, and the other could not do
// what it is for.
//
// The script runs unconfined, so that nothing of the caller's leads it: neither PATH nor another
// variable, and of the options only that it is a login shell.
func ofHost(m caller.Machine, text string, args []string) (words, env []string) {
	hook, script := strings.Contains(text, "/libexec/hook"), strings.HasPrefix(text, "SNAPSHOT_FILE=")
	if !hook && !script || m.Getenv("ATIP_EXEC_SANDBOX") != "" {
		return nil, nil
	}
	dirs, err := m.Dirs()
	if err != nil {
		return nil, nil
	}
	if script && wiring.OwnScript(text, dirs.Home) {
		words = []string{"/bin/bash", "-c", text}
		if slices.Contains(args, "-l") {
			words = []string{"/bin/bash", "-l", "-c", text}
		}
		return words, outside.Environ(dirs, m.Getenv)
	}
	for _, h := range wiring.Hosts() {
		for _, mode := range h.Modes() {
			if h.Ask != nil && text == wiring.HookCommand(dirs.Data, h.Name, mode) {
				return append([]string{wiring.HookFile(dirs.Data)}, wiring.HookWords(h.Name, mode)...), m.Environ
			}
		}
	}
	return nil, nil
}

// shellLine reads the command line of a shell into an invocation: bash(1), less what
// would need a prompt or a start-up file.
func shellLine(inv *plan.Invocation, name string, args []string, terminal bool) error {
	command, stdin := false, false
	i := 0
options:
	for ; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "--" || word == "-":
			i++
			break options
		case len(word) < 2 || word[0] != '-' && word[0] != '+':
			break options
		case strings.HasPrefix(word, "--"):
			switch word {
			case "--login", "--noprofile", "--norc", "--noediting":
				// There are no start-up files here and there is no line to edit.
			case "--rcfile", "--init-file":
				i++
			case "--posix":
				inv.ShellSet = append(inv.ShellSet, "-o", "posix")
			case "--version", "--help":
				inv.IsShell, inv.Shell = true, "command /bin/bash "+word
				return nil
			default:
				return badShellOption(name, word)
			}
		default:
			for _, o := range word[1:] {
				switch {
				case o == 'c' && word[0] == '-':
					command = true
				case o == 's' && word[0] == '-':
					stdin = true
				case o == 'l' || o == 'i':
				case o == 'o':
					if i++; i >= len(args) {
						return badShellOption(name, word)
					}
					if !shellOptionName(args[i]) {
						return badShellOption(name, word[:1]+"o "+args[i])
					}
					inv.ShellSet = append(inv.ShellSet, word[:1]+"o", args[i])
				case strings.ContainsRune("euxfvnabhmC", o):
					inv.ShellSet = append(inv.ShellSet, word[:1]+string(o))
				default:
					return badShellOption(name, word[:1]+string(o))
				}
			}
		}
	}
	rest := args[min(i, len(args)):]
	inv.IsShell = true
	switch {
	case command && len(rest) == 0:
		return fault.New(errcode.NoCommand, name+": -c needs a command").WithFix("write the command after -c", name+" -c 'git status'")
	case command:
		inv.Shell, inv.ShellArgs = rest[0], rest[1:]
	case name == "atip-sh" && !stdin && len(rest) == 1:
		inv.Shell = rest[0]
	case name == "atip-sh" && !stdin && len(rest) > 1:
		inv.IsShell, inv.Argv = false, rest
	case stdin || len(rest) == 0:
		if terminal {
			return fault.New(errcode.NoCommand, name+": there is no interactive shell here").WithFix("give a command or a script", name+" -c 'git status'")
		}
		inv.Script, inv.ShellArgs = "-", append([]string{name}, rest...)
	default:
		inv.Script, inv.ShellArgs = rest[0], rest
	}
	if !inv.IsShell && inv.Argv[0] == "" {
		return fault.New(errcode.NoCommand, "the command word is empty").WithFix("write a command", name+" git status")
	}
	return nil
}

// shellOptionName lists what -o may switch: options under which words keep the meaning
// that they are judged by.
func shellOptionName(name string) bool {
	switch name {
	case "errexit", "nounset", "pipefail", "xtrace", "verbose", "noglob", "noclobber", "noexec", "allexport", "notify", "hashall", "monitor", "posix":
		return true
	}
	return false
}

func badShellOption(name, word string) error {
	return fault.New(errcode.UnknownFlag, name+": option "+word+" is not supported").With("flag", word).WithFix("use -c, -l, -s, -e, -u, -x, -f, -o pipefail and their like", name+" -lc 'git status'")
}

// script runs a file of shell commands that was read and judged as a whole.
func (c *Console) script(v *Values) int {
	inv, err := invocation(v)
	if err == nil {
		err = scriptLine(&inv, v)
	}
	if err != nil {
		run.ReportUsage(v.Get("status-file"), append([]string{"script"}, v.Rest...), fault.From(err))
		return c.Fail(err)
	}
	if v.Has("dry-run") {
		return c.dryRun(inv)
	}
	return c.run(inv)
}

func scriptLine(inv *plan.Invocation, v *Values) error {
	if v.Has("ceiling") {
		var words []string
		for _, list := range v.All("ceiling") {
			words = append(words, strings.Split(list, ",")...)
		}
		ceiling, err := policy.ParseCeiling(words)
		if err != nil {
			return fault.New(errcode.FlagValue, "--ceiling: "+err.Error()).With("flag", "--ceiling").WithFix("list what the script may do", "--ceiling write,subprocess")
		}
		inv.Ceiling = ceiling
	}
	for _, o := range [...]string{"errexit", "nounset", "pipefail", "xtrace", "noglob"} {
		if v.Has(o) {
			inv.ShellSet = append(inv.ShellSet, "-o", o)
		}
	}
	if v.Has("interpreter") || v.Has("code-fd") {
		return codeLine(inv, v)
	}
	if len(v.Rest) == 0 || v.Rest[0] == "" {
		return fault.New(errcode.NoCommand, "script needs a file, or - for standard input").WithFix("name the script", "atip-exec script build.sh")
	}
	inv.IsShell, inv.Argv, inv.Script, inv.ShellArgs = true, nil, v.Rest[0], v.Rest
	if inv.Script == "-" {
		if tty.IsTerminal(os.Stdin.Fd()) {
			return fault.New(errcode.NoCommand, "standard input is a terminal, not a script").WithFix("name a file, or pipe the script in", "atip-exec script - <build.sh")
		}
		inv.ShellArgs = append([]string{"bash"}, v.Rest[1:]...)
	}
	if v.Has("label") {
		inv.ShellArgs = append([]string{v.Get("label")}, inv.ShellArgs[1:]...)
	}
	return nil
}

// maxCode is how much of a program is handed to an interpreter as one word: the kernel
// takes 128 KiB, MAX_ARG_STRLEN.
const maxCode = 120000

// codeLine hands code from a descriptor to its interpreter, as a word of its own; the
// arguments are further words, which no text is made of.
func codeLine(inv *plan.Invocation, v *Values) error {
	if !v.Has("interpreter") || !v.Has("code-fd") {
		return fault.New(errcode.Arguments, "--interpreter and --code-fd belong together").WithFix("give both", "atip-exec script --interpreter python3 --code-fd 3 3<code.py")
	}
	from := os.NewFile(uintptr(v.IntOf("code-fd")), "code")
	defer from.Close()
	raw, err := io.ReadAll(io.LimitReader(from, maxCode+1))
	switch {
	case err != nil:
		return fault.New(errcode.NoInputFile, "--code-fd "+v.Get("code-fd")+": "+err.Error()).WithFix("open the descriptor for reading", "atip-exec script --interpreter python3 --code-fd 3 3<code.py")
	case len(raw) > maxCode:
		return fault.New(errcode.FlagValue, "--code-fd: the code is longer than "+strconv.Itoa(maxCode)+" bytes").WithFix("move code into a file that it reads", "")
	case bytes.IndexByte(raw, 0) >= 0:
		return fault.New(errcode.FlagValue, "--code-fd: the code holds a NUL byte").WithFix("remove it", "")
	}
	label, program, code := v.Get("label"), v.Get("interpreter"), string(raw)
	if label == "" {
		label = filepath.Base(program)
	}
	inv.IsShell, inv.Argv, inv.ShellArgs = false, nil, nil
	switch filepath.Base(program) {
	case "bash":
		inv.IsShell, inv.Shell, inv.ShellArgs = true, code, append([]string{label}, v.Rest...)
		return nil
	case "sh", "dash", "zsh", "ksh":
		inv.Argv = append([]string{program}, inv.ShellSet...)
		inv.Argv = append(inv.Argv, "-c", code, label)
	case "node", "ruby":
		inv.Argv = []string{program, "-e", code, "--"}
	case "pwsh":
		inv.Argv = []string{program, "-NoProfile", "-NonInteractive", "-CommandWithArgs", code}
	default: // python, python3 and python3.N
		if !strings.HasPrefix(filepath.Base(program), "python") {
			return fault.New(errcode.FlagValue, "--interpreter: "+strconv.Quote(program)+" is not one that code can be handed to").With("flag", "--interpreter").WithFix("choose bash, sh, dash, zsh, ksh, python3, node, ruby or pwsh", "--interpreter python3")
		}
		inv.Argv = []string{program, "-c", code}
	}
	inv.ShellSet = nil
	inv.Argv = append(inv.Argv, v.Rest...)
	return nil
}
