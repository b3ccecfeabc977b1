//go:build !unix

package shims

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// readSafe returns the content of a metadata file. Ownership is not expressed in
// mode bits here, so no file counts as the administrator's.
func readSafe(file string) (raw []byte, rootOwned bool, err error) {
	return readSafeUpTo(file, maxFile)
}

func readSafeUpTo(file string, limit int64) (raw []byte, rootOwned bool, err error) {
	f, err := openSafe(file, limit)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	raw, err = f.all()
	return raw, false, err
}

// safeFile is a file that has passed the checks of readSafe and is still open.
type safeFile struct {
	*os.File
	path      string
	limit     int64
	rootOwned bool
}

func openSafe(file string, limit int64) (*safeFile, error) {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, unsafeFile(file, "cannot be examined: "+err.Error(), err)
	case !info.Mode().IsRegular():
		return nil, unsafeFile(file, "is not a regular file", nil)
	case info.Size() > limit:
		return nil, &Error{Code: errcode.MetadataLimit, File: file, Msg: "larger than " + strconv.FormatInt(limit>>20, 10) + " MiB"}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, unsafeFile(file, "cannot be opened: "+err.Error(), err)
	}
	return &safeFile{File: f, path: file, limit: limit}, nil
}

// all reads the file, which must not change meanwhile.
func (f *safeFile) all() ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(f, f.limit+1))
	if err != nil || int64(len(raw)) > f.limit {
		return nil, unsafeFile(f.path, "changed while it was read", err)
	}
	return raw, nil
}

// lockFile waits until nobody else has the lock file. There is no lock that ends with
// its process here, so one that is older than a minute counts as left behind.
func lockFile(path string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return func() { f.Close(); os.Remove(path) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > time.Minute {
			os.Remove(path)
			continue
		}
		time.Sleep(20 * time.Millisecond)
	}
}
