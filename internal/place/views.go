package place

import (
	"path/filepath"
	"slices"
	"strings"
)

// Names are all rows of the table.
func Names() []Name { return slices.Clone(names[:]) }

// Protected are the names that a run must leave as they are, as the sandbox takes them. A
// directory ends in a slash.
type Protected struct {
	Tree []string // in the directories of the workspace
	CI   []string // in the same, if the policy protects what a CI service runs
	Git  []string // in git directories
}

// ProtectedNames is what the sandbox pins and compares. Names in a directory that is listed
// itself are left out.
func ProtectedNames() Protected {
	var p Protected
	for i := range names {
		n := &names[i]
		switch {
		case n.Kind == Secret || n.Where == Home || n.Where == System:
		case n.Kind == Git:
			p.Git = append(p.Git, n.Path)
		case n.Kind == CI:
			p.CI = append(p.CI, n.Path)
		default:
			p.Tree = append(p.Tree, n.Path)
		}
	}
	all := slices.Clone(p.Tree)
	p.Tree = slices.DeleteFunc(p.Tree, func(name string) bool {
		return slices.ContainsFunc(all, func(dir string) bool {
			return dir != name && strings.HasSuffix(dir, "/") && strings.HasPrefix(name, dir)
		})
	})
	return p
}

// SystemSecrets are the paths of the system that hold credentials.
func SystemSecrets() []string {
	var out []string
	for i := range names {
		if n := &names[i]; n.Kind == Secret && n.Where == System && !strings.Contains(n.Path, "*") {
			out = append(out, strings.TrimSuffix(n.Path, "/"))
		}
	}
	return out
}

// CredentialFiles are the files of a home directory that hold credentials under a name that
// is always the same, relative to it.
func CredentialFiles() []string {
	var out []string
	for i := range names {
		if n := &names[i]; n.Kind == Secret && n.Where == Home && !strings.HasSuffix(n.Path, "/") {
			out = append(out, n.Path)
		}
	}
	return out
}

// Credentials are the files whose values no output may show: where they usually lie, and
// where a variable says. A variable of the caller takes no file from the list.
func Credentials(home string, getenv func(string) string) []CredentialFile {
	if home == "" {
		return nil
	}
	const config = ".config/"
	var out []CredentialFile
	for i := range names {
		n := &names[i]
		c := n.Credential
		if c.Format == "" {
			continue
		}
		add := func(path string) { out = append(out, CredentialFile{c.Source, path, c.Format}) }
		add(filepath.Join(home, n.Path))
		if dir := getenv("XDG_CONFIG_HOME"); dir != "" && strings.HasPrefix(n.Path, config) {
			add(filepath.Join(dir, n.Path[len(config):]))
		}
		if c.Variable == "" {
			continue
		}
		for _, path := range filepath.SplitList(getenv(c.Variable)) {
			if strings.HasSuffix(c.Variable, "_DIR") || c.Format == Docker {
				path = filepath.Join(path, filepath.Base(n.Path)) // it names the directory
			}
			add(path)
		}
	}
	return out
}

// CredentialFile is one file whose values no output may show.
type CredentialFile struct {
	Source, Path string
	Format       Format
}

// ShellSnapshots is the directory below home whose files a host of agents sources before each
// command.
func ShellSnapshots(home string) string { return filepath.Join(home, snapshots) }
