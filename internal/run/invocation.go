// Package run is the pipeline: it turns an Invocation into a Plan by pure reads,
// and a Plan into a running, confined, audited command. It is the only package
// that knows all the others.
package run

import (
	"errors"
	"os"
	"time"

	"github.com/atip-dev/atip-exec/internal/delegation"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/tty"
	"github.com/atip-dev/atip-exec/policy"
)

// Invocation is what one command line asked for.
type Invocation struct {
	Argv            []string      // the command; empty if Shell is used
	Shell           string        // text of -c
	IsShell         bool          // -c was given, even with empty text
	ShellArgs       []string      // $0 and the positional parameters of Shell
	ShellSet        []string      // options of the shell, as words of `set`
	Script          string        // the file that Shell is read from, "-" for standard input; "" for none
	Directory       string        // -C; "" for the current directory
	Policies        []string      // --policy files: they only tighten
	Profiles        []string      // --profile names: they only tighten
	Timeout         time.Duration // 0 for none
	ExplainDenials  bool          // report what the sandbox refuses
	DeclaredTimeout bool          // use the duration.timeout of the metadata
	Wait            time.Duration // how long to wait for a person, 0 not at all
	CI              bool          // --ci: nobody is there to be asked
	KillAfter       time.Duration // 0 for the default of the policy
	MaxOutput       int64         // --max-output: bytes shown of each stream, 0 for no bound
	Stdin           string        // auto, inherit, null, or a file
	Terminal        bool          // -t
	Refresh         bool          // --refresh: registries are asked again
	Paths           []OwnPath     // what our own flags read and write, absolute
	StatusFile      string        // --status-file, "" for none
	StatusFD        int           // --status-fd, 0 for none
	OutputMode      string        // text, json or jsonl, for the record
	Ceiling         *policy.Ceiling
	Prime           string // auto, enforce or off; "" is auto
	IdempotencyKey  string // "" for none
	RefuseOnly      bool   // what may run is not started: only a refusal counts
	Version         string // ours, which a tool may ask for

	scriptRead bool        // Shell was read from standard input
	behalf     *nest.Order // for whom the run is, nil for the caller
}

// Machine is what the process was started with: the only place where the
// environment and the standard descriptors enter the pipeline.
type Machine struct {
	Environ []string
	Homes   []string // below these HOME and the XDG variables count, besides what the administrator lists
	UID     int
	Self    string // path of our own executable
	Stdin   *os.File
	Stdout  *os.File
	Stderr  *os.File
}

// Here describes this process.
func Here() Machine {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		self, _ = os.Executable()
	}
	delegation.Inherit()
	return Machine{Environ: os.Environ(), UID: os.Geteuid(), Self: self, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
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

// isTerminal reports whether f is a terminal and not another device.
func isTerminal(f *os.File) bool { return tty.IsTerminal(f.Fd()) }

// argv is what was asked for; what a shell string starts is known once it is read.
func (inv Invocation) argv() []string {
	if !inv.IsShell {
		return inv.Argv
	}
	if inv.Script != "" {
		return append([]string{"/bin/bash"}, inv.ShellArgs...)
	}
	return append([]string{"/bin/bash", "-c", inv.Shell}, inv.ShellArgs...)
}
