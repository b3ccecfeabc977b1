package staging

import (
	"os"
	"path/filepath"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/sandbox"
)

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
			if r.Kind != "path" || r.Access&atip.AccessWrite == 0 || r.Class != atip.ClassTmp || filepath.Dir(path) != plan.TemporaryDir || !plan.OpensFile(s) || share.Skip(path) || share.Secret(path) {
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

// lookAtTmp brings in what is new in the machine's /tmp while the run is still being prepared,
// so that the directory must be held before the run holds it: "sandbox clean" removes it.
func (x *Staging) lookAtTmp() (err error) {
	if x.tmpHeld, err = sandbox.HoldPrivate(x.plan.Private); err != nil {
		return err
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
				written[filepath.Clean(r.Abs)] = true
			}
		}
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
