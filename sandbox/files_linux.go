package sandbox

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// HostFiles is the file system of this machine.
func HostFiles() Files { return hostFiles{} }

type hostFiles struct{}

// Resolve opens the path and asks the kernel for its name: four system calls instead
// of one per component, and no window between them.
func (hostFiles) Resolve(path string) (string, bool, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", false, err
	}
	name, err := descriptorName(fd)
	if err != nil {
		return "", false, err
	}
	if st.Nlink == 0 || name == "" || name[0] != '/' {
		return "", false, errors.New("it has no name any more")
	}
	return name, st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

// Loader implements Files.
func (hostFiles) Loader(path string) []string { return loaderOf(path) }

// descriptorName is what /proc calls an open descriptor.
func descriptorName(fd int) (string, error) {
	var buf [unix.PathMax]byte
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buf[:])
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
