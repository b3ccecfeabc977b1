package drive

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/internal/signals"
	"github.com/atip-dev/atip-exec/internal/tty"
	"github.com/atip-dev/atip-exec/sandbox"
)

const (
	ReadSize  = 64 << 10
	HeldGrace = 200 * time.Millisecond // a pipe that somebody still holds after the child ended
)

// Stream copies one output of the child through the filter, in its own goroutine.
type Stream struct {
	from Source
	To   *filter.Writer
	Name string

	Bound *filter.Bound // what to writes into, nil if the stream is not bounded

	mu    sync.Mutex
	ended bool // the child is gone: wait for heldGrace only

	Done  chan struct{}
	End   string // eof, held, epipe, error
	err   error  // of the output, not of the child
	panic any
}

// StartStream copies until the output ends, or for a moment longer than the child lives.
func StartStream(name string, from Source, to *filter.Writer, bound *filter.Bound) *Stream {
	s := &Stream{from: from, To: to, Name: name, Bound: bound, Done: make(chan struct{})}
	go s.copy()
	return s
}

// copy never blocks the child for longer than its reader does: a slow reader
// blocks us, then the pipe, then the child, so that memory stays constant.
func (s *Stream) copy() {
	defer close(s.Done)
	defer func() {
		if r := recover(); r != nil {
			// Nothing raw may follow a filter that failed, and a child in the middle
			// of its work must not die of a full pipe: drain to the end.
			s.panic, s.End = r, "error"
			s.from.SetReadDeadline(time.Time{})
			io.Copy(io.Discard, s.from)
		}
	}()
	buf := make([]byte, ReadSize)
	for {
		s.arm()
		n, err := s.from.Read(buf)
		if n > 0 {
			if _, werr := s.To.Write(buf[:n]); werr != nil {
				s.outputFailed(werr)
				return
			}
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, os.ErrDeadlineExceeded):
			if s.over() {
				s.End = "held"
			} else {
				if ierr := s.To.Idle(); ierr != nil {
					s.outputFailed(ierr)
					return
				}
				continue
			}
		default:
			s.End = "eof"
		}
		cerr := s.To.Close()
		if cerr == nil && s.Bound != nil {
			cerr = s.Bound.Close()
		}
		switch {
		case filter.Failed(cerr):
			s.panic, s.End = cerr, "error"
		case cerr != nil:
			s.outputFailed(cerr)
		}
		return
	}
}

// arm sets how long the next read may take: 25 ms while bytes are held back for a
// possible secret, 200 ms once the child is gone, else forever.
func (s *Stream) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		s.from.SetReadDeadline(time.Now().Add(HeldGrace))
	case s.To.Held() > 0:
		s.from.SetReadDeadline(time.Now().Add(filter.IdleAfter))
	default:
		s.from.SetReadDeadline(time.Time{})
	}
}

// ChildEnded starts the grace for whoever still holds the other end.
func (s *Stream) ChildEnded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.from.SetReadDeadline(time.Now().Add(HeldGrace))
}

func (s *Stream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// outputFailed closes the read end, so that the child learns of it as it would
// without us: by its own SIGPIPE.
func (s *Stream) outputFailed(err error) {
	s.End = "error"
	if errors.Is(err, syscall.EPIPE) {
		s.End = "epipe"
	} else {
		s.err = err
	}
	s.from.Close()
}

// Panicked returns what the filter of a finished stream panicked with.
func (s *Stream) Panicked() any { return s.panic }

// Failure is why the output could not be written, nil for a reader that left.
func (s *Stream) Failure() error { return s.err }

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
	case signals.Stops(sig) && t.Loan != nil:
		// The child stops, and what follows is the business of stopped.
		child.Signal(sig)
	case signals.Stops(sig):
		if t.Pair != nil {
			t.Pair.Pause()
		}
		child.Signal(stopSignal())
		signals.StopSelf()
	case signals.Continues(sig):
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

// tailSize is how much of the end of standard error a hint is guessed from.
const tailSize = 4 << 10

// Tail passes a stream on and remembers its end. What it sees is redacted already.
type Tail struct {
	To   io.Writer
	Last []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.Last = append(t.Last, p[max(0, len(p)-tailSize):]...)
	if over := len(t.Last) - tailSize; over > 0 {
		t.Last = append(t.Last[:0], t.Last[over:]...)
	}
	return t.To.Write(p)
}

// Network is the proxy of a run that reaches some hosts and no others. A nil one is that of a run
// without a proxy.
type Network struct {
	Report   proxy.Report     // what the run asked the proxy for
	Refusals []sandbox.Denial // of the proxy

	proxy   *proxy.Server
	forward map[int]string // port inside the run: service of this machine
	warn    func(string)
	clean   func(string) string
}

// NewNetwork starts the proxy of a run. Host names are cleaned before they are shown.
func NewNetwork(rules *proxy.Rules, forward map[int]string, warn func(string), clean func(string) string) *Network {
	return &Network{proxy: proxy.New(rules), forward: forward, warn: warn, clean: clean}
}

// Serve is how the sandbox hands over the listeners of the run.
func (x *Network) Serve(list []sandbox.Listener) {
	for _, l := range list {
		switch l.Service {
		case "http":
			x.proxy.ServeHTTP(l.File)
		case "socks":
			x.proxy.ServeSOCKS(l.File)
		case "direct":
			x.proxy.ServeDirect(l.File, l.Host, l.Port)
		default:
			if err := x.proxy.ServeForward(l.File, x.forward[l.Port]); err != nil {
				x.warn(err.Error())
			}
		}
	}
}

// maxRefusals is how many refusals are told one by one.
const maxRefusals = 20

// Settle ends the proxy and notes what it refused. Host names are words of the command and may
// carry what it read.
func (x *Network) Settle() {
	if x == nil {
		return
	}
	x.Report = x.proxy.Close()
	type refusal struct{ host, reason string }
	seen, order := map[refusal]int{}, []refusal{}
	texts := map[refusal]string{}
	for i := range x.Report.Log {
		e := &x.Report.Log[i]
		e.Host = x.clean(e.Host)
		if e.Decision != "deny" {
			continue
		}
		host := e.Host
		if e.Port != 0 {
			host += ":" + strconv.Itoa(e.Port)
		}
		r := refusal{host, e.Reason}
		if seen[r]++; seen[r] == 1 {
			order = append(order, r)
			texts[r] = e.Explain()
		}
	}
	for i, r := range order {
		if i == maxRefusals {
			x.warn(strconv.Itoa(len(order)-i) + " more hosts were refused; the status file and the audit record list them")
			break
		}
		x.Refusals = append(x.Refusals, sandbox.Refused(r.host, texts[r], seen[r]))
	}
}

// Refused reports whether the proxy refused a host.
func (x *Network) Refused() bool { return x != nil && len(x.Refusals) > 0 }

// Failures says why granted hosts were not reached by a command that failed: its
// client can only tell what the proxy answered.
func (x *Network) Failures() {
	if x == nil {
		return
	}
	var told []string
	for i := range x.Report.Log {
		e := &x.Report.Log[i]
		if e.Decision != "allow" || e.Reason == "" || len(told) == maxRefusals {
			continue
		}
		text := "could not connect to " + e.Host + ":" + strconv.Itoa(e.Port) + ": " + e.Explain()
		if !slices.Contains(told, text) {
			told = append(told, text)
			x.warn(text)
		}
	}
}

// receipt is what was enforced, with what happened on the network.
type receipt struct {
	sandbox.Receipt
	Net netReceipt `json:"net"`
}

type netReceipt struct {
	sandbox.Net
	*proxy.Report
}

// Receipt is what was enforced, with what happened on the network.
func (x *Network) Receipt(r sandbox.Receipt) any {
	if x == nil {
		return r
	}
	return receipt{Receipt: r, Net: netReceipt{r.Net, &x.Report}}
}
