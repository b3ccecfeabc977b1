package scan

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/owner"
)

// Skipped is something that a scan does not look at, and why.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// usual are the directories whose programs an administrator or the user installed.
func usual(home string) []string {
	dirs := []string{"/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"}
	if filepath.IsAbs(home) {
		dirs = append(dirs, filepath.Join(home, ".local/bin"))
	}
	return dirs
}

// Places chooses from PATH the directories to scan, in the order of PATH: those below
// a usual one. A directory is compared by components and after its links, so neither
// /usr/bin-evil nor a link into it passes as /usr/bin.
func Places(path []string, home string, more []string) (dirs []string, skipped []Skipped) {
	var allowed []string
	for _, dir := range append(usual(home), more...) {
		if canonical, err := filepath.EvalSymlinks(dir); err == nil {
			allowed = append(allowed, canonical)
		}
	}
	seen := map[string]bool{}
	for _, entry := range path {
		if entry == "" {
			skipped = append(skipped, Skipped{entry, "an empty entry of PATH means the current directory"})
			continue
		}
		if !filepath.IsAbs(entry) {
			skipped = append(skipped, Skipped{entry, "a relative entry of PATH means another directory everywhere"})
			continue
		}
		canonical, why := safeDir(entry)
		if why == "" && !below(canonical, allowed) {
			why = "not one of the usual directories; add it to scan.paths in config.json, or name it"
		}
		switch {
		case why != "":
			skipped = append(skipped, Skipped{entry, why})
		case !seen[canonical]:
			seen[canonical] = true
			dirs = append(dirs, canonical)
		}
	}
	return dirs, skipped
}

func below(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") })
}

// foreign says who else than root and this user could have written the file at path, "" where
// mode bits do not say who can.
func foreign(path string, info fs.FileInfo) string {
	uid, gid, ok := owner.Of(info)
	switch {
	case !ok:
		return ""
	case uid != os.Geteuid() && !owner.IsRoot(uint32(uid), path):
		return "owned by another user"
	case info.Mode()&0o002 != 0:
		return "writable by everybody"
	case info.Mode()&0o020 != 0 && gid != uid && gid != 0:
		return "writable by a group"
	}
	return ""
}

// safeDir resolves a directory and says why its content must not be looked at: who
// else can write there decides what a name stands for.
func safeDir(dir string) (canonical, why string) {
	canonical, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", "cannot be opened"
	}
	info, err := os.Stat(canonical)
	switch {
	case err != nil:
		return "", "cannot be opened"
	case !info.IsDir():
		return "", "not a directory"
	}
	return canonical, foreign(canonical, info)
}

// Candidate is an executable to look at.
type Candidate struct {
	Name string // as it is found in PATH
	Path string // where it was found
	Also []string
}

// Candidates lists the executables of the directories. The first of a name owns it,
// as it does when a command is run.
func Candidates(dirs []string) (list []Candidate, skipped []Skipped) {
	at := map[string]int{}
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			skipped = append(skipped, Skipped{dir, "cannot be listed"})
			continue
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			why, program := unfit(path)
			switch i, ok := at[e.Name()]; {
			case why != "":
				skipped = append(skipped, Skipped{path, why})
			case !program:
			case ok:
				list[i].Also = append(list[i].Also, path)
			default:
				at[e.Name()] = len(list)
				list = append(list, Candidate{Name: e.Name(), Path: path})
			}
		}
	}
	return list, skipped
}

// unfit says why a file is not looked at; program is false for what is no program at
// all and not worth a word.
func unfit(path string) (why string, program bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "its link leads nowhere", false
	}
	mode := info.Mode()
	switch {
	case mode.IsDir():
		return "", false
	case !mode.IsRegular():
		return "not a regular file", false
	case mode&0o111 == 0:
		return "", false
	case mode&(os.ModeSetuid|os.ModeSetgid) != 0:
		return "setuid or setgid", true
	}
	if why := foreign(path, info); why != "" {
		return why, true
	}
	canonical, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "its link leads nowhere", false
	}
	if canonical != path {
		if _, why := safeDir(filepath.Dir(canonical)); why != "" {
			return "its link leads to a directory that is " + why, true
		}
	}
	return "", true
}

// Named checks directories that a person named: any place will do that nobody else can
// write.
func Named(named []string) (dirs []string, skipped []Skipped) {
	seen := map[string]bool{}
	for _, dir := range named {
		abs, err := filepath.Abs(dir)
		if err != nil || dir == "" {
			continue
		}
		canonical, why := safeDir(abs)
		switch {
		case why != "":
			skipped = append(skipped, Skipped{dir, why})
		case !seen[canonical]:
			seen[canonical] = true
			dirs = append(dirs, canonical)
		}
	}
	return dirs, skipped
}
