package run

import (
	"errors"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/sandbox"
)

// relay copies a socket on standard input into a pipe, because a socket is more than
// something to read from: it can be written to, past the filter, and connected to somebody
// else. So is a file: whoever owns it can change its mode through a descriptor. Whoever
// reads after us must find what the command did not take, so bytes are taken off only once
// the command has read them.
type relay struct {
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

func startRelay(from *os.File, file bool) (*os.File, *relay, error) {
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
	r := &relay{from: int(from.Fd()), file: file, pipe: write, stop: stop, heard: heard, done: make(chan struct{})}
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

func (r *relay) peek(buf []byte) (int, error) {
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

func (r *relay) take(seen []byte) {
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
	case kind == "socket" || kind == "file" && mode&unix.O_ACCMODE == unix.O_RDONLY && x.foreignFile(fd):
		read, r, err := startRelay(b.stdin, kind == "file")
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

// foreignFile reports a file whose mode the run must not change although this user can:
// with a private root everything outside the write set is on a read-only mount, but for
// descriptors from before.
func (x *execution) foreignFile(fd int) bool {
	var st unix.Stat_t
	if x.plan.Setup.Tier() != sandbox.T3 || unix.Fstat(fd, &st) != nil || os.Geteuid() != 0 && int(st.Uid) != os.Geteuid() {
		return false
	}
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return true
	}
	for _, g := range x.plan.Profile.Write {
		if g.Rights&sandbox.Write != 0 && (path == g.Path || g.Dir && within(path, g.Path)) {
			return false
		}
	}
	return true
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
