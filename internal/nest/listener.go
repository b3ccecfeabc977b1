package nest

import (
	"cmp"
	"encoding/json"
	"os"
	"time"

	"github.com/atip-dev/atip-exec/internal/drive"
)

// Host is what the runs inside one run are answered from.
type Host struct {
	Up       *Parent      // where their records go at once; nil if this run keeps them itself
	Withheld bool         // policy withholds credentials from runs inside: no question is accepted
	Order    func() Order // what a process that answers is told of this run; the question is added
	Environ  []string     // of that process
	Nests    bool         // runs inside are heard; else only stand-ins are

	Typed  func(pid int) bool  // whether the shell itself started a process, nil for none
	Stands func(Stand) Settled // what becomes of a stand-in, nil if there are none
	Grace  time.Duration
	Owns   int // own steps of the text: for that many a process is ready when they come

	handshake time.Duration // how long a stand-in may take to say that it is still there, 0 for the usual
}

// usualHandshake is far more than a stand-in takes that shares its processor with many others.
const usualHandshake = 10 * time.Second

// Listener hears the runs inside one run. Each run has its own, also inside another: what
// comes from below is judged here before a run further out hears of it.
type Listener struct {
	from    *os.File
	host    Host
	records []Record
	count   int
	heard   bool
	done    chan struct{}
	broker  broker
}

// Listen makes a listener, and the end of its socket that the command inherits.
func Listen() (l *Listener, child *os.File, err error) {
	from, to, err := pair()
	if err != nil {
		return nil, nil, err
	}
	return &Listener{from: from, done: make(chan struct{}), broker: broker{running: map[*helper]bool{}, ahead: map[int]*ahead{}, places: make(chan struct{}, maxOwnBy), ready: make(chan *worker, 1)}}, to, nil
}

// Prepare starts the process of the first own step while the command of the run begins. All that an answer
// rests on is settled, and nothing is answered yet. The first h counts.
func (l *Listener) Prepare(h Host) {
	h.handshake = cmp.Or(h.handshake, usualHandshake)
	b := &l.broker
	b.mu.Lock()
	again := b.settled // a start is tried twice where the machine differs from what was known of it
	if !again {
		l.host, b.expects, b.settled = h, h.Owns, true
	}
	b.mu.Unlock()
	if !again {
		l.prepare()
	}
}

// Start hears them from now on.
func (l *Listener) Start(h Host) {
	l.Prepare(h)
	l.heard = true
	go l.read()
}

func (l *Listener) read() {
	defer close(l.done)
	buf := make([]byte, maxQuestion+1)
	for {
		n, files, pid, err := receive(l.from, buf, true)
		if err != nil {
			return
		}
		if len(files) > 0 {
			l.question(buf[:min(n, maxQuestion)], files, pid)
			continue
		}
		l.record(buf[:n])
	}
}

func (l *Listener) record(raw []byte) {
	var r Record
	if !l.host.Nests || len(raw) > maxRecord || l.count == maxRecords || json.Unmarshal(raw, &r) != nil {
		return
	}
	l.count++
	if l.host.Up != nil {
		l.host.Up.send(r) // at once: this run may be killed before its end
	} else {
		l.records = append(l.records, r)
	}
}

// rest takes what came before the reader was told to stop and was not read yet.
func (l *Listener) rest() {
	buf := make([]byte, maxRecord+1)
	for {
		n, files, _, err := receive(l.from, buf, false)
		if err != nil {
			return
		}
		for _, f := range files {
			f.Close() // it is too late for questions
		}
		if len(files) == 0 {
			l.record(buf[:n])
		}
	}
}

// Close ends the listening and returns the records that this run keeps. All senders are gone,
// unless one got away from the end of the tree; the caller has closed its copy of their end.
func (l *Listener) Close() []Record {
	defer l.from.Close()
	if !l.heard {
		return nil // nothing was started
	}
	select {
	case <-l.done:
	case <-time.After(drive.HeldGrace):
		l.from.SetReadDeadline(time.Now())
		<-l.done
		l.from.SetReadDeadline(time.Time{})
		l.rest()
	}
	return l.records
}

// Stop ends all that was asked for and does not wait.
func (l *Listener) Stop() { l.broker.stop() }

// End ends all that was asked for and waits for it: nothing outlives the run.
func (l *Listener) End() {
	l.broker.stop()
	l.broker.ended.Wait()
	select {
	case p := <-l.broker.ready: // nothing came for it
		p.discard()
	default:
	}
	for pid := range l.broker.ahead {
		l.broker.forget(pid)
	}
}
