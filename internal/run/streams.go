package run

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/filter"
)

const (
	readSize  = 64 << 10
	heldGrace = 200 * time.Millisecond // a pipe that somebody still holds after the child ended
)

// stream copies one output of the child through the filter, in its own goroutine.
type stream struct {
	from source
	to   *filter.Writer
	name string

	bound *filter.Bound // what to writes into, nil if the stream is not bounded

	mu    sync.Mutex
	ended bool // the child is gone: wait for heldGrace only

	done  chan struct{}
	end   string // eof, held, epipe, error
	err   error  // of the output, not of the child
	panic any
}

func startStream(name string, from source, to *filter.Writer, bound *filter.Bound) *stream {
	s := &stream{from: from, to: to, name: name, bound: bound, done: make(chan struct{})}
	go s.copy()
	return s
}

// copy never blocks the child for longer than its reader does: a slow reader
// blocks us, then the pipe, then the child, so that memory stays constant.
func (s *stream) copy() {
	defer close(s.done)
	defer func() {
		if r := recover(); r != nil {
			// Nothing raw may follow a filter that failed, and a child in the middle
			// of its work must not die of a full pipe: drain to the end.
			s.panic, s.end = r, "error"
			s.from.SetReadDeadline(time.Time{})
			io.Copy(io.Discard, s.from)
		}
	}()
	buf := make([]byte, readSize)
	for {
		s.arm()
		n, err := s.from.Read(buf)
		if n > 0 {
			if _, werr := s.to.Write(buf[:n]); werr != nil {
				s.outputFailed(werr)
				return
			}
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, os.ErrDeadlineExceeded):
			if s.over() {
				s.end = "held"
			} else {
				if ierr := s.to.Idle(); ierr != nil {
					s.outputFailed(ierr)
					return
				}
				continue
			}
		default:
			s.end = "eof"
		}
		cerr := s.to.Close()
		if cerr == nil && s.bound != nil {
			cerr = s.bound.Close()
		}
		switch {
		case filterFailed(cerr):
			s.panic, s.end = cerr, "error"
		case cerr != nil:
			s.outputFailed(cerr)
		}
		return
	}
}

// arm sets how long the next read may take: 25 ms while bytes are held back for a
// possible secret, 200 ms once the child is gone, else forever.
func (s *stream) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		s.from.SetReadDeadline(time.Now().Add(heldGrace))
	case s.to.Held() > 0:
		s.from.SetReadDeadline(time.Now().Add(filter.IdleAfter))
	default:
		s.from.SetReadDeadline(time.Time{})
	}
}

// childEnded starts the grace for whoever still holds the other end.
func (s *stream) childEnded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.from.SetReadDeadline(time.Now().Add(heldGrace))
}

func (s *stream) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// outputFailed closes the read end, so that the child learns of it as it would
// without us: by its own SIGPIPE.
func (s *stream) outputFailed(err error) {
	s.end = "error"
	if errors.Is(err, syscall.EPIPE) {
		s.end = "epipe"
	} else {
		s.err = err
	}
	s.from.Close()
}

// panicked returns what the filter of a finished stream panicked with.
func (s *stream) panicked() any { return s.panic }

// failure is why the output could not be written, nil for a reader that left.
func (s *stream) failure() error { return s.err }
