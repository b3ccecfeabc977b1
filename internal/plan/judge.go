package plan

import (
	"path/filepath"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/layers"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// Question is one command to be judged: a shell string, or an argv if Cmd is empty.
type Question struct {
	Cmd  string
	Argv []string
	Cwd  string // "" for the current directory

	Env map[string]string // variables of the caller beside its own
}

// Words shows the question as it would be typed.
func (q Question) Words() string {
	if q.Cmd != "" {
		return q.Cmd
	}
	return quote.Words(q.Argv)
}

// Verdict is the answer to a question. What cannot be planned is denied.
type Verdict struct {
	Action  policy.Action
	Rules   []string
	Effects map[string]string // the strongest value among the steps, by danger name
	Opaque  bool              // some step is not understood
	Err     error             // why it could not be planned
}

// Judge decides commands under policies that need not be in force. It starts nothing.
type Judge struct {
	batch Batch
	set   *policy.Set
}

// NewJudge makes a judge. Without a set, the policies in force where a command would
// run decide.
func NewJudge(m caller.Machine, set *policy.Set) *Judge {
	return &Judge{batch: Batch{Machine: m, places: map[string]*Plan{}}, set: set}
}

// Documents reads the policies of every layer that is in force in the current
// directory.
func Documents(m caller.Machine) ([]*policy.Document, error) {
	at, err := Locate(Invocation{}, m)
	if err != nil {
		return nil, err
	}
	return at.documents(Invocation{}, m)
}

// Locate is where an invocation would run, before a policy is asked.
func Locate(inv Invocation, m caller.Machine) (Place, error) {
	dirs, err := m.Dirs()
	if err != nil {
		return Place{}, err
	}
	return locate(inv, m, dirs)
}

// documents reads the policies of every layer that is in force for an invocation.
func (at Place) documents(inv Invocation, m caller.Machine) ([]*policy.Document, error) {
	examples := exampleCheck{dir: filepath.Join(at.Dirs.State, "verdict", "policy")}
	return layers.Source{Dirs: at.Dirs, Workspace: at.Workspace, Cwd: at.Cwd, UID: m.UID, Check: examples.check, Files: inv.Policies, Profiles: inv.Profiles}.Documents()
}

// ReadProject finds the project that dir belongs to, and reads its policy files, for a person
// to read. The texts are by path below the root.
func ReadProject(m caller.Machine, dir string) (root string, texts map[string][]byte, err error) {
	at, err := Locate(Invocation{Directory: dir}, m)
	if err != nil {
		return "", nil, err
	}
	if at.Workspace == "" {
		return "", nil, fault.New(errcode.NoInputFile, at.Cwd+" belongs to no project").WithFix("name a directory with "+place.OwnDir+" or .git", "")
	}
	if texts, err = layers.ReadProject(at.Workspace, m.UID); err != nil {
		return "", nil, err
	}
	return at.Workspace, texts, nil
}

// Decide answers one question.
func (j *Judge) Decide(q Question) Verdict {
	inv := Invocation{Argv: q.Argv, Directory: q.Cwd}
	if q.Cmd != "" {
		inv = Invocation{Shell: q.Cmd, IsShell: true, Directory: q.Cwd}
	}
	failed := func(err error) Verdict { return Verdict{Err: err, Opaque: true} }
	if !inv.IsShell && len(inv.Argv) == 0 {
		return failed(fault.New(errcode.NoCommand, "neither cmd nor argv"))
	}
	if len(q.Env) > 0 {
		// What is remembered of a place rests on the variables, too.
		m := j.batch.Machine
		var own []string
		for name, value := range q.Env {
			own = append(own, name+"="+value)
		}
		m.Environ, q.Env = append(own, m.Environ...), nil // the first one of a name counts
		return NewJudge(m, j.set).Decide(q)
	}
	if err := j.settle(q.Cwd); err != nil {
		return failed(err)
	}
	p, err := j.batch.Plan(inv)
	if err != nil {
		return failed(err)
	}
	defer p.Close()
	v := Verdict{Action: p.Decision.Action, Rules: p.RuleNames(), Effects: map[string]string{}}
	for _, s := range p.Steps {
		v.Opaque = v.Opaque || s.Certainty() == "opaque"
		for _, e := range DangerKeys() {
			if name := DangerName(e); s.Value(e) != atip.No && v.Effects[name] != "yes" {
				v.Effects[name] = s.Value(e).String()
			}
		}
	}
	return v
}

// settle puts the judge's own policies in force in a directory.
func (j *Judge) settle(dir string) error {
	if j.set == nil || j.batch.places[dir] != nil {
		return nil
	}
	p := New(Invocation{Directory: dir}, j.batch.Machine)
	at, err := Locate(p.Invocation, p.Machine)
	if err != nil {
		return err
	}
	p.Place, p.Rules, p.files = at, Rules{Policies: j.set}, sandbox.HostFiles()
	if err := p.probe(); err != nil {
		return err
	}
	j.batch.places[dir] = p
	return nil
}
