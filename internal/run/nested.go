package run

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// recorder is where the records of a run go.
type recorder interface {
	Append(rec any) (id string, err error)
	Reserve() error
	Close() error
}

// inside reports that this run is inside another, whose sandbox keeps it from the state
// directory.
func (p *Plan) inside() bool { return nest.Inside(p.machine.Getenv, p.dirs.State) }

// receipt is what the sandbox enforces, and inside of what.
func (p *Plan) receipt() sandbox.Receipt {
	if p.enforced != nil {
		return *p.enforced
	}
	r := p.Setup.Receipt()
	// A private root says itself which tier it is; of a lower one there is only the variable.
	if r.Nested.Outer == nil && p.inside() {
		outer := "unknown"
		if tier, ok := sandbox.TierByName(p.machine.Getenv("ATIP_EXEC_SANDBOX")); ok {
			outer = tier.String()
		}
		r.Nested.Outer = &outer
	}
	return r
}

// probeCache is where the sandbox keeps what it learned and what it must restore. A run
// inside another has a directory of its own for that, as long as it lasts; what it
// misses of the protected names the parent run still sees.
func (p *Plan) probeCache() sandbox.Cache {
	c := sandbox.Cache{Dir: p.dirs.State, Executable: p.machine.Self}
	if p.starts && p.inside() {
		c.Dir = "" // no state, which the sandbox then says itself
		if dir, err := os.MkdirTemp(p.machine.Getenv("TMPDIR"), "atip-exec-"); err == nil {
			p.innerState, c.Dir = dir, dir
		}
	}
	return c
}

// mayNest reports whether something of the run may start us again: a command of ours in
// it, or the directory in PATH that puts us in front of the shells.
func (p *Plan) mayNest() bool {
	if p.reading.Nestable {
		return true
	}
	return slices.Contains(filepath.SplitList(p.machine.Getenv("PATH")), filepath.Join(p.dirs.Data, "bin"))
}

// grantNested lets a run inside read the policies and the metadata that this one was
// decided by; without the user's policy it would be stricter or fail.
func (p *Plan) grantNested(in *sandbox.Input) {
	in.Outer = p.host.Outer() != nil
	if !p.mayNest() {
		return
	}
	config := func(name string) string { return filepath.Join(p.dirs.Config, name) }
	for _, path := range []string{config("policy.json"), config("delegation.pub"), config("approvers.json"), config("overrides"), config("trust"), p.dirs.WorkspacesFile(), place.HomesFile(), p.dirs.Data} {
		if _, err := os.Lstat(path); err == nil {
			in.Policy.Read = append(in.Policy.Read, sandbox.PathRule{Path: path, Rule: "for a run inside"})
		}
	}
}

// nestVariables tells a run inside where to send its record.
func (p *Plan) nestVariables(set map[string]string) {
	if !p.starts || p.inv.behalf != nil || !p.mayNest() {
		return
	}
	p.nestFD = freeDescriptor(p.textFD)
	set[nest.ParentVariable], set[nest.RunVariable] = "fd:"+strconv.Itoa(p.nestFD), p.Run
}

// freeDescriptor is a number that is neither named on the command line nor taken.
func freeDescriptor(taken ...int) int {
	for fd := 10; ; fd++ {
		if !slices.Contains(taken, fd) && !slices.Contains(sandbox.InheritedFDs(), fd) {
			return fd
		}
	}
}

// withhold tells a run inside which credentials it will not find: those that this run
// was not given itself, too.
func (p *Plan) withhold(dropped []string) {
	if p.nestFD == 0 {
		return
	}
	for _, name := range append(p.withheldOutside(), dropped...) {
		if !slices.Contains(p.env.credentials, name) && !slices.Contains(p.withheld, name) && !strings.Contains(name, ":") {
			p.withheld = append(p.withheld, name)
		}
	}
	if len(p.withheld) == 0 {
		return
	}
	slices.Sort(p.withheld)
	p.env.entries = append(p.env.entries, nest.WithheldVariable+"="+strings.Join(p.withheld, ":"))
	p.env.passed = append(p.env.passed, nest.WithheldVariable)
	slices.Sort(p.env.passed)
}

// withheldOutside lists what the parent run of this one says it has withheld.
func (p *Plan) withheldOutside() []string {
	names := p.machine.Getenv(nest.WithheldVariable)
	if names == "" || !p.inside() {
		return nil
	}
	return strings.Split(names, ":")
}

// bindNested gives the child one end of a socket on which runs inside send their records
// and their questions.
func (x *execution) bindNested() {
	p := x.plan
	if p.nestFD == 0 {
		return
	}
	l, child, err := nest.Listen()
	if err != nil {
		return // the record of this run covers what it starts
	}
	x.binds.pass[p.nestFD] = child
	x.binds.opened = append(x.binds.opened, child)
	x.inner = l
}

// listen hears the runs inside from the start of the command on.
func (x *execution) listen() {
	if x.inner == nil {
		return
	}
	up, _ := x.log.(*nest.Parent)
	x.inner.Start(nest.Host{Up: up, Withheld: x.plan.policies.Credentials() == policy.CredentialsWithheld, Order: x.order, Environ: x.plan.machine.Environ, Grace: defaultGrace})
}

// order is what a process that answers a run inside is told of this run.
func (x *execution) order() nest.Order {
	p := x.plan
	return nest.Order{Run: p.Run, Words: Quote(x.cleanAll(p.inv.words())), Workspace: p.Workspace, Cwd: p.Cwd, Policies: p.inv.Policies, Profiles: p.inv.Profiles, Ceiling: p.inv.Ceiling, CI: p.inCI(), Withheld: p.withheld, Files: p.credentialFiles,
		ReadOnly: !slices.ContainsFunc(p.Profile.Write, func(g sandbox.Grant) bool {
			return g.Dir && subpath.Within(p.Workspace, g.Path) && g.Rights&sandbox.Write != 0
		})}
}

// recordInner writes the records of the runs inside. One that cannot be written now is one
// that nobody vouches for.
func (x *execution) recordInner() {
	if x.inner == nil {
		return
	}
	x.binds.closeOpened()
	for _, r := range x.inner.Close() {
		_, _ = x.log.Append(r.Entry(x.plan.Run, x.clean))
	}
}
