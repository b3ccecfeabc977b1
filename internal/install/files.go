package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/wiring"
)

var errNotDir = syscall.ENOTDIR

// file is one of the shared files, looked at.
type file struct{ wiring.File }

// wrong says how a file differs from what it should be, "" if it does not.
func (f file) wrong() string {
	info, err := os.Lstat(f.Path)
	switch {
	case err != nil:
		return "is gone"
	case f.Link != "":
		if to, err := os.Readlink(f.Path); err != nil || to != f.Link {
			return "does not lead to " + f.Link
		}
		return ""
	case !info.Mode().IsRegular():
		return "is not a regular file"
	case info.Mode().Perm() != 0o755:
		return "has the mode " + info.Mode().Perm().String()
	}
	if raw, err := regular.ReadNoFollow(f.Path, 1<<20); err != nil || string(raw) != f.Text {
		return "was changed"
	}
	return ""
}

// settings reads a settings file that may be changed: a regular file of this user, through no
// link, as what it leads to may be another machine's or another tool's.
func settings(path string) (raw []byte, exists bool, err error) {
	if dir := filepath.Dir(path); !plain(dir) {
		return nil, false, cannotChange(path, "lies behind a symbolic link", "change the file that it leads to by hand; --print shows what belongs into it")
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, cannotChange(path, reason(err), "")
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, false, cannotChange(path, "is a symbolic link", "change the file that it leads to by hand; --print shows what belongs into it")
	case !info.Mode().IsRegular():
		return nil, false, cannotChange(path, "is not a regular file", "move it away")
	case foreign(info):
		return nil, false, cannotChange(path, "belongs to another user", "let its owner change it; --print shows what belongs into it")
	case info.Mode()&0o200 == 0:
		return nil, false, cannotChange(path, "is read-only", "chmod u+w "+wiring.Word(path))
	}
	raw, err = regular.ReadNoFollow(path, 4<<20)
	if err != nil {
		return nil, false, cannotChange(path, reason(err), "")
	}
	return raw, true, nil
}

// plain reports whether the last directory of a path that exists is no link.
func plain(dir string) bool {
	info, err := os.Lstat(dir)
	return err != nil || info.Mode()&fs.ModeSymlink == 0
}

// mkdirs makes a directory and those above it, and returns what it made, the highest first.
func mkdirs(dir string) (made []string, err error) {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return nil, &fs.PathError{Op: "mkdir", Path: dir, Err: errNotDir}
		}
		return nil, nil
	}
	if made, err = mkdirs(filepath.Dir(dir)); err != nil {
		return made, err
	}
	// Whatever the umask is: what others can write counts for nothing.
	if err = os.Mkdir(dir, 0o700); err == nil {
		return append(made, dir), nil
	}
	if errors.Is(err, fs.ErrExist) {
		return made, nil
	}
	return made, err
}

// rmdirs removes directories that are empty, the lowest first.
func rmdirs(made []string) {
	made = slices.SortedFunc(slices.Values(made), func(a, b string) int { return len(b) - len(a) })
	for _, dir := range made {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			os.Remove(dir)
		}
	}
}

func replaceLink(path, to string) error {
	temp := path + ".new"
	os.Remove(temp)
	if err := os.Symlink(to, temp); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// foreign reports a file that is another user's.
func foreign(info fs.FileInfo) bool {
	uid, _, ok := owner.Of(info)
	return ok && uid != os.Geteuid()
}
