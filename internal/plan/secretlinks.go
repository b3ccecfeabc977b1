package plan

import (
	"path/filepath"
	"strconv"

	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// maxLinkSearch is how many names of a workspace are looked at for another name of a
// credential file.
const maxLinkSearch = 8192

// secretLinks looks for names in the workspace under which a credential file can be read: a
// hard link from before the run, as no run can make one. Hardly any credential file has a
// second name, so hardly any run searches.
func (p *Plan) secretLinks() []string {
	if p.Workspace == "" || p.Dirs.Home == "" {
		return nil
	}
	wanted := map[[2]uint64]string{}
	for _, name := range place.CredentialFiles() {
		path := filepath.Join(p.Dirs.Home, name)
		if id, linked := linkedFile(path); linked && !subpath.Within(path, p.Workspace) {
			wanted[id] = path
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	var out []string
	seen := 0
	for level := []string{p.Workspace}; len(level) > 0; {
		var next []string
		for _, dir := range level {
			f, err := regular.OpenDir(dir)
			if err != nil {
				continue
			}
			entries, _ := f.ReadDir(maxLinkSearch - seen + 1)
			f.Close()
			for _, e := range entries {
				if seen++; seen > maxLinkSearch {
					p.Warnings = append(p.Warnings, "a credential file of yours has a second name, which was not found among the first "+strconv.Itoa(maxLinkSearch)+
						" names of the workspace; if it is further down, this run can read it")
					return out
				}
				path := filepath.Join(dir, e.Name())
				if e.IsDir() {
					next = append(next, path)
					continue
				}
				if !e.Type().IsRegular() {
					continue
				}
				if id, linked := linkedFile(path); linked && wanted[id] != "" {
					out = append(out, path)
				}
			}
		}
		level = next
	}
	return out
}
