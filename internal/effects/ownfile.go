package effects

import (
	"os"
	"slices"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// ownFile lets a file of the workspace that is called like a secret be one like others where the
// text itself makes it of what is none: it holds no secret from elsewhere. content is what a
// redirection writes, if that is constant.
func (c *collector) ownFile(s *step.Step, r *atip.Resource, content *string) {
	if r.Kind != "path" || r.Class != atip.ClassSecret || r.Recursive || c.peeking || !subpath.Within(r.Abs, c.site.Workspace) {
		return
	}
	if _, err := os.Lstat(r.Abs); !os.IsNotExist(err) {
		return
	}
	makes := r.Access == atip.AccessWrite && len(c.writers[r.Abs]) == 0 && (content != nil || c.copiesPlain(s, r.Abs))
	if makes || c.madeOwn(r.Abs) {
		r.Class = atip.ClassWorkspace
	}
}

// madeOwn reports that all that was written to a file so far is the text's own, and that nothing
// between could have put another in its place.
func (c *collector) madeOwn(abs string) bool {
	list := c.writers[abs]
	if len(list) == 0 {
		return false
	}
	for _, w := range list {
		if w.content == nil && !c.copiesPlain(w.by, abs) && !step.EditsPlain(w.by) {
			return false
		}
	}
	first := slices.Index(c.steps, list[0].by)
	if first < 0 {
		return false
	}
	for _, s := range c.steps[first+1:] {
		if s.RunsCode != policy.CodeNone || s.Confidence == policy.Opaque {
			return false
		}
		switch s.Call.Tool {
		case "cp", "mv", "tee", "touch", "mkdir", "rm", "sed", "chmod", "echo", "printf", "cat":
		default:
			if s.Call.Effects[atip.Write].Value != atip.No {
				return false
			}
		}
	}
	return true
}

// copiesPlain reports a cp or touch of files of the workspace that are no secrets.
func (c *collector) copiesPlain(s *step.Step, to string) bool {
	if s.Call.Tool != "cp" && s.Call.Tool != "touch" || s.Confidence != policy.Exact || s.Call.Exactness != atip.Exact {
		return false
	}
	others := 0
	for _, r := range s.Call.Resources {
		if r.Abs == to {
			continue
		}
		others++
		switch r.Class {
		case atip.ClassWorkspace, atip.ClassWorkspaceTracked, atip.ClassWorkspaceRegenerable:
		default:
			return false
		}
		if len(c.writers[r.Abs]) > 0 {
			return false
		}
	}
	return others > 0 == (s.Call.Tool == "cp")
}
