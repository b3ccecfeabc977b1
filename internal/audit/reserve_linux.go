package audit

import (
	"crypto/rand"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Space set aside beyond the end of the daily file: many runs may be under way,
// each with a record of at most maxLine to come.
const (
	reserveWant = 1 << 20
	reserveLow  = 512 << 10
	keepSize    = 1 // FALLOC_FL_KEEP_SIZE
)

// reserve allocates blocks beyond the end of f, which later appends fill, so that
// a disk that fills up meanwhile does not cost the record.
func reserve(f *os.File) error {
	var st syscall.Stat_t
	fd := int(f.Fd())
	if err := syscall.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Blocks*512-st.Size >= reserveLow {
		return nil
	}
	err := fallocate(fd, st.Size, reserveWant)
	if err == syscall.ENOSPC || err == syscall.EDQUOT {
		err = fallocate(fd, st.Size, maxLine*2)
	}
	if err == syscall.EOPNOTSUPP || err == syscall.ENOSYS {
		return freeSpace(fd)
	}
	return err
}

func fallocate(fd int, off, n int64) error {
	for {
		err := syscall.Fallocate(fd, keepSize, off, n)
		if err != syscall.EINTR {
			return err
		}
	}
}

// freeSpace is the weaker answer where blocks cannot be set aside.
func freeSpace(fd int) error {
	var fs syscall.Statfs_t
	if err := syscall.Fstatfs(fd, &fs); err != nil {
		return err
	}
	if fs.Bavail*uint64(fs.Bsize) < reserveWant {
		return syscall.ENOSPC
	}
	return nil
}

// trim gives back what was set aside for a day that is over.
func trim(p string) {
	f, err := openPrivate(p, os.O_RDWR)
	if err != nil {
		return
	}
	defer f.Close()
	if fi, err := f.Stat(); err == nil {
		f.Truncate(fi.Size())
	}
}

// random fills b. The generator behind crypto/rand is started by its first use, which
// costs as much as fifty system calls; ids need one.
func random(b []byte) {
	if n, err := unix.Getrandom(b, 0); err != nil || n != len(b) {
		rand.Read(b)
	}
}
