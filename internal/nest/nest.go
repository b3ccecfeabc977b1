// Package nest lets a run ask the run outside it, its parent run. A run inside cannot write
// the audit log, and it lacks the credentials that its sandbox lacks. Over a socket that it
// inherits it sends its record, and it asks the parent run to start a command for it.
//
//	run inside                          parent run
//	record ->                           keeps it, or sends it further out
//	question{reply, stdin, stdout, stderr} ->
//	                                    a process of its own plans under its policy and the chain
//	                                 <- keep: run it yourself
//	signal{n} ->                        to the process
//	(end of reply) ->                   ends the process
//	                                 <- end{exit_code, error}
//
// Anything in the sandbox can use the socket, so nothing is believed: a record is kept as what
// the inside said, and a question is planned anew. What is decided lies with the caller; this
// package carries values between processes.
package nest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Variables of a run inside.
const (
	ParentVariable   = "ATIP_EXEC_PARENT"   // fd:N, a socket to the run right outside
	RunVariable      = "ATIP_EXEC_RUN"      // the id of the run right outside
	StandVariable    = "ATIP_EXEC_STANDS"   // fd:N, the same socket, for stand-ins
	WithheldVariable = "ATIP_EXEC_WITHHELD" // names of the credentials that its sandbox lacks, colons between
)

// Bounds of messages.
const (
	maxRecord   = 48 << 10
	maxRecords  = 256 // of one run
	maxQuestion = 96 << 10
	maxOrder    = 160 << 10
	maxAnswer   = 64 << 10

	// patience is for a socket whose other end does not read. A deadline that has passed
	// before the first try fails it, so it is longer than a busy machine takes to get there.
	patience = 10 * time.Second
)

// Record is what a run inside says of itself.
type Record struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	Parent   string    `json:"parent,omitempty"`
	Argv     []string  `json:"argv"`
	Cwd      string    `json:"cwd"`
	Session  string    `json:"session,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Chain    []string  `json:"chain,omitempty"`
	Exit     *int      `json:"exit,omitempty"`
	State    string    `json:"state,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
	Error    *Error    `json:"error,omitempty"`
	ByParent string    `json:"started_by_parent,omitempty"` // the parent run that started it instead
}

// Decision is what the policy of a run inside said, and by which rules.
type Decision struct {
	Action string   `json:"action"`
	Rules  []string `json:"rules"`
}

// Error is why a run inside failed.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Entry is the record as the run of this id keeps it: redacted by clean, and marked as what
// the inside said, which anything below could have sent.
func (r Record) Entry(run string, clean func(string) string) map[string]any {
	argv := make([]string, len(r.Argv))
	for i, word := range r.Argv {
		argv[i] = clean(word)
	}
	var failed *Error
	if r.Error != nil {
		failed = &Error{Code: r.Error.Code, Message: clean(r.Error.Message)}
	}
	return map[string]any{"kind": "nested", "parent": run, "unverified": true, "argv": argv, "cwd": clean(r.Cwd), "session": r.Session, "agent": r.Agent,
		"chain": r.Chain, "exit": r.Exit, "state": r.State, "decision": r.Decision, "error": failed, "inner": map[string]string{"id": r.ID, "kind": r.Kind, "parent": r.Parent, "started_by_parent": r.ByParent}}
}

// Words are those of a command line, as bytes: they need not be UTF-8.
type Words [][]byte

// WordsOf are words as they are sent.
func WordsOf(words []string) Words {
	out := make(Words, len(words))
	for i, w := range words {
		out[i] = []byte(w)
	}
	return out
}

// Texts are words as they are used.
func (w Words) Texts() []string {
	out := make([]string, len(w))
	for i, word := range w {
		out[i] = string(word)
	}
	return out
}

// Milliseconds is a time that somebody else wrote down.
type Milliseconds int64

// MillisecondsOf is a time as it is sent.
func MillisecondsOf(d time.Duration) Milliseconds { return Milliseconds(d.Milliseconds()) }

// Duration is the time that is meant. Nonsense, a day or more among it, is none.
func (m Milliseconds) Duration() time.Duration {
	if m <= 0 || m > Milliseconds(24*time.Hour/time.Millisecond) {
		return 0
	}
	return time.Duration(m) * time.Millisecond
}

// Question asks for the start of a command.
type Question struct {
	Kind      string       `json:"kind"` // start
	Argv      Words        `json:"argv,omitempty"`
	IsShell   bool         `json:"isShell,omitempty"`
	Shell     []byte       `json:"shell,omitempty"`
	ShellArgs Words        `json:"shellArgs,omitempty"`
	ShellSet  Words        `json:"shellSet,omitempty"`
	Cwd       string       `json:"cwd"`
	Token     string       `json:"token,omitempty"`
	Asks      bool         `json:"asks,omitempty"` // its own decision is to ask: only a person may permit it
	TimeoutMS Milliseconds `json:"timeoutMs,omitempty"`
	KillMS    Milliseconds `json:"killMs,omitempty"`
	WaitMS    Milliseconds `json:"waitMs,omitempty"`
}

// Order is what the process that answers a question is told. All of it comes from the parent
// run, but for the question, which anything in its sandbox may have asked.
type Order struct {
	V         int             `json:"v"`
	Question  Question        `json:"question"`
	Own       *Own            `json:"own,omitempty"` // in place of the question
	Run       string          `json:"run"`           // the parent run
	Words     string          `json:"words"`         // its command, redacted
	Workspace string          `json:"workspace"`     // of it
	Cwd       string          `json:"cwd"`
	Policies  []string        `json:"policies"` // its --policy files
	Profiles  []string        `json:"profiles"` // its --profile names
	Ceiling   *policy.Ceiling `json:"ceiling"`  // of the script that it runs
	CI        bool            `json:"ci"`
	Withheld  []string        `json:"withheld"` // the credentials its sandbox lacks
	Files     []string        `json:"files"`    // credential files that its sandbox has
	ReadOnly  bool            `json:"readOnly"` // its sandbox cannot write to the workspace
}

// Outcome answers a question; a signal goes the other way, after the question.
type Outcome struct {
	Kind     string        `json:"kind"` // keep, end; signal
	Signal   int           `json:"signal,omitempty"`
	Path     string        `json:"path,omitempty"` // of keep: what a stand-in becomes
	ExitCode int           `json:"exitCode"`
	Run      string        `json:"run,omitempty"`
	Child    *status.Child `json:"child,omitempty"`
	Error    *fault.Fault  `json:"error,omitempty"`
}

// Keep leaves the command to the run that asked.
func Keep() Outcome { return Outcome{Kind: "keep"} }

// Failed is the outcome of a question that no command was started for.
func Failed(f *fault.Fault) Outcome { return Outcome{Kind: "end", ExitCode: f.Exit, Error: f} }

// Kept reports that the command is left to the run that asked.
func (a Outcome) Kept() bool { return a.Kind == "keep" }

// encode drops what makes a message too long, details first.
func (a Outcome) encode() []byte {
	raw, err := json.Marshal(a)
	if err == nil && len(raw) <= maxAnswer {
		return raw
	}
	if a.Error != nil {
		brief := *a.Error
		brief.Details = nil // lists of words, most of it
		a.Error = &brief
	}
	raw, err = json.Marshal(a)
	if err != nil || len(raw) > maxAnswer {
		raw, _ = json.Marshal(Outcome{Kind: a.Kind, ExitCode: a.ExitCode, Run: a.Run})
	}
	return raw
}

// Inside reports that this process is inside a run, whose sandbox keeps it from the state
// directory. The variable alone says nothing, as an agent can set it, nor does a private
// root, which an unconfined process can imitate, and neither does a log
// that cannot be opened: at T2 a command may have taken the mode of its directory. What
// cannot be faked is that this very process is under a filter that cannot be taken off.
func Inside(getenv func(string) string, state string) bool {
	if getenv("ATIP_EXEC_SANDBOX") == "" && sandbox.FindOuter() == nil || !filtered() {
		return false
	}
	f, err := os.OpenFile(filepath.Join(state, "audit", "lock"), os.O_RDWR, 0)
	if err == nil {
		f.Close()
		return false
	}
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrNotExist)
}

// filtered reports whether the kernel confines this process for good.
func filtered() bool {
	raw, err := os.ReadFile("/proc/self/status")
	return err == nil && bytes.Contains(raw, []byte("\nNoNewPrivs:\t1\n")) && bytes.Contains(raw, []byte("\nSeccomp:\t2\n"))
}
