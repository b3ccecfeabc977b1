//go:build unix

// Package flock locks files between processes.
package flock

import (
	"os"
	"syscall"
	"time"
)

// Within waits for the lock of a file no longer than d.
func Within(f *os.File, d time.Duration) bool {
	for end := time.Now().Add(d); ; time.Sleep(20 * time.Millisecond) {
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// Exclusive waits for the lock of a file; closing the file gives it back.
func Exclusive(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			return err
		}
	}
}
