package run

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/policy"
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
		if key := unsafeGitKey(raw, f.SafeKeys); key != "" {
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

// unsafeGitKey returns the first key of a git configuration that is not inert,
// "" if all are. A line it cannot read counts as unsafe.
func unsafeGitKey(raw []byte, safe []string) string {
	section, subsection := "", ""
	for len(raw) > 0 {
		var line []byte
		line, raw, _ = bytes.Cut(raw, []byte("\n"))
		text := strings.TrimSpace(string(line))
		if strings.HasSuffix(text, "\\") {
			return "a continued line"
		}
		if text == "" || text[0] == '#' || text[0] == ';' {
			continue
		}
		if text[0] == '[' {
			end := strings.LastIndexByte(text, ']')
			if end < 0 || strings.TrimSpace(text[end+1:]) != "" {
				return "a malformed section"
			}
			name, quoted, _ := strings.Cut(text[1:end], " ")
			section, subsection = strings.ToLower(name), strings.Trim(strings.TrimSpace(quoted), `"`)
			continue
		}
		key, value, _ := strings.Cut(text, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		full := section + "." + key
		if subsection != "" {
			full = section + "." + subsection + "." + key
		}
		if !inertGitKey(section, subsection, key, strings.TrimSpace(value)) && !safeKey(safe, section, subsection, key) {
			return full
		}
	}
	return ""
}

// inertGitKey is the one list of keys that cannot make git run anything.
func inertGitKey(section, subsection, key, value string) bool {
	switch section {
	case "user", "color", "pull":
		return true
	case "core":
		switch key {
		case "repositoryformatversion", "bare", "filemode", "ignorecase", "precomposeunicode", "symlinks", "logallrefupdates", "autocrlf", "eol":
			return true
		}
	case "extensions":
		return true
	case "branch":
		return key == "remote" || key == "merge" || key == "rebase" || key == "description" || key == "vscode-merge-base"
	case "remote":
		switch key {
		case "url", "pushurl":
			return safeGitURL(value)
		case "fetch", "tagopt", "prune":
			return true
		}
	case "submodule":
		return key == "active" || (key == "url" && safeGitURL(value))
	case "push":
		return key == "default" || key == "autosetupremote"
	case "fetch":
		return key == "prune"
	case "merge":
		return key == "ff"
	case "init":
		return key == "defaultbranch"
	}
	return false
}

// safeGitURL refuses the transports that start a program of the URL's choice.
func safeGitURL(url string) bool {
	url = strings.Trim(url, `"`)
	return !strings.HasPrefix(url, "-") && !strings.Contains(url, "::")
}

func safeKey(safe []string, section, subsection, key string) bool {
	plain, wild := section+"."+key, section+".*."+key
	for _, s := range safe {
		s = strings.ToLower(s)
		if (subsection == "" && s == plain) || (subsection != "" && s == wild) || s == section+".*" {
			return section != "include" && section != "includeif" && !(section == "remote" && strings.HasSuffix(key, "url"))
		}
	}
	return false
}
