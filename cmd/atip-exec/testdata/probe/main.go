// Command probe tries one thing that a sandbox must refuse and says what happened.
// Each script runs it unconfined first: an act that fails there proves nothing.
package main

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("no act"))
	}
	acts := map[string]func(arg string) error{
		"write":   func(path string) error { return os.WriteFile(path, []byte("probe\n"), 0o600) },
		"read":    func(path string) error { _, err := os.ReadFile(path); return err },
		"connect": func(addr string) error { return closing(net.DialTimeout("tcp", addr, 2*time.Second)) },
		"udp": func(string) error {
			fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
			if err == nil {
				syscall.Close(fd)
			}
			return err
		},
		"signal": func(pid string) error {
			var n int
			if _, err := fmt.Sscan(pid, &n); err != nil {
				return err
			}
			return syscall.Kill(n, 0)
		},
	}
	act, ok := acts[os.Args[1]]
	if !ok {
		fail(fmt.Errorf("unknown act %q", os.Args[1]))
	}
	arg := ""
	if len(os.Args) > 2 {
		arg = os.Args[2]
	}
	if err := act(arg); err != nil {
		fail(err)
	}
	fmt.Println("did it")
}

func closing(c net.Conn, err error) error {
	if err == nil {
		c.Close()
	}
	return err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "probe:", err)
	os.Exit(9)
}
