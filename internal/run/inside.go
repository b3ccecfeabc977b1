package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/delegation"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/permit"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/stdio"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// recorder is where the records of a run go.
type recorder interface {
	Append(rec any) (id string, err error)
	Reserve() error
	Close() error
}

// bindNested gives the child one end of a socket on which runs inside send their records
// and their questions.
func (x *execution) bindNested() {
	p := x.plan
	if p.NestFD == 0 {
		return
	}
	l, child, err := nest.Listen()
	if err != nil {
		return // the record of this run covers what it starts
	}
	x.binds.Hand(p.NestFD, child)
	x.inner = l
}

// listen hears the runs inside from the start of the command on.
func (x *execution) listen() {
	if x.inner == nil {
		return
	}
	x.inner.Start(x.host())
}

// host is what runs inside are answered from.
func (x *execution) host() nest.Host {
	up, _ := x.log.(*nest.Parent)
	host := nest.Host{Up: up, Withheld: x.plan.Policies.Credentials() == policy.CredentialsWithheld, Order: x.order, Environ: x.plan.Machine.Environ, Grace: plan.DefaultGrace, Nests: x.plan.Nests()}
	if len(x.plan.Own) > 0 {
		host.Typed, host.Stands, host.Owns = func(pid int) bool { return x.starts.Typed(pid) }, x.stands, len(x.plan.Own)
	}
	return host
}

// order is what a process that answers a run inside is told of this run.
func (x *execution) order() nest.Order {
	p := x.plan
	o := nest.Order{Run: p.Run, Words: quote.Words(x.cleanAll(p.Invocation.Words())), Workspace: p.Workspace, Cwd: p.Cwd, Policies: p.Invocation.Policies, Profiles: p.Invocation.Profiles, Ceiling: p.Invocation.Ceiling, CI: p.InCI(), Withheld: p.Withheld, Files: p.CredentialFiles,
		ReadOnly: !slices.ContainsFunc(p.Profile.Write, func(g sandbox.Grant) bool {
			return g.Dir && subpath.Within(p.Workspace, g.Path) && g.Rights&sandbox.Write != 0
		})}
	if p.SharesTmp() {
		o.Tmp = p.Private
	}
	return o
}

// stands says what becomes of a stand-in. What the plan has for these words is done as it was
// planned; any other command gets what the text has, and so does what code starts.
func (x *execution) stands(s nest.Stand) nest.Settled {
	p := x.plan
	if len(s.Argv) == 0 {
		return nest.Settled{}
	}
	file := ""
	for _, o := range p.Own {
		if o.Argv[0] == s.Argv[0] {
			file = o.File
		}
	}
	own := p.OwnStep(s.Argv, s.Cwd)
	if own == nil || !s.Typed {
		return nest.Settled{Keep: file}
	}
	if name := nest.Differs(p.Env.Entries, s.Env); name != "" {
		return nest.Settled{Why: fault.New(errcode.Denied, "denied: "+quote.Words(s.Argv)+" reaches other machines, and the variable "+name+" is not what it was planned with").
			WithFix("start it by itself", "atip-exec -- "+quote.Words(s.Argv)).With("at", "exec").Redact(x.clean)}
	}
	return nest.Settled{Own: &nest.Own{Argv: nest.WordsOf(own.Argv), Cwd: own.Cwd, Umask: s.Umask}}
}

// recordInner writes the records of the runs inside. One that cannot be written now is one
// that nobody vouches for.
func (x *execution) recordInner() {
	if x.inner == nil {
		return
	}
	x.binds.CloseOpened()
	for _, r := range x.inner.Close() {
		_, _ = x.log.Append(r.Entry(x.plan.Run, x.clean))
	}
}

// Behalf is what main does under nest.ProcessName. It plans the question as a command of its
// own, in the environment, the directory and under the policies of the parent run, and
// runs it in a sandbox of its own.
func Behalf(process *nest.Process, m caller.Machine, out Output) *fault.Fault {
	out.Wanted = process.Wanted
	return process.Answer(answerInside(&process.Order, m, out))
}

func answerInside(b *nest.Order, m caller.Machine, out Output) nest.Outcome {
	if o := b.Own; o != nil {
		o.Adopt()
		r := Run(plan.Invocation{Argv: o.Argv.Texts(), Directory: o.Cwd, Policies: b.Policies, Profiles: b.Profiles, CI: b.CI, Standing: &plan.Standing{For: b.Run, Umask: o.Umask, Tmp: b.Tmp}}, m, out)
		return nest.Outcome{Kind: "end", ExitCode: r.ExitCode, Run: r.Status.Run, Child: r.Status.Child, Error: r.Fault}
	}
	q := b.Question
	if err := delegation.Narrows(q.Token, m.Getenv(delegation.Variable)); err != nil {
		return nest.Failed(fault.From(err))
	} else if q.Token != "" {
		m.Environ = append([]string{delegation.Variable + "=" + q.Token}, m.Environ...)
	}
	r := Run(plan.Invocation{Argv: q.Argv.Texts(), IsShell: q.IsShell, Shell: string(q.Shell), ShellArgs: q.ShellArgs.Texts(), ShellSet: q.ShellSet.Texts(), Directory: q.Cwd,
		Timeout: q.TimeoutMS.Duration(), KillAfter: q.KillMS.Duration(), Wait: min(q.WaitMS.Duration(), permit.MaxWait),
		Policies: b.Policies, Profiles: b.Profiles, Ceiling: b.Ceiling, CI: b.CI, Behalf: b}, m, out)
	if r.kept {
		return nest.Keep()
	}
	return nest.Outcome{Kind: "end", ExitCode: r.ExitCode, Run: r.Status.Run, Child: r.Status.Child, Error: r.Fault}
}

// hand lets the parent run start what this run inside it cannot: a command that needs a
// credential which the sandbox lacks, or a person, whom only the outside can ask. Handed
// says that this is the end of it; else err is what was decided before.
func (x *execution) hand(refusal error) (handed bool, err error) {
	p := x.plan
	if refusal != nil && fault.From(refusal).Code != errcode.ApprovalRequired || !p.Inside() {
		return false, refusal
	}
	private := p.Host.Outer() != nil
	lacks := p.Lacks(p.WithheldOutside(), func(file string) bool { return regular.Refused(file, private) })
	if refusal == nil && (len(lacks) == 0 || p.Reading.Nestable) {
		return false, nil // a command of ours inside asks for itself
	}
	unable := func(why string) (bool, error) {
		if refusal != nil {
			return false, refusal
		}
		return false, plan.Withheld(p, lacks, why)
	}
	up := nest.ToParent(p.Machine.Getenv)
	x.log = up // one file for the one descriptor, whoever writes to it
	switch {
	case !up.Reachable() && refusal == nil && len(p.Lacks(p.WithheldOutside(), func(string) bool { return false })) == 0:
		return false, nil // a file may be hidden, and may as well not be there
	case !up.Reachable():
		return unable("the parent run cannot be reached from here (ATIP_EXEC_PARENT)")
	case len(p.Invocation.Policies) > 0 || len(p.Invocation.Profiles) > 0 || p.Invocation.Ceiling != nil:
		return unable("the parent run does not have the policies given to this run by flag")
	case p.Invocation.Terminal || p.Invocation.Script != "" || p.LongText != "":
		return unable("the parent run only accepts a command or a short script, without a terminal")
	}
	a, err := x.put(up, refusal != nil)
	switch {
	case err != nil:
		x.signals.Close()
		return true, err
	case a.Kept() && p.Invocation.Behalf != nil:
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
	p, b := x.plan, stdio.New(x.plan)
	x.takeSignals()
	x.binds, x.status.IO = b, b.IO
	if err := x.redaction(); err != nil {
		return nest.Outcome{}, err
	}
	if err := b.BindDetached(); err != nil {
		b.Close()
		return nest.Outcome{}, err
	}
	asked, err := up.Ask(nest.Question{Argv: nest.WordsOf(p.Invocation.Argv), IsShell: p.Invocation.IsShell, Shell: []byte(p.Invocation.Shell), ShellArgs: nest.WordsOf(p.Invocation.ShellArgs), ShellSet: nest.WordsOf(p.Invocation.ShellSet),
		Cwd: p.Cwd, Token: p.Machine.Getenv(delegation.Variable), Asks: asks, TimeoutMS: nest.MillisecondsOf(p.Limit()), KillMS: nest.MillisecondsOf(p.Invocation.KillAfter), WaitMS: nest.MillisecondsOf(p.Invocation.Wait)}, b.Stdin, b.Stdout, b.Stderr)
	if err != nil {
		b.Close()
		return nest.Outcome{}, fault.New(errcode.CredentialWithheld, err.Error())
	}
	defer asked.Close()
	x.began = time.Now()
	x.copyOutput()
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
	x.binds.Close()
}

// release forgets a question that was given back: the run goes on by itself.
func (x *execution) release() {
	x.streams, x.reports, x.status.IO, x.status.Child, x.binds = nil, nil, nil, nil, nil
}
