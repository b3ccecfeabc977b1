package plan

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/gate"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// The oracle runs what the reader read. Its world has a PATH of its own in which
// nearly every program is a stub that only writes down how it was called; shells and
// wrappers are the real ones. A call that the plan did not list means that the reader
// overlooked a command.

// realTools run what the reader claims to see through, or feed it.
var realTools = []string{"sh", "bash", "dash", "env", "xargs", "find", "timeout", "nice", "nohup", "setsid", "stdbuf", "flock", "ionice", "taskset", "cat", "ls", "seq", "sort", "head", "cut", "basename", "dirname"}

// printsTemporary is what mktemp does, but for making it: each X stays.
const printsTemporary = `t= n= p=
for a; do
	case $p in -p|-dp) t=$a/ ;; esac
	case $a in -t|-dt|--tmpdir) t=/tmp/ ;; --tmpdir=*) t=${a#*=}/ ;; *XXX*) n=$a ;; esac
	p=$a
done
if [ -z "$n" ]; then n=tmp.0000000000 t=${t:-/tmp/}; fi
case $n in /*) t= ;; esac
echo "$t$n"`

type oracle struct {
	w       corpusWorld
	stubs   string
	log     string
	batch   *Batch
	profile sandbox.Profile
	setup   sandbox.Setup
	null    *os.File
	before  *snapshot // the work tree as every text finds it
	bounded bool      // the kernel bounds the processes of a text
}

// maxOracleProcesses is more than a text needs that does not fork without end.
const maxOracleProcesses = 128

func newOracle(t testing.TB) *oracle {
	t.Helper()
	o := &oracle{w: newCorpusWorld(t)}
	o.stubs, o.log = filepath.Join(o.w.Home, "stubs"), filepath.Join(o.w.Dir, ".calls")
	if err := os.Mkdir(o.stubs, 0o755); err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob(filepath.Join("..", "..", "shims", "builtin", "*.json"))
	if err != nil || len(docs) == 0 {
		t.Fatalf("builtin documents: %v", err)
	}
	names := []string{"deployctl", "python3", "node", "pip3", "perl", "vi", "gunzip", "zcat", "unxz", "yum", "apt-get", "g++", "rake", "twine", "mysqldump"}
	for _, d := range docs {
		names = append(names, strings.TrimSuffix(filepath.Base(d), ".json"))
	}
	// The number of words goes first: a word may be empty or hold a newline.
	// A shell that is handed its name reads it as a script, which is no start: $0 is a path only for who starts it.
	stub := "#!/bin/sh\ncase $0 in /*) ;; *) exit 0 ;; esac\nprintf '%s\\0' \"$#\" \"${0##*/}\" \"$@\" >> '" + o.log + "'\necho README.md\n"
	for _, name := range names {
		path := filepath.Join(o.stubs, name)
		if slices.Contains(realTools, name) {
			continue
		}
		text := stub
		switch name { // what these print is part of what is known of them
		case "date", "docker", "gh", "git", "go", "nproc":
			text = strings.Replace(stub, "README.md", "0", 1)
		case "awk", "grep", "tail", "tr": // and that they let pass what they read, or a part of it
			text = strings.Replace(stub, "echo README.md", "if [ -p /dev/stdin ]; then while read -r l; do echo \"$l\"; done; else case \" $* \" in *' -n '*) echo 0:README.md ;; *) echo README.md ;; esac; fi", 1)
		case "mktemp":
			text = strings.Replace(stub, "echo README.md", printsTemporary, 1)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range realTools {
		for _, dir := range []string{"/bin", "/usr/bin"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				if err := os.Symlink(filepath.Join(dir, name), filepath.Join(o.stubs, name)); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
	}
	if o.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.null.Close() })
	m := o.w.machine()
	m.Environ = []string{"HOME=" + o.w.Home, "PATH=" + o.stubs, "USER=agent", "LANG=C.UTF-8", "OSTYPE=linux-gnu"}
	o.batch = &Batch{Machine: m}
	// What code of the workspace may do is what the rows get: no network, and no
	// writing outside of the work tree.
	p, err := Make(Invocation{Argv: []string{"./x.sh"}, Directory: o.w.Dir}, m)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Decision.Action != policy.Allow || p.Setup.Tier() == sandbox.T0 {
		if slices.Contains(strings.FieldsFunc(os.Getenv("ATIP_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' }), "landlock") {
			t.Fatalf("nothing confines the oracle here: %s, tier %v", p.Decision.Action, p.Setup.Tier())
		}
		t.Skipf("nothing confines the oracle here: %s, tier %v", p.Decision.Action, p.Setup.Tier())
	}
	o.profile, o.setup = p.Profile, p.Setup
	// In a user namespace of its own the processes of a run are counted apart; those of
	// root are counted nowhere without a control group (setrlimit(2)).
	if o.bounded = p.Setup.Tier() == sandbox.T3 && os.Getuid() != 0; o.bounded {
		o.profile.Limits.Processes = maxOracleProcesses
		if o.setup, err = sandbox.Select(o.profile, p.Host); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(o.log, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o.before = takeSnapshot(t, o.w.Dir)
	return o
}

var errUnfit = errors.New("not for the oracle")

// unfit reports a text that leaves the world of stubs, or ends what counts its calls.
func unfit(text string) bool {
	return slices.ContainsFunc([]string{"kill", "command -p", "env -i", "env - ", "-iS", "exec -c", "/dev/", "ulimit", "-delete", "-lc", "-c -l", "--login", "$$", "$!", "${!}"}, func(no string) bool { return strings.Contains(text, no) })
}

// check runs one text and compares; errUnfit if it cannot be run here.
func (o *oracle) check(text string) (calls int, err error) {
	if unfit(text) {
		return 0, errUnfit
	}
	p, err := o.planned(text)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	if unread(p) {
		return 0, errUnfit
	}
	recorded, err := o.run(p, p.Steps[0])
	if err != nil {
		return 0, err
	}
	return len(recorded), o.listed(p, text, recorded)
}

// planned is the plan of a text that can be carried out here.
func (o *oracle) planned(text string) (*Plan, error) {
	p, err := o.batch.Plan(Invocation{Shell: text, IsShell: true, Directory: o.w.Dir})
	if err != nil {
		return nil, errUnfit // it would not start
	}
	if !o.runs(p) {
		p.Close()
		return nil, errUnfit
	}
	return p, nil
}

// runs reports whether a plan can be carried out here: with stubs for what it starts, and an end.
func (o *oracle) runs(p *Plan) bool {
	main := p.Steps[0]
	return main.Missing == nil && main.ID.Place != "" &&
		!slices.ContainsFunc(p.Steps, func(s *step.Step) bool {
			return s != main && strings.Contains(s.Argv[0], "/") && !subpath.Within(filepath.Clean(subpath.Join(s.Cwd, s.Argv[0])), o.w.Dir) // not found through PATH, so no stub
		}) &&
		!slices.ContainsFunc(p.Edges, func(e policy.Edge) bool { return e.Kind == policy.ForkBomb || e.Kind == policy.SocketShell })
}

// unread reports a plan that says that it does not know what it will start.
func unread(p *Plan) bool {
	return slices.ContainsFunc(p.Steps, func(s *step.Step) bool {
		return s.Certainty() == "opaque" || s.RunsCode == policy.CodeOpaque || step.IsShell(s.Call.Tool) && s.Value(atip.ExecOpaque) == atip.Yes
	})
}

// listed is the error of a call that the plan does not list.
func (o *oracle) listed(p *Plan, text string, recorded [][]string) error {
	for _, call := range recorded {
		if !slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return o.lists(s, call) }) {
			var plan strings.Builder
			for _, s := range p.Steps {
				fmt.Fprintf(&plan, "\n\t%s", quote.Words(s.Argv))
			}
			return fmt.Errorf("%q ran %s, which the plan does not list:%s", text, quote.Words(call), plan.String())
		}
	}
	return nil
}

// run starts a plan confined and returns the calls of stubs.
func (o *oracle) run(p *Plan, main *step.Step) ([][]string, error) { return o.gated(p, main, nil) }

// gated is run with starts that are decided when they happen, nil for none.
func (o *oracle) gated(p *Plan, main *step.Step, rules *gate.Rules) ([][]string, error) {
	if err := os.WriteFile(o.log, nil, 0o644); err != nil {
		return nil, err
	}
	env := o.batch.Machine.Environ
	if rules != nil && len(p.Env.Entries) > 0 {
		env = p.Env.Entries // what differs from it is judged
	}
	proc, err := sandbox.Start(context.Background(), o.profile, o.setup, sandbox.Cmd{Path: main.ID.Place, Argv: p.Argv, Env: env, Dir: o.w.Dir,
		Stdin: o.null, Stdout: o.null, Stderr: o.null, Gate: rules})
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	end := time.NewTimer(2 * time.Second)
	defer end.Stop()
	select {
	case <-proc.Done():
	case <-end.C: // a loop without end: what it called so far counts
		proc.KillTree(0)
	}
	if _, err := proc.Wait(); err != nil {
		return nil, err
	}
	proc.Sweep()
	raw, err := os.ReadFile(o.log)
	if err != nil {
		return nil, err
	}
	return parseCalls(raw), nil
}

func parseCalls(raw []byte) [][]string {
	var out [][]string
	words := strings.Split(string(bytes.TrimSuffix(raw, []byte{0})), "\x00")
	for len(words) > 1 && len(out) < 200 {
		n, err := strconv.Atoi(words[0])
		if err != nil || n < 0 || len(words) < n+2 {
			break // cut off in the middle
		}
		out = append(out, words[1:n+2])
		words = words[n+2:]
	}
	return out
}

// lists reports whether a step stands for a call. A word that is not known, a
// pattern and a placeholder stand for any words; so does the starting point of find,
// below which all lies that it found.
func (o *oracle) lists(s *step.Step, call []string) bool {
	argv, found := s.Argv, slices.Contains(s.Via, "find") || slices.Contains(s.Via, "fd")
	if call[0] == "echo" && s.Call.Tool == "xargs" {
		return true // what xargs runs if it is told nothing
	}
	// A tilde in a place that only some shells expand is the home to the reader.
	home := func(w string) string { return strings.ReplaceAll(w, o.w.Home, "~") }
	if len(argv) == 0 || filepath.Base(argv[0]) != call[0] {
		return false
	}
	var b strings.Builder
	b.WriteString(`(?s)^`)
	for i, w := range argv[1:] {
		// One of the names that the word before stands for, such as that of a credential.
		if before, _, some := strings.Cut(argv[i], step.SomeName); i > 0 && some && before != "" && strings.HasPrefix(w, before) {
			continue
		}
		// A name that was found may lie at any depth: the next word says so.
		found := found || i+2 < len(argv) && argv[i+2] == filepath.Dir(w)+"/"+step.SomeName+"/"+filepath.Base(w)
		if strings.ContainsAny(w, "*?[") || strings.Contains(w, "…") || strings.Contains(w, "{}") || strings.HasPrefix(w, "/dev/fd/") || found && !strings.HasPrefix(w, "-") {
			b.WriteString(`(?:[^\x00]*\x00)*?`)
			continue
		}
		b.WriteString(regexp.QuoteMeta(home(w)) + `\x00`)
	}
	b.WriteString(`$`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return false
	}
	joined := ""
	for _, w := range call[1:] {
		joined += home(w) + "\x00"
	}
	return re.MatchString(joined)
}

// whole reports whether the world is one that a text may leave behind, and makes it
// again what it was: the next text must not find what this one left.
func (o *oracle) whole(t testing.TB) bool {
	defer o.before.restore(t)
	for _, name := range []string{"README.md", ".git/HEAD", "docs/guide.md"} {
		if _, err := os.Stat(filepath.Join(o.w.Dir, name)); err != nil {
			return false
		}
	}
	return true
}

// TestOracle runs rows of the corpus: with CORPUS_ROWS=all every one, else a twentieth, of which root runs a half;
// with ATIP_TEST_WHOLE=1 all of it.
func TestOracle(t *testing.T) {
	rows := readCorpus(t)
	o := newOracle(t)
	all := os.Getenv("CORPUS_ROWS") == "all"
	every := 20
	if os.Getuid() == 0 && os.Getenv("ATIP_TEST_WHOLE") == "" {
		every = 40
	}
	ran, calls, unfit := 0, 0, 0
	for i := range rows {
		r := &rows[i]
		if r.Cmd == nil || r.Cwd != "" || r.Tagged("device") || r.Tagged("system") || r.Tagged("forkbomb") || !all && i%every != 0 {
			continue
		}
		n, err := o.check(*r.Cmd)
		switch {
		case errors.Is(err, errUnfit):
			unfit++
			continue
		case err != nil:
			t.Errorf("%s: %v", r.ID, err)
		}
		ran++
		calls += n
		if !o.whole(t) {
			t.Fatalf("%s: %q destroyed the world: it started something that is no stub", r.ID, *r.Cmd)
		}
	}
	t.Logf("%d rows ran, %d calls were recorded, %d rows are opaque or cannot run here", ran, calls, unfit)
	if calls < ran/4 {
		t.Errorf("%d rows made only %d calls: the stubs do not work", ran, calls)
	}
}

// TestOracleBound holds that a text which forks without end cannot take more processes
// than it is given: the fuzzer runs what the reader did not see to be one.
func TestOracleBound(t *testing.T) {
	o := newOracle(t)
	if !o.bounded {
		t.Log("processes of root are not counted; the fuzzer leaves texts out that may fork without end")
		return
	}
	fifo, count := filepath.Join(o.w.Dir, ".fifo"), filepath.Join(o.w.Dir, ".count")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	many := "for i in {1..200}; do cat <> .fifo & echo >> .count; done; "
	started := func() int {
		raw, err := os.ReadFile(count)
		if err != nil {
			return 0
		}
		return bytes.Count(raw, []byte("\n"))
	}
	plain := exec.Command("/bin/bash", "-c", many+"cat <> .fifo")
	plain.Dir, plain.SysProcAttr = o.w.Dir, &syscall.SysProcAttr{Setpgid: true}
	if err := plain.Start(); err != nil {
		t.Fatal(err)
	}
	for i := 0; started() < 200 && i < 1200; i++ {
		time.Sleep(50 * time.Millisecond)
	}
	syscall.Kill(-plain.Process.Pid, syscall.SIGKILL)
	plain.Wait()
	if n := started(); n != 200 {
		t.Fatalf("unbounded, %d of 200 processes were started", n)
	}
	os.Remove(count)
	p, err := o.batch.Plan(Invocation{Shell: many, IsShell: true, Directory: o.w.Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := o.run(p, p.Steps[0]); err != nil {
		t.Fatal(err)
	}
	if n := started(); n > maxOracleProcesses {
		t.Errorf("%d processes were started, at most %d should be", n, maxOracleProcesses)
	}
}

// FuzzOracle looks for texts that start what the plan does not list.
func FuzzOracle(f *testing.F) {
	rows := readCorpus(f)
	every := 29 // a plain test run takes a few; a search takes all
	if v := flag.Lookup("test.fuzz"); v != nil && v.Value.String() != "" {
		every = 1
	}
	for i := range rows {
		if r := &rows[i]; r.Cmd != nil && r.Cwd == "" && i%every == 0 && (r.Tagged("evasion") || r.Tagged("shell") || r.Tagged("lookalike")) {
			f.Add(*r.Cmd)
		}
	}
	o := newOracle(f)
	f.Fuzz(func(t *testing.T, text string) {
		text = text[:min(len(text), 512)] // longer ones are no better
		if !o.bounded && strings.Contains(text, "&") && strings.Contains(text, "()") {
			return // functions in the background may fork without end; TestOracle runs the rows that have some
		}
		if _, err := o.check(text); err != nil && !errors.Is(err, errUnfit) {
			t.Fatal(err)
		}
		if !o.whole(t) {
			t.Fatalf("%q destroyed the world", text)
		}
	})
}
