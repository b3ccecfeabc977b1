package staging

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/sandbox"
)

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
