package audit

import (
	"crypto/rand"

	"golang.org/x/sys/unix"
)

// random fills b. The generator behind crypto/rand is started by its first use, which
// costs as much as fifty system calls; ids need one.
func random(b []byte) {
	if n, err := unix.Getrandom(b, 0); err != nil || n != len(b) {
		rand.Read(b)
	}
}
