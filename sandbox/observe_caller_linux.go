package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// path reads a path argument of the caller and makes it absolute; "" if that fails.
func (o *observer) path(pid int, dirfd, address uint64) string {
	name := peekString(pid, address)
	if name == "" || name[0] == '/' {
		return name
	}
	at := "/proc/" + strconv.Itoa(pid) + "/cwd"
	if int32(dirfd) != unix.AT_FDCWD {
		at = "/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.Itoa(int(int32(dirfd)))
	}
	dir, err := os.Readlink(at)
	if err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	return dir + "/" + name
}

func peekString(pid int, address uint64) string {
	var buf [unix.PathMax]byte
	// Up to the end of a page at a time: the next one need not be there.
	for have := 0; have < len(buf); {
		n := min(len(buf)-have, 4096-int((address+uint64(have))%4096))
		got := peek(pid, address+uint64(have), buf[have:have+n])
		if got <= 0 {
			return ""
		}
		if i := strings.IndexByte(string(buf[have:have+got]), 0); i >= 0 {
			return string(buf[:have+i])
		}
		have += got
	}
	return ""
}

// peek reads memory of another process.
func peek(pid int, address uint64, into []byte) int {
	if address == 0 || len(into) == 0 {
		return 0
	}
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}, 0)
	if err != nil {
		return 0
	}
	return n
}

// callName names the calls that programs are seen to be refused.
func callName(nr int32) string {
	switch nr {
	case unix.SYS_CLONE:
		return "clone"
	case unix.SYS_UNSHARE:
		return "unshare"
	case unix.SYS_SETNS:
		return "setns"
	case unix.SYS_MOUNT:
		return "mount"
	case unix.SYS_UMOUNT2:
		return "umount2"
	case unix.SYS_CHROOT:
		return "chroot"
	case unix.SYS_PIVOT_ROOT:
		return "pivot_root"
	case unix.SYS_BPF:
		return "bpf"
	case unix.SYS_PERF_EVENT_OPEN:
		return "perf_event_open"
	case unix.SYS_IOCTL:
		return "ioctl"
	case unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL:
		return "kill"
	case unix.SYS_PERSONALITY:
		return "personality"
	case unix.SYS_PRLIMIT64:
		return "prlimit64"
	case unix.SYS_SETPRIORITY:
		return "setpriority"
	case unix.SYS_SCHED_SETAFFINITY:
		return "sched_setaffinity"
	case unix.SYS_MKNODAT:
		return "mknodat"
	case unix.SYS_FCHMODAT:
		return "fchmodat"
	case unix.SYS_FCHOWNAT:
		return "fchownat"
	case unix.SYS_UTIMENSAT:
		return "utimensat"
	case unix.SYS_PTRACE:
		return "ptrace"
	}
	return "system call " + strconv.Itoa(int(nr))
}

func familyName(family uint64) string {
	switch family {
	case unix.AF_UNIX:
		return "AF_UNIX"
	case unix.AF_INET:
		return "AF_INET"
	case unix.AF_INET6:
		return "AF_INET6"
	case unix.AF_NETLINK:
		return "AF_NETLINK"
	case unix.AF_PACKET:
		return "AF_PACKET"
	case unix.AF_VSOCK:
		return "AF_VSOCK"
	case unix.AF_ALG:
		return "AF_ALG"
	}
	return "address family " + strconv.FormatUint(family, 10)
}
