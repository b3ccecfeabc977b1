package sandbox

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/gate"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// look predicts what becomes of a call that the filter lets through.
func (o *observer) look(n *gate.Notification) {
	nr, a := plain(n.Call.Nr, n.Call.Args)
	pid := int(n.PID)
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

func (o *observer) open(n *gate.Notification, path string, flags uint64) {
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
func (o *observer) need(n *gate.Notification, op, path string, r Rights, fresh bool) bool {
	// Names in /proc mean another thing to each process.
	if path == "" || subpath.Within(path, "/proc") || subpath.Within(path, "/dev/fd") || strings.HasPrefix(path, "/dev/std") {
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
		if unix.Access("/proc/"+strconv.Itoa(int(n.PID))+"/root"+inside, unix.F_OK) == nil {
			return false
		}
		d.outside(r)
		d.Errno = "ENOENT"
		if subpath.Within(canonical, "/tmp") || subpath.Within(canonical, "/var/tmp") || subpath.Within(canonical, "/dev/shm") {
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
	if !o.listener.Valid(n) {
		return false
	}
	o.add(d)
	return true
}

func (o *observer) pinned(path string) bool {
	return o.private && o.profile.pinned(path, os.Lstat)
}

// onIsland reports whether path, which nothing grants, lies in a read-only part of /tmp.
func (o *observer) onIsland(path string) bool {
	return slices.ContainsFunc(o.islands, func(top string) bool { return subpath.Within(path, top) })
}

func (o *observer) masked(path string) bool {
	return o.private && slices.Contains(o.profile.Mask, path)
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

func (o *observer) connect(n *gate.Notification, pid int, a [6]uint64) {
	var raw [128]byte
	size := min(int(a[2]&0xff), len(raw))
	if size < 2 || peek(pid, a[1], raw[:size]) != size {
		return
	}
	d := Denial{Op: "connect", Class: "network", Guarantee: NetGranted, Errno: "ENETUNREACH", Rule: "network " + o.profile.Net.Mode.String(), Remedy: notGranted}
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
	if o.listener.Valid(n) {
		o.add(d)
	}
}

// addressOf writes host and port; local says that it is the machine itself.
func addressOf(family uint16, raw []byte) (address string, local bool) {
	var ip netip.Addr
	switch {
	case family == unix.AF_INET && len(raw) >= 8:
		ip, _ = netip.AddrFromSlice(raw[4:8])
	case family == unix.AF_INET6 && len(raw) >= 24:
		ip, _ = netip.AddrFromSlice(raw[8:24])
	default:
		return "", false
	}
	port := uint16(raw[2])<<8 | uint16(raw[3])
	return netip.AddrPortFrom(ip, port).String(), ip.IsLoopback() || ip.IsUnspecified() || ip.Is4() && raw[4] == 0
}
