// Package plan finds out what one call may do and how it will be confined: it turns an Invocation
// into a Plan. It starts nothing but a question to a registry, and writes nothing but caches.
package plan

import (
	"os"
	"time"

	"github.com/atip-dev/atip-exec/internal/nest"
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

	Fetching   *Fetching   // what the project declares is fetched for this run; nil for a command of the caller
	scriptRead bool        // Shell was read from standard input
	Behalf     *nest.Order // for whom the run is, nil for the caller
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
