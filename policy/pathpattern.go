package policy

import "strings"

// Matches reports whether the rule, one of paths.secret or paths.protected, names this
// absolute path or a directory above.
func (r PathRule) Matches(abs, workspace string) bool { return matchPath(r.Path, abs, workspace) }

// matchPath matches a pattern that is absolute, relative to the workspace, or a bare name
// anywhere.
func matchPath(pattern, abs, workspace string) bool {
	switch {
	case abs == "":
		return false
	case pattern[0] == '/':
		return pathGlob(pattern, abs) || pathGlob(pattern+"/**", abs)
	case strings.HasPrefix(pattern, "~/"):
		return pathGlob("**/"+pattern[2:], abs)
	case strings.IndexByte(pattern, '/') < 0:
		return pathGlob("**/"+pattern, abs) || pathGlob("**/"+pattern+"/**", abs)
	}
	return workspace != "" && (pathGlob(workspace+"/"+pattern, abs) || pathGlob(workspace+"/"+pattern+"/**", abs))
}
