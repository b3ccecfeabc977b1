package run

import (
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/aftermath"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/sandbox"
)

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
