//go:build unix

package permit

import (
	"os"

	"golang.org/x/sys/unix"
)

func processID() int { return os.Getpid() }

func sessionID() int {
	sid, err := unix.Getsid(0)
	if err != nil {
		return 0
	}
	return sid
}
