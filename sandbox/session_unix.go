//go:build unix && !linux

package sandbox

import (
	"os"
	"syscall"
)

func session(c Cmd) *syscall.SysProcAttr {
	if c.Terminal == Handoff {
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{Setsid: true, Setctty: c.Terminal == Pty}
}

// Signal sends sig to the child's process group.
func (p *Proc) Signal(sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return syscall.EINVAL
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	return syscall.Kill(-p.process.Pid, s)
}

// Sweep kills what is left of the child's group. Processes that made a session of
// their own are out of reach here.
func (p *Proc) Sweep() Tree {
	if syscall.Kill(-p.process.Pid, syscall.SIGKILL) == nil {
		return Tree{Method: "group", Leftovers: 1}
	}
	return Tree{Method: "group"}
}

func exitOf(state *os.ProcessState) Exit {
	e := Exit{Code: state.ExitCode(), User: state.UserTime(), Sys: state.SystemTime()}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.Signal, e.Core, e.Code = ws.Signal(), ws.CoreDump(), 128+int(ws.Signal())
	}
	return e
}
