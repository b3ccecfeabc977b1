package sandbox

import (
	"errors"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// HostFiles is the file system of this machine, as it is while one profile is derived:
// what was looked up once is not looked up again.
func HostFiles() Files { return &hostFiles{known: make(map[string]found, 64)} }

type hostFiles struct{ known map[string]found }

// found is the answer for a path whose parent is canonical.
type found struct {
	path string
	dir  bool
	err  error
}

// Resolve costs one lstat for each name that was not seen yet: the parent is resolved
// first, and a name that is no link in a canonical directory is canonical.
func (h *hostFiles) Resolve(path string) (string, bool, error) {
	if !filepath.IsAbs(path) {
		f := h.open(path)
		return f.path, f.dir, f.err
	}
	f := h.resolve(filepath.Clean(path))
	return f.path, f.dir, f.err
}

func (h *hostFiles) resolve(path string) found {
	if path == "/" {
		return found{path: "/", dir: true}
	}
	if f, ok := h.known[path]; ok {
		return f
	}
	f := h.lookup(path)
	h.known[path] = f
	return f
}

func (h *hostFiles) lookup(path string) found {
	parent := h.resolve(filepath.Dir(path))
	switch {
	case parent.err != nil:
		return parent
	case !parent.dir:
		return found{err: unix.ENOTDIR}
	}
	name := path
	if dir := filepath.Dir(path); dir != parent.path {
		name = filepath.Join(parent.path, filepath.Base(path))
	}
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		return found{err: err}
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return h.open(name)
	}
	return found{path: name, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}
}

// open follows links by opening the path and asking the kernel for its name.
func (h *hostFiles) open(path string) found {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return found{err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return found{err: err}
	}
	name, err := descriptorName(fd)
	if err != nil {
		return found{err: err}
	}
	if st.Nlink == 0 || name == "" || name[0] != '/' {
		return found{err: errors.New("it has no name any more")}
	}
	return found{path: name, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}
}

// Directory is what a path leads to: its name without links and its identity, both of the same
// directory even if somebody changes the path meanwhile.
func Directory(path string) (canonical string, id DirID, err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", DirID{}, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", DirID{}, err
	}
	if canonical, err = descriptorName(fd); err == nil && (st.Nlink == 0 || !filepath.IsAbs(canonical)) {
		err = errors.New("it has no name any more")
	}
	return canonical, DirID{st.Dev, st.Ino}, err
}

// check refuses an open directory that is another than the one that was judged.
func (id DirID) check(fd int, path string) error {
	if id == (DirID{}) {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &StepError{Step: "change directory", Path: path, Err: err}
	}
	if id != (DirID{st.Dev, st.Ino}) {
		return &StepError{Step: "change directory", Path: path, Code: errcode.PathChanged, Err: errors.New("it is another directory now than the one that was judged")}
	}
	return nil
}

// Loader implements Files.
func (h *hostFiles) Loader(path string) []string { return loaderOf(path) }

// descriptorName is what /proc calls an open descriptor.
func descriptorName(fd int) (string, error) {
	var buf [unix.PathMax]byte
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
