//go:build unix

package verifier

import "syscall"

// nonblock keeps a FIFO from stopping us.
const nonblock = syscall.O_NONBLOCK | syscall.O_NOCTTY
