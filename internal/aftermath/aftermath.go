// Package aftermath says what the sandbox refused a run and what the run changed that is protected.
package aftermath

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/ledger"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Seen is what is known of a run that has ended.
type Seen struct {
	Plan         *plan.Plan
	Exit         sandbox.Exit
	Denials      []sandbox.Denial // as the observer saw them
	Observed     bool             // there was one
	Tail         []byte           // the end of standard error
	Network      *drive.Network   // nil for none
	StartRefused bool             // a start was refused, which was said
	Clean        func(string) string
}

// All is what was refused: as the observer saw it, or else as the end of standard error lets guess,
// behind what the network refused.
func (x *Seen) All() []sandbox.Denial {
	list := x.Denials
	if x.Observed {
		forbidden := x.Plan.Forbidden()
		for i := range list {
			for _, f := range forbidden {
				if f.Path != "" && subpath.Within(list[i].Path, f.Path) {
					list[i].Rule, list[i].Remedy = f.Why+" of atip-exec", ""
				}
			}
			list[i].Path = x.Clean(list[i].Path) // the child chose it
		}
	}
	guessed := false
	if !x.Observed && !x.StartRefused {
		if d, ok := sandbox.Explain(x.Exit, x.Tail, x.Plan.Receipt()); ok && !(d.Class == "network" && x.Network.Refused()) {
			list, guessed = []sandbox.Denial{d}, true
		}
	}
	seen := slices.ContainsFunc(list, func(d sandbox.Denial) bool { return d.Class == "network" && d.Certain })
	if x.Exit.Unrouted > 0 && !seen && (x.Exit.Code != 0 || FirstInSession(x.Plan, "unrouted\x00"+x.codeTools())) {
		list = slices.DeleteFunc(list, func(d sandbox.Denial) bool { return d.Class == "network" })
		list, guessed = append(list, sandbox.Unreached(x.Exit.Unrouted)), true
	}
	for i := range list {
		if d := &list[i]; d.Class == "files" && x.Plan.World.Classify(d.Path, atip.AccessRead, false) == atip.ClassSecret {
			d.Remedy = "" // no hint helps to reach a secret
		}
	}
	if i := slices.IndexFunc(list, func(d sandbox.Denial) bool { return strings.Contains(d.Remedy, "workspace") }); i >= 0 {
		if why, fix := x.Plan.Unregistered(); why != "" {
			list[i].Remedy = why + "; " + fix
		}
	}
	x.remember(guessed || x.Observed && len(list) > 0)
	if x.Exit.Code != 0 {
		x.Network.Failures()
	}
	if x.Network != nil {
		list = append(x.Network.Refusals, list...)
	}
	return list
}

// codeTools names what runs code: a pipeline hides how its parts fail, so a successful run says once for each of them
// that no host was reached.
func (x *Seen) codeTools() string {
	var tools []string
	for _, s := range x.Plan.Steps {
		if s.Foreign() {
			tools = append(tools, s.Call.Tool)
		}
	}
	return strings.Join(tools, " ")
}

// remember keeps in mind whether this plan should be observed the next time. What
// was observed is told already, and what did not fail needs no telling.
func (x *Seen) remember(guessed bool) {
	p := x.Plan
	if p.Policies.Sandbox().Observe != "auto" {
		return
	}
	file, key := p.ObserveSlot()
	if file == "" {
		return
	}
	if x.Exit.Code == 0 || !guessed {
		if was, err := regular.Read(file, 256); err == nil && bytes.Equal(was, key) && x.Exit.Code == 0 {
			_ = os.Remove(file)
		}
		return
	}
	// A failure that cannot be kept in mind is told as a guess once more.
	if os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	_ = approve.Replace(file, key)
}

// maxTold is how many changed names are told one by one: a run can make thousands.
const maxTold = 20

// Protected reports protected names of the workspace that the run changed: a
// hook or an editor setting planted there would run later, outside any sandbox.
func Protected(p *plan.Plan, s sandbox.Settlement, warn func(string)) {
	for i, c := range s.Changes {
		if i == maxTold {
			warn(strconv.Itoa(len(s.Changes)-i) + " more protected names were changed; `atip sandbox quarantine list` has what was written")
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
		warn(text)
	}
	// Who calls git knows that it makes repositories; the receipt names them all the same.
	git := slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return s.Call.Tool == "git" })
	for _, path := range s.Repositories {
		if !git {
			warn("the run made a git repository, " + path + "; it was left without hooks and without settings that run code")
		}
	}
	if s.Lost {
		warn("not every submodule, work tree or included file of this repository could be followed: what the run planted there may have been missed")
	}
	if s.Unpinned > 0 && !p.Inside() && FirstInSession(p, "unpinned\x00"+p.Workspace) {
		warn(strconv.Itoa(s.Unpinned) + " protected names of submodules and nested repositories could change during this run and were only compared after it: there are more than can be pinned (protected.unpinned in the receipt; said once in a session)")
	}
	if s.Truncated && !p.Inside() && FirstInSession(p, "truncated\x00"+p.Workspace) {
		warn("not everything below " + p.Workspace + " could be compared after this run: a repository or a hook planted deep in it may have been missed (protected.truncated in the receipt; said once in a session)")
	}
}

// FirstInSession reports whether this session of an agent, or this day where none has a name,
// was not told yet.
func FirstInSession(p *plan.Plan, what string) bool {
	session := p.SessionLabel()
	if session == "" {
		session = time.Now().UTC().Format(time.DateOnly)
	}
	return ledger.FirstTime(filepath.Join(p.Dirs.State, "said"), session+"\x00"+what)
}
