//go:build !linux

package drive

import "os"

// Relay is nothing where no run is confined.
type Relay struct{}

func StartRelay(from *os.File, file bool) (*os.File, *Relay, error) { return from, nil, nil }

func (*Relay) End() {}
