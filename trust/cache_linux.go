package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
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
