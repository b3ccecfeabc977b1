package run

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

const maxGitConfig = 256 << 10

// checkCodeFile marks a step whose tool reads a file that can make it run code:
// whoever can write .git/config makes `git status` run a program.
func (p *Plan) checkCodeFile(s *step, f atip.CodeFile) {
	why := ""
	for _, path := range p.codeFilePaths(s, f) {
		raw, err := os.ReadFile(path)
		if err != nil {
			if os.IsNotExist(err) {
				continue
			}
			why = path + " cannot be read"
			break
		}
		if f.Format != "gitconfig" || len(raw) > maxGitConfig {
			why = path + " can run code"
			break
		}
		if key := sandbox.ActiveGitSetting(string(raw)); key != "" {
			why = path + ": " + key + " can run code"
			break
		}
	}
	if why == "" {
		return
	}
	s.Call.Effects[atip.ExecOpaque] = atip.Fact{Value: atip.Yes, Source: "file", Pointer: f.Path, Rank: atip.Vendor}
	s.RunsCode = max(s.RunsCode, policy.CodeProject)
	s.Call.Warnings = append(s.Call.Warnings, why)
}

func (p *Plan) codeFilePaths(s *step, f atip.CodeFile) []string {
	base := join(s.Cwd, s.Call.Chdir)
	switch f.RelativeTo {
	case "home":
		base = p.dirs.Home
	case "repo":
		if rest, ok := strings.CutPrefix(f.Path, ".git/"); ok && len(p.gitDirs) > 0 {
			var out []string
			for _, dir := range p.gitDirs {
				out = append(out, filepath.Join(dir, rest))
			}
			return out
		}
		base = p.Workspace
	}
	if base == "" {
		return nil
	}
	return []string{filepath.Join(base, f.Path)}
}
