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
