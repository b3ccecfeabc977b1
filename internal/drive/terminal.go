package drive

import (
	"io"
	"os"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/tty"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Source is where an output of the child is read from.
type Source interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// Master reads a pseudo-terminal; closing it hangs up.
type Master struct{ *tty.Pair }

func (m Master) SetReadDeadline(t time.Time) error { return m.Master.SetReadDeadline(t) }

// Terminal is the terminal of a run, if it has one.
type Terminal struct {
	Mode tty.Mode
	Pair *tty.Pair // Pty
	Loan *tty.Loan // Handoff
	Keys *os.File  // what is relayed to a Pty

	Screen *tty.Pair // Handoff: what stands for the terminal on standard output
}

// Apply puts the terminal into the command that is started.
func (t *Terminal) Apply(cmd *sandbox.Cmd, stdin *os.File) {
	switch t.Mode {
	case tty.Handoff:
		cmd.Terminal, cmd.Ctty, cmd.Foreground = sandbox.Handoff, stdin, t.Loan.Front()
	case tty.Pty:
		cmd.Terminal, cmd.Ctty = sandbox.Pty, t.Pair.Slave
	}
}

// Started begins to relay once the child has its terminal.
func (t *Terminal) Started() error {
	if t.Mode == tty.Pty {
		return t.Pair.Relay(t.Keys)
	}
	return nil
}

// Restore gives the terminal back as it was.
func (t *Terminal) Restore(signalled bool) {
	if t.Screen != nil {
		t.Screen.Close()
	}
	switch {
	case t.Pair != nil:
		t.Pair.Close()
	case t.Loan != nil:
		// Without a terminal there is nothing to give back.
		_ = t.Loan.Return(signalled)
		t.Loan = nil
	}
}

// Stopped is called when the child was stopped by a signal.
func (t *Terminal) Stopped(pid int, sig syscall.Signal) error {
	if t.Loan == nil {
		return nil
	}
	return t.Loan.Stopped(pid, sig)
}

// Forward passes a signal on to the child; a stop takes this process along, so that the
// caller's shell sees its job stop. It returns false where the signal did not concern the job.
func (t *Terminal) Forward(sig os.Signal, child interface{ Signal(os.Signal) error }) (job bool) {
	switch {
	case Stops(sig) && t.Loan != nil:
		// The child stops, and what follows is the business of stopped.
		child.Signal(sig)
	case Stops(sig):
		if t.Pair != nil {
			t.Pair.Pause()
		}
		child.Signal(stopSignal())
		stopSelf()
	case continues(sig):
		if t.Pair != nil {
			t.Pair.Resume()
		}
		child.Signal(sig)
	default:
		if t.Pair == nil || !signalGroup(t.Pair.Foreground(), sig) {
			child.Signal(sig)
		}
		return false
	}
	return true
}
