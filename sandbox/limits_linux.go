package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// applyLimits sets on the wrapper what may be set there and is inherited. The syscall
// package must do it: the Go runtime raised the soft limit of open files and would
// restore the old value in the child.
func applyLimits(l Limits) error {
	if l.OpenFiles == 0 {
		return nil
	}
	if l.OpenFiles < minOpenFiles {
		return &LimitError{Limit: "openFiles", Why: "64 is the least a run works with"}
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		return &LimitError{Limit: "openFiles", Why: err.Error()}
	}
	n := min(l.OpenFiles, old.Max)
	if err := syscall.Setrlimit(unix.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		return &LimitError{Limit: "openFiles", Why: err.Error()}
	}
	return nil
}

const minOpenFiles = 64

// childLimits sets limits that would hit the wrapper's own writes if it set them.
func childLimits(l Limits) error {
	for _, r := range [...]struct {
		name     string
		resource int
		max      uint64
	}{
		{"cpu", unix.RLIMIT_CPU, l.CPU}, {"fileSize", unix.RLIMIT_FSIZE, l.FileSize},
		{"memory", unix.RLIMIT_DATA, l.Memory}, {"processes", unix.RLIMIT_NPROC, l.Processes},
	} {
		if r.max == 0 {
			continue
		}
		// The caller's own limit may be the lower one.
		var old unix.Rlimit
		err := unix.Getrlimit(r.resource, &old)
		if err == nil {
			soft := min(r.max, old.Max)
			hard := soft
			if r.resource == unix.RLIMIT_CPU && hard < old.Max {
				hard++ // at the soft limit SIGXCPU, which says why; at the hard one SIGKILL
			}
			err = unix.Setrlimit(r.resource, &unix.Rlimit{Cur: soft, Max: hard})
		}
		if err != nil {
			return &LimitError{Limit: r.name, Why: err.Error()}
		}
	}
	return nil
}
