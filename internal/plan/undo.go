package plan

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/fetch"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/internal/undo"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Undoing is what a plan knows about taking its run back.
type Undoing struct {
	surveyed bool
	Look     *undo.Look // for a checkpoint at once
	Coverage undo.Coverage
	Rests    bool // the decision would be another without a whole checkpoint
	Problem  error
}

// UndoPlace is the workspace of the current directory, with the limits of its policy, as
// package undo takes it. why says why there is none.
func UndoPlace(m caller.Machine, dir string) (at undo.Place, err error) {
	p, err := Open(Invocation{Directory: dir}, m)
	if err != nil {
		return at, err
	}
	defer p.Close()
	if p.Workspace == "" {
		return at, fault.New(errcode.NoInputFile, "no workspace here: "+p.NoWorkspace).WithFix("go to a directory of your project", "")
	}
	return p.UndoPlace(), nil
}

// UndoPlace is the workspace of the plan as package undo takes it.
func (p *Plan) UndoPlace() undo.Place {
	u, l := p.Policies.Undo(), undo.Defaults()
	if u.MaxBytes > 0 {
		l.Bytes, l.All = u.MaxBytes, max(l.All, u.MaxBytes)
	}
	if u.MaxAge > 0 {
		l.Age = u.MaxAge
	}
	at := undo.Place{Root: p.World.Workspace, Base: p.Dirs.Undo(), UID: p.Machine.UID, Limits: l, Exclude: u.Exclude, Recreatable: p.World.Recreatable}
	for _, d := range p.World.GitDirs {
		if !subpath.Within(d, at.Root) {
			at.GitDirs = append(at.GitDirs, d)
		}
	}
	return at
}

// UndoMode is when checkpoints are made: "auto", "always" or "off". A run inside another
// one is part of what that one's checkpoint covers, and reaches no store.
func (p *Plan) UndoMode() string {
	switch mode := p.Policies.Undo().Mode; {
	case p.Workspace == "" || p.Invocation.Fetching != nil || p.Inside() || p.Machine.Getenv("ATIP_EXEC_SANDBOX") != "" && !p.imagined:
		return "off"
	case mode != "":
		return mode
	}
	return "auto"
}

// judged decides with what is known of undoing. The workspace is only looked at if it could
// make a difference.
func (p *judging) judged(req policy.Request) policy.Decision {
	plain := p.Policies.Decide(req)
	asks := p.Policies.AsksUndo()
	if p.UndoMode() == "off" || plain.Action == policy.Deny && !asks || plain.Action == policy.Allow && !asks {
		return plain
	}
	hoped := p.withUndo(req, undo.Coverage{Known: true, Whole: true})
	if best := p.Policies.Decide(hoped); best.Action <= plain.Action && !asks {
		return plain
	}
	if !p.Undo.surveyed {
		p.Undo.surveyed = true
		if p.imagined {
			p.Undo.Coverage = undo.Coverage{Known: true, Whole: true}
		} else if p.Undo.Coverage, p.Undo.Look, p.Undo.Problem = undo.Survey(p.UndoPlace()); p.Undo.Problem != nil {
			p.Undo.Coverage = undo.Coverage{}
		}
	}
	d := p.Policies.Decide(p.withUndo(req, p.Undo.Coverage))
	if d.Action > plain.Action || asks {
		p.Undo.Rests = true
	}
	return d
}

// withUndo returns the request with the fact of each step.
func (p *Plan) withUndo(req policy.Request, c undo.Coverage) policy.Request {
	steps := make([]policy.Step, len(req.Steps))
	for i, s := range req.Steps {
		s.Undo, s.Lost = p.UndoOf(&s, c)
		steps[i] = s
	}
	req.Steps = steps
	return req
}

// UndoOf says how far a step can be taken back: what it names if it is known to change no more
// than that, else whatever lies in the workspace, which is all that the sandbox lets it reach.
func (p *Plan) UndoOf(s *policy.Step, c undo.Coverage) (policy.Undo, []string) {
	if s.Confidence == policy.Opaque || s.RunsCode == policy.CodeOpaque || undo.Final(s.Call.Tool, s.Call.Path) || s.Call.Tool == "git" && p.elsewhere(s) {
		return policy.UndoNo, nil
	}
	var touched []undo.Touched
	created, replaced, itself := false, false, false
	everything := s.RunsCode != policy.CodeNone || s.Call.Exactness != atip.Exact
	for _, r := range s.Call.Resources {
		if r.Kind != "path" || r.Access&(atip.AccessWrite|atip.AccessDelete) == 0 {
			continue
		}
		itself = itself || r.Why != "redirection" // which says nothing of what the command destroys
		if r.Class == atip.ClassTmp {
			_, err := os.Lstat(r.Abs)
			created = created || os.IsNotExist(err)
			replaced = replaced || !os.IsNotExist(err)
			continue
		}
		switch r.Class {
		case atip.ClassWorkspace, atip.ClassWorkspaceTracked, atip.ClassWorkspaceRegenerable, atip.ClassWorkspaceVCS:
			if !strings.Contains(r.Abs, step.SomeName) {
				touched = append(touched, undo.Touched{Path: r.Abs})
				continue
			}
			// What is lost of all that it may name.
			top, means := step.KnownDir(r.Abs), step.Means(r.Abs)
			touched = append(touched, undo.Touched{Path: top + "/" + step.SomeName})
			for _, l := range c.Losses {
				if mayTake(top, means, l.Path) {
					touched = append(touched, undo.Touched{Path: l.Path})
				}
			}
		default:
			return policy.UndoNo, nil
		}
	}
	if len(touched) == 0 && created && itself && !replaced && !everything && s.Confidence == policy.Exact && s.Call.Tool != "git" && s.Call.Effects[atip.Network].Value == atip.No && s.Call.Effects[atip.Delete].Value == atip.No {
		// All that it could overwrite are temporary files that are not there, such as that of a new key.
		return policy.UndoYes, nil
	}
	if w := s.Call.Effects[atip.Write]; !itself && w.Value == atip.Yes && w.Source != "redirection" {
		everything = true // files that it does not name
	} else if !itself {
		touched = nil
	}
	if len(touched) == 0 && s.RunsCode == policy.CodeNone && s.Call.Tool != "git" {
		// What it destroys may be no file: a process, a container, a queue.
		return policy.UndoNo, nil
	}
	if everything || len(touched) == 0 {
		touched = []undo.Touched{{Path: p.World.Workspace}}
		for _, d := range p.World.GitDirs {
			touched = append(touched, undo.Touched{Path: d})
		}
	}
	fact, losses := c.Of(touched)
	var lost []string
	for _, l := range losses {
		if len(lost) == 8 {
			lost = append(lost, fmt.Sprintf("%d more", len(losses)-8))
			break
		}
		lost = append(lost, p.display1(l.Path)+" ("+l.Why.String()+")")
	}
	return [...]policy.Undo{policy.UndoNo, policy.UndoPartly, policy.UndoYes}[fact], lost
}

// mayTake reports whether one of the paths below top that means tells may be the lost one, hold it
// or lie in it.
func mayTake(top string, means func(string) bool, lost string) bool {
	if !subpath.Within(lost, top) {
		return subpath.Within(top, lost)
	}
	if info, err := os.Lstat(lost); err != nil || info.IsDir() {
		return true
	}
	for ; subpath.Within(lost, top); lost = filepath.Dir(lost) {
		if means(lost) {
			return true
		}
	}
	return false
}

// elsewhere reports whether git is led to another repository than that of the workspace.
func (p *Plan) elsewhere(s *policy.Step) bool {
	for _, o := range s.Call.Options {
		if o.Name == "git-dir" || o.Name == "work-tree" {
			return true
		}
	}
	dir := s.Cwd
	if dir == "" {
		dir = p.Cwd
	}
	if s.Call.Chdir != "" {
		dir = subpath.Join(dir, s.Call.Chdir)
	}
	return !subpath.Within(place.Resolve(dir), p.World.Workspace)
}

// display1 shows a path of the workspace as one would type it there.
func (p *Plan) display1(abs string) string {
	if rel, err := filepath.Rel(p.World.Workspace, abs); err == nil && subpath.Within(abs, p.World.Workspace) {
		return rel
	}
	return abs
}

// ChangesWorkspace reports whether the sandbox lets the run write in the workspace.
func (p *Plan) ChangesWorkspace() bool {
	return slices.ContainsFunc(p.Profile.Write, func(g sandbox.Grant) bool {
		return subpath.Within(g.Path, p.World.Workspace) || subpath.Within(p.World.Workspace, g.Path)
	})
}

// Destroys reports whether the words of a step delete or destroy.
func (p *Plan) Destroys() bool {
	for _, s := range p.Steps {
		e := &s.Call.Effects
		if e[atip.Delete].Value == atip.Yes || e[atip.Destructive].Value == atip.Yes {
			return true
		}
	}
	return false
}

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
	if f.Work.Closed {
		s.Call.Execs, s.Call.ExecsKnown = f.Work.Starts, true
	}
	// Its document says so (x-atip-fetch), of these words and of inputs without what would.
	s.Call.Effects[atip.ExecOpaque] = atip.Fact{Value: atip.No, Source: "fetches only", Rank: s.Call.Provenance.Rank}
	s.RunsCode = policy.CodeNone
}

// splits reports whether a fetching run can be had: it needs a list of hosts and a root of its own.
func (p *Plan) splits() bool {
	return p.Policies.FetchesDeclared() && p.Invocation.Fetching == nil && p.Invocation.Standing == nil && p.Invocation.Behalf == nil && p.apart() && !p.Inside() && p.Workspace != "" && p.Machine.Getenv("ATIP_EXEC_SANDBOX") == ""
}

// fetchApart decides once more for a run before which is fetched what its commands would fetch
// themselves, where that keeps it from asking: no step of it then has a host.
func (p *judging) fetchApart(req policy.Request) error {
	if p.Decision.Action == policy.Allow {
		return p.fetchBefore()
	}
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
	by := map[*fetch.Work]string{}
	for i, s := range steps {
		if s.Apart == nil {
			continue
		}
		w, why := fetch.Find(s.Split, cmp.Or(s.Fetcher, s.Argv[0]), p.fetchPlace(s))
		if why != "" {
			p.Warnings = append(p.Warnings, s.Call.Tool+": what the project declares is not fetched apart: "+why)
			return back()
		}
		s.RedirectedAs(s.Apart)
		p.Steps[i], req.Steps[i] = s.Apart, s.Apart.Step
		if !slices.ContainsFunc(works, w.Same) {
			works = append(works, w)
			by[w] = s.ID.Canonical
		}
	}
	p.works = works
	defer func() { p.works = nil }()
	p.Decision.Decision = p.judged(req)
	p.judgeHidden(req)
	p.judgeDoubt(req)
	if p.Decision.Action != policy.Allow || p.Decision.Grants.Net == policy.NetFull || p.Decision.Grants.Net == policy.NetAllowlist {
		return back()
	}
	for _, w := range works {
		allowed, err := p.mayFetch(w, by[w])
		if err != nil || !allowed {
			p.Decision, p.Steps = whole, steps
			return err
		}
	}
	p.Fetches = works
	return p.fetchBefore()
}

// fetchBefore adds what builds of an allowed run need, if it was not fetched yet. They run without it as
// well, and then say what they lack.
func (p *judging) fetchBefore() error {
	if p.Decision.Grants.Net == policy.NetFull || p.Decision.Grants.Net == policy.NetAllowlist || p.imagined {
		return nil
	}
	for _, s := range p.Steps {
		if s.Before == nil {
			continue
		}
		w, _ := fetch.Find(s.Before, s.Argv[0], p.fetchPlace(s))
		if w == nil || slices.ContainsFunc(p.Fetches, w.Same) {
			continue
		}
		allowed, err := p.mayFetch(w, s.ID.Canonical)
		if err != nil {
			return err
		}
		if allowed {
			p.Fetches = append(p.Fetches, w)
		}
	}
	return nil
}

// fetchPlace is where a step would fetch.
func (p *judging) fetchPlace(s *step.Step) fetch.Place {
	return fetch.Place{Dir: filepath.Clean(s.Cwd), Top: p.Workspace, Home: p.Dirs.Home, Getenv: p.Machine.Getenv, Listed: p.listsHost,
		Done: func(name string) bool { return fetch.Done(p.Private, name) }}
}

// fetched reports a step for which one of these runs fetches.
func (p *judging) fetched(s *step.Step) bool {
	return s.Apart != nil && slices.ContainsFunc(p.works, func(w *fetch.Work) bool {
		return subpath.Within(filepath.Clean(s.Cwd), w.Dir) && w.Argv[0] == cmp.Or(s.Fetcher, s.Argv[0]) && slices.Equal(w.Argv[1:], s.Split.Words)
	})
}

// mayFetch decides about one fetching run, which the program in the file by makes.
func (p *judging) mayFetch(w *fetch.Work, by string) (bool, error) {
	w.By = by
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
	argv := slices.Clone(w.Argv)
	for i := range argv[1:] {
		argv[i+1] = strings.ReplaceAll(argv[i+1], "${DIR}", dir)
	}
	return Invocation{Argv: argv, Directory: dir, Stdin: "null", CI: p.Invocation.CI, Policies: p.Invocation.Policies, Profiles: p.Invocation.Profiles, Timeout: p.Invocation.Timeout, Version: p.Invocation.Version,
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
