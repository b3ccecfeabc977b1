package sandbox

import (
	"errors"

	"golang.org/x/sys/unix"
)

// dropCapabilities empties every capability set of the calling thread. The raw calls
// are per thread, so the wrapper keeps what it had.
func dropCapabilities() error {
	for c := uintptr(0); c <= 63; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // past the last capability of this kernel
		}
		if errors.Is(err, unix.EPERM) {
			// Without CAP_SETPCAP the bounding set stays, but no_new_privs keeps an
			// execve from gaining anything out of it (security/commoncap.c).
			break
		}
		if err != nil {
			return &StepError{Step: "drop bounding set", Err: err}
		}
	}
	// EINVAL: a kernel without ambient capabilities.
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return &StepError{Step: "clear ambient capabilities", Err: err}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return &StepError{Step: "capset", Err: err}
	}
	return nil
}

func noNewPrivs() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &StepError{Step: "no_new_privs", Err: err}
	}
	return nil
}
