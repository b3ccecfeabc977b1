package run

import (
	"os"
	"os/signal"
	"sync"
)

// signals forwards what the wrapper is sent to the child. It is set up before the
// start, so that no signal falls between.
type signals struct {
	ch      chan os.Signal
	forward func(os.Signal)
	mu      sync.Mutex
	early   os.Signal // arrived before there was a child
	stop    chan struct{}
}

// watchSignals takes over the signals that the caller did not ignore: whoever
// started us with nohup must find it undisturbed.
func watchSignals() *signals {
	s := &signals{ch: make(chan os.Signal, 16), stop: make(chan struct{})}
	var wanted []os.Signal
	for _, sig := range forwarded() {
		if !signal.Ignored(sig) {
			wanted = append(wanted, sig)
		}
	}
	signal.Notify(s.ch, wanted...)
	go s.loop()
	return s
}

func (s *signals) loop() {
	for {
		select {
		case sig := <-s.ch:
			s.mu.Lock()
			forward := s.forward
			if forward == nil && ends(sig) {
				s.early = sig
			}
			s.mu.Unlock()
			if forward != nil {
				forward(sig)
			}
		case <-s.stop:
			return
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

func (s *signals) close() {
	signal.Stop(s.ch)
	close(s.stop)
}
