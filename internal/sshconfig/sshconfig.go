// Package sshconfig looks through the settings of ssh that hold for an account (ssh_config(5)).
package sshconfig

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Any reports whether a line of the configuration of an account or of the system is so. What cannot be read counts.
func Any(home string, is func(words []string) bool) bool {
	own := filepath.Join(home, ".ssh")
	return line(filepath.Join(own, "config"), own, 0, is) || line("/etc/ssh/ssh_config", "/etc/ssh", 0, is)
}

// line reads one file of ssh_config(5) and what it includes.
func line(path, dir string, depth int, is func(words []string) bool) bool {
	raw, err := gitrepo.Read(path, 1<<20)
	if os.IsNotExist(err) {
		return false
	}
	if err != nil || depth > 4 {
		return true
	}
	for text := range strings.Lines(string(raw)) {
		words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n=\"", r) })
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
				if err != nil || len(list) > 64 || slices.ContainsFunc(list, func(f string) bool { return line(f, dir, depth+1, is) }) {
					return true
				}
			}
		}
	}
	return false
}
