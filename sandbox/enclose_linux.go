package sandbox

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/sandbox/seccomp"
)

// Enclose confines this whole process, all of its threads and for good: it may read below
// the paths named, and nothing else of the file system; it writes and executes no file,
// opens no socket and starts no process. Descriptors that are open stay usable. It is for
// a process of ours that parses what others wrote. Paths that are not there are left out.
//
// An error means that the process is not confined, or only partly, and must end.
func Enclose(read []string) error {
	abi, _, why := landlockABI()
	if abi <= 0 {
		return stateError(why)
	}
	var grants []Grant
	for _, path := range read {
		canonical, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue
		}
		info, err := os.Stat(canonical)
		if err != nil {
			continue
		}
		grants = append(grants, Grant{Path: canonical, Dir: info.IsDir(), Rights: Read})
	}
	// Programs that are linked with C find their threads there, to confine them one by one.
	if tasks, err := filepath.EvalSymlinks("/proc/self/task"); err == nil {
		grants = append(grants, Grant{Path: tasks, Dir: true, Rights: List})
	}
	rs, err := createRuleset(NetNone, abi)
	if err != nil {
		return err
	}
	if rs, err = fillRuleset(rs, grants, abi, nil); err != nil {
		return err
	}
	defer unix.Close(rs)
	limits := []struct {
		which int
		value uint64
	}{{unix.RLIMIT_CPU, 5}, {unix.RLIMIT_NOFILE, 64}, {unix.RLIMIT_CORE, 0}}
	for _, l := range limits {
		if err := unix.Setrlimit(l.which, &unix.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return &StepError{Step: "setrlimit", Err: err}
		}
	}
	ticket, err := newTicket()
	if err != nil {
		return err
	}
	// The guard of the filter shields a wrapper from its child; here there is none, and a
	// guard of our own pid would refuse the runtime its signals.
	progs, _, _, err := seccomp.Load(seccomp.Choice{Truncate: abi >= truncateABI}, math.MaxInt32, math.MaxInt32, ticket)
	if err != nil {
		return err
	}
	if err := ll.AllThreadsPrctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &StepError{Step: "no_new_privs", Err: err}
	}
	if err := ll.AllThreadsLandlockRestrictSelf(rs, 0); err != nil {
		return &StepError{Step: "landlock_restrict_self", Err: err}
	}
	for _, prog := range progs {
		if len(prog) == 0 {
			return &seccomp.Error{Step: "install", Err: errors.New("an empty program")}
		}
		fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
		_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
		if errno != 0 {
			return &seccomp.Error{Step: "install", Err: errno}
		}
	}
	return nil
}
