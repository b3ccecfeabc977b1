package standin

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/signals"
)

// patience is for a run that does not read.
const patience = 10 * time.Second

func init() {
	if len(os.Args) == 0 {
		return
	}
	// The stage and the process that carries an own step out have names of ours, and so has what a shell starts
	// as atip-exec.
	const ours = "atip-exec"
	name, list := os.Args[0], os.Getenv(Variable)
	if len(list) < 4 || list[:3] != "fd:" || len(name) >= len(ours) && name[:len(ours)] == ours {
		return
	}
	fd, from, found := 0, 3, false
	for i := 3; i <= len(list); i++ {
		if i < len(list) && list[i] != '/' {
			continue
		}
		if word := list[from:i]; from == 3 {
			fd, _ = strconv.Atoi(word)
		} else {
			found = found || word == name
		}
		from = i + 1
	}
	if found {
		asked = true
		lost = ask(fd)
	}
}

// ask returns if this process does not end, and says why unless an answer says it.
func ask(to int) string {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	err = put(to, []byte(Question), syscall.UnixRights(ends[1], 0, 1, 2))
	syscall.Close(ends[1])
	if err != nil {
		return err.Error()
	}
	// The run is at work now. Taking signals over takes as long.
	taken := make(chan os.Signal, 16)
	var wanted []os.Signal
	for _, sig := range append(signals.Endings(), signals.Forwarded()...) {
		if !signal.Ignored(sig) {
			wanted = append(wanted, sig)
		}
	}
	if len(wanted) > 0 { // none would mean all
		signal.Notify(taken, wanted...)
	}
	go func() {
		for sig := range taken {
			tell(ends[0], `{"kind":"signal","signal":`+strconv.Itoa(signals.Number(sig))+`}`)
			if signals.Stops(sig) {
				signals.StopSelf()
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := syscall.Read(ends[0], buf)
		switch message := string(buf[:max(n, 0)]); {
		case err == syscall.EINTR:
		case err != nil || n == 0:
			return "it ended without an answer"
		case message == Who:
			tell(ends[0], "here")
		case begins(message, Exit):
			status, err := strconv.Atoi(message[len(Exit):])
			if err != nil {
				return "it does not say how the command ended"
			}
			os.Exit(status)
		case begins(message, Keep):
			signal.Reset()
			syscall.Close(to)
			os.Unsetenv(Variable) // what it becomes is the command
			return message[len(Keep):] + ": " + syscall.Exec(message[len(Keep):], os.Args, os.Environ()).Error()
		default:
			said = buf[:n]
			return ""
		}
	}
}

func begins(text, with string) bool { return len(text) >= len(with) && text[:len(with)] == with }

// put sends a message and waits for room.
func put(to int, message, rights []byte) error {
	err := syscall.Sendmsg(to, message, rights, nil, syscall.MSG_NOSIGNAL)
	if err != syscall.EAGAIN {
		return err
	}
	f := os.NewFile(uintptr(to), "run")
	f.SetWriteDeadline(time.Now().Add(patience))
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if werr := conn.Write(func(fd uintptr) bool {
		err = syscall.Sendmsg(int(fd), message, rights, nil, syscall.MSG_NOSIGNAL)
		return err != syscall.EAGAIN
	}); werr != nil {
		return werr
	}
	return err
}

// tell sends a message if there is room for it.
func tell(to int, message string) {
	_ = syscall.Sendmsg(to, []byte(message), nil, nil, syscall.MSG_NOSIGNAL|syscall.MSG_DONTWAIT)
}
