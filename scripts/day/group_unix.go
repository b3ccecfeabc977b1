//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a run a process group, so that what it leaves in the background ends with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func endGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
