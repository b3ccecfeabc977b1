// Package effects finds out what a command line will do, following every command it starts.
package effects

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"errors"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// Site is where commands would run and what is settled before any of them is read.
type Site struct {
	Dirs      place.Dirs
	World     place.World
	Workspace string   // "" for none
	Cwd       string   // of the command line as a whole
	Private   string   // the directory for temporary files and caches of this workspace
	GitDirs   []string // of the workspace
	Environ   []string // of the caller
	UID       int
	Self      string   // this program
	Programs  []string // ours
	Env       policy.EnvPolicy
	Limits    policy.Analysis
	Opener    trust.Opener // without Args
	Shims     shims.Dirs
	Authority Authority
	Memo      *Memo   // what a batch has looked up; nil otherwise
	Named     []Named // what rules name by path

	OwnProxy func(url string) bool // whether a proxy is the one of the run that this program is in
	Starts   bool                  // the plan is made to be run
	Defers   bool                  // words that are not known may be left to the gate
	Splits   bool                  // what a project declares may be fetched beside it
	Apart    bool                  // a run has a loopback and a table of processes of its own

	names    []string        // variables of the child, nil until asked for
	steering *[]shell.Assign // of the caller's environment, nil until asked for
}

// Named is an executable that a rule names by its path.
type Named struct {
	Path     string
	Dev, Ino uint64
}

// Authority answers what only a policy and its evidence can.
type Authority interface {
	// Verdict decides about an identified file.
	Verdict(trust.Identity) (trust.Verdict, error)
	// Limited is a verdict on a program whose signature does not cover what it runs, for a reason of trust.
	Limited(v trust.Verdict, why string) trust.Verdict
	// Argument adds what is known against a program text that the file is told to run.
	Argument(v trust.Verdict, id trust.Identity) trust.Verdict
	// Document finds the metadata of a step's tool, and sets what the step says of it.
	Document(*step.Step, shims.Query) (shims.Found, error)
	// Locked asks about a step whose metadata is another than when its tool was locked.
	Locked(*step.Step)
}

// path is the list in which command words are looked up.
func (s *Site) path() []string { return filepath.SplitList(s.Opener.Getenv("PATH")) }

// Expand makes a path of a policy or a document absolute.
func Expand(path, home, cwd string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(home, path[1:])
	}
	return filepath.Clean(subpath.Join(cwd, path))
}

// absolute is a path as the shell would find it, with its patterns.
func (s *Site) absolute(dir, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(s.Dirs.Home, rest)
	}
	return subpath.Join(dir, path)
}

// lookupEnv reads a variable that the child will have.
func (s *Site) lookupEnv(name string) (string, bool) {
	if !slices.Contains(s.envNames(), name) {
		return "", false
	}
	for _, entry := range s.Environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// envNames lists the variables that the child will have: what scrub drops cannot
// make a tool run anything.
func (s *Site) envNames() []string {
	if s.names == nil {
		for _, entry := range s.Environ {
			name, _, ok := strings.Cut(entry, "=")
			if ok && (!step.LoadsCode(name) || step.MatchesName(s.Env.Pass, name)) {
				s.names = append(s.names, name)
			}
		}
	}
	return s.names
}

// passedLoaders lists the variables of loaders and interpreters that policy passes
// on: no digest covers the code they bring.
func (s *Site) passedLoaders() []string {
	if len(s.Env.Pass) == 0 {
		return nil
	}
	var out []string
	for _, entry := range s.Environ {
		if name, _, ok := strings.Cut(entry, "="); ok && step.LoadsCode(name) && step.MatchesName(s.Env.Pass, name) {
			out = append(out, entry)
		}
	}
	return out
}

// Written reports a path that a confined run of this workspace can write, or make.
func (s *Site) Written(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = path
	}
	return slices.ContainsFunc(append([]string{s.Workspace, s.Private}, append(s.World.TmpDirs, s.GitDirs...)...), func(w string) bool {
		return subpath.Within(real, w) || subpath.Within(filepath.Clean(path), w)
	})
}

const maxScript = 256 << 10

// readText reads a regular file of at most 256 KiB that a shell would run. One that no
// command may read is not read here either: a plan shows the words of what it read.
func (s *Site) readText(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() > maxScript:
		return nil, errors.New("not a small regular file")
	case s.Hides(f):
		return nil, errors.New("it is not to be read")
	}
	return io.ReadAll(io.LimitReader(f, maxScript))
}

// Hides reports an open file whose text must not get into a plan, an error or a record.
func (s *Site) Hides(f *os.File) bool {
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		path, err = filepath.EvalSymlinks(f.Name())
	}
	if err != nil {
		return true
	}
	return s.World.Classify(path, atip.AccessRead, false) == atip.ClassSecret || subpath.Within(path, s.World.State) || subpath.Within(path, s.World.Runtime)
}

// realShell is the shell that runs -c, and its dialect.
//
// Where our own program was put in the place of a shell, it is not taken for one.
func (s *Site) realShell() (string, shell.Dialect, error) {
	self, _ := os.Stat(s.Self)
	for _, path := range [...]string{"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh"} {
		info, err := os.Stat(path)
		if err != nil || self != nil && os.SameFile(info, self) {
			continue
		}
		if filepath.Base(path) == "sh" {
			return path, shell.POSIX, nil
		}
		return path, shell.Bash, nil
	}
	return "", 0, fault.New(errcode.NotExecutable, "there is no shell: neither /bin/bash nor /bin/sh is one").WithFix("install bash", "")
}

// ownFile reports whether a path is one of our own programs.
func (s *Site) ownFile(canonical string) bool {
	return canonical != "" && slices.Contains(s.Programs, canonical)
}

// shellOfOurs reports a shell name that leads to our own program, as in a directory
// that puts us in front of the shells of an agent.
func (s *Site) shellOfOurs(id trust.Identity) bool {
	switch strings.TrimPrefix(id.Invoked, "-") {
	case "bash", "sh", "zsh":
		return s.ownFile(id.Canonical)
	}
	return false
}
