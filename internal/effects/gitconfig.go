package effects

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

const maxCodeFile = 256 << 10

// checkCodeFile marks a step whose tool reads a file that can make it run code:
// whoever can write .git/config makes `git status` run a program.
func (p *Site) checkCodeFile(s *step.Step, f atip.CodeFile) {
	why := ""
	switch {
	case f.Format == "gitconfig":
		var quieted bool
		if why, quieted = p.checkRepositories(s); quieted {
			s.Quieted = why
			return
		}
	case f.RelativeTo == "project":
		return // programManifests
	default:
		for _, path := range p.CodeFilePaths(s, f) {
			if _, err := gitrepo.Read(path, maxCodeFile); errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				why = path + " cannot be read"
			} else {
				why = path + " can run code"
			}
			break
		}
	}
	if why != "" {
		s.RunsFile(f.Path, why)
	}
}

// checkRepositories says what in the configuration of the repositories that a step uses can
// make git run code, "" for nothing. quieted says that a run with rights turns all of it off
// (gitrepo.Quiet).
func (p *Site) checkRepositories(s *step.Step) (why string, quieted bool) {
	list, err := p.repositoriesOf(s)
	if err != nil {
		return err.Error(), false
	}
	for i, r := range list {
		c, err := r.Config(p.Dirs.Home)
		if err != nil {
			return err.Error() + ", so it cannot be judged", false
		}
		first := r.Active(c)
		if i == 0 {
			// git passes none of what is turned off on to a submodule.
			c.Settings = slices.DeleteFunc(c.Settings, func(one gitrepo.Setting) bool { return gitrepo.Quieted(one.Key) })
		}
		switch rest := r.Active(c); {
		case rest != "":
			return filepath.Join(r.Common, "config") + ": " + rest + " can run code", false
		case r.LegacyRemotes():
			return filepath.Join(r.Common, "remotes") + " names remotes that are not judged", false
		case first != "":
			why = filepath.Join(r.Common, "config") + ": " + first + " can run code"
		}
	}
	return why, why != ""
}

// withoutInert are the words of a call of git without the settings in front of its command (-c) by
// which git runs nothing and reads nothing from elsewhere; nil if there are none.
func withoutInert(s *step.Step, words []string) []string {
	if s.Call.Tool != "git" || s.Call.Effects[atip.ExecOpaque].Value != atip.Yes {
		return nil
	}
	out, i := words[:1:1], 1
	for i < len(words) && strings.HasPrefix(words[i], "-") {
		n := 1
		switch w := words[i]; w {
		case "-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source":
			if n = 2; i+1 == len(words) {
				return nil
			}
			if key, value, given := strings.Cut(words[i+1], "="); w == "-c" && given && gitrepo.InertOnce(key, value) {
				i += 2
				continue
			}
		case "--no-pager", "-P", "-p", "--paginate", "--bare", "--literal-pathspecs", "--no-optional-locks", "--no-replace-objects":
		default:
			if !strings.Contains(w, "=") {
				return nil // it may take the next word
			}
		}
		out = append(out, words[i:i+n]...)
		i += n
	}
	if len(out) == i {
		return nil
	}
	return append(out, words[i:]...)
}

// repositoriesOf are the repositories whose configuration a step of git obeys: the one that
// git finds from the directory and the words of the step, and its submodules.
func (p *Site) repositoriesOf(s *step.Step) ([]gitrepo.Repository, error) {
	r, err := gitrepo.Find(subpath.Join(s.Cwd, s.Call.Chdir))
	if errors.Is(err, gitrepo.ErrNone) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil // git ends, or makes one
	}
	if err != nil {
		return nil, err
	}
	out := []gitrepo.Repository{r}
	if s.Call.Effects[atip.Network].Value == atip.Yes && !step.Recurses(s) {
		return out, nil // it is told not to go into submodules
	}
	for _, tree := range r.Pointers(p.Dirs.Home).Trees {
		if sub, err := gitrepo.At(tree); err == nil {
			out = append(out, sub)
		} else if !errors.Is(err, gitrepo.ErrNone) && !errors.Is(err, fs.ErrNotExist) {
			return out, err
		}
	}
	return out, nil
}

func (p *Site) CodeFilePaths(s *step.Step, f atip.CodeFile) []string {
	base := subpath.Join(s.Cwd, s.Call.Chdir)
	switch {
	case f.Format == "gitconfig":
		var out []string
		list, _ := p.repositoriesOf(s)
		for _, r := range list {
			if c, err := r.Config(p.Dirs.Home); err == nil {
				out = append(out, c.Files...)
			}
		}
		return out
	case f.RelativeTo == "home":
		base = p.Dirs.Home
	case f.RelativeTo == "repo":
		base = p.Workspace
	}
	if base == "" {
		return nil
	}
	return []string{filepath.Join(base, f.Path)}
}
