package run

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/sandbox"
)

const defaultGrace = 2 * time.Second

// execution is the second half of a run: from a plan that may run to its record.
type execution struct {
	plan    *Plan
	out     Output
	status  Status
	reports []filter.Report
	bounds  map[string]filter.BoundReport // of the streams that are bounded

	budget     map[string]any // what was charged to a budget or a rate, nil for nothing
	outputMost int64          // bytes that policy lets the tools of this run show of a stream, 0 for no bound
	began      time.Time
	ran        time.Duration

	watched    chan *signals // the signals, once they are taken over
	collected  chan error    // the end of collect
	collecting bool          // collect was started
	described  chan []byte   // the record's static part, built while the child runs

	log            recorder
	inner          *inner // what hears the runs inside this one, nil if there can be none
	byParent       string // the run outside that did it instead, "" for none
	kept           bool   // the run outside left it to the one that asked
	redact         *filter.Set
	collectErr     error
	redactionOff   bool
	redactionNotes []string
	known          filter.Known
	signals        *signals
	proc           *sandbox.Proc
	streams        []*stream
	noteMu         sync.Mutex
	tail           tail               // of standard error
	killed         bool               // by us
	outOfMemory    bool               // by the memory limit
	denied         []sandbox.Denial   // what the sandbox refused
	protected      sandbox.Settlement // what the run changed of the protected names
	proxy          *proxy.Server
	network        proxy.Report     // what the run asked the proxy for
	refusals       []sandbox.Denial // of the proxy
	enforced       sandbox.Receipt
	observing      bool // the run's system calls are to be listened to
	grants         grantState
	binds          binding
}

// run starts the child and sees it to its end. Everything that can fail is opened
// before the start.
func (x *execution) run() (err error) {
	if err := x.openLog(); err != nil {
		return err
	}
	if x.signals == nil {
		x.signals = <-x.watched
	}
	defer x.signals.close()
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
	if sig := x.signals.pending(); sig != nil {
		return cancelled(sig)
	}
	if err := x.charge(); err != nil {
		return err
	}
	if err := x.spend(); err != nil {
		return err
	}
	x.sayShortfall()
	if err := x.start(); err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			x.killed = true
			x.proc.KillTree(0)
			err = fault.New("E5001", fmt.Sprintf("internal error: %v", r))
		}
	}()
	return x.finish()
}

func cancelled(sig os.Signal) error {
	f := fault.New("E4009", "cancelled by "+sig.String()+" before the command was started")
	f.Exit = 128 + signalNumber(sig)
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
		x.log = x.plan.upward()
	default:
		return err
	}
	return x.log.Reserve()
}

// redaction waits until the values that must not be shown are collected.
func (x *execution) redaction() error {
	switch {
	case x.collecting:
		x.collecting = false
		x.collectErr = <-x.collected
	case x.redact == nil && x.collectErr == nil:
		// The plan failed early; its words still pass through the filter.
		x.collectErr = x.collect()
	}
	return x.collectErr
}

// collect gathers the values that must not be shown, before the child can show
// them. What the child gets beyond the caller's environment comes from policy.
func (x *execution) collect() (err error) {
	p := x.plan
	var rules redaction
	src := filter.Sources{Env: p.machine.Environ, Argv: p.inv.words(), Home: p.dirs.Home, Getenv: p.machine.Getenv}
	if p.policies != nil {
		for name, value := range p.policies.Env().Set {
			src.ChildEnv = append(src.ChildEnv, name+"="+value)
		}
		if rules, err = redactionPolicy(p.policies.Output(), p.steps); err != nil {
			return err
		}
		src.ExtraEnv = rules.env
		for _, file := range rules.files {
			src.ExtraFiles = append(src.ExtraFiles, p.expand(file))
		}
		x.redactionOff, x.redactionNotes, x.outputMost = rules.config.Disabled, rules.notes, rules.most
	}
	for _, s := range p.steps {
		src.AuthVars = append(src.AuthVars, s.Call.Secrets...)
	}
	if x.known, err = filter.Collect(src); err != nil {
		return err
	}
	if x.redact, err = filter.NewSet(rules.config, x.known, filter.TagKey{}); err != nil {
		return err
	}
	x.redact.KeyFrom(func() filter.TagKey {
		// Without a key that lasts, tags are good for this run.
		key, _ := filter.LoadTagKey(above(p.dirs.Runtime), above(p.dirs.State))
		return key
	})
	return nil
}

// start launches the identified file under the profile.
func (x *execution) start() error {
	p, main := x.plan, x.plan.steps[0]
	if err := main.file.Recheck(); err != nil {
		return err
	}
	x.observing = p.observed()
	if why := p.observeRefused(); why != "" {
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
	x.proc, p.hostCwdMade = proc, false
	// The first event, before anything is read of the output and a signal is passed on.
	if x.out.Start != nil {
		x.out.Start(Started{V: 1, Run: p.Run, Argv: x.cleanAll(p.inv.words()), Cwd: p.Cwd, Pid: proc.Pid(), Stdin: x.status.IO.Stdin, Terminal: x.status.IO.Terminal,
			TimeoutMS: p.timeout.LimitMS, Decision: p.Decision.Action.String(), Tier: p.Setup.Tier().String(), Gaps: p.receipt().Gaps})
	}
	x.signals.started()
	main.file.StartedOK()
	if err := x.binds.terminal.started(); err != nil {
		x.warn(err.Error())
	}
	x.binds.started(x)
	x.listen()
	x.described = make(chan []byte, 1)
	go func() { x.described <- x.static("run") }()
	x.status.Child = &ChildStatus{Pid: proc.Pid()}
	x.status.Tool.StartedBy = "path"
	if _, byDescriptor, _ := main.file.Start(); byDescriptor {
		x.status.Tool.StartedBy = "descriptor"
	}
	return nil
}

// finish waits for the child and its output, and settles the tree.
func (x *execution) finish() error {
	defer keepThreads()()
	limit := x.plan.limit()
	var timer <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		timer = t.C
	}
	count := 0
	interrupted := make(chan struct{}, 1)
	early := x.signals.to(func(sig os.Signal) {
		if interrupts(sig) {
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
			x.inner.broker.stop()
			x.proc.EndTree(grace)
			x.inner.broker.close()
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
			kill(x.plan.grace())
		case <-interrupted:
			kill(0)
		}
	}
	exit, werr := x.proc.Wait()
	x.ran = time.Since(x.began)
	for _, s := range x.streams {
		s.childEnded()
	}
	// The reader of our output may be slow for good reasons; only a run that was
	// ended on purpose does not wait for it.
	for _, s := range x.streams {
		var patience <-chan time.Time
		if x.killed {
			patience = time.After(heldGrace)
		}
		for waiting := true; waiting; {
			select {
			case <-s.done:
				waiting = false
			case <-patience:
				waiting = false
			case <-timer:
				fired, timer, patience = true, nil, time.After(heldGrace)
				x.note("timeout", limit.Milliseconds())
			case <-interrupted:
				patience = time.After(0)
			}
		}
	}
	killing.Wait()
	if x.inner != nil {
		x.inner.broker.close()
	}
	tree := x.proc.Sweep()
	x.status.Tree = &tree
	x.settleNetwork()
	x.outOfMemory = x.proc.OutOfMemory()
	x.settleProtected(x.proc.Settlement())
	if x.plan.steps[0].file.ScriptChanged() {
		x.note("script_changed_while_running", x.plan.steps[0].id.Canonical)
	}
	if tree.Leftovers > 0 && !x.killed {
		x.note("leftovers", tree.Leftovers)
	}
	x.binds.terminal.restore(exit.Signal != 0)
	x.settleStreams()
	x.settleExit(exit)
	x.denials(exit)
	return x.verdict(exit, werr, fired, limit)
}

// denials reports what the sandbox refused: as the observer saw it, or else as the end
// of standard error lets guess.
func (x *execution) denials(exit sandbox.Exit) {
	list, observed := x.proc.Denials()
	switch {
	case observed:
		forbidden := x.plan.forbidden()
		for i := range list {
			for _, f := range forbidden {
				if f.Path != "" && within(list[i].Path, f.Path) {
					list[i].Rule, list[i].Remedy = f.Why+" of atip-exec", ""
				}
			}
			list[i].Path = x.clean(list[i].Path) // the child chose it
		}
	case x.observing && x.plan.Setup.Tier() != sandbox.T0:
		x.warn("denials cannot be seen here: another program listens to the system calls already")
	}
	guessed := false
	if !observed {
		if d, ok := sandbox.Explain(exit, x.tail.last, x.plan.receipt()); ok && !(d.Class == "network" && len(x.refusals) > 0) {
			list, guessed = []sandbox.Denial{d}, true
		}
	}
	x.rememberFailure(exit, guessed || observed && len(list) > 0)
	if exit.Code != 0 {
		x.settleFailures()
	}
	list = append(x.refusals, list...)
	for _, d := range list {
		x.note("denied", d)
	}
	x.denied = list
	if len(list) > 0 {
		x.enforced.Denials = list
		x.status.Sandbox = x.withNetwork(x.enforced)
	}
}

// verdict is nil if the exit status is the child's.
func (x *execution) verdict(exit sandbox.Exit, werr error, fired bool, limit time.Duration) error {
	x.status.Timeout = &timeoutStatus{LimitMS: limit.Milliseconds(), Source: x.plan.timeout.Source, Fired: fired}
	for _, s := range x.streams {
		if s.panicked() != nil {
			return fault.New("E5002", fmt.Sprintf("%s was discarded: its filter failed: %v", s.name, s.panicked()))
		}
	}
	switch {
	case fired:
		return fault.New("E4001", fmt.Sprintf("timeout after %v: %s was ended", limit, Quote(x.plan.inv.words()))).With("limit_ms", limit.Milliseconds()).With("child_exit_code", exit.Code)
	case werr != nil:
		return fault.New("E4008", "lost track of the child: "+werr.Error())
	}
	for _, s := range x.streams {
		if err := s.failure(); err != nil {
			return fault.New("E4005", s.name+": "+err.Error()).With("child_exit_code", exit.Code)
		}
	}
	return nil
}

// maxTold is how many changed names are told one by one: a run can make thousands.
const maxTold = 20

// settleProtected reports protected names of the workspace that the run changed: a
// hook or an editor setting planted there would run later, outside any sandbox.
func (x *execution) settleProtected(s sandbox.Settlement) {
	x.protected = s
	for i, c := range s.Changes {
		if i == maxTold {
			x.warn(strconv.Itoa(len(s.Changes)-i) + " more protected names were changed; `atip sandbox quarantine list` has what was written")
			break
		}
		did := c.What
		if did == "new" {
			did = "created"
		}
		text := "the run " + did + " " + c.Path + ", a protected name; it was " + c.Action + " [" + c.Code + "]"
		if c.Kept != "" {
			text += "; what it wrote is kept: atip sandbox quarantine show " + c.Run
		}
		x.warn(text)
	}
	// Who calls git knows that it makes repositories; the receipt names them all the same.
	git := slices.ContainsFunc(x.plan.steps, func(s *step) bool { return s.Call.Tool == "git" })
	for _, path := range s.Repositories {
		if !git {
			x.warn("the run made a git repository, " + path + "; its hooks and settings were not looked at")
		}
	}
	x.enforced = x.plan.receipt()
	x.enforced.Protected = s.Receipt()
	x.status.Sandbox = x.withNetwork(x.enforced)
}

func (x *execution) settleExit(exit sandbox.Exit) {
	c := x.status.Child
	c.ExitCode, c.Core = exit.Code, exit.Core
	if exit.Signal != 0 {
		c.Signal = signalName(exit.Signal)
		if exit.Signal == syscall.SIGKILL && !x.killed {
			why := "SIGKILL"
			if x.outOfMemory {
				why = "oom"
			}
			x.note("killed", why)
		}
	}
	x.status.Tool.ExecChecked = exit.Checked
	t := x.status.Timing
	t.RunMS, t.UserMS, t.SysMS, t.MaxRSSKB = x.ran.Milliseconds(), exit.User.Milliseconds(), exit.Sys.Milliseconds(), exit.MaxRSSKB
}

func (x *execution) settleStreams() {
	for i, s := range x.streams {
		select {
		case <-s.done:
		default:
			// Its goroutine is stuck in a write; what it reports would not be final.
			s = &stream{name: s.name, end: "error"}
			x.streams[i] = s
		}
		if s.end == "held" {
			x.note("pipe_held", s.name)
		}
		if s.end == "epipe" {
			x.note("output_closed", s.name)
		}
		if s.to != nil {
			x.reports = append(x.reports, s.to.Report())
		}
	}
	x.bounds = x.boundReports()
	if len(x.streams) > 0 {
		x.status.IO.Stdout.End = x.streams[0].end
	}
	if len(x.streams) > 1 {
		x.status.IO.Stderr.End = x.streams[1].end
	}
}

func (x *execution) note(code string, value any) {
	x.noteMu.Lock()
	defer x.noteMu.Unlock()
	n := Note{Code: code, Value: value, At: time.Since(x.began).Milliseconds()}
	x.status.Notes = append(x.status.Notes, n)
	if x.out.Note != nil {
		x.out.Note(n)
	}
}

// limit is the strictest of the timeouts that were asked for; 0 for none.
func (p *Plan) limit() time.Duration {
	limit, source := time.Duration(0), ""
	consider := func(d time.Duration, from string) {
		if d > 0 && (limit == 0 || d < limit) {
			limit, source = d, from
		}
	}
	consider(p.inv.Timeout, "flag")
	consider(p.policies.Limits().Timeout, "policy")
	if p.inv.DeclaredTimeout {
		consider(p.steps[0].Call.Timeout, "declared")
	}
	p.timeout = timeoutStatus{LimitMS: limit.Milliseconds(), Source: source}
	return limit
}

func (p *Plan) grace() time.Duration {
	if p.inv.KillAfter > 0 {
		return p.inv.KillAfter
	}
	if g := p.policies.Limits().Grace; g > 0 {
		return g
	}
	return defaultGrace
}

// mayHarm reports whether the run may do what an audit must be able to show even
// if the wrapper is killed.
func (p *Plan) mayHarm() bool {
	for _, s := range p.steps {
		e := s.Call.Effects
		if e[atip.Destructive].Value != atip.No || e[atip.Billable].Value != atip.No || e[atip.RemoteMutation].Value != atip.No || e[atip.Reversible].Value == atip.No {
			return true
		}
	}
	return false
}

// above is the directory that holds ours; package filter adds its own name.
func above(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Dir(dir)
}
