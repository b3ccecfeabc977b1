package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/fetch"
	"github.com/atip-dev/atip-exec/internal/gate"
	"github.com/atip-dev/atip-exec/internal/layers"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// judging is a decision that is being made about a plan. What it holds itself is not yet the plan's.
type judging struct {
	*Plan
	Steps []*step.Step
	Decision
	works []*fetch.Work // runs that would fetch, while it is decided with them
}

func (p *Plan) decide() (err error) {
	if p.Decision, p.Steps, err = p.decision(); err == nil {
		p.Warnings = append(p.Warnings, p.Decision.Warnings...)
	}
	return err
}

// decision is what policy says of the steps, and the steps as they were judged. With an error it is
// what was decided until then.
func (p *Plan) decision() (Decision, []*step.Step, error) {
	j := &judging{Plan: p, Steps: p.Steps}
	req := policy.Request{Agent: p.Agent(), CI: p.InCI(), Workspace: p.Workspace, Cwd: p.Cwd, Now: p.Began,
		Edges: p.Edges, Ceiling: p.Invocation.Ceiling}
	if b := p.Policies.Budgets().Billable; b.Set {
		req.BillableLeft = b.Max // settled under the lock, just before the start
	}
	if sp := p.Policies.Sandbox(); sp.Confine != "none" {
		can := sandbox.Enforceable(p.Host)
		req.Enforce = policy.Enforce{Files: can.Files, Net: can.Net, Secrets: can.Files, DeleteStrict: can.Files && (sp.DeleteStrict || p.strictDelete())}
	}
	for _, s := range j.Steps {
		req.Steps = append(req.Steps, s.Step)
	}
	if err := p.delegate(&req); err != nil {
		return j.Decision, j.Steps, err
	}
	j.CanEnforce, j.chain = req.Enforce, req.Chain
	j.Decision.Decision = j.judged(req)
	j.judgeHidden(req)
	j.judgeDoubt(req)
	if err := j.fetchApart(req); err != nil {
		return j.Decision, j.Steps, err
	}
	if err := j.separate(req); err != nil {
		return j.Decision, j.Steps, err
	}
	j.deferUnknown(req)
	j.judgeOwn(req)
	j.signedMetadata()
	err := j.mayStart()
	if err == nil {
		err = j.onlyApproved()
	}
	return j.Decision, j.Steps, err
}

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
	examples := layers.Examples{Dir: filepath.Join(at.Dirs.State, "verdict", "policy"), Self: caller.Here().Self, Judge: imagine}
	return layers.Source{Dirs: at.Dirs, Workspace: at.Workspace, Cwd: at.Cwd, UID: m.UID, Check: examples.Check, Files: inv.Policies, Profiles: inv.Profiles}.Documents()
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
			if name := policy.DangerName(e); s.Value(e) != atip.No && v.Effects[name] != "yes" {
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

// RuleNames are the rules that decided, each once.
func (p *Plan) RuleNames() []string {
	rules := []string{}
	for _, reason := range p.Decision.Reasons {
		if !slices.Contains(rules, reason.Rule) {
			rules = append(rules, reason.Rule)
		}
	}
	return rules
}

// StatusOutside refuses a status file that the child could write.
func (p *Plan) StatusOutside(s *status.Sink, runs bool) error {
	if s == nil || s.File() == "" || !runs {
		return nil
	}
	dir := filepath.Dir(s.File())
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if slices.ContainsFunc(p.Profile.Write, func(g sandbox.Grant) bool { return subpath.Within(dir, g.Path) }) {
		return fault.New(errcode.FlagValue, "--status-file: the command can write to "+dir).WithFix("name a file outside the workspace, or use --status-fd", "--status-fd 3 3>status.json").With("path", s.File())
	}
	return nil
}

// Words is the command line of the child as it was typed.
func (inv Invocation) Words() []string {
	if inv.Script != "" {
		words := []string{"script"}
		words = append(words, inv.ShellSet...)
		if inv.Script == "-" {
			return append(append(words, "-"), inv.ShellArgs[min(1, len(inv.ShellArgs)):]...)
		}
		return append(words, inv.ShellArgs...)
	}
	if inv.IsShell {
		return append([]string{"-c", inv.Shell}, inv.ShellArgs...)
	}
	return inv.Argv
}

// Granted lists the dangers that the run was granted, under their names in plans.
func (p *Plan) Granted() []string { return DangersOf(p.Decision.Grants.Effects) }

// Tool is the name of the tool that a plan starts, "" if it was not found out.
func (p *Plan) Tool() string {
	if p == nil || len(p.Steps) == 0 {
		return ""
	}
	return p.Steps[0].Call.Tool
}

// MayHarm reports whether the run may do what an audit must be able to show even
// if the wrapper is killed.
func (p *Plan) MayHarm() bool {
	for _, s := range p.Steps {
		e := s.Call.Effects
		if e[atip.Destructive].Value != atip.No || e[atip.Billable].Value != atip.No || e[atip.RemoteMutation].Value != atip.No || e[atip.Reversible].Value == atip.No {
			return true
		}
	}
	return false
}

// Commands are the words of each command of the call.
func (p *Plan) Commands() [][]string {
	var out [][]string
	for _, s := range p.Steps {
		out = append(out, s.Argv)
	}
	return out
}

// Enforced is the receipt without what every run may read.
func (p *Plan) Enforced() sandbox.Receipt {
	r := p.Receipt()
	r.Read = slices.DeleteFunc(slices.Clone(r.Read), func(g sandbox.Grant) bool { return g.Why == "default" })
	return r
}

func resourceList(rs []atip.Resource) []any {
	out := []any{}
	for _, r := range rs {
		out = append(out, strings.Join([]string{r.Kind, r.Value, r.Abs, r.Access.String(), r.Class.String(), r.Host}, " "))
	}
	return out
}

func anys(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

// gateable reports whether this run's starts can be decided when they happen. A run inside
// another has the gate of that one, if it has any.
func (p *Plan) gateable() bool {
	sp := p.Policies.Sandbox()
	return p.Host.Seccomp && p.Host.ABI > 0 && sp.Confine != "none" && sp.Gate != "off" && gate.Supported() && !p.Inside()
}

// deferUnknown decides once more without the words that are not known, where they alone
// keep the plan from being allowed. Each program that they start is decided when it starts.
func (p *judging) deferUnknown(req policy.Request) {
	if p.Decision.Action == policy.Allow || !slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return s.Known != nil }) {
		return
	}
	whole, steps := p.Decision, p.Steps
	p.Steps = slices.Clone(steps)
	req.Steps = slices.Clone(req.Steps)
	for i, s := range steps {
		if s.Known == nil {
			continue
		}
		s.RedirectedAs(s.Known)
		s.Known.AtExec = true
		p.Steps[i], req.Steps[i] = s.Known, s.Known.Step
	}
	p.Deferred = true
	p.Decision.Decision = p.Policies.Decide(req)
	p.judgeHidden(req)
	p.judgeDoubt(req)
	if p.Decision.Action != policy.Allow {
		p.Decision, p.Steps = whole, steps
	}
}

// Gated reports whether the starts of this run are decided when they happen: some were left
// for that, or documents restrict what code of the workspace may start.
func (p *Plan) Gated() bool {
	return p.Deferred || len(p.Own) > 0 || p.gatedAlone() || p.Policies.Restricts() && p.Starts && p.forks() && p.gateable()
}

// Traces reports whether the policy lets processes of a run whose starts are decided trace each other: then
// one of them can change what another was judged to do.
func (p *Plan) Traces() bool { return p.Policies.Sandbox().Trace == "own" && len(p.Own) == 0 }

// gatedAlone reports an own step of which no list says what it may start.
func (p *Plan) gatedAlone() bool {
	return p.Invocation.Standing != nil && p.Rights.closed != nil && !p.Rights.closed.Listed
}

// JudgesTyped reports whether starts that a person or an agent typed are judged when they happen, as
// if they had been typed there.
func (p *Plan) JudgesTyped() bool { return p.Deferred || p.gatedAlone() }

// forks reports whether something of the run may start programs.
func (p *Plan) forks() bool {
	return slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return s.Call.Effects[atip.Subprocess].Value != atip.No })
}

// actedOn lists the files whose content a step that reaches other machines may send or apply:
// each word, or what follows one of "@<=," in it, that names a regular file, and the files that
// its tool reads by itself. What a push sends is no file; see sent.
func (p *Plan) actedOn(s *step.Step) []string {
	if s.Call.Effects[atip.Network].Value == atip.No {
		return nil
	}
	base := subpath.Join(s.Cwd, s.Call.Chdir)
	bases := []string{base}
	var out []string
	add := func(name string) {
		if name = strings.Trim(name, `"'`); name == "" || strings.IndexByte(name, 0) >= 0 {
			return
		}
		path := subpath.Join(base, name)
		info, err := os.Stat(path)
		switch {
		case err != nil || p.World.Classify(place.Resolve(path), atip.AccessRead, false) == atip.ClassSecret:
		case info.Mode().IsRegular():
			out = append(out, path)
		case info.IsDir():
			bases = append(bases, path) // of a build, or of a module
		}
	}
	for _, word := range s.Argv[1:] {
		add(word)
		for i, c := range word {
			if strings.ContainsRune("@=<,", c) {
				// curl -F 'f=@file;type=text/plain' and 'f=@one,two'
				name, _, _ := strings.Cut(word[i+1:], ";")
				add(name)
				name, _, _ = strings.Cut(name, ",")
				add(name)
			}
		}
		if strings.HasPrefix(word, "-") && len(word) > 2 {
			add(word[2:])
		}
	}
	var patterns []string
	switch s.Call.Tool {
	case "terraform", "tofu":
		patterns = []string{"*.tf", "*.tf.json", "*.tfvars", "*.tfvars.json"}
	case "docker", "podman", "docker-compose":
		patterns = []string{"Dockerfile", "Containerfile", "compose.y*ml", "docker-compose*.y*ml"}
	}
	for _, pattern := range patterns {
		for _, dir := range bases {
			found, _ := filepath.Glob(filepath.Join(dir, pattern))
			for _, path := range found {
				add(path)
			}
		}
	}
	return out
}
