package run

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/aftermath"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/fetch"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/sandbox"
)

const (
	// orderly is how long planning goes on after a signal: a plan takes milliseconds, and one
	// that gets done leaves a whole record of what was cancelled.
	orderly = 250 * time.Millisecond
	// lastWords bounds the record of a run whose planning was given up: the log may be what
	// planning waits for.
	lastWords = time.Second
)

// making makes the plan beside the caller, who waits no longer than --timeout and a signal
// allow. A plan that is given up, which a fault without an error of making says, still belongs
// to the goroutine that makes it: the caller reads nothing of it. Nothing is started before
// this returns, and nothing here acts afterwards, so that a limit of planning cannot end a
// command.
func (x *execution) making(identified func()) (gaveUp *fault.Fault, made error) {
	defer func() {
		if gaveUp != nil && x.signals != nil {
			x.signals.Close()
		}
	}()
	p := x.plan
	type outcome struct {
		err   error
		panic any
	}
	done := make(chan outcome, 1)
	limit := p.Invocation.Timeout // read before the plan is made beside this
	go func() {
		var o outcome
		defer func() {
			o.panic = recover()
			done <- o
		}()
		o.err = p.Complete(identified)
	}()
	var late <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(time.Until(p.Began.Add(limit)))
		defer t.Stop()
		late = t.C
	}
	watched, signalled, over := x.watched, (<-chan struct{})(nil), (<-chan time.Time)(nil)
	for {
		select {
		case o := <-done:
			if o.panic != nil {
				panic(o.panic)
			}
			return nil, o.err
		case x.signals = <-watched:
			watched, signalled = nil, x.signals.Ended
		case <-signalled:
			signalled, over = nil, time.After(orderly)
		case <-over:
			return fault.From(cancelled(x.signals.Pending())), nil
		case <-late:
			return fault.New(errcode.Timeout, fmt.Sprintf("timeout after %v: the plan of the command was not made in that time, and nothing was started", limit)).
				WithFix("look for a file or a pipe that does not end among what the command reads, or give a longer --timeout", "").With("limit_ms", limit.Milliseconds()), nil
		}
	}
}

// giveUp is the result of a run whose plan was not made in time. The status goes to the
// descriptor only, since where a file may be written is part of the plan. The words of the
// command are not recorded: which of them are secret is not known.
func (r *Result) giveUp(inv plan.Invocation, m caller.Machine, id string, began time.Time, sink *status.Sink, why *fault.Fault) *Result {
	r.fail(why)
	r.Status = status.Document{Kind: status.Kind, State: "failed", Run: id, Argv: []string{}, Origin: "atip-exec", ExitCode: r.ExitCode, Error: r.Fault,
		Timing: &status.Timing{Began: began.UTC().Format(time.RFC3339Nano), PlanUS: time.Since(began).Microseconds()}}
	if inv.Timeout > 0 {
		r.Status.Timeout = &status.Timeout{LimitMS: inv.Timeout.Milliseconds(), Source: "flag", Fired: r.Fault.Code == errcode.Timeout}
	}
	recorded := make(chan string, 1)
	go func() {
		kept := ""
		if dirs, err := m.Dirs(); err == nil {
			if log, err := audit.Open(filepath.Join(dirs.State, "audit")); err == nil {
				cwd, _ := os.Getwd()
				kept, _ = log.Append(map[string]any{"id": id, "kind": "run", "argv": []string{}, "cwd": cwd, "uid": m.UID, "exit": r.ExitCode, "state": "failed",
					"timing": r.Status.Timing, "error": map[string]any{"code": why.Code, "message": "planning was given up"}})
				log.Close()
			}
		}
		recorded <- kept
	}()
	select {
	case kept := <-recorded:
		r.Status.Audit = kept
	case <-time.After(lastWords):
	}
	_ = sink.Write(r.Status)
	return r
}

// denials tells what was refused.
func (x *execution) denials(exit sandbox.Exit) {
	list, observed := x.proc.Denials()
	seen := aftermath.Seen{Plan: x.plan, Exit: exit, Denials: list, Observed: observed, Tail: x.tail.Last, Network: x.network, StartRefused: x.starts.Refused(), Clean: x.clean}
	if !observed && x.observing && x.plan.Setup.Tier() != sandbox.T0 {
		x.warn("denials cannot be seen here: another program listens to the system calls already")
	}
	x.denied = seen.All()
	for _, d := range x.denied {
		x.note("denied", d)
	}
	if len(x.denied) > 0 {
		x.enforced.Denials = x.denied
		x.status.Sandbox = x.network.Receipt(x.enforced)
	}
}

// settleProtected tells which protected names the run changed.
func (x *execution) settleProtected(s sandbox.Settlement) {
	x.protected = s
	aftermath.Protected(x.plan, s, x.warn)
	x.enforced = x.plan.Receipt()
	x.enforced.Protected = s.Receipt()
	x.status.Sandbox = x.network.Receipt(x.enforced)
}

func (x *execution) settleExit(exit sandbox.Exit) {
	c := x.status.Child
	c.ExitCode, c.Core = exit.Code, exit.Core
	if exit.Signal != 0 {
		c.Signal = drive.SignalName(exit.Signal)
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
		case <-s.Done:
		default:
			// Its goroutine is stuck in a write; what it reports would not be final.
			s = &drive.Stream{Name: s.Name, End: "error"}
			x.streams[i] = s
		}
		if s.End == "held" {
			x.note("pipe_held", s.Name)
		}
		if s.End == "epipe" {
			x.note("output_closed", s.Name)
		}
		if s.To != nil {
			report := s.To.Report()
			x.reports = append(x.reports, report)
			if text := report.Unfiltered(); text != "" {
				x.warn(s.Name + ": " + text)
			}
		}
	}
	x.bounds = map[string]filter.BoundReport{}
	for _, s := range x.streams {
		if s.Bound != nil && s.To != nil {
			x.bounds[s.Name] = s.Bound.Report()
		}
	}
	if len(x.streams) > 0 {
		x.status.IO.Stdout.End = x.streams[0].End
	}
	if len(x.streams) > 1 {
		x.status.IO.Stderr.End = x.streams[1].End
	}
}

func (x *execution) note(code string, value any) {
	x.noteMu.Lock()
	defer x.noteMu.Unlock()
	n := status.Note{Code: code, Value: value, At: time.Since(x.began).Milliseconds()}
	x.status.Notes = append(x.status.Notes, n)
	if x.out.Note != nil {
		x.out.Note(n)
	}
}

// fetchApart fetches what the project declares, each time in a run of its own. The command itself
// then works without network. If something could not be fetched it says best itself what it lacks,
// as all of it may be there already.
func (x *execution) fetchApart() error {
	for i, w := range x.plan.Fetches {
		if err := x.fetch(w, filepath.Join(x.plan.FetchDir(), strconv.Itoa(i))); err != nil {
			return err
		}
		if err := x.cancelledMeanwhile(); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) fetch(w *fetch.Work, dir string) error {
	defer os.RemoveAll(x.plan.FetchDir())
	fetch.Forsaken(filepath.Dir(x.plan.FetchDir()))
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = w.Lay(dir)
	}
	if err != nil {
		return fault.New(errcode.Confinement, "what the project declares cannot be copied: "+err.Error())
	}
	said := &drive.Tail{To: io.Discard}
	r := Run(x.plan.FetchOf(w, dir), plan.FetchMachine(w, x.plan.Machine), Output{Stdout: io.Discard, Stderr: said, Warn: func(string) {}})
	if w.Once != "" {
		fetch.Note(x.plan.Private, w.Once, r.Fault == nil && r.ExitCode == 0)
	}
	switch {
	case r.Fault != nil:
		x.warn("what the project declares was not fetched: " + r.Fault.Message)
	case r.ExitCode != 0:
		x.warn("what the project declares was not fetched (" + strings.Join(w.Argv, " ") + ", exit status " + strconv.Itoa(r.ExitCode) + "): " + strings.TrimSpace(string(said.Last)))
	}
	return nil
}
