package sandbox

import (
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// inherited is written by Init alone, before any other goroutine exists.
var inherited []int

// Init prepares the process; it is the first statement of main. It notes the
// descriptors the caller left open and closes them to children, because no sandbox
// revokes what is already open, and keeps core dumps off the disk.
func Init() {
	inherited = namedDescriptors(os.Args)
	// ENOSYS before Linux 5.9, EINVAL before 5.11.
	if unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) != nil {
		for _, fd := range openDescriptors() {
			unix.CloseOnExec(fd)
		}
	}
	// One byte, not zero: with zero a core handler behind a pipe is started still (core(5)).
	limitCore()
}

func limitCore() {
	var old syscall.Rlimit
	if syscall.Getrlimit(unix.RLIMIT_CORE, &old) == nil && old.Max > 1 {
		// Cannot fail: lowering needs no privilege.
		_ = syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{Cur: 1, Max: 1})
	}
}

// InheritedFDs returns the descriptors from 3 up that the caller left open and the
// command line names, if only by having their number somewhere in a word. Nobody may
// ask for others, and to list all would cost a tenth of a start.
func InheritedFDs() []int { return inherited }

// namedDescriptors looks at each number in args.
func namedDescriptors(args []string) []int {
	var out []int
	for _, word := range args {
		for i := 0; i < len(word); i++ {
			fd := 0
			for ; i < len(word) && word[i] >= '0' && word[i] <= '9' && fd <= maxDescriptor; i++ {
				fd = fd*10 + int(word[i]-'0')
			}
			if fd >= 3 && fd <= maxDescriptor && left(fd) && !slices.Contains(out, fd) {
				out = append(out, fd)
			}
		}
	}
	return out
}

// maxDescriptor is above what fs.nr_open can be set to.
const maxDescriptor = 1 << 30

// left reports whether the caller left fd open to us: the Go runtime's own have CLOEXEC.
func left(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// openDescriptors lists what the caller left open.
func openDescriptors() []int {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var out []int
	for _, name := range names {
		fd, err := strconv.Atoi(name)
		if err == nil && fd >= 3 && left(fd) {
			out = append(out, fd)
		}
	}
	return out
}
