//go:build !unix

package main

import "os/exec"

// ownGroup does nothing where processes have no groups; the day is measured on Unix.
func ownGroup(*exec.Cmd) {}

func endGroup(cmd *exec.Cmd) { cmd.Process.Kill() }
