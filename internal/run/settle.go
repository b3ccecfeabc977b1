package run

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/subpath"
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
				if f.Path != "" && subpath.Within(list[i].Path, f.Path) {
					list[i].Rule, list[i].Remedy = f.Why+" of atip-exec", ""
				}
			}
			list[i].Path = x.clean(list[i].Path) // the child chose it
		}
	case x.observing && x.plan.Setup.Tier() != sandbox.T0:
		x.warn("denials cannot be seen here: another program listens to the system calls already")
	}
	guessed := false
	if !observed && !x.startRefused.Load() {
		if d, ok := sandbox.Explain(exit, x.tail.Last, x.plan.receipt()); ok && !(d.Class == "network" && len(x.refusals) > 0) {
			list, guessed = []sandbox.Denial{d}, true
		}
	}
	for i := range list {
		if d := &list[i]; d.Class == "files" && x.plan.world.Classify(d.Path, atip.AccessRead, false) == atip.ClassSecret {
			d.Remedy = "" // no hint helps to reach a secret
		}
	}
	if i := slices.IndexFunc(list, func(d sandbox.Denial) bool { return strings.Contains(d.Remedy, "workspace") }); i >= 0 {
		if why, fix := x.plan.unregistered(); why != "" {
			list[i].Remedy = why + "; " + fix
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
	git := slices.ContainsFunc(x.plan.steps, func(s *effects.Step) bool { return s.Call.Tool == "git" })
	for _, path := range s.Repositories {
		if !git {
			x.warn("the run made a git repository, " + path + "; it was left without hooks and without settings that run code")
		}
	}
	if s.Lost {
		x.warn("not every submodule, work tree or included file of this repository could be followed: what the run planted there may have been missed")
	}
	if p := x.plan; s.Unpinned > 0 && !p.inside() && p.firstInSession("unpinned\x00"+p.Workspace) {
		x.warn(strconv.Itoa(s.Unpinned) + " protected names of submodules and nested repositories could change during this run and were only compared after it: there are more than can be pinned (protected.unpinned in the receipt; said once in a session)")
	}
	if p := x.plan; s.Truncated && !p.inside() && p.firstInSession("truncated\x00"+p.Workspace) {
		x.warn("not everything below " + p.Workspace + " could be compared after this run: a repository or a hook planted deep in it may have been missed (protected.truncated in the receipt; said once in a session)")
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
	x.bounds = x.boundReports()
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
