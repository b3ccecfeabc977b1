package plan

import (
	"github.com/atip-dev/atip-exec/internal/advice"
	"github.com/atip-dev/atip-exec/internal/place"
)

// Unregistered says what is missing where nothing in the current directory may be written
// because there is no workspace, and what to do; both are "" if there is one.
func (p *Plan) Unregistered() (why, fix string) {
	switch {
	case p.NoWorkspace == "":
		return "", ""
	case place.CanRegister(p.Cwd, p.Dirs, p.Machine.UID) != "":
		return "there is no workspace here: " + p.NoWorkspace, "go to a directory of your project, or use $TMPDIR"
	}
	return "there is no workspace here: " + p.NoWorkspace, "have it registered: `atip workspace add .` on a terminal in this directory; or use $TMPDIR"
}

// refusal is what the wording of the decision rests on.
func (p *Plan) refusal() *advice.Refusal {
	return &advice.Refusal{Decision: p.Decision.Decision, Steps: p.Steps, Workspace: p.Workspace, Home: p.Dirs.Home, Moves: len(p.movers()) > 0}
}
