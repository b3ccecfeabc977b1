package sandbox

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"golang.org/x/sys/unix"
)

// live guards against a second child: subreaper, death signals and the terminal
// belong to the whole process.
var live atomic.Bool

// StateError is a start that the state of this process forbids.
type StateError struct{ Why string }

// Error implements error.
func (e *StateError) Error() string { return "cannot start: " + e.Why }

// FaultCode implements fault.Coded.
func (e *StateError) FaultCode() string { return errcode.Internal }

// FaultDetails implements fault.Coded.
func (e *StateError) FaultDetails() map[string]any { return nil }

// Start runs c under p with the mechanisms of s, which must have been selected for p.
// If it fails, nothing ran: the error is a *StepError, an *ExecError, or says why the
// start was refused. An error of c.Check is returned as it is, after the tree was killed.
func Start(ctx context.Context, p Profile, s Setup, c Cmd) (*Proc, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !s.valid {
		return nil, &StateError{Why: "no sandbox setup was selected"}
	}
	if !reflect.DeepEqual(p, s.profile) {
		return nil, &StateError{Why: "the sandbox setup was selected for another profile"}
	}
	if s.tier == T0 && p.Confine != ConfineNone {
		return nil, &UnconfinedError{Why: "no tier was selected"}
	}
	if p.Net.Mode == NetAllowlist && s.tier != T0 && (s.tier != T3 || c.Serve == nil) {
		return nil, &StateError{Why: "the run has no proxy for its hosts"}
	}
	if len(c.Argv) == 0 {
		return nil, &ExecError{Errno: syscall.EINVAL, Path: c.Path}
	}
	if !live.CompareAndSwap(false, true) {
		return nil, &StateError{Why: "a child of this process is running"}
	}
	proc, err := startWorker(&s, &c)
	if err != nil {
		live.Store(false)
		var exec *ExecError
		if s.tier != T0 && !errors.As(err, &exec) {
			// The machine may have changed under the answer of the probe; the next run asks anew.
			Forget(Cache{Dir: s.host.state})
		}
		return nil, err
	}
	return proc, nil
}

// startWorker opens all that the worker cannot open once it is confined, then hands over.
func startWorker(s *Setup, c *Cmd) (*Proc, error) {
	w := &worker{cmd: c, setup: s, ruleset: -1, dir: -1, started: make(chan startResult, 1)}
	defer w.close()
	private, err := HoldPrivate(s.profile.Private)
	if err != nil {
		return nil, err
	}
	w.hold(private)
	if err := linkCaches(s.profile.Private, s.profile.Links); err != nil {
		return nil, err
	}
	guard, err := guardNames(s.profile, s.host.state)
	if err != nil {
		return nil, err
	}
	w.guard = guard
	if guard != nil && s.tier == T3 {
		s.profile.Pins = guard.pins(&s.profile, c.Regenerable)
	}
	if err := applyLimits(s.profile.Limits); err != nil {
		return nil, err
	}
	if c.Dir != "" {
		fd, err := unix.Open(c.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &StepError{Step: "open working directory", Path: c.Dir, Err: err}
		}
		w.dir = fd
		if err := c.DirID.check(fd, c.Dir); err != nil {
			return nil, err
		}
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, &StepError{Step: "child subreaper", Err: err}
	}
	if s.overlays() {
		var lock *os.File
		if lock, w.layers, err = takeLayers(s.profile.Layers, s.profile.Overlays); err != nil {
			return nil, err
		}
		w.hold(lock)
	}
	w.staged = s.staged() || (c.Observe || c.Inside || c.Gate != nil) && s.tier != T0
	if c.Observe && s.tier != T0 {
		w.trail = followTrail(s.host.ABI)
	}
	if s.limits.cgroup != "" {
		if w.cgroup, err = makeCgroup(s.limits.cgroup, s.limits.max); err != nil {
			return nil, err
		}
	}
	if s.tier != T0 && !w.staged {
		if rs, rest, ok := c.Prepared.take(&s.profile, s.host.ABI); ok {
			w.ruleset, err = fillRuleset(rs, rest, s.host.ABI, terminalFiles(c))
		} else {
			w.ruleset, err = buildRuleset(&s.profile, s.host.ABI, terminalFiles(c))
		}
		if err != nil {
			return nil, err
		}
		// The worker lies in the child's Landlock domain, which lets the child trace it.
		// Not dumpable closes mem, environ, fd and ptrace; exec resets it for the child.
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return nil, &StepError{Step: "dumpable", Err: err}
		}
	}
	release := make(chan struct{})
	w.release = release
	go offMain(w.run)
	r := <-w.started
	if r.pid == 0 {
		return nil, r.err
	}
	if w.staged {
		if r.stage.ns && c.Before != nil {
			c.Before()
			r.stage.tell()
		}
		if r.pid, r.err = r.stage.await(w); r.pid == 0 {
			r.stage.kill()
			unix.Close(r.stage.fd)
			close(release)
			return nil, r.err
		}
		r.checked = "unknown"
		if c.Check != nil {
			r.checked, r.err = c.Check(r.pid)
		}
	}
	proc := &Proc{keep: s.profile.KeepLeftovers, held: w.held, pid: r.pid, checked: r.checked, stopped: c.Stopped, release: release, guard: guard, cgroup: w.cgroup,
		done: make(chan struct{})}
	proc.trail = w.trail
	w.guard, w.cgroup, w.held, w.trail = nil, nil, nil, nil // the process has them now
	if r.stage != nil {
		proc.listening = r.stage.listening
	}
	if r.stage != nil && r.stage.ns {
		proc.stage = r.stage
		proc.stage.tell()
		go proc.reapStage()
	} else {
		if r.stage != nil {
			unix.Close(r.stage.fd)
		}
		go proc.reap()
	}
	if r.err != nil {
		proc.KillTree(0)
		return nil, r.err
	}
	return proc, nil
}

// staged reports whether a thread of the wrapper cannot do it.
func (s *Setup) staged() bool {
	l := s.profile.Limits
	return s.tier == T3 || s.tier != T0 && (l.CPU != 0 || l.FileSize != 0 || l.Memory != 0 || s.limits.cgroup != "")
}

// terminalFiles are the terminal nodes of this run; all other terminals are the user's.
func terminalFiles(c *Cmd) []*os.File {
	switch {
	case c.Terminal == Detached:
		return nil
	case c.Ctty != nil:
		return []*os.File{c.Ctty}
	case c.Stdin != nil:
		return []*os.File{c.Stdin}
	}
	return nil
}

// Prepared is the part of a start that hardly depends on a decision: the default paths
// are looked up, and their rules stand in a ruleset. It is made while policy decides.
type Prepared struct {
	looked chan struct{} // files and grants are there
	done   chan struct{} // so is the ruleset, or none will be
	choice chan bool
	chosen sync.Once

	files   Files
	abi     int
	grants  []Grant // what the ruleset allows
	ruleset int     // -1 is none
}

// Prepare begins to look up the default paths. Hand Files to Derive and the result to
// Start through Cmd.Prepared. Nothing is confined by it, and a start that was decided
// otherwise does not use it.
func Prepare(home string, pathDirs []string) *Prepared {
	p := &Prepared{looked: make(chan struct{}), done: make(chan struct{}), choice: make(chan bool, 1), files: HostFiles(), ruleset: -1}
	go func() {
		defer close(p.done)
		d := deriver{in: Input{Home: home, Root: os.Getuid() == 0, Files: p.files}}
		d.system()
		d.home()
		p.grants = d.set.compact()
		// Looked up only: what is granted of PATH is judged, and one rule that the profile does not
		// have makes all of them useless.
		for _, dir := range pathDirs {
			d.pathEntry(dir)
		}
		close(p.looked)
		if subprocessNo, wanted := <-p.choice; wanted {
			p.build(subprocessNo)
		}
	}()
	return p
}

// Rules begins to build the rules of the default paths. Whether the run may start other
// programs is the one thing that they depend on; a wrong guess costs time only.
func (p *Prepared) Rules(subprocessNo bool) {
	p.chosen.Do(func() { p.choice <- subprocessNo })
}

// build makes the ruleset. If that fails there is none, and the start builds its own and
// reports the error.
func (p *Prepared) build(subprocessNo bool) {
	if p.abi, _, _ = landlockABI(); p.abi == 0 {
		return
	}
	if subprocessNo {
		for i := range p.grants {
			p.grants[i].Rights &^= Exec
		}
	}
	if rs, err := buildRuleset(&Profile{Read: p.grants}, p.abi, nil); err == nil {
		p.ruleset = rs
	}
}

// Files is the file system with what Prepare has looked up.
func (p *Prepared) Files() Files {
	<-p.looked
	return p.files
}

// Close frees what no start has taken.
func (p *Prepared) Close() {
	p.chosen.Do(func() { close(p.choice) })
	<-p.done
	if p.ruleset >= 0 {
		unix.Close(p.ruleset)
		p.ruleset = -1
	}
}

// take returns the ruleset and the grants of profile that are not in it, if it allows
// nothing that the profile does not and handles what the profile needs handled.
func (p *Prepared) take(profile *Profile, abi int) (ruleset int, rest []Grant, ok bool) {
	if p == nil || profile.Net.Mode == NetFull {
		return -1, nil, false
	}
	p.Rules(profile.SubprocessNo || profile.Ceiling == ExecClosed)
	<-p.done
	if p.ruleset < 0 || p.abi != abi {
		return -1, nil, false
	}
	all := profile.grants()
	for _, g := range p.grants {
		var have Rights
		for _, a := range all {
			if a.Path == g.Path || a.Dir && subpath.Within(g.Path, a.Path) {
				have |= a.Rights
			}
		}
		if !covered(have, g.Rights) {
			return -1, nil, false
		}
	}
	for _, a := range all {
		if !p.has(a) {
			rest = append(rest, a)
		}
	}
	ruleset, p.ruleset = p.ruleset, -1
	return ruleset, rest, true
}

func (p *Prepared) has(a Grant) bool {
	return slices.ContainsFunc(p.grants, func(g Grant) bool { return g.Path == a.Path && g.Dir == a.Dir && covered(g.Rights, a.Rights) })
}
