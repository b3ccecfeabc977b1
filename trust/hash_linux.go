package trust

import (
	"crypto/sha256"

	"golang.org/x/sys/unix"
)

// hashFD reads exactly size bytes from the start of fd.
func hashFD(fd int, size int64) ([32]byte, error) {
	var d [32]byte
	buf := hashBuffers.Get().(*[]byte)
	defer hashBuffers.Put(buf)
	s := sha256.New()
	var off int64
	for {
		n, err := unix.Pread(fd, *buf, off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return d, err
		}
		if n == 0 {
			break
		}
		s.Write((*buf)[:n])
		if off += int64(n); off > size {
			return d, errShort
		}
	}
	if off != size {
		return d, errShort
	}
	s.Sum(d[:0])
	return d, nil
}
