// Package flock locks files between processes.
package flock

import (
	"errors"
	"os"
	"time"
)

// Exclusive fails: files cannot be locked here.
func Exclusive(*os.File) error { return errors.New("budgets cannot be shared by runs here") }

// Within fails: files cannot be locked here.
func Within(*os.File, time.Duration) bool { return false }
