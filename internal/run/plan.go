package run

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
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
	shimDirs        shims.Dirs
	policies        *policy.Set
	steps           []*step
	chain           []policy.Restrict // of a delegation
	hostList        hostList
	canEnforce      policy.Enforce // what the decision took the kernel to hold
	edges           []policy.Edge  // flows between steps that are dangerous as a whole
	hidden          hiddenSteps    // what scripts of the workspace would run
	memo            *memo          // what a batch has looked up; nil otherwise
	unset           bool           // a text uses a variable that is not set
	host            sandbox.Host
	innerState      string          // directory of a run inside another, "" for none
	targets         map[string]bool // scripts and recipes that were read because a command names them
	nestable        bool            // a command of ours is part of the run
	nestFD          int             // where runs inside send their records, 0 for nowhere
	withheld        []string        // credentials that runs inside will not find
	handedDown      []string        // credentials that policy gives to the tools of a delegation
	credentialFiles []string        // credential files that the sandbox has
	hostCwd         string          // the file that tells a host where the command ended
	hostCwdMade     bool            // it was made for this run, which did not start yet
	scriptHidden    bool            // the script is a file that is not read
	longText        string          // what the shell reads from textFD, "" if its command line holds it
	textFD          int
	prepared        *sandbox.Prepared // the part of the confinement that no decision changes; nil if nothing will be started
	files           sandbox.Files     // what was looked up of the file system
	env             environment
	private         string
	timeout         timeoutStatus
	names           []string  // variables of the child, for conditions of metadata
	starts          bool      // the plan is made to be run
	pending         []string  // what a run would still ask
	placeholder     string    // where one of a redacted secret came back, if policy refuses that
	refused         string    // reason of a refusal that no verdict on the executable gave
	askUntil        time.Time // when registries must have answered; zero until one is asked
	locks           toolLocks
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
	return &Plan{Run: audit.NewID(), Argv: inv.argv(), inv: inv, machine: m, began: time.Now()}
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
		if s.file != nil {
			s.file.Close()
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
	if p.dirs, err = place.DirsFromEnv(p.machine.Getenv, ""); err != nil {
		return fault.New("E1005", err.Error()).WithFix("set HOME", "HOME=/home/me atip-exec -- …")
	}
	// getcwd(2) gives the path without links, which is the one that rules mean.
	if p.Cwd, err = syscall.Getwd(); err != nil || !filepath.IsAbs(p.Cwd) {
		return fault.New("E1005", fmt.Sprintf("the current directory is gone: %v", err)).WithFix("change to a directory that exists", "cd /")
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
	p.shimDirs = shims.DirsFromEnv(p.machine.Getenv, p.dirs.Home)
	return p.findWorkspace("")
}

// enter changes the directory of the plan, for -C.
func (p *Plan) enter(dir string) error {
	dir = join(p.Cwd, dir)
	info, err := os.Stat(dir)
	if err != nil {
		return fault.New("E1005", "-C: "+err.Error()).With("directory", dir)
	}
	if !info.IsDir() {
		return fault.New("E1005", "-C: "+dir+" is not a directory").With("directory", dir)
	}
	if p.Cwd, err = filepath.EvalSymlinks(dir); err != nil {
		return fault.New("E1005", "-C: "+err.Error()).With("directory", dir)
	}
	return nil
}

// findWorkspace sets the workspace and all that follows from it; named is what
// policy says, "" to look for it.
func (p *Plan) findWorkspace(named string) error {
	p.Workspace, p.gitDirs, _ = place.FindWorkspace(p.Cwd, p.dirs.Home, p.machine.UID, p.dirs.Own()...)
	if named != "" {
		p.Workspace = p.expand(named)
	}
	world := place.World{Workspace: p.Workspace, Home: p.dirs.Home, Cwd: p.Cwd, Config: p.dirs.Config, Data: p.dirs.Data, State: p.dirs.State, Runtime: p.dirs.Runtime,
		Managed: place.Managed, Programs: p.programs(), TmpDirs: p.tmpDirs(), GitDirs: p.gitDirs}
	p.world = world.Resolved()
	p.private = p.privateDir()
	return nil
}

func (p *Plan) loadPolicy() (err error) {
	p.policies, err = loadPolicies(p.dirs, p.Workspace, p.Cwd, flagged{p.inv.Policies, p.inv.Profiles}, p.machine.UID)
	if err != nil {
		return err
	}
	p.Warnings = append(p.Warnings, p.policies.Warnings()...)
	if ws := p.policies.Sandbox().Workspace; ws != "" {
		if err := p.findWorkspace(ws); err != nil {
			return err
		}
	}
	return p.loadToolLocks()
}

// probe asks what this machine can enforce. To wake another thread for it would take
// longer than the answer of an earlier run does.
func (p *Plan) probe() (err error) {
	p.host, err = sandbox.Probe(p.probeCache())
	return err
}

func (p *Plan) identify() error {
	c := &collector{plan: p, path: filepath.SplitList(p.machine.Getenv("PATH")), found: p.memo.known()}
	plan := func() error { return c.add(p.Argv, nil, p.Cwd, policy.Exact) }
	if p.inv.IsShell {
		plan = c.identifyShell
	}
	err := plan()
	p.steps, p.edges = c.steps, c.edges
	if err == errTooMany && !p.inv.IsShell {
		return fault.New("E1601", "the command line holds more commands than are judged").WithFix(errTooMany.Fix, "")
	}
	if err != nil {
		return err
	}
	// Nothing is known about a command that is not there: it is missing, not unknown.
	if s := p.steps[0]; s.missing != nil && s.Call.Provenance.Channel == "none" && p.starts {
		return s.missing
	}
	return nil
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
	p.chain = req.Chain
	p.Decision = p.policies.Decide(req)
	p.judgeHidden(req)
	p.judgeDoubt(req)
	p.signedMetadata()
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
		if s := p.steps[0]; s.missing != nil {
			return s.missing
		}
		return nil
	case policy.Confirm:
		return p.refuse("E2010", "needs a person")
	}
	if p.Decision.Trust {
		return p.refuse("E2101", "is not trusted")
	}
	return p.refuse("E2001", "is denied")
}

func (p *Plan) refuse(code, what string) error {
	var rules, texts []string
	suggest := ""
	for _, r := range p.Decision.Reasons {
		if r.Action == p.Decision.Action && !contains(rules, r.Rule) {
			rules = append(rules, r.Rule)
			text := r.Text
			if len(p.steps) == 1 {
				// The command stands at the head of the message already.
				if _, rest, ok := strings.Cut(text, ": "); ok {
					text = rest
				}
			}
			texts = append(texts, text)
			if suggest == "" {
				suggest = r.Suggest
			}
		}
	}
	message := Quote(p.inv.words()) + " " + what
	if len(texts) > 0 {
		message += ": " + strings.Join(texts, "; ")
	}
	f := fault.New(code, message+" ("+strings.Join(rules, ", ")+")").With("decision", p.Decision.Action).With("rules", rules).With("steps", p.stepDetails())
	if len(p.Decision.Alternatives) > 0 {
		f.With("alternatives", p.Decision.Alternatives)
	}
	if s := p.steps[0]; code == "E2101" {
		reason := s.verdict.Reason
		if p.refused != "" {
			reason = p.refused
		}
		f.With("level", s.verdict.Level).With("reason", reason).With("digest", s.id.Digest).With("place", s.id.Place)
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
	t := p.policies.TrustPolicy()
	out := trust.Policy{RequireTool: t.RequireTool, RequireMetadata: t.RequireMetadata, MinimumSLSALevel: t.MinimumSLSALevel, Pins: t.Pins, Revoked: t.Revoked}
	out.OnUnsigned, out.OnUnverified = trust.OverrideByName(t.OnUnsigned), trust.OverrideByName(t.OnUnverified)
	return p.locks.locked(out)
}

func (p *Plan) programs() []string {
	dir := filepath.Dir(p.machine.Self)
	return []string{p.machine.Self, filepath.Join(dir, "atip-exec"), filepath.Join(dir, "atip")}
}

func (p *Plan) tmpDirs() []string {
	dirs := []string{"/tmp", "/var/tmp", "/dev/shm"}
	if t := p.machine.Getenv("TMPDIR"); filepath.IsAbs(t) && !contains(dirs, t) {
		dirs = append(dirs, filepath.Clean(t))
	}
	return dirs
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
	if path == "~" || strings.HasPrefix(path, "~/") {
		return filepath.Join(p.dirs.Home, path[1:])
	}
	return filepath.Clean(join(p.Cwd, path))
}

func (p *Plan) lookupEnv(name string) (string, bool) {
	if !contains(p.envNames(), name) {
		return "", false
	}
	for _, entry := range p.machine.Environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// envNames lists the variables that the child will have: what scrub drops cannot
// make a tool run anything.
func (p *Plan) envNames() []string {
	if p.names == nil {
		pass := p.policies.Env().Pass
		for _, entry := range p.machine.Environ {
			name, _, ok := strings.Cut(entry, "=")
			if ok && (!loadsCode(name) || matchesName(pass, name)) {
				p.names = append(p.names, name)
			}
		}
	}
	return p.names
}

func (p *Plan) agent() string {
	for _, name := range [...]string{"ATIP_AGENT_ID", "TOOLI_CALLER", "AI_AGENT"} {
		if v := p.machine.Getenv(name); v != "" {
			return v
		}
	}
	return "unknown"
}

// hosts says whom a step may talk to, as far as its words tell.
func (p *Plan) hosts(s *step) []policy.HostUse {
	var out []policy.HostUse
	for _, r := range s.Call.Resources {
		if s.Call.Tool == "git" && r.Kind == "url" && r.Scheme == "" && !strings.ContainsAny(r.Value, ":/") {
			continue // the name of a remote
		}
		if (r.Kind == "url" || r.Kind == "host") && r.Host != "" && r.Scheme != "file" {
			out = append(out, policy.HostUseOf(r.Host, portOf(s.Call.Tool, r)))
		}
	}
	if len(out) > 0 || s.Call.Effects[atip.Network].Value == atip.No {
		return out
	}
	switch {
	case s.Call.Tool == "git" && s.Call.Effects[atip.Network].Value == atip.Yes:
		// Without a URL git talks to a remote of its configuration, whose URLs the
		// check of .git/config has seen.
		return []policy.HostUse{{Kind: policy.HostNamed}}
	case s.Call.Provenance.Rank >= atip.Org && s.Call.Effects[atip.Network].Value == atip.Yes:
		return []policy.HostUse{{Kind: policy.HostService}}
	}
	return nil
}

// urlPort is the port that a URL names, also one without a scheme; 0 if none.
func urlPort(value string) int {
	if _, rest, ok := strings.Cut(value, "://"); ok {
		value = rest
	}
	if i := strings.IndexAny(value, "/?#"); i >= 0 {
		value = value[:i]
	}
	if i := strings.LastIndexByte(value, '@'); i >= 0 {
		value = value[i+1:]
	}
	_, port := splitPort(value)
	return port
}

func splitPort(host string) (string, int) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.HasSuffix(host, "]") || strings.Count(host, ":") > 1 && !strings.Contains(host, "]:") {
		return host, 0
	}
	port := 0
	if _, err := fmt.Sscanf(host[i+1:], "%d", &port); err != nil {
		return host, 0
	}
	return host[:i], port
}
