package run

import (
	"io"
	"os"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/tty"
	"github.com/atip-dev/atip-exec/sandbox"
)

// source is where an output of the child is read from.
type source interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// master reads a pseudo-terminal; closing it hangs up.
type master struct{ *tty.Pair }

func (m master) SetReadDeadline(t time.Time) error { return m.Master.SetReadDeadline(t) }

// terminal is the terminal of a run, if it has one.
type terminal struct {
	mode tty.Mode
	pair *tty.Pair // Pty
	loan *tty.Loan // Handoff
	keys *os.File  // what is relayed to a Pty
}

// bindTerminal decides which terminal the child gets and opens it.
func (x *execution) bindTerminal() (err error) {
	p, b := x.plan, &x.binds
	stdin := p.machine.Stdin
	t := &b.terminal
	t.mode = tty.Choose(tty.Facts{Controlling: tty.IsControlling(int(stdin.Fd())), Passed: b.stdin == stdin, Asked: p.inv.Terminal, Screen: tty.IsTerminal(1),
		Declared: p.steps[0].Call.Interactive.TTY == atip.Yes})
	switch t.mode {
	case tty.Handoff:
		if t.loan, err = tty.Lend(stdin); err != nil {
			return err
		}
		// Read-only: tools must not print past the filter through their input.
		reopened, ok := tty.Reopen(stdin)
		if ok {
			b.stdin = reopened
			b.opened = append(b.opened, reopened)
		}
	case tty.Pty:
		if t.pair, err = tty.OpenPty(stdin); err != nil {
			return err
		}
		t.keys = b.stdin
		b.stdin, b.stdout = t.pair.Slave, t.pair.Slave
		b.opened = append(b.opened, t.pair.Slave)
		b.reads = append(b.reads, master{t.pair})
	}
	return nil
}

// apply puts the terminal into the command that is started.
func (t *terminal) apply(cmd *sandbox.Cmd, stdin *os.File) {
	switch t.mode {
	case tty.Handoff:
		cmd.Terminal, cmd.Ctty, cmd.Foreground = sandbox.Handoff, stdin, t.loan.Front()
	case tty.Pty:
		cmd.Terminal, cmd.Ctty = sandbox.Pty, t.pair.Slave
	}
}

// started begins to relay once the child has its terminal.
func (t *terminal) started() error {
	if t.mode == tty.Pty {
		return t.pair.Relay(t.keys)
	}
	return nil
}

// restore gives the terminal back as it was.
func (t *terminal) restore(signalled bool) {
	switch {
	case t.pair != nil:
		t.pair.Close()
	case t.loan != nil:
		// Without a terminal there is nothing to give back.
		_ = t.loan.Return(signalled)
		t.loan = nil
	}
}

// stopped is called when the child was stopped by a signal.
func (t *terminal) stopped(x *execution, pid int, sig syscall.Signal) {
	if t.loan != nil {
		if err := t.loan.Stopped(pid, sig); err != nil {
			x.warn(err.Error())
		}
	}
}

// forward passes a signal on; a stop takes us along, so that the caller's shell
// sees its job stop.
func (x *execution) forward(sig os.Signal) {
	t := &x.binds.terminal
	switch {
	case stops(sig) && t.loan != nil:
		// The child stops, and what follows is the business of stopped.
		x.proc.Signal(sig)
	case stops(sig):
		if t.pair != nil {
			t.pair.Pause()
		}
		x.proc.Signal(stopSignal())
		stopSelf()
	case continues(sig):
		if t.pair != nil {
			t.pair.Resume()
		}
		x.proc.Signal(sig)
	default:
		x.note("signal", sig.String())
		if t.pair != nil && signalGroup(t.pair.Foreground(), sig) {
			return
		}
		x.proc.Signal(sig)
	}
}
