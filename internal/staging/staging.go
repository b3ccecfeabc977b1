// Package staging holds what a run needs brought to it before its command starts and put back when the
// command has ended: the files of the machine's /tmp, the judged settings of a repository, the modes of
// our own files, and the checkpoint of the workspace.
package staging

import (
	"io/fs"
	"os"
	"sync"

	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/plan"
)

// Staging is that of one run.
type Staging struct {
	plan    *plan.Plan
	warn    func(string)
	clean   func(string) string
	started bool // the command was

	copy    *gitrepo.Copy // of the settings that were judged
	tmpIn   func() error  // brings the machine's /tmp in, once
	tmpHeld *os.File      // locks where to until the run does; nil where there is no lock
	modes   map[string]fs.FileMode
	saved   checkpointed
	undone  []func()
}

// Begin starts what takes time and needs no decision to be written down first.
func Begin(p *plan.Plan, warn func(string), clean func(string) string) *Staging {
	x := &Staging{plan: p, warn: warn, clean: clean}
	if p.SharesTmp() {
		x.tmpIn = sync.OnceValue(x.lookAtTmp)
		go x.tmpIn()
		x.undone = append(x.undone, func() {
			x.tmpIn() // not cut short by an early end
			x.tmpHeld.Close()
		})
	}
	return x
}

// Make makes what must be there when the command starts.
func (x *Staging) Make() error {
	unmade, err := x.makeTmpNames()
	x.undone = append(x.undone, unmade)
	if err != nil {
		return err
	}
	if err := x.makeSettings(); err != nil {
		return err
	}
	x.undone = append(x.undone, x.returnSettings)
	if err := x.checkpoint(); err != nil {
		return err
	}
	x.modes = ownModes(x.plan)
	return nil
}

// Started says that the command runs: what it leaves counts.
func (x *Staging) Started() {
	x.started = true
	x.undone = append(x.undone, x.noteChanges)
}

// Ended puts back what the command has left, once nothing of it runs any more.
func (x *Staging) Ended() {
	x.returnTmp()
	x.settleModes(x.modes)
}

// Close undoes what was made, the last first.
func (x *Staging) Close() {
	for i := len(x.undone) - 1; i >= 0; i-- {
		x.undone[i]()
	}
	x.undone = nil
}
