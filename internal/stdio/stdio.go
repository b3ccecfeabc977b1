// Package stdio connects the child of a run to the outside: its descriptors, its terminal, and the
// filters that its output passes.
package stdio

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/tty"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Binding is how the child is connected to the outside. All of it is open before
// the start: the confined thread cannot open anything later.
type Binding struct {
	Stdin, Stdout, Stderr *os.File         // the child's ends
	Pass                  map[int]*os.File // descriptors that go on to the child under their numbers
	Terminal              drive.Terminal
	IO                    *status.IO // the same for the status

	plan   *plan.Plan
	reads  []drive.Source
	opened []*os.File   // closed once the child has them
	relay  *drive.Relay // of a socket on stdin
}

// New is the binding of a plan, of which nothing is open yet.
func New(p *plan.Plan) *Binding { return &Binding{plan: p, IO: &status.IO{}} }

// Bind opens everything for a child of this process.
func (b *Binding) Bind() error {
	if err := b.bindInput(); err != nil {
		return err
	}
	if err := b.bindTerminal(); err != nil {
		return err
	}
	if err := b.bindOutput(); err != nil {
		return err
	}
	b.IO.Terminal = b.Terminal.Mode.String()
	b.Pass = b.passed()
	if err := b.passText(); err != nil {
		return err
	}
	b.IO.Passed = slices.AppendSeq(b.IO.Passed, maps.Keys(b.Pass))
	return nil
}

// BindDetached opens what a child of another process gets: streams, and no terminal.
func (b *Binding) BindDetached() error {
	b.IO.Terminal = "detached"
	if err := b.bindInput(); err != nil {
		return err
	}
	return b.bindOutput()
}

// Hand gives the child one more descriptor.
func (b *Binding) Hand(fd int, f *os.File) {
	b.Pass[fd] = f
	b.IO.Passed = append(b.IO.Passed, fd)
	b.opened = append(b.opened, f)
}

func (b *Binding) bindInput() error {
	if err := b.bindStdin(); err != nil {
		return err
	}
	return b.guardStdin()
}

// bindOutput makes pipes for the streams that are not a terminal's.
func (b *Binding) bindOutput() error {
	for _, name := range [...]string{"stdout", "stderr"} {
		if name == "stdout" && b.Stdout != nil {
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			return fault.New(errcode.OutOfResources, name+": "+err.Error())
		}
		b.reads = append(b.reads, r)
		b.opened = append(b.opened, w)
		if name == "stdout" {
			b.Stdout = w
		} else {
			b.Stderr = w
		}
	}
	return nil
}

// bindStdin decides what the child reads (spec of `interactive.stdin`).
func (b *Binding) bindStdin() error {
	p := b.plan
	kind := plan.StdinKind(p.Machine.Stdin)
	b.IO.Stdin = kind
	null := func() error {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return fault.New(errcode.NoInput, err.Error())
		}
		b.Stdin, b.IO.Stdin = f, "null"
		b.opened = append(b.opened, f)
		return nil
	}
	needs := p.Steps[0].Call.Interactive.Stdin
	switch mode := p.Invocation.Stdin; mode {
	case "", "auto":
	case "null":
		return null()
	case "inherit":
		if kind == "directory" {
			return null() // it cannot be read, and would be a way around every path rule
		}
		b.Stdin = p.Machine.Stdin
		return nil
	default:
		// What was judged is opened: a link that came since leads elsewhere.
		real := place.Resolve(p.PathOf(mode))
		f, err := regular.OpenNoFollow(real)
		if err != nil {
			return fault.New(errcode.NoInput, "--stdin: "+err.Error())
		}
		if name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd())); err == nil && !p.JudgedOwn(name) {
			f.Close()
			return fault.New(errcode.NoInput, "--stdin: "+mode+" leads elsewhere than when it was judged")
		}
		b.Stdin, b.IO.Stdin = f, "file"
		b.opened = append(b.opened, f)
		return nil
	}
	askpass := p.Policies.Process().Askpass != "" && needs == "password"
	switch {
	case askpass && kind != "tty" && kind != "directory":
		// It asks the program that the policy names.
	case (needs == "required" || needs == "password") && kind == "null":
		return fault.New(errcode.NoInput, fmt.Sprintf("%s reads its input from stdin, which is empty", p.Steps[0].Call.Tool)).WithFix("give the input on stdin, or run with `--stdin null`", "")
	case needs == "password" && kind != "tty":
		return fault.New(errcode.NoInput, fmt.Sprintf("%s asks for a password, and stdin is a %s", p.Steps[0].Call.Tool, kind)).WithFix("run it on a terminal, or with `--stdin inherit`; a policy can name a program that asks, process.askpass", "")
	case kind == "directory":
		// An inherited directory would be a way around every path rule.
		return null()
	case (kind == "tty" || kind == "socket") && needs == "none":
		return null()
	}
	b.Stdin = p.Machine.Stdin
	return nil
}

// passed lists the descriptors that go on to the child under their numbers: read
// ends of pipes that a word of the command names, as a shell's <(…) does.
func (b *Binding) passed() map[int]*os.File {
	out := map[int]*os.File{}
	for _, fd := range sandbox.InheritedFDs() {
		for _, word := range b.plan.Argv {
			if (word == fmt.Sprintf("/dev/fd/%d", fd) || word == fmt.Sprintf("/proc/self/fd/%d", fd)) && readOnlyPipe(fd) {
				out[fd] = os.NewFile(uintptr(fd), word)
			}
		}
	}
	return out
}

// Copy closes our copies of the child's ends and begins to copy its output through the filters of
// set. most bounds what is shown of a stream, 0 for no bound of its own.
func (b *Binding) Copy(set *filter.Set, stdout, stderr io.Writer, most int64) []*drive.Stream {
	b.CloseOpened()
	outputs := [...]struct {
		name string
		to   io.Writer
		kind filter.Stream
	}{{"stdout", stdout, outputOf(b.Terminal.Mode)}, {"stderr", stderr, filter.Stderr}}
	var streams []*drive.Stream
	for i, r := range b.reads {
		o := outputs[i]
		bound := b.bounded(o.name, o.to, o.kind, most)
		if bound != nil {
			o.to = bound
		}
		streams = append(streams, drive.StartStream(o.name, r, set.Writer(o.to, o.kind), bound))
	}
	return streams
}

// CloseOpened closes what only the child keeps.
func (b *Binding) CloseOpened() {
	for _, f := range b.opened {
		f.Close()
	}
	b.opened = nil
}

// Close ends the connection.
func (b *Binding) Close() {
	b.CloseOpened()
	b.relay.End()
	for _, r := range b.reads {
		r.Close()
	}
	b.Terminal.Restore(true)
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
func (b *Binding) bindTerminal() (err error) {
	p := b.plan
	stdin := p.Machine.Stdin
	t := &b.Terminal
	t.Mode = tty.Choose(tty.Facts{Controlling: tty.IsControlling(int(stdin.Fd())), Passed: b.Stdin == stdin, Asked: p.Invocation.Terminal, Screen: tty.IsTerminal(1),
		Declared: p.Steps[0].Call.Interactive.TTY == atip.Yes})
	switch t.Mode {
	case tty.Handoff:
		if t.Loan, err = tty.Lend(stdin); err != nil {
			return err
		}
		// Read-only: tools must not print past the filter through their input.
		reopened, ok := tty.Reopen(stdin)
		if ok {
			b.Stdin = reopened
			b.opened = append(b.opened, reopened)
		}
		if tty.IsTerminal(1) {
			// Output is filtered, so it cannot be the terminal itself; the command sees one. Where
			// the machine has none left, it sees a pipe.
			if screen, err := tty.OpenScreen(stdin); err == nil {
				t.Screen, b.Stdout = screen, screen.Slave
				b.opened = append(b.opened, screen.Slave)
				b.reads = append(b.reads, drive.Master{Pair: screen})
			}
		}
	case tty.Pty:
		if t.Pair, err = tty.OpenPty(stdin); err != nil {
			return err
		}
		t.Keys = b.Stdin
		b.Stdin, b.Stdout = t.Pair.Slave, t.Pair.Slave
		b.opened = append(b.opened, t.Pair.Slave)
		b.reads = append(b.reads, drive.Master{Pair: t.Pair})
	}
	return nil
}

// bounded shows head and tail of a stream that is longer than policy or caller want to see,
// nil for no bound. What is left out is kept, redacted, where the notice says. A terminal is
// not bounded: what it asks would not be seen.
func (b *Binding) bounded(name string, to io.Writer, kind filter.Stream, tools int64) *filter.Bound {
	limit := int64(0)
	for _, most := range [...]int64{b.plan.Policies.Output().MaxBytes, tools, b.plan.Invocation.MaxOutput} {
		if most > 0 && (limit == 0 || most < limit) {
			limit = most
		}
	}
	if limit == 0 || kind == filter.PTY {
		return nil
	}
	return filter.NewBound(to, filter.Limits{Max: limit}, filter.Save{Dir: filepath.Join(b.plan.Dirs.Cache, "output"), Name: b.plan.Run + "." + name})
}

// passText gives the child the read end of a pipe with the text on it.
func (b *Binding) passText() error {
	if b.plan.LongText == "" {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fault.New(errcode.OutOfResources, "pipe: "+err.Error())
	}
	b.Pass[b.plan.TextFD] = r
	b.opened = append(b.opened, r)
	go func() {
		defer w.Close()
		io.WriteString(w, b.plan.LongText) // a shell that ends early reads no further
	}()
	return nil
}
