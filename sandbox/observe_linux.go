package sandbox

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/gate"
	"github.com/atip-dev/atip-exec/sandbox/seccomp"
)

// observer hears of the calls that name something, and says which of them the sandbox
// refuses. It never decides: a call that the filter lets through goes on as it is, and what
// the filter refuses by the values of its registers gets the errno that the same filter
// gives. What it says is a prediction from the profile, made while the caller waits;
// another thread can change the path afterwards, which changes the report and nothing else.
type observer struct {
	listener gate.Listener
	prog     []unix.SockFilter
	profile  *Profile
	grants   []Grant // of the profile
	own      []Grant // what a private root adds
	islands  []string
	private  bool

	mu      sync.Mutex
	found   []Denial
	at      map[string]int
	dropped int
}

// maxDenials is how many distinct denials are kept; others are counted.
const maxDenials = 20

// newObserver is the observer of a run under s that starts in cwd.
func newObserver(l gate.Listener, s *Setup, cwd string) (*observer, error) {
	// Placeholders of the guard get the ids that the filter of the run has.
	progs, _, _, err := seccomp.Load(s.filter(), os.Getpid(), os.Getpid(), 1)
	if err != nil {
		return nil, err
	}
	o := &observer{listener: l, prog: progs[len(progs)-1], profile: &s.profile, private: s.tier == T3, at: map[string]int{}}
	o.grants = s.profile.grants()
	if o.private {
		o.own = insideGrants(&s.profile)
		o.islands = islands(&s.profile, cwd)
	}
	return o, nil
}

// respond answers a call that the filter asks about.
func (o *observer) respond(n *gate.Notification) gate.Response {
	k, err := seccomp.Answer(o.prog, &n.Call)
	switch {
	case err == nil && k == unix.SECCOMP_RET_ALLOW:
		o.look(n)
		return gate.Continue(n)
	case err == nil && k&unix.SECCOMP_RET_ACTION_FULL == unix.SECCOMP_RET_ERRNO:
		errno := unix.Errno(k & unix.SECCOMP_RET_DATA)
		o.refused(n, errno)
		return gate.Refuse(n, errno)
	}
	return gate.Refuse(n, unix.EPERM)
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
func (o *observer) refused(n *gate.Notification, errno unix.Errno) {
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
