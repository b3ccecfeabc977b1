// Package drive is what goes between a started child and the outside: the signals that are
// passed on, the terminal, and the streams through the filter.
package drive

import (
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/atip-dev/atip-exec/internal/signals"
)

// lateAfter is how long a child runs before the signals that can wait are taken over.
// Each costs two switches of threads, and a program needs longer to ask for them.
const lateAfter = 2 * time.Millisecond

// Signals forwards what the wrapper is sent to the child. It is set up before the
// start, so that no signal falls between.
type Signals struct {
	ch      chan os.Signal
	forward func(os.Signal)
	mu      sync.Mutex
	early   os.Signal     // arrived before there was a child
	Ended   chan struct{} // closed with the first early one
	closed  bool
	late    *time.Timer
}

// WatchSignals takes over the signals that can end a run before it starts.
func WatchSignals() *Signals {
	s := &Signals{ch: make(chan os.Signal, 16), Ended: make(chan struct{})}
	s.notify(signals.Endings())
	go s.loop()
	return s
}

// notify takes over those signals that the caller did not ignore: whoever started us
// with nohup must find it undisturbed.
func (s *Signals) notify(list []os.Signal) {
	var wanted []os.Signal
	for _, sig := range list {
		if !signal.Ignored(sig) {
			wanted = append(wanted, sig)
		}
	}
	if len(wanted) > 0 { // none would mean all
		signal.Notify(s.ch, wanted...)
	}
}

func (s *Signals) loop() {
	for sig := range s.ch {
		s.mu.Lock()
		forward, closed := s.forward, s.closed
		if forward == nil && signals.Ends(sig) {
			if s.early == nil {
				close(s.Ended)
			}
			s.early = sig
		}
		s.mu.Unlock()
		switch {
		case forward != nil:
			forward(sig)
		case closed && signals.Ends(sig):
			signal.Reset(sig)
			raise(sig)
		}
	}
}

// To directs signals to a child from now on; a signal that came before is returned.
func (s *Signals) To(forward func(os.Signal)) os.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forward = forward
	return s.early
}

// Pending returns a signal that came before there was a child, nil if none did.
func (s *Signals) Pending() os.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.early
}

// Started takes over the remaining signals once the child has run for a moment.
func (s *Signals) Started() {
	s.late = time.AfterFunc(lateAfter, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			s.notify(signals.Forwarded())
		}
	})
}

// Close ends the forwarding. The signals are not given back, which would cost as much
// as taking them: one that ends us does so from now on when it comes.
func (s *Signals) Close() {
	if s.late != nil {
		s.late.Stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forward, s.closed = nil, true
}

// Threads kept ready while a command runs, and how long a command must run for them:
// most are over by then and do not pay.
const (
	spareThreads = 8
	spareAfter   = 5 * time.Millisecond
)

// KeepThreads makes threads while they can be had. A command that forks without end
// takes the last process of its user, a thread counts as one (RLIMIT_NPROC,
// setrlimit(2)), and the Go runtime ends a program that cannot make the one it wants:
// then no process is left to end the tree.
func KeepThreads() (stop func() bool) {
	return time.AfterFunc(spareAfter, func() {
		debug.SetGCPercent(usualGC)
		var here sync.WaitGroup
		leave := make(chan struct{})
		for range spareThreads {
			here.Add(1)
			go func() {
				runtime.LockOSThread() // held together, so that each needs a thread of its own
				defer runtime.UnlockOSThread()
				here.Done()
				<-leave
			}()
		}
		here.Wait()
		close(leave)
	}).Stop
}
