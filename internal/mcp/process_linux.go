package mcp

import "syscall"

var ending = syscall.SIGTERM

// dieWithUs ends a run when the server is killed: it would else go on for nobody.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
}
