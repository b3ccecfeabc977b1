// Package place says what a path is on this machine: which class it belongs to,
// where the workspace is and which directories are ours.
package place

import (
	"errors"

	"github.com/atip-dev/atip-exec/atip"
)

// World is what must be known to classify paths. All paths are absolute.
type World struct {
	Workspace string // "" if there is none
	Home      string
	Cwd       string
	Config    string // our own directories
	Data      string
	State     string
	Runtime   string
	Managed   string
	Programs  []string // the executables of this project
	TmpDirs   []string
	GitDirs   []string // as FindWorkspace returned them
	// Detail asks for workspace-regenerable and workspace-tracked, which need
	// .gitignore files and the index; without it both are "workspace".
	Detail bool
}

// Classify returns the first class in order that abs, with links resolved,
// belongs to.
func (w World) Classify(abs string, access atip.Access, recursive bool) atip.Class {
	return atip.ClassUnknown
}

// Fill sets Abs and Class of a path resource. A relative value counts from
// chdir, itself relative to w.Cwd.
func (w World) Fill(r *atip.Resource, chdir string) {}

// Resolve returns p with the links of its longest existing prefix resolved.
func Resolve(p string) string { return p }

// FindWorkspace finds the work tree around cwd without running git. root is ""
// if there is no workspace, and why says why; gitDirs are the git directories
// that belong to it, the common one last.
func FindWorkspace(cwd, home string, uid int) (root string, gitDirs []string, why string) {
	return "", nil, "not looked for"
}

// Dirs are our own directories. They need not exist.
type Dirs struct{ Config, Data, State, Cache, Runtime, Home string }

// DirsFromEnv derives the directories from the XDG variables. home overrides
// $HOME; if both are empty the account database is asked.
func DirsFromEnv(getenv func(string) string, home string) (Dirs, error) {
	return Dirs{}, errors.New("home directory unknown")
}
