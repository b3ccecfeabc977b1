package sandbox

import (
	"errors"

	"golang.org/x/sys/unix"
)

// seccompChoice says what a run's syscall filter lets through. The zero value is
// the strictest filter; each field set to true spells out one thing less refused.
type seccompChoice struct {
	inet bool // sockets of INET, INET6 and NETLINK
	unix bool // sockets of UNIX: Landlock RESOLVE_UNIX (ABI 9) or a private root must bound them
	// metadata lets chmod, chown, utime and xattr calls pass (group I off). Set it
	// when some host path is writable or when mounts are read-only anyway.
	metadata bool
	truncate bool // Landlock handles truncation (ABI 3), so group M is not stacked
	fork     bool // the command may start processes; else the ticket program is stacked
	// private says that own PID and IPC namespaces hold the run: SysV IPC and the
	// settings of other processes need no filter, and the worker needs no guard.
	// It requires unix, metadata and truncate.
	private bool
}

// loadProgram returns the filters for c in the order in which they must be
// installed, with their name and the SHA-256 of their unpatched bytes.
// wrapperPID and workerTID are the ids the guard shields; ticket is what our own
// fork presents when c.fork is false, and must then not be zero.
func loadProgram(c seccompChoice, wrapperPID, workerTID int, ticket uint32) (progs [][]unix.SockFilter, name, sha string, err error) {
	return nil, c.name(), "", &SeccompError{Program: c.name(), Step: "load", Err: errors.New("no embedded program")}
}

// installSeccomp installs the programs on the calling thread only, in order.
func installSeccomp(progs [][]unix.SockFilter) error {
	return &SeccompError{Step: "install", Err: errors.New("no program given")}
}

// name is the name of the main program of c.
func (c seccompChoice) name() string {
	if c.private {
		if c.inet {
			return "t3-net"
		}
		return "t3"
	}
	name := "t2"
	if c.inet {
		name += "-net"
	}
	if c.unix {
		name += "-unix"
	}
	if !c.metadata {
		name += "-meta"
	}
	return name
}

// SeccompError says which filter program could not be loaded or installed.
type SeccompError struct {
	Program string
	Step    string // "load", "install"
	Err     error
}

func (e *SeccompError) Error() string {
	if e.Program == "" {
		return e.Step + " seccomp filter: " + e.Err.Error()
	}
	return e.Step + " seccomp filter " + e.Program + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *SeccompError) Unwrap() error { return e.Err }

// FaultCode is E4102: a start step failed, nothing was executed.
func (e *SeccompError) FaultCode() string { return "E4102" }

// FaultDetails names the program and the step.
func (e *SeccompError) FaultDetails() map[string]any {
	return map[string]any{"step": "seccomp." + e.Step, "program": e.Program}
}
