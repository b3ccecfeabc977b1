package sandbox

import (
	"errors"
	"strconv"

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
