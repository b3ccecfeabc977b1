package sandbox

import (
	"cmp"
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
	return cmp.Or(map[int32]string{
		unix.SYS_CLONE:             "clone",
		unix.SYS_UNSHARE:           "unshare",
		unix.SYS_SETNS:             "setns",
		unix.SYS_MOUNT:             "mount",
		unix.SYS_UMOUNT2:           "umount2",
		unix.SYS_CHROOT:            "chroot",
		unix.SYS_PIVOT_ROOT:        "pivot_root",
		unix.SYS_BPF:               "bpf",
		unix.SYS_PERF_EVENT_OPEN:   "perf_event_open",
		unix.SYS_IOCTL:             "ioctl",
		unix.SYS_KILL:              "kill",
		unix.SYS_TKILL:             "kill",
		unix.SYS_TGKILL:            "kill",
		unix.SYS_PERSONALITY:       "personality",
		unix.SYS_PRLIMIT64:         "prlimit64",
		unix.SYS_SETPRIORITY:       "setpriority",
		unix.SYS_SCHED_SETAFFINITY: "sched_setaffinity",
		unix.SYS_MKNODAT:           "mknodat",
		unix.SYS_FCHMODAT:          "fchmodat",
		unix.SYS_FCHOWNAT:          "fchownat",
		unix.SYS_UTIMENSAT:         "utimensat",
		unix.SYS_PTRACE:            "ptrace",
	}[nr], "system call "+strconv.Itoa(int(nr)))
}

func familyName(family uint64) string {
	return cmp.Or(map[uint64]string{
		unix.AF_UNIX:    "AF_UNIX",
		unix.AF_INET:    "AF_INET",
		unix.AF_INET6:   "AF_INET6",
		unix.AF_NETLINK: "AF_NETLINK",
		unix.AF_PACKET:  "AF_PACKET",
		unix.AF_VSOCK:   "AF_VSOCK",
		unix.AF_ALG:     "AF_ALG",
	}[family], "address family "+strconv.FormatUint(family, 10))
}
