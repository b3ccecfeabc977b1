package sandbox

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// PinMain ties the calling goroutine to its thread. Call it from init of the
// program, so that the confined worker can never be the main thread: a thread
// confined once stays so for good.
func PinMain() {}

// Init prepares the process; it is the first statement of main.
func Init() {}

// InheritedFDs returns the descriptors from 3 up that the caller left open.
func InheritedFDs() []int { return nil }

// Probe finds out by trying what this machine can enforce.
func Probe(c Cache) (Host, error) { return Host{}, errors.New("sandbox cannot be probed") }

// Proc is a started process and its descendants.
type Proc struct{ pid int }

// Start runs c under p with the mechanisms of s. If it fails, nothing ran: the
// error is a *StepError, an *ExecError, or says why the setup was refused.
func Start(ctx context.Context, p Profile, s Setup, c Cmd) (*Proc, error) {
	return nil, &StepError{Step: "start", Err: errors.New("no setup was selected")}
}

// Pid returns the process id of the child.
func (p *Proc) Pid() int { return p.pid }

// Wait returns when the child has ended.
func (p *Proc) Wait() (Exit, error) { return Exit{}, errors.New("child lost") }

// Signal sends sig to the group of the child.
func (p *Proc) Signal(sig os.Signal) error { return errors.ErrUnsupported }

// KillTree ends the whole tree: politely, then after grace without mercy.
func (p *Proc) KillTree(grace time.Duration) Tree { return Tree{} }

// Sweep ends what the child left behind. Call it after Wait.
func (p *Proc) Sweep() Tree { return Tree{} }

type hostFiles struct{}

func (hostFiles) Resolve(path string) (string, bool, error) { return "", false, syscall.ENOENT }
func (hostFiles) List(dir string) ([]string, error)         { return nil, syscall.ENOENT }
