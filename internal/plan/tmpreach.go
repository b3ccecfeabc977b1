package plan

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// TmpReachable refuses, where runs have no /tmp of their own, a command that would write there
// what the kernel does not let it: single files of a known name can be granted, not a directory of
// the machine, and nothing new in one.
func (p *Plan) TmpReachable() error {
	if !p.NamesInTmp() {
		return nil
	}
	share := p.Share()
	for _, s := range p.Steps {
		for _, r := range s.Call.Resources {
			path := filepath.Clean(r.Abs)
			if r.Kind != "path" || r.Access&atip.AccessWrite == 0 || r.Class != atip.ClassTmp || !subpath.Within(path, TemporaryDir) || path != TemporaryDir && share.Skip(path) {
				continue
			}
			if slices.ContainsFunc(p.Profile.Write, func(g sandbox.Grant) bool { return g.Rights&sandbox.Write != 0 && subpath.Within(path, g.Path) }) {
				continue
			}
			info, err := os.Stat(path)
			switch {
			case err == nil && (!info.IsDir() || s.Call.Tool == "mkdir"):
				continue // the command is to say what is wrong with it
			case err != nil && filepath.Dir(path) == TemporaryDir && OpensFile(s):
				continue // makeTmpNames makes it
			}
			return fault.New(errcode.Denied, "denied: "+quote.Words(s.Argv)+" would make something in "+TemporaryDir+" of the machine, where this run can write files of a known name only").
				WithFix("write in the workspace, or name one file that is not there: cp FILE "+TemporaryDir+"/FILE", "").With("decision", policy.Deny).With("path", path)
		}
	}
	return nil
}

// NamesInTmp reports a run that writes the machine's /tmp, of which it is granted single names.
func (p *Plan) NamesInTmp() bool {
	tier := p.Setup.Tier()
	return tier != sandbox.T3 && tier != sandbox.T0 && p.Profile.Tmp == sandbox.TmpKept && p.Decision.Grants.Effects.Has(atip.Write)
}

// OpensFile reports a command that writes a name by opening it as a file. One that makes a
// directory or a link, or renames something to it, finds a file in its way.
func OpensFile(s *step.Step) bool {
	switch s.Call.Tool {
	case "mkdir", "ln", "link", "mkfifo", "mknod", "mktemp", "mv", "install", "rsync", "unzip", "git":
		return false
	case "cp":
		return !slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
			info, err := os.Stat(r.Abs)
			return r.Access&atip.AccessRead != 0 && err == nil && info.IsDir()
		})
	}
	return true
}
