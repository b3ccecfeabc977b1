//go:build !linux

package mcp

import "syscall"

var ending = syscall.SIGTERM

func dieWithUs() *syscall.SysProcAttr { return nil }
