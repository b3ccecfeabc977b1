package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Inside reports that this run is inside another, whose sandbox keeps it from the state
// directory.
func (at Place) Inside() bool { return at.inside }

// Receipt is what the sandbox enforces, and inside of what.
func (p *Plan) Receipt() sandbox.Receipt {
	if p.enforced != nil {
		return *p.enforced
	}
	return p.receiptOf(p.Setup)
}

func (p *Plan) receiptOf(setup sandbox.Setup) sandbox.Receipt {
	r := setup.Receipt()
	// A private root says itself which tier it is; of a lower one there is only the variable.
	if r.Nested.Outer == nil && p.Inside() {
		outer := "unknown"
		if tier, ok := sandbox.TierByName(p.Machine.Getenv("ATIP_EXEC_SANDBOX")); ok {
			outer = tier.String()
		}
		r.Nested.Outer = &outer
	}
	return r
}

// ProbeCache is where the sandbox keeps what it learned and what it must restore. A run
// inside another has a directory of its own for that, as long as it lasts; what it
// misses of the protected names the parent run still sees.
func (p *Plan) ProbeCache() sandbox.Cache {
	c := sandbox.Cache{Dir: p.Dirs.State, Executable: p.Machine.Self}
	if p.Starts && p.Inside() {
		c.Dir = "" // no state, which the sandbox then says itself
		if dir, err := os.MkdirTemp(p.Machine.Getenv("TMPDIR"), "atip-exec-"); err == nil {
			p.innerState, c.Dir = dir, dir
		}
	}
	return c
}

// mayNest reports whether something of the run may start us again: a command of ours in
// it, or the directory in PATH that puts us in front of the shells.
func (p *Plan) mayNest() bool {
	if p.Reading.Nestable {
		return true
	}
	return slices.Contains(filepath.SplitList(p.Machine.Getenv("PATH")), filepath.Join(p.Dirs.Data, "bin"))
}

// grantNested lets a run inside read the policies and the metadata that this one was
// decided by; without the user's policy it would be stricter or fail.
func (p *Plan) grantNested(in *sandbox.Input) {
	in.Outer = p.Host.Outer() != nil
	if !p.mayNest() {
		return
	}
	config := func(name string) string { return filepath.Join(p.Dirs.Config, name) }
	for _, path := range []string{config("policy.json"), config("delegation.pub"), config("approvers.json"), config("overrides"), config("trust"), p.Dirs.WorkspacesFile(), place.HomesFile(), p.Dirs.Data} {
		if _, err := os.Lstat(path); err == nil {
			in.Policy.Read = append(in.Policy.Read, sandbox.PathRule{Path: path, Rule: "for a run inside"})
		}
	}
}

// nestVariables tells a run inside where to send its record. It returns the descriptor for that, 0 for
// none.
func (p *Plan) nestVariables(set map[string]string) int {
	if !p.Starts || p.Invocation.Behalf != nil || !p.mayNest() {
		return 0
	}
	fd := FreeDescriptor(p.TextFD)
	set[nest.ParentVariable], set[nest.RunVariable] = "fd:"+strconv.Itoa(fd), p.Run
	return fd
}

// FreeDescriptor is a number that is neither named on the command line nor taken.
func FreeDescriptor(taken ...int) int {
	for fd := 10; ; fd++ {
		if !slices.Contains(taken, fd) && !slices.Contains(sandbox.InheritedFDs(), fd) {
			return fd
		}
	}
}

// withhold tells a run inside which credentials it will not find: those that this run
// was not given itself, too.
func (p *Plan) withhold(env *Env, dropped []string) {
	for _, name := range append(p.WithheldOutside(), dropped...) {
		if !slices.Contains(env.Credentials, name) && !slices.Contains(env.Withheld, name) && !strings.Contains(name, ":") {
			env.Withheld = append(env.Withheld, name)
		}
	}
	if len(env.Withheld) == 0 {
		return
	}
	slices.Sort(env.Withheld)
	env.Entries = append(env.Entries, nest.WithheldVariable+"="+strings.Join(env.Withheld, ":"))
	env.Passed = append(env.Passed, nest.WithheldVariable)
	slices.Sort(env.Passed)
}

// WithheldOutside lists what the parent run of this one says it has withheld.
func (p *Plan) WithheldOutside() []string {
	names := p.Machine.Getenv(nest.WithheldVariable)
	if names == "" || !p.Inside() {
		return nil
	}
	return strings.Split(names, ":")
}
