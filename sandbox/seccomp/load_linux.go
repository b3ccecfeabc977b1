package seccomp

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Choice says what a run's syscall filter lets through. The zero value is
// the strictest filter; each field set to true spells out one thing less refused.
type Choice struct {
	Inet bool // sockets of INET, INET6 and NETLINK
	Unix bool // sockets of UNIX: Landlock RESOLVE_UNIX (ABI 9) or a private root must bound them
	// Metadata lets chmod, chown, utime and xattr calls pass (group I off). Set it
	// when some host path is writable or when mounts are read-only anyway.
	Metadata bool
	Truncate bool // Landlock handles truncation (ABI 3), so group M is not stacked
	Fork     bool // the command may start processes; else the ticket program is stacked
	// Private says that own PID and IPC namespaces hold the run: SysV IPC and the
	// settings of other processes need no filter, and the worker needs no guard.
	// It requires Unix, Metadata and Truncate.
	Private bool
	// Untraced adds a restriction that most runs do without, as debuggers need it lifted: no
	// process of the run may trace another one or write its memory.
	Untraced bool
}

// Load returns the filters for c in the order in which they must be
// installed, with the names of the programs joined by "+" and the SHA-256 of their
// unpatched bytes, as sha256sum prints it for the files of the programs put together.
// wrapperPID and workerTID are the ids the guard shields; ticket is what our own
// fork presents when c.Fork is false, and must then not be zero.
func Load(c Choice, wrapperPID, workerTID int, ticket uint32) (progs [][]unix.SockFilter, name, sha string, err error) {
	names := c.programs()
	name = strings.Join(names, "+")
	fail := func(err error) ([][]unix.SockFilter, string, string, error) {
		return nil, name, "", &Error{Program: name, Step: "load", Err: err}
	}
	switch {
	case len(filterIndex) == 0:
		return nil, name, "", noFilter()
	case c.Private && !(c.Unix && c.Metadata && c.Truncate):
		return fail(errors.New("private namespaces are combined with a restriction that has no program"))
	case !c.Private && (wrapperPID <= 0 || workerTID <= 0):
		return fail(fmt.Errorf("nothing to guard: wrapper %d, worker %d", wrapperPID, workerTID))
	case !c.Fork && ticket == 0:
		return fail(errors.New("the fork ticket is zero"))
	}
	patches := [...]struct{ placeholder, value uint32 }{
		{PatchWrapperPID, uint32(wrapperPID)}, {PatchWorkerTID, uint32(workerTID)}, {PatchTicket, ticket},
	}
	digest := sha256.New()
	for _, n := range names {
		entry, code, err := embedded(n)
		if err != nil {
			return fail(err)
		}
		if len(names) == 1 {
			sha = entry.sha256
		} else {
			digest.Write(code)
		}
		prog, err := decodeFilter(code)
		if err != nil {
			return fail(fmt.Errorf("program %s: %w", n, err))
		}
		for i, points := range [...][]uint16{entry.wrapper, entry.worker, entry.ticket} {
			for _, at := range points {
				if int(at) >= len(prog) || prog[at].K != patches[i].placeholder {
					return fail(fmt.Errorf("program %s: no placeholder %#x at %d", n, patches[i].placeholder, at))
				}
				prog[at].K = patches[i].value
			}
		}
		// One left over would be a guard that shields nobody.
		for at, in := range prog {
			for _, p := range patches {
				if in.K == p.placeholder && p.value != p.placeholder {
					return fail(fmt.Errorf("program %s: placeholder %#x left at %d", n, in.K, at))
				}
			}
		}
		progs = append(progs, prog)
	}
	if len(names) > 1 {
		sha = hex.EncodeToString(digest.Sum(nil))
	}
	return progs, name, sha, nil
}

// Install installs the programs on the calling thread only, in order. The
// thread must have no_new_privs or CAP_SYS_ADMIN.
//
// TSYNC is never used: it would confine every thread of the wrapper, for good.
func Install(progs [][]unix.SockFilter) error {
	if len(progs) == 0 {
		return &Error{Step: "install", Err: errors.New("no program given")}
	}
	for i, prog := range progs {
		if len(prog) == 0 || len(prog) > unix.BPF_MAXINSNS {
			return &Error{Step: "install", Err: fmt.Errorf("program %d has %d instructions", i, len(prog))}
		}
		fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
		_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
		if errno != 0 {
			return &Error{Step: "install", Err: fmt.Errorf("program %d: %w", i, errno)}
		}
	}
	return nil
}

// filterEntry describes an embedded program: its digest and where the placeholders
// stand in it.
type filterEntry struct {
	name, sha256            string
	wrapper, worker, ticket []uint16
}

// embedded finds a program and its bytes.
func embedded(name string) (filterEntry, []byte, error) {
	for _, entry := range filterIndex {
		if entry.name == name {
			code, err := filterFiles.ReadFile(runtime.GOARCH + "/" + name + ".bpf")
			return entry, code, err
		}
	}
	return filterEntry{}, nil, fmt.Errorf("no program %q", name)
}

// decodeFilter reads the little-endian struct sock_filter that libseccomp writes.
func decodeFilter(code []byte) ([]unix.SockFilter, error) {
	if len(code) == 0 || len(code)%8 != 0 || len(code)/8 > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("length of %d bytes", len(code))
	}
	prog := make([]unix.SockFilter, len(code)/8)
	for i := range prog {
		in := code[8*i:]
		prog[i] = unix.SockFilter{Code: binary.LittleEndian.Uint16(in), Jt: in[2], Jf: in[3], K: binary.LittleEndian.Uint32(in[4:])}
	}
	return prog, nil
}

// programs lists the programs of c in the order in which they are installed. The
// complete one is last: until then the thread may still make every call.
func (c Choice) programs() []string {
	var names []string
	if !c.Fork {
		names = append(names, "ticket")
	}
	if !c.Truncate {
		names = append(names, "truncate")
	}
	if c.Untraced {
		names = append(names, "untraced")
	}
	return append(names, c.name())
}

// name is the name of the main program of c.
func (c Choice) name() string {
	if c.Private {
		if c.Inet {
			return "t3-net"
		}
		return "t3"
	}
	name := "t2"
	if c.Inet {
		name += "-net"
	}
	if c.Unix {
		name += "-unix"
	}
	if !c.Metadata {
		name += "-meta"
	}
	return name
}

// Error says which filter program could not be loaded or installed.
type Error struct {
	Program string
	Step    string // "load", "install"
	Err     error
}

func (e *Error) Error() string {
	if e.Program == "" {
		return e.Step + " seccomp filter: " + e.Err.Error()
	}
	return e.Step + " seccomp filter " + e.Program + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FaultCode is E4102: a start step failed, nothing was executed.
func (e *Error) FaultCode() string { return errcode.Confinement }

// FaultDetails names the program and the step.
func (e *Error) FaultDetails() map[string]any {
	return map[string]any{"step": "seccomp." + e.Step, "program": e.Program}
}

// noFilter says that no filter was generated for this architecture, which is
// then confined as little as one without Landlock.
func noFilter() error {
	return &errcode.Error{Code: errcode.Unconfined, Msg: "no seccomp filter for architecture " + runtime.GOARCH, Details: map[string]any{"arch": runtime.GOARCH}}
}
