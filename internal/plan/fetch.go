package plan

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/fetch"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Fetching is a run that fetches what a project declares for the run of a command. Its workspace
// is a directory of its own with copies of the declarations; of the project it sees nothing.
type Fetching struct {
	For   string // the run
	Work  *fetch.Work
	Dir   string
	at    Place // of the run
	rules Rules
}

// place is where the fetching run works: beside the project, with the caches of its workspace.
func (f *Fetching) place(m caller.Machine) Place {
	at := f.at
	at.Workspace, at.Cwd, at.CwdID, at.gitDirs = f.Dir, f.Dir, sandbox.DirID{}, nil
	at.World.Workspace, at.World.Cwd, at.World.GitDirs = f.Dir, f.Dir, nil
	at.World = at.World.Resolved()
	return at
}

// meant gives the one step of a fetching run its hosts, and says that it is one.
func (f *Fetching) meant(steps []*step.Step) {
	if len(steps) != 1 {
		return
	}
	s := steps[0]
	s.Declared = true
	s.ServiceHosts = f.Work.Hosts
}

// splits reports whether a fetching run can be had: it needs a list of hosts and a root of its own.
func (p *Plan) splits() bool {
	return p.Policies.FetchesDeclared() && p.Invocation.Fetching == nil && p.Invocation.Standing == nil && p.Invocation.Behalf == nil && p.apart() && !p.Inside() && p.Workspace != "" && p.Machine.Getenv("ATIP_EXEC_SANDBOX") == ""
}

// fetchApart decides once more for a run before which is fetched what its commands would fetch
// themselves, where that keeps it from asking: no step of it then has a host.
func (p *judging) fetchApart(req policy.Request) error {
	if p.Decision.Action != policy.Confirm || !slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return s.Apart != nil }) {
		return nil
	}
	whole, steps := p.Decision, p.Steps
	back := func() error {
		p.Decision, p.Steps = whole, steps
		return nil
	}
	p.Steps, req.Steps = slices.Clone(steps), slices.Clone(req.Steps)
	var works []*fetch.Work
	for i, s := range steps {
		if s.Apart == nil {
			continue
		}
		w, why := fetch.Find(s.Split, s.Argv[0], filepath.Clean(s.Cwd), p.Machine.Getenv, p.listsHost)
		if why != "" {
			p.Warnings = append(p.Warnings, s.Call.Tool+": what the project declares is not fetched apart: "+why)
			return back()
		}
		s.RedirectedAs(s.Apart)
		p.Steps[i], req.Steps[i] = s.Apart, s.Apart.Step
		if !slices.ContainsFunc(works, func(x *fetch.Work) bool { return x.Dir == w.Dir && slices.Equal(x.Argv, w.Argv) }) {
			works = append(works, w)
		}
	}
	p.Decision.Decision = p.judged(req)
	p.judgeHidden(req)
	p.judgeDoubt(req)
	if p.Decision.Action != policy.Allow || p.Decision.Grants.Net == policy.NetFull || p.Decision.Grants.Net == policy.NetAllowlist {
		return back()
	}
	for _, w := range works {
		allowed, err := p.mayFetch(w)
		if err != nil || !allowed {
			p.Decision, p.Steps = whole, steps
			return err
		}
	}
	p.Fetches = works
	return nil
}

// mayFetch decides about one fetching run.
func (p *judging) mayFetch(w *fetch.Work) (bool, error) {
	f := New(p.FetchOf(w, p.FetchDir()), FetchMachine(w, p.Machine))
	defer f.Close()
	f.Host, f.imagined, f.memo = p.Host, p.imagined, nil
	if err := stages(f.settle, f.identify, f.decide); err != nil {
		return false, err
	}
	return f.Decision.Action == policy.Allow, nil
}

// FetchOf is the invocation of a fetching run that works in dir.
func (p *Plan) FetchOf(w *fetch.Work, dir string) Invocation {
	return Invocation{Argv: w.Argv, Directory: dir, Stdin: "null", CI: p.Invocation.CI, Policies: p.Invocation.Policies, Profiles: p.Invocation.Profiles, Timeout: p.Invocation.Timeout, Version: p.Invocation.Version,
		Fetching: &Fetching{For: p.Run, Work: w, Dir: dir, at: p.Place, rules: p.Rules}}
}

// FetchMachine is the machine as a fetching run sees it: variables that the run sets are not the caller's.
func FetchMachine(w *fetch.Work, m caller.Machine) caller.Machine {
	m.Environ = slices.DeleteFunc(slices.Clone(m.Environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(w.Env, func(kv [2]string) bool { return kv[0] == name })
	})
	return m
}

// FetchDir is where the fetching runs of this one work.
func (p *Plan) FetchDir() string { return filepath.Join(p.Dirs.Cache, "fetch", p.Run) }

// fetchVariables are those of a fetching run, or those that keep a run from fetching what was
// fetched for it.
func (p *Plan) fetchVariables() [][2]string {
	if f := p.Invocation.Fetching; f != nil {
		return f.Work.Env
	}
	var out [][2]string
	for _, w := range p.Fetches {
		out = append(out, w.Offline...)
	}
	return out
}

// listsHost reports a host that the user's policy allows by name.
func (p *Plan) listsHost(host string) bool {
	for _, h := range p.Policies.Network().Allow {
		name, port := step.SplitPort(h)
		if h == host || port == 0 && (host == name+":443" || host == name+":80") {
			return true
		}
	}
	return false
}
