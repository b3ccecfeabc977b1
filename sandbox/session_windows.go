package sandbox

import (
	"os"
	"syscall"
)

func session(Cmd) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// Signal ends the child on any signal but an interrupt, which Windows cannot direct.
func (p *Proc) Signal(sig os.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	if sig == os.Interrupt {
		return syscall.EWINDOWS
	}
	return p.process.Kill()
}

// Sweep has nothing to go by: the child is not in a job object.
func (p *Proc) Sweep() Tree { return Tree{Method: "process"} }

func exitOf(state *os.ProcessState) Exit {
	return Exit{Code: state.ExitCode(), User: state.UserTime(), Sys: state.SystemTime()}
}
