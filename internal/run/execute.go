package run

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/cleaning"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/idempotency"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/permit"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/priming"
	"github.com/atip-dev/atip-exec/internal/staging"
	"github.com/atip-dev/atip-exec/internal/starts"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/stdio"
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
	f.Exit = 128 + drive.SignalNumber(sig)
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
