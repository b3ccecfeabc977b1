//go:build !unix

package outside

import "os/exec"

// Detach does nothing here: there are no sessions.
func Detach(*exec.Cmd) {}
