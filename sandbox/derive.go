package sandbox

import (
	"errors"

	"github.com/atip-dev/atip-exec/atip"
)

// Files is the file system as Derive sees it.
type Files interface {
	// Resolve returns the path free of symbolic links and whether it is a directory.
	Resolve(path string) (canonical string, dir bool, err error)
	// List returns the names in a directory.
	List(dir string) ([]string, error)
}

// PathRule is a path that a policy grants, with where it says so.
type PathRule struct {
	Path string
	Pos  string // file:line
	Rule string
}

// PolicyProfile is the merged "sandbox" object of the policy.
type PolicyProfile struct {
	Read, Write, Exec, Sockets, Devices []PathRule
	Protected                           []string // beyond the built-in protected names
	Tier                                Tier     // T0: chosen by need
	Require, Accept                     []Guarantee
	Confine                             Confine
	DeleteStrict                        bool
	Limits                              Limits
}

// Forbidden is a directory that no run may write: configuration, data, state, our
// programs.
type Forbidden struct{ Path, Why string }

// Input is all that Derive looks at.
type Input struct {
	Workspace, Cwd, Home, TmpDir string
	WorkspaceNamed               string   // file:line if policy names the workspace
	PathDirs                     []string // PATH
	GitDirs                      []string // writable git directories outside the workspace (worktrees)
	Private                      string   // W: the directory for TMPDIR and caches of this workspace
	Granted                      atip.Set
	Subprocess                   atip.Value
	OrgBound                     bool // every executable is bound to metadata of rank org or better
	Resources                    []atip.Resource
	ToolPaths                    []string // filesystem.paths of the metadata, believed
	Exec                         []string // the identified files of the chain, canonical
	CredentialFiles              []string // readable because the tool declares them or policy says so
	Families                     []string // cache families in use: go npm pip cargo
	Net                          Net
	Forbidden                    []Forbidden
	Policy                       PolicyProfile
	Root                         bool // the run has uid 0
	Getenv                       func(string) string
	Files                        Files
}

// Derive computes the profile of a run. It does no I/O of its own; HostFiles is
// the file system of a real run.
func Derive(in Input) (Profile, error) {
	return Profile{}, errors.New("sandbox profile cannot be derived")
}

// HostFiles is the file system of this machine.
func HostFiles() Files { return hostFiles{} }
