package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/fetch"
	"github.com/atip-dev/atip-exec/internal/memo"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/procstat"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/trust"
)

// What an approval binds of files that a command reads.
const (
	maxBoundFile  = 16 << 20
	maxBoundFiles = 64
	moreFiles     = "further files" // stands for those beyond
)

// Binding is everything that an approval of this plan would cover: one byte of it that
// differs makes another digest. It is made when a person is asked and again just
// before the start.
func (p *Plan) Binding() map[string]any {
	var steps []any
	files := map[string]any{}
	for i, s := range p.Steps {
		step := map[string]any{"argv": anys(s.Argv), "tool": s.Call.Tool, "via": anys(s.Via), "cwd": s.Cwd, "sha256": s.ID.Digest, "path": s.ID.Canonical, "metadata": s.Call.Provenance.Digest,
			"command": anys(s.Call.Path), "effects": dangers(s), "resources": resourceList(s.Call.Resources), "trust": s.Verdict.Level.String()}
		var chain []any
		for _, part := range s.ID.Chain {
			chain = append(chain, part.Path+" "+part.Digest)
		}
		step["chain"] = chain
		if i < len(p.Decision.Steps) {
			step["rules"] = anys(p.Decision.Steps[i].Rules)
			var danger []any
			for _, e := range DangerKeys() {
				if p.Decision.Steps[i].Danger.Has(e) {
					danger = append(danger, policy.DangerName(e))
				}
			}
			step["danger"] = danger
		}
		steps = append(steps, step)
		p.boundFiles(s, files)
	}
	host, _ := os.Hostname()
	needs, _ := p.GrantRules()
	out := map[string]any{"argv": anys(p.Invocation.Words()), "cwd": p.Cwd, "workspace": p.Workspace, "steps": steps, "rules": anys(p.RuleNames()), "env": p.boundEnvironment(), "credentials": anys(p.Env.Credentials), "stdin": p.boundStdin(),
		"files": files, "sandbox": p.BoundSandbox(), "policy": p.Policies.Digest(), "uid": p.Machine.UID, "host": host, "session": p.SessionLabel(), "agent": p.Agent(), "chain": anys(p.ChainNames()),
		"needs":    map[string]any{"level": needs.MinLevel, "onceOnly": needs.OnceOnly, "idempotent": needs.Idempotent},
		"terminal": p.Invocation.Terminal, "timeout": int64(p.Limit() / time.Millisecond)}
	if len(p.Own) > 0 {
		var own []any
		for _, o := range p.Own {
			own = append(own, map[string]any{"argv": anys(o.Argv), "cwd": o.Cwd, "file": o.File, "net": o.Net, "hosts": anys(o.Hosts), "credentials": anys(o.Credentials), "files": anys(o.Files), "exec": o.Exec, "rules": anys(o.Rules)})
		}
		out["ownSteps"] = own
	}
	if refs, err := p.sent(); err == nil && len(refs) > 0 {
		out["refs"] = refs
		if by := p.movers(); len(by) > 0 {
			out["refsChangedBy"] = anys(by)
		}
	}
	if p.Rights.held && len(p.Rights.Hooks) > 0 {
		out["hooksOff"] = anys(p.Rights.Hooks)
	}
	if s := p.Rights.Settings; s != nil {
		out["gitSettings"] = sum([]byte(s.Text()))
	}
	if len(p.Invocation.Paths) > 0 {
		var own []any
		for _, path := range p.Invocation.Paths {
			own = append(own, path.Name+" "+path.Value)
		}
		out["own"] = own
	}
	if b := p.Invocation.Behalf; b != nil {
		out["inside"] = b.Words
	}
	if needs.Scope != nil && !needs.OnceOnly {
		out["scope"] = needs.Scope.Canonical()
	}
	return out
}

// BindingDigest is what a grant of this plan must name.
func (p *Plan) BindingDigest() (string, error) {
	if _, err := p.sent(); err != nil {
		return "", &UnboundError{err}
	}
	return approve.Digest(p.Binding())
}

// UnboundError says that an approval could not name what a command acts on.
type UnboundError struct{ err error }

func (e *UnboundError) Error() string { return e.err.Error() }
func (e *UnboundError) Unwrap() error { return e.err }

// boundEnvironment has the name and the digest of the value of each variable that the
// child gets. Values may be credentials, so they are not written down.
func (p *Plan) boundEnvironment() map[string]any {
	out := map[string]any{}
	for _, entry := range p.Env.Entries {
		name, value, _ := strings.Cut(entry, "=")
		if name == nest.ParentVariable || name == nest.RunVariable || name == nest.WithheldVariable || name == "GIT_COMMON_DIR" || name == "GIT_DIR" && value == p.Rights.Scratch {
			continue // another in each run, and no secret and no power in it
		}
		out[strings.ToValidUTF8(name, "\ufffd")] = sum([]byte(value))
	}
	return out
}

// boundFiles adds the files whose content the step runs or reads: a script, a
// Makefile, a manifest. What lies in a directory is not read here; the sandbox and
// the effects bound it.
func (p *Plan) boundFiles(s *step.Step, into map[string]any) {
	add := func(path string) {
		name := strings.ToValidUTF8(path, "\ufffd")
		if _, ok := into[name]; ok || path == "" {
			return
		}
		d := fileDigest(path)
		if d == "" {
			return
		}
		if len(into) < maxBoundFiles {
			into[name] = d
			return
		}
		// More than is read by a person: they count as one.
		before, _ := into[moreFiles].(string)
		into[moreFiles] = sum([]byte(before + "\x00" + path + "\x00" + d))
	}
	base := subpath.Join(s.Cwd, s.Call.Chdir)
	for _, n := range s.Call.Nested {
		if n.File != "" && n.File != "-" {
			add(subpath.Join(base, n.File))
		}
	}
	for _, path := range s.TargetFiles {
		add(path)
	}
	for _, path := range p.actedOn(s) {
		add(path)
	}
	for _, f := range s.Call.CodeFiles {
		for _, path := range p.site().CodeFilePaths(s, f) {
			add(path)
		}
	}
	for _, r := range s.Call.Resources {
		if r.Abs != "" && r.Class != atip.ClassSecret && r.Access&(atip.AccessRead|atip.AccessExec) != 0 {
			add(r.Abs)
		}
	}
}

// boundStdin has the digest of a regular file on standard input, else what kind of
// thing is there.
func (p *Plan) boundStdin() string {
	switch p.Invocation.Stdin {
	case "", "auto", "inherit":
	case "null":
		return "null"
	default:
		return "file " + fileDigest(p.Invocation.Stdin)
	}
	if kind := StdinKind(p.Machine.Stdin); kind != "file" {
		return kind
	}
	at, err := p.Machine.Stdin.Seek(0, io.SeekCurrent)
	info, err2 := p.Machine.Stdin.Stat()
	if err != nil || err2 != nil {
		return "file"
	}
	return "file " + digestOf(io.NewSectionReader(p.Machine.Stdin, at, maxBoundFile+1), info)
}

// BoundSandbox is a digest of what the kernel would let the child do.
func (p *Plan) BoundSandbox() string {
	f := p.Profile
	grants := func(list []sandbox.Grant) []string {
		var out []string
		for _, g := range list {
			if slices.Contains(f.Scratch, g.Path) {
				continue // another in each run; what it holds is bound by itself
			}
			if g.Why == sandbox.WhyListed && g.Rights == sandbox.Read {
				continue // what others put into /tmp meanwhile changes nothing that was approved
			}
			out = append(out, g.Rights.String()+" "+g.Path)
		}
		return out
	}
	raw, err := json.Marshal([]any{p.Setup.Tier(), f.Confine, f.Workspace, f.Private, grants(f.Read), grants(f.Write), grants(f.Exec), f.Mask, f.Protect, f.Lifted, f.GitDirs, f.Net, f.Unix,
		f.SubprocessNo, f.Untraced, f.Ceiling, f.Env, f.Limits, f.Need, f.Accept, f.Forced, f.Caps, f.KeepLeftovers, f.Tmp})
	if err != nil {
		return "" // the parts are plain values
	}
	return sum(raw)
}

// SessionVariables are those that name the session of an agent or of a CI service.
func SessionVariables() []string {
	return []string{"ATIP_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "TOOLI_SESSION_ID", "GITHUB_RUN_ID", "CI_JOB_ID"}
}

// SessionLabel names the conversation that this run belongs to. It is a label that anybody
// may set, so it only tells requests apart.
func (p *Plan) SessionLabel() string {
	for _, name := range SessionVariables() {
		if v := p.Machine.Getenv(name); v != "" {
			return v
		}
	}
	return ""
}

// fileDigest tells the content of a file; "" if there is none, which the command will
// find out itself, and for a directory.
func fileDigest(path string) string {
	f, err := regular.Open(path)
	if errors.Is(err, regular.ErrNot) {
		if info, serr := os.Stat(path); serr == nil && info.IsDir() {
			return ""
		} else if serr == nil && !info.Mode().IsRegular() {
			return info.Mode().Type().String()
		}
	}
	if err != nil {
		if os.IsNotExist(err) {
			return ""
		}
		return "unreadable"
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "unreadable"
	}
	return digestOf(io.LimitReader(f, maxBoundFile+1), info)
}

// digestOf reads up to the limit; a larger file is told apart by size and time.
func digestOf(r io.Reader, info os.FileInfo) string {
	h := sha256.New()
	n, err := io.Copy(h, r)
	switch {
	case err != nil:
		return "unreadable"
	case n > maxBoundFile:
		return "large " + info.ModTime().UTC().Format(time.RFC3339Nano) + " " + hex.EncodeToString(h.Sum(nil))
	}
	return fmt.Sprintf("sha256:%x, %d bytes", h.Sum(nil), n)
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(h[:])
}

// RequestsDir is where requests for an approval wait.
func (p *Plan) RequestsDir() string { return filepath.Join(p.Dirs.State, "requests") }

// GrantsDir is where approvals lie until they are used.
func (p *Plan) GrantsDir() string { return filepath.Join(p.Dirs.State, "grants") }

// Startable is what else keeps a permitted plan from starting.
func (p *Plan) Startable() error {
	if s := p.Steps[0]; s.Missing != nil {
		return s.Missing
	}
	return nil
}

// SaidNo is the refusal of what an approver denied.
func (p *Plan) SaidNo() error {
	return fault.New(errcode.Denied, "denied: the user refused "+quote.Words(p.Invocation.Words())).With("decision", policy.Deny).With("steps", p.StepDetails())
}

// GrantRules is what this plan demands of a grant. What the kernel withholds from the
// run is no danger; what it may do, counts as done.
func (p *Plan) GrantRules() (approve.Rules, error) {
	ap := p.Policies.Approval()
	approvers, err := approversOf(p.Policies, p.Dirs)
	if err != nil {
		return approve.Rules{}, err
	}
	r := approve.Rules{Approvers: approvers, Idempotent: true, Scope: p.sessionScope(), MaxAge: ap.MaxAge}
	for i, s := range p.Steps {
		r.Idempotent = r.Idempotent && s.Call.Effects[atip.Idempotent].Value == atip.Yes
		if i >= len(p.Decision.Steps) {
			break
		}
		danger := p.Decision.Steps[i].Danger
		for _, e := range DangerKeys() {
			if !danger.Has(e) {
				continue
			}
			r.MinLevel = max(r.MinLevel, ap.MinLevel[policy.DangerName(e)])
			r.OnceOnly = r.OnceOnly || onceOnly(e)
		}
	}
	return r, nil
}

// approversOf lists the keys that policy and the user's own list name.
func approversOf(set *policy.Set, dirs place.Dirs) ([]approve.Approver, error) {
	var out []approve.Approver
	for _, a := range set.Approval().Approvers {
		level := a.Level
		if a.Layer != policy.LayerManaged {
			level = approve.UserLevel(a.Key, level)
		}
		out = append(out, approve.Approver{ID: a.ID, Key: a.Key, Level: level})
	}
	if set.UserConfigAccount() && !place.BelowAccount(dirs.Config, os.Geteuid()) {
		return out, nil // whoever starts us could register a key there
	}
	own, err := approve.ReadApprovers(ApproversFile(dirs))
	return append(out, own...), err
}

// ApproversFile is the list of approvers that `atip approve --init` keeps.
func ApproversFile(dirs place.Dirs) string { return filepath.Join(dirs.Config, "approvers.json") }

// Approvers lists whose grants count here.
func Approvers(m caller.Machine) ([]approve.Approver, error) {
	p, err := Open(Invocation{}, m)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return approversOf(p.Policies, p.Dirs)
}

// MaxGrantAge is how long a policy lets a grant count at most, 0 if none says so.
func MaxGrantAge(m caller.Machine) (time.Duration, error) {
	set, err := Policies(m)
	if err != nil {
		return 0, err
	}
	return set.Approval().MaxAge, nil
}

// onceOnly names the dangers that are permitted one run at a time.
func onceOnly(e atip.Effect) bool {
	switch e {
	case atip.Destructive, atip.Reversible, atip.Billable, atip.SecretRead, atip.Privileged, atip.Persistence:
		return true
	}
	return false
}

// UnusedGrants lists what a person permitted and no run has used up.
func (p *Plan) UnusedGrants() []approve.Grant {
	rules, err := p.GrantRules()
	if err != nil {
		return nil
	}
	return approve.Pending(p.GrantsDir(), rules.Approvers)
}

// DefaultLock is where a repository keeps what CI may do.
const DefaultLock = place.OwnDir + "/approvals.lock"

// ciVariables are set by CI systems, CI by nearly all of them.
var ciVariables = [...]string{"CI", "CONTINUOUS_INTEGRATION", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "JENKINS_URL", "BUILDKITE", "CIRCLECI", "TEAMCITY_VERSION",
	"TRAVIS", "APPVEYOR", "DRONE", "SEMAPHORE", "CODEBUILD_BUILD_ID", "BITBUCKET_BUILD_NUMBER", "CIRRUS_CI", "WOODPECKER_CI", "bamboo_buildKey"}

// InCI reports whether nobody is there to be asked. It only ever tightens: the variables are
// the caller's.
func (p *Plan) InCI() bool {
	if p.Invocation.CI || p.Policies.UsesProfile("ci") {
		return true
	}
	for _, name := range ciVariables {
		if v := p.Machine.Getenv(name); v != "" && v != "0" && !strings.EqualFold(v, "false") {
			return true
		}
	}
	return false
}

// LockEntry looks for an entry of approvals.lock that permits the plan, and returns its id. The
// managed or the user's policy says that a lock counts here, and whose key signs it: what looks
// like CI is the caller's to set. None counts for what a run inside asks for: it was signed for what the job itself starts.
func (p *Plan) LockEntry(bound map[string]any) (string, error) {
	ap := p.Policies.Approval()
	if !ap.LockApplies || p.Invocation.Behalf != nil || len(ap.LockKeys) == 0 || p.Workspace == "" {
		return "", nil
	}
	file := ap.Lock
	file = cmp.Or(file, DefaultLock)
	file = subpath.Join(p.Workspace, file)
	l, err := approve.ReadLock(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if err := l.Verify(ap.LockKeys); err != nil {
		return "", approve.Unreliable(filepath.Clean(file), err)
	}
	digest, err := approve.LockDigest(bound)
	if err != nil {
		return "", nil // what cannot be written down cannot be permitted
	}
	for _, e := range l.Entries {
		if time.Now().Before(e.Expires) && p.bindHolds(e.Bind) && (e.Kind == "digest" && e.Digest == digest || e.Kind == "effects" && p.inScope(e.Scope)) {
			return e.ID, nil
		}
	}
	return "", nil
}

// bindHolds compares the variables of CI. Whoever sets them can only lose by it.
func (p *Plan) bindHolds(b approve.LockBind) bool {
	is := func(want string, names ...string) bool {
		if want == "" {
			return true
		}
		for _, name := range names {
			if v := p.Machine.Getenv(name); v != "" {
				return v == want
			}
		}
		return false
	}
	return is(b.Repository, "GITHUB_REPOSITORY", "CI_PROJECT_PATH") && is(b.Workflow, "GITHUB_WORKFLOW", "CI_PIPELINE_NAME") && is(b.Ref, "GITHUB_REF", "CI_COMMIT_REF_NAME")
}

// inScope reports whether every step that asks is a call of the tool and command of
// the scope whose dangers lie within it.
func (p *Plan) inScope(s *approve.LockScope) bool {
	var covered atip.Set
	for _, name := range s.Effects {
		if e, ok := atip.EffectByKey(name); ok {
			covered = covered.With(e)
		}
	}
	asked := false
	for i, d := range p.Decision.Steps {
		if d.Action == policy.Allow {
			continue
		}
		st := p.Steps[i]
		if st.Call.Tool != s.Tool || d.Danger&^covered != 0 || len(st.Call.Path) < len(s.Command) || st.Call.Exactness != atip.Exact {
			return false
		}
		for j, word := range s.Command {
			if st.Call.Path[j] != word {
				return false
			}
		}
		asked = true
	}
	return asked
}

// Fingerprint is what must be the same for a key to mean the same.
func (p *Plan) Fingerprint() string {
	cwd, err := filepath.EvalSymlinks(p.Cwd)
	if err != nil {
		cwd = p.Cwd
	}
	raw, _ := json.Marshal([]any{p.Invocation.Argv, p.Invocation.IsShell, p.Invocation.Shell, p.Invocation.ShellArgs, p.Invocation.ShellSet, cwd, p.Steps[0].ID.Digest, p.Machine.UID, p.boundStdin(), p.Invocation.Ceiling})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Idempotent reports that all commands of the run can be repeated.
func (p *Plan) Idempotent() bool {
	for _, s := range p.Steps {
		f := s.Call.Effects[atip.Idempotent]
		// What is said of a builtin says nothing of a file that it is redirected to.
		redirected := strings.HasPrefix(f.Source, "shell:") && s.Call.Effects[atip.Write].Value != atip.No
		if f.Value != atip.Yes || redirected {
			return false
		}
	}
	return true
}

// DangerKeys are the effects of a plan document in their order; Reversible stands
// for "irreversible", a danger when reversible is stated "no".
func DangerKeys() []atip.Effect {
	return []atip.Effect{atip.Read, atip.Write, atip.Delete, atip.Network, atip.Subprocess, atip.Destructive, atip.Reversible, atip.Billable, atip.Idempotent,
		atip.SecretRead, atip.Privileged, atip.Persistence, atip.RemoteMutation, atip.ExecOpaque}
}

// DangersOf names what of a set is a danger.
func DangersOf(set atip.Set) []string {
	out := []string{}
	for _, e := range DangerKeys() {
		if set.Has(e) && e != atip.Read && e != atip.Subprocess && e != atip.Idempotent {
			out = append(out, policy.DangerName(e))
		}
	}
	return out
}

// dangers lists the effects of a step under their names in plans.
func dangers(s *step.Step) map[string]any {
	out := map[string]any{}
	for _, e := range DangerKeys() {
		out[policy.DangerName(e)] = s.Value(e).String()
	}
	return out
}

// ProvenanceOf lists the stated effects with where they come from.
func ProvenanceOf(s *step.Step) map[string]atip.Fact {
	out := map[string]atip.Fact{}
	for _, e := range DangerKeys() {
		if f := s.Call.Effects[e]; f.Value != atip.Unknown {
			out[e.String()] = f
		}
	}
	return out
}

// StepDocument is one step of a plan document.
type StepDocument struct {
	Argv       []string             `json:"argv"`
	Via        []string             `json:"via,omitempty"`
	Cwd        string               `json:"cwd"`
	Tool       string               `json:"tool"`
	Command    []string             `json:"command"`
	Effects    map[string]any       `json:"effects"`
	Provenance map[string]atip.Fact `json:"provenance"`
	Resources  []atip.Resource      `json:"resources"`
	Confidence string               `json:"confidence"` // exact, bounded, opaque
	RunsCode   policy.CodeKind      `json:"runsCode"`
	Action     policy.Action        `json:"action"`
	Why        []string             `json:"why"`
	Options    []atip.OptionUse     `json:"options"`
	Unknown    []string             `json:"unknownOptions,omitempty"`
	Arguments  []atip.Positional    `json:"positionals"`
	Metadata   atip.Provenance      `json:"metadata"`
	Executable trust.Identity       `json:"executable"`
	Trust      trust.Verdict        `json:"trust"`
	Installed  bool                 `json:"installed"`
	Decided    string               `json:"decided"` // plan, exec where words are decided when it starts, own for a run of its own
	// MetadataTrust is the verdict on the document; nil for none, and for one of our own.
	MetadataTrust *trust.Verdict `json:"metadataTrust,omitempty"`
}

// Document is a plan as JSON, "atip-exec.plan/1". docs/plan.md describes it.
type Document struct {
	Kind         string          `json:"kind"`
	ID           any             `json:"id,omitempty"`
	Decision     policy.Action   `json:"decision"`
	Argv         []string        `json:"argv"`
	Cwd          string          `json:"cwd"`
	Workspace    string          `json:"workspace"`
	NoWorkspace  string          `json:"noWorkspace,omitempty"` // why there is none
	Steps        []StepDocument  `json:"steps"`
	Reasons      []policy.Reason `json:"reasons"`
	Alternatives []string        `json:"alternatives,omitempty"`
	Lifted       []policy.Lift   `json:"lifted,omitempty"` // rules that others set aside
	Grants       []string        `json:"grants"`           // dangers that the run as a whole is granted, or would be
	Sandbox      sandbox.Receipt `json:"sandbox"`
	Trust        TrustDocument   `json:"trust"`
	Environment  EnvDocument     `json:"environment"`
	Delegation   []string        `json:"delegation,omitempty"` // label and number of each block of the token, outermost first
	TimeoutMS    int64           `json:"timeout_ms"`
	Policy       any             `json:"policy"`
	Profile      string          `json:"profile"`
	OwnSteps     []OwnStep       `json:"ownSteps,omitempty"` // commands that are runs of their own
	Fetches      []*fetch.Work   `json:"fetches,omitempty"`  // what a run of its own fetches before
	Pending      []string        `json:"pending"`
	Warnings     []string        `json:"warnings"`
}

// TrustDocument is the verdict on what would be started.
type TrustDocument struct {
	trust.Verdict
	Digest string `json:"sha256,omitempty"`
	Path   string `json:"path,omitempty"`
}

// EnvDocument names the variables that are passed and dropped, never their values.
type EnvDocument struct {
	Passed      []string `json:"passed"`
	Dropped     []string `json:"dropped"`
	Credentials []string `json:"credentials"`
}

// Document renders the plan for machines.
func (p *Plan) Document() Document {
	d := Document{Kind: Kind, Decision: p.Decision.Action, Argv: p.Invocation.Words(), Cwd: p.Cwd, Workspace: p.Workspace, NoWorkspace: p.NoWorkspace, Steps: []StepDocument{},
		Reasons: p.Decision.Reasons, Alternatives: p.Decision.Alternatives, Lifted: p.Decision.Lifted, Grants: DangersOf(p.Decision.Grants.Effects), Sandbox: p.Receipt(), Fetches: p.Fetches, OwnSteps: p.Own, Pending: append([]string{}, p.pending...),
		Environment: EnvDocument{Passed: p.Env.Passed, Dropped: p.Env.Dropped, Credentials: p.Env.Credentials}, Policy: p.Policies.Sources(), Profile: p.Policies.Profile(), Delegation: p.ChainNames()}
	if d.Reasons == nil {
		d.Reasons = []policy.Reason{}
	}
	// What metadata warns of concerns its author: a plan shows it, a run does not.
	d.Warnings = append([]string{}, p.Warnings...)
	for _, s := range p.Steps {
		for _, w := range s.Call.Warnings {
			d.Warnings = append(d.Warnings, s.Call.Tool+": "+w)
		}
	}
	if len(p.Steps) > 0 {
		d.TimeoutMS = p.Limit().Milliseconds()
		main := p.Steps[0]
		d.Trust = TrustDocument{Verdict: main.Verdict, Digest: main.ID.Digest, Path: main.ID.Canonical}
	}
	for i, s := range p.Steps {
		decided := s.DecidedAt()
		if s.Own {
			s = p.Reading.Steps[i] // what its own run does, which the text is not granted
		}
		doc := StepDocument{Argv: s.Argv, Via: s.Via, Cwd: s.Cwd, Tool: s.Call.Tool, Command: s.Call.Path, Effects: dangers(s), Provenance: ProvenanceOf(s),
			Resources: s.Call.Resources, Confidence: s.Certainty(), RunsCode: s.RunsCode, Why: []string{}, Options: s.Call.Options, Unknown: s.Call.UnknownOptions, Arguments: s.Call.Positionals,
			Metadata: s.Call.Provenance, Executable: s.ID, Trust: s.Verdict, Installed: s.Missing == nil, Decided: decided}
		if s.DocumentVerdict.Reason != "" {
			doc.MetadataTrust = &s.DocumentVerdict
		}
		if doc.Command == nil {
			doc.Command = []string{}
		}
		if doc.Resources == nil {
			doc.Resources = []atip.Resource{}
		}
		if doc.Arguments == nil {
			doc.Arguments = []atip.Positional{}
		}
		if i < len(p.Decision.Steps) {
			doc.Action = p.Decision.Steps[i].Action
		}
		for _, r := range p.Decision.Reasons {
			if r.Step == i {
				doc.Why = append(doc.Why, r.Rule+": "+r.Text)
			}
		}
		d.Steps = append(d.Steps, doc)
	}
	return d
}

// refusedWords bounds the command lines in a refusal, which xargs fills with thousands.
const refusedWords = 256

// StepDetails are the steps as a refusal shows them.
func (p *Plan) StepDetails() []any {
	var out []any
	for _, s := range p.Steps {
		argv := s.Argv
		if len(argv) > refusedWords {
			argv = append(argv[:refusedWords:refusedWords], "…")
		}
		out = append(out, map[string]any{"argv": argv, "tool": s.Call.Tool, "command": s.Call.Path, "effects": dangers(s), "resources": s.Call.Resources})
	}
	return out
}

// Open finds the place of an invocation and the policies in force there, and plans nothing. The
// caller closes the plan.
func Open(inv Invocation, m caller.Machine) (*Plan, error) {
	p := New(inv, m)
	if err := p.settle(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Policies loads every layer that is in force in the current directory.
func Policies(m caller.Machine) (*policy.Set, error) {
	p, err := Open(Invocation{}, m)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Policies, nil
}

// SandboxPolicy is the sandbox object of the policy of this place, as a run would take it.
func SandboxPolicy(m caller.Machine) (sandbox.PolicyProfile, error) {
	set, err := Policies(m)
	if err != nil {
		return sandbox.PolicyProfile{}, err
	}
	return policyProfile(set.Sandbox(), set)
}

// Kind is the kind of a plan document.
const Kind = "atip-exec.plan/1"

// Batch plans many commands and starts none: the way to test a policy over
// thousands of command lines.
type Batch struct {
	Machine caller.Machine
	Settled func(*Plan) // told once for each directory, when its place and rules are known; may be nil

	places map[string]*Plan // what all questions about one directory share
}

// Plan plans like Make; policy, machine and file system are read once for each
// directory, since nothing that a batch does can change them.
func (b *Batch) Plan(inv Invocation) (*Plan, error) { return b.ending(inv, (*Plan).enclose) }

// ending has another last stage, behind the decision.
func (b *Batch) ending(inv Invocation, last func(*Plan) error) (*Plan, error) {
	place := b.places[inv.Directory]
	if place == nil {
		place = New(inv, b.Machine)
		place.memo = memo.New()
		if err := stages(place.settle, place.probe); err != nil {
			return nil, err
		}
		if b.places == nil {
			b.places = map[string]*Plan{}
		}
		b.places[inv.Directory] = place
		if b.Settled != nil {
			b.Settled(place)
		}
	}
	p := New(inv, b.Machine)
	p.Place, p.Rules, p.Host, p.files, p.memo, p.Warnings = place.Place, place.Rules, place.Host, place.files, place.memo, slices.Clone(place.Warnings)
	if err := stages(p.identify, p.decide, func() error { return last(p) }); err != nil {
		p.Close()
		return nil, err
	}
	p.Took = time.Since(p.Began)
	return p, nil
}

// PrimeSession is the label of the session, or else of the process that started us.
func (p *Plan) PrimeSession() string {
	for _, name := range append(SessionVariables(), "BUILDKITE_JOB_ID", "BUILD_ID") {
		if v := p.Machine.Getenv(name); v != "" {
			return v
		}
	}
	return "ppid-" + strconv.Itoa(os.Getppid()) + "-" + parentStarted()
}

// parentStarted tells processes apart that had the same number one after the other.
func parentStarted() string {
	parent, err := procstat.Of(os.Getppid())
	if err != nil {
		return "0"
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return parent.Fields[procstat.Start] + "-" + strings.TrimSpace(string(boot))
}

// Identity is the agent and the session that this process belongs to: labels, which give
// no authority.
func Identity(m caller.Machine) (agent, session string) {
	p := &Plan{Machine: m}
	return p.Agent(), p.PrimeSession()
}
