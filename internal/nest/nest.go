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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/standin"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Variables of a run inside.
const (
	ParentVariable   = "ATIP_EXEC_PARENT"   // fd:N, a socket to the run right outside
	RunVariable      = "ATIP_EXEC_RUN"      // the id of the run right outside
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
	Tmp       string          `json:"tmp"`      // holds its /tmp, which it brings in and out; "" for none
	Ahead     bool            `json:"ahead"`    // it is planned, and nothing of it happens before it is asked for
}

// encode is nil if an order is too long.
func (o Order) encode() []byte {
	o.V = 1
	raw, err := json.Marshal(o)
	if err != nil || len(raw) > maxOrder {
		return nil
	}
	return raw
}

// Outcome answers a question; a signal goes the other way, after the question.
type Outcome struct {
	Kind     string        `json:"kind"` // keep, end; signal
	Signal   int           `json:"signal,omitempty"`
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

// A stand-in is this program, started by the shell of a run under the name of a command that is a
// run of its own (an own step). It hands that command on and becomes its proxy (standin):
//
//	stand-in                            run
//	(is started)                        a process plans its command
//	own{}, reply, stdin, stdout, stderr ->
//	                                 <- who
//	here ->                             looks at the process that sent both, as the kernel names it:
//	                                    words, directory, umask and environment are those of /proc
//	                                 <- keep path: nothing of the kind was planned; it becomes that program
//	signal{n} ->                        to the process that runs the command, stop and continue included
//	(end of reply) ->                   ends it
//	                                 <- exit status, or end{exit_code, child, error}
//
// Nothing that a stand-in says is believed, and anything in the sandbox may hold the socket. Which
// process asks is known from the kernel, and whether the shell itself started it from the gate.

// What stand-ins of one run may ask for.
const (
	maxOwn   = 1024 // in all; what code asks for does not count
	maxOwnBy = 32   // at work at a time, the rest waits: pipelines need theirs together
	maxAhead = 4    // planned at a time before they are asked for
)

// goAhead tells a process that what it has planned is asked for.
const goAhead = "go"

// Stand is what the kernel says of a stand-in.
type Stand struct {
	Argv  []string
	Cwd   string
	Env   []string
	Umask int
	Typed bool // the shell of the run started it, and no code that the shell started
}

// Settled is what becomes of a stand-in: it keeps its command, which is Keep, or Own is carried out,
// or neither, because of Why. The zero value refuses.
type Settled struct {
	Keep string // the file that it executes in its own place
	Own  *Own
	Why  *fault.Fault
}

// Own is one own step, as it was planned and as it was started.
type Own struct {
	Argv  Words  `json:"argv"`
	Cwd   string `json:"cwd"`
	Umask int    `json:"umask"`
}

// OwnRun is what the run of a text records of one of its own steps.
type OwnRun struct {
	Run   string   `json:"run,omitempty"` // whose record tells the rest
	Argv  []string `json:"argv"`
	Exit  int      `json:"exit"`
	Error string   `json:"error,omitempty"` // its code
}

// stand answers a stand-in. One that the shell did not start waits for nothing and takes no place of
// one that it did.
func (l *Listener) stand(files []*os.File, pid int) {
	drop := func() {
		for _, f := range files {
			f.Close()
		}
	}
	if l.host.Typed == nil || !l.host.Typed(pid) {
		l.settle(files, standOf(pid))
		drop()
		return
	}
	b := &l.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.owned == maxOwn {
		sendNow(files[0], Failed(fault.New(errcode.OutOfResources, "this run starts no further commands by themselves")).encode())
		drop()
		return
	}
	b.owned++
	b.ended.Go(func() {
		defer drop()
		s := l.host.proven(files[0], pid)
		if own := l.settle(files, s); own != nil {
			l.carryOut(files, own, s, pid)
		}
	})
}

// settle answers a stand-in at once unless it returns the own step that is to be carried out.
func (l *Listener) settle(files []*os.File, s Stand) *Own {
	settled := l.host.Stands(s)
	switch {
	case settled.Keep != "":
		sendNow(files[0], []byte(standin.Keep+settled.Keep))
		return nil
	case settled.Own != nil && !connectable(files[1:]):
		settled.Why = fault.New(errcode.CredentialWithheld, "a command that runs by itself accepts files, pipes and terminals only")
	case settled.Own != nil:
		return settled.Own
	case settled.Why == nil:
		settled.Why = fault.New(errcode.CredentialWithheld, "nothing of the kind was planned to run by itself")
	}
	sendNow(files[0], Failed(settled.Why).encode())
	return nil
}

// carryOut runs an own step when there is a place for it. Its caller may give up before.
func (l *Listener) carryOut(files []*os.File, own *Own, s Stand, pid int) {
	b, h := &l.broker, &helper{grace: l.host.Grace, stops: true, gone: make(chan struct{})}
	if !b.add(h) {
		return
	}
	go h.watch(files[0])
	out := Outcome{Kind: "end"}
	var raw []byte
	select {
	case b.places <- struct{}{}:
		order := l.host.Order()
		order.Own = own
		raw = l.help(h, order, files, b.begun(pid, own, files[1:]))
		<-b.places
		_ = json.Unmarshal(raw, &out)
	case <-h.gone:
		out.ExitCode = 128 + h.early
	}
	r := OwnRun{Run: out.Run, Argv: s.Argv, Exit: out.ExitCode}
	if out.Error != nil {
		r.Error = out.Error.Code
	} else {
		raw = []byte(standin.Exit + strconv.Itoa(out.ExitCode))
	}
	b.mu.Lock()
	delete(b.running, h)
	b.own = append(b.own, r)
	b.mu.Unlock()
	sendNow(files[0], raw) // it is recorded by then
}

// OwnRuns are the own steps that ran.
func (l *Listener) OwnRuns() []OwnRun {
	l.broker.mu.Lock()
	defer l.broker.mu.Unlock()
	return l.broker.own
}

// StoodIn is how this process ends if it is a stand-in that could not end as its command did.
func StoodIn() (f *fault.Fault, ok bool) {
	answer, why, ok := standin.Asked()
	if !ok {
		return nil, false
	}
	var out Outcome
	if why == "" && json.Unmarshal(answer, &out) == nil && out.Error != nil {
		out.Error.Exit = out.ExitCode
		return out.Error, true
	}
	return fault.New(errcode.LostChild, "the run of this command line cannot be reached: "+why).WithFix("start the command by itself", ""), true
}

// Differs names a variable that a process does not have as it was handed to its shell, "" for none
// but those that a shell sets by itself.
func Differs(handed, has []string) string {
	for _, lists := range [...][2][]string{{handed, has}, {has, handed}} {
		for _, entry := range lists[0] {
			switch name, _, _ := strings.Cut(entry, "="); name {
			case "PWD", "OLDPWD", "SHLVL", "_":
			default:
				if !slices.Contains(lists[1], entry) {
					return name
				}
			}
		}
	}
	return ""
}
