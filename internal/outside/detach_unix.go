//go:build unix

package outside

import (
	"os/exec"
	"syscall"
)

// Detach gives a program a session of its own, without our terminal and its signals.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
