package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/delegation"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/memo"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/pathrule"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/trust"
)

// delegate adds the restrictions of a delegation to what is decided. They hold for
// the whole tree of the run: its kernel domain, its environment and its decisions
// come from here, so a child that drops the variable gains nothing by it.
func (p *Plan) delegate(req *policy.Request) error {
	token := p.Machine.Getenv(delegation.Variable)
	if token == "" {
		return nil
	}
	blocks, err := delegation.Chain(p.Dirs.Config, token)
	if err != nil {
		return err
	}
	req.Delegated = true
	for _, b := range blocks {
		r := b.Restrict
		req.Chain = append(req.Chain, policy.Restrict{Profile: r.Profile, Default: r.Default, AllowedTools: r.AllowedTools, DeniedCommands: r.DeniedCommands,
			EffectRestrictions: r.EffectRestrictions, Hosts: r.Hosts, Paths: r.Paths})
	}
	for _, d := range p.Policies.Delegable() {
		req.Chain = append(req.Chain, withinDelegable(d))
		if d.MaxTTL > 0 && time.Until(time.Unix(blocks[0].Exp, 0)) > d.MaxTTL {
			return &approve.TokenError{Why: "it lives longer than the policy lets a delegation"}
		}
		if blocks[0].Depth > d.MaxDepth {
			return &approve.TokenError{Why: "it may be delegated further than the policy lets it"}
		}
	}
	return nil
}

// withinDelegable takes away what the policy lets no delegation carry.
func withinDelegable(d policy.Delegable) policy.Restrict {
	r := policy.Restrict{AllowedTools: d.Tools, Hosts: d.Hosts, Paths: d.Paths}
	if d.Effects == nil {
		return r
	}
	r.EffectRestrictions = map[string]bool{}
	for _, e := range DangerKeys() {
		if name := policy.DangerName(e); !slices.Contains(d.Effects, name) && e != atip.Read && e != atip.Subprocess && e != atip.Idempotent {
			// Of reversible the harmless value is "yes".
			r.EffectRestrictions[e.String()] = e == atip.Reversible
		}
	}
	return r
}

// ChainNames is the chain as an approval binds and the audit keeps it.
func (p *Plan) ChainNames() []string {
	token := p.Machine.Getenv(delegation.Variable)
	if token == "" {
		return nil
	}
	blocks, err := delegation.Chain(p.Dirs.Config, token)
	if err != nil {
		return []string{"invalid"}
	}
	var out []string
	for _, b := range blocks {
		out = append(out, strings.TrimSpace(b.Agent+" "+b.Nonce))
	}
	return out
}

// withinDelegated takes from a profile what a delegation of paths does not lend: code that
// names no path, whose writing no rule can judge, is held to them by the sandbox. What the
// run has for itself stays: devices, its private directory, and where it tells its host the
// directory.
func (p *confining) withinDelegated() {
	for i := range p.chain {
		if p.chain[i].Paths != nil {
			p.writeWithin(p.chain[i].Paths)
		}
	}
}

// writeWithin takes every right to write that lies outside of the paths.
func (p *confining) writeWithin(paths []string) {
	lent := p.lent(paths)
	var write []sandbox.Grant
	for _, g := range p.Profile.Write {
		if subpath.Within(g.Path, "/dev") || subpath.Within(g.Path, p.Profile.Private) || g.Path == p.hostCwd || slices.ContainsFunc(lent, func(l sandbox.Grant) bool { return g.Path == l.Path || l.Dir && subpath.Within(g.Path, l.Path) }) {
			write = append(write, g)
			continue
		}
		for _, l := range lent {
			if g.Dir && subpath.Within(l.Path, g.Path) {
				write = append(write, sandbox.Grant{Path: l.Path, Dir: l.Dir, Rights: g.Rights, Why: g.Why})
			}
		}
		g.Rights &^= sandbox.Write | sandbox.Remove
		switch {
		case g.Rights&sandbox.Exec != 0:
			p.Profile.Exec = append(p.Profile.Exec, g)
		case g.Rights != 0:
			p.Profile.Read = append(p.Profile.Read, g)
		}
	}
	p.Profile.Write = write
	for _, list := range [...][]sandbox.Grant{p.Profile.Read, p.Profile.Write, p.Profile.Exec} {
		slices.SortFunc(list, func(a, b sandbox.Grant) int { return strings.Compare(a.Path, b.Path) })
	}
}

// lent are the delegated paths that are there. One that is not cannot be granted: the
// directory that it would be made in was not lent.
func (p *confining) lent(paths []string) []sandbox.Grant {
	files := p.files
	if p.Prepared != nil {
		files = p.Prepared.Files()
	}
	var out []sandbox.Grant
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			continue // such a delegation is denied as a whole
		}
		canonical, dir, err := files.Resolve(path)
		if err != nil {
			p.Profile.Absent = append(p.Profile.Absent, sandbox.Absent{Path: path, Why: "policy: it does not exist, and the directory to make it in is not granted; create it first"})
			continue
		}
		out = append(out, sandbox.Grant{Path: canonical, Dir: dir})
	}
	return out
}

// policyPaths are the paths that a policy's rules name and that are there, below which all is meant.
func (p *Plan) policyPaths(key string, rules []policy.PathRule) ([]string, error) {
	if len(rules) == 0 {
		return nil, nil
	}
	return p.memo.Named(key, func() ([]string, error) { return pathrule.Search(key, rules, p.Workspace, p.Dirs.Home) })
}

// Inside reports that this run is inside another, whose sandbox keeps it from the state
// directory.
func (at Place) Inside() bool { return at.inside }

// Receipt is what the sandbox enforces, and inside of what.
func (p *Plan) Receipt() sandbox.Receipt {
	if p.enforced != nil {
		return *p.enforced
	}
	return p.receiptOf(p.Setup)
}

func (p *Plan) receiptOf(setup sandbox.Setup) sandbox.Receipt {
	r := setup.Receipt()
	// A private root says itself which tier it is; of a lower one there is only the variable.
	if r.Nested.Outer == nil && p.Inside() {
		outer := "unknown"
		if tier, ok := sandbox.TierByName(p.Machine.Getenv("ATIP_EXEC_SANDBOX")); ok {
			outer = tier.String()
		}
		r.Nested.Outer = &outer
	}
	return r
}

// ProbeCache is where the sandbox keeps what it learned and what it must restore. A run
// inside another has a directory of its own for that, as long as it lasts; what it
// misses of the protected names the parent run still sees.
func (p *Plan) ProbeCache() sandbox.Cache {
	c := sandbox.Cache{Dir: p.Dirs.State, Executable: p.Machine.Self}
	if p.Starts && p.Inside() {
		c.Dir = "" // no state, which the sandbox then says itself
		if dir, err := os.MkdirTemp(p.Machine.Getenv("TMPDIR"), "atip-exec-"); err == nil {
			p.innerState, c.Dir = dir, dir
		}
	}
	return c
}

// Nests reports whether runs inside this one are heard.
func (p *Plan) Nests() bool { return p.mayNest() }

// mayNest reports whether something of the run may start us again: a command of ours in
// it, or the directory in PATH that puts us in front of the shells.
func (p *Plan) mayNest() bool {
	return p.Reading.Nestable || slices.Contains(filepath.SplitList(p.Machine.Getenv("PATH")), filepath.Join(p.Dirs.Data, "bin"))
}

// grantNested lets a run inside read the policies and the metadata that this one was
// decided by; without the user's policy it would be stricter or fail.
func (p *Plan) grantNested(in *sandbox.Input) {
	in.Outer = p.Host.Outer() != nil
	if !p.mayNest() {
		return
	}
	config := func(name string) string { return filepath.Join(p.Dirs.Config, name) }
	for _, path := range []string{config("policy.json"), config("delegation.pub"), config("approvers.json"), config("overrides"), config("trust"), p.Dirs.WorkspacesFile(), place.HomesFile(), p.Dirs.Data} {
		if _, err := os.Lstat(path); err == nil {
			in.Policy.Read = append(in.Policy.Read, sandbox.PathRule{Path: path, Rule: "for a run inside"})
		}
	}
}

// nestVariables tells a run inside where to send its record. It returns the descriptor for that, 0 for
// none.
func (p *Plan) nestVariables(set map[string]string) int {
	if !p.Starts || p.Invocation.Behalf != nil || p.Invocation.Standing != nil || !p.mayNest() && len(p.Own) == 0 {
		return 0
	}
	fd := FreeDescriptor(p.TextFD)
	p.standVariables(set, fd)
	if !p.mayNest() {
		return fd
	}
	set[nest.ParentVariable], set[nest.RunVariable] = "fd:"+strconv.Itoa(fd), p.Run
	return fd
}

// FreeDescriptor is a number that is neither named on the command line nor taken.
func FreeDescriptor(taken ...int) int {
	for fd := 10; ; fd++ {
		if !slices.Contains(taken, fd) && !slices.Contains(sandbox.InheritedFDs(), fd) {
			return fd
		}
	}
}

// withhold tells a run inside which credentials it will not find: those that this run
// was not given itself, too.
func (p *Plan) withhold(env *Env, dropped []string) {
	for _, name := range append(p.WithheldOutside(), dropped...) {
		if !slices.Contains(env.Credentials, name) && !slices.Contains(env.Withheld, name) && !strings.Contains(name, ":") {
			env.Withheld = append(env.Withheld, name)
		}
	}
	if len(env.Withheld) == 0 {
		return
	}
	slices.Sort(env.Withheld)
	env.Entries = append(env.Entries, nest.WithheldVariable+"="+strings.Join(env.Withheld, ":"))
	env.Passed = append(env.Passed, nest.WithheldVariable)
	slices.Sort(env.Passed)
}

// WithheldOutside lists what the parent run of this one says it has withheld.
func (p *Plan) WithheldOutside() []string {
	names := p.Machine.Getenv(nest.WithheldVariable)
	if names == "" || !p.Inside() {
		return nil
	}
	return strings.Split(names, ":")
}

// Answerable decides whether this process may carry out what it was asked for; keep says
// that the run inside can do it by itself. What a person has permitted is done, whatever
// it is; without one only what that run cannot do: use a credential that it does not have.
func (p *Plan) Answerable(refusal error) (keep bool, err error) {
	b := p.Invocation.Behalf
	lacks := p.Lacks(b.Withheld, func(file string) bool {
		_, err := os.Stat(file)
		return err == nil && !slices.Contains(b.Files, file)
	})
	switch {
	case refusal != nil && fault.From(refusal).Code != errcode.ApprovalRequired:
		return false, refusal
	case refusal == nil && len(lacks) == 0:
		return true, nil
	case p.Workspace != b.Workspace || p.Workspace == "" && p.Cwd != b.Cwd:
		return false, Withheld(p, lacks, "it is not in the workspace of the parent run")
	case refusal != nil:
		return false, refusal
	case p.Policies.Credentials() == policy.CredentialsWithheld:
		return false, Withheld(p, lacks, "the policy withholds it")
	case b.Question.Asks:
		return false, Withheld(p, lacks, "the nested run has a policy that requires approval")
	}
	if why := p.foreignPart(b.ReadOnly); why != "" {
		return false, Withheld(p, lacks, why)
	}
	return false, nil
}

// Lacks names what the tools of a plan use to talk to their services and the sandbox does
// not have: variables, and files of which missing tells.
func (p *Plan) Lacks(names []string, missing func(string) bool) []string {
	var out []string
	for _, s := range p.Steps {
		if s.Call.Provenance.Rank < atip.Org || s.Call.Effects[atip.Network].Value != atip.Yes {
			continue
		}
		for _, name := range s.Call.Secrets {
			if slices.Contains(names, name) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
		for _, file := range s.Entitled {
			if !slices.Contains(out, file) && missing(file) {
				out = append(out, file)
			}
		}
	}
	return out
}

// foreignPart names what in a plan is more than one known tool at work. What is given a
// credential must not be anybody else's code, nor a shell, which could cut it into pieces
// that no redaction knows.
func (p *Plan) foreignPart(readOnly bool) string {
	s := p.Steps[0]
	e := s.Call.Effects
	switch name := quote.Words(s.Argv[:1]); {
	case len(p.Steps) != 1, !slices.Equal(p.Argv, s.Argv):
		return "only a single command is started for a run inside"
	case s.Missing != nil:
		return name + " is not installed"
	case s.Call.Provenance.Rank < atip.Org, s.Confidence != policy.Exact:
		return name + " is not a known tool"
	case s.RunsCode != policy.CodeNone, e[atip.ExecOpaque].Value == atip.Yes:
		return name + " runs other code"
	case readOnly && (e[atip.Write].Value != atip.No || e[atip.Delete].Value != atip.No):
		return name + " writes where the parent run may not"
	}
	return ""
}

// Withheld is the refusal of a run inside that lacks credentials.
func Withheld(p *Plan, lacks []string, why string) error {
	text := quote.Words(p.Invocation.Words()) + " needs a credential that this run does not have"
	if len(lacks) > 0 {
		text = quote.Words(p.Invocation.Words()) + " needs " + strings.Join(lacks, ", ") + ", which this run does not have"
	}
	return fault.New(errcode.CredentialWithheld, text+": "+why).With("credentials", lacks)
}

// handedOn lists the credentials that policy gives to the tools of a delegation, instead
// of keeping them with the parent run: those that their metadata names. A token that
// names no tools hands on none.
func (p *Plan) handedOn() []string {
	if len(p.Own) > 0 || p.Policies.Credentials() != policy.CredentialsPassed || p.ChainNames() == nil {
		return nil
	}
	var tools []string
	named := false
	for _, r := range p.chain {
		switch {
		case r.AllowedTools == nil:
		case !named:
			tools, named = slices.Clone(r.AllowedTools), true
		default:
			tools = slices.DeleteFunc(tools, func(t string) bool { return !slices.Contains(r.AllowedTools, t) })
		}
	}
	if !named {
		p.Warnings = append(p.Warnings, "delegation.credentials is pass, but the token names no tools: none is handed on")
	}
	var out []string
	for _, tool := range tools[:min(len(tools), step.MaxSteps)] {
		for _, name := range p.secretsOf(tool) {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// secretsOf lists the credential variables of a tool that is known by its metadata.
func (p *Plan) secretsOf(tool string) []string {
	call, ok := p.site().KnownTool(tool, atip.Org)
	if !ok {
		return nil
	}
	return call.Secrets
}

// Below decides one start of this run: the same place, policies and machine, with the environment of
// the process. What was typed is held to all policies, and code of the workspace to the documents
// that someone wrote. The caller closes the plan, and asks one question at a time.
func (p *Plan) Below(words []string, cwd string, env []string, typed bool) (*Plan, error) {
	sub := New(Invocation{Argv: words, Policies: p.Invocation.Policies, Profiles: p.Invocation.Profiles, CI: p.Invocation.CI, Ceiling: p.Invocation.Ceiling}, p.Machine)
	sub.Machine.Environ = slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, "ATIP_") })
	for _, entry := range p.Machine.Environ {
		if strings.HasPrefix(entry, "ATIP_") {
			sub.Machine.Environ = append(sub.Machine.Environ, entry)
		}
	}
	sub.Place, sub.Rules, sub.Host, sub.files = p.Place.from(cwd), p.Rules, p.Host, p.files
	of := 1
	if !typed {
		sub.Rules, of = p.Rules.written(), 0
	}
	if p.below[of] == nil {
		p.below[of] = memo.NewForRun()
	}
	sub.memo = p.below[of]
	if err := stages(sub.identify, sub.decide); err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// ByFile reports whether the start of a program by code of the workspace, which this plan allows, hung on its
// file alone: no rule is about its tool, and its words name no other one. A command that the program
// executes is a start of its own.
func (p *Plan) ByFile(path string) bool {
	s := p.Steps[len(p.Steps)-1]
	before := 0
	if len(p.Steps) == 2 && p.Steps[0].ID.Effective == "env" {
		before = 1 // in front for the variables of the process
	}
	id := &s.ID
	return len(p.Steps) == before+1 && s.Argv[0] == path && s.Missing == nil && s.OneTool && len(p.Edges) == 0 &&
		id.Form == trust.FormELF && len(id.Chain) == 1 && id.Manager == "" && !strings.Contains(id.Effective, ".so") && s.Verdict.Reason != "own_path" && s.Trust.Action == policy.Allow &&
		p.Invocation.Ceiling == nil && len(p.chain) == 0 && len(p.Policies.Allowlists()) == 0 && !p.authority().TrustPolicy().RequireMetadata && len(p.Policies.Env().Pass) == 0 &&
		!p.Policies.Names(&s.Step)
}

// from is the place as a process sees it that works in another directory.
func (at Place) from(cwd string) Place {
	at.Cwd, at.World.Cwd = cwd, cwd
	return at
}

// written are the rules that someone wrote, without the built-in ones.
func (r Rules) written() Rules {
	r.Policies = r.Policies.Written()
	return r
}

// sessionScope is what a grant for a session has to cover to permit this plan, nil if
// only one for the plan itself can, as for what a run inside asks for: each part that asks must be a command that is known
// to the word, runs nobody else's code, and does only what hosts and paths say.
func (p *Plan) sessionScope() *approve.Scope {
	if p.Invocation.Behalf != nil || len(p.Edges) > 0 || p.Decision.Action != policy.Confirm || len(p.Decision.Steps) != len(p.Steps) || p.SessionLabel() == "" {
		return nil
	}
	scope := &approve.Scope{UID: p.Machine.UID, Session: p.SessionLabel(), Agent: p.Agent(), Workspace: p.Workspace, Chain: p.ChainNames(), Credentials: slices.Clone(p.Env.Credentials)}
	for i, d := range p.Decision.Steps {
		if d.Action == policy.Allow {
			continue
		}
		step, ok := scopeOf(p.Steps[i], d.Danger)
		if !ok {
			return nil
		}
		scope.Steps = append(scope.Steps, step)
	}
	for _, r := range p.Decision.Reasons {
		if r.Action == policy.Confirm && (r.Step < 0 || r.Step >= len(p.Decision.Steps) || p.Decision.Steps[r.Step].Action == policy.Allow) {
			return nil // something else asks than a command by itself
		}
	}
	if len(scope.Steps) == 0 {
		return nil
	}
	return scope
}

// scopeOf is the step as a part of a session's scope.
func scopeOf(s *step.Step, danger atip.Set) (approve.ScopeStep, bool) {
	out := approve.ScopeStep{Tool: s.Call.Tool, SHA256: s.ID.Digest, Command: s.Call.Path}
	if s.Missing != nil || s.ID.Digest == "" || s.Certainty() != "exact" || s.RunsCode != policy.CodeNone {
		return out, false
	}
	for _, e := range DangerKeys() {
		if !danger.Has(e) {
			continue
		}
		if name := policy.DangerName(e); slices.Contains(approve.SessionEffects(), name) {
			out.Effects = append(out.Effects, name)
		} else {
			return out, false
		}
	}
	if len(out.Effects) == 0 {
		return out, false // what asks is not an effect
	}
	for _, h := range s.Hosts {
		switch {
		case h.Kind == policy.HostService:
			out.Hosts = append(out.Hosts, "service")
		case h.Kind == policy.HostMetadata, h.Host == "":
			return out, false
		default:
			out.Hosts = append(out.Hosts, h.Host+":"+strconv.Itoa(h.Port))
		}
	}
	if slices.Contains(out.Effects, "network") && len(out.Hosts) == 0 {
		return out, false
	}
	named := false
	for _, r := range s.Call.Resources {
		if r.Kind != "path" || r.Access&(atip.AccessWrite|atip.AccessDelete|atip.AccessExec) == 0 {
			continue
		}
		if r.Abs == "" || r.Class == atip.ClassUnknown {
			return out, false
		}
		out.Paths, named = append(out.Paths, r.Abs), true
	}
	return out, named || !slices.Contains(out.Effects, "delete")
}
