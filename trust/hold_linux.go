package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/atip-dev/atip-exec/internal/owner"
	"golang.org/x/sys/unix"
)

const canStartByDescriptor = true

// stat is the identity of a file's content as the kernel keeps it.
type stat struct {
	major, minor   uint32
	dev, mnt, ino  uint64
	size           int64
	mtime, ctime   int64 // ns
	btime          int64
	mode, uid, gid uint32
	nlink          uint32
	verity         bool
}

// same compares what a replacement or a write cannot leave alone. The mount id is
// left out: the child may see the file through another mount.
func (s stat) same(t stat) bool {
	return s.dev == t.dev && s.ino == t.ino && s.size == t.size && s.mtime == t.mtime && s.ctime == t.ctime
}

// statxMntIDUnique is STATX_MNT_ID_UNIQUE (Linux 6.8): never reused, unlike the
// short id. Older kernels ignore the bit.
const statxMntIDUnique = 0x4000

func statxAt(fd int, path string, flags int) (stat, error) {
	var x unix.Statx_t
	mask := unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID | statxMntIDUnique
	for {
		err := unix.Statx(fd, path, flags|unix.AT_STATX_SYNC_AS_STAT, mask, &x)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return stat{}, err
		}
	}
	ns := func(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }
	return stat{
		major: x.Dev_major, minor: x.Dev_minor, dev: unix.Mkdev(x.Dev_major, x.Dev_minor), mnt: x.Mnt_id, ino: x.Ino,
		size: int64(x.Size), mtime: ns(x.Mtime), ctime: ns(x.Ctime), btime: ns(x.Btime),
		mode: uint32(x.Mode), uid: x.Uid, gid: x.Gid, nlink: x.Nlink,
		verity: x.Attributes_mask&unix.STATX_ATTR_VERITY != 0 && x.Attributes&unix.STATX_ATTR_VERITY != 0,
	}, nil
}

func statFD(fd int) (stat, error)        { return statxAt(fd, "", unix.AT_EMPTY_PATH) }
func statPath(path string) (stat, error) { return statxAt(unix.AT_FDCWD, path, 0) }

// held is one file of a chain with what keeps it from changing.
type held struct {
	fd         int
	leased     bool
	role       string
	found      string // the path it was opened by
	path       string // canonical
	via        string // the path that must still lead to it at the start; "" for none
	st         stat
	form       Form
	class      Class
	digest     [32]byte
	hit        bool
	head       []byte
	headBuf    [headSize]byte
	shebangArg string
	swappable  bool
	system     bool
	own        bool
}

// euid is asked once: nothing here changes it, and a system call is a tenth of an
// identification.
var euid = sync.OnceValue(unix.Geteuid)

func hasSeparator(word string) bool   { return strings.IndexByte(word, '/') >= 0 }
func spellings(word string) [1]string { return [1]string{word} }
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || err == unix.ENOTDIR || err == unix.ENAMETOOLONG
}
func readLink(p string) (string, bool) { t, err := os.Readlink(p); return t, err == nil }

func rootOnly(s stat, path string) bool {
	return s.mode&0o022 == 0 && owner.IsRoot(s.uid, path)
}

// candidate reports whether p is a regular file the effective user may execute.
func candidate(p string) error {
	if err := regular(p); err != nil {
		return err
	}
	return unix.Faccessat2(unix.AT_FDCWD, p, unix.X_OK, unix.AT_EACCESS)
}

func regular(p string) error {
	var st unix.Stat_t
	for {
		err := unix.Stat(p, &st)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return err
		}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errNotRegular
	}
	return nil
}

// replaceable reports whether somebody other than root can replace entries of
// dir. A sticky directory counts: its files' owners can.
func replaceable(dir string) bool {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return true
	}
	return st.Mode&0o022 != 0 || !owner.IsRoot(st.Uid, dir)
}

// ownOnly reports a file or directory that only root and this user can change. The group may, if it is
// the user's private one, which has the number of the user. Nobody replaces what another user has in a
// sticky directory.
func ownOnly(path string) bool {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return false
	}
	if int(st.Uid) != euid() && !owner.IsRoot(st.Uid, path) {
		return false
	}
	sticky := st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&unix.S_ISVTX != 0
	return sticky || st.Mode&0o002 == 0 && (st.Mode&0o020 == 0 || st.Gid == st.Uid)
}

// hold opens found, takes hold of it and identifies it, in this order: may it be
// executed (before it is opened: devices act on being opened), open, lease, statx,
// digest. Anything that changes it later breaks the lease or the
// comparison with the statx.
func hold(word, found, role string, c *cache) (*held, error) {
	h := &held{fd: -1, role: role, found: found, via: found}
	err := h.permitted()
	if err == nil {
		err = h.open()
	}
	if err == nil {
		err = h.identify(c)
	}
	if err == nil {
		return h, nil
	}
	h.close()
	switch e := err.(type) {
	case *NotExecutableError:
		e.Word = word
		return nil, e
	case *BusyError, *ChangedError:
		return nil, err
	}
	return nil, candidateError(word, found, err)
}

// permitted asks for execute permission; a file that an interpreter is to run
// needs none, but must not be anything that acts on being opened.
func (h *held) permitted() error {
	if h.role == RoleArgument {
		return regular(h.found)
	}
	return unix.Faccessat2(unix.AT_FDCWD, h.found, unix.X_OK, unix.AT_EACCESS)
}

func (h *held) open() error {
	// O_NONBLOCK: a FIFO put there since must not block, a foreign write lease
	// must answer EAGAIN.
	const flags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	// A clean path without links is canonical, which saves asking /proc.
	if filepath.Clean(h.found) == h.found {
		how := unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS}
		if fd, err := unix.Openat2(unix.AT_FDCWD, h.found, &how); err == nil {
			h.fd, h.path = fd, h.found
			return nil
		}
	}
	fd, err := openRetry(h.found, flags)
	if err == unix.EAGAIN {
		return &BusyError{Path: h.found}
	}
	if err == unix.EACCES {
		if fd, err = openRetry(h.found, unix.O_PATH|unix.O_CLOEXEC); err == nil {
			h.form = FormUnreadable
		}
	}
	if err != nil {
		return err
	}
	h.fd = fd
	return nil
}

func openRetry(p string, flags int) (int, error) {
	for {
		fd, err := unix.Open(p, flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func (h *held) identify(c *cache) error {
	if err := h.secure(); err != nil {
		return err
	}
	if h.st.mode&unix.S_IFMT != unix.S_IFREG {
		return &NotExecutableError{Path: h.found, Why: whyNotRegular}
	}
	if h.path == "" {
		p, err := canonical(h.fd, h.found, h.st)
		if err != nil {
			return err
		}
		h.path = p
	}
	if h.st.nlink == 0 {
		return &ChangedError{Path: h.found, Why: "it was removed while it was opened"}
	}
	if h.form == FormUnreadable {
		return nil
	}
	if h.class != ClassLoose {
		if d, form, ok := c.get(h.st); ok {
			h.digest, h.form, h.hit = d, form, true
			if form != FormScript {
				return nil
			}
		}
	}
	n, err := unix.Pread(h.fd, h.headBuf[:], 0)
	if err != nil {
		return err
	}
	h.head = h.headBuf[:n]
	h.form = formOf(h.head)
	if h.role != RoleArgument && (h.form == FormUnknown || h.form == FormPE || h.form == FormMachO) {
		if !binfmtRuns(h.head, h.path) {
			return &NotExecutableError{Path: h.path, Why: "no format this kernel can execute"}
		}
		h.form = FormForeign
	}
	if h.hit {
		return nil
	}
	return h.sum(c)
}

// secure reads the stat of the file and takes the lease, unless nobody but root
// can write anyway. With a lease the stat is the one read once it was held.
func (h *held) secure() (err error) {
	root := euid() == 0
	if !root || h.form == FormUnreadable {
		if h.st, err = statFD(h.fd); err != nil || h.form == FormUnreadable || h.st.mode&unix.S_IFMT != unix.S_IFREG {
			return err
		}
		if h.st.verity || h.rootOnly() {
			h.class = ClassFixed
			return nil
		}
	}
	leased, lerr := lease(h.fd)
	if leased || root {
		if h.st, err = statFD(h.fd); err != nil {
			return err
		}
	}
	switch {
	case lerr != nil:
		return &BusyError{Path: h.found}
	case leased:
		h.leased, h.class = true, ClassLeased
	case h.st.verity || readOnlyImage(h.fd):
		h.class = ClassFixed
	}
	return nil
}

// rootOnly asks only for other users: root may write everything it can see.
func (h *held) rootOnly() bool {
	return rootOnly(h.st, h.path) && unix.Faccessat2(h.fd, "", unix.W_OK, unix.AT_EACCESS|unix.AT_EMPTY_PATH) != nil
}

// readOnlyImage reports file systems that have no write path at all.
func readOnlyImage(fd int) bool {
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) != nil {
		return false
	}
	switch uint32(fs.Type) {
	case unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, unix.ISOFS_SUPER_MAGIC:
		return true
	}
	return false
}

// canonical asks the kernel for the descriptor's path; without /proc the links
// are walked and the result must be the same file.
func canonical(fd int, found string, st stat) (string, error) {
	var buf [4096]byte
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buf[:])
	if err == nil && n > 0 && n < len(buf) && buf[0] == '/' {
		return string(buf[:n]), nil
	}
	p, err := filepath.EvalSymlinks(found)
	if err != nil {
		return "", err
	}
	again, err := statPath(p)
	if err != nil {
		return "", err
	}
	if !again.same(st) {
		return "", &ChangedError{Path: found, Why: "its path leads elsewhere now"}
	}
	return p, nil
}

// sum sets the digest by reading the file.
func (h *held) sum(c *cache) error {
	for range 2 {
		d, err := hashFD(h.fd, h.st.size)
		if err != nil && err != errShort {
			return err
		}
		after, serr := statFD(h.fd)
		if serr != nil {
			return serr
		}
		if err == nil && after.same(h.st) {
			h.digest = d
			if h.class != ClassLoose {
				c.put(h.fd, h.st, d, h.form, time.Now())
			}
			return nil
		}
		h.st = after
	}
	return &BusyError{Path: h.path}
}

func (h *held) close() {
	if h.fd >= 0 {
		unix.Close(h.fd) // releases the lease with the last reference
		h.fd, h.leased = -1, false
	}
}

// Start says how to start the file: by path, or, if byDescriptor, through
// /proc/self/fd/N of file, which stays right when the path is replaced. file is
// owned by f and closed by Close; path is what a reader calls it.
func (f *File) Start() (path string, byDescriptor bool, file *os.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handle == nil && !f.closed && f.parts[0].fd >= 0 {
		f.handle = os.NewFile(uintptr(f.parts[0].fd), f.id.Canonical)
	}
	return f.startPath, f.byDescriptor, f.handle
}

// Recheck is called just before the start: all leases are still held and the
// files are those that were identified. From here to StartedOK no lease is given
// back. Errors: *BusyError, *ChangedError.
func (f *File) Recheck() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &ChangedError{Path: f.id.Canonical, Why: "it is no longer held"}
	}
	f.starting, f.started = true, time.Time{}
	for _, h := range f.parts {
		if err := h.recheck(); err != nil {
			f.starting = false
			return err
		}
	}
	return nil
}

func (h *held) recheck() error {
	if h.class == ClassLeased && !(h.leased && leaseHeld(h.fd)) {
		// It was asked back: try once more, then the comparison decides whether
		// anything was written meanwhile.
		h.unlock()
		ok, err := lease(h.fd)
		if err != nil || !ok {
			return &BusyError{Path: h.path}
		}
		h.leased = true
	}
	now, err := statFD(h.fd)
	if err != nil {
		return &ChangedError{Path: h.path, Why: err.Error()}
	}
	if !now.same(h.st) {
		return &ChangedError{Path: h.path, Why: "its content or attributes differ"}
	}
	if !h.pathIntact() {
		return &ChangedError{Path: h.path, Why: "its path leads to another file"}
	}
	return nil
}

func (h *held) pathIntact() bool {
	if h.via == "" {
		return true
	}
	now, err := statPath(h.via)
	return err == nil && now.same(h.st)
}

func (f *File) pathsIntact() bool {
	return !slices.ContainsFunc(f.parts, func(h *held) bool { return !h.pathIntact() })
}

// CheckStarted compares the program that process pid runs with the identified
// chain: "true" it is one of them; "ended" it is gone, and the path is still
// right; "replaced" it has exec'd another program already; "unknown" it may not
// be looked at. With an error the caller kills the process tree.
func (f *File) CheckStarted(pid int) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	exe, err := statPath("/proc/" + strconv.Itoa(pid) + "/exe")
	switch err {
	case nil:
		for _, h := range f.parts {
			if h.form != FormScript && exe.same(h.st) {
				// An interpreter says nothing about the script it was given.
				if f.scriptsIntact() {
					return "true", nil
				}
				return "", f.changed()
			}
		}
		// env, sudo and most wrappers exec'd the next program before we looked.
		if f.pathsIntact() {
			return "replaced", nil
		}
	case unix.ENOENT, unix.ESRCH:
		if f.pathsIntact() {
			return "ended", nil
		}
	default: // EACCES: not dumpable, or another user's by now
		return "unknown", nil
	}
	return "", f.changed()
}

func (f *File) changed() error {
	return &ChangedError{Path: f.id.Canonical, Why: "another file was started in its place"}
}

func (f *File) scriptsIntact() bool {
	return !slices.ContainsFunc(f.parts, func(h *held) bool { return h.form == FormScript && !h.pathIntact() })
}
