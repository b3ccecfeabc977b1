package effects

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// SshSetting reports whether a line of the account's configuration of ssh is so. What cannot be
// read counts.
func (p *Site) SshSetting(is func(words []string) bool) bool {
	home := filepath.Join(p.Dirs.Home, ".ssh")
	return sshLine(filepath.Join(home, "config"), home, 0, is) || sshLine("/etc/ssh/ssh_config", "/etc/ssh", 0, is)
}

// sshLine reads one file of ssh_config(5) and what it includes.
func sshLine(path, dir string, depth int, is func(words []string) bool) bool {
	raw, err := gitrepo.Read(path, 1<<20)
	if os.IsNotExist(err) {
		return false
	}
	if err != nil || depth > 4 {
		return true
	}
	for line := range strings.Lines(string(raw)) {
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n=\"", r) })
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if is(words) {
			return true
		}
		if strings.EqualFold(words[0], "include") {
			for _, pattern := range words[1:] {
				if rest, ok := strings.CutPrefix(pattern, "~/"); ok {
					pattern = filepath.Join(filepath.Dir(dir), rest)
				}
				list, err := filepath.Glob(subpath.Join(dir, pattern))
				if err != nil || len(list) > 64 || slices.ContainsFunc(list, func(f string) bool { return sshLine(f, dir, depth+1, is) }) {
					return true
				}
			}
		}
	}
	return false
}
