package nest

import (
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/signals"
)

// What the runs inside one run may ask for.
const (
	maxAnswered   = 256 // questions in all
	maxAnsweredBy = 4   // at a time

	// lastResort is for a process that does not end although it was told to three times:
	// far more than it takes on any machine to end a command and to write the record of it.
	lastResort = 30 * time.Second
)

// broker answers the questions of runs inside. It starts a process for each, as a run has
// one child only, whose signals and end are those of the process; and what plans there
// cannot take this run with it.
type broker struct {
	mu      sync.Mutex
	closed  bool
	total   int
	asked   int // questions at work
	own     []OwnRun
	owned   int            // own steps in all
	places  chan struct{}  // of own steps at work
	settled bool           // the host is
	expects int            // own steps of the text that were not asked for yet
	ahead   map[int]*ahead // by the pid of the stand-in that is to ask
	ready   chan *worker   // one that waits for the next of them
	running map[*helper]bool
	ended   sync.WaitGroup
}

// helper is one command that such a process carries out.
type helper struct {
	grace time.Duration
	stops bool          // it is stopped and continued as well
	gone  chan struct{} // closed if its caller gave up before there was a process; nil where callers cannot
	mu    sync.Mutex
	proc  *os.Process
	early int  // the signal by which its caller gave up
	over  bool // its result is here: it is signalled no more
}

// worker is such a process, which dies with the thread that started it, and so with this run.
type worker struct {
	*os.Process
	control *os.File
	over    chan struct{} // closed at its end
}

// discard ends a process that nothing was asked of.
func (p *worker) discard() {
	_ = p.Kill()
	_, _ = p.Wait()
	p.control.Close()
	close(p.over)
}

// question starts the answer to a message that came with descriptors: where to answer, and
// the three of the command.
func (l *Listener) question(raw []byte, files []*os.File, pid int) {
	drop := func() {
		for _, f := range files {
			f.Close()
		}
	}
	var q Question
	if len(files) == 4 && answerSocket(files[0]) && l.host.Stands != nil && json.Unmarshal(raw, &q) == nil && q.Kind == "own" {
		l.stand(files, pid)
		return
	}
	if !l.host.Nests || len(files) != 4 || !answerSocket(files[0]) || json.Unmarshal(raw, &q) != nil || q.Kind != "start" || len(q.Cwd) == 0 || q.Cwd[0] != '/' || !q.IsShell && len(q.Argv) == 0 {
		drop()
		return
	}
	refuse := func(f *fault.Fault) {
		sendNow(files[0], Failed(f).encode())
		drop()
	}
	if !passable(files[1:]) {
		refuse(fault.New(errcode.CredentialWithheld, "the parent run accepts only pipes for the output of a command"))
		return
	}
	if l.host.Withheld {
		refuse(fault.New(errcode.CredentialWithheld, "the policy withholds credentials from what runs inside"))
		return
	}
	b := &l.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.total == maxAnswered || b.asked == maxAnsweredBy {
		refuse(fault.New(errcode.OutOfResources, "the parent run accepts no further requests"))
		return
	}
	h := &helper{grace: l.host.Grace}
	b.total++
	b.asked++
	b.running[h] = true
	b.ended.Go(func() {
		order := l.host.Order()
		order.Question = q
		go h.watch(files[0])
		sendNow(files[0], l.help(h, order, files, nil))
		drop()
		b.mu.Lock()
		b.asked--
		delete(b.running, h)
		b.mu.Unlock()
	})
}

// add notes a command that is to be ended with the run; false if that has begun.
func (b *broker) add(h *helper) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.running[h] = true
	}
	return !b.closed
}

// stop ends all that was asked for and does not wait.
func (b *broker) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for h := range b.running {
		h.end()
	}
}

// help has a process carry out an order, by one that has begun with it if there is one, and ends it when its
// caller is gone. It returns the result.
func (l *Listener) help(h *helper, order Order, files []*os.File, begun *ahead) (result []byte) {
	lost := func(why string) []byte { return Failed(fault.New(errcode.LostChild, why)).encode() }
	raw, passed, err := []byte(goAhead), []*os.File(nil), error(nil)
	var p *worker
	if begun != nil {
		p = begun.worker
	} else {
		if raw = order.encode(); raw == nil {
			return lost("the question does not fit into an order")
		}
		passed = files[1:]
		select {
		case p = <-l.broker.ready:
			l.prepare()
		default:
			if p, err = l.host.begin(); err != nil {
				return lost("no process can be started: " + err.Error())
			}
		}
	}
	defer close(p.over)
	defer p.control.Close()
	h.mu.Lock()
	if h.proc = p.Process; h.early != 0 {
		_ = p.Signal(syscall.Signal(h.early))
	}
	h.mu.Unlock()
	result = make([]byte, maxAnswer)
	n := 0
	err = send(p.control, raw, passed...)
	for _, f := range files[1:] {
		f.Close() // only the command has them from now on
	}
	if err == nil {
		n, err = p.control.Read(result)
	}
	if err == nil {
		_, _ = p.control.Read(make([]byte, 1)) // it ends, and what it wrote is written
	}
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	_, _ = p.Wait() // whoever reaps the orphans of this run may have been first
	if err != nil || n == 0 {
		return lost("the command was lost: its run ended without a result")
	}
	return result[:n]
}

// prepare starts the process of the next own step while the shell gets there: a start of this program takes
// longer than all that is decided about a command. It is told nothing and does nothing before there is one.
func (l *Listener) prepare() {
	b := &l.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.expects == 0 {
		return
	}
	b.expects--
	b.ended.Go(func() {
		if p, err := l.host.begin(); err == nil {
			b.ready <- p
		}
	})
}

// begin starts our own program once more, unconfined as this process is, with the
// descriptors of its order and of nothing else.
func (host *Host) begin() (*worker, error) {
	control, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	env, files := host.Environ, []*os.File{nil, nil, nil, theirs}
	if up := host.Up; up != nil && up.to != nil {
		files = append(files, up.to)
		env = append([]string{ParentVariable + "=fd:" + strconv.Itoa(controlFD+1)}, env...)
	}
	p := &worker{control: control, over: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		p.Process, err = os.StartProcess("/proc/self/exe", []string{ProcessName}, &os.ProcAttr{Env: env, Files: files, Sys: helperAttributes()})
		if started <- err; err == nil {
			<-p.over
		}
	}()
	if err = <-started; err != nil {
		control.Close()
		return nil, err
	}
	return p, nil
}

// watch passes the signals of the one who asked on, and its end.
func (h *helper) watch(reply *os.File) {
	buf := make([]byte, 256)
	for {
		n, err := reply.Read(buf)
		if err != nil || n == 0 {
			h.end()
			return
		}
		var a Outcome
		if json.Unmarshal(buf[:n], &a) != nil || a.Kind != "signal" {
			continue
		}
		for _, sig := range append(signals.Endings(), signals.Forwarded()...) {
			if signals.Number(sig) == a.Signal && (h.stops || !signals.Stops(sig)) {
				h.signal(sig)
			}
		}
	}
}

func (h *helper) signal(sig os.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.proc != nil && !h.over:
		_ = h.proc.Signal(sig)
	case h.proc == nil && h.early == 0 && signals.Ends(sig):
		h.early = signals.Number(sig)
		if h.gone != nil {
			close(h.gone)
		}
	}
}

// end ends the process as a run is ended: politely, so that it can leave its record.
func (h *helper) end() {
	h.signal(syscall.SIGTERM)
	if h.stops {
		for _, sig := range signals.Forwarded() {
			if signals.Continues(sig) {
				h.signal(sig) // one that is stopped hears nothing else
			}
		}
	}
	time.AfterFunc(h.grace, func() { h.signal(syscall.SIGTERM); h.signal(syscall.SIGTERM) }) // the third one does not wait
	time.AfterFunc(lastResort, func() { h.signal(syscall.SIGKILL) })
}
