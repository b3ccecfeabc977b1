package nest

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
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
	mu       sync.Mutex
	closed   bool
	total    int
	own      []OwnRun
	owned    int // stand-ins in all
	standing int // at work
	running  map[*helper]bool
	ended    sync.WaitGroup
}

// helper is one such process.
type helper struct {
	grace time.Duration
	stops bool // it is stopped and continued as well
	mu    sync.Mutex
	proc  *os.Process
	over  bool // its result is here: it is signalled no more
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
	if b.closed || b.total == maxAnswered || len(b.running) == maxAnsweredBy {
		refuse(fault.New(errcode.OutOfResources, "the parent run accepts no further requests"))
		return
	}
	if b.running == nil {
		b.running = map[*helper]bool{}
	}
	h := &helper{grace: l.host.Grace}
	b.total++
	b.running[h] = true
	b.ended.Go(func() {
		order := l.host.Order()
		order.Question = q
		l.host.help(h, order, files)
		drop()
		b.mu.Lock()
		delete(b.running, h)
		b.mu.Unlock()
	})
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

// help starts the process, passes signals and the result on, and ends it when nobody
// waits any longer. It returns the result.
func (host *Host) help(h *helper, order Order, files []*os.File) (result []byte) {
	// The process dies with the thread that started it, and so with this run.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	reply := files[0]
	lost := func(why string) []byte {
		raw := Failed(fault.New(errcode.LostChild, why)).encode()
		sendNow(reply, raw)
		return raw
	}
	order.V = 1
	raw, err := json.Marshal(order)
	if err != nil || len(raw) > maxOrder {
		return lost("the question does not fit into an order")
	}
	control, theirs, err := pair()
	if err != nil {
		return lost("no process can be started: " + err.Error())
	}
	defer control.Close()
	proc, err := host.start(files[1:], theirs)
	theirs.Close()
	if err != nil {
		return lost("no process can be started: " + err.Error())
	}
	for _, f := range files[1:] {
		f.Close() // the command has them, and nobody else
	}
	h.mu.Lock()
	h.proc = proc
	h.mu.Unlock()
	go h.watch(reply)
	result = make([]byte, maxAnswer)
	n := 0
	if _, err = control.Write(raw); err == nil {
		n, err = control.Read(result)
	}
	if err == nil {
		_, _ = control.Read(make([]byte, 1)) // it ends, and what it wrote is written
	}
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	_, _ = proc.Wait() // whoever reaps the orphans of this run may have been first
	if err != nil || n == 0 {
		return lost("the command was lost: its run ended without a result")
	}
	sendNow(reply, result[:n])
	return result[:n]
}

// start starts our own program once more, unconfined as this process is, with the
// descriptors of the command and of nothing else.
func (host *Host) start(files []*os.File, control *os.File) (*os.Process, error) {
	env := host.Environ
	files = append(slices.Clone(files), control)
	if up := host.Up; up != nil && up.to != nil {
		files = append(files, up.to)
		env = append([]string{ParentVariable + "=fd:" + strconv.Itoa(controlFD+1)}, env...)
	}
	return os.StartProcess("/proc/self/exe", []string{ProcessName}, &os.ProcAttr{Env: env, Files: files, Sys: helperAttributes()})
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
		for _, sig := range append(drive.Endings(), drive.Forwarded()...) {
			if drive.SignalNumber(sig) == a.Signal && (h.stops || !drive.Stops(sig)) {
				h.signal(sig)
			}
		}
	}
}

func (h *helper) signal(sig os.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.proc != nil && !h.over {
		_ = h.proc.Signal(sig)
	}
}

// end ends the process as a run is ended: politely, so that it can leave its record.
func (h *helper) end() {
	h.signal(syscall.SIGTERM)
	if h.stops {
		for _, sig := range drive.Forwarded() {
			if drive.Continues(sig) {
				h.signal(sig) // one that is stopped hears nothing else
			}
		}
	}
	time.AfterFunc(h.grace, func() { h.signal(syscall.SIGTERM); h.signal(syscall.SIGTERM) }) // the third one does not wait
	time.AfterFunc(lastResort, func() { h.signal(syscall.SIGKILL) })
}
