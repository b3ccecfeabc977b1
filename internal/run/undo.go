package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/internal/undo"
	"github.com/atip-dev/atip-exec/policy"
)

// undoing is what a plan knows about taking its run back.
type undoing struct {
	surveyed bool
	coverage undo.Coverage
	rests    bool // the decision would be another without a whole checkpoint
	before   *undo.Checkpoint
	counts   *undo.Counts
	problem  error
}

// UndoPlace is the workspace of the current directory, with the limits of its policy, as
// package undo takes it. why says why there is none.
func UndoPlace(m Machine, dir string) (at undo.Place, err error) {
	p := newPlan(Invocation{Directory: dir}, m)
	defer p.Close()
	if err := stages(p.locate, p.loadPolicy); err != nil {
		return at, err
	}
	if p.Workspace == "" {
		return at, fault.New(errcode.NoInputFile, "no workspace here: "+p.noWorkspace).WithFix("go to a directory of your project", "")
	}
	return p.undoPlace(), nil
}

func (p *Plan) undoPlace() undo.Place {
	u, l := p.policies.Undo(), undo.Defaults()
	if u.MaxBytes > 0 {
		l.Bytes, l.All = u.MaxBytes, max(l.All, u.MaxBytes)
	}
	if u.MaxAge > 0 {
		l.Age = u.MaxAge
	}
	at := undo.Place{Root: p.world.Workspace, Base: p.dirs.Undo(), UID: p.machine.UID, Limits: l, Exclude: u.Exclude, Recreatable: p.world.Recreatable}
	for _, d := range p.world.GitDirs {
		if !subpath.Within(d, at.Root) {
			at.GitDirs = append(at.GitDirs, d)
		}
	}
	return at
}

// undoMode is when checkpoints are made: "auto", "always" or "off". A run inside another
// one is part of what that one's checkpoint covers, and reaches no store.
func (p *Plan) undoMode() string {
	switch mode := p.policies.Undo().Mode; {
	case p.Workspace == "" || p.inside() || p.machine.Getenv("ATIP_EXEC_SANDBOX") != "" && !p.imagined:
		return "off"
	case mode != "":
		return mode
	}
	return "auto"
}

// judged decides with what is known of undoing. The workspace is only looked at if it could
// make a difference.
func (p *Plan) judged(req policy.Request) policy.Decision {
	plain := p.policies.Decide(req)
	asks := p.policies.AsksUndo()
	if p.undoMode() == "off" || plain.Action == policy.Deny && !asks || plain.Action == policy.Allow && !asks {
		return plain
	}
	hoped := p.withUndo(req, undo.Coverage{Known: true, Whole: true})
	if best := p.policies.Decide(hoped); best.Action <= plain.Action && !asks {
		return plain
	}
	if !p.undo.surveyed {
		p.undo.surveyed = true
		if p.imagined {
			p.undo.coverage = undo.Coverage{Known: true, Whole: true}
		} else if p.undo.coverage, p.undo.problem = undo.Survey(p.undoPlace()); p.undo.problem != nil {
			p.undo.coverage = undo.Coverage{}
		}
	}
	d := p.policies.Decide(p.withUndo(req, p.undo.coverage))
	if d.Action > plain.Action || asks {
		p.undo.rests = true
	}
	return d
}

// withUndo returns the request with the fact of each step.
func (p *Plan) withUndo(req policy.Request, c undo.Coverage) policy.Request {
	steps := make([]policy.Step, len(req.Steps))
	for i, s := range req.Steps {
		s.Undo, s.Lost = p.undoOf(&s, c)
		steps[i] = s
	}
	req.Steps = steps
	return req
}

// undoOf says how far a step can be taken back: what it names if it is known to change no more
// than that, else whatever lies in the workspace, which is all that the sandbox lets it reach.
func (p *Plan) undoOf(s *policy.Step, c undo.Coverage) (policy.Undo, []string) {
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
			if !strings.Contains(r.Abs, effects.SomeName) {
				touched = append(touched, undo.Touched{Path: r.Abs})
				continue
			}
			// What is lost of all that it may name.
			top, means := effects.KnownDir(r.Abs), effects.Means(r.Abs)
			touched = append(touched, undo.Touched{Path: top + "/" + effects.SomeName})
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
		touched = []undo.Touched{{Path: p.world.Workspace}}
		for _, d := range p.world.GitDirs {
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
	return !subpath.Within(place.Resolve(dir), p.world.Workspace)
}

// display1 shows a path of the workspace as one would type it there.
func (p *Plan) display1(abs string) string {
	if rel, err := filepath.Rel(p.world.Workspace, abs); err == nil && subpath.Within(abs, p.world.Workspace) {
		return rel
	}
	return abs
}

// changesWorkspace reports whether the sandbox lets the run write in the workspace.
func (p *Plan) changesWorkspace() bool {
	for _, g := range p.Profile.Write {
		if subpath.Within(g.Path, p.world.Workspace) || subpath.Within(p.world.Workspace, g.Path) {
			return true
		}
	}
	return false
}

// checkpoint saves the workspace before a run that may change it. Only a run whose decision
// rests on it does not start without.
func (x *execution) checkpoint() error {
	p := x.plan
	mode := p.undoMode()
	if mode == "off" || !p.changesWorkspace() {
		return nil
	}
	refuse := func(why string) error {
		return fault.New(errcode.CheckpointFailed, Quote(x.cleanAll(p.inv.words()))+" was not started, because it was allowed only as it could be undone: "+why).WithFix("make room or name fewer files, and try again", "")
	}
	at := p.undoPlace()
	s, err := undo.Open(at, true)
	if err == nil {
		defer s.Close()
		r := undo.Run{Run: p.Run, Cmd: x.clean(Quote(p.inv.words())), Cwd: p.Cwd}
		lazy := mode != "always" && !p.undo.rests && !p.destroys()
		p.undo.before, err = s.Before(r, lazy)
	}
	if err != nil {
		p.undo.problem = err
		if p.undo.rests {
			return refuse(err.Error())
		}
		var refused *undo.Error
		if errors.As(err, &refused) && refused.Refused() {
			x.warn("no checkpoint: " + err.Error())
		}
		return nil
	}
	if p.undo.rests {
		c := undo.Coverage{Known: true, Whole: p.undo.before.Whole, Losses: p.undo.before.Losses}
		for _, s := range p.steps {
			was, _ := p.undoOf(&s.Step, p.undo.coverage)
			if now, lost := p.undoOf(&s.Step, c); now < was {
				return refuse(fmt.Sprint("not covered now: ", lost))
			}
		}
	}
	return nil
}

// destroys reports whether the words of a step delete or destroy.
func (p *Plan) destroys() bool {
	for _, s := range p.steps {
		e := &s.Call.Effects
		if e[atip.Delete].Value == atip.Yes || e[atip.Destructive].Value == atip.Yes {
			return true
		}
	}
	return false
}

// noteChanges notes what the run left, so that it can be told from what others do later.
func (x *execution) noteChanges() {
	p := x.plan
	if p.undo.before == nil || p.undo.before.Shared {
		return
	}
	s, err := undo.Open(p.undoPlace(), true)
	if err == nil {
		defer s.Close()
		var n undo.Counts
		if n, err = s.After(p.Run, p.undo.before.Seq); err == nil {
			p.undo.counts = &n
			s.Tidy(time.Now())
		}
	}
	if err != nil {
		p.undo.problem = err
	}
}

// undoRecord is what the audit keeps of the checkpoint.
func (p *Plan) undoRecord() map[string]any {
	if p.undo.before == nil && p.undo.problem == nil {
		return nil
	}
	rec := map[string]any{}
	if b := p.undo.before; b != nil {
		rec["checkpoint"] = b.Seq
		if b.Shared {
			rec["shared"] = true
		}
		if len(b.Losses) > 0 {
			rec["not_covered"] = b.Losses[:min(len(b.Losses), 16)]
		}
	}
	if p.undo.counts != nil {
		rec["changed"] = p.undo.counts
	}
	if p.undo.problem != nil {
		rec["error"] = p.undo.problem.Error()
	}
	return rec
}
