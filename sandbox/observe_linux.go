package sandbox

import (
	"errors"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// observer hears of the calls that name something, and says which of them the sandbox
// refuses. It never decides: a call that the filter lets through goes on as it is, and what
// the filter refuses by the values of its registers gets the errno that the same filter
// gives. What it says is a prediction from the profile, made while the caller waits;
// another thread can change the path afterwards, which changes the report and nothing else.
type observer struct {
	fd      int
	prog    []unix.SockFilter
	profile *Profile
	grants  []Grant // of the profile
	own     []Grant // what a private root adds
	islands []string
	private bool

	mu      sync.Mutex
	found   []Denial
	at      map[string]int
	dropped int
	ended   chan struct{}
}

// maxDenials is how many distinct denials are kept; others are counted.
const maxDenials = 20

// notification is struct seccomp_notif.
type notification struct {
	ID    uint64
	Pid   uint32
	Flags uint32
	Call  call
}

// response is struct seccomp_notif_resp.
type response struct {
	ID    uint64
	Val   int64
	Error int32
	Flags uint32
}

// observe begins to serve the listener fd of a run under s that starts in cwd.
func observe(fd int, s *Setup, cwd string) (*observer, error) {
	unix.CloseOnExec(fd)
	// Placeholders of the guard get the ids that the filter of the run has.
	progs, _, _, err := loadProgram(s.filter(), os.Getpid(), os.Getpid(), 1)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	o := &observer{fd: fd, prog: progs[len(progs)-1], profile: &s.profile, private: s.tier == T3, at: map[string]int{}, ended: make(chan struct{})}
	o.grants = s.profile.grants()
	if o.private {
		o.own = insideGrants(&s.profile)
		o.islands = islands(&s.profile, cwd)
	}
	go o.serve()
	return o, nil
}

// serve answers until nobody is left who runs under the filter.
func (o *observer) serve() {
	defer close(o.ended)
	defer unix.Close(o.fd)
	poll := []unix.PollFd{{Fd: int32(o.fd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			if poll[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
				return
			}
			continue
		}
		var n notification
		if errno := o.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); errno != 0 {
			continue // ENOENT: the caller was killed meanwhile
		}
		r := o.respond(&n)
		_ = o.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
	}
}

func (o *observer) ioctl(request uintptr, arg unsafe.Pointer) unix.Errno {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(o.fd), request, uintptr(arg))
		if errno != unix.EINTR {
			return errno
		}
	}
}

func (o *observer) respond(n *notification) response {
	k, err := answer(o.prog, &n.Call)
	switch {
	case err == nil && k == unix.SECCOMP_RET_ALLOW:
		o.look(n)
		return response{ID: n.ID, Flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	case err == nil && k&unix.SECCOMP_RET_ACTION_FULL == unix.SECCOMP_RET_ERRNO:
		errno := unix.Errno(k & unix.SECCOMP_RET_DATA)
		o.refused(n, errno)
		return response{ID: n.ID, Error: -int32(errno)}
	}
	return response{ID: n.ID, Error: -int32(unix.EPERM)}
}

// valid says that the caller still waits, so that what was read of it was its own.
func (o *observer) valid(n *notification) bool {
	id := n.ID
	return o.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

func (o *observer) add(d Denial) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := d.Op + "\x00" + d.Path
	if i, ok := o.at[key]; ok {
		o.found[i].Count++
		return
	}
	if len(o.found) >= maxDenials {
		o.dropped++
		return
	}
	o.at[key] = len(o.found)
	d.Kind, d.Count, d.Certain = denialKind, 1, true
	o.found = append(o.found, d)
}

// denials are what was seen, in the order in which it came.
func (o *observer) denials() []Denial {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := append([]Denial{}, o.found...)
	if o.dropped > 0 {
		out = append(out, Denial{Kind: denialKind, Op: "other", Class: "more", Count: o.dropped, Certain: true, Rule: "not listed singly"})
	}
	return out
}

// refused notes a call that the filter refuses. ENOSYS is how programs are told to fall
// back to an older call, which they do.
func (o *observer) refused(n *notification, errno unix.Errno) {
	if errno == unix.ENOSYS {
		return
	}
	d := Denial{Op: "call", Class: "kernel", Errno: unix.ErrnoName(errno), Guarantee: Kernel, Path: callName(n.Call.Nr), Rule: "system calls that no run may make"}
	switch n.Call.Nr {
	case unix.SYS_SOCKET, unix.SYS_SOCKETPAIR:
		d.Op, d.Class, d.Path, d.Guarantee = "socket", "network", familyName(n.Call.Args[0]), NetGranted
		d.Rule = "network " + o.profile.Net.Mode.String()
		switch {
		case n.Call.Args[0] == unix.AF_UNIX:
			d.Guarantee, d.Rule, d.Remedy = IPCUnix, "sockets outside cannot be bounded at this tier", "policy sandbox.tier \"T3\" gives sockets of its own"
		case n.Call.Args[0] == unix.AF_INET || n.Call.Args[0] == unix.AF_INET6:
			d.Remedy = "this command was not granted network access"
		}
	}
	if !o.private && o.profile.SubprocessNo && d.Path == "clone" {
		d.Rule = "the command was not granted subprocesses"
	}
	o.add(d)
}
