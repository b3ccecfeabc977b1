package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/aftermath"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/cleaning"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/idempotency"
	"github.com/atip-dev/atip-exec/internal/ledger"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/permit"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/priming"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/record"
	"github.com/atip-dev/atip-exec/internal/signals"
	"github.com/atip-dev/atip-exec/internal/staging"
	"github.com/atip-dev/atip-exec/internal/starts"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/stdio"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/sandbox"
)

// execution is the second half of a run: from a plan that may run to its record.
type execution struct {
	plan    *plan.Plan
	out     Output
	status  status.Document
	reports []filter.Report
	bounds  map[string]filter.BoundReport // of the streams that are bounded

	budget map[string]any // what was charged to a budget or a rate, nil for nothing
	began  time.Time
	ran    time.Duration

	watched    chan *drive.Signals // the signals, once they are taken over
	collected  chan error          // the end of collect
	collecting bool                // collect was started
	described  chan []byte         // the record's static part, built while the child runs

	log         recorder
	mark        *audit.Started     // until the run has its record
	starts      *starts.Decider    // what decides starts when they happen, nil if nothing does
	inner       *nest.Listener     // what hears the runs inside this one, nil if there can be none
	byParent    string             // the parent run that did it instead, "" for none
	kept        bool               // the parent run left it to the one that asked
	cleaning    *cleaning.Cleaning // nil until the values are collected
	collectErr  error
	signals     *drive.Signals
	proc        *sandbox.Proc
	streams     []*drive.Stream
	noteMu      sync.Mutex
	tail        drive.Tail         // of standard error
	killed      bool               // by us
	outOfMemory bool               // by the memory limit
	denied      []sandbox.Denial   // what the sandbox refused
	protected   sandbox.Settlement // what the run changed of the protected names
	network     *drive.Network
	enforced    sandbox.Receipt
	observing   bool // the run's system calls are to be listened to
	permission  *permit.Permission
	claimed     *idempotency.Claim // of --idempotency-key
	primes      *priming.Priming
	binds       *stdio.Binding
	staged      *staging.Staging
}

// run starts the child and sees it to its end. Everything that can fail is opened
// before the start.
func (x *execution) run() (err error) {
	x.staged = staging.Begin(x.plan, x.warn, x.clean)
	defer x.staged.Close()
	if err := x.openLog(); err != nil {
		return err
	}
	x.takeSignals()
	defer x.signals.Close()
	x.binds = stdio.New(x.plan)
	x.status.IO = x.binds.IO
	defer x.binds.Close()
	if err := x.binds.Bind(); err != nil {
		return err
	}
	x.bindNested()
	if err := x.redaction(); err != nil {
		return err
	}
	for _, note := range x.cleaning.Notes {
		x.warn(note)
	}
	if err := x.intend(); err != nil {
		return err
	}
	if err := x.cancelledMeanwhile(); err != nil {
		return err
	}
	if err := x.charge(); err != nil {
		return err
	}
	if err := x.permission.Spend(); err != nil {
		return err
	}
	x.sayShortfall()
	err = x.staged.Make()
	defer x.staged.Close() // while signals are still held back
	if err != nil {
		return err
	}
	if err := x.start(); err != nil {
		if x.inner != nil {
			x.inner.End()
		}
		return err
	}
	x.staged.Started()
	defer func() {
		if r := recover(); r != nil {
			x.killed = true
			x.proc.KillTree(0)
			err = fault.New(errcode.Internal, fmt.Sprintf("internal error: %v", r))
		}
	}()
	return x.finish()
}

func (x *execution) takeSignals() {
	if x.signals == nil {
		x.signals = <-x.watched
	}
}

// cancelledMeanwhile is the end of a run that was sent a signal before it started its command.
func (x *execution) cancelledMeanwhile() error {
	x.takeSignals()
	if sig := x.signals.Pending(); sig != nil {
		return cancelled(sig)
	}
	return nil
}

func cancelled(sig os.Signal) error {
	f := fault.New(errcode.Cancelled, "cancelled by "+sig.String()+" before the command was started")
	f.Exit = 128 + signals.Number(sig)
	return f
}

func (x *execution) openLog() (err error) {
	if x.log != nil {
		return nil
	}
	log, err := audit.Open(filepath.Join(x.plan.Dirs.State, "audit"))
	switch {
	case err == nil:
		x.log = log
	case x.plan.Inside():
		x.log = nest.ToParent(x.plan.Machine.Getenv)
	default:
		return err
	}
	return x.log.Reserve()
}

// start launches the identified file under the profile.
func (x *execution) start() error {
	p, main := x.plan, x.plan.Steps[0]
	if err := main.Executable.Recheck(); err != nil {
		return err
	}
	x.observing = p.Observed()
	if why := p.ObserveRefused(); why != "" {
		x.warn(why)
	}
	began := time.Now()
	proc, err := x.launch()
	if err != nil && sandbox.Stale(p.Setup, err) && x.selectAgain(&err) {
		proc, err = x.launch()
	}
	if err != nil {
		return err
	}
	x.began = time.Now()
	x.status.Timing.StartUS = x.began.Sub(began).Microseconds()
	x.proc = proc
	p.Started()
	// The first event, before anything is read of the output and a signal is passed on.
	if x.out.Start != nil {
		x.out.Start(Started{V: 1, Run: p.Run, Argv: x.cleanAll(p.Invocation.Words()), Cwd: p.Cwd, Pid: proc.Pid(), Stdin: x.status.IO.Stdin, Terminal: x.status.IO.Terminal,
			TimeoutMS: p.Limit().Milliseconds(), Decision: p.Decision.Action.String(), Tier: p.Setup.Tier().String(), Gaps: p.Receipt().Gaps})
	}
	x.signals.Started()
	main.Executable.StartedOK()
	if err := x.binds.Terminal.Started(); err != nil {
		x.warn(err.Error())
	}
	x.copyOutput()
	x.listen()
	x.described = make(chan []byte, 1)
	go func() { x.described <- x.static("run") }()
	x.status.Child = &status.Child{Pid: proc.Pid()}
	x.status.Tool.StartedBy = "path"
	if _, byDescriptor, _ := main.Executable.Start(); byDescriptor {
		x.status.Tool.StartedBy = "descriptor"
	}
	return nil
}

// copyOutput begins to copy the output of the command.
func (x *execution) copyOutput() {
	x.tail.To = x.out.Stderr
	x.streams = x.binds.Copy(x.cleaning.Set, x.out.Stdout, &x.tail, x.cleaning.Most)
}

// charge takes what the run costs from the budgets, just before the start: all of it
// or nothing. What a person permitted is counted and not refused.
func (x *execution) charge() error {
	p := x.plan
	b, c := p.Policies.Budgets(), p.Cost()
	if !c.Limited(b) {
		return nil
	}
	err := ledger.Charge(p.LedgerDir(), b, c, x.permission.Given())
	if err == nil {
		x.budget = map[string]any{"billable": c.Billable, "remoteMutation": c.Remote, "calls": c.Calls}
		return nil
	}
	f, ok := err.(*fault.Fault)
	if !ok {
		f = fault.New(errcode.Budget, "the remaining budget is unknown: "+err.Error())
	}
	return f.With("steps", p.StepDetails()).Redact(x.clean)
}

// intend leaves a trace before anything starts: a run that is killed together with us
// would else be missing. The trace of a run that may do harm, or that was asked for by a
// run inside, says all that was decided, since nothing else will; any other names its
// command only. The next run that finds the mark of a dead one writes a record of kind
// "killed" for it.
func (x *execution) intend() error {
	p := x.plan
	rec := map[string]any{"kind": "intent", "argv": x.cleanAll(p.Invocation.Words()), "cwd": p.Cwd, "uid": p.Machine.UID, "session": p.SessionLabel(), "agent": p.Agent(), "tier": p.Setup.Tier().String()}
	if log, ok := x.log.(*audit.Log); ok {
		if _, err := log.Settle(); err != nil {
			return err
		}
		about, err := json.Marshal(map[string]any{"argv": rec["argv"], "cwd": rec["cwd"], "session": rec["session"], "agent": rec["agent"]})
		if err != nil {
			return err
		}
		if x.mark, err = log.Begin(p.Run, x.redacted(about)); err != nil {
			return err
		}
	} else if !p.MayHarm() && p.Invocation.Behalf == nil {
		return nil // a run inside: the parent run has an intent of its own
	}
	if p.MayHarm() || p.Invocation.Behalf != nil {
		rec = record.Of(x.plan, "intent", x.clean, x.budget)
	}
	raw, err := marshal.JSON(rec)
	if err != nil {
		return err
	}
	_, err = x.log.Append(audit.Encoded{ID: p.Run + "-intent", Object: x.redacted(raw)})
	return err
}

// sayShortfall tells what this machine cannot keep and the built-in policy goes without:
// once in a session of an agent, or a day where none has a name. Who never reads receipts
// should know it, and who hears it with each command stops listening.
func (x *execution) sayShortfall() {
	p := x.plan
	gaps, why := p.Setup.Shortfall()
	if len(gaps) == 0 || p.Inside() {
		return
	}
	names := make([]string, len(gaps))
	for i, g := range gaps {
		names[i] = string(g.Guarantee)
	}
	list := strings.Join(names, ", ")
	if aftermath.FirstInSession(p, list) {
		x.warn("tier " + p.Setup.Tier().String() + " is the highest of this machine (" + why + "); not kept here: " + list + "; atip doctor says more")
	}
}

// launch starts the child as the plan says.
func (x *execution) launch() (*sandbox.Proc, error) {
	p, main := x.plan, x.plan.Steps[0]
	x.starts = starts.New(p, x.clean, x.note)
	umask := p.Policies.Process().Umask
	if s := p.Invocation.Standing; s != nil {
		umask |= s.Umask
	}
	path, byDescriptor, file := main.Executable.Start()
	cmd := sandbox.Cmd{Path: path, ByDescriptor: byDescriptor, File: file, Argv: step.LoginArgv(p.StartedArgv(), p.Env.Entries, p.Commands()...), Env: p.Env.Entries, Stdin: x.binds.Stdin, Stdout: x.binds.Stdout, Stderr: x.binds.Stderr,
		Pass: x.binds.Pass, Umask: umask, Check: main.Executable.CheckStarted, Stopped: x.stopped}
	if main.Executable.Inherit() {
		// The interpreter opens the script by the name that the kernel hands it, so the
		// number of the descriptor has to be one that the child keeps.
		n := plan.FreeDescriptor(p.TextFD, p.NestFD)
		cmd.Pass[n], cmd.ByDescriptor, cmd.Path = file, false, "/proc/self/fd/"+strconv.Itoa(n)
	}
	cmd.Regenerable = p.World.Ignored
	cmd.Prepared, cmd.Inside, cmd.Observe, cmd.Gate = p.Prepared, p.Inside(), x.observing, x.starts.Rules()
	x.binds.Terminal.Apply(&cmd, p.Machine.Stdin)
	if p.Invocation.Directory != "" {
		cmd.Dir = p.StartDir()
		if subpath.Within(p.Cwd, p.Workspace) {
			cmd.DirID = p.CwdID // elsewhere a private root has directories of its own
		}
	}
	own := x.inner != nil && len(p.Own) > 0
	if own {
		x.starts.Stands(x.inner.Coming)
	}
	if own || p.SharesTmp() {
		cmd.Before = func() {
			if own {
				x.inner.Prepare(x.host())
			}
			if p.SharesTmp() {
				x.staged.BringTmp()
			}
		}
	}
	if p.Profile.Net.Mode == sandbox.NetAllowlist {
		x.network = drive.NewNetwork(p.HostList.Rules, p.HostList.Forward, x.warn, x.clean)
		cmd.Serve = x.network.Serve
	}
	proc, err := sandbox.Start(context.Background(), p.Profile, p.Setup, cmd)
	if err != nil {
		x.network.Settle() // nothing ran, but somebody may listen
	}
	return proc, err
}

// selectAgain asks the machine anew after a start that an earlier answer of it had
// promised, and plans the confinement by what it says now. It returns false if the start
// need not be tried again; *failed then is why the run ends. A decision that rests on the
// earlier answer, or a person's that names what it enforced, is not carried over.
func (x *execution) selectAgain(failed *error) bool {
	p := x.plan
	host, differs := sandbox.Reprobe(p.ProbeCache(), p.Host)
	if !differs || sandbox.Enforceable(host) != sandbox.Enforceable(p.Host) {
		return false
	}
	bound := p.BoundSandbox()
	x.network = nil
	if err := p.ConfineOn(host); err != nil {
		*failed = err
		return false
	}
	if x.permission.Given() && p.BoundSandbox() != bound {
		return false
	}
	x.warn("the sandbox could not be made as this machine had promised (" + (*failed).Error() + "); asked again, it gives " + p.Setup.Tier().String())
	x.status.Sandbox = p.Receipt()
	x.status.Env = &status.Env{Dropped: p.Env.Dropped, Credentials: p.Env.Credentials}
	return true
}

// stopped is called when the child was stopped by a signal.
func (x *execution) stopped(pid int, sig syscall.Signal) {
	if err := x.binds.Terminal.Stopped(pid, sig); err != nil {
		x.warn(err.Error())
	}
}

// forward passes on a signal that this process was sent.
func (x *execution) forward(sig os.Signal) {
	if !x.binds.Terminal.Forward(sig, x.proc) {
		x.note("signal", sig.String())
	}
}

// finish waits for the child and its output, and settles the tree.
func (x *execution) finish() error {
	defer drive.KeepThreads()()
	limit := x.plan.Limit()
	var timer <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		timer = t.C
	}
	count := 0
	interrupted := make(chan struct{}, 1)
	early := x.signals.To(func(sig os.Signal) {
		if signals.Interrupts(sig) {
			if count++; count == 3 {
				select {
				case interrupted <- struct{}{}:
				default:
				}
				return
			}
		}
		x.forward(sig)
	})
	if early != nil {
		x.forward(early)
	}
	fired := false
	var killing sync.WaitGroup
	kill := func(grace time.Duration) {
		x.killed = true
		killing.Go(func() {
			if x.inner == nil {
				x.proc.KillTree(grace)
				return
			}
			// What was started for runs inside ends by itself, with a record; the sweep
			// would kill it.
			x.inner.Stop()
			x.proc.EndTree(grace)
			x.inner.End()
			x.proc.Sweep()
		})
	}
	for waiting := true; waiting; {
		select {
		case <-x.proc.Done():
			waiting = false
		case <-timer:
			fired, timer = true, nil
			x.note("timeout", limit.Milliseconds())
			kill(x.plan.Grace())
		case <-interrupted:
			kill(0)
		}
	}
	exit, werr := x.proc.Wait()
	x.ran = time.Since(x.began)
	for _, s := range x.streams {
		s.ChildEnded()
	}
	// The reader of our output may be slow for good reasons; only a run that was
	// ended on purpose does not wait for it.
	for _, s := range x.streams {
		var patience <-chan time.Time
		if x.killed {
			patience = time.After(drive.HeldGrace)
		}
		for waiting := true; waiting; {
			select {
			case <-s.Done:
				waiting = false
			case <-patience:
				waiting = false
			case <-timer:
				fired, timer, patience = true, nil, time.After(drive.HeldGrace)
				x.note("timeout", limit.Milliseconds())
			case <-interrupted:
				patience = time.After(0)
			}
		}
	}
	killing.Wait()
	if x.inner != nil {
		x.inner.End()
	}
	tree := x.proc.Sweep()
	x.status.Tree = &tree
	x.network.Settle()
	x.outOfMemory = x.proc.OutOfMemory()
	x.settleProtected(x.proc.Settlement())
	x.staged.Ended()
	if x.plan.Steps[0].Executable.ScriptChanged() {
		x.note("script_changed_while_running", x.plan.Steps[0].ID.Canonical)
	}
	if ended := tree.Leftovers - tree.Kept; ended > 0 && !x.killed {
		x.note("leftovers", ended)
	}
	x.binds.Terminal.Restore(exit.Signal != 0)
	x.settleStreams()
	x.settleExit(exit)
	x.denials(exit)
	return x.verdict(exit, werr, fired, limit)
}

// verdict is nil if the exit status is the child's.
func (x *execution) verdict(exit sandbox.Exit, werr error, fired bool, limit time.Duration) error {
	timeout := x.plan.Timeout()
	timeout.Fired = fired
	x.status.Timeout = &timeout
	for _, s := range x.streams {
		if s.Panicked() != nil {
			return fault.New(errcode.FilterFailed, fmt.Sprintf("%s was discarded: its filter failed: %v", s.Name, s.Panicked()))
		}
	}
	switch {
	case fired:
		return fault.New(errcode.Timeout, fmt.Sprintf("timeout after %v: %s was ended", limit, quote.Words(x.plan.Invocation.Words()))).With("limit_ms", limit.Milliseconds()).With("child_exit_code", exit.Code)
	case werr != nil:
		return fault.New(errcode.LostChild, "lost track of the child: "+werr.Error())
	}
	for _, s := range x.streams {
		if err := s.Failure(); err != nil {
			return fault.New(errcode.OutputWrite, s.Name+": "+err.Error()).With("child_exit_code", exit.Code)
		}
	}
	return nil
}

// redaction waits until the values that must not be shown are collected.
func (x *execution) redaction() error {
	switch {
	case x.collecting:
		x.collecting = false
		x.collectErr = <-x.collected
	case x.cleaning == nil && x.collectErr == nil:
		// The plan failed early; its words still pass through the filter.
		x.collectErr = x.collect()
	}
	return x.collectErr
}

// collect gathers the values that must not be shown, before the child can show them.
func (x *execution) collect() (err error) {
	x.cleaning, err = cleaning.Of(x.plan)
	return err
}

// Redactor returns what takes secrets out of texts about p: a plan that is only
// printed shows command lines too, and its reader may be an agent.
func Redactor(p *plan.Plan) func(string) string { return (&execution{plan: p}).clean }
