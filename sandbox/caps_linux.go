package sandbox

import (
	"errors"

	"golang.org/x/sys/unix"
)

// keptCaps are the capabilities of names.
func keptCaps(names []string) (mask uint64) {
	for _, name := range names {
		switch name {
		case "chown":
			mask |= 1 << unix.CAP_CHOWN
		case "dac_override":
			mask |= 1 << unix.CAP_DAC_OVERRIDE
		case "fowner":
			mask |= 1 << unix.CAP_FOWNER
		case "fsetid":
			mask |= 1 << unix.CAP_FSETID
		case "setgid":
			mask |= 1 << unix.CAP_SETGID
		case "setuid":
			mask |= 1 << unix.CAP_SETUID
		}
	}
	return mask
}

// dropCapabilities empties every capability set of the calling thread, but for those that
// a policy keeps and the thread has. The raw calls are per thread, so the wrapper keeps
// what it had.
func dropCapabilities(keep uint64) error {
	for c := uintptr(0); c <= 63; c++ {
		if keep&(1<<c) != 0 {
			continue
		}
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
	var sets [2]unix.CapUserData
	if keep != 0 {
		if err := unix.Capget(&header, &sets[0]); err != nil {
			return &StepError{Step: "capget", Err: err}
		}
		keep &= uint64(sets[0].Permitted) | uint64(sets[1].Permitted)<<32
	}
	for i := range sets {
		half := uint32(keep >> (32 * i))
		sets[i] = unix.CapUserData{Effective: half, Permitted: half, Inheritable: half}
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return &StepError{Step: "capset", Err: err}
	}
	for c := uintptr(0); c <= 63; c++ {
		if keep&(1<<c) == 0 {
			continue
		}
		// Otherwise only root has it after execve.
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0); err != nil {
			return &StepError{Step: "keep capability", Err: err}
		}
	}
	return nil
}

func noNewPrivs() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &StepError{Step: "no_new_privs", Err: err}
	}
	return nil
}
