package plan

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// maxWorktrees bounds how many other work trees of a repository are looked at.
const maxWorktrees = 256

// otherWorktrees are the names by which git finds the other work trees of this repository.
// Where they are not to be seen, git takes them for removed and forgets their index and their
// branch: at once when it prunes, by itself some months later.
func (p *Plan) otherWorktrees() []string {
	if p.Workspace == "" {
		return nil
	}
	var out []string
	for _, dir := range append([]string{filepath.Join(p.Workspace, ".git")}, p.gitDirs...) {
		list, err := regular.OpenDir(filepath.Join(dir, "worktrees"))
		if err != nil {
			continue
		}
		names, _ := list.Readdirnames(maxWorktrees)
		list.Close()
		for _, name := range names {
			admin := filepath.Join(dir, "worktrees", name)
			path := line(filepath.Join(admin, "gitdir"))
			if path != "" && !filepath.IsAbs(path) {
				path = filepath.Join(admin, path)
			}
			if filepath.Base(path) != ".git" || subpath.Within(path, p.Workspace) {
				continue
			}
			// A run can write the one file, so the other has to agree.
			back, ok := strings.CutPrefix(line(path), "gitdir: ")
			if ok && !filepath.IsAbs(back) {
				back = filepath.Join(filepath.Dir(path), back)
			}
			if ok && sameDirectory(back, admin) {
				out = append(out, path)
			}
		}
	}
	return out
}

// line is what a short file holds, if that is one line.
func line(path string) string {
	raw, err := regular.Read(path, 4095)
	text := strings.TrimSuffix(string(raw), "\n")
	if err != nil || strings.ContainsAny(text, "\n\x00") {
		return ""
	}
	return text
}

func sameDirectory(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}
