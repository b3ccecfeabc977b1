package effects

import (
	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
)

// derived reports a step that makes a file out of files of the workspace alone, none of which came
// from elsewhere in this text: what it makes is code of the workspace, as they are.
func (c *collector) derived(s *step.Step, depth int) bool {
	switch s.Call.Tool {
	case "strip", "ranlib", "cp", "mv", "install":
	default:
		return false
	}
	if depth > maxPeekDepth || s.Confidence != policy.Exact || s.Call.Exactness != atip.Exact || s.RunsCode != policy.CodeNone || s.Call.Effects[atip.Network].Value != atip.No {
		return false
	}
	for _, r := range s.Call.Resources {
		switch r.Class {
		case atip.ClassWorkspace, atip.ClassWorkspaceTracked, atip.ClassWorkspaceRegenerable:
		default:
			return false
		}
		for _, w := range c.writers[r.Abs] {
			if w.by != s && !c.codeOfWorkspace(w, depth+1) {
				return false
			}
		}
	}
	return len(s.Call.Resources) > 0
}

// codeOfWorkspace reports a file that a step of the text made out of the workspace's own.
func (c *collector) codeOfWorkspace(w written, depth int) bool {
	return step.Builds(w.by) && w.by.Call.Effects[atip.Network].Value != atip.Yes || c.derived(w.by, depth)
}
