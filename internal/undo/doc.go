// Package undo keeps copies of a workspace from before runs that may change it, and puts
// them back. It knows no policy: it says what a copy covers and what it costs.
//
// A store directory holds, for each workspace:
//
//	place.json      which directory it belongs to
//	lock            flock(2) of whoever reads or writes here
//	manifest/SEQ    one state of the workspace; complete if its checksum holds
//	pack/SEQ        the small contents that manifest SEQ was the first to need, end to end
//	big/SHA256      one content of 64 KiB or more; .zst if it was compressed later
//	index           where each small content lies, for contents that come back
//	runs            one JSON line before and one after each run
//
// Contents are synced before the manifest that names them, and the manifest is renamed into
// place before the run starts, so that a process killed at any moment leaves whole states only.
package undo

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Limits bound what is kept. The zero value keeps nothing; Defaults has the usual ones.
type Limits struct {
	File    int64         // bytes of one file; larger ones are not covered. Packs of git are exempt
	New     int64         // bytes that one checkpoint may add
	Entries int           // names in the workspace
	Bytes   int64         // of one workspace's store
	All     int64         // of the stores of all workspaces
	Age     time.Duration // of the oldest run
	Runs    int           // that are remembered
}

// Defaults are the limits without a policy.
func Defaults() Limits {
	return Limits{File: 64 << 20, New: 512 << 20, Entries: 200_000, Bytes: 2 << 30, All: 5 << 30, Age: 14 * 24 * time.Hour, Runs: 200}
}

// Place is a workspace and where its copies are kept. All paths are absolute and without links.
type Place struct {
	Root    string   // the workspace
	GitDirs []string // git directories of it that lie elsewhere
	Base    string   // the directory of all stores
	UID     int
	Limits  Limits
	Exclude []string // patterns of path.Match, relative to the workspace or for a bare name
	// Recreatable reports whether a directory can be built again, so that its name is
	// enough; nil for none.
	Recreatable func(abs string) bool
	// Decompress reads what Compress wrote; nil where only checkpoints are made.
	Decompress func(io.Reader) (io.Reader, error)

	skip     []string // entries that are our own locks
	unsynced bool     // of tests that lose no power
}

// Why says why an entry of a manifest is not covered. The zero value is covered.
type Why uint8

// Reasons. Recreatable directories and sockets are no loss; all others are.
const (
	Covered Why = iota
	Recreatable
	Socket
	TooLarge
	OverLimit
	Torn
	Unreadable
	Device
	OtherFilesystem
	Excluded
)

// String returns the reason as messages show it.
func (w Why) String() string {
	return [...]string{"", "can be built again", "a socket", "larger than the limit for one file", "beyond the limit of one checkpoint", "changed while it was copied", "cannot be read",
		"a device", "another file system", "excluded by policy"}[w]
}

// MarshalText implements encoding.TextMarshaler.
func (w Why) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// loses reports whether what such an entry holds would be lost.
func (w Why) loses() bool { return w > Socket }

// Loss is a path that no checkpoint brings back.
type Loss struct {
	Path string `json:"path"`
	Why  Why    `json:"why"`
	Size int64  `json:"size,omitempty"`
}

// Coverage is what a checkpoint of a workspace would cover now. The zero value covers nothing.
type Coverage struct {
	Known bool
	// Whole is false if the walk ended early: then anything may be missing.
	Whole  bool
	Losses []Loss
	New    int64 // bytes that would be copied
	Took   time.Duration
}

// Fact is how far a step can be taken back. The zero value is not at all.
type Fact uint8

// Facts, in ascending order of what comes back.
const (
	No Fact = iota
	Partly
	Yes
)

// Of says how far a step can be taken back that changes nothing but paths, with what lies
// below those that are recursive; a step that may change anything in the workspace names
// the workspace. losses are what would not come back.
func (c Coverage) Of(paths []Touched) (f Fact, losses []Loss) {
	if !c.Known || !c.Whole {
		return No, c.Losses
	}
	for _, l := range c.Losses {
		for _, p := range paths {
			if subpath.Within(l.Path, p.Path) || subpath.Within(p.Path, l.Path) {
				losses = append(losses, l)
				break
			}
		}
	}
	if len(losses) > 0 {
		return Partly, losses
	}
	return Yes, nil
}

// Touched is a path that a step changes, with everything below it.
type Touched struct{ Path string }

// Error is what went wrong with a store.
type Error struct {
	Op, Path string
	Err      error
	code     string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("undo: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("undo: %s %q: %v", e.Op, e.Path, e.Err)
}

// Refused reports whether the store itself is not to be trusted: a link, another user's, or
// open to others.
func (e *Error) Refused() bool { return errors.Is(e.Err, errNotOurs) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FaultCode implements fault.Coded.
func (e *Error) FaultCode() string {
	if e.code != "" {
		return e.code
	}
	return codeStore
}

// FaultDetails implements fault.Coded.
func (e *Error) FaultDetails() map[string]any {
	return map[string]any{"op": e.Op, "path": e.Path, "cause": fmt.Sprint(e.Err)}
}

// Codes of this package's errors.
const (
	codeStore   = errcode.UndoStore    // the store cannot be used
	codeNothing = errcode.NoCheckpoint // there is no such checkpoint
	codeBusy    = errcode.UndoBusy     // store or repository in use
)

var (
	errNotOurs = errors.New("not a private directory of this user")
	errBusy    = errors.New("another process holds the lock")
	errDamaged = errors.New("damaged")
	errTooMany = errors.New("more names than are walked")
)
