package run

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/internal/toollock"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/settle"
)

// Plan is everything that was decided before anything started. Making one starts
// no process and writes nothing but caches.
type Plan struct {
	Run       string
	Argv      []string
	Cwd       string
	Workspace string
	Decision  policy.Decision
	Profile   sandbox.Profile
	Setup     sandbox.Setup
	Warnings  []string

	inv             Invocation
	machine         Machine
	began           time.Time
	took            time.Duration
	dirs            place.Dirs
	world           place.World
	gitDirs         []string
	ownJudged       bool          // the paths of our own flags were judged
	ownRefused      bool          // and not allowed
	ownFiles        []string      // where they lead
	noWorkspace     string        // why there is no workspace, "" if there is one
	cwdID           sandbox.DirID // of the directory that -C names: another run can change what lies there
	shimDirs        shims.Dirs
	policies        *policy.Set
	steps           []*effects.Step
	chain           []policy.Restrict // of a delegation
	hostList        hostList
	canEnforce      policy.Enforce   // what the decision took the kernel to hold
	edges           []policy.Edge    // flows between steps that are dangerous as a whole
	memo            *effects.Memo    // what a batch has looked up; nil otherwise
	reading         *effects.Reading // of the command line
	where           *effects.Site    // for it, nil until asked for
	host            sandbox.Host
	innerState      string   // directory of a run inside another, "" for none
	nestFD          int      // where runs inside send their records, 0 for nowhere
	withheld        []string // credentials that runs inside will not find
	handedDown      []string // credentials that policy gives to the tools of a delegation
	credentialFiles []string // credential files that the sandbox has
	hostCwd         string   // the file that tells a host where the command ended
	hostCwdMade     bool     // it was made for this run, which did not start yet
	scriptHidden    bool     // the script is a file that is not read
	longText        string   // what the shell reads from textFD, "" if its command line holds it
	textFD          int
	prepared        *sandbox.Prepared // the part of the confinement that no decision changes; nil if nothing will be started
	files           sandbox.Files     // what was looked up of the file system
	env             environment
	private         string
	timeout         status.Timeout
	starts          bool      // the plan is made to be run
	pending         []string  // what a run would still ask
	placeholder     string    // where one of a redacted secret came back, if policy refuses that
	refused         string    // reason of a refusal that no verdict on the executable gave
	askUntil        time.Time // when registries must have answered; zero until one is asked
	locks           toollock.Locks
	rights          rights          // what holding a host or a credential means for this run
	settles         *settle.Session // what is known of signatures; nil until one is asked about
	secretFiles     []string        // of the workspace
	packages        map[string]bool // names of files that mark packages: whether the workspace has one
	deferred        bool            // some are
	undo            undoing
	imagined        bool             // of the machine on which examples are judged
	enforced        *sandbox.Receipt // of a plan that is made to be run, once it is confined
}

// MakePlan identifies, resolves and decides. The caller closes the plan.
func MakePlan(inv Invocation, m Machine) (*Plan, error) {
	p := newPlan(inv, m)
	if err := p.make(func() {}); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func newPlan(inv Invocation, m Machine) *Plan {
	return &Plan{Run: audit.NewID(), Argv: inv.argv(), inv: inv, machine: m, began: time.Now(), reading: &effects.Reading{}}
}

// make runs the stages; identified is called when it is known what would run and
// while the rest is still being planned.
func (p *Plan) make(identified func()) error {
	defer func() { p.took = time.Since(p.began) }()
	return stages(p.locate, p.probe, p.loadPolicy, p.identify, func() error { identified(); return nil }, p.decide, p.confine, p.environment, p.returned)
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
	if p.prepared != nil {
		p.prepared.Close()
	}
	for _, s := range p.steps {
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

func (p *Plan) locate() (err error) {
	if p.dirs, err = p.machine.Dirs(); err != nil {
		return err
	}
	// getcwd(2) gives the path without links, which is the one that rules mean.
	if p.Cwd, err = syscall.Getwd(); err != nil || !filepath.IsAbs(p.Cwd) {
		return fault.New(errcode.NoInputFile, fmt.Sprintf("the current directory is gone: %v", err)).WithFix("change to a directory that exists", "cd /")
	}
	if dir := p.inv.Directory; dir != "" {
		if err := p.enter(dir); err != nil {
			return err
		}
	}
	if p.starts {
		p.prepared = sandbox.Prepare(p.dirs.Home, filepath.SplitList(p.machine.Getenv("PATH")))
	} else {
		p.files = sandbox.HostFiles()
	}
	p.shimDirs = shims.DirsOf(p.dirs.Config, p.dirs.Data, p.dirs.State, p.machine.Getenv)
	if err := p.findWorkspace(""); err != nil {
		return err
	}
	if p.shimDirs.CallerSupplied {
		// Answers of registries are written there, beside the sandbox.
		if why := p.judgeGrant(place.Resolve(p.shimDirs.Data), true); why != "" {
			return fault.New(errcode.FlagValue, "ATIP_CACHE_DIR: "+p.shimDirs.Data+" is "+why).WithFix("name a directory of its own for it, or unset it", "unset ATIP_CACHE_DIR").With("variable", "ATIP_CACHE_DIR")
		}
	}
	return nil
}

// enter changes the directory of the plan, for -C.
func (p *Plan) enter(dir string) error {
	dir = subpath.Join(p.Cwd, dir)
	info, err := os.Stat(dir)
	if err != nil {
		return fault.New(errcode.NoInputFile, "-C: "+err.Error()).With("directory", dir)
	}
	if !info.IsDir() {
		return fault.New(errcode.NoInputFile, "-C: "+dir+" is not a directory").With("directory", dir)
	}
	if p.Cwd, p.cwdID, err = sandbox.Directory(dir); err != nil {
		return fault.New(errcode.NoInputFile, "-C: "+dir+": "+err.Error()).With("directory", dir)
	}
	return nil
}

// findWorkspace sets the workspace and all that follows from it; named is what
// policy says, "" to look for it.
func (p *Plan) findWorkspace(named string) error {
	p.Workspace, p.gitDirs, p.noWorkspace = place.FindWorkspace(p.Cwd, p.dirs, p.machine.UID)
	if named != "" {
		p.Workspace = p.expand(named)
	}
	switch {
	case p.Workspace != "":
		p.noWorkspace = ""
	case p.noWorkspace == "":
		p.noWorkspace = "none was found"
	}
	p.private = p.privateDir()
	world := place.World{Workspace: p.Workspace, Home: p.dirs.Home, Cwd: p.Cwd, Config: p.dirs.Config, Data: p.dirs.Data, State: p.dirs.State, Runtime: p.dirs.Runtime,
		Managed: place.Managed, Programs: p.programs(), TmpDirs: p.tmpDirs(), GitDirs: p.gitDirs}
	if home := p.machine.Getenv("HOME"); filepath.IsAbs(home) && home != p.dirs.Home {
		world.OtherHome = filepath.Clean(home)
	}
	p.world = world.Resolved()
	return nil
}

func (p *Plan) loadPolicy() (err error) {
	docs, err := p.documents()
	if err != nil {
		return err
	}
	if p.policies, err = policy.Compile(docs); err != nil {
		return err
	}
	p.Warnings = append(p.Warnings, p.policies.Warnings()...)
	if ws := p.policies.Sandbox().Workspace; ws != "" {
		if err := p.findWorkspace(ws); err != nil {
			return err
		}
	}
	p.world.CI = p.policies.Sandbox().ProtectCI
	p.secretFiles = p.workspaceSecrets()
	p.locks, err = toollock.ReadLocks(p.dirs.Config, p.Workspace)
	return err
}

// probe asks what this machine can enforce. To wake another thread for it would take
// longer than the answer of an earlier run does.
func (p *Plan) probe() (err error) {
	p.host, err = sandbox.Probe(p.probeCache())
	return err
}

func (p *Plan) identify() error {
	err := p.read()
	p.steps, p.edges = p.reading.Steps, p.reading.Edges
	p.raiseQuieted()
	if err == effects.ErrTooMany && !p.inv.IsShell {
		return fault.New(errcode.ShellText, "the command line holds more commands than are judged").WithFix(effects.ErrTooMany.Fix, "")
	}
	if err != nil {
		return err
	}
	// Nothing is known about a command that is not there: it is missing, not unknown.
	if s := p.steps[0]; s.Missing != nil && s.Call.Provenance.Channel == "none" && p.starts {
		return s.Missing
	}
	return nil
}

// read finds out what the command line will do.
func (p *Plan) read() (err error) {
	if !p.inv.IsShell {
		p.reading, err = p.site().Words(p.Argv)
		p.Warnings = append(p.Warnings, p.reading.Warnings...)
		return err
	}
	if err := p.readScript(); err != nil {
		return err
	}
	t := effects.Text{Source: p.inv.Shell, File: p.inv.Script, Hidden: p.scriptHidden, Set: p.inv.ShellSet, Args: p.inv.ShellArgs}
	p.reading, err = p.site().Text(t)
	p.Warnings = append(p.Warnings, p.reading.Warnings...)
	p.Argv = p.reading.Argv
	if err != nil || p.reading.Text == "" {
		return err
	}
	p.hostCwd = p.hostCwdFile(p.reading.Script)
	p.handOver()
	return nil
}

// apart reports whether a run has a loopback and a table of processes of its own, unless it is
// granted more.
func (p *Plan) apart() bool {
	sp := p.policies.Sandbox()
	forced, _ := sandbox.TierByName(sp.Tier)
	return sp.Confine != "none" && p.host.HostLists(forced)
}

// site is where the commands of this plan would run.
func (p *Plan) site() *effects.Site {
	if p.where != nil {
		return p.where
	}
	t := p.policies.TrustPolicy()
	opener := trust.Opener{CacheDir: p.digestDir(), Workspace: p.Workspace, Home: p.dirs.Home, TmpDirs: p.world.TmpDirs, Getenv: p.machine.Getenv, Scripts: trust.ScriptsByName(t.Scripts)}
	if t.SystemPathsSet {
		opener.SystemPaths = t.SystemPaths
	}
	p.where = &effects.Site{Dirs: p.dirs, World: p.world, Workspace: p.Workspace, Cwd: p.Cwd, Private: p.private, GitDirs: p.gitDirs, Environ: p.machine.Environ, UID: p.machine.UID,
		Self: p.machine.Self, Programs: p.programs(), Env: p.policies.Env(), Limits: p.policies.Analysis(), Opener: opener, Shims: p.shimDirs, Authority: authority{p}, Memo: p.memo,
		OwnProxy: func(url string) bool { return url == sandbox.ProxyURL() && p.inside() }, Starts: p.starts, Defers: p.policies.Defers() && p.gateable(), Apart: p.apart()}
	return p.where
}

// authority answers for a plan what its policy and the evidence say.
type authority struct{ p *Plan }

func (a authority) Verdict(id trust.Identity) (trust.Verdict, error) { return a.p.judge(id) }

func (a authority) Document(s *effects.Step, q shims.Query) (shims.Found, error) {
	found, err := a.p.metadata(q)
	if err == nil {
		err = a.p.judgeDocument(s, &found)
	}
	return found, err
}

func (a authority) Locked(s *effects.Step) {
	if s.Missing == nil && s.Verdict.Action >= trust.Confirm && a.p.locks.Differs(s.ID, s.Call.Provenance.Digest) {
		s.Verdict.Action, s.Verdict.Reason, s.Verdict.Stage = trust.Confirm, "lock_mismatch", "policy"
		s.Trust = effects.TrustFacts(s.Verdict)
	}
}

func (p *Plan) decide() error {
	req := policy.Request{Agent: p.agent(), Session: p.machine.Getenv("ATIP_SESSION_ID"), CI: p.inCI(), Workspace: p.Workspace, Cwd: p.Cwd, Now: p.began, BillableLeft: p.billableBudget()}
	if p.policies.Sandbox().Confine != "none" {
		can := sandbox.Enforceable(p.host)
		req.Enforce = policy.Enforce{Files: can.Files, Net: can.Net, Secrets: can.Files, DeleteStrict: can.Files && p.policies.Sandbox().DeleteStrict}
	}
	p.canEnforce = req.Enforce
	for _, s := range p.steps {
		req.Steps = append(req.Steps, s.Step)
	}
	req.Edges = p.edges
	if err := p.delegate(&req); err != nil {
		return err
	}
	p.chain, req.Ceiling = req.Chain, p.inv.Ceiling
	if p.inv.Ceiling != nil && req.Enforce.Files {
		req.Enforce.DeleteStrict = req.Enforce.DeleteStrict || p.strictDelete()
		p.canEnforce = req.Enforce
	}
	p.Decision = p.judged(req)
	p.judgeHidden(req)
	p.judgeDoubt(req)
	p.deferUnknown(req)
	p.judgeOwn(req)
	p.signedMetadata()
	if err := p.mayStart(); err != nil {
		return err
	}
	if err := p.onlyApproved(); err != nil {
		return err
	}
	p.Warnings = append(p.Warnings, p.Decision.Warnings...)
	return nil
}

// Refusal is the error of a plan that may not run, nil if it may.
func (p *Plan) Refusal() error {
	if err := p.placeheld(); err != nil {
		return err
	}
	switch p.Decision.Action {
	case policy.Allow:
		if s := p.steps[0]; s.Missing != nil {
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
	texts, rules := p.clauses()
	suggest := p.suggestion()
	if why, fix := p.unregistered(); why != "" && slices.Contains(rules, "builtin/outside") {
		texts, suggest = append(texts, why), fix
	}
	message := what + ": " + Quote(p.inv.words())
	if len(texts) > 0 {
		message = what + ": " + strings.Join(texts, "; ")
	}
	named := strings.Join(rules, ", ")
	if len(rules) > 3 {
		named = strings.Join(rules[:2], ", ") + " and " + strconv.Itoa(len(rules)-2) + " more"
	}
	f := fault.New(code, message+" ("+named+")").With("decision", p.Decision.Action).With("rules", rules).With("steps", p.stepDetails())
	f.With("alternatives", p.alternatives())
	if i := slices.IndexFunc(p.Decision.Reasons, func(r policy.Reason) bool { return r.Action == p.Decision.Action }); i >= 0 && p.Decision.Reasons[i].Step < len(p.steps) {
		f.With("step", Quote(p.steps[p.Decision.Reasons[i].Step].Argv))
	}
	if s := p.steps[0]; code == errcode.NotTrusted {
		reason := s.Verdict.Reason
		if p.refused != "" {
			reason = p.refused
		}
		f.With("level", s.Verdict.Level).With("reason", reason).With("digest", s.ID.Digest).With("place", s.ID.Place)
	}
	if s := p.steps[0]; code == errcode.NotTrusted && suggest == "" {
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
	if p.machine.Getenv("ATIP_EXEC_SANDBOX") != "" {
		return ""
	}
	return filepath.Join(p.dirs.State, "digest")
}

func (p *Plan) trustPolicy() trust.Policy {
	return p.locks.Trust(TrustPolicyOf(p.policies.TrustPolicy()))
}

func (p *Plan) programs() []string {
	dir := filepath.Dir(p.machine.Self)
	return []string{p.machine.Self, filepath.Join(dir, "atip-exec"), filepath.Join(dir, "atip"), filepath.Join(dir, settle.HelperName)}
}

// tmpDirs are the directories for temporary files: the machine's and the run's own. TMPDIR
// makes none, as its caller could call any directory so.
func (p *Plan) tmpDirs() []string {
	return []string{"/tmp", "/var/tmp", "/dev/shm", filepath.Join(p.private, "tmp")}
}

// privateDir is the directory for the TMPDIR and the caches of this workspace,
// told apart by user, inode and path so that no two share one.
func (p *Plan) privateDir() string {
	root := p.Workspace
	if root == "" {
		root = p.Cwd
	}
	h := sha256.New()
	var id [24]byte
	binary.LittleEndian.PutUint64(id[:], uint64(p.machine.UID))
	dev, ino := fileID(root)
	binary.LittleEndian.PutUint64(id[8:], dev)
	binary.LittleEndian.PutUint64(id[16:], ino)
	h.Write(id[:])
	h.Write([]byte(root))
	return filepath.Join(p.dirs.Cache, "ws", hex.EncodeToString(h.Sum(nil)[:8]))
}

func (p *Plan) expand(path string) string {
	return effects.Expand(path, p.dirs.Home, p.Cwd)
}

func (p *Plan) agent() string {
	for _, name := range [...]string{"ATIP_AGENT_ID", "TOOLI_CALLER", "AI_AGENT"} {
		if v := p.machine.Getenv(name); v != "" {
			return v
		}
	}
	return "unknown"
}

// raiseQuieted marks the steps whose repository names programs, if nothing in the run is going
// to tell git otherwise: a run that reaches other machines starts them no more.
func (p *Plan) raiseQuieted() {
	if slices.ContainsFunc(p.steps, func(s *effects.Step) bool { return s.Call.Effects[atip.Network].Value != atip.No }) {
		return
	}
	for _, s := range p.steps {
		if s.Quieted != "" {
			s.RunsFile(".git/config", s.Quieted)
		}
	}
}
