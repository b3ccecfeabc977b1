//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Init does nothing: the system's own defaults close descriptors to children.
func Init() {}

// InheritedFDs knows of none.
func InheritedFDs() []int { return nil }

// Prepared is nothing where no ruleset is ever built.
type Prepared struct{}

// Prepare does nothing.
func Prepare(string, []string) *Prepared { return &Prepared{} }

// Files is the file system of this machine.
func (p *Prepared) Files() Files { return HostFiles() }

// Rules does nothing.
func (p *Prepared) Rules(bool) {}

// Close does nothing.
func (p *Prepared) Close() {}

// Probe reports that nothing can be enforced on this system.
func Probe(Cache) (Host, error) { return Host{OS: runtime.GOOS}, nil }

// Forget drops nothing, as nothing is kept.
func Forget(Cache) {}

// Stale reports false: nothing is kept.
func Stale(Setup, error) bool { return false }

// Reprobe has nothing to ask.
func Reprobe(_ Cache, h Host) (now Host, differs bool) { return h, false }

// FindOuter finds none.
func FindOuter() *Outer { return nil }

func (s *Setup) program() Program { return Program{} }

// Denials is not known on this system.
func (p *Proc) Denials() (list []Denial, observed bool) { return nil, false }

// OutOfMemory is not known on this system.
func (p *Proc) OutOfMemory() bool { return false }

// Proc is a started process.
type Proc struct {
	process *os.Process
	checked string
	done    chan struct{}

	mu     sync.Mutex
	reaped bool
	exit   Exit
	err    error
}

// Start runs c without any confinement, which the setup must spell out.
func Start(ctx context.Context, p Profile, s Setup, c Cmd) (*Proc, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !s.valid || s.tier != T0 || p.Confine != ConfineNone {
		return nil, Unconfined("no sandbox on " + runtime.GOOS)
	}
	attr := &os.ProcAttr{Dir: c.Dir, Env: c.Env, Files: []*os.File{c.Stdin, c.Stdout, c.Stderr}, Sys: session(c)}
	process, err := os.StartProcess(c.Path, c.Argv, attr)
	if err != nil {
		var errno syscall.Errno
		errors.As(err, &errno)
		return nil, &ExecError{Errno: errno, Path: c.Path}
	}
	proc := &Proc{process: process, checked: "unknown", done: make(chan struct{})}
	go proc.reap()
	if c.Check != nil {
		if proc.checked, err = c.Check(process.Pid); err != nil {
			proc.KillTree(0)
			return nil, err
		}
	}
	return proc, nil
}

func (p *Proc) reap() {
	state, err := p.process.Wait()
	p.mu.Lock()
	p.reaped, p.err = true, err
	if state != nil {
		p.exit = exitOf(state)
	}
	p.mu.Unlock()
	close(p.done)
}

// Settlement is empty: a run that is not confined can change everything.
func (p *Proc) Settlement() Settlement { return Settlement{} }

// Pid returns the process id of the child.
func (p *Proc) Pid() int { return p.process.Pid }

// Wait returns when the child has ended.
func (p *Proc) Wait() (Exit, error) {
	<-p.done
	exit := p.exit
	exit.Checked = p.checked
	return exit, p.err
}

// Done is closed when the child has ended.
func (p *Proc) Done() <-chan struct{} { return p.done }

// KillTree ends the child's process group: politely, and after grace without mercy.
func (p *Proc) KillTree(grace time.Duration) Tree {
	p.EndTree(grace)
	return p.Sweep()
}

// EndTree is KillTree without the sweep.
func (p *Proc) EndTree(grace time.Duration) bool {
	if grace > 0 {
		_ = p.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(grace):
		}
	}
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
	return true
}

// HoldPrivate does nothing.
func HoldPrivate(string) (*os.File, error) { return nil, nil }
