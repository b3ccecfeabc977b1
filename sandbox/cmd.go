package sandbox

import (
	"os"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/gate"
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
	DirID        DirID  // of Dir, as it was judged; zero for any
	Stdin        *os.File
	Stdout       *os.File
	Stderr       *os.File
	Pass         map[int]*os.File // further descriptors under their number
	Terminal     Terminal
	Ctty         *os.File // the terminal of modes Handoff and Pty
	Foreground   bool     // Handoff: put the child in front
	Umask        int      // bits added to the inherited umask

	// Inside says that another run is around this one. The gate of that run reads the words of each
	// start, which it cannot in this process, as that is not dumpable: a stage starts the command.
	Inside  bool
	Observe bool // report what is refused; Proc.Denials has it
	// Gate decides what the run may start, nil for everything that the profile lets start. It needs Host.Gate.
	Gate *gate.Rules

	// Serve takes over the listening sockets of the run's own network, before the child
	// starts. Mode NetAllowlist needs it.
	Serve func([]Listener)
	// Regenerable reports a directory of the workspace that a build makes again. Repositories in it
	// are compared and not pinned, so that a build can remove them. nil: there is none.
	Regenerable func(path string) bool
	// Prepared is what Prepare began, nil for nothing.
	Prepared *Prepared
	// Before is called while the stage of a private root begins; the stage makes that root when it
	// has returned. Other tiers do not call it.
	Before func()
	// Check compares the started file with the identified one, on the worker, right
	// after the fork. An error kills the tree and fails the start.
	Check func(pid int) (string, error)
	// Stopped is called when the child pid is stopped by a signal, perhaps before
	// Start returns.
	Stopped func(pid int, sig syscall.Signal)
}

// DirID tells a directory from every other one that takes its name.
type DirID struct{ Dev, Ino uint64 }

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
	Unrouted  int    // how often it tried to reach a host, where it had a loopback and nothing else
}

// Tree is how the rest of a process tree ended.
type Tree struct {
	Method    string `json:"method"`
	Leftovers int    `json:"leftovers"`
	Survivors int    `json:"survivors"`
	Kept      int    `json:"kept,omitempty"` // go on running, as policy says
}
