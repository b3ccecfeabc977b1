package sandbox

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// maxListeners bounds the descriptors of one message (SCM_MAX_FD of unix(7) is 253).
const maxListeners = 128

// listen makes the sockets of the run's proxy in its own network and hands them to the
// wrapper, which accepts from there in its own. No port and no file of the machine leads
// to them.
func (s *stage) listen() error {
	if s.plan.Profile.Net.Mode != NetAllowlist || s.plan.Try {
		return nil
	}
	var list []Listener
	var fds []int
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	add := func(l Listener, addresses ...unix.Sockaddr) error {
		for _, to := range addresses {
			_, six := to.(*unix.SockaddrInet6)
			fd, err := listenOn(to, six)
			if six && (errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT)) {
				continue // a machine without IPv6
			}
			if err != nil {
				return &StepError{Step: "listen", Path: "port " + strconv.Itoa(l.Port), Err: err}
			}
			fds = append(fds, fd)
			list = append(list, l)
		}
		return nil
	}
	net := &s.plan.Profile.Net
	loopback := func(service string, port int) error {
		return add(Listener{Service: service, Port: port}, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}, &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}})
	}
	if err := errors.Join(loopback("http", ProxyPort), loopback("socks", SOCKSPort)); err != nil {
		return err
	}
	for _, port := range net.Forward {
		if err := loopback("forward", port); err != nil {
			return err
		}
	}
	addresses := net.addresses()
	for _, d := range net.Direct {
		if err := add(Listener{Service: "direct", Host: d.Host, Port: d.Port}, &unix.SockaddrInet4{Port: d.Port, Addr: addresses[d.Host]}); err != nil {
			return err
		}
	}
	if len(fds) > maxListeners {
		return &StepError{Step: "listen", Err: errors.New("too many ports")}
	}
	m := stageMessage{Kind: "listening", Listeners: list}
	err := unix.Sendmsg(s.control, m.encode(), unix.UnixRights(fds...), nil, 0)
	if err != nil {
		return &StepError{Step: "hand over listeners", Err: err}
	}
	return nil
}

func listenOn(to unix.Sockaddr, six bool) (int, error) {
	family := unix.AF_INET
	if six {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if six {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err == nil {
		err = unix.Bind(fd, to)
	}
	if err == nil {
		err = unix.Listen(fd, 128)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// passed takes out of a control message the descriptors and the process it speaks of, as
// this process namespace numbers it (SCM_CREDENTIALS, unix(7)).
func passed(oob []byte) (fds []int, pid int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, 0
	}
	for i := range messages {
		if rights, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, rights...)
		} else if about, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			pid = int(about.Pid)
		}
	}
	return fds, pid
}

// Messages of the kernel's audit system (include/uapi/linux/audit.h).
const (
	auditGet            = 1000
	auditLandlockAccess = 1423
	auditLandlockDomain = 1424
	auditReadLog        = 1 // multicast group of who may read and not configure
)

const (
	trailIdle  = 100 * time.Millisecond // without a record, after the run
	trailWait  = time.Second            // for all of them
	trailLimit = 1000                   // records of domains that are not known to be another's
)

// trail collects what Landlock itself reports of a run to the audit system of the kernel
// (Documentation/admin-guide/LSM/landlock.rst, "Audit"). Unlike the observer's it is no
// prediction, and it names what no system call names: signals, traces, devices.
// It is there for root, who may read the records, and where they are being made.
type trail struct {
	fd   int
	pid  atomic.Int32 // of the process that restricts itself
	stop chan struct{}
	done chan struct{}

	once     sync.Once
	accesses []access
	domain   string // of the run, "" until the kernel has said which it is
	freed    bool
}

// access is one record of a refused access.
type access struct {
	domain, blockers, path, comm string
}

// followTrail begins to collect, or is nil where there is nothing to be had.
func followTrail(abi int) *trail {
	if abi < 7 || unix.Geteuid() != 0 || !auditing() {
		return nil
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_AUDIT)
	if err != nil {
		return nil
	}
	if unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: auditReadLog}) != nil {
		unix.Close(fd)
		return nil
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20)
	t := &trail{fd: fd, stop: make(chan struct{}), done: make(chan struct{})}
	go t.collect()
	return t
}

// auditing asks whether records are made. That question is answered in the first process
// namespace only, where the numbers in the records are ours.
func auditing() bool {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	wait := unix.NsecToTimeval(int64(trailIdle))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	ask := make([]byte, unix.NLMSG_HDRLEN)
	binary.NativeEndian.PutUint32(ask, unix.NLMSG_HDRLEN)
	binary.NativeEndian.PutUint16(ask[4:], auditGet)
	binary.NativeEndian.PutUint16(ask[6:], unix.NLM_F_REQUEST)
	if unix.Sendto(fd, ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}) != nil {
		return false
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	// struct audit_status: mask, enabled
	return err == nil && n >= unix.NLMSG_HDRLEN+8 && binary.NativeEndian.Uint16(buf[4:]) == auditGet &&
		binary.NativeEndian.Uint32(buf[unix.NLMSG_HDRLEN+4:]) != 0
}

func (t *trail) collect() {
	defer close(t.done)
	defer unix.Close(t.fd)
	buf := make([]byte, 16<<10)
	var stopped time.Time
	stop := t.stop
	for {
		poll := []unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, int(trailIdle.Milliseconds()))
		select {
		case <-stop:
			stop, stopped = nil, time.Now()
		default:
		}
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return
		case stop == nil && (t.freed || n == 0 || time.Since(stopped) > trailWait):
			return
		case n <= 0:
			continue
		}
		size, _, err := unix.Recvfrom(t.fd, buf, 0)
		if err == nil && size > unix.NLMSG_HDRLEN {
			t.note(binary.NativeEndian.Uint16(buf[4:]), strings.TrimRight(string(buf[unix.NLMSG_HDRLEN:size]), "\x00\n"))
		}
	}
}

// note takes a record in. The first access of a domain comes before the kernel says whose
// domain it is.
func (t *trail) note(kind uint16, text string) {
	_, text, _ = strings.Cut(text, "): ")
	f := auditFields(text)
	switch {
	case kind == auditLandlockAccess && (t.domain == "" && len(t.accesses) < trailLimit || t.domain == f["domain"]):
		t.accesses = append(t.accesses, access{f["domain"], f["blockers"], f["path"], f["ocomm"]})
	case kind == auditLandlockDomain && f["status"] == "allocated" && f["pid"] == strconv.Itoa(int(t.pid.Load())):
		t.domain = f["domain"]
	case kind == auditLandlockDomain && f["status"] == "deallocated" && t.domain != "" && f["domain"] == t.domain:
		t.freed = true
	}
	if len(t.accesses) > trailLimit {
		t.accesses = t.accesses[:trailLimit]
	}
}

// auditFields splits a record. A text that holds a blank, a quote or a control character
// is in hexadecimal digits, without quotes (audit_log_untrustedstring).
func auditFields(text string) map[string]string {
	out := map[string]string{}
	for text != "" {
		key, rest, ok := strings.Cut(text, "=")
		if !ok {
			break
		}
		value := ""
		if quoted, isQuoted := strings.CutPrefix(rest, `"`); isQuoted {
			value, text, _ = strings.Cut(quoted, `"`)
		} else {
			value, text, _ = strings.Cut(rest, " ")
			if plain, err := hex.DecodeString(value); err == nil && (key == "path" || key == "ocomm") {
				value = string(plain)
			}
		}
		text = strings.TrimLeft(text, " ")
		out[strings.TrimSpace(key)] = value
	}
	return out
}

// end stops collecting.
func (t *trail) end() {
	if t != nil {
		t.once.Do(func() { close(t.stop) })
	}
}

// denials are the refusals that the observer has not seen. Call it when the tree is dead.
func (t *trail) denials(seen []Denial) []Denial {
	if t == nil {
		return nil
	}
	t.end()
	<-t.done
	known := map[string]bool{}
	for _, d := range seen {
		known[d.Path], known[filepath.Dir(d.Path)] = true, true
	}
	var out []Denial
	at := map[string]int{}
	for _, a := range t.accesses {
		if a.domain != t.domain || t.domain == "" || a.path != "" && known[a.path] {
			continue
		}
		d := a.denial()
		key := d.Op + "\x00" + d.Path
		if i, ok := at[key]; ok {
			out[i].Count++
			continue
		}
		at[key] = len(out)
		out = append(out, d)
	}
	return out
}

func (a access) denial() Denial {
	first, _, _ := strings.Cut(a.blockers, ",")
	d := Denial{Kind: denialKind, Path: a.path, Class: "files", Errno: "EACCES", Guarantee: FilesWrite, Count: 1, Certain: true}
	rights := Write
	switch first {
	case "fs.read_file", "fs.read_dir":
		d.Op, rights = "read", Read
	case "fs.execute":
		d.Op, rights = "execute", Exec
	case "fs.write_file", "fs.truncate", "fs.ioctl_dev":
		d.Op = "write"
	case "fs.refer":
		d.Op = "rename"
	case "fs.remove_file", "fs.remove_dir":
		d.Op = "remove"
	case "net.bind_tcp", "net.connect_tcp":
		d.Op, d.Class, d.Guarantee, d.Rule = "connect", "network", NetGranted, "network of this run"
		return d
	case "scope.signal":
		d.Op, d.Class, d.Errno, d.Guarantee, d.Path, d.Rule = "signal", "kernel", "EPERM", ProcSignal, a.comm, "processes outside of the run"
		return d
	case "scope.abstract_unix_socket":
		d.Op, d.Class, d.Errno, d.Guarantee, d.Rule = "connect", "kernel", "EPERM", IPCAbstract, "abstract sockets outside of the run"
		return d
	case "ptrace":
		d.Op, d.Class, d.Errno, d.Guarantee, d.Path, d.Rule = "trace", "kernel", "EPERM", ProcAttach, a.comm, "processes outside of the run"
		return d
	default:
		d.Op = "create"
	}
	d.outside(rights)
	return d
}
