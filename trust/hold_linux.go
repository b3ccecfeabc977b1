package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

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

const statxMask = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID | statxMntIDUnique

func statxAt(fd int, path string, flags int) (stat, error) {
	var x unix.Statx_t
	for {
		err := unix.Statx(fd, path, flags|unix.AT_STATX_SYNC_AS_STAT, statxMask, &x)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return stat{}, err
		}
	}
	return statOf(&x), nil
}

// statSystem is statPath for a path of the system, without a word to the scheduler: what hangs there
// hangs this program anyway, and to be looked after costs more than the call.
func statSystem(path string) (stat, error) {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return stat{}, err
	}
	at := unix.AT_FDCWD
	var x unix.Statx_t
	if _, _, errno := unix.RawSyscall6(unix.SYS_STATX, uintptr(at), uintptr(unsafe.Pointer(p)), unix.AT_STATX_SYNC_AS_STAT, statxMask, uintptr(unsafe.Pointer(&x)), 0); errno != 0 {
		return stat{}, errno
	}
	return statOf(&x), nil
}

func statOf(x *unix.Statx_t) stat {
	ns := func(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }
	return stat{
		major: x.Dev_major, minor: x.Dev_minor, dev: unix.Mkdev(x.Dev_major, x.Dev_minor), mnt: x.Mnt_id, ino: x.Ino,
		size: int64(x.Size), mtime: ns(x.Mtime), ctime: ns(x.Ctime), btime: ns(x.Btime),
		mode: uint32(x.Mode), uid: x.Uid, gid: x.Gid, nlink: x.Nlink,
		verity: x.Attributes_mask&unix.STATX_ATTR_VERITY != 0 && x.Attributes&unix.STATX_ATTR_VERITY != 0,
	}
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
	if err := isRegular(p); err != nil {
		return err
	}
	return unix.Faccessat2(unix.AT_FDCWD, p, unix.X_OK, unix.AT_EACCESS)
}

func isRegular(p string) error {
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

// keeps reports whether name, an entry of root in dir, cannot be replaced because dir is a sticky directory
// of root (unlink(2), EPERM). Such is /nix/store, where the builders of packages may add entries.
func keeps(dir, name string) bool {
	var above, st unix.Stat_t
	return unix.Stat(dir, &above) == nil && above.Mode&unix.S_ISVTX != 0 && owner.IsRoot(above.Uid, dir) &&
		unix.Lstat(name, &st) == nil && owner.IsRoot(st.Uid, name)
}

// replaceable reports whether somebody other than root can replace entries of
// dir. A sticky directory counts: its files' owners can (see keeps).
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
		return isRegular(h.found)
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

// A digest record is magic, key, digest and form. The key is the whole stat
// identity; the file name is half of its hash, and the key inside is compared.
const (
	cacheMagic  = "ATIPDG1\n"
	cacheKeyLen = 4 + 4 + 8 + 8 + 8 + 3*8 + 3*4
	cacheLen    = len(cacheMagic) + cacheKeyLen + 32 + 1
	// cacheSettle: a file changed within the clock's granularity keeps its ctime,
	// so a digest is stored only when the last change lies well back.
	cacheSettle = 2 * time.Second
)

// cache is the digest directory of one Open. A nil cache answers nothing.
type cache struct {
	dir      string
	readOnly bool
}

// openCache returns the cache in dir if that is ours alone; otherwise there is
// no cache.
func openCache(dir string, readOnly bool) *cache {
	if dir == "" {
		return nil
	}
	var st unix.Stat_t
	err := unix.Lstat(dir, &st)
	if err == unix.ENOENT && !readOnly && os.MkdirAll(dir, 0o700) == nil {
		err = unix.Lstat(dir, &st)
	}
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Uid != uint32(euid()) || st.Mode&0o077 != 0 {
		return nil
	}
	return &cache{dir: dir, readOnly: readOnly}
}

func cacheKey(s stat) (key [cacheKeyLen]byte) {
	b := key[:0]
	le := binary.LittleEndian
	b = le.AppendUint32(b, s.major)
	b = le.AppendUint32(b, s.minor)
	b = le.AppendUint64(b, s.mnt)
	b = le.AppendUint64(b, s.ino)
	b = le.AppendUint64(b, uint64(s.size))
	b = le.AppendUint64(b, uint64(s.mtime))
	b = le.AppendUint64(b, uint64(s.ctime))
	b = le.AppendUint64(b, uint64(s.btime))
	b = le.AppendUint32(b, s.mode)
	b = le.AppendUint32(b, s.uid)
	le.AppendUint32(b, s.gid)
	return key
}

func (c *cache) file(key [cacheKeyLen]byte) string {
	sum := sha256.Sum256(key[:])
	return c.dir + "/" + hex.EncodeToString(sum[:16])
}

// get returns the stored digest and form of the file with this stat.
func (c *cache) get(s stat) (d [32]byte, form Form, ok bool) {
	if c == nil {
		return d, 0, false
	}
	key := cacheKey(s)
	fd, err := openRetry(c.file(key), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC)
	if err != nil {
		return d, 0, false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o077 != 0 ||
		st.Uid != uint32(euid()) || st.Nlink != 1 || st.Size != int64(cacheLen) {
		return d, 0, false
	}
	var rec [cacheLen + 1]byte
	n, err := unix.Read(fd, rec[:])
	if err != nil || n != cacheLen || string(rec[:len(cacheMagic)]) != cacheMagic ||
		[cacheKeyLen]byte(rec[len(cacheMagic):]) != key {
		return d, 0, false
	}
	copy(d[:], rec[len(cacheMagic)+cacheKeyLen:])
	form = Form(rec[cacheLen-1])
	return d, form, form > FormUnknown && form < formCount
}

// put stores a digest, if the file system tells truthfully when a file changed.
// A failure to store costs the next run some time and nothing else.
func (c *cache) put(fd int, s stat, d [32]byte, form Form, now time.Time) {
	if c == nil || c.readOnly || s.size == 0 || now.UnixNano()-s.ctime < int64(cacheSettle) || !truthfulTimes(fd) {
		return
	}
	key := cacheKey(s)
	rec := make([]byte, 0, cacheLen)
	rec = append(rec, cacheMagic...)
	rec = append(rec, key[:]...)
	rec = append(rec, d[:]...)
	rec = append(rec, byte(form))
	tmp := c.dir + "/tmp-" + rand.Text()
	out, err := unix.Open(tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return
	}
	n, err := unix.Write(out, rec)
	unix.Close(out)
	if err != nil || n != len(rec) || unix.Rename(tmp, c.file(key)) != nil {
		unix.Unlink(tmp)
	}
}

// truthfulTimes lists the local file systems whose ctime changes with every
// change of content. NFS, 9p and FUSE answer from a server we cannot judge.
func truthfulTimes(fd int) bool {
	const (
		zfsMagic      = 0x2fc12fc1
		bcachefsMagic = 0xca451a4e
	)
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) != nil {
		return false
	}
	switch uint32(fs.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, zfsMagic,
		bcachefsMagic, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1,
		unix.ISOFS_SUPER_MAGIC:
		return true
	}
	return false
}

// Bounds of the digest cache: a run adds at most a few records, nobody else
// removes any.
const (
	pruneAge   = 90 * 24 * time.Hour
	pruneCount = 20_000
)

// PruneCache removes digest records older than 90 days and, beyond 20,000, the
// oldest. It belongs to maintenance, never to the path of a command.
func PruneCache(dir string, now time.Time) (removed int, err error) {
	if openCache(dir, true) == nil {
		return 0, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	type record struct {
		name string
		time time.Time
	}
	var keep []record
	remove := func(name string) {
		if os.Remove(filepath.Join(dir, name)) == nil {
			removed++
		}
	}
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || !fi.Mode().IsRegular() {
			continue
		}
		if now.Sub(fi.ModTime()) > pruneAge {
			remove(e.Name())
			continue
		}
		keep = append(keep, record{e.Name(), fi.ModTime()})
	}
	if over := len(keep) - pruneCount; over > 0 {
		sort.Slice(keep, func(i, j int) bool { return keep[i].time.Before(keep[j].time) })
		for _, r := range keep[:over] {
			remove(r.name)
		}
	}
	return removed, nil
}

// lease takes a read lease (fcntl_locking(2), F_SETLEASE): from then on an open
// for writing waits, or gets EAGAIN, until we let go. false without an error
// means that this file cannot be leased; an error, that it is open for writing.
func lease(fd int) (bool, error) {
	announceBy(fd)
	for try := 0; ; try++ {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
		switch {
		case err == nil:
			return true, nil
		case err == unix.EINTR:
		case err != unix.EAGAIN:
			return false, nil
		case try >= 2:
			return false, err
		default:
			time.Sleep(time.Duration(15+20*try) * time.Millisecond)
		}
	}
}

// leaseHeld reports whether the lease is held and nobody asks for it back: while
// a writer waits, F_GETLEASE names the type the lease is being broken to.
func leaseHeld(fd int) bool {
	t, err := unix.FcntlInt(uintptr(fd), unix.F_GETLEASE, 0)
	return err == nil && t == unix.F_RDLCK
}

// wanted reports whether a writer waits for the lease.
func (h *held) wanted() bool { return h.leased && !leaseHeld(h.fd) }

func (h *held) unlock() {
	if h.leased && h.fd >= 0 {
		unix.FcntlInt(uintptr(h.fd), unix.F_SETLEASE, unix.F_UNLCK)
		h.leased = false
	}
}

// listenAfter is how long leases are held before anybody listens for a writer who
// wants one back. Most runs are past the start by then and hold none, and catching
// SIGIO costs switches of threads that the start would wait for.
const listenAfter = 10 * time.Millisecond

// watch is the set of open files whose leases somebody may ask back. Its lock is
// never held while one of a File is taken.
var watch struct {
	mu    sync.Mutex
	files []*File
	timed bool // listen was called, or will be
	catch sync.Once
}

// listening is set once SIGIO is caught, for good.
var listening atomic.Bool

// announceBy chooses the signal by which the kernel asks for the lease of fd. Until
// SIGIO is caught, which would end this process, it is SIGURG: the Go runtime takes
// and drops that one.
func announceBy(fd int) {
	sig := unix.SIGURG
	if listening.Load() {
		sig = unix.SIGIO
	}
	// A refusal leaves no lease to be asked for either.
	unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(sig))
}

// listen catches SIGIO if a lease is held, and looks whether one was wanted before.
// The signal is caught and not ignored: a child would inherit that.
func listen() {
	files := watched()
	if !anyLeased(files) {
		watch.mu.Lock()
		watch.timed = false
		watch.mu.Unlock()
		return
	}
	catchSIGIO()
	for _, f := range files {
		f.announce()
		f.yield()
	}
}

func catchSIGIO() {
	watch.catch.Do(func() {
		c := make(chan os.Signal, 1)
		signal.Notify(c, unix.SIGIO)
		listening.Store(true)
		go func() {
			for range c {
				for _, f := range watched() {
					f.yield()
				}
			}
		}()
	})
}

func watched() []*File {
	watch.mu.Lock()
	defer watch.mu.Unlock()
	return append([]*File(nil), watch.files...)
}

func anyLeased(files []*File) bool {
	for _, f := range files {
		f.mu.Lock()
		leased := f.leased()
		f.mu.Unlock()
		if leased {
			return true
		}
	}
	return false
}

// leased reports whether a part is held by a lease. f is locked, or nobody else has it.
func (f *File) leased() bool {
	return slices.ContainsFunc(f.parts, func(h *held) bool { return h.leased })
}

// announce makes SIGIO the signal of all leases of f.
func (f *File) announce() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.parts {
		if h.leased && h.fd >= 0 {
			announceBy(h.fd)
		}
	}
}

func watchFile(f *File) {
	if !f.leased() {
		return
	}
	watch.mu.Lock()
	defer watch.mu.Unlock()
	watch.files = append(watch.files, f)
	if !watch.timed || listening.Load() {
		watch.timed = true
		time.AfterFunc(listenAfter, listen)
	}
}

func unwatch(f *File) {
	watch.mu.Lock()
	defer watch.mu.Unlock()
	for i, g := range watch.files {
		if g == f {
			last := len(watch.files) - 1
			watch.files[i] = watch.files[last]
			watch.files[last] = nil
			watch.files = watch.files[:last]
			return
		}
	}
}

// yield gives leases back that a writer waits for, so that an editor does not
// hang for /proc/sys/fs/lease-break-time (45 s). It does so while a person is
// asked, when Recheck will notice, and while a script runs; never between.
func (f *File) yield() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || (f.starting && f.started.IsZero()) {
		return
	}
	if wait := scriptGrace - time.Since(f.started); f.starting && wait > 0 {
		time.AfterFunc(wait, f.yield)
		return
	}
	for _, h := range f.parts {
		if h.wanted() {
			h.unlock()
			f.broken = f.broken || f.starting
		}
	}
}

func (h *held) readAt(buf []byte) int {
	n, err := unix.Pread(h.fd, buf, 0)
	if err != nil {
		return 0
	}
	return n
}
