package sandbox

import (
	"os"
	"syscall"
	"time"
)

// Terminal is the session of the child.
type Terminal uint8

// Terminal modes.
const (
	Detached Terminal = iota // a new session, no terminal
	Handoff                  // the caller's terminal, in its own process group
	Pty                      // a terminal of its own
)

// Cmd is what to start. Start takes no descriptor over: the caller closes its own.
type Cmd struct {
	Path         string   // canonical
	ByDescriptor bool     // execute File instead of Path
	File         *os.File // the identified file
	Argv, Env    []string
	Dir          string // "" is the caller's
	Stdin        *os.File
	Stdout       *os.File
	Stderr       *os.File
	Pass         map[int]*os.File // further descriptors under their number
	Terminal     Terminal
	Ctty         *os.File // the terminal of modes Handoff and Pty
	Foreground   bool     // Handoff: put the child in front
	Umask        int      // bits added to the inherited umask

	Observe bool // report what is refused; Proc.Denials has it

	// Serve takes over the listening sockets of the run's own network, before the child
	// starts. Mode NetAllowlist needs it.
	Serve func([]Listener)
	// Prepared is what Prepare began, nil for nothing.
	Prepared *Prepared
	// Check compares the started file with the identified one, on the worker, right
	// after the fork. An error kills the tree and fails the start.
	Check func(pid int) (string, error)
	// Stopped is called when the child pid is stopped by a signal, perhaps before
	// Start returns.
	Stopped func(pid int, sig syscall.Signal)
}

// Listener is a socket that listens inside the network of a run.
type Listener struct {
	Service string // http, socks, forward, direct
	Host    string // of service direct
	Port    int
	File    *os.File
}

// Exit is how the child ended.
type Exit struct {
	Code      int            // 128+n if a signal ended it
	Signal    syscall.Signal // 0 if it exited
	Core      bool
	User, Sys time.Duration
	MaxRSSKB  int64
	Checked   string // what Check returned
}

// Tree is how the rest of a process tree ended.
type Tree struct {
	Method    string `json:"method"`
	Leftovers int    `json:"leftovers"`
	Survivors int    `json:"survivors"`
	Kept      int    `json:"kept,omitempty"` // go on running, as policy says
}
