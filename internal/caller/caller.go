// Package caller says what the process was started with: the only place where its environment and
// standard descriptors come from.
package caller

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/delegation"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/trust/settle"
)

// Machine is what the process was started with: the only place where the
// environment and the standard descriptors enter the pipeline.
type Machine struct {
	Environ []string
	Homes   []string // below these HOME and the XDG variables count, besides what the administrator lists
	UID     int
	Self    string // path of our own executable
	Stdin   *os.File
}

// Here describes this process.
func Here() Machine {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		self, _ = os.Executable()
	}
	delegation.Inherit()
	return Machine{Environ: withoutWrappers(os.Environ()), UID: os.Geteuid(), Self: self, Stdin: os.Stdin}
}

// withoutWrappers is an environment whose PATH leads to tools and not back to us: the wrappers of
// `atip shim` stand before the tools that they start.
func withoutWrappers(environ []string) []string {
	const path = "PATH="
	at := slices.IndexFunc(environ, func(e string) bool { return strings.HasPrefix(e, path) })
	if at < 0 || !strings.Contains(environ[at], filepath.Base(place.WrappersOf(""))) {
		return environ
	}
	dirs, err := place.DirsFromEnv((Machine{Environ: environ}).Getenv, "")
	if err != nil {
		return environ
	}
	list := filepath.SplitList(environ[at][len(path):])
	kept := slices.DeleteFunc(slices.Clone(list), func(dir string) bool { return filepath.Clean(dir) == dirs.Wrappers() })
	if len(kept) == len(list) {
		return environ
	}
	out := slices.Clone(environ)
	out[at] = path + strings.Join(kept, string(filepath.ListSeparator))
	return out
}

// Dirs are our own directories and the home directory of the caller's account.
func (m Machine) Dirs() (place.Dirs, error) {
	dirs, err := place.DirsFromEnv(m.Getenv, "", m.Homes...)
	if err == nil {
		err = dirs.Check(m.UID)
	}
	var home *place.HomeError
	if errors.As(err, &home) {
		return dirs, fault.New(errcode.NoInputFile, err.Error()).WithFix("give the account a home directory in the account database", "")
	}
	return dirs, err
}

// Getenv returns the first value of a variable, as getenv(3) does.
func (m Machine) Getenv(name string) string {
	for _, entry := range m.Environ {
		if len(entry) > len(name) && entry[len(name)] == '=' && entry[:len(name)] == name {
			return entry[len(name)+1:]
		}
	}
	return ""
}

// Programs are the files of this program.
func (m Machine) Programs() []string {
	dir := filepath.Dir(m.Self)
	return []string{m.Self, filepath.Join(dir, "atip-exec"), filepath.Join(dir, "atip"), filepath.Join(dir, settle.HelperName)}
}
