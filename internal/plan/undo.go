package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/internal/undo"
	"github.com/atip-dev/atip-exec/policy"
)

// Undoing is what a plan knows about taking its run back.
type Undoing struct {
	surveyed bool
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
		} else if p.Undo.Coverage, p.Undo.Problem = undo.Survey(p.UndoPlace()); p.Undo.Problem != nil {
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
	if s.Confidence == policy.Opaque || s.RunsCode == policy.CodeOpaque || undo.Final(s.Call.Tool, s.Call.Path) {
		return policy.UndoNo, nil
	}
	if s.Call.Tool == "git" && p.elsewhere(s) {
		return policy.UndoNo, nil
	}
	var touched []undo.Touched
	everything := s.RunsCode != policy.CodeNone || s.Call.Exactness != atip.Exact
	for _, r := range s.Call.Resources {
		if r.Kind != "path" || r.Access&(atip.AccessWrite|atip.AccessDelete) == 0 || r.Class == atip.ClassTmp {
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
	for _, g := range p.Profile.Write {
		if subpath.Within(g.Path, p.World.Workspace) || subpath.Within(p.World.Workspace, g.Path) {
			return true
		}
	}
	return false
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
