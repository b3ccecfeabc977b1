//go:build unix

package install

import (
	"os"

	"github.com/atip-dev/atip-exec/internal/flock"
)

// lock holds a directory against other installations; same says that it is still the one of
// this name.
func lock(dir string) (unlock func(), same bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, err
	}
	if err := flock.Exclusive(f); err != nil {
		f.Close()
		return nil, false, err
	}
	held, err := f.Stat()
	now, err2 := os.Stat(dir)
	return func() { f.Close() }, err == nil && err2 == nil && os.SameFile(held, now), nil
}
