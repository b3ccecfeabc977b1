package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

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

// readSmall returns the text of a small regular file, "" for anything else: the
// files of version managers lie in work trees, where a FIFO may wait.
func readSmall(p string) string {
	if regular(p) != nil {
		return ""
	}
	fd, err := openRetry(p, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), p)
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxConfig {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return ""
	}
	return string(data)
}

func (h *held) readAt(buf []byte) int {
	n, err := unix.Pread(h.fd, buf, 0)
	if err != nil {
		return 0
	}
	return n
}
