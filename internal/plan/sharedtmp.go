package plan

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

// TemporaryDir is the directory of the machine that a private root covers.
const TemporaryDir = "/tmp"

// Share says how the private /tmp of this workspace and the machine's are kept in step.
func (p *Plan) Share() tmpshare.Share {
	apart := append([]string{p.Workspace, p.Dirs.Home, p.Private, p.Dirs.Config, p.Dirs.Data, p.Dirs.State, p.Dirs.Cache, p.Dirs.Runtime}, p.gitDirs...)
	apart = append(append(apart, p.Machine.Programs()...), filepath.SplitList(p.Machine.Getenv("PATH"))...)
	if p.Workspace == "" && p.Cwd != TemporaryDir {
		apart = append(apart, p.Cwd)
	}
	var within []string // what can be met in /tmp
	for _, path := range apart {
		// These are the same directory inside, so that a workspace below them has a name in it.
		for _, dir := range [...]string{"/var/tmp/", "/dev/shm/"} {
			if rest, ok := strings.CutPrefix(path, dir); ok {
				path = filepath.Join(TemporaryDir, rest)
			}
		}
		if path != "" && (subpath.Within(path, TemporaryDir) || subpath.Within(TemporaryDir, path)) {
			within = append(within, path)
		}
	}
	return tmpshare.Share{
		Host: TemporaryDir, Inside: filepath.Join(p.Private, "tmp"), Books: filepath.Join(p.Dirs.Cache, "tmp"), ID: filepath.Base(p.Private), UID: p.Machine.UID,
		Skip: func(path string) bool {
			for _, other := range within {
				if subpath.Within(other, path) || subpath.Within(path, other) {
					return true
				}
			}
			return false
		},
		Secret: func(path string) bool { return p.World.Classify(path, atip.AccessRead, false) == atip.ClassSecret },
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
	for _, s := range p.Steps {
		if s.RunsCode != policy.CodeNone || s.Call.Provenance.Rank < atip.Org {
			return true
		}
	}
	return false
}

// SharesTmp reports whether this run has a /tmp of its workspace.
func (p *Plan) SharesTmp() bool {
	return p.Setup.Tier() == sandbox.T3 && p.Profile.Tmp == sandbox.TmpKept && p.Profile.Private != ""
}
