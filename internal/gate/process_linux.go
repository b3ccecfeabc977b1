package gate

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/procstat"
)

// process is what /proc says of one; its number alone would be given away again.
type process struct {
	pid    int // of the thread group
	parent int
	since  uint64 // start time in clock ticks
}

// statOf reads /proc/PID/stat of a process. For a thread it would have the parent of the whole
// process, but the start time of the thread.
func statOf(leader int) (process, bool) {
	var buf [1024]byte
	line := readSmall("/proc/"+strconv.Itoa(leader)+"/stat", buf[:])
	// The name in parentheses may hold anything; the last one ends it.
	end := bytes.LastIndexByte(line, ')')
	if end < 0 {
		return process{}, false
	}
	p := process{pid: leader}
	var err1, err2 error
	field := 0
	for word := range bytes.FieldsSeq(line[end+1:]) {
		switch field {
		case procstat.Parent:
			p.parent, err1 = strconv.Atoi(string(word))
		case procstat.Start:
			p.since, err2 = strconv.ParseUint(string(word), 10, 64)
		}
		field++
	}
	return p, field > procstat.Start && err1 == nil && err2 == nil
}

// leaderOf is the number of the process of a thread. Most that execute have one thread: then the
// kernel gives a descriptor of a process for the number, and nothing needs to be read.
func leaderOf(tid int) (int, bool) {
	if fd, _, errno := unix.RawSyscall(unix.SYS_PIDFD_OPEN, uintptr(tid), 0, 0); errno == 0 {
		rawClose(int(fd))
		return tid, true
	}
	var buf [4096]byte
	_, rest, ok := bytes.Cut(readSmall("/proc/"+strconv.Itoa(tid)+"/status", buf[:]), []byte("\nTgid:"))
	if !ok {
		return 0, false
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	pid, err := strconv.Atoi(string(bytes.TrimSpace(line)))
	return pid, err == nil
}

// readSmall reads a file of /proc that fits into a buffer, nil if it cannot be read.
func readSmall(path string, buf []byte) []byte {
	fd, errno := rawOpen(path, unix.O_RDONLY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil
	}
	defer rawClose(fd)
	for {
		n, errno := rawRead(fd, buf)
		if errno == unix.EINTR {
			continue
		}
		return buf[:max(n, 0)]
	}
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

// zone is that of the nearest known ancestor of tid. It also returns the number of its process, 0 if
// that is gone.
func (z *zones) zone(tid int) (Zone, int) {
	leader, ok := leaderOf(tid)
	pid := leader
	for range maxForebears {
		if !ok || pid <= 1 {
			break
		}
		var p process
		if p, ok = statOf(pid); ok {
			if known, ok := z.of[p.pid]; ok && known.since == p.since {
				return known.zone, leader
			}
			pid = p.parent
		}
	}
	if z.code {
		return Code, leader
	}
	return Typed, leader
}

// maxZones bounds the table; entries of processes that have ended go first.
const maxZones = 4096

func (z *zones) set(tid int, zone Zone) {
	leader, ok := leaderOf(tid)
	p, known := statOf(leader)
	if !ok || !known {
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
	fd   int    // a path descriptor
	id   FileID
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
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how.Flags |= unix.O_NOFOLLOW
	}
	if fd, errno := rawOpenAt(root, full, how, isSystem(full)); errno == 0 {
		return regular(fd, full, text)
	}
	fd, err := unix.Openat2(root, full, &how)
	if err != nil {
		if errno, ok := err.(unix.Errno); ok && errno != unix.EXDEV {
			return named{}, errno
		}
		return named{}, unix.EACCES
	}
	return regular(fd, full, text)
}

// isSystem reports a path of the system's directories: what hangs there hangs this program anyway.
func isSystem(path string) bool {
	for _, dir := range [...]string{"/usr/", "/bin/", "/sbin/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

func openDirect(link, text string) (named, unix.Errno) {
	fd, err := unix.Open(link, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return named{}, unix.ENOENT
	}
	n, errno := regular(fd, text, text)
	if errno != 0 {
		return n, errno
	}
	if real, err := os.Readlink(link); err == nil && strings.HasPrefix(real, "/") {
		n.path = real
	}
	return n, 0
}

// regular takes over a path descriptor of what must be a regular file.
func regular(fd int, path, text string) (named, unix.Errno) {
	var st unix.Stat_t
	if _, _, errno := unix.RawSyscall(unix.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&st)), 0); errno != 0 || st.Mode&unix.S_IFMT != unix.S_IFREG {
		rawClose(fd)
		return named{}, unix.EACCES
	}
	id := FileID{uint64(st.Dev), st.Ino, st.Size, unix.TimespecToNsec(st.Mtim), unix.TimespecToNsec(st.Ctim)}
	return named{path, text, fd, id}, 0
}

// At reports whether a path of this process leads to the file.
func (id FileID) At(path string) bool {
	if isSystem(path) {
		dev, ino, errno := rawFileOf(path)
		return errno == 0 && dev == id.Dev && ino == id.Ino
	}
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && uint64(st.Dev) == id.Dev && st.Ino == id.Ino
}

func readLink(path string) (string, error) {
	dir, errno := rawReadlink(path)
	if errno != 0 || !strings.HasPrefix(dir, "/") || strings.HasSuffix(dir, " (deleted)") {
		return "", unix.ENOENT
	}
	return dir, nil
}
