package effects

import (
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// maxMeant bounds how many names are looked at: such a command walks the tree itself.
const maxMeant = 20_000

// repositoryNames are a name of each kind in a repository of git, for one that was not walked and
// for its objects, of which there may be a hundred thousand.
var repositoryNames = []string{"", "HEAD", "config", "index", "packed-refs", "refs/heads/main", "hooks/pre-commit", "objects/00",
	"objects/00/00000000000000000000000000000000000000", "objects/info/packs", "objects/pack/pack-0000000000000000000000000000000000000000.pack",
	"objects/pack/pack-0000000000000000000000000000000000000000.idx", "objects/pack/pack-0000000000000000000000000000000000000000.rev"}

// meant adds to a step that removes what only the run will name the worst that is there under
// such a name: `find . -name HEAD -delete` takes the HEAD of the repository, and `*.pyc` nothing
// that a person would miss. What may not be written is for the kernel, by whatever name.
func (c *collector) meant(s *step.Step) {
	for _, r := range s.Call.Resources {
		if r.Kind != "path" || r.Access&atip.AccessDelete == 0 || !strings.Contains(r.Abs, step.SomeName) || !subpath.Within(r.Abs, c.site.Workspace) {
			continue
		}
		// git never lists what lies in a repository, and rm takes no directory unless it is told to.
		tracked := c.tracked && s.Call.Tool == "rm" && !r.Recursive && r.Value == step.SomeName
		if worst := c.worst(r, tracked); worst.Class != atip.ClassUnknown {
			s.Raise(worst)
			s.Call.Resources = append(s.Call.Resources, worst)
		}
	}
}

// worst is the file with the worst class for which r may stand, with no class if all of them
// are ordinary files of the workspace. Of a tree that is too large it is the directory itself.
func (c *collector) worst(r atip.Resource, tracked bool) atip.Resource {
	worst := atip.Resource{Kind: "path", Access: r.Access, Recursive: r.Recursive, Why: "may be named"}
	means, top := step.Means(r.Abs), step.KnownDir(r.Abs)
	look := func(path string) {
		if !means(path) || tracked && repository(path) {
			return
		}
		class := c.site.World.Classify(path, r.Access, r.Recursive)
		if class == atip.ClassStartup && repository(path) {
			class = atip.ClassWorkspaceVCS // the kernel holds its hooks and settings
		}
		if class == atip.ClassUnknown || class > atip.ClassWorkspaceVCS || worst.Class != atip.ClassUnknown && class >= worst.Class {
			return
		}
		worst.Abs, worst.Value, worst.Class = path, path, class
		if rel, err := filepath.Rel(c.site.Cwd, path); err == nil {
			worst.Value = rel
		}
	}
	seen := 0
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxMeant {
			for _, name := range repositoryNames {
				look(filepath.Join(top, "x", ".git", name))
			}
			return fs.SkipAll
		}
		if err != nil {
			return nil // nor does the run come there
		}
		look(path)
		switch {
		case !d.IsDir():
		case d.Name() == "node_modules":
			return fs.SkipDir
		case d.Name() == "objects" && filepath.Base(filepath.Dir(path)) == ".git":
			for _, name := range repositoryNames {
				look(filepath.Join(filepath.Dir(path), name))
			}
			return fs.SkipDir
		}
		return nil
	})
	return worst
}

// repository reports a path in a repository of git.
func repository(path string) bool {
	return strings.Contains(path+"/", "/.git/")
}
