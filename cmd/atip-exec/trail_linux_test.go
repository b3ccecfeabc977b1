package main_test

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDenialsOfTheKernel: as root, where the kernel keeps records of what Landlock refuses,
// a run that is explained has those that no system call names, and they are of this run.
func TestDenialsOfTheKernel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may read these records")
	}
	if err := auditOn(t); err != nil {
		t.Skip("no records of this kernel here: " + err.Error())
	}
	for _, tier := range []string{"T2", "T3"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		const text = `
import os
def signal():
    try:
        os.kill(1, 0)
    except OSError as e:
        print(e.errno)
signal()
signal()
`
		_, plain, _, list := w.observedRun(nil, nil, text)
		if len(list) != 0 {
			t.Errorf("%s: not asked for: %+v", tier, list)
		}
		status, stdout, stderr, list := w.observedRun([]string{"--explain-denials"}, nil, text)
		if status != 0 || stdout != plain || stdout != "1\n1\n" {
			t.Errorf("%s: status %d, %q and %q", tier, status, plain, stdout)
		}
		var signals []denial
		for _, d := range list {
			if d.Op == "signal" {
				signals = append(signals, d)
			}
		}
		if len(signals) != 1 || signals[0].Guarantee != "proc.signal" || signals[0].Count != 2 || !signals[0].Certain || !strings.Contains(stderr, "denied signal "+signals[0].Path+": ") {
			t.Errorf("%s: %+v, %s", tier, list, stderr)
		}
	}
}

// auditOn lets the kernel keep records for the time of the test.
func auditOn(t *testing.T) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_AUDIT)
	if err != nil {
		return err
	}
	t.Cleanup(func() { unix.Close(fd) })
	wait := unix.NsecToTimeval(5e9)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait); err != nil {
		return err
	}
	const get, set = 1000, 1001
	status, err := askAudit(fd, get, nil)
	if err != nil {
		return err
	}
	if enabled := binary.NativeEndian.Uint32(status[4:]); enabled != 0 {
		return nil
	}
	enable := func(on uint32) error {
		// struct audit_status: mask AUDIT_STATUS_ENABLED, enabled
		change := make([]byte, len(status))
		binary.NativeEndian.PutUint32(change, 1)
		binary.NativeEndian.PutUint32(change[4:], on)
		_, err := askAudit(fd, set, change)
		return err
	}
	if err := enable(1); err != nil {
		return err
	}
	t.Cleanup(func() {
		if err := enable(0); err != nil {
			t.Error(err)
		}
	})
	return nil
}

// askAudit sends one message and returns what is answered to a question.
func askAudit(fd int, kind uint16, data []byte) ([]byte, error) {
	message := make([]byte, unix.NLMSG_HDRLEN, unix.NLMSG_HDRLEN+len(data))
	binary.NativeEndian.PutUint32(message, uint32(unix.NLMSG_HDRLEN+len(data)))
	binary.NativeEndian.PutUint16(message[4:], kind)
	binary.NativeEndian.PutUint16(message[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	if err := unix.Sendto(fd, append(message, data...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	var answer []byte
	for {
		buf := make([]byte, 4096)
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return nil, err
		}
		switch body := buf[unix.NLMSG_HDRLEN:n]; binary.NativeEndian.Uint16(buf[4:]) {
		case unix.NLMSG_ERROR:
			if errno := -int32(binary.NativeEndian.Uint32(body)); errno != 0 {
				return nil, unix.Errno(errno)
			}
			// The acknowledgement of a question can come before its answer.
			if kind != 1000 || answer != nil {
				return answer, nil
			}
		case kind:
			answer = body
			return answer, nil
		}
	}
}
