package run

import (
	"os"
	"os/signal"
	"sync"
	"time"
)

// lateAfter is how long a child runs before the signals that can wait are taken over.
// Each costs two switches of threads, and a program needs longer to ask for them.
const lateAfter = 2 * time.Millisecond

// signals forwards what the wrapper is sent to the child. It is set up before the
// start, so that no signal falls between.
type signals struct {
	ch      chan os.Signal
	forward func(os.Signal)
	mu      sync.Mutex
	early   os.Signal // arrived before there was a child
	closed  bool
	late    *time.Timer
}

// watchSignals takes over the signals that can end a run before it starts.
func watchSignals() *signals {
	s := &signals{ch: make(chan os.Signal, 16)}
	s.notify(endings())
	go s.loop()
	return s
}

// notify takes over those signals that the caller did not ignore: whoever started us
// with nohup must find it undisturbed.
func (s *signals) notify(list []os.Signal) {
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

func (s *signals) loop() {
	for sig := range s.ch {
		s.mu.Lock()
		forward, closed := s.forward, s.closed
		if forward == nil && ends(sig) {
			s.early = sig
		}
		s.mu.Unlock()
		switch {
		case forward != nil:
			forward(sig)
		case closed && ends(sig):
			signal.Reset(sig)
			raise(sig)
		}
	}
}

// to directs signals to a child from now on; a signal that came before is returned.
func (s *signals) to(forward func(os.Signal)) os.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forward = forward
	return s.early
}

func (s *signals) pending() os.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.early
}

// started takes over the remaining signals once the child has run for a moment.
func (s *signals) started() {
	s.late = time.AfterFunc(lateAfter, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			s.notify(forwarded())
		}
	})
}

// close ends the forwarding. The signals are not given back, which would cost as much
// as taking them: one that ends us does so from now on when it comes.
func (s *signals) close() {
	if s.late != nil {
		s.late.Stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forward, s.closed = nil, true
}
