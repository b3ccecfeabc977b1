package run

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/status"
)

// A run inside another lacks what its sandbox lacks: credentials above all. It asks the
// parent run to start such a command, on its own descriptors. Who asks is not believed in
// anything: the parent run plans anew (behalf.go), in a process of its own (broker.go).
//
//	inside                              outside
//	question{reply, stdin, stdout, stderr} ->
//	                                    a process plans under its policy and the chain
//	                                 <- keep: run it yourself
//	signal{n} ->                        to the process
//	(end of reply) ->                   ends the process
//	                                 <- end{exit_code, error}
const (
	maxQuestion = 96 << 10
	maxOrder    = 160 << 10
	maxAnswer   = 64 << 10
)

// question asks for the start of a command. Words are bytes: they need not be UTF-8.
type question struct {
	Kind      string   `json:"kind"` // start
	Argv      [][]byte `json:"argv,omitempty"`
	IsShell   bool     `json:"isShell,omitempty"`
	Shell     []byte   `json:"shell,omitempty"`
	ShellArgs [][]byte `json:"shellArgs,omitempty"`
	ShellSet  [][]byte `json:"shellSet,omitempty"`
	Cwd       string   `json:"cwd"`
	Token     string   `json:"token,omitempty"`
	Asks      bool     `json:"asks,omitempty"` // its own decision is to ask: only a person may permit it
	TimeoutMS int64    `json:"timeoutMs,omitempty"`
	KillMS    int64    `json:"killMs,omitempty"`
	WaitMS    int64    `json:"waitMs,omitempty"`
}

// outcome goes the other way, and signals go after the question.
type outcome struct {
	Kind     string        `json:"kind"` // keep, end; signal
	Signal   int           `json:"signal,omitempty"`
	ExitCode int           `json:"exitCode"`
	Run      string        `json:"run,omitempty"`
	Child    *status.Child `json:"child,omitempty"`
	Error    *fault.Fault  `json:"error,omitempty"`
}

func (a outcome) encode() []byte {
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
		raw, _ = json.Marshal(outcome{Kind: a.Kind, ExitCode: a.ExitCode, Run: a.Run})
	}
	return raw
}

func (q *question) invocation() Invocation {
	return Invocation{Argv: texts(q.Argv), IsShell: q.IsShell, Shell: string(q.Shell), ShellArgs: texts(q.ShellArgs), ShellSet: texts(q.ShellSet), Directory: q.Cwd,
		Timeout: ms(q.TimeoutMS), KillAfter: ms(q.KillMS), Wait: min(ms(q.WaitMS), MaxWait)}
}

// ms is a time that somebody else wrote down; nonsense is none.
func ms(n int64) time.Duration {
	if n <= 0 || n > int64(24*time.Hour/time.Millisecond) {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}

func texts(words [][]byte) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

func rawWords(words []string) [][]byte {
	out := make([][]byte, len(words))
	for i, w := range words {
		out[i] = []byte(w)
	}
	return out
}

// hand lets the parent run start what this run inside it cannot: a command that needs a
// credential which the sandbox lacks, or a person, whom only the outside can ask. Handed
// says that this is the end of it; else err is what was decided before.
func (x *execution) hand(refusal error) (handed bool, err error) {
	p := x.plan
	if refusal != nil && fault.From(refusal).Code != errcode.ApprovalRequired || !p.inside() {
		return false, refusal
	}
	private := p.host.Outer() != nil
	lacks := p.lacks(p.withheldOutside(), func(file string) bool { return unreadable(file, private) })
	if refusal == nil && (len(lacks) == 0 || p.reading.Nestable) {
		return false, nil // a command of ours inside asks for itself
	}
	unable := func(why string) (bool, error) {
		if refusal != nil {
			return false, refusal
		}
		return false, withheld(p, lacks, why)
	}
	up := p.upward()
	x.log = up // one file for the one descriptor, whoever writes to it
	switch {
	case up.to == nil && refusal == nil && len(p.lacks(p.withheldOutside(), func(string) bool { return false })) == 0:
		return false, nil // a file may be hidden, and may as well not be there
	case up.to == nil:
		return unable("the parent run cannot be reached from here (ATIP_EXEC_PARENT)")
	case len(p.inv.Policies) > 0 || len(p.inv.Profiles) > 0 || p.inv.Ceiling != nil:
		return unable("the parent run does not have the policies given to this run by flag")
	case p.inv.Terminal || p.inv.Script != "" || p.longText != "":
		return unable("the parent run only accepts a command or a short script, without a terminal")
	}
	a, err := x.put(up, refusal != nil)
	switch {
	case err != nil:
		x.signals.Close()
		return true, err
	case a.Kind == "keep" && p.inv.behalf != nil:
		x.kept = true
		return true, nil
	case a.Kind == "keep", a.Error != nil && a.Error.Code == errcode.CredentialWithheld && refusal != nil:
		x.release()
		return false, refusal
	}
	x.signals.Close()
	x.byParent = a.Run
	x.status.Child = a.Child
	if a.Error != nil {
		a.Error.Exit = a.ExitCode
		return true, a.Error
	}
	if a.Child == nil {
		return true, fault.New(errcode.LostChild, "the parent run did not report how the command ended")
	}
	return true, nil
}

// put sends the question with the descriptors of the command, and waits for the answer
// while the output passes through this run's own filter.
func (x *execution) put(up *upward, asks bool) (outcome, error) {
	p, b := x.plan, &x.binds
	if x.signals == nil {
		x.signals = <-x.watched
	}
	x.status.IO = &status.IO{Terminal: "detached"}
	if err := x.redaction(); err != nil {
		return outcome{}, err
	}
	if err := x.bindStdin(); err != nil {
		return outcome{}, err
	}
	if err := x.guardStdin(); err != nil {
		return outcome{}, err
	}
	for _, name := range [...]string{"stdout", "stderr"} {
		r, w, err := os.Pipe()
		if err != nil {
			return outcome{}, fault.New(errcode.OutOfResources, name+": "+err.Error())
		}
		b.reads, b.opened = append(b.reads, r), append(b.opened, w)
	}
	n := len(b.opened)
	b.stdout, b.stderr = b.opened[n-2], b.opened[n-1]
	q := question{Kind: "start", Argv: rawWords(p.inv.Argv), IsShell: p.inv.IsShell, Shell: []byte(p.inv.Shell), ShellArgs: rawWords(p.inv.ShellArgs), ShellSet: rawWords(p.inv.ShellSet),
		Cwd: p.Cwd, Token: p.machine.Getenv(DelegationVariable), Asks: asks, TimeoutMS: p.limit().Milliseconds(), KillMS: p.inv.KillAfter.Milliseconds(), WaitMS: p.inv.Wait.Milliseconds()}
	raw, err := json.Marshal(q)
	if err == nil && len(raw) > maxQuestion {
		err = fmt.Errorf("the command line is too long to be handed on")
	}
	var reply, theirs *os.File
	if err == nil {
		reply, theirs, err = recordPair()
	}
	if err != nil {
		b.close()
		return outcome{}, fault.New(errcode.CredentialWithheld, err.Error())
	}
	defer reply.Close()
	up.to.SetWriteDeadline(time.Now().Add(patience))
	err = sendWith(up.to, raw, theirs, b.stdin, b.stdout, b.stderr)
	theirs.Close()
	if err != nil {
		b.close()
		return outcome{}, fault.New(errcode.CredentialWithheld, "the parent run cannot be asked: "+err.Error())
	}
	x.began = time.Now()
	b.started(x)
	tell := func(sig os.Signal) {
		sendNow(reply, outcome{Kind: "signal", Signal: drive.SignalNumber(sig)}.encode())
	}
	if early := x.signals.To(tell); early != nil {
		tell(early)
	}
	x.signals.Started()
	a := outcome{Kind: "end"}
	buf := make([]byte, maxAnswer)
	size, err := reply.Read(buf)
	if err == nil {
		err = json.Unmarshal(buf[:size], &a)
	}
	x.settleAnswer()
	switch {
	case err != nil:
		return a, fault.New(errcode.LostChild, "the parent run ended without an answer")
	case a.Kind == "keep":
		return a, nil
	}
	for _, s := range x.streams {
		if s.Panicked() != nil {
			return a, fault.New(errcode.FilterFailed, fmt.Sprintf("%s was discarded: its filter failed: %v", s.Name, s.Panicked()))
		}
		if err := s.Failure(); err != nil {
			return a, fault.New(errcode.OutputWrite, s.Name+": "+err.Error())
		}
	}
	return a, nil
}

// settleAnswer waits for what is left of the output.
func (x *execution) settleAnswer() {
	x.ran = time.Since(x.began)
	for _, s := range x.streams {
		s.ChildEnded()
	}
	for _, s := range x.streams {
		<-s.Done
	}
	x.signals.To(nil)
	x.settleStreams()
	x.binds.close()
}

// release forgets a question that was given back: the run goes on by itself.
func (x *execution) release() {
	x.streams, x.reports, x.status.IO, x.status.Child, x.binds = nil, nil, nil, nil, binding{}
}
