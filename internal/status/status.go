// Package status is the document that says how a run ended, atip-exec.status/1, and where it is
// written.
package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Document is the document of --status-file and --status-fd, atip-exec.status/1. It
// is written whatever happens; consumers ignore unknown fields.
type Document struct {
	Kind     string       `json:"kind"`
	State    string       `json:"state"` // finished, refused, failed, incomplete
	Run      string       `json:"run"`
	Origin   string       `json:"origin"` // child, or atip-exec if the exit status is ours
	ExitCode int          `json:"exit_code"`
	Audit    string       `json:"audit,omitempty"`
	Child    *Child       `json:"child"`
	Error    *fault.Fault `json:"error"`
	Argv     []string     `json:"argv"`
	Cwd      string       `json:"cwd,omitempty"`
	// NoWorkspace says why nothing in Cwd may be written; "" where there is a workspace.
	NoWorkspace string        `json:"no_workspace,omitempty"`
	Decision    *Decision     `json:"decision,omitempty"`
	Tool        *Tool         `json:"tool,omitempty"`
	Sandbox     any           `json:"sandbox,omitempty"`
	Filter      any           `json:"filter,omitempty"`
	IO          *IO           `json:"io,omitempty"`
	Env         *Env          `json:"env,omitempty"`
	Timing      *Timing       `json:"timing,omitempty"`
	Timeout     *Timeout      `json:"timeout,omitempty"`
	Tree        *sandbox.Tree `json:"tree,omitempty"`
	Notes       []Note        `json:"notes,omitempty"`
}

// Child is how the child ended, as seen by wait4(2).
type Child struct {
	Pid      int    `json:"pid"`
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
	Core     bool   `json:"core"`
}

// Decision is what the policy said, and by which rules.
type Decision struct {
	Action string   `json:"action"`
	Rules  []string `json:"rules"`
}

// Tool is the file that was started, and how.
type Tool struct {
	Path        string `json:"path"`
	SHA256      string `json:"sha256,omitempty"`
	StartedBy   string `json:"started_by,omitempty"`
	ExecChecked string `json:"exec_checked,omitempty"`
}

// HowStarted is StartedBy, "" for a tool that is not known.
func (t *Tool) HowStarted() string {
	if t == nil {
		return ""
	}
	return t.StartedBy
}

// HowChecked is ExecChecked, "" for a tool that is not known.
func (t *Tool) HowChecked() string {
	if t == nil {
		return ""
	}
	return t.ExecChecked
}

// IO is how the child was connected to the outside.
type IO struct {
	Stdin    string `json:"stdin"`
	Terminal string `json:"terminal"`
	Stdout   Stream `json:"stdout"`
	Stderr   Stream `json:"stderr"`
	Passed   []int  `json:"passed_fds,omitempty"`
}

// Stream is how the output of the child ended.
type Stream struct {
	End string `json:"end"` // eof, held, epipe, error
}

// Env names the variables that the child did not get, and the credentials that it got.
type Env struct {
	Dropped     []string `json:"dropped"`
	Credentials []string `json:"credentials"`
}

// Timing is when the run began and what it took.
type Timing struct {
	Began    string `json:"began"`
	PlanUS   int64  `json:"plan_us"`
	StartUS  int64  `json:"start_us"`
	RunMS    int64  `json:"run_ms"`
	UserMS   int64  `json:"user_ms"`
	SysMS    int64  `json:"sys_ms"`
	MaxRSSKB int64  `json:"max_rss_kb"`
}

// Timeout is the time that the child was given, and whether it was over.
type Timeout struct {
	LimitMS int64  `json:"limit_ms"`
	Source  string `json:"source"`
	Fired   bool   `json:"fired"`
}

// Note is something worth telling that did not change the outcome.
type Note struct {
	Code  string `json:"code"` // timeout, kill, signal, leftovers, pipe_held, output_closed, killed
	Value any    `json:"value,omitempty"`
	At    int64  `json:"t_ms"`
}

// Sink is where the status of one run goes.
type Sink struct {
	run  string
	file string
	fd   *os.File
	dir  *os.Root // of file, from the judgement on; nil if nothing may be written there
}

// Wanted reports whether the caller asked for a status.
func (s *Sink) Wanted() bool { return s.file != "" || s.fd != nil }

// File is the absolute path of --status-file, "" if there is none.
func (s *Sink) File() string { return s.file }

// Open looks where the status of a run is to go: --status-fd, 0 for none, and --status-file.
// Nothing is written before the place is judged.
func Open(run string, fd int, file string) (*Sink, error) {
	s := &Sink{run: run}
	if fd != 0 {
		if !slices.Contains(sandbox.InheritedFDs(), fd) {
			return nil, fault.New(errcode.FlagValue, fmt.Sprintf("--status-fd: descriptor %d is not open", fd)).WithFix("open it for writing in the shell", "--status-fd 3 3>status.json")
		}
		s.fd = os.NewFile(uintptr(fd), "status")
		if _, err := s.fd.Write(nil); err != nil || !writable(s.fd) {
			return nil, fault.New(errcode.FlagValue, fmt.Sprintf("--status-fd: descriptor %d is not writable", fd)).WithFix("open it for writing in the shell", "--status-fd 3 3>status.json")
		}
	}
	if file != "" {
		abs, err := filepath.Abs(file)
		if err != nil {
			return nil, fault.New(errcode.StatusWrite, "--status-file: "+err.Error())
		}
		s.file = abs
	}
	return s, nil
}

// Begin makes sure that the status can be written later, once the place was judged and is
// allowed: "incomplete" stands there until the end, and stays if the wrapper is killed. It has
// no command line: what is secret in it is not known yet.
func (s *Sink) Begin() error {
	if err := s.Hold(); err != nil {
		return err
	}
	return s.replace(Document{Kind: Kind, State: "incomplete", Run: s.run, Origin: "atip-exec", Argv: []string{}})
}

// Hold opens the directory of the file, so that what is judged is what is written.
func (s *Sink) Hold() error {
	failed := func(err error) error { return fault.New(errcode.StatusWrite, "--status-file: "+err.Error()) }
	dir := place.Resolve(filepath.Dir(s.file))
	root, err := os.OpenRoot(dir)
	if err != nil {
		return failed(err)
	}
	opened, err := root.Stat(".")
	if err == nil {
		var named os.FileInfo
		if named, err = os.Lstat(dir); err == nil && (!os.SameFile(opened, named) || place.Resolve(dir) != dir) {
			err = errors.New(dir + " was changed while it was judged")
		}
	}
	if err != nil {
		root.Close()
		return failed(err)
	}
	s.dir = root
	return nil
}

// Kind marks a document as a status of this shape.
const Kind = "atip-exec.status/1"

// Write puts the final status in both places; into the file only if its directory is held.
func (s *Sink) Write(st Document) error {
	if s == nil {
		return nil
	}
	var first error
	if s.fd != nil {
		line, err := json.Marshal(st)
		if err == nil {
			_, err = s.fd.Write(append(line, '\n'))
		}
		if err != nil {
			first = fault.New(errcode.StatusWrite, "--status-fd: "+err.Error())
		}
	}
	if s.dir != nil {
		if err := s.replace(st); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// maxStatus bounds what is read of an older status.
const maxStatus = 4 << 20

// Older reports a file that a status may take the place of: one that is not there, an
// empty one, or the status of an earlier run.
func Older(file string) bool {
	raw, err := regular.ReadNoFollow(file, maxStatus)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	var old struct{ Kind string }
	return err == nil && (len(raw) == 0 || json.Unmarshal(raw, &old) == nil && old.Kind == Kind)
}

func (s *Sink) replace(st Document) error {
	failed := func(err error) error { return fault.New(errcode.StatusWrite, "--status-file: "+err.Error()) }
	line, err := json.Marshal(st)
	if err != nil {
		return failed(err)
	}
	if !Older(s.file) {
		return fault.New(errcode.StatusWrite, "--status-file: "+s.file+" is not the status of an earlier run, and is not overwritten").WithFix("name a new file, or remove this one", "")
	}
	name, tmp := filepath.Base(s.file), ".atip-exec-status-"+s.run
	_ = s.dir.Remove(tmp)
	f, err := s.dir.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return failed(err)
	}
	_, err = f.Write(append(line, '\n'))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = s.dir.Rename(tmp, name)
	}
	if err != nil {
		_ = s.dir.Remove(tmp)
		return failed(err)
	}
	return nil
}
