//go:build !unix

package shims

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// readSafe returns the content of a metadata file. Ownership is not expressed in
// mode bits here, so no file counts as the administrator's.
func readSafe(file string) (raw []byte, rootOwned bool, err error) {
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, fs.ErrNotExist
	case err != nil:
		return nil, false, &Error{Code: "E1106", File: file, Msg: "cannot be examined: " + err.Error(), Err: err}
	case !info.Mode().IsRegular():
		return nil, false, &Error{Code: "E1106", File: file, Msg: "is not a regular file"}
	case info.Size() > maxFile:
		return nil, false, &Error{Code: "E1102", File: file, Msg: "larger than 4 MiB"}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, false, &Error{Code: "E1106", File: file, Msg: "cannot be opened: " + err.Error(), Err: err}
	}
	defer f.Close()
	raw, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil || len(raw) > maxFile {
		return nil, false, &Error{Code: "E1106", File: file, Msg: "changed while it was read", Err: err}
	}
	return raw, false, nil
}
