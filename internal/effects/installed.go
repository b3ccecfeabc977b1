package effects

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// installed are the words of an npx or npm exec whose command is installed in the project: it runs
// that and fetches nothing (libnpmexec, localFileExists), as --no says in so many words. Where the
// file goes meanwhile, the run has no network to fetch another.
func (c *collector) installed(s *step.Step, words []string) []string {
	at := 1
	switch call := &s.Call; {
	case call.Tool == "npx":
	case call.Tool == "npm" && slices.Equal(call.Path, []string{"exec"}) && len(words) > 1 && (words[1] == "exec" || words[1] == "x"):
		if at = 2; len(words) > 2 && words[2] == "--" {
			at = 3
		}
	default:
		return nil
	}
	if len(words) <= at || len(s.Call.Options) > 0 || len(s.Call.Positionals) == 0 || s.Call.Positionals[0].Value != words[at] || !binName(words[at]) || c.ctx != nil && c.ctx.cwdUnknown {
		return nil
	}
	for dir := subpath.Join(c.site.Cwd, s.Cwd); subpath.Within(dir, c.site.Workspace); dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, "node_modules", ".bin", words[at])); err == nil && info.Mode().IsRegular() {
			if words[at-1] == "--" {
				at--
			}
			return slices.Insert(slices.Clone(words), at, "--no")
		}
	}
	return nil
}

// binName reports a command of a package as npx looks for it: a scope or a version makes it a
// package.
func binName(name string) bool {
	return name != "" && !strings.ContainsRune("._-", rune(name[0])) && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}
