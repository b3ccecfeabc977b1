package nest

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/standin"
)

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
	status, err := os.ReadFile(at + "/status")
	if err != nil {
		return s
	}
	_, rest, ok := strings.Cut(string(status), "\nUmask:\t")
	if line, _, cut := strings.Cut(rest, "\n"); ok && cut {
		if mask, err := strconv.ParseUint(line, 8, 12); err == nil {
			s.Umask = int(mask)
		}
	}
	return s
}

// connectable reports whether descriptors that a stand-in passed may become those of a command: one
// to read from and two to write to, which do no more than carry bytes.
func connectable(files []*os.File) bool {
	for i, f := range files {
		var st unix.Stat_t
		flags, err := 0, error(unix.EBADF)
		conn, cerr := f.SyscallConn()
		if cerr != nil || conn.Control(func(fd uintptr) {
			if err = unix.Fstat(int(fd), &st); err == nil {
				flags, err = unix.FcntlInt(fd, unix.F_GETFL, 0)
			}
		}) != nil || err != nil || flags&unix.O_PATH != 0 {
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
