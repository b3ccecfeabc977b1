package seccomp

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/gate"
)

// word is a 32-bit load of the struct on the little-endian machines we support.
func word(c *gate.Call, offset uint32) (uint32, bool) {
	if offset > 60 || offset%4 != 0 {
		return 0, false
	}
	return *(*uint32)(unsafe.Add(unsafe.Pointer(c), offset)), true
}

// errFilter is a program that does not end as the kernel's verifier demands.
var errFilter = errors.New("not a system call filter")

// Answer runs a filter on one call. It knows the instructions that our programs have, and
// anything else is an error.
func Answer(prog []unix.SockFilter, c *gate.Call) (uint32, error) {
	var a uint32
	for pc := 0; pc < len(prog); pc++ {
		in := &prog[pc]
		jump := false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			v, ok := word(c, in.K)
			if !ok {
				return 0, errFilter
			}
			a = v
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= in.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			return in.K, nil
		case unix.BPF_JMP | unix.BPF_JA:
			pc += int(in.K)
			continue
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump = a == in.K
		case unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K:
			jump = a > in.K
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump = a >= in.K
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump = a&in.K != 0
		default:
			return 0, errFilter
		}
		if jump {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	return 0, errFilter
}

// observing rewrites a filter for a listener: what it refuses with an errno, the listener
// answers with that errno, and of what it lets pass the listener is told those calls
// that name a path or an address. Nothing is let through that was not: a listener that
// is gone makes the kernel refuse with ENOSYS.
func observing(prog []unix.SockFilter) ([]unix.SockFilter, error) {
	out := make([]unix.SockFilter, len(prog), len(prog)+2*len(observed)+3)
	copy(out, prog)
	for i := range out {
		if out[i].Code != unix.BPF_RET|unix.BPF_K {
			continue
		}
		switch out[i].K & unix.SECCOMP_RET_ACTION_FULL {
		case unix.SECCOMP_RET_ERRNO:
			out[i].K = unix.SECCOMP_RET_USER_NOTIF
		case unix.SECCOMP_RET_ALLOW:
			out[i] = unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(prog) - i - 1)}
		}
	}
	out = append(out, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0})
	for _, nr := range observed {
		out = append(out, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(nr), Jf: 1},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	out = append(out, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	if len(out) > unix.BPF_MAXINSNS {
		return nil, errFilter
	}
	return out, nil
}

// Flags of seccomp(2) with SET_MODE_FILTER; the second since Linux 5.19.
const (
	newListener      = 1 << 3
	waitKillableRecv = 1 << 5
)

// InstallListened installs the programs on the calling thread, with a listener for what is
// to be observed or decided. Where starts are decided there is one or an error: to go on
// without would be to start anything.
func InstallListened(progs [][]unix.SockFilter, observe, gated bool) (listener int, err error) {
	if observe {
		if listener, err = installObserved(progs); err == nil && listener < 0 && gated {
			err = &Error{Step: "install", Err: gate.ErrOther}
		}
		return listener, err
	}
	if err := Install(progs); err != nil {
		return -1, err
	}
	l, err := gate.Install()
	if err != nil {
		return -1, &Error{Step: "install", Err: err}
	}
	return int(l), nil
}

// installObserved installs the programs on the calling thread, the last one with a
// listener. A listener of -1 means that somebody else listens already: there can be only
// one, and the programs are installed as they are.
func installObserved(progs [][]unix.SockFilter) (listener int, err error) {
	if len(progs) == 0 {
		return -1, Install(progs)
	}
	last := len(progs) - 1
	if last > 0 {
		if err := Install(progs[:last]); err != nil {
			return -1, err
		}
	}
	prog, err := observing(progs[last])
	if err != nil {
		return -1, &Error{Step: "install", Err: err}
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	for _, flags := range [...]uintptr{newListener | waitKillableRecv, newListener} {
		fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
		switch errno {
		case 0:
			return int(fd), nil
		case unix.EBUSY:
			return -1, Install(progs[last:])
		case unix.EINVAL: // an older kernel
		default:
			return -1, &Error{Step: "install", Err: errno}
		}
	}
	return -1, Install(progs[last:])
}
