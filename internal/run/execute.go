package run

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/idempotency"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/sandbox"
)

// execution is the second half of a run: from a plan that may run to its record.
type execution struct {
	plan    *Plan
	out     Output
	status  status.Document
	reports []filter.Report
	bounds  map[string]filter.BoundReport // of the streams that are bounded

	budget     map[string]any // what was charged to a budget or a rate, nil for nothing
	outputMost int64          // bytes that policy lets the tools of this run show of a stream, 0 for no bound
	began      time.Time
	ran        time.Duration

	watched    chan *drive.Signals // the signals, once they are taken over
	collected  chan error          // the end of collect
	collecting bool                // collect was started
	described  chan []byte         // the record's static part, built while the child runs

	log            recorder
	mark           *audit.Started // until the run has its record
	atExec         *atExec        // what decides starts when they happen, nil if nothing does
	inner          *nest.Listener // what hears the runs inside this one, nil if there can be none
	byParent       string         // the parent run that did it instead, "" for none
	kept           bool           // the parent run left it to the one that asked
	redact         *filter.Set
	collectErr     error
	redactionOff   bool
	redactionNotes []string
	known          filter.Known
	signals        *drive.Signals
	proc           *sandbox.Proc
	streams        []*drive.Stream
	noteMu         sync.Mutex
	tail           drive.Tail             // of standard error
	killed         bool                   // by us
	outOfMemory    bool                   // by the memory limit
	denied         []sandbox.Denial       // what the sandbox refused
	modes          map[string]fs.FileMode // of our own files, before the run
	protected      sandbox.Settlement     // what the run changed of the protected names
	proxy          *proxy.Server
	network        proxy.Report     // what the run asked the proxy for
	refusals       []sandbox.Denial // of the proxy
	enforced       sandbox.Receipt
	startRefused   atomic.Bool // a program of the run was not let start, and that was said
	observing      bool        // the run's system calls are to be listened to
	grants         grantState
	claimed        *idempotency.Claim // of --idempotency-key
	binds          binding
	copy           *gitrepo.Copy // of the settings that were judged
	tmpIn          func() error  // brings the machine's /tmp in, once
	tmpHeld        *os.File      // locks where to until the run does; nil where there is no lock
}

// run starts the child and sees it to its end. Everything that can fail is opened
// before the start.
func (x *execution) run() (err error) {
	if x.plan.sharesTmp() {
		x.tmpIn = sync.OnceValue(x.lookAtTmp)
		go x.tmpIn()
		defer func() {
			x.tmpIn() // not cut short by an early end
			x.tmpHeld.Close()
		}()
	}
	if err := x.openLog(); err != nil {
		return err
	}
	if x.signals == nil {
		x.signals = <-x.watched
	}
	defer x.signals.Close()
	if err := x.bind(); err != nil {
		return err
	}
	defer x.binds.close()
	if err := x.redaction(); err != nil {
		return err
	}
	for _, note := range x.redactionNotes {
		x.warn(note)
	}
	if err := x.intend(); err != nil {
		return err
	}
	if sig := x.signals.Pending(); sig != nil {
		return cancelled(sig)
	}
	if err := x.charge(); err != nil {
		return err
	}
	if err := x.spend(); err != nil {
		return err
	}
	x.sayShortfall()
	unmade, err := x.makeTmpNames()
	defer unmade()
	if err != nil {
		return err
	}
	if err := x.makeSettings(); err != nil {
		return err
	}
	defer x.returnSettings()
	if err := x.checkpoint(); err != nil {
		return err
	}
	if err := x.start(); err != nil {
		return err
	}
	defer x.noteChanges()
	defer func() {
		if r := recover(); r != nil {
			x.killed = true
			x.proc.KillTree(0)
			err = fault.New(errcode.Internal, fmt.Sprintf("internal error: %v", r))
		}
	}()
	return x.finish()
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
	log, err := audit.Open(filepath.Join(x.plan.dirs.State, "audit"))
	switch {
	case err == nil:
		x.log = log
	case x.plan.inside():
		x.log = nest.ToParent(x.plan.machine.Getenv)
	default:
		return err
	}
	return x.log.Reserve()
}

// start launches the identified file under the profile.
func (x *execution) start() error {
	p, main := x.plan, x.plan.steps[0]
	if err := main.Executable.Recheck(); err != nil {
		return err
	}
	x.observing = p.observed()
	if why := p.observeRefused(); why != "" {
		x.warn(why)
	}
	x.modes = p.ownModes()
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
	x.proc, p.hostCwdMade = proc, false
	// The first event, before anything is read of the output and a signal is passed on.
	if x.out.Start != nil {
		x.out.Start(Started{V: 1, Run: p.Run, Argv: x.cleanAll(p.inv.words()), Cwd: p.Cwd, Pid: proc.Pid(), Stdin: x.status.IO.Stdin, Terminal: x.status.IO.Terminal,
			TimeoutMS: p.timeout.LimitMS, Decision: p.Decision.Action.String(), Tier: p.Setup.Tier().String(), Gaps: p.receipt().Gaps})
	}
	x.signals.Started()
	main.Executable.StartedOK()
	if err := x.binds.terminal.Started(); err != nil {
		x.warn(err.Error())
	}
	x.binds.started(x)
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
