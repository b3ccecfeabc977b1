package settle

import (
	"path/filepath"
	"syscall"
	"testing"
)

// BenchmarkCachedVerdictFloor is what the kernel takes of a cached verdict: the five calls
// without which a record cannot be believed.
func BenchmarkCachedVerdictFloor(b *testing.B) {
	s, key := stored(b)
	path := s.verdictPath(key)
	dir := filepath.Dir(path)
	buf := make([]byte, 4<<10)
	for b.Loop() {
		var st syscall.Stat_t
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		if err != nil || syscall.Fstat(fd, &st) != nil || syscall.Lstat(dir, &st) != nil {
			b.Fatal(err)
		}
		if n, err := syscall.Read(fd, buf); n == 0 || err != nil {
			b.Fatal(err)
		}
		syscall.Close(fd)
	}
}
