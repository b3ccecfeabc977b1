package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"

	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Status is the document of --status-file and --status-fd, atip-exec.status/1. It
// is written whatever happens; consumers ignore unknown fields.
type Status struct {
	Kind     string       `json:"kind"`
	State    string       `json:"state"` // finished, refused, failed, incomplete
	Run      string       `json:"run"`
	Origin   string       `json:"origin"` // child, or atip-exec if the exit status is ours
	ExitCode int          `json:"exit_code"`
	Audit    string       `json:"audit,omitempty"`
	Child    *ChildStatus `json:"child"`
	Error    *fault.Fault `json:"error"`
	Argv     []string     `json:"argv"`
	Cwd      string       `json:"cwd,omitempty"`
	// NoWorkspace says why nothing in Cwd may be written; "" where there is a workspace.
	NoWorkspace string          `json:"no_workspace,omitempty"`
	Decision    *decisionStatus `json:"decision,omitempty"`
	Tool        *toolStatus     `json:"tool,omitempty"`
	Sandbox     any             `json:"sandbox,omitempty"`
	Filter      any             `json:"filter,omitempty"`
	IO          *ioStatus       `json:"io,omitempty"`
	Env         *envStatus      `json:"env,omitempty"`
	Timing      *timingStatus   `json:"timing,omitempty"`
	Timeout     *timeoutStatus  `json:"timeout,omitempty"`
	Tree        *sandbox.Tree   `json:"tree,omitempty"`
	Notes       []Note          `json:"notes,omitempty"`
}

// ChildStatus is how the child ended, as seen by wait4(2).
type ChildStatus struct {
	Pid      int    `json:"pid"`
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
	Core     bool   `json:"core"`
}

type decisionStatus struct {
	Action string   `json:"action"`
	Rules  []string `json:"rules"`
}

type toolStatus struct {
	Path        string `json:"path"`
	SHA256      string `json:"sha256,omitempty"`
	StartedBy   string `json:"started_by,omitempty"`
	ExecChecked string `json:"exec_checked,omitempty"`
}

func (t *toolStatus) startedBy() string {
	if t == nil {
		return ""
	}
	return t.StartedBy
}

func (t *toolStatus) execChecked() string {
	if t == nil {
		return ""
	}
	return t.ExecChecked
}

type ioStatus struct {
	Stdin    string       `json:"stdin"`
	Terminal string       `json:"terminal"`
	Stdout   streamStatus `json:"stdout"`
	Stderr   streamStatus `json:"stderr"`
	Passed   []int        `json:"passed_fds,omitempty"`
}

type streamStatus struct {
	End string `json:"end"` // eof, held, epipe, error
}

type envStatus struct {
	Dropped     []string `json:"dropped"`
	Credentials []string `json:"credentials"`
}

type timingStatus struct {
	Began    string `json:"began"`
	PlanUS   int64  `json:"plan_us"`
	StartUS  int64  `json:"start_us"`
	RunMS    int64  `json:"run_ms"`
	UserMS   int64  `json:"user_ms"`
	SysMS    int64  `json:"sys_ms"`
	MaxRSSKB int64  `json:"max_rss_kb"`
}

type timeoutStatus struct {
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

// statusSink is where the status of one run goes.
type statusSink struct {
	run  string
	file string
	fd   *os.File
	dir  *os.Root // of file, from the judgement on; nil if nothing may be written there
}

// wanted reports whether the caller asked for a status.
func (s *statusSink) wanted() bool { return s.file != "" || s.fd != nil }

// openStatus looks where the status is to go. Nothing is written before the place is judged.
func openStatus(inv Invocation, run string) (*statusSink, error) {
	s := &statusSink{run: run}
	if inv.StatusFD != 0 {
		if !inherited(inv.StatusFD) {
			return nil, fault.New(errcode.FlagValue, fmt.Sprintf("--status-fd: descriptor %d is not open", inv.StatusFD)).WithFix("open it for writing in the shell", "--status-fd 3 3>status.json")
		}
		s.fd = os.NewFile(uintptr(inv.StatusFD), "status")
		if _, err := s.fd.Write(nil); err != nil || !writable(s.fd) {
			return nil, fault.New(errcode.FlagValue, fmt.Sprintf("--status-fd: descriptor %d is not writable", inv.StatusFD)).WithFix("open it for writing in the shell", "--status-fd 3 3>status.json")
		}
	}
	if inv.StatusFile != "" {
		abs, err := filepath.Abs(inv.StatusFile)
		if err != nil {
			return nil, fault.New(errcode.StatusWrite, "--status-file: "+err.Error())
		}
		s.file = abs
	}
	return s, nil
}

// begin makes sure that the status can be written later, if the place was judged and is
// allowed: "incomplete" stands there until the end, and stays if the wrapper is killed. It has
// no command line: what is secret in it is not known yet.
func (s *statusSink) begin(p *Plan) error {
	if s.file == "" || p.ownRefused {
		return nil
	}
	if !p.ownJudged {
		if why := p.statusClass(s.file); why != "" {
			return fault.New(errcode.StatusWrite, "--status-file: "+s.file+" is not written: "+why)
		}
	}
	if err := s.hold(); err != nil {
		return err
	}
	return s.replace(Status{Kind: statusKind, State: "incomplete", Run: s.run, Origin: "atip-exec", Argv: []string{}})
}

// hold opens the directory of the file, so that what is judged is what is written.
func (s *statusSink) hold() error {
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

const statusKind = "atip-exec.status/1"

// write puts the final status in both places.
func (s *statusSink) write(st Status) error {
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

// olderStatus reports a file that a status may take the place of: one that is not there, an
// empty one, or the status of an earlier run.
func olderStatus(file string) bool {
	raw, err := regular.ReadNoFollow(file, maxStatus)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	var old struct{ Kind string }
	return err == nil && (len(raw) == 0 || json.Unmarshal(raw, &old) == nil && old.Kind == statusKind)
}

func (s *statusSink) replace(st Status) error {
	failed := func(err error) error { return fault.New(errcode.StatusWrite, "--status-file: "+err.Error()) }
	line, err := json.Marshal(st)
	if err != nil {
		return failed(err)
	}
	if !olderStatus(s.file) {
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

// ReportUsage writes the status of a command line that could not be parsed. The
// error itself is on stderr already, so a status that cannot be written is lost.
func ReportUsage(file string, argv []string, f *fault.Fault) {
	if file == "" {
		return
	}
	s := &statusSink{run: "usage"}
	var err error
	if s.file, err = filepath.Abs(file); err != nil {
		return
	}
	p := newPlan(Invocation{}, Here())
	defer p.Close()
	if p.locate() != nil || p.statusClass(s.file) != "" || s.hold() != nil {
		return
	}
	_ = s.replace(Status{Kind: statusKind, State: "failed", Origin: "atip-exec", ExitCode: f.Exit, Error: f, Argv: argv,
		Timing: &timingStatus{Began: time.Now().UTC().Format(time.RFC3339Nano)}})
}

func inherited(fd int) bool {
	for _, n := range sandbox.InheritedFDs() {
		if n == fd {
			return true
		}
	}
	return false
}
