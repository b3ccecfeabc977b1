package run

import (
	"fmt"
	"os"
	"time"

	"github.com/atip-dev/atip-exec/internal/delegation"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/status"
)

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
	up := nest.ToParent(p.machine.Getenv)
	x.log = up // one file for the one descriptor, whoever writes to it
	switch {
	case !up.Reachable() && refusal == nil && len(p.lacks(p.withheldOutside(), func(string) bool { return false })) == 0:
		return false, nil // a file may be hidden, and may as well not be there
	case !up.Reachable():
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
	case a.Kept() && p.inv.behalf != nil:
		x.kept = true
		return true, nil
	case a.Kept(), a.Error != nil && a.Error.Code == errcode.CredentialWithheld && refusal != nil:
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
func (x *execution) put(up *nest.Parent, asks bool) (nest.Outcome, error) {
	p, b := x.plan, &x.binds
	if x.signals == nil {
		x.signals = <-x.watched
	}
	x.status.IO = &status.IO{Terminal: "detached"}
	if err := x.redaction(); err != nil {
		return nest.Outcome{}, err
	}
	if err := x.bindStdin(); err != nil {
		return nest.Outcome{}, err
	}
	if err := x.guardStdin(); err != nil {
		return nest.Outcome{}, err
	}
	for _, name := range [...]string{"stdout", "stderr"} {
		r, w, err := os.Pipe()
		if err != nil {
			return nest.Outcome{}, fault.New(errcode.OutOfResources, name+": "+err.Error())
		}
		b.reads, b.opened = append(b.reads, r), append(b.opened, w)
	}
	n := len(b.opened)
	b.stdout, b.stderr = b.opened[n-2], b.opened[n-1]
	asked, err := up.Ask(nest.Question{Argv: rawWords(p.inv.Argv), IsShell: p.inv.IsShell, Shell: []byte(p.inv.Shell), ShellArgs: rawWords(p.inv.ShellArgs), ShellSet: rawWords(p.inv.ShellSet),
		Cwd: p.Cwd, Token: p.machine.Getenv(delegation.Variable), Asks: asks, TimeoutMS: p.limit().Milliseconds(), KillMS: p.inv.KillAfter.Milliseconds(), WaitMS: p.inv.Wait.Milliseconds()}, b.stdin, b.stdout, b.stderr)
	if err != nil {
		b.close()
		return nest.Outcome{}, fault.New(errcode.CredentialWithheld, err.Error())
	}
	defer asked.Close()
	x.began = time.Now()
	b.started(x)
	if early := x.signals.To(asked.Signal); early != nil {
		asked.Signal(early)
	}
	x.signals.Started()
	a, err := asked.Wait()
	x.settleAnswer()
	switch {
	case err != nil:
		return a, fault.New(errcode.LostChild, "the parent run ended without an answer")
	case a.Kept():
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

func rawWords(words []string) [][]byte {
	out := make([][]byte, len(words))
	for i, w := range words {
		out[i] = []byte(w)
	}
	return out
}
