package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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

// look predicts what becomes of a call that the filter lets through.
func (o *observer) look(n *notification) {
	nr, a := plain(n.Call.Nr, n.Call.Args)
	pid := int(n.Pid)
	switch nr {
	case unix.SYS_OPENAT:
		o.open(n, o.path(pid, a[0], a[1]), a[2])
	case unix.SYS_OPENAT2:
		var how [8]byte
		if peek(pid, a[2], how[:]) == len(how) {
			o.open(n, o.path(pid, a[0], a[1]), *(*uint64)(unsafe.Pointer(&how)))
		}
	case unix.SYS_TRUNCATE:
		o.need(n, "write", o.path(pid, atCwd, a[0]), Write, false)
	case unix.SYS_EXECVE:
		o.need(n, "execute", o.path(pid, atCwd, a[0]), Exec, false)
	case unix.SYS_EXECVEAT:
		if a[4]&unix.AT_EMPTY_PATH == 0 {
			o.need(n, "execute", o.path(pid, a[0], a[1]), Exec, false)
		}
	case unix.SYS_MKDIRAT, unix.SYS_MKNODAT:
		o.need(n, "create", o.path(pid, a[0], a[1]), Write, true)
	case unix.SYS_SYMLINKAT:
		o.need(n, "create", o.path(pid, a[1], a[2]), Write, true)
	case unix.SYS_UNLINKAT:
		o.need(n, "remove", o.path(pid, a[0], a[1]), Remove, false)
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		if !o.need(n, "rename", o.path(pid, a[0], a[1]), Remove, false) {
			o.need(n, "rename", o.path(pid, a[2], a[3]), Write, true)
		}
	case unix.SYS_LINKAT:
		if !o.need(n, "link", o.path(pid, a[0], a[1]), Write, false) {
			o.need(n, "link", o.path(pid, a[2], a[3]), Write, true)
		}
	case unix.SYS_CONNECT:
		o.connect(n, pid, a)
	}
}

const atCwd = 1<<64 + unix.AT_FDCWD

func (o *observer) open(n *notification, path string, flags uint64) {
	const access = unix.O_WRONLY | unix.O_RDWR
	switch {
	case flags&unix.O_PATH != 0:
	case flags&unix.O_TMPFILE == unix.O_TMPFILE:
		o.need(n, "create", path+"/new", Write, true)
	case flags&(access|unix.O_TRUNC) != 0 && o.need(n, "write", path, Write, flags&unix.O_CREAT != 0):
	case flags&access != unix.O_WRONLY:
		o.need(n, "read", path, Read, false)
	}
}

// need notes a denial if the rights are not granted, and reports whether it did. fresh says
// that the path need not be there.
func (o *observer) need(n *notification, op, path string, r Rights, fresh bool) bool {
	// Names in /proc mean another thing to each process.
	if path == "" || within(path, "/proc") || within(path, "/dev/fd") || strings.HasPrefix(path, "/dev/std") {
		return false
	}
	files := HostFiles()
	canonical, dir, err := "", false, error(nil)
	if op == "remove" || op == "rename" || op == "create" || op == "link" {
		// These act on the name itself, a link too.
		var parent string
		if parent, _, err = files.Resolve(filepath.Dir(path)); err == nil {
			canonical = strings.TrimSuffix(parent, "/") + "/" + filepath.Base(path)
			if !fresh && unix.Access(canonical, unix.F_OK) != nil {
				err = unix.ENOENT
			}
		}
	} else if canonical, dir, err = files.Resolve(path); err != nil && fresh {
		var parent string
		if parent, _, err = files.Resolve(filepath.Dir(path)); err == nil {
			canonical = strings.TrimSuffix(parent, "/") + "/" + filepath.Base(path)
		}
	}
	if err != nil {
		return false // it is not there for anybody
	}
	if dir && r == Read {
		r = List
	}
	d := Denial{Op: op, Path: canonical, Class: "files", Errno: "EACCES", Guarantee: FilesWrite}
	switch {
	case o.pinned(canonical) && r&(Write|Remove) != 0:
		d.Errno, d.Guarantee, d.Rule = "EROFS", WSProtect, "protected name of the workspace"
	case o.masked(canonical) && r == Read:
		d.Guarantee, d.Rule = FilesRead, "secret of the workspace"
	case granted(o.grants, canonical, r):
		return false
	case granted(o.own, canonical, r) && (r&(Write|Remove) == 0 || !o.onIsland(canonical)):
		inside := canonical
		if fresh {
			inside = filepath.Dir(canonical)
		}
		if unix.Access("/proc/"+strconv.Itoa(int(n.Pid))+"/root"+inside, unix.F_OK) == nil {
			return false
		}
		d.outside(r)
		d.Errno = "ENOENT"
		if within(canonical, "/tmp") || within(canonical, "/var/tmp") || within(canonical, "/dev/shm") {
			// It is there outside, where the name means another directory.
			d.Guarantee, d.Rule, d.Remedy = TmpPrivate, "the run has temporary directories of its own", ""
		}
	case !allowedToUs(canonical, r):
		return false // it would fail without a sandbox, too
	default:
		d.outside(r)
		switch {
		case op == "rename" || op == "link" || o.private && r != Read:
			d.Errno = "" // one of several, by what stands around the name
		case o.private:
			d.Errno = "ENOENT"
		}
	}
	if !o.valid(n) {
		return false
	}
	o.add(d)
	return true
}

func (o *observer) pinned(path string) bool {
	if !o.private {
		return false
	}
	for _, name := range o.profile.Protect {
		clean := strings.TrimSuffix(name, "/")
		if filepath.Base(clean) != "config" && filepath.Base(clean) != ".git" && within(path, clean) && unix.Access(clean, unix.F_OK) == nil {
			return true
		}
	}
	return false
}

// onIsland reports whether path, which nothing grants, lies in a read-only part of /tmp.
func (o *observer) onIsland(path string) bool {
	return slices.ContainsFunc(o.islands, func(top string) bool { return within(path, top) })
}

func (o *observer) masked(path string) bool {
	if !o.private {
		return false
	}
	for _, name := range o.profile.Mask {
		if name == path {
			return true
		}
	}
	return false
}

// allowedToUs asks the ordinary permissions, of the file or of the directory that would
// hold it.
func allowedToUs(path string, r Rights) bool {
	mode := uint32(unix.R_OK)
	switch {
	case r == Exec:
		mode = unix.X_OK
	case r&(Write|Remove) != 0:
		mode = unix.W_OK
	}
	if r == Remove || unix.Access(path, unix.F_OK) != nil {
		return unix.Access(filepath.Dir(path), unix.W_OK) == nil
	}
	return unix.Access(path, mode) == nil
}

func (o *observer) connect(n *notification, pid int, a [6]uint64) {
	var raw [128]byte
	size := min(int(a[2]&0xff), len(raw))
	if size < 2 || peek(pid, a[1], raw[:size]) != size {
		return
	}
	d := Denial{Op: "connect", Class: "network", Guarantee: NetGranted, Errno: "ENETUNREACH", Rule: "network " + o.profile.Net.Mode.String(), Remedy: "this command was not granted network access"}
	switch family := uint16(raw[0]) | uint16(raw[1])<<8; family {
	case unix.AF_UNIX:
		path, _, _ := strings.Cut(string(raw[2:size]), "\x00")
		if path == "" || path[0] != '/' {
			return
		}
		if !o.private || slices.Contains(o.profile.Unix, path) || granted(o.grants, path, Write) || granted(o.own, path, Write) || unix.Access(path, unix.F_OK) != nil {
			return
		}
		// No hint how to reach one: those that are there speak for the user, or for root.
		d.Guarantee, d.Path, d.Errno, d.Rule, d.Remedy = IPCUnix, path, "ENOENT", "outside the granted sockets", ""
	case unix.AF_INET, unix.AF_INET6:
		if o.profile.Net.Mode == NetFull || !o.private {
			return
		}
		address, local := addressOf(family, raw[:size])
		if address == "" || local {
			return
		}
		d.Path = address
	default:
		return
	}
	if o.valid(n) {
		o.add(d)
	}
}

// addressOf writes host and port; local says that it is the machine itself.
func addressOf(family uint16, raw []byte) (address string, local bool) {
	port := func() string { return strconv.Itoa(int(raw[2])<<8 | int(raw[3])) }
	if family == unix.AF_INET && len(raw) >= 8 {
		ip := raw[4:8]
		text := ""
		for i, b := range ip {
			if i > 0 {
				text += "."
			}
			text += strconv.Itoa(int(b))
		}
		return text + ":" + port(), ip[0] == 127 || ip[0] == 0
	}
	if family == unix.AF_INET6 && len(raw) >= 24 {
		ip := raw[8:24]
		text, zeros := "[", 0
		for i := 0; i < 16; i += 2 {
			v := int(ip[i])<<8 | int(ip[i+1])
			if i > 0 {
				text += ":"
			}
			text += strconv.FormatInt(int64(v), 16)
			if v == 0 {
				zeros++
			}
		}
		return text + "]:" + port(), zeros == 8 || zeros == 7 && ip[14] == 0 && ip[15] == 1
	}
	return "", false
}

// path reads a path argument of the caller and makes it absolute; "" if that fails.
func (o *observer) path(pid int, dirfd, address uint64) string {
	name := peekString(pid, address)
	if name == "" || name[0] == '/' {
		return name
	}
	at := "/proc/" + strconv.Itoa(pid) + "/cwd"
	if int32(dirfd) != unix.AT_FDCWD {
		at = "/proc/" + strconv.Itoa(pid) + "/fd/" + strconv.Itoa(int(int32(dirfd)))
	}
	dir, err := os.Readlink(at)
	if err != nil || !filepath.IsAbs(dir) {
		return ""
	}
	return dir + "/" + name
}

func peekString(pid int, address uint64) string {
	var buf [unix.PathMax]byte
	// Up to the end of a page at a time: the next one need not be there.
	for have := 0; have < len(buf); {
		n := min(len(buf)-have, 4096-int((address+uint64(have))%4096))
		got := peek(pid, address+uint64(have), buf[have:have+n])
		if got <= 0 {
			return ""
		}
		if i := strings.IndexByte(string(buf[have:have+got]), 0); i >= 0 {
			return string(buf[:have+i])
		}
		have += got
	}
	return ""
}

// peek reads memory of another process.
func peek(pid int, address uint64, into []byte) int {
	if address == 0 || len(into) == 0 {
		return 0
	}
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}, 0)
	if err != nil {
		return 0
	}
	return n
}

// callName names the calls that programs are seen to be refused.
func callName(nr int32) string {
	switch nr {
	case unix.SYS_CLONE:
		return "clone"
	case unix.SYS_UNSHARE:
		return "unshare"
	case unix.SYS_SETNS:
		return "setns"
	case unix.SYS_MOUNT:
		return "mount"
	case unix.SYS_UMOUNT2:
		return "umount2"
	case unix.SYS_CHROOT:
		return "chroot"
	case unix.SYS_PIVOT_ROOT:
		return "pivot_root"
	case unix.SYS_BPF:
		return "bpf"
	case unix.SYS_PERF_EVENT_OPEN:
		return "perf_event_open"
	case unix.SYS_IOCTL:
		return "ioctl"
	case unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL:
		return "kill"
	case unix.SYS_PERSONALITY:
		return "personality"
	case unix.SYS_PRLIMIT64:
		return "prlimit64"
	case unix.SYS_SETPRIORITY:
		return "setpriority"
	case unix.SYS_SCHED_SETAFFINITY:
		return "sched_setaffinity"
	case unix.SYS_MKNODAT:
		return "mknodat"
	case unix.SYS_FCHMODAT:
		return "fchmodat"
	case unix.SYS_FCHOWNAT:
		return "fchownat"
	case unix.SYS_UTIMENSAT:
		return "utimensat"
	case unix.SYS_PTRACE:
		return "ptrace"
	}
	return "system call " + strconv.Itoa(int(nr))
}

func familyName(family uint64) string {
	switch family {
	case unix.AF_UNIX:
		return "AF_UNIX"
	case unix.AF_INET:
		return "AF_INET"
	case unix.AF_INET6:
		return "AF_INET6"
	case unix.AF_NETLINK:
		return "AF_NETLINK"
	case unix.AF_PACKET:
		return "AF_PACKET"
	case unix.AF_VSOCK:
		return "AF_VSOCK"
	case unix.AF_ALG:
		return "AF_ALG"
	}
	return "address family " + strconv.FormatUint(family, 10)
}
