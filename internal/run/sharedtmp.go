package run

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/internal/tmpshare"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// temporaryDir is the directory of the machine that a private root covers.
const temporaryDir = "/tmp"

// share says how the private /tmp of this workspace and the machine's are kept in step.
func (p *Plan) share() tmpshare.Share {
	apart := append([]string{p.Workspace, p.dirs.Home, p.private, p.dirs.Config, p.dirs.Data, p.dirs.State, p.dirs.Cache, p.dirs.Runtime}, p.gitDirs...)
	apart = append(append(apart, p.programs()...), filepath.SplitList(p.machine.Getenv("PATH"))...)
	if p.Workspace == "" && p.Cwd != temporaryDir {
		apart = append(apart, p.Cwd)
	}
	var within []string // what can be met in /tmp
	for _, path := range apart {
		// These are the same directory inside, so that a workspace below them has a name in it.
		for _, dir := range [...]string{"/var/tmp/", "/dev/shm/"} {
			if rest, ok := strings.CutPrefix(path, dir); ok {
				path = filepath.Join(temporaryDir, rest)
			}
		}
		if path != "" && (subpath.Within(path, temporaryDir) || subpath.Within(temporaryDir, path)) {
			within = append(within, path)
		}
	}
	return tmpshare.Share{
		Host: temporaryDir, Inside: filepath.Join(p.private, "tmp"), Books: filepath.Join(p.dirs.Cache, "tmp"), ID: filepath.Base(p.private), UID: p.machine.UID,
		Skip: func(path string) bool {
			for _, other := range within {
				if subpath.Within(other, path) || subpath.Within(path, other) {
					return true
				}
			}
			return false
		},
		Secret: func(path string) bool { return p.world.Classify(path, atip.AccessRead, false) == atip.ClassSecret },
	}
}

// mirrored reports a path of which the private /tmp has, or will have when the run starts, what
// the run sees under it. Anything else that a call names there is brought in by itself.
func (p *Plan) mirrored(share tmpshare.Share) func(path string) bool {
	return func(path string) bool {
		if _, err := os.Lstat(path); err != nil {
			return true // what is made there is made inside
		}
		return share.Copies(path)
	}
}

// maxTmpFiles bounds what a run without a private root is granted of the machine's /tmp, a rule
// each. What the call names is granted anyway.
const maxTmpFiles = 24

// runsCode reports whether the run may open what its words do not name.
func (p *Plan) runsCode() bool {
	for _, s := range p.steps {
		if s.RunsCode != policy.CodeNone || s.Call.Provenance.Rank < atip.Org {
			return true
		}
	}
	return false
}

// makeTmpNames makes the files that the call was permitted to write in the machine's /tmp and that
// are not there yet, where a run has no /tmp of its own: the kernel can grant a file, but not to
// make one of that name and no other. It returns what to do when the run has ended.
func (x *execution) makeTmpNames() (done func(), err error) {
	p, share := x.plan, x.plan.share()
	done = func() {}
	if !p.tmpByName() {
		return done, nil
	}
	var made []os.FileInfo
	var names []string
	for _, s := range p.steps {
		for _, r := range s.Call.Resources {
			path := filepath.Clean(r.Abs)
			if r.Kind != "path" || r.Access&atip.AccessWrite == 0 || r.Class != atip.ClassTmp || filepath.Dir(path) != temporaryDir || !opensFile(s) || share.Skip(path) || share.Secret(path) {
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
	p.files = sandbox.HostFiles()
	if p.prepared != nil {
		p.prepared.Close()
		p.prepared = nil
	}
	p.enforced = nil
	return done, stages(p.confine, p.environment)
}

// sharesTmp reports whether this run has a /tmp of its workspace.
func (p *Plan) sharesTmp() bool {
	return p.Setup.Tier() == sandbox.T3 && p.Profile.Tmp == sandbox.TmpKept && p.Profile.Private != ""
}

// lookAtTmp brings in what is new in the machine's /tmp while the run is still being prepared,
// so that the directory must be held before the run holds it: "sandbox clean" removes it.
func (x *execution) lookAtTmp() (err error) {
	if x.tmpHeld, err = sandbox.HoldPrivate(x.plan.private); err != nil {
		return err
	}
	return x.plan.share().In()
}

// bringTmp makes the private /tmp hold what the user's own programs have put into the
// machine's. Without it the run goes on with what there is.
func (x *execution) bringTmp() {
	if err := x.tmpIn(); err != nil {
		x.warn("/tmp of the machine could not be looked at: " + err.Error())
	}
}

// maxTmpTold is how many names are told that a run has left in its own /tmp only.
const maxTmpTold = 5

// returnTmp puts what the run has left in /tmp where other programs of the user find it.
func (x *execution) returnTmp() {
	p := x.plan
	if !p.sharesTmp() {
		return
	}
	written := map[string]bool{}
	for _, s := range p.steps {
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
	left, err := p.share().Out(func(path string) bool { return written[path] }, func(path string) bool { return mounted[path] })
	if err != nil {
		x.warn("only runs of this workspace see files that the run left in /tmp: " + err.Error())
	}
	for i, l := range left {
		if i == maxTmpTold {
			x.warn("more files in /tmp were changed for runs of this workspace only")
			break
		}
		x.warn(filepath.Join(temporaryDir, l.Name) + " was changed for runs of this workspace only: " + l.Why)
	}
}
