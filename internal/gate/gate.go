// Package gate decides what a program of a run may start, at the moment of its execve:
// the words are known then, and the kernel holds the process until it has an answer
// (seccomp_unotify(2)). Where an answer hung on the words, the kernel's own copy of them
// is compared before the first instruction of the new program.
package gate

import (
	"errors"
	"time"
)

// Zone says on whose behalf a process starts programs.
type Zone uint8

const (
	// Typed is a process that starts only what a command line says: our shell, xargs, env.
	// Everything that it starts is decided as if it had been typed.
	Typed Zone = iota
	// Code is a process below code of the workspace. It could do itself what it starts, so
	// only rules of people restrict its starts.
	Code
)

// String returns "typed" or "code".
func (z Zone) String() string {
	if z == Code {
		return "code"
	}
	return "typed"
}

// Start is one execve that waits in the kernel.
type Start struct {
	PID  int    // of the calling process, as seen from here
	Zone Zone   // of the calling process
	Path string // what would be executed, absolute inside the root of the process
	Cwd  string // of the process, inside its root
	ID   FileID // of what Path names below that root
	Argv []string
	Env  []string

	leader int // number of the calling process, PID may be that of a thread
}

// FileID tells a file and its content from others, as far as fstat(2) does.
type FileID struct {
	Dev, Ino           uint64
	Size, Mtime, Ctime int64 // times in nanoseconds
}

// Verdict is what becomes of a start. The zero value refuses it.
type Verdict struct {
	Go    bool  // the program may start
	Words bool  // the verdict hung on words or environment: they are compared after the exec
	File  bool  // it hung on the file alone, which is no script: only that is compared
	Code  bool  // what was started runs code of the workspace
	Why   error // of a refusal, for its Report
}

// Report is a start that did not happen.
type Report struct {
	Start Start
	Why   error // what Decide said, or what kept it from deciding; nil if it gave no reason
}

// Rules are how the starts of a run are decided.
type Rules struct {
	// Known is what is remembered of earlier decisions about the same start; nil for nothing. Like
	// Decide it may be called by several goroutines at once, but it must not wait.
	Known func(Start) (Verdict, bool)
	// Decide judges one start. It may be called by several goroutines at once.
	Decide func(Start) Verdict
	// Refused is told of each start that did not happen.
	Refused func(Report)
	// First is the zone of the first process, whose own start is not asked about.
	First Zone
	// Traced lets a process that is traced already start what was decided, without a comparison: its tracer
	// can put other words there.
	Traced bool
}

// ErrTraced refuses a start of a process that another one of the run traces: it cannot be compared.
var ErrTraced = errors.New("a debugger traces it, so that what starts cannot be compared with what was decided")

// Limits of what is read of a caller: those of the kernel (execve(2)).
const (
	maxWord  = 128 << 10
	maxWords = 2 << 20
)

// Patience is how long a decision may take before the start fails.
const Patience = 5 * time.Second

// atOnce bounds the decisions in work; the kernel queues the rest.
const atOnce = 4
