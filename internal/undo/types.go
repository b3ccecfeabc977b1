package undo

import "time"

// Workspace is a directory that has a store.
type Workspace struct {
	V    int       `json:"v"`
	Root string    `json:"root"`
	Dev  uint64    `json:"dev"`
	Ino  uint64    `json:"ino"`
	UID  int       `json:"uid"`
	Made time.Time `json:"made"`
	Name string    `json:"-"`
}

// Run is what is remembered of one run, or of a checkpoint made by hand.
type Run struct {
	Run    string    `json:"run"`
	Kind   string    `json:"kind,omitempty"` // run, undo or checkpoint
	Time   time.Time `json:"t"`
	Cmd    string    `json:"cmd,omitempty"`
	Cwd    string    `json:"cwd,omitempty"`
	Name   string    `json:"name,omitempty"` // of a checkpoint made by hand
	Before uint64    `json:"before,omitempty"`
	After  uint64    `json:"after,omitempty"`
	Shared bool      `json:"shared,omitempty"` // an earlier checkpoint stands for it
	Counts *Counts   `json:"changed,omitempty"`
	Lost   int       `json:"not_covered,omitempty"`
	Undoes string    `json:"undoes,omitempty"` // the run that an undo took back
}

// Checkpoint is a state that was saved.
type Checkpoint struct {
	Seq    uint64
	Losses []Loss
	Whole  bool
	Took   time.Duration
	Made   time.Time
	Shared bool // an earlier one stands for it
}

// Counts says how many names a run changed.
type Counts struct {
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
	Git     int `json:"git,omitempty"` // repositories whose refs, index or settings differ
}

// Request says what is to be taken back.
type Request struct {
	Run    string   // whose state before it is wanted; "" for the last run that changed something
	Only   []string // absolute paths; nil for everything
	Force  bool     // takes changes of others with it
	DryRun bool
	Diff   bool   // with DryRun: also how texts changed since that state
	ID     string // under which the undo itself is remembered
	Cmd    string
	Cwd    string
}

// Change is one name that an undo changes, or leaves.
type Change struct {
	Path string `json:"path"`
	Op   string `json:"op"` // create, write, remove, mode; or why it is left
	Size int64  `json:"size,omitempty"`
	Was  int64  `json:"was,omitempty"`
}

// Result is what an undo did, or would do.
type Result struct {
	Run       Run      `json:"run"`
	Later     []Run    `json:"later,omitempty"` // runs after it, which are taken back with it
	Changes   []Change `json:"changes"`
	Conflicts []Change `json:"conflicts,omitempty"` // changed by others since
	Left      []Change `json:"left,omitempty"`      // what no checkpoint holds, or what failed
	Files     Counts   `json:"counts"`
	Diff      string   `json:"diff,omitempty"`
}
