package run

import (
	"errors"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/fault"
)

// relay copies a socket on standard input into a pipe, because a socket is more than
// something to read from: it can be written to, past the filter, and connected to somebody
// else. Whoever reads after us must find what the command did not take, so bytes are taken
// off the socket only once the command has read them.
type relay struct {
	socket int
	pipe   *os.File // the writing end
	stop   *os.File // closed to end it
	heard  *os.File
	once   sync.Once
	done   chan struct{}
}

// relayBytes fit into one page of a pipe, which then is full until they are read.
const relayBytes = 4 << 10

func startRelay(socket *os.File) (*os.File, *relay, error) {
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
	r := &relay{socket: int(socket.Fd()), pipe: write, stop: stop, heard: heard, done: make(chan struct{})}
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

func (r *relay) copy(pipe, ending int) {
	buf := make([]byte, relayBytes)
	for {
		if !pollFor(r.socket, unix.POLLIN, ending) {
			return
		}
		n, _, err := unix.Recvfrom(r.socket, buf, unix.MSG_PEEK|unix.MSG_DONTWAIT)
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
			_, _, _ = unix.Recvfrom(r.socket, buf[:took], unix.MSG_DONTWAIT)
		}
		if !read {
			return
		}
	}
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

// end stops copying; what the command has not read stays in the socket.
func (r *relay) end() {
	if r == nil {
		return
	}
	r.once.Do(func() { r.stop.Close() })
	<-r.done
	r.heard.Close()
}

// guardStdin makes sure that the command can read its input and do nothing else with it.
func (x *execution) guardStdin() error {
	b := &x.binds
	if b.stdin == nil {
		return nil
	}
	fd := int(b.stdin.Fd())
	mode, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return nil // closed, which the start reports
	}
	switch kind := stdinKind(b.stdin); {
	case kind == "socket":
		read, r, err := startRelay(b.stdin)
		if err != nil {
			return fault.New("E4003", "stdin: "+err.Error())
		}
		b.stdin, b.relay = read, r
		b.opened = append(b.opened, read)
	case (kind == "file" || kind == "pipe") && mode&unix.O_ACCMODE != unix.O_RDONLY:
		// What is open for writing could be written to, wherever it lies.
		f, err := reopened(fd)
		if err != nil {
			return fault.New("E4004", "stdin is open for writing and cannot be opened for reading alone: "+err.Error()).WithFix("open it for reading", "atip-exec -- COMMAND <FILE")
		}
		b.stdin = f
		b.opened = append(b.opened, f)
	}
	return nil
}

// reopened opens what is behind a descriptor once more, for reading, at the same place.
func reopened(fd int) (*os.File, error) {
	// A pipe would wait for a writer.
	n, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(n, false); err != nil {
		unix.Close(n)
		return nil, err
	}
	if at, err := unix.Seek(fd, 0, 1); err == nil {
		if _, err := unix.Seek(n, at, 0); err != nil {
			unix.Close(n)
			return nil, err
		}
	}
	return os.NewFile(uintptr(n), "stdin"), nil
}
