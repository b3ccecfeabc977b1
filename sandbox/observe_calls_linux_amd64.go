package sandbox

import "golang.org/x/sys/unix"

// plain returns the calls of this architecture that take no directory descriptor, with
// the path in the first argument, as the call that does.
func plain(nr int32, a [6]uint64) (int32, [6]uint64) {
	const cwd = 1<<64 + unix.AT_FDCWD
	switch nr {
	case unix.SYS_OPEN:
		return unix.SYS_OPENAT, [6]uint64{cwd, a[0], a[1], a[2]}
	case unix.SYS_CREAT:
		return unix.SYS_OPENAT, [6]uint64{cwd, a[0], unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC, a[1]}
	case unix.SYS_RENAME:
		return unix.SYS_RENAMEAT, [6]uint64{cwd, a[0], cwd, a[1]}
	case unix.SYS_UNLINK:
		return unix.SYS_UNLINKAT, [6]uint64{cwd, a[0], 0}
	case unix.SYS_RMDIR:
		return unix.SYS_UNLINKAT, [6]uint64{cwd, a[0], unix.AT_REMOVEDIR}
	case unix.SYS_MKDIR:
		return unix.SYS_MKDIRAT, [6]uint64{cwd, a[0], a[1]}
	case unix.SYS_LINK:
		return unix.SYS_LINKAT, [6]uint64{cwd, a[0], cwd, a[1]}
	case unix.SYS_SYMLINK:
		return unix.SYS_SYMLINKAT, [6]uint64{a[0], cwd, a[1]}
	case unix.SYS_MKNOD:
		return unix.SYS_MKNODAT, [6]uint64{cwd, a[0], a[1], a[2]}
	}
	return nr, a
}
