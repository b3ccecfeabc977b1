// Package staging holds what a run needs brought to it before its command starts and put back when the
// command has ended: the files of the machine's /tmp, the judged settings of a repository, the modes of
// our own files, and the checkpoint of the workspace.
package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/internal/undo"
	"github.com/atip-dev/atip-exec/sandbox"
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

// maxOwnModes bounds how many files of our configuration are looked at.
const maxOwnModes = 64

// ownModes are the modes of our directories and of the files of our configuration. Below T3 a run
// that may write in the workspace can change them, as it can those of all files of its user.
func ownModes(p *plan.Plan) map[string]fs.FileMode {
	if tier := p.Setup.Tier(); tier == sandbox.T3 || tier == sandbox.T0 || p.Inside() || !p.Profile.HostWrite {
		return nil
	}
	out := map[string]fs.FileMode{}
	paths := []string{p.Dirs.Config, p.Dirs.Data, p.Dirs.State}
	if list, err := os.ReadDir(p.Dirs.Config); err == nil {
		for _, e := range list[:min(len(list), maxOwnModes)] {
			paths = append(paths, filepath.Join(p.Dirs.Config, e.Name()))
		}
	}
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil && (info.IsDir() || info.Mode().IsRegular()) {
			out[path] = info.Mode()
		}
	}
	return out
}

// settleModes puts back the modes that a run has changed, and says so. No run can put another file
// or a link in the place of one of these.
func (x *Staging) settleModes(before map[string]fs.FileMode) {
	for _, path := range slices.Sorted(maps.Keys(before)) { // a directory before what lies in it
		mode := before[path]
		info, err := os.Lstat(path)
		if err != nil || info.Mode() == mode || info.Mode().Type() != mode.Type() {
			continue
		}
		text := "the mode of " + path + " was changed to " + info.Mode().String() + " during the run; "
		if err := os.Chmod(path, mode); err != nil {
			x.warn(text + "it could not be put back: " + err.Error() + " [" + errcode.ProtectedChanged + "]")
			continue
		}
		x.warn(text + "it was put back to " + mode.String() + " [" + errcode.ProtectedRestored + "]")
	}
}

// makeTmpNames makes the files that the call was permitted to write in the machine's /tmp and that
// are not there yet, where a run has no /tmp of its own: the kernel can grant a file, but not to
// make one of that name and no other. It returns what to do when the run has ended.
func (x *Staging) makeTmpNames() (done func(), err error) {
	p, share := x.plan, x.plan.Share()
	done = func() {}
	if !p.NamesInTmp() {
		return done, nil
	}
	var made []os.FileInfo
	var names []string
	for _, s := range p.Steps {
		for _, r := range s.Call.Resources {
			path := filepath.Clean(r.Abs)
			if r.Kind != "path" || r.Access&atip.AccessWrite == 0 || r.Class != atip.ClassTmp || filepath.Dir(path) != plan.TemporaryDir || !step.OpensFile(s) || share.Skip(path) || share.Secret(path) {
				continue
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				continue // it is there
			}
			info, err := f.Stat()
			f.Close()
			if err == nil {
				made, names = append(made, info), append(names, path)
			}
		}
	}
	if len(names) == 0 {
		return done, nil
	}
	done = func() {
		for i, path := range names {
			if now, err := os.Lstat(path); err == nil && os.SameFile(now, made[i]) && now.Size() == 0 && now.ModTime().Equal(made[i].ModTime()) {
				os.Remove(path) // the command did not write it
			}
		}
	}
	return done, p.ConfineAgain()
}

// brings reports whether this run itself brings in what is new in the machine's /tmp, and out what it leaves
// there. An own step has the /tmp of its text, whose run has brought it in and will bring it out.
func (x *Staging) brings() bool {
	s := x.plan.Invocation.Standing
	return s == nil || s.Tmp != x.plan.Private
}

// lookAtTmp brings in what is new in the machine's /tmp while the run is still being prepared,
// so that the directory must be held before the run holds it: "sandbox clean" removes it.
func (x *Staging) lookAtTmp() (err error) {
	if x.tmpHeld, err = sandbox.HoldPrivate(x.plan.Private); err != nil {
		return err
	}
	if !x.brings() {
		return nil
	}
	return x.plan.Share().In()
}

// BringTmp makes the private /tmp hold what the user's own programs have put into the
// machine's. Without it the run goes on with what there is.
func (x *Staging) BringTmp() {
	if err := x.tmpIn(); err != nil {
		x.warn("/tmp of the machine could not be looked at: " + err.Error())
	}
}

// maxTmpTold is how many names are told that a run has left in its own /tmp only.
const maxTmpTold = 5

// returnTmp puts what the run has left in /tmp where other programs of the user find it.
func (x *Staging) returnTmp() {
	p := x.plan
	if !p.SharesTmp() {
		return
	}
	written := map[string]bool{}
	for _, s := range p.Steps {
		for _, r := range s.Call.Resources {
			if r.Kind == "path" && (r.Access&atip.AccessWrite != 0 && p.Decision.Grants.Effects.Has(atip.Write) || r.Access&atip.AccessDelete != 0 && p.Decision.Grants.Effects.Has(atip.Delete)) {
				if path := filepath.Clean(r.Abs); subpath.Within(path, plan.TemporaryDir) {
					written[path] = true
				}
			}
		}
	}
	if !x.brings() && len(written) == 0 {
		return
	}
	mounted := map[string]bool{}
	for _, list := range [...][]sandbox.Grant{p.Profile.Read, p.Profile.Write, p.Profile.Exec} {
		for _, g := range list {
			mounted[g.Path] = true
		}
	}
	left, err := p.Share().Out(func(path string) bool { return written[path] }, func(path string) bool { return mounted[path] })
	if err != nil {
		x.warn("only runs of this workspace see files that the run left in /tmp: " + err.Error())
	}
	for i, l := range left {
		if i == maxTmpTold {
			x.warn("more files in /tmp were changed for runs of this workspace only")
			break
		}
		x.warn(filepath.Join(plan.TemporaryDir, l.Name) + " was changed for runs of this workspace only: " + l.Why)
	}
}

// checkpointed is what came of the checkpoint of a run.
type checkpointed struct {
	before  *undo.Checkpoint
	counts  *undo.Counts
	problem error
}

// checkpoint saves the workspace before a run that may change it. Only a run whose decision
// rests on it does not start without.
func (x *Staging) checkpoint() error {
	p := x.plan
	defer p.Undo.Look.Drop()
	mode := p.UndoMode()
	if mode == "off" || !p.ChangesWorkspace() {
		return nil
	}
	refuse := func(why string) error {
		return fault.New(errcode.CheckpointFailed, quote.Words(marshal.CleanAll(p.Invocation.Words(), x.clean))+" was not started, because it was allowed only as it could be undone: "+why).WithFix("make room or name fewer files, and try again", "")
	}
	at := p.UndoPlace()
	s, err := undo.Open(at, true)
	if err == nil {
		defer s.Close()
		r := undo.Run{Run: p.Run, Cmd: x.clean(quote.Words(p.Invocation.Words())), Cwd: p.Cwd}
		lazy := mode != "always" && !p.Undo.Rests && !p.Destroys()
		s.Take(p.Undo.Look)
		x.saved.before, err = s.Before(r, lazy)
	}
	if err != nil {
		x.saved.problem = err
		if p.Undo.Rests {
			return refuse(err.Error())
		}
		var refused *undo.Error
		if errors.As(err, &refused) && refused.Refused() {
			x.warn("no checkpoint: " + err.Error())
		}
		return nil
	}
	if p.Undo.Rests {
		c := undo.Coverage{Known: true, Whole: x.saved.before.Whole, Losses: x.saved.before.Losses}
		for _, s := range p.Steps {
			was, _ := p.UndoOf(&s.Step, p.Undo.Coverage)
			if now, lost := p.UndoOf(&s.Step, c); now < was {
				return refuse(fmt.Sprint("not covered now: ", lost))
			}
		}
	}
	return nil
}

// noteChanges notes what the run left, so that it can be told from what others do later.
func (x *Staging) noteChanges() {
	p := x.plan
	if x.saved.before == nil || x.saved.before.Shared {
		return
	}
	s, err := undo.Open(p.UndoPlace(), true)
	if err == nil {
		defer s.Close()
		var n undo.Counts
		if n, err = s.After(p.Run, x.saved.before.Seq); err == nil {
			x.saved.counts = &n
			s.Tidy(time.Now())
		}
	}
	if err != nil {
		x.saved.problem = err
	}
}

// Record is what the audit keeps of the checkpoint.
func (x *Staging) Record() map[string]any {
	problem := x.saved.problem
	if problem == nil {
		problem = x.plan.Undo.Problem
	}
	if x.saved.before == nil && problem == nil {
		return nil
	}
	rec := map[string]any{}
	if b := x.saved.before; b != nil {
		rec["checkpoint"] = b.Seq
		if b.Shared {
			rec["shared"] = true
		}
		if len(b.Losses) > 0 {
			rec["not_covered"] = b.Losses[:min(len(b.Losses), 16)]
		}
	}
	if x.saved.counts != nil {
		rec["changed"] = x.saved.counts
	}
	if problem != nil {
		rec["error"] = problem.Error()
	}
	return rec
}
