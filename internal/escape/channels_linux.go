package escape

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func dial(network string, address func(Scene) string) func(Scene) error {
	return func(s Scene) error {
		c, err := net.DialTimeout(network, address(s), 5*time.Second)
		if err == nil {
			return c.Close()
		}
		return err
	}
}

func port(s Scene) string {
	data, _ := os.ReadFile(s.Base + "/ws/port")
	return string(data)
}

func socketPath(s Scene) string     { return s.Base + "/s" }
func abstractSocket(s Scene) string { return "@" + s.Base }

func socket(family, kind, protocol int) func(Scene) error {
	return func(Scene) error { return sock(family, kind, protocol) }
}

// channelProbes send something to somebody outside. The listeners of the world are
// those of listen.
func channelProbes() []Probe {
	refused := []string{"EAFNOSUPPORT"}
	own := []string{"ok", "ECONNREFUSED"} // a network and sockets of its own, with nobody there
	return []Probe{
		{name: "tcp", want: refused, act: dial("tcp", port)},
		{name: "udp", want: refused, act: dial("udp", port)},
		{name: "tcp-listen", want: refused, act: func(Scene) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err == nil {
				err = l.Close()
			}
			return err
		}},
		{name: "mptcp", want: refused, private: []string{"EPROTONOSUPPORT"}, only: mayNeedKernel, act: socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)},
		{name: "icmp", want: refused, only: mayNeedKernel, act: socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP)},
		{name: "netlink", want: refused, act: socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)},
		{name: "packet", want: refused, only: mayNeedKernel, act: socket(unix.AF_PACKET, unix.SOCK_RAW, 0)},
		{name: "vsock", want: refused, only: mayNeedKernel, act: socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
		{name: "algorithm", want: refused, only: mayNeedKernel, act: socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
		{name: "unix-path", want: refused, act: dial("unix", socketPath)},
		{name: "unix-abstract", want: refused, private: own[1:], act: dial("unix", abstractSocket)},
		{name: "unix-datagram", want: refused, private: own, act: socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)},
		{name: "fifo", act: func(s Scene) error { return opens(s.Base+"/fifo", unix.O_RDWR) }},
		{name: "shell-network", want: []string{"refused"}, only: mayNeedKernel, act: func(s Scene) error {
			host, p, _ := strings.Cut(port(s), ":")
			if err := exec.Command("bash", "-c", "exec 3<>/dev/tcp/"+host+"/"+p).Run(); err != nil {
				return errors.New("refused")
			}
			return nil
		}},
	}
}

// fullNetworkProbes are for a run that has the network: all that is not plain TCP,
// UDP or the netlink that resolvers read stays closed.
func fullNetworkProbes() []Probe {
	family, kind, protocol := []string{"EAFNOSUPPORT"}, []string{"EPERM"}, []string{"EPROTONOSUPPORT"}
	return []Probe{
		{name: "tcp", want: []string{"ok"}, act: dial("tcp", port)},
		{name: "udp", want: []string{"ok"}, act: dial("udp", port)},
		{name: "interfaces", want: []string{"ok"}, act: func(Scene) error { _, err := net.Interfaces(); return err }},
		{name: "mptcp", want: protocol, only: mayNeedKernel, act: socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)},
		{name: "sctp", want: protocol, only: mayNeedKernel, act: socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP)},
		{name: "raw", want: kind, only: mayNeedRoot, act: socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)},
		{name: "raw6", want: kind, only: mayNeedRoot, act: socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6)},
		{name: "netlink-events", want: protocol, act: socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT)},
		{name: "packet", want: family, only: mayNeedKernel, act: socket(unix.AF_PACKET, unix.SOCK_RAW, 0)},
		{name: "vsock", want: family, only: mayNeedKernel, act: socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)},
		{name: "algorithm", want: family, only: mayNeedKernel, act: socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)},
		{name: "unix-path", want: family, act: dial("unix", socketPath)},
		{name: "unix-abstract", want: family, private: kind, act: dial("unix", abstractSocket)},
		{name: "fast-open", want: []string{"ENOTSUP"}, only: mayNeedKernel, act: fastOpen},
	}
}

// fastOpen sends with the connect, which no right on connect sees.
func fastOpen(s Scene) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, text, _ := strings.Cut(port(s), ":")
	number, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: number, Addr: [4]byte{127, 0, 0, 1}})
}

// metadataProbes are for a plain read run: what Landlock has no right for, on files
// that the run can read.
func metadataProbes() []Probe {
	eperm := []string{"EPERM"}
	file := func(s Scene) string { return s.In + "/mine" }
	name := func(path string) uintptr {
		p, err := unix.BytePtrFromString(path)
		if err != nil {
			return 0
		}
		return uintptr(unsafe.Pointer(p))
	}
	const cwd = ^uintptr(99) // AT_FDCWD
	onDescriptor := func(f func(fd int) error) func(Scene) error {
		return func(s Scene) error {
			fd, err := unix.Open(file(s), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return f(fd)
		}
	}
	times := []unix.Timespec{{Sec: 1}, {Sec: 1}}
	return []Probe{
		{name: "chmod", want: eperm, act: func(s Scene) error { return unix.Chmod(file(s), 0o644) }},
		{name: "fchmod", want: eperm, act: onDescriptor(func(fd int) error { return unix.Fchmod(fd, 0o644) })},
		{name: "fchmodat2", want: eperm, only: mayNeedKernel, act: func(s Scene) error {
			_, _, errno := unix.Syscall6(452, cwd, name(file(s)), 0o644, 0, 0, 0)
			return errOf(errno)
		}},
		{name: "chown", want: eperm, act: func(s Scene) error { return unix.Chown(file(s), os.Getuid(), os.Getgid()) }},
		{name: "lchown", want: eperm, act: func(s Scene) error { return unix.Lchown(file(s), os.Getuid(), os.Getgid()) }},
		{name: "utimensat", want: eperm, act: func(s Scene) error { return unix.UtimesNanoAt(unix.AT_FDCWD, file(s), times, 0) }},
		{name: "futimens", want: eperm, act: onDescriptor(func(fd int) error {
			_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times[0])), 0, 0, 0)
			return errOf(errno)
		})},
		{name: "setxattr", want: eperm, only: mayNeedKernel, act: func(s Scene) error { return unix.Setxattr(file(s), "user.x", []byte("y"), 0) }},
		{name: "fsetxattr", want: eperm, only: mayNeedKernel, act: onDescriptor(func(fd int) error { return unix.Fsetxattr(fd, "user.x", []byte("y"), 0) })},
		{name: "setxattrat", want: eperm, only: mayNeedKernel, act: func(s Scene) error {
			value := []byte("y")
			args := binary.NativeEndian.AppendUint64(nil, uint64(uintptr(unsafe.Pointer(&value[0]))))
			args = append(binary.NativeEndian.AppendUint32(args, 1), 0, 0, 0, 0)
			_, _, errno := unix.Syscall6(463, cwd, name(file(s)), 0, name("user.z"), uintptr(unsafe.Pointer(&args[0])), 16)
			return errOf(errno)
		}},
		{name: "removexattr", want: eperm, only: mayNeedKernel, act: func(s Scene) error {
			_ = unix.Setxattr(file(s), "user.x", []byte("y"), 0) // so that the control has one
			return unix.Removexattr(file(s), "user.x")
		}},
		{name: "file-setattr", want: eperm, only: mayNeedKernel, act: func(s Scene) error {
			var attributes [24]byte
			_, _, errno := unix.Syscall6(469, cwd, name(file(s)), uintptr(unsafe.Pointer(&attributes)), 24, 0, 0)
			return errOf(errno)
		}},
		{name: "set-flags", want: eperm, only: mayNeedKernel, act: onDescriptor(func(fd int) error {
			return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, 0x80) // FS_NOATIME_FL
		})},
		{name: "set-project", want: eperm, only: mayNeedKernel, act: onDescriptor(func(fd int) error {
			var attributes [28]byte
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), 0x401c5820, uintptr(unsafe.Pointer(&attributes)))
			return errOf(errno)
		})},
	}
}
