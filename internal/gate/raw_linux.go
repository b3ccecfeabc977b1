package gate

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Calls that the kernel answers at once, out of its own memory, are made without a word to the
// scheduler. With each that it hears of it would begin to look, fifty times in a millisecond, whether
// the call has returned: that costs more than the whole answer to a start.

func rawOpen(path string, flags int) (int, unix.Errno) {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return -1, unix.EINVAL
	}
	at := unix.AT_FDCWD
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(p)), uintptr(flags), 0, 0, 0)
	return int(fd), errno
}

const resolveCached = 0x20 // RESOLVE_CACHED, since Linux 5.12

// rawOpenAt opens what openat2(2) finds without waiting for a disk or a server: EAGAIN otherwise, and
// for most symbolic links. wait lets it wait.
func rawOpenAt(dir int, path string, how unix.OpenHow, wait bool) (int, unix.Errno) {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return -1, unix.EINVAL
	}
	if !wait {
		how.Resolve |= resolveCached
	}
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT2, uintptr(dir), uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&how)), unix.SizeofOpenHow, 0, 0)
	return int(fd), errno
}

func rawRead(fd int, buf []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)))
	runtime.KeepAlive(buf)
	return int(n), errno
}

// rawFileOf is the device and the inode of a file of the system, or one that /proc has a link to.
func rawFileOf(path string) (dev, ino uint64, errno unix.Errno) {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return 0, 0, unix.EINVAL
	}
	at := unix.AT_FDCWD
	var st unix.Statx_t
	_, _, errno = unix.RawSyscall6(unix.SYS_STATX, uintptr(at), uintptr(unsafe.Pointer(p)), unix.AT_STATX_DONT_SYNC, unix.STATX_INO, uintptr(unsafe.Pointer(&st)), 0)
	return unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino, errno
}

func rawReadlink(path string) (string, unix.Errno) {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return "", unix.EINVAL
	}
	at := unix.AT_FDCWD
	var buf [unix.PathMax]byte
	n, _, errno := unix.RawSyscall6(unix.SYS_READLINKAT, uintptr(at), uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&buf)), uintptr(len(buf)), 0, 0)
	if errno != 0 {
		return "", errno
	}
	return string(buf[:n]), 0
}

func rawClose(fd int) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }
