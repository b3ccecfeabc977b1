// Package plan finds out what one call may do and how it will be confined: it turns an Invocation
// into a Plan. It starts nothing but a question to a registry, and writes nothing but caches.
package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/authority"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/fetch"
	"github.com/atip-dev/atip-exec/internal/memo"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/script"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/internal/toollock"
	"github.com/atip-dev/atip-exec/internal/tty"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// Plan is everything that was decided before anything started. Making one starts
// no process and writes nothing but caches. It consists of six values, each of which one
// function returns and nothing writes again (TestValuesAreMadeOnce), beside what was asked for and
// what is held open meanwhile.
type Plan struct {
	Run        string
	Invocation Invocation
	Machine    caller.Machine
	Starts     bool // the plan is made to be run
	Began      time.Time
	Took       time.Duration

	Place
	Rules
	Reading
	Steps []*step.Step // of the reading, in the form in which they were decided
	Decision
	Confinement
	Env
	Host     sandbox.Host // what this machine enforces
	Warnings []string
	pending  []string // what a run would still ask

	Prepared    *sandbox.Prepared // the part of the confinement that no decision changes; nil if nothing will be started
	files       sandbox.Files     // what was looked up of the file system
	innerState  string            // directory of a run inside another, "" for none
	hostCwdMade bool              // the file for the host was made for this run, which did not start yet
	imagined    bool              // of the machine on which examples are judged

	memo  *memo.Memo           // what a batch or the starts of a run have looked up; nil otherwise
	below [2]*memo.Memo        // for the starts of this run: of code, and of what was typed
	where *effects.Site        // for the reading, nil until asked for
	known *authority.Authority // nil until asked for
}

// Make identifies, resolves and decides. The caller closes the plan.
func Make(inv Invocation, m caller.Machine) (*Plan, error) {
	p := New(inv, m)
	if err := p.Complete(func() {}); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// New is a plan of which nothing is known yet.
func New(inv Invocation, m caller.Machine) *Plan {
	return &Plan{Run: audit.NewID(), Invocation: inv, Machine: m, Began: time.Now(), Reading: Reading{Reading: &effects.Reading{}, Argv: inv.argv()}}
}

// Complete runs the stages; identified is called when it is known what would run and
// while the rest is still being planned.
func (p *Plan) Complete(identified func()) error {
	defer func() { p.Took = time.Since(p.Began) }()
	return stages(p.settle, p.probe, p.identify, func() error { identified(); return nil }, p.decide, p.enclose)
}

func stages(all ...func() error) error {
	for _, stage := range all {
		if err := stage(); err != nil {
			return err
		}
	}
	return nil
}

// Close releases the executables that the plan holds.
func (p *Plan) Close() {
	if p.Prepared != nil {
		p.Prepared.Close()
	}
	for _, s := range p.Steps {
		if s.Executable != nil {
			s.Executable.Close()
		}
	}
	if p.innerState != "" {
		os.RemoveAll(p.innerState)
	}
	if p.hostCwdMade {
		os.Remove(p.hostCwd) // a host would take the empty file for an answer
	}
}

// settle finds out where the command would run and what holds there.
func (p *Plan) settle() error {
	dirs, err := p.Machine.Dirs()
	if err != nil {
		p.Place = setOut(p.Machine, dirs) // a directory of ours that is unsafe is recorded in one that is not
		return err
	}
	if p.Starts {
		p.Prepared = sandbox.Prepare(dirs.Home, filepath.SplitList(p.Machine.Getenv("PATH")))
	} else {
		p.files = sandbox.HostFiles()
	}
	if f := p.Invocation.Fetching; f != nil {
		p.Place, p.Rules = f.place(p.Machine), f.rules
		return nil
	}
	p.Place, p.Rules, err = settled(p.Invocation, p.Machine, dirs)
	if p.Policies != nil {
		p.Warnings = append(p.Warnings, p.Policies.Warnings()...)
	}
	return err
}

// probe asks what this machine can enforce. To wake another thread for it would take
// longer than the answer of an earlier run does.
func (p *Plan) probe() (err error) {
	p.Host, err = sandbox.Probe(p.ProbeCache())
	return err
}

func (p *Plan) identify() (err error) {
	var hidden bool
	if p.Invocation, hidden, err = p.withScript(); err == nil {
		p.Reading, err = p.read(hidden)
	}
	if p.Invocation.Fetching != nil && err == nil {
		p.Invocation.Fetching.meant(p.Reading.Steps)
	}
	p.Steps, p.Warnings = p.Reading.Steps, append(p.Warnings, p.Reading.Warnings...)
	p.raiseQuieted()
	if err == step.ErrTooMany && !p.Invocation.IsShell {
		return fault.New(errcode.ShellText, "the command line holds more commands than are judged").WithFix(step.ErrTooMany.Fix, "")
	}
	if err != nil {
		return err
	}
	// Nothing is known about a command that is not there: it is missing, not unknown.
	if s := p.Steps[0]; s.Missing != nil && s.Call.Provenance.Channel == "none" && p.Starts {
		return s.Missing
	}
	return nil
}

// read finds out what the command line will do; hidden says that its script is not read.
func (p *Plan) read(hidden bool) (r Reading, err error) {
	inv := &p.Invocation
	if !inv.IsShell {
		r.Argv = inv.Argv
		r.Reading, err = p.site().Words(inv.Argv)
		return r, err
	}
	r.Reading, err = p.site().Text(effects.Text{Source: inv.Shell, File: inv.Script, Hidden: hidden, Set: inv.ShellSet, Args: inv.ShellArgs})
	r.Argv = r.Reading.Argv
	if err != nil || r.Text == "" {
		return r, err
	}
	r.hostCwd = hostCwdFile(r.Script, p.tmpDirs())
	r.handOver()
	return r, nil
}

// apart reports whether a run has a loopback and a table of processes of its own, unless it is
// granted more.
func (p *Plan) apart() bool {
	sp := p.Policies.Sandbox()
	forced, _ := sandbox.TierByName(sp.Tier)
	return sp.Confine != "none" && p.Host.HostLists(forced)
}

// site is where the commands of this plan would run.
func (p *Plan) site() *effects.Site {
	if p.where != nil {
		return p.where
	}
	t := p.Policies.TrustPolicy()
	opener := trust.Opener{CacheDir: p.digestDir(), Workspace: p.Workspace, Home: p.Dirs.Home, TmpDirs: p.World.TmpDirs, Getenv: p.Machine.Getenv, Scripts: trust.ScriptsByName(t.Scripts), Kept: p.kept}
	if t.SystemPathsSet {
		opener.SystemPaths = t.SystemPaths
	}
	p.where = &effects.Site{Dirs: p.Dirs, World: p.World, Workspace: p.Workspace, Cwd: p.Cwd, Private: p.Private, GitDirs: p.gitDirs, Environ: p.Machine.Environ, UID: p.Machine.UID,
		Self: p.Machine.Self, Programs: p.Machine.Programs(), Env: p.Policies.Env(), Limits: p.Policies.Analysis(), Opener: opener, Shims: p.shimDirs, Authority: p.authority(), Memo: p.memo,
		OwnProxy: func(url string) bool { return url == sandbox.ProxyURL() && p.Inside() }, Starts: p.Starts, Splits: p.splits(), Named: p.namedFiles(), Defers: p.Policies.Defers() && p.gateable(), Apart: p.apart()}
	if f := p.Invocation.Fetching; f != nil {
		p.where.Fetcher = f.Work.By
	}
	return p.where
}

// namedFiles are the files that rules ask about or deny by their paths. A link names no file of its own:
// a rule on one of many names of a multi-call program is not about the others.
func (p *Plan) namedFiles() []effects.Named {
	var out []effects.Named
	for _, path := range p.Policies.NamedFiles() {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
			dev, ino := place.FileID(path)
			out = append(out, effects.Named{Path: path, Dev: dev, Ino: ino})
		}
	}
	return out
}

// kept reports a path where no confined run writes without a question, whichever workspace it runs in:
// an executable there is the user's own, like the policy.
func (p *Plan) kept(path string) bool {
	sp := p.Policies.Sandbox()
	if p.imagined || sp.Confine == "none" || p.World.Classify(path, atip.AccessWrite, false) != atip.ClassOutside {
		return false
	}
	for _, rule := range sp.Write {
		if dir := place.Resolve(p.Expand(rule.Path)); subpath.Within(path, dir) || subpath.Within(dir, path) {
			return false
		}
	}
	if p.Policies.LetsWrite(path) {
		return false
	}
	root, _, _ := place.FindWorkspace(filepath.Dir(path), p.Dirs, p.Machine.UID)
	return root == ""
}

// authority is what registries, signatures and locks know of what this plan starts.
func (p *Plan) authority() *authority.Authority {
	if p.known == nil {
		p.known = &authority.Authority{Machine: p.Machine, Dirs: p.Dirs, Shims: p.shimDirs, Policy: p.Policies.TrustPolicy(), Locks: p.locks, Memo: p.memo, Began: p.Began, Starts: p.Starts, Refresh: p.Invocation.Refresh,
			Warn: func(text string) { p.Warnings = append(p.Warnings, text) }, Pending: func(text string) { p.pending = append(p.pending, text) }}
	}
	return p.known
}

// Refusal is the error of a plan that may not run, nil if it may.
func (p *Plan) Refusal() error {
	if err := p.placeheld(); err != nil {
		return err
	}
	switch p.Decision.Action {
	case policy.Allow:
		if s := p.Steps[0]; s.Missing != nil {
			return s.Missing
		}
		return nil
	case policy.Confirm:
		return p.refuse(errcode.ApprovalRequired, "approval required")
	}
	if p.Decision.Trust {
		return p.refuse(errcode.NotTrusted, "not trusted")
	}
	return p.refuse(errcode.Denied, "denied")
}

func (p *Plan) refuse(code, what string) error {
	refusal := p.refusal()
	texts, rules := refusal.Clauses()
	suggest := refusal.Suggestion()
	if why, fix := p.Unregistered(); why != "" && slices.Contains(rules, "builtin/outside") {
		texts, suggest = append(texts, why), fix
	}
	message := what + ": " + quote.Words(p.Invocation.Words())
	if len(texts) > 0 {
		message = what + ": " + strings.Join(texts, "; ")
	}
	named := strings.Join(rules, ", ")
	if len(rules) > 3 {
		named = strings.Join(rules[:2], ", ") + " and " + strconv.Itoa(len(rules)-2) + " more"
	}
	f := fault.New(code, message+" ("+named+")").With("decision", p.Decision.Action).With("rules", rules).With("steps", p.StepDetails())
	f.With("alternatives", refusal.Alternatives())
	if i := slices.IndexFunc(p.Decision.Reasons, func(r policy.Reason) bool { return r.Action == p.Decision.Action }); i >= 0 && p.Decision.Reasons[i].Step < len(p.Steps) {
		f.With("step", quote.Words(p.Steps[p.Decision.Reasons[i].Step].Argv))
	}
	if s := p.Steps[0]; code == errcode.NotTrusted {
		reason := s.Verdict.Reason
		if p.refused != "" {
			reason = p.refused
		}
		f.With("level", s.Verdict.Level).With("reason", reason).With("digest", s.ID.Digest).With("place", s.ID.Place)
	}
	if s := p.Steps[0]; code == errcode.NotTrusted && suggest == "" {
		suggest = s.Verdict.NextStep(s.ID.Place)
	}
	if suggest != "" {
		f.WithFix(suggest, "")
	}
	return f
}

// digestDir keeps digests of executables; a run inside a run neither reads nor
// stores there.
func (p *Plan) digestDir() string {
	if p.Machine.Getenv("ATIP_EXEC_SANDBOX") != "" {
		return ""
	}
	return filepath.Join(p.Dirs.State, "digest")
}

// Agent is the label of the agent that asks, "unknown" for none. It gives no authority.
func (p *Plan) Agent() string {
	for _, name := range [...]string{"ATIP_AGENT_ID", "TOOLI_CALLER", "AI_AGENT"} {
		if v := p.Machine.Getenv(name); v != "" {
			return v
		}
	}
	return "unknown"
}

// raiseQuieted marks the steps whose repository names programs, if nothing in the run is going
// to tell git otherwise: a run that reaches other machines starts them no more, nor one in which git only reads.
func (p *Plan) raiseQuieted() {
	if _, reads := p.git(); reads && p.Policies.Sandbox().Confine != "none" || slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return s.Call.Effects[atip.Network].Value != atip.No }) {
		return
	}
	for _, s := range p.Steps {
		if s.Quieted != "" {
			s.RunsHook(s.Quieted)
		}
	}
}

// Place is where a command would run, and what is what there.
type Place struct {
	Cwd         string
	CwdID       sandbox.DirID // of the directory that -C names: another run can change what lies there
	Workspace   string        // "" for none
	NoWorkspace string        // why there is none
	Dirs        place.Dirs
	World       place.World
	Private     string // the directory for the TMPDIR and the caches of the workspace
	inside      bool   // this run is inside another, whose sandbox keeps it from the state directory
	gitDirs     []string
	shimDirs    shims.Dirs
}

// Rules are what holds in a place: the policies of every layer, the locks, and what the workspace
// keeps secret.
type Rules struct {
	Policies    *policy.Set
	SecretFiles []string        // of the workspace
	packages    map[string]bool // names of files that mark packages: whether the workspace has one
	locks       toollock.Locks
}

// Reading is what the command line will do.
type Reading struct {
	*effects.Reading
	Argv     []string // what is started
	LongText string   // what the shell reads from TextFD, "" if its command line holds it
	TextFD   int
	hostCwd  string // the file that tells a host where the command ended, "" for none
}

// Decision is what policy says of the steps, and what that rests on.
type Decision struct {
	policy.Decision
	CanEnforce policy.Enforce // what the decision took the kernel to hold
	Fetches    []*fetch.Work  // what is fetched before the run
	Own        []OwnStep      // commands that are runs of their own
	Deferred   bool           // some starts are decided when they happen
	OwnJudged  bool           // the paths of our own flags were judged
	OwnRefused bool           // and not allowed
	Undo       Undoing
	ownFiles   []string          // where the paths of our own flags lead
	chain      []policy.Restrict // of a delegation
	refused    string            // reason of a refusal that no verdict on the executable gave
}

// Confinement is how the sandbox holds the run to the decision.
type Confinement struct {
	Profile         sandbox.Profile
	Setup           sandbox.Setup
	HostList        HostList
	CredentialFiles []string // that the sandbox has
	Rights          Rights
	enforced        *sandbox.Receipt // of a plan that is made to be run: status, record and denials all ask for it
}

// Env is what the child gets of the environment and what it does not. Names only leave the
// program, values never do.
type Env struct {
	Entries     []string
	Passed      []string
	Dropped     []string
	Credentials []string
	HandedDown  []string // credentials that policy gives to the tools of a delegation
	Withheld    []string // credentials that runs inside will not find
	NestFD      int      // where runs inside send their records, 0 for nowhere
	placeholder string   // where one of a redacted secret came back, if policy refuses that
}

// returned looks for placeholders of redacted secrets in what the command gets: whoever
// read them in our output took them for the value. It returns where one is if policy refuses to run
// such a command.
func (p *Plan) returned(environ []string) (refused string) {
	how := p.Policies.Output().Placeholders
	if how == "pass" {
		return ""
	}
	where := ""
	for _, word := range p.Invocation.Words() {
		if filter.HasPlaceholder(word) {
			where = "the command line"
		}
	}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); where == "" && filter.HasPlaceholder(value) {
			where = "the variable " + name
		}
	}
	switch {
	case where == "":
	case how == "refuse":
		return where
	default:
		p.Warnings = append(p.Warnings, where+" holds the placeholder of a redacted secret, not the secret: the file that it comes from holds the real value")
	}
	return ""
}

// placeheld is the refusal of a command that a placeholder came back in; nil if none did, or
// the command is denied anyway.
func (p *Plan) placeheld() error {
	if p.placeholder == "" || p.Decision.Action == policy.Deny {
		return nil
	}
	return fault.New(errcode.Placeholder, p.placeholder+" holds the placeholder of a redacted secret").With("decision", policy.Deny)
}

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
	Ceiling         *policy.Ceiling
	Prime           string // auto, enforce or off; "" is auto
	IdempotencyKey  string // "" for none
	RefuseOnly      bool   // what may run is not started: only a refusal counts
	Version         string // ours, which a tool may ask for

	Fetching   *Fetching   // what the project declares is fetched for this run; nil for a command of the caller
	Standing   *Standing   // it is an own step of another run; nil for a command of the caller
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

// withScript is the invocation with the text of its script.
func (p *Plan) withScript() (inv Invocation, hidden bool, err error) {
	inv = p.Invocation
	if !inv.IsShell || inv.Script == "" || inv.scriptRead {
		return inv, false, nil
	}
	from := script.Source{Stdin: p.Machine.Stdin, Cwd: p.Cwd, Hidden: func(f *os.File) bool { return p.site().Hides(f) }}
	inv.Shell, inv.scriptRead, hidden, err = from.Read(inv.Script)
	return inv, hidden, err
}

// handOver makes the shell read a text that is longer than a word may be from a descriptor.
func (r *Reading) handOver() {
	text := r.Text
	if len(text) <= step.MaxArg {
		return
	}
	r.TextFD = FreeDescriptor(0)
	fd := strconv.Itoa(r.TextFD)
	r.LongText = text + "\n"
	if r.Dialect == shelltext.Bash {
		r.LongText = "exec " + fd + "<&-; " + r.LongText
	}
	r.Argv = slices.Clone(r.Argv)
	r.Argv[slices.Index(r.Argv, text)] = ". /dev/fd/" + fd
}
