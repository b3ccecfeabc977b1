package drive

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Relay copies a socket on standard input into a pipe, because a socket is more than
// something to read from: it can be written to, past the filter, and connected to somebody
// else. So is a file: whoever owns it can change its mode through a descriptor. Whoever
// reads after us must find what the command did not take, so bytes are taken off only once
// the command has read them.
type Relay struct {
	from  int
	file  bool     // a regular file, whose offset is shared as well
	pipe  *os.File // the writing end
	stop  *os.File // closed to end it
	heard *os.File
	once  sync.Once
	done  chan struct{}
}

// relayBytes fit into one page of a pipe, which then is full until they are read.
const relayBytes = 4 << 10

// StartRelay returns what the child reads instead of a socket or a file.
func StartRelay(from *os.File, file bool) (*os.File, *Relay, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	heard, stop, err := os.Pipe()
	if err == nil {
		_, err = unix.FcntlInt(write.Fd(), unix.F_SETPIPE_SZ, relayBytes)
	}
	if err != nil {
		read.Close()
		write.Close()
		return nil, nil, err
	}
	r := &Relay{from: int(from.Fd()), file: file, pipe: write, stop: stop, heard: heard, done: make(chan struct{})}
	// Waiting is left to poll(2), not to the runtime: the mode of the socket is shared with
	// the caller and stays as it is.
	pipe, ending := int(write.Fd()), int(heard.Fd())
	go func() {
		defer close(r.done)
		defer write.Close()
		r.copy(pipe, ending)
	}()
	return read, r, nil
}

func (r *Relay) copy(pipe, ending int) {
	buf := make([]byte, relayBytes)
	for {
		if !pollFor(r.from, unix.POLLIN, ending) {
			return
		}
		n, err := r.peek(buf)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		if n, err = unix.Write(pipe, buf[:n]); err != nil {
			return // nobody reads, and nothing was taken
		}
		read := pollFor(pipe, unix.POLLOUT, ending)
		left := 0
		if !read {
			if left, err = unix.IoctlGetInt(pipe, unix.TIOCINQ); err != nil {
				return
			}
		}
		if took := n - left; took > 0 {
			r.take(buf[:took])
		}
		if !read {
			return
		}
	}
}

func (r *Relay) peek(buf []byte) (int, error) {
	if r.file {
		at, err := unix.Seek(r.from, 0, 1)
		if err != nil {
			return 0, err
		}
		return unix.Pread(r.from, buf, at)
	}
	n, _, err := unix.Recvfrom(r.from, buf, unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return n, err
}

func (r *Relay) take(seen []byte) {
	if r.file {
		_, _ = unix.Seek(r.from, int64(len(seen)), 1)
		return
	}
	_, _, _ = unix.Recvfrom(r.from, seen, unix.MSG_DONTWAIT)
}

// pollFor waits for an event of fd; false is the end, of the run or of the other side.
func pollFor(fd int, event int16, ending int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: event}, {Fd: int32(ending), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || fds[1].Revents != 0:
			return false
		case fds[0].Revents&event != 0:
			// A pipe without a reader is writable too.
			return event != unix.POLLOUT || fds[0].Revents&unix.POLLERR == 0
		default:
			return event == unix.POLLIN // an error or an end, which reading tells
		}
	}
}

// End stops copying; what the command has not read stays in the socket.
func (r *Relay) End() {
	if r == nil {
		return
	}
	r.once.Do(func() { r.stop.Close() })
	<-r.done
	r.heard.Close()
}
