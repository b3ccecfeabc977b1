// Package wiring describes the coding agents that can be made to go through atip-exec: which
// file tells them of it, how they ask before a command, how they are answered, and what each
// of them leaves open. It is one table; a new agent is a row.
package wiring

import (
	"slices"
	"strings"
)

// Scope is whose settings are changed.
type Scope string

// Scopes.
const (
	User    Scope = "user"    // of the account
	Project Scope = "project" // of the workspace, for this account
)

// Mode is the way in which commands of an agent reach us.
type Mode string

// Modes. In Shell the agent starts us in place of its shell, so that what it keeps between
// commands stays, and the hook only denies; in Hook the hook rewrites each command.
const (
	Hook  Mode = "hook"
	Shell Mode = "shell"
)

// Host is one row of the table: a program that runs commands for a model.
type Host struct {
	Name     string           // what `hook` and `init` call it
	Title    string           // what its makers call it
	Programs []string         // its names in PATH
	Dirs     []string         // below the home directory: any of them says that it is used
	Files    map[Scope]string // its settings, below the home directory or the workspace
	Base     []Edit           // what settings of its kind begin with
	Ask      *Ask             // its hook; nil if it has none, or needs none
	Shell    *ShellRow        // its shell; nil if none can be set
	Gaps     []string         // what goes on without us
	Steps    []string         // what is left to the user
	Seen     string           // the version with which the row was tried, or how much of it was
}

// Edit is one change of a settings file.
type Edit struct {
	Path   []string
	Value  string // JSON; $HOOK is the command of the hook, $SHELL the path of our shell
	Append bool   // one more item of the array at Path, instead of its value
}

// Ask is how a host asks before a command.
type Ask struct {
	Edit    Edit
	Known   []string  // top-level keys of an event; with another one it is of an unknown version
	Kind    [2]string // key and value that mark the event; "" for none
	ToolKey string    // "" if such events are about commands only
	Tools   []string  // the names of its shell
	Input   string    // key of the object with the command
	InText  bool      // that object may be JSON in a string
	Command string    // key of the command in it
	Inputs  []string  // keys that it may have besides
	Cwd     string    // key of the directory, "" if none is told
	Dir     string    // key of the input: a directory below that one, "" for none
	Pass    string    // answer: no opinion
	Rewrite string    // answer: run $INPUT instead; "" if the host cannot
	Deny    string    // answer: $REASON; "" for exit status 2 and the reason on stderr
	Dies    string    // what happens if the hook gives no answer
}

// ShellRow is how the shell of a host is set.
type ShellRow struct {
	Edit     *Edit
	Variable string // of the environment, in which the host itself finds it; "" for none
	InPath   bool   // the first bash of PATH; nothing but its starter sets it
	Dies     string
}

// ByName finds a row.
func ByName(name string) (Host, bool) {
	hosts := Hosts()
	if i := slices.IndexFunc(hosts, func(h Host) bool { return h.Name == name }); i >= 0 {
		return hosts[i], true
	}
	return Host{}, false
}

// Names lists the names of all rows.
func Names() []string {
	var out []string
	for _, h := range Hosts() {
		out = append(out, h.Name)
	}
	return out
}

// Modes are the ways in which a host can be led to us by a settings file, the better one first.
func (h Host) Modes() []Mode {
	var out []Mode
	if h.Shell != nil && h.Shell.Edit != nil {
		out = append(out, Shell)
	}
	if h.Ask != nil {
		out = append(out, Hook)
	}
	return out
}

// Fails says what becomes of a command if our files are gone or give no answer: "closed" if it is
// blocked in any case, else "open"; how says when. The shell counts only in its mode.
func (h Host) Fails(mode Mode) (fails, how string) {
	fails = "closed"
	var parts []string
	add := func(part, dies string) {
		parts = append(parts, part+": "+dies)
		if dies != diesClosed {
			fails = "open"
		}
	}
	if h.Ask != nil {
		add("hook", h.Ask.Dies)
	}
	if h.Shell != nil && (mode == Shell || h.Ask == nil) {
		add("shell", h.Shell.Dies)
	}
	return fails, strings.Join(parts, "; ")
}

// Edits are the changes of the settings file for a mode.
func (h Host) Edits(mode Mode) []Edit {
	out := slices.Clone(h.Base)
	if mode == Shell && h.Shell != nil && h.Shell.Edit != nil {
		out = append(out, *h.Shell.Edit)
	}
	if h.Ask != nil {
		out = append(out, h.Ask.Edit)
	}
	return out
}
