//go:build !linux

package undo

import (
	"errors"
	"time"
)

var errUnsupported = errors.New("this system has no checkpoints")

// Store needs openat2(2), so it exists on Linux only.
type Store struct{}

func unsupported() error { return &Error{Op: "open", Err: errUnsupported} }

// Open fails here.
func Open(Place, bool) (*Store, error) { return nil, unsupported() }

// Close does nothing.
func (*Store) Close() {}

// Survey fails here.
func Survey(Place) (Coverage, *Look, error) { return Coverage{}, nil, unsupported() }

// Look is nothing here.
type Look struct{}

// Drop does nothing.
func (*Look) Drop() {}

// Take does nothing.
func (*Store) Take(*Look) {}

// Tidy does nothing.
func (*Store) Tidy(time.Time) {}

// Survey fails here.
func (*Store) Survey() (Coverage, *Look, error) { return Coverage{}, nil, unsupported() }

// Before fails here.
func (*Store) Before(Run, bool) (*Checkpoint, error) { return nil, unsupported() }

// After fails here.
func (*Store) After(string, uint64) (Counts, error) { return Counts{}, unsupported() }

// Runs lists nothing.
func (*Store) Runs() []Run { return nil }

// Undo fails here.
func (*Store) Undo(Request) (*Result, error) { return nil, unsupported() }

// Peek lists nothing.
func Peek(Place) []Run { return nil }

// Places lists nothing.
func Places(string) []Workspace { return nil }

// Forget fails here.
func Forget(string, string, int) error { return unsupported() }
