package gate

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/procstat"
)

// process is what /proc says of one; its number alone would be given away again.
type process struct {
	pid    int // of the thread group
	parent int
	since  uint64 // start time in clock ticks
}

// statOf reads /proc/PID/stat. For a thread it has the parent of the whole process, but
// the start time of the thread, so the leader is asked.
func statOf(tid int) (process, bool) {
	leader, ok := leaderOf(tid)
	if !ok {
		return process{}, false
	}
	s, err := procstat.Of(leader)
	if err != nil {
		return process{}, false
	}
	parent, err1 := strconv.Atoi(s.Fields[procstat.Parent])
	since, err2 := strconv.ParseUint(s.Fields[procstat.Start], 10, 64)
	return process{leader, parent, since}, err1 == nil && err2 == nil
}

func leaderOf(tid int) (int, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return 0, false
	}
	_, rest, ok := strings.Cut(string(data), "\nTgid:")
	if !ok {
		return 0, false
	}
	line, _, _ := strings.Cut(rest, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	return pid, err == nil
}

// zones remembers on whose behalf processes act. Children inherit by having no entry.
type zones struct {
	of   map[int]zoned
	code bool // code was started, so that an orphan may be its
}

type zoned struct {
	since uint64
	zone  Zone
}

// maxForebears bounds a walk towards the first process of a run.
const maxForebears = 256

// zone is that of the nearest known ancestor of tid.
func (z *zones) zone(tid int) Zone {
	for range maxForebears {
		p, ok := statOf(tid)
		if !ok || p.pid <= 1 {
			break
		}
		if known, ok := z.of[p.pid]; ok && known.since == p.since {
			return known.zone
		}
		tid = p.parent
	}
	if z.code {
		return Code
	}
	return Typed
}

// maxZones bounds the table; entries of processes that have ended go first.
const maxZones = 4096

func (z *zones) set(tid int, zone Zone) {
	p, ok := statOf(tid)
	if !ok {
		return
	}
	if z.of == nil {
		z.of = map[int]zoned{}
	}
	if len(z.of) >= maxZones {
		for pid, known := range z.of {
			if now, ok := statOf(pid); !ok || now.since != known.since {
				delete(z.of, pid)
			}
		}
	}
	z.code = z.code || zone == Code
	if len(z.of) < maxZones || zone == Typed {
		z.of[p.pid] = zoned{p.since, zone}
	}
}

// named is a file that an execve names.
type named struct {
	path string // absolute, inside the root of the process
	text string // how the kernel would call it towards the interpreter of a script
	file *os.File
}

// openNamed opens what the call of tid executes, as the process would find it.
func openNamed(tid int, dirfd int32, path string, flags uint64, root int) (named, unix.Errno) {
	at := "/proc/" + strconv.Itoa(tid)
	if path == "" {
		if flags&unix.AT_EMPTY_PATH == 0 {
			return named{}, unix.ENOENT
		}
		fd := strconv.Itoa(int(dirfd))
		return openDirect(at+"/fd/"+fd, "/dev/fd/"+fd)
	}
	if len(path) >= unix.PathMax {
		return named{}, unix.ENAMETOOLONG
	}
	// Links of /proc mean the process that follows them, which would be this one.
	for _, self := range [...]string{"/proc/self/", "/proc/thread-self/", "/dev/fd/"} {
		if rest, ok := strings.CutPrefix(path, self); ok {
			switch {
			case self == "/dev/fd/":
				return openDirect(at+"/fd/"+rest, path)
			case rest == "exe", strings.HasPrefix(rest, "fd/") && !strings.Contains(rest, ".."):
				return openDirect(at+"/"+rest, path)
			}
			return named{}, unix.EACCES
		}
	}
	text, full := path, path
	if path[0] != '/' {
		base, link := "/cwd", ""
		if dirfd != unix.AT_FDCWD {
			base, link = "/fd/"+strconv.Itoa(int(dirfd)), "/dev/fd/"+strconv.Itoa(int(dirfd))+"/"
		}
		dir, err := os.Readlink(at + base)
		if err != nil || !strings.HasPrefix(dir, "/") || strings.HasSuffix(dir, " (deleted)") {
			return named{}, unix.ENOENT
		}
		full, text = strings.TrimSuffix(dir, "/")+"/"+path, link+path
	}
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how.Flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Openat2(root, full, how)
	if err != nil {
		if errno, ok := err.(unix.Errno); ok && errno != unix.EXDEV {
			return named{}, errno
		}
		return named{}, unix.EACCES
	}
	defer unix.Close(fd)
	return reopen(fd, full, text)
}

func openDirect(link, text string) (named, unix.Errno) {
	fd, err := unix.Open(link, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return named{}, unix.ENOENT
	}
	defer unix.Close(fd)
	n, errno := reopen(fd, text, text)
	if errno != 0 {
		return n, errno
	}
	if real, err := os.Readlink(link); err == nil && strings.HasPrefix(real, "/") {
		n.path = real
	}
	return n, 0
}

// reopen makes a readable file of a path descriptor that names a regular one. A file that
// may be executed and not read stays a path descriptor.
func reopen(fd int, path, text string) (named, unix.Errno) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return named{}, unix.EACCES
	}
	link := "/proc/self/fd/" + strconv.Itoa(fd)
	again, err := unix.Open(link, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		if again, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return named{}, unix.EACCES
		}
	}
	return named{path, text, os.NewFile(uintptr(again), path)}, 0
}

func readLink(path string) (string, error) {
	dir, err := os.Readlink(path)
	if err == nil && (!strings.HasPrefix(dir, "/") || strings.HasSuffix(dir, " (deleted)")) {
		return "", unix.ENOENT
	}
	return dir, err
}
