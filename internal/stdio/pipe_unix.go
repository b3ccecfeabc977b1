//go:build unix

package stdio

import "golang.org/x/sys/unix"

// readOnlyPipe reports whether fd is a pipe that can only be read: anything that
// can be written would bypass the filter.
func readOnlyPipe(fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDONLY
}
