package nest

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/standin"
)

// ahead is an own step that a process plans while its stand-in, a start of this program, gets to its question.
type ahead struct {
	*worker
	own   Own
	files [3]passed
}

// passed tells an open file from most others.
type passed struct {
	dev, ino, rdev uint64
	flags          int
}

// Coming says that the shell starts a stand-in with these words: this process, which waits for the gate. It is
// not answered by that, and gains nothing: it still has to prove itself, and another own step than it asks for
// then is planned anew.
func (l *Listener) Coming(pid int, argv []string, cwd string) {
	b := &l.broker
	b.forget(pid)
	a := &ahead{own: Own{Argv: WordsOf(argv), Cwd: cwd, Umask: umaskOf("/proc/" + strconv.Itoa(pid))}}
	files := descriptorsOf(pid)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	known := false
	if a.files, known = passedOf(files); !known || a.own.Umask < 0 || !connectable(files) {
		return
	}
	if !b.assign(pid, a) {
		return
	}
	l.prepare()
	order := l.host.Order()
	order.Own, order.Ahead = &a.own, true
	if raw := order.encode(); raw == nil || send(a.control, raw, files...) != nil {
		b.forget(pid)
	}
}

// forget ends what was planned for a process that did not ask for it.
func (b *broker) forget(pid int) {
	b.mu.Lock()
	a := b.ahead[pid]
	delete(b.ahead, pid)
	b.mu.Unlock()
	if a != nil {
		a.discard()
	}
}

// assign gives an own step the process that is ready, if there is one.
func (b *broker) assign(pid int, a *ahead) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.settled || b.closed || len(b.ahead) == maxAhead {
		return false
	}
	select {
	case a.worker = <-b.ready:
		b.ahead[pid] = a
		return true
	default:
		return false
	}
}

// begun is what was planned for this very question, nil for nothing.
func (b *broker) begun(pid int, own *Own, files []*os.File) *ahead {
	b.mu.Lock()
	a := b.ahead[pid]
	delete(b.ahead, pid)
	b.mu.Unlock()
	if a == nil {
		return nil
	}
	if now, ok := passedOf(files); ok && now == a.files && a.own.Cwd == own.Cwd && a.own.Umask == own.Umask && slices.EqualFunc(a.own.Argv, own.Argv, bytes.Equal) {
		return a
	}
	a.discard()
	return nil
}

// descriptorsOf are the first three of a process.
func descriptorsOf(pid int) (files []*os.File) {
	held, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(held)
	for i := range 3 {
		fd, err := unix.PidfdGetfd(held, i, 0)
		if err != nil {
			break
		}
		files = append(files, os.NewFile(uintptr(fd), "passed"))
	}
	return files
}

// openAs is what a descriptor leads to, and how it was opened.
func openAs(f *os.File) (st unix.Stat_t, flags int, ok bool) {
	err := error(unix.EBADF)
	conn, cerr := f.SyscallConn()
	if cerr != nil || conn.Control(func(fd uintptr) {
		if err = unix.Fstat(int(fd), &st); err == nil {
			flags, err = unix.FcntlInt(fd, unix.F_GETFL, 0)
		}
	}) != nil {
		return st, flags, false
	}
	return st, flags, err == nil
}

func passedOf(files []*os.File) (out [3]passed, ok bool) {
	if len(files) != len(out) {
		return out, false
	}
	for i, f := range files {
		st, flags, ok := openAs(f)
		if !ok {
			return out, false
		}
		out[i] = passed{st.Dev, st.Ino, st.Rdev, flags}
	}
	return out, true
}

// proven is what the kernel says of the process that sent a question over our socket, and sends
// another message over the one that came with it. Its number cannot have gone to another process
// meanwhile, as it is held. Without proof it is nobody whom the shell started.
func (h *Host) proven(reply *os.File, pid int) Stand {
	if pid <= 0 {
		return Stand{}
	}
	held, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return Stand{}
	}
	defer unix.Close(held)
	s := standOf(pid)
	if h.Typed == nil || !h.Typed(pid) || !ours(pid) || !answers(reply, pid, h.handshake) {
		return s
	}
	now := standOf(pid) // of the process that just answered
	s.Typed = now.Umask >= 0 && ours(pid) && h.Typed(pid) && alive(held)
	now.Typed = s.Typed
	return now
}

// answers asks a process to send a message and reports whether that very process did.
func answers(reply *os.File, pid int, within time.Duration) bool {
	conn, err := reply.SyscallConn()
	if err != nil {
		return false
	}
	serr := error(unix.EBADF)
	if conn.Control(func(fd uintptr) { serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) }) != nil || serr != nil {
		return false
	}
	sendNow(reply, []byte(standin.Who))
	reply.SetReadDeadline(time.Now().Add(within))
	defer reply.SetReadDeadline(time.Time{})
	n, files, from, err := receive(reply, make([]byte, 256), true)
	for _, f := range files {
		f.Close()
	}
	return err == nil && n > 0 && from == pid
}

// alive reports whether the process of a pidfd has not ended.
func alive(pidfd int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 0
}

// ours reports whether a process executes this program.
func ours(pid int) bool {
	a, err1 := os.Stat("/proc/" + strconv.Itoa(pid) + "/exe")
	b, err2 := os.Stat("/proc/self/exe")
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// standOf reads what a process was started with. A part that cannot be read makes it nothing that was
// planned.
func standOf(pid int) Stand {
	at := "/proc/" + strconv.Itoa(pid)
	s := Stand{Umask: -1}
	words, err := os.ReadFile(at + "/cmdline")
	if err != nil || len(words) == 0 {
		return s
	}
	s.Argv = strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
	env, err := os.ReadFile(at + "/environ")
	if err != nil {
		return s
	}
	if len(env) > 0 {
		s.Env = strings.Split(strings.TrimSuffix(string(env), "\x00"), "\x00")
	}
	if s.Cwd, err = os.Readlink(at + "/cwd"); err != nil {
		return s
	}
	s.Umask = umaskOf(at)
	return s
}

// umaskOf is -1 where it is not known.
func umaskOf(at string) int {
	status, err := os.ReadFile(at + "/status")
	if err != nil {
		return -1
	}
	_, rest, ok := strings.Cut(string(status), "\nUmask:\t")
	if line, _, cut := strings.Cut(rest, "\n"); ok && cut {
		if mask, err := strconv.ParseUint(line, 8, 12); err == nil {
			return int(mask)
		}
	}
	return -1
}

// connectable reports whether descriptors that a stand-in passed may become those of a command: one
// to read from and two to write to, which do no more than carry bytes.
func connectable(files []*os.File) bool {
	for i, f := range files {
		st, flags, ok := openAs(f)
		if !ok || flags&unix.O_PATH != 0 {
			return false
		}
		mode := flags & unix.O_ACCMODE
		if i == 0 && mode == unix.O_WRONLY || i > 0 && mode == unix.O_RDONLY {
			return false
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFIFO, unix.S_IFREG:
		case unix.S_IFCHR:
			// null and its like, and terminals
			if unix.Major(st.Rdev) != 1 && !terminal(f) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// Adopt gives this process the umask of an own step as far as its own files can still be read.
func (o *Own) Adopt() { unix.Umask(o.Umask &^ 0o700) }

func terminal(f *os.File) bool {
	ok := false
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) {
			_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
			ok = err == nil
		})
	}
	return ok
}
