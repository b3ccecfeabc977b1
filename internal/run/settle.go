package run

import (
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/sandbox"
)

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
