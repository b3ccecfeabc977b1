package seccomp

import "golang.org/x/sys/unix"

// observed are the calls that name a path or an address.
var observed = [...]uint16{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_CONNECT, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2,
	unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_TRUNCATE, unix.SYS_MKNODAT,
}
