package run

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/tty"
	"github.com/atip-dev/atip-exec/sandbox"
)

// binding is how the child is connected to the outside. All of it is open before
// the start: the confined thread cannot open anything later.
type binding struct {
	stdin, stdout, stderr *os.File // the child's ends
	reads                 []drive.Source
	pass                  map[int]*os.File
	terminal              drive.Terminal
	opened                []*os.File   // closed once the child has them
	relay                 *drive.Relay // of a socket on stdin
}

func (x *execution) bind() error {
	b := &x.binds
	x.status.IO = &status.IO{}
	if err := x.bindStdin(); err != nil {
		return err
	}
	if err := x.guardStdin(); err != nil {
		return err
	}
	if err := x.bindTerminal(); err != nil {
		return err
	}
	for _, name := range [...]string{"stdout", "stderr"} {
		if name == "stdout" && b.stdout != nil {
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			return fault.New(errcode.OutOfResources, name+": "+err.Error())
		}
		b.reads = append(b.reads, r)
		b.opened = append(b.opened, w)
		if name == "stdout" {
			b.stdout = w
		} else {
			b.stderr = w
		}
	}
	x.status.IO.Terminal = b.terminal.Mode.String()
	b.pass = x.passed()
	if err := x.passText(); err != nil {
		return err
	}
	x.bindNested()
	for fd := range b.pass {
		x.status.IO.Passed = append(x.status.IO.Passed, fd)
	}
	return nil
}

// bindStdin decides what the child reads (spec of `interactive.stdin`).
func (x *execution) bindStdin() error {
	p, b := x.plan, &x.binds
	kind := stdinKind(p.machine.Stdin)
	x.status.IO.Stdin = kind
	null := func() error {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return fault.New(errcode.NoInput, err.Error())
		}
		b.stdin, x.status.IO.Stdin = f, "null"
		b.opened = append(b.opened, f)
		return nil
	}
	needs := p.steps[0].Call.Interactive.Stdin
	switch mode := p.inv.Stdin; mode {
	case "", "auto":
	case "null":
		return null()
	case "inherit":
		if kind == "directory" {
			return null() // it cannot be read, and would be a way around every path rule
		}
		b.stdin = p.machine.Stdin
		return nil
	default:
		// What was judged is opened: a link that came since leads elsewhere.
		real := place.Resolve(p.invPath(mode))
		f, err := regular.OpenNoFollow(real)
		if err != nil {
			return fault.New(errcode.NoInput, "--stdin: "+err.Error())
		}
		if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err == nil && !p.judgedOwn(name) {
			f.Close()
			return fault.New(errcode.NoInput, "--stdin: "+mode+" leads elsewhere than when it was judged")
		}
		b.stdin, x.status.IO.Stdin = f, "file"
		b.opened = append(b.opened, f)
		return nil
	}
	askpass := p.policies.Process().Askpass != "" && needs == "password"
	switch {
	case askpass && kind != "tty" && kind != "directory":
		// It asks the program that the policy names.
	case (needs == "required" || needs == "password") && kind == "null":
		return fault.New(errcode.NoInput, fmt.Sprintf("%s reads its input from stdin, which is empty", p.steps[0].Call.Tool)).WithFix("give the input on stdin, or run with `--stdin null`", "")
	case needs == "password" && kind != "tty":
		return fault.New(errcode.NoInput, fmt.Sprintf("%s asks for a password, and stdin is a %s", p.steps[0].Call.Tool, kind)).WithFix("run it on a terminal, or with `--stdin inherit`; a policy can name a program that asks, process.askpass", "")
	case kind == "directory":
		// An inherited directory would be a way around every path rule.
		return null()
	case (kind == "tty" || kind == "socket") && needs == "none":
		return null()
	}
	b.stdin = p.machine.Stdin
	return nil
}

// passed lists the descriptors that go on to the child under their numbers: read
// ends of pipes that a word of the command names, as a shell's <(…) does.
func (x *execution) passed() map[int]*os.File {
	out := map[int]*os.File{}
	for _, fd := range sandbox.InheritedFDs() {
		for _, word := range x.plan.Argv {
			if (word == fmt.Sprintf("/dev/fd/%d", fd) || word == fmt.Sprintf("/proc/self/fd/%d", fd)) && readOnlyPipe(fd) {
				out[fd] = os.NewFile(uintptr(fd), word)
			}
		}
	}
	return out
}

func stdinKind(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return "null"
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeCharDevice != 0 && isTerminal(f):
		return "tty"
	}
	return "null"
}

// started closes our copies of the child's ends and begins to copy its output.
func (b *binding) started(x *execution) {
	x.tail.To = x.out.Stderr
	b.closeOpened()
	outputs := [...]struct {
		name string
		to   io.Writer
		kind filter.Stream
	}{{"stdout", x.out.Stdout, outputOf(b.terminal.Mode)}, {"stderr", &x.tail, filter.Stderr}}
	for i, r := range b.reads {
		o := outputs[i]
		bound := x.bounded(o.name, o.to, o.kind)
		if bound != nil {
			o.to = bound
		}
		x.streams = append(x.streams, drive.StartStream(o.name, r, x.redact.Writer(o.to, o.kind), bound))
	}
}

func (b *binding) closeOpened() {
	for _, f := range b.opened {
		f.Close()
	}
	b.opened = nil
}

func (b *binding) close() {
	b.closeOpened()
	b.relay.End()
	for _, r := range b.reads {
		r.Close()
	}
	b.terminal.Restore(true)
}

// outputOf names what comes from the first descriptor: a terminal has the echo of
// its keys in it.
func outputOf(mode tty.Mode) filter.Stream {
	if mode == tty.Pty {
		return filter.PTY
	}
	return filter.Stdout
}

// bindTerminal decides which terminal the child gets and opens it.
func (x *execution) bindTerminal() (err error) {
	p, b := x.plan, &x.binds
	stdin := p.machine.Stdin
	t := &b.terminal
	t.Mode = tty.Choose(tty.Facts{Controlling: tty.IsControlling(int(stdin.Fd())), Passed: b.stdin == stdin, Asked: p.inv.Terminal, Screen: tty.IsTerminal(1),
		Declared: p.steps[0].Call.Interactive.TTY == atip.Yes})
	switch t.Mode {
	case tty.Handoff:
		if t.Loan, err = tty.Lend(stdin); err != nil {
			return err
		}
		// Read-only: tools must not print past the filter through their input.
		reopened, ok := tty.Reopen(stdin)
		if ok {
			b.stdin = reopened
			b.opened = append(b.opened, reopened)
		}
		if tty.IsTerminal(1) {
			// Output is filtered, so it cannot be the terminal itself; the command sees one. Where
			// the machine has none left, it sees a pipe.
			if screen, err := tty.OpenScreen(stdin); err == nil {
				t.Screen, b.stdout = screen, screen.Slave
				b.opened = append(b.opened, screen.Slave)
				b.reads = append(b.reads, drive.Master{Pair: screen})
			}
		}
	case tty.Pty:
		if t.Pair, err = tty.OpenPty(stdin); err != nil {
			return err
		}
		t.Keys = b.stdin
		b.stdin, b.stdout = t.Pair.Slave, t.Pair.Slave
		b.opened = append(b.opened, t.Pair.Slave)
		b.reads = append(b.reads, drive.Master{Pair: t.Pair})
	}
	return nil
}
