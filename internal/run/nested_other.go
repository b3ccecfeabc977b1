//go:build !linux

package run

import (
	"errors"
	"os"
)

// recordPair is for systems where a run inside a run cannot write the log itself.
func recordPair() (from, to *os.File, err error) { return nil, nil, errors.New("not on this system") }

func recordSocket(int) *os.File { return nil }
