package place

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// MaxLinkSearch is how many names of a workspace are looked at for another name of a
// credential file.
const MaxLinkSearch = 8192

// SecretLinks looks for names in the workspace under which a credential file can be read: a
// hard link from before the run, as no run can make one. Hardly any credential file has a
// second name, so hardly any run searches. It looks at MaxLinkSearch names; cut says that there
// are more.
func SecretLinks(workspace, home string) (links []string, cut bool) {
	if workspace == "" || home == "" {
		return nil, false
	}
	wanted := map[[2]uint64]string{}
	for _, name := range CredentialFiles() {
		path := filepath.Join(home, name)
		if id, linked := linkedFile(path); linked && !subpath.Within(path, workspace) {
			wanted[id] = path
		}
	}
	if len(wanted) == 0 {
		return nil, false
	}
	seen := 0
	for level := []string{workspace}; len(level) > 0; {
		var next []string
		for _, dir := range level {
			f, err := regular.OpenDir(dir)
			if err != nil {
				continue
			}
			entries, _ := f.ReadDir(MaxLinkSearch - seen + 1)
			f.Close()
			for _, e := range entries {
				if seen++; seen > MaxLinkSearch {
					return links, true
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
					links = append(links, path)
				}
			}
		}
		level = next
	}
	return links, false
}
