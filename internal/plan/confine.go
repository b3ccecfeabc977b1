package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/delegation"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// namesShell reports whether the command is a shell that the caller named. Its text is judged
// like that of -c, but a shell is one of the programs for which a private root is worth its
// price.
func (p *Plan) namesShell() bool {
	return !p.Invocation.IsShell && len(p.Invocation.Argv) > 0 && step.IsShell(filepath.Base(p.Invocation.Argv[0]))
}

// confining is a confinement that is being made. What it holds itself is not yet the plan's.
type confining struct {
	*Plan
	Confinement
}

// enclose makes the confinement and the environment.
func (p *Plan) enclose() error { return p.confine((*confining).derive) }

// entitle makes them without a profile, which tells what rights the run has.
func (p *Plan) entitle() error {
	return p.confine(func(c *confining) error {
		_, err := c.input()
		return err
	})
}

// confine makes the confinement, by which the sandbox holds the run to the decision, and the
// environment. With an error the confinement is what was made until then.
func (p *Plan) confine(by func(*confining) error) error {
	c := &confining{Plan: p}
	err := by(c)
	if p.Confinement = c.Confinement; err == nil {
		p.Env = p.environment()
	}
	return err
}

// input is what was decided, for the profile of the run.
func (p *confining) input() (in sandbox.Input, err error) {
	sp := p.Policies.Sandbox()
	net, err := p.network()
	if err != nil {
		return in, err
	}
	in = sandbox.Input{
		Workspace: p.Workspace, Cwd: p.Cwd, Elsewhere: p.StartDir() != p.Cwd, Home: p.Dirs.Home,
		PathDirs: filepath.SplitList(p.Machine.Getenv("PATH")), GitDirs: p.gitDirs, Private: p.Private, Layers: filepath.Join(p.Dirs.Cache, "layers", filepath.Base(p.Private)),
		Granted: p.Decision.Grants.Effects, OrgBound: !p.namesShell(), Net: net,
		Forbidden: p.Forbidden(), Root: p.Machine.UID == 0, Getenv: p.Machine.Getenv, Files: p.files,
	}
	forced, _ := sandbox.TierByName(sp.Tier)
	if p.Host.PrivateRoots(forced) && sp.Tmp == "" && p.Policies.Process().Leftovers != "keep" {
		in.Mirrored = p.mirrored(p.Share())
	} else if sp.Tmp == "" && p.runsCode() {
		in.TmpFiles = p.Share().Readable(maxTmpFiles)
	}
	in.Names = ProtectedNames()
	in.Judge, in.Keeps, in.Patterns = p.judgeGrant, p.World.Keeps, p.Reading.Patterns
	in.OtherWorktrees = gitrepo.OtherWorktrees(p.Workspace, p.gitDirs)
	var cut bool
	if in.SecretLinks, cut = place.SecretLinks(p.Workspace, p.Dirs.Home); cut {
		p.Warnings = append(p.Warnings, fmt.Sprintf("a credential file of yours has a second name, which was not found among the first %d names of the workspace; if it is further down, this run can read it", place.MaxLinkSearch))
	}
	if p.Prepared != nil {
		in.Files = p.Prepared.Files()
	}
	if sp.Workspace != "" {
		in.WorkspaceNamed = sp.WorkspaceAt
	}
	if in.Policy, err = policyProfile(sp, p.Policies); err != nil {
		return in, err
	}
	in.Policy.DeleteStrict = in.Policy.DeleteStrict || p.strictDelete()
	if err := p.namedByPolicy(&in); err != nil {
		return in, err
	}
	in.Subprocess, in.Untraced = p.Subprocess(), sp.Trace == "off" || p.Gated() && !p.Traces()
	if len(p.Own) > 0 {
		in.Exec = append(in.Exec, p.Machine.Self)
	}
	in.Named = slices.Clone(p.Reading.PathDirs)
	// Who types a path or makes a link chooses where it leads, so that a directory of anything else is not
	// granted by that.
	named := func(path string) {
		if dir := filepath.Dir(path); place.ProgramDir(dir) && !slices.Contains(in.Named, dir) {
			in.Named = append(in.Named, dir)
		}
	}
	if p.runsCode() {
		for _, path := range place.VirtualEnvs(p.Workspace) {
			if p.site().Opener.OwnDirectory(filepath.Dir(path)) {
				named(path)
			}
		}
	}
	entitled := p.entitled()
	for _, s := range p.Steps {
		in.OrgBound = in.OrgBound && s.Call.Provenance.Rank >= atip.Org && s.RunsCode == policy.CodeNone
		for _, part := range s.ID.Chain {
			in.Exec = append(in.Exec, part.Path)
			switch {
			case !part.OwnPath:
			case s.ID.Word == filepath.Base(s.ID.Word):
				// A link on PATH into a prefix of its own, as pipx makes it, needs what an entry there needs.
				in.PathDirs = append(in.PathDirs, filepath.Dir(part.Path))
			default:
				named(s.ID.Found)
				named(part.Path)
			}
		}
		in.Resources = append(in.Resources, s.Call.Resources...)
		in.Repositories = append(in.Repositories, localRemotes(s)...)
		in.Changes = append(in.Changes, p.changes(s)...)
		if s.Call.Provenance.Rank >= atip.Org {
			for _, path := range s.Call.Paths {
				if abs := p.Expand(path); entitled || p.World.Classify(abs, atip.AccessRead, true) != atip.ClassSecret {
					in.ToolPaths = append(in.ToolPaths, abs)
				}
			}
			if entitled {
				in.CredentialFiles = append(in.CredentialFiles, s.Entitled...)
			}
		}
	}
	in.Hidden, in.ProtectAllow = p.hiddenSecrets(envFiles(sp.EnvFiles), net.Mode == sandbox.NetAllowlist || net.Mode == sandbox.NetFull), nil
	for _, r := range sp.ProtectAllow {
		in.ProtectAllow = append(in.ProtectAllow, r.Path)
	}
	in.ProtectAllow = append(in.ProtectAllow, p.approvedNames()...)
	for _, f := range sp.SecretFiles {
		if len(p.Own) > 0 {
			break
		}
		in.CredentialFiles = append(in.CredentialFiles, p.Expand(f.Path))
	}
	p.CredentialFiles = in.CredentialFiles
	p.holds(net.Mode, in.CredentialFiles)
	p.gitReads(&in)
	in.Closed = p.Rights.closed
	if in.Families = p.families(in.Closed); slices.Contains(in.Families, "cargo") {
		in.CargoSettings = place.CargoSettings(p.Dirs.Home, p.Machine.Getenv)
	}
	if p.Rights.Settings != nil {
		in.Scratch, in.Rewrites = []string{p.Rights.Scratch}, p.Rights.modes
	}
	p.grantHostCwd(&in)
	p.grantNested(&in)
	return in, nil
}

// derive makes the profile of the run and selects the mechanisms that enforce it here.
func (p *confining) derive() error {
	in, err := p.input()
	if err != nil {
		return err
	}
	if p.Profile, err = sandbox.Derive(in); err != nil {
		return err
	}
	if p.Profile.Ceiling == sandbox.ExecOpen && p.Gated() {
		p.Profile.Ceiling = sandbox.ExecGated
	}
	p.withinDelegated()
	p.belowCeiling()
	if p.Setup, err = sandbox.Select(p.Profile, p.Host); err != nil {
		return err
	}
	if p.Setup.Tier() != sandbox.T3 {
		for _, path := range in.SecretLinks {
			p.Warnings = append(p.Warnings, path+" is another name of a credential file, which only tier T3 can hide")
		}
		if len(in.Secrets) > 0 {
			p.Warnings = append(p.Warnings, "this run can read the files of paths.secret: only tier T3 can hide them")
		}
	}
	if p.Setup.Tier() == sandbox.T0 {
		p.Warnings = append(p.Warnings, "not confined: the policy has sandbox.confine \"none\"; the decision is the only protection")
	}
	for _, a := range p.Profile.Absent {
		if strings.HasPrefix(a.Why, "policy") || slices.Contains(p.tmpDirs(), a.Path) {
			p.Warnings = append(p.Warnings, fmt.Sprintf("sandbox: %s is not granted: %s", a.Path, a.Why))
		}
	}
	if p.Starts {
		// Status, record and denials all ask; the first answer is the last one.
		r := p.receiptOf(p.Setup)
		p.enforced = &r
	}
	return nil
}

// ConfineOn makes the confinement and the environment once more, for a machine that turned out to be
// able to do something else. What is warned of then was told already.
func (p *Plan) ConfineOn(host sandbox.Host) error {
	warnings, made := len(p.Warnings), p.hostCwdMade
	p.Host = host
	if err := p.enclose(); err != nil {
		return err
	}
	p.Warnings, p.hostCwdMade = p.Warnings[:warnings], made
	return nil
}

// ConfineAgain makes them once more after files were made that the run may write, which were not
// there when it was planned.
func (p *Plan) ConfineAgain() error {
	p.files = sandbox.HostFiles()
	if p.Prepared != nil {
		p.Prepared.Close()
		p.Prepared = nil
	}
	return p.enclose()
}

// Started says that the command runs, which keeps what was made for it.
func (p *Plan) Started() { p.hostCwdMade = false }

// changes are the places where a command changes protected names by itself: git its settings and
// submodules, a removal what lies below the directory that it names.
func (p *Plan) changes(s *step.Step) (out []string) {
	if (s.Call.Tool == "git" || slices.Contains(s.Call.Execs, "git")) && s.Call.Effects[atip.Write].Value != atip.No && p.Workspace != "" {
		out = append(out, p.Workspace)
	}
	for _, r := range s.Call.Resources {
		if r.Access == atip.AccessDelete && r.Abs != "" && subpath.Within(r.Abs, p.Workspace) {
			out = append(out, r.Abs)
		}
	}
	return out
}

// namedByPolicy adds what stands under paths in the policy: secrets are hidden, protected
// files stay as they are, whatever runs.
func (p *Plan) namedByPolicy(in *sandbox.Input) (err error) {
	paths := p.Policies.Paths()
	if in.Secrets, err = p.policyPaths("paths.secret", paths.Secret); err != nil {
		return err
	}
	for _, path := range in.Secrets {
		if subpath.Within(p.Cwd, path) {
			return fault.New(errcode.Confinement, "cannot confine: the working directory lies in "+path+", which paths.secret of the policy hides").WithFix("start it from a directory above", "").With("path", path)
		}
	}
	protected, err := p.policyPaths("paths.protected", paths.Protected)
	for _, path := range protected {
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			path += "/"
		}
		in.Policy.Protected = append(in.Policy.Protected, path)
	}
	return err
}

// ProtectedNames hands the table of names to the sandbox.
func ProtectedNames() sandbox.Names {
	names := place.ProtectedNames()
	return sandbox.Names{Tree: names.Tree, CI: names.CI, Git: names.Git, Secrets: place.SystemSecrets()}
}

// approvedNames are the paths that the call changes once you approve it. What was approved is
// what happens, so that the sandbox neither refuses it nor takes it back. A call that needs no
// approval changes no protected name.
func (p *Plan) approvedNames() []string {
	if p.Decision.Action != policy.Confirm {
		return nil
	}
	var out []string
	for _, s := range p.Steps {
		for _, r := range s.Call.Resources {
			modifies := r.Kind == "path" && r.Abs != "" && r.Access&(atip.AccessWrite|atip.AccessDelete) != 0
			switch {
			case !modifies:
			case r.Class == atip.ClassStartup, r.Class == atip.ClassWorkspaceVCS && r.Access&atip.AccessDelete != 0:
				out = append(out, filepath.Clean(r.Abs))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Forbidden lists what no run may write: whoever writes there decides later runs.
func (p *Plan) Forbidden() []sandbox.Forbidden {
	apart := ""
	if f := p.Invocation.Fetching; f != nil {
		apart = f.Dir
	}
	out := []sandbox.Forbidden{{Path: p.Dirs.Config, Why: "configuration"}, {Path: p.Dirs.Data, Why: "metadata"}, {Path: p.Dirs.State, Why: "state", Unreadable: true},
		{Path: p.Dirs.Cache, Why: "temporary files and caches of other workspaces", Shared: true, Except: apart},
		{Path: filepath.Dir(p.Dirs.Undo()), Why: "copies of workspaces", Unreadable: true},
		{Path: place.Managed, Why: "managed policy"}}
	for _, program := range p.Machine.Programs()[1:] {
		out = append(out, sandbox.Forbidden{Path: program, Why: "our programs", Program: true})
	}
	if p.Dirs.Runtime != "" {
		out = append(out, sandbox.Forbidden{Path: p.Dirs.Runtime, Why: "run-time files", Unreadable: true})
	}
	return out
}

// StartDir is the directory in which the child starts. A call that fetches may start where no directory
// above has settings of anybody but the machine; its words name its files.
func (p *Plan) StartDir() string {
	if f := p.Invocation.Fetching; f != nil && f.Work.Root {
		return "/"
	}
	return p.Cwd
}

// families names the tool families whose caches this run uses: those of its commands, and if it may
// start others than those, those whose marker lies in the workspace.
func (p *Plan) families(closed *sandbox.Closed) []string {
	forks := false
	var tools []string
	for _, s := range p.Steps {
		tools = append(tools, s.Call.Tool, s.ID.Effective)
		forks = forks || s.Call.Effects[atip.Subprocess].Value != atip.No
	}
	forks = forks && (closed == nil || !closed.Listed)
	var out []string
	for _, m := range place.PackageFamilies() {
		used := false
		for _, t := range m.Tools {
			used = used || slices.Contains(tools, t)
		}
		for _, f := range m.Files {
			if used || !forks || p.Workspace == "" {
				break
			}
			used = p.packages[f] || p.marked(f)
		}
		if used {
			out = append(out, m.Family)
		}
	}
	return out
}

// marked reports a file of that name in the directory of the run, or in one above it in the
// workspace, where the search for secrets ended before it came there.
func (p *Plan) marked(name string) bool {
	for dir := p.Cwd; subpath.Within(dir, p.Workspace); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	_, err := os.Lstat(filepath.Join(p.Workspace, name))
	return err == nil
}

func policyProfile(sp policy.SandboxPolicy, set *policy.Set) (sandbox.PolicyProfile, error) {
	limits := set.Limits()
	out := sandbox.PolicyProfile{Read: pathRules(sp.Read), Write: pathRules(sp.Write), Exec: pathRules(sp.Exec), Sockets: pathRules(sp.Sockets), Devices: pathRules(sp.Devices),
		Require: guarantees(sp.Require), DeleteStrict: sp.DeleteStrict,
		Limits: sandbox.Limits{OpenFiles: uint64(limits.OpenFiles), Nice: limits.Nice, CPU: uint64((limits.CPU + time.Second - 1) / time.Second), FileSize: uint64(limits.FileSize), Memory: uint64(limits.Memory), Processes: uint64(limits.Processes), Shm: uint64(limits.Shm)}}
	out.Accept, out.ProtectCI = guarantees(sp.Accept), sp.ProtectCI
	process := set.Process()
	out.Caps, out.KeepLeftovers = process.Caps, process.Leftovers == "keep"
	switch sp.Tmp {
	case "run":
		out.Tmp = sandbox.TmpRun
	case "host":
		out.Tmp = sandbox.TmpHost
	}
	if process.Askpass != "" {
		out.Exec = append(out.Exec, sandbox.PathRule{Path: process.Askpass, Rule: "process.askpass"})
	}
	if sp.Confine == "none" {
		out.Confine = sandbox.ConfineNone
	}
	for _, r := range set.Paths().Protected {
		if !strings.ContainsAny(r.Path, "*?") {
			out.Protected = append(out.Protected, r.Path) // also if it is not there yet
		}
	}
	if sp.Tier != "" {
		tier, ok := sandbox.TierByName(sp.Tier)
		if !ok {
			return out, &policy.ParseError{Code: errcode.PolicySyntax, File: "policy", Msg: fmt.Sprintf("sandbox.tier: %q is not T1, T2 or T3", sp.Tier)}
		}
		out.Tier = tier
	}
	return out, nil
}

// envFiles reads "sandbox.envFiles"; the policy package has checked the word.
func envFiles(word string) sandbox.EnvFiles {
	switch word {
	case "mask":
		return sandbox.EnvFilesMask
	case "allow":
		return sandbox.EnvFilesAllow
	}
	return sandbox.EnvFilesNetwork
}

func pathRules(rules []policy.PathRule) []sandbox.PathRule {
	var out []sandbox.PathRule
	for _, r := range rules {
		out = append(out, sandbox.PathRule{Path: r.Path, Pos: fmt.Sprintf("%s:%d:%d", r.File, r.Line, r.Col), Rule: r.Layer.String()})
	}
	return out
}

func guarantees(names []string) []sandbox.Guarantee {
	var out []sandbox.Guarantee
	for _, n := range names {
		out = append(out, sandbox.Guarantee(n))
	}
	return out
}

// worse joins two values of an effect that is dangerous when "yes".
func worse(a, b atip.Value) atip.Value {
	switch {
	case a == atip.Yes || b == atip.Yes:
		return atip.Yes
	case a == atip.Unknown || b == atip.Unknown:
		return atip.Unknown
	}
	return atip.No
}

// environment builds what the child gets: scrubbed, then the additions of policy,
// sandbox and the tools at hand.
func (p *Plan) environment() Env {
	ep := p.Policies.Env()
	r := environRules{pass: ep.Pass, drop: ep.Drop, set: map[string]string{}}
	for name, value := range ep.Set {
		r.set[name] = value
	}
	for name, value := range p.Setup.Environment() {
		if value != "" {
			r.set[name] = value
		}
	}
	if askpass := p.Policies.Process().Askpass; askpass != "" {
		for _, name := range [...]string{"SSH_ASKPASS", "GIT_ASKPASS", "SUDO_ASKPASS"} {
			r.set[name] = askpass
		}
		r.set["SSH_ASKPASS_REQUIRE"] = "force" // there is no display, without which ssh asks nobody
	}
	entitled := p.entitled()
	if own := p.callersGitConfig(); len(own) > 0 {
		addGitConfig(r.set, own)
	}
	for _, s := range p.Steps {
		if s.Call.Provenance.Rank >= atip.Org && entitled {
			r.declared = append(r.declared, s.Call.Secrets...)
		}
	}
	p.gitEnvironment(r.set)
	p.quiet(r.set)
	if path := p.Machine.Getenv("SSH_AUTH_SOCK"); path != "" {
		// The policy grants that very socket, and a client finds it by its variable only.
		if real, err := filepath.EvalSymlinks(path); err == nil && slices.Contains(p.Setup.Sockets(), real) {
			r.declared = append(r.declared, "SSH_AUTH_SOCK")
		}
	}
	for _, kv := range p.fetchVariables() {
		// A variable in it is one that the sandbox sets: where a cache of the workspace lies.
		r.set[kv[0]] = os.Expand(kv[1], func(name string) string { return r.set[name] })
	}
	if token := p.Machine.Getenv(delegation.Variable); token != "" {
		r.set[delegation.Variable] = token // verified when the run was decided
	}
	nestFD := p.nestVariables(r.set)
	r.set["ATIP_EXEC_SANDBOX"] = p.Setup.Tier().String()
	if p.Invocation.Directory != "" {
		r.set["PWD"] = p.StartDir()
	}
	if p.Machine.UID == 0 && p.Setup.Tier() != sandbox.T0 && !slices.Contains(p.Profile.Caps, "chown") && p.Machine.Getenv("TAR_OPTIONS") == "" {
		// Root gives no files away here, and tar takes it for granted that root does.
		r.set["TAR_OPTIONS"] = "--no-same-owner"
	}
	if p.Invocation.Terminal && p.Machine.Getenv("TERM") == "" && !isTerminal(p.Machine.Stdin) {
		// Nobody looks at the terminal that the command gets.
		r.set["TERM"] = "dumb"
	}
	handedDown := p.handedOn()
	r.declared = append(r.declared, handedDown...)
	env, withheld := scrub(p.Machine.Environ, r)
	env.HandedDown, env.NestFD = handedDown, nestFD
	if nestFD != 0 && p.mayNest() {
		p.withhold(&env, withheld)
	}
	env.placeholder = p.returned(env.Entries)
	return env
}

// gitEnvironment closes the ways in which git starts programs that a repository chose. All commands share it, so
// that hooks are off only where nothing changes a repository: `git commit && git log` runs those of the commit.
func (p *Plan) gitEnvironment(set map[string]string) {
	used, reads := p.git()
	if !used {
		return
	}
	if reads {
		set["GIT_OPTIONAL_LOCKS"], set["GIT_NO_LAZY_FETCH"] = "0", "1"
	}
	set["GIT_TERMINAL_PROMPT"] = "0"
	addGitConfig(set, gitrepo.Careful(reads))
}

// git reports whether a step is git, and whether all that are do not write and no other runs code that may start git.
func (p *Plan) git() (used, reads bool) {
	reads = true
	for _, s := range p.Steps {
		git := s.Call.Tool == "git"
		used, reads = used || git, reads && (git && s.Call.Effects[atip.Write].Value == atip.No || !git && !s.Foreign())
	}
	return used, reads
}

// observeSlots bounds what is remembered of failed plans: one file for each slot, and a
// newer plan takes the place of an older one.
const observeSlots = 1024

// Observed reports whether the system calls of this run are listened to: because the
// command line or the policy says so, or because policy says "auto" and the same plan ended
// with something like a refusal when it last ran. A policy that says "off" has the last word.
func (p *Plan) Observed() bool {
	switch p.Policies.Sandbox().Observe {
	case "off":
		return false
	case "on":
		return true
	case "auto":
		if !p.Invocation.ExplainDenials {
			file, key := p.ObserveSlot()
			was, err := regular.Read(file, 256)
			return file != "" && err == nil && bytes.Equal(was, key)
		}
	}
	return p.Invocation.ExplainDenials
}

// ObserveSlot is where a failure of this plan is remembered, and as what.
func (p *Plan) ObserveSlot() (file string, key []byte) {
	if p.innerState != "" || p.Dirs.State == "" {
		return "", nil
	}
	h := sha256.New()
	for _, part := range append([]string{p.Cwd, p.Steps[0].ID.Digest}, p.Invocation.Words()...) {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	sum := h.Sum(nil)
	slot := (int(sum[0])<<8 | int(sum[1])) % observeSlots
	return filepath.Join(p.Dirs.State, "observe", strconv.Itoa(slot)), []byte(hex.EncodeToString(sum) + "\n")
}

// ObserveRefused says why the flag has no effect, "" if it has.
func (p *Plan) ObserveRefused() string {
	if p.Invocation.ExplainDenials && p.Policies.Sandbox().Observe == "off" {
		return "--explain-denials has no effect: the policy says sandbox.observe off"
	}
	return ""
}
