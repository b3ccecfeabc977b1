package staging

import (
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// makeSettings makes the run's own copy of the judged settings, just before it starts.
func (x *Staging) makeSettings() error {
	r := x.plan.Rights
	if len(r.Hooks) > 0 {
		x.warn("hooks of this repository do not run in a command that has network or credentials: " + strings.Join(r.Hooks, ", "))
	}
	if r.Settings == nil {
		return nil
	}
	var err error
	if x.copy, err = r.Settings.Copy(r.Scratch); err != nil {
		return fault.New(errcode.OutOfResources, "the settings of the repository cannot be copied: "+err.Error())
	}
	return nil
}

// returnSettings brings back what the run has made of its copy.
func (x *Staging) returnSettings() {
	if x.copy == nil {
		return
	}
	if x.started {
		if err := x.copy.Return(); err != nil {
			x.warn(err.Error())
		}
	}
	x.copy.Remove()
	x.copy = nil
}
