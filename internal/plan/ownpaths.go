package plan

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/advice"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
)

// OwnPath is a path of our own command line. This program opens it with the rights of the
// user, outside of any sandbox, so it is judged like a redirection of the call.
type OwnPath struct {
	Name   string // of the flag or argument: "--status-file"
	Value  string
	Access atip.Access
}

// ownStep is what this program itself does for a call: it reads and writes paths.
func (p *Plan) ownStep(words []string, paths []OwnPath) *step.Step {
	resources := make([]atip.Resource, len(paths))
	for i, path := range paths {
		resources[i] = atip.Resource{Kind: "path", Value: path.Value, Access: path.Access, Why: path.Name}
	}
	return p.site().OwnStep(words, resources)
}

// judgeOwn judges what our own flags read and write. The stricter judgement counts, for the
// whole call; nothing of it is granted to the command.
func (p *judging) judgeOwn(req policy.Request) {
	if len(p.Invocation.Paths) == 0 {
		return
	}
	words := []string{"atip-exec"}
	for _, path := range p.Invocation.Paths {
		words = append(words, path.Name, path.Value)
	}
	own := p.ownStep(words, p.Invocation.Paths)
	for _, r := range own.Call.Resources {
		p.ownFiles = append(p.ownFiles, r.Abs)
	}
	p.OwnJudged = true
	if p.Inside() {
		return // the sandbox around this program holds it to what the parent run was granted
	}
	req.Steps, req.Edges, req.Ceiling = []policy.Step{own.Step}, nil, nil
	req.Enforce = policy.Enforce{Files: true, Net: true, Secrets: true} // it does this and nothing else
	d := p.Policies.Decide(req)
	p.OwnRefused = d.Action != policy.Allow
	if d.Action >= p.Decision.Action {
		return
	}
	p.Decision.Action, p.Decision.Grants = d.Action, policy.Grants{}
	for _, r := range d.Reasons {
		if r.Action == d.Action {
			r.Text, r.Step = quote.Words(words[1:])+": "+r.Text, 0
			p.Decision.Reasons = append(p.Decision.Reasons, r)
		}
	}
}

// JudgeVerb judges what a verb is about to do with the paths it was given, as a command would
// be judged that did it.
func JudgeVerb(m caller.Machine, words []string, paths []OwnPath, effects ...atip.Effect) error {
	p := New(Invocation{Argv: words}, m)
	defer p.Close()
	if err := stages(p.settle, p.probe); err != nil {
		return err
	}
	if p.Inside() {
		return nil // as in judgeOwn
	}
	s := p.ownStep(words, paths)
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") {
			s.Call.Path = append(s.Call.Path, w)
		}
	}
	for _, e := range effects {
		s.Call.Effects[e].Value = atip.Yes
	}
	d := p.Policies.Decide(policy.Request{Steps: []policy.Step{s.Step}, Enforce: policy.Enforce{Files: true, Net: true, Secrets: true}, Agent: p.Agent(), Session: p.SessionLabel(), CI: p.InCI(), Workspace: p.Workspace, Cwd: p.Cwd, Now: p.Began})
	if d.Action == policy.Allow {
		return nil
	}
	var why, rules []string
	for _, r := range d.Reasons {
		if r.Action == d.Action && !slices.Contains(rules, r.Rule) {
			rules = append(rules, r.Rule)
			_, text, ok := strings.Cut(r.Text, ": ")
			if !ok {
				text = r.Text
			}
			why = append(why, text)
		}
	}
	code, what := errcode.ApprovalRequired, "approval required: "
	if d.Action == policy.Deny {
		code, what = errcode.Denied, "denied: "
	}
	return fault.New(code, what+advice.Sentence(quote.Words(words), strings.Join(why, "; "))+" ("+strings.Join(rules, ", ")+")").With("decision", d.Action).With("rules", rules).
		WithFix("name paths of the workspace, or type it on your own terminal", "")
}

// StatusClass says why no status may be written at a path where no policy was asked, "" if one
// may: where runs write anyway, and in place of an older status.
func (at Place) StatusClass(file string) string {
	if at.World.Cwd == "" {
		return "it is not known where it lies"
	}
	real := place.Resolve(file)
	switch at.World.Classify(real, atip.AccessWrite, false) {
	case atip.ClassTmp, atip.ClassWorkspace, atip.ClassWorkspaceTracked, atip.ClassWorkspaceRegenerable:
		return ""
	case atip.ClassOutside:
		if status.Older(real) {
			return ""
		}
		return "no policy was asked about it"
	}
	return "it is a place that no command may write"
}

// PathOf is the value of a flag as it was judged.
func (p *Plan) PathOf(value string) string {
	for _, path := range p.Invocation.Paths {
		if path.Value == value || filepath.Base(path.Value) == filepath.Base(value) && path.Name == "--stdin" {
			return path.Value
		}
	}
	return value
}

// JudgedOwn reports whether the judgement was about the file of this name. f.Fd of a deleted
// file has another name, which is refused too.
func (p *Plan) JudgedOwn(name string) bool {
	for _, abs := range p.ownFiles {
		if abs == name {
			return true
		}
	}
	return false
}
