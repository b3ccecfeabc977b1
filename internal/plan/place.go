package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/advice"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/nest"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/status"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/internal/toollock"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/shims"
)

// settled is where a command would run and what holds there. With an error it is what was found out
// until then.
func settled(inv Invocation, m caller.Machine, dirs place.Dirs) (Place, Rules, error) {
	at, err := locate(inv, m, dirs)
	if err != nil {
		return at, Rules{}, err
	}
	docs, err := at.documents(inv, m)
	if err != nil {
		return at, Rules{}, err
	}
	set, err := policy.Compile(docs)
	if err != nil {
		return at, Rules{}, err
	}
	if named := set.Sandbox().Workspace; named != "" {
		at = at.within(named, m)
	}
	at.World.CI = set.Sandbox().ProtectCI
	rules, err := rulesOf(at, set)
	return at, rules, err
}

// setOut is what is known of a place before it is looked at.
func setOut(m caller.Machine, dirs place.Dirs) Place {
	return Place{Dirs: dirs, inside: nest.Inside(m.Getenv, dirs.State)}
}

// locate is where an invocation would run, before a policy is asked.
func locate(inv Invocation, m caller.Machine, dirs place.Dirs) (at Place, err error) {
	at = setOut(m, dirs)
	// getcwd(2) gives the path without links, which is the one that rules mean.
	if at.Cwd, err = syscall.Getwd(); err != nil || !filepath.IsAbs(at.Cwd) {
		return at, fault.New(errcode.NoInputFile, fmt.Sprintf("the current directory is gone: %v", err)).WithFix("change to a directory that exists", "cd /")
	}
	if inv.Directory != "" {
		if at.Cwd, at.CwdID, err = enter(at.Cwd, inv.Directory); err != nil {
			return at, err
		}
	}
	at.shimDirs = shims.DirsOf(dirs.Config, dirs.Data, dirs.State, m.Getenv)
	at = at.within("", m)
	if at.shimDirs.CallerSupplied {
		// Answers of registries are written there, beside the sandbox.
		if why := at.judgeGrant(place.Resolve(at.shimDirs.Data), true); why != "" {
			return at, fault.New(errcode.FlagValue, "ATIP_CACHE_DIR: "+at.shimDirs.Data+" is "+why).WithFix("name a directory of its own for it, or unset it", "unset ATIP_CACHE_DIR").With("variable", "ATIP_CACHE_DIR")
		}
	}
	return at, nil
}

// enter is the directory that -C names, from cwd.
func enter(cwd, dir string) (string, sandbox.DirID, error) {
	dir = subpath.Join(cwd, dir)
	bad := func(why string) (string, sandbox.DirID, error) {
		return cwd, sandbox.DirID{}, fault.New(errcode.NoInputFile, "-C: "+why).With("directory", dir)
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return bad(err.Error())
	case !info.IsDir():
		return bad(dir + " is not a directory")
	}
	canonical, id, err := sandbox.Directory(dir)
	if err != nil {
		return bad(dir + ": " + err.Error())
	}
	return canonical, id, nil
}

// within is the place with its workspace and all that follows from it; named is what policy says,
// "" to look for it.
func (at Place) within(named string, m caller.Machine) Place {
	at.Workspace, at.gitDirs, at.NoWorkspace = place.FindWorkspace(at.Cwd, at.Dirs, m.UID)
	if named != "" {
		at.Workspace = at.Expand(named)
	}
	switch {
	case at.Workspace != "":
		at.NoWorkspace = ""
	case at.NoWorkspace == "":
		at.NoWorkspace = "none was found"
	}
	at.Private = at.privateDir(m.UID)
	world := place.World{Workspace: at.Workspace, Home: at.Dirs.Home, Cwd: at.Cwd, Config: at.Dirs.Config, Data: at.Dirs.Data, State: at.Dirs.State, Runtime: at.Dirs.Runtime,
		Managed: place.Managed, Programs: m.Programs(), TmpDirs: at.tmpDirs(), GitDirs: at.gitDirs}
	if home := m.Getenv("HOME"); filepath.IsAbs(home) && home != at.Dirs.Home {
		world.OtherHome = filepath.Clean(home)
	}
	at.World = world.Resolved()
	return at
}

// rulesOf are the rules of a place under a set of policies.
func rulesOf(at Place, set *policy.Set) (r Rules, err error) {
	r.Policies = set
	r.SecretFiles, r.packages = at.workspaceSecrets()
	r.locks, err = toollock.ReadLocks(at.Dirs.Config, at.Workspace)
	return r, err
}

// tmpDirs are the directories for temporary files: the machine's and the run's own. TMPDIR
// makes none, as its caller could call any directory so.
func (at Place) tmpDirs() []string {
	return []string{"/tmp", "/var/tmp", "/dev/shm", filepath.Join(at.Private, "tmp")}
}

// privateDir is the directory for the TMPDIR and the caches of this workspace,
// told apart by user, inode and path so that no two share one.
func (at Place) privateDir(uid int) string {
	root := at.Workspace
	root = cmp.Or(root, at.Cwd)
	h := sha256.New()
	var id [24]byte
	binary.LittleEndian.PutUint64(id[:], uint64(uid))
	dev, ino := place.FileID(root)
	binary.LittleEndian.PutUint64(id[8:], dev)
	binary.LittleEndian.PutUint64(id[16:], ino)
	h.Write(id[:])
	h.Write([]byte(root))
	return filepath.Join(at.Dirs.Cache, "ws", hex.EncodeToString(h.Sum(nil)[:8]))
}

// Expand is a path of a policy as an absolute one.
func (at Place) Expand(path string) string {
	return effects.Expand(path, at.Dirs.Home, at.Cwd)
}

// judgeGrant is sandbox.Input.Judge.
func (at Place) judgeGrant(canonical string, dir bool) string {
	switch at.World.Classify(canonical, atip.AccessRead, dir) {
	case atip.ClassSecret:
		return "a place of credentials"
	case atip.ClassStartup:
		return "a place of files that run by themselves"
	case atip.ClassPolicySelf:
		return "this program's own files"
	case atip.ClassRoot:
		return "a root of the file system"
	case atip.ClassSystem, atip.ClassDevice:
		return "the system"
	}
	return ""
}

// hostCwdFile is the file in which a host of agents wants to be told where a command
// ended, "" if the text does not end that way: `… && pwd -P >| /tmp/claude-1a2b-cwd`.
// The host reads it to start the next command there.
func hostCwdFile(script *shell.Script, tmpDirs []string) string {
	if len(script.Commands) == 0 {
		return ""
	}
	last := script.Commands[len(script.Commands)-1]
	if last.Kind != shell.Builtin || strings.Join(last.Argv, " ") != "pwd -P" || len(last.Redirects) != 1 || !last.Redirects[0].Write {
		return ""
	}
	path := last.Redirects[0].Path
	ok, err := filepath.Match("claude-*-cwd", filepath.Base(path))
	if err != nil || !ok || filepath.Clean(path) != path || !slices.Contains(tmpDirs, filepath.Dir(path)) {
		return ""
	}
	return path
}

// grantHostCwd lets the run write that one file, which must be there for it. Making a
// plan that will not be run leaves no file behind.
func (p *Plan) grantHostCwd(in *sandbox.Input) {
	if p.hostCwd == "" || !p.Starts || p.Decision.Action == policy.Deny {
		return
	}
	_, err := os.Lstat(p.hostCwd)
	p.hostCwdMade = os.IsNotExist(err)
	if err := regular.CreateOwn(p.hostCwd); err != nil {
		p.hostCwdMade = false
		p.Warnings = append(p.Warnings, p.hostCwd+" is not granted: "+err.Error())
		return
	}
	in.Policy.Write = append(in.Policy.Write, sandbox.PathRule{Path: p.hostCwd, Rule: "directory for the host"})
}

// Unregistered says what is missing where nothing in the current directory may be written
// because there is no workspace, and what to do; both are "" if there is one.
func (p *Plan) Unregistered() (why, fix string) {
	switch {
	case p.NoWorkspace == "":
		return "", ""
	case place.CanRegister(p.Cwd, p.Dirs, p.Machine.UID) != "":
		return "there is no workspace here: " + p.NoWorkspace, "go to a directory of your project, or use $TMPDIR"
	}
	return "there is no workspace here: " + p.NoWorkspace, "have it registered: `atip workspace add .` on a terminal in this directory; or use $TMPDIR"
}

// refusal is what the wording of the decision rests on.
func (p *Plan) refusal() *advice.Refusal {
	return &advice.Refusal{Decision: p.Decision.Decision, Steps: p.Steps, Workspace: p.Workspace, Home: p.Dirs.Home, Moves: len(p.movers()) > 0}
}

// OwnPath is a path of our own command line. This program opens it with the rights of the
// user, outside of any sandbox, so it is judged like a redirection of the call.
type OwnPath struct {
	Name   string // of the flag or argument: "--status-file"
	Value  string
	Access atip.Access
}

// ownStep is what this program itself does for a call: it reads and writes paths.
func (p *Plan) ownStep(words []string, paths []OwnPath) *step.Step {
	resources := make([]atip.Resource, len(paths))
	for i, path := range paths {
		resources[i] = atip.Resource{Kind: "path", Value: path.Value, Access: path.Access, Why: path.Name}
	}
	return p.site().OwnStep(words, resources)
}

// judgeOwn judges what our own flags read and write. The stricter judgement counts, for the
// whole call; nothing of it is granted to the command.
func (p *judging) judgeOwn(req policy.Request) {
	if len(p.Invocation.Paths) == 0 {
		return
	}
	words := []string{"atip-exec"}
	for _, path := range p.Invocation.Paths {
		words = append(words, path.Name, path.Value)
	}
	own := p.ownStep(words, p.Invocation.Paths)
	for _, r := range own.Call.Resources {
		p.ownFiles = append(p.ownFiles, r.Abs)
	}
	p.OwnJudged = true
	if p.Inside() {
		return // the sandbox around this program holds it to what the parent run was granted
	}
	req.Steps, req.Edges, req.Ceiling = []policy.Step{own.Step}, nil, nil
	req.Enforce = policy.Enforce{Files: true, Net: true, Secrets: true} // it does this and nothing else
	d := p.Policies.Decide(req)
	p.OwnRefused = d.Action != policy.Allow
	if d.Action >= p.Decision.Action {
		return
	}
	p.Decision.Action, p.Decision.Grants = d.Action, policy.Grants{}
	for _, r := range d.Reasons {
		if r.Action == d.Action {
			r.Text, r.Step = quote.Words(words[1:])+": "+r.Text, 0
			p.Decision.Reasons = append(p.Decision.Reasons, r)
		}
	}
}

// JudgeVerb judges what a verb is about to do with the paths it was given, as a command would
// be judged that did it.
func JudgeVerb(m caller.Machine, words []string, paths []OwnPath, effects ...atip.Effect) error {
	p := New(Invocation{Argv: words}, m)
	defer p.Close()
	if err := stages(p.settle, p.probe); err != nil {
		return err
	}
	if p.Inside() {
		return nil // as in judgeOwn
	}
	s := p.ownStep(words, paths)
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") {
			s.Call.Path = append(s.Call.Path, w)
		}
	}
	for _, e := range effects {
		s.Call.Effects[e].Value = atip.Yes
	}
	d := p.Policies.Decide(policy.Request{Steps: []policy.Step{s.Step}, Enforce: policy.Enforce{Files: true, Net: true, Secrets: true}, Agent: p.Agent(), CI: p.InCI(), Workspace: p.Workspace, Cwd: p.Cwd, Now: p.Began})
	if d.Action == policy.Allow {
		return nil
	}
	var why, rules []string
	for _, r := range d.Reasons {
		if r.Action == d.Action && !slices.Contains(rules, r.Rule) {
			rules = append(rules, r.Rule)
			_, text, ok := strings.Cut(r.Text, ": ")
			if !ok {
				text = r.Text
			}
			why = append(why, text)
		}
	}
	code, what := errcode.ApprovalRequired, "approval required: "
	if d.Action == policy.Deny {
		code, what = errcode.Denied, "denied: "
	}
	return fault.New(code, what+advice.Sentence(quote.Words(words), strings.Join(why, "; "))+" ("+strings.Join(rules, ", ")+")").With("decision", d.Action).With("rules", rules).
		WithFix("name paths of the workspace, or type it on your own terminal", "")
}

// StatusClass says why no status may be written at a path where no policy was asked, "" if one
// may: where runs write anyway, and in place of an older status.
func (at Place) StatusClass(file string) string {
	if at.World.Cwd == "" {
		return "it is not known where it lies"
	}
	real := place.Resolve(file)
	switch at.World.Classify(real, atip.AccessWrite, false) {
	case atip.ClassTmp, atip.ClassWorkspace, atip.ClassWorkspaceTracked, atip.ClassWorkspaceRegenerable:
		return ""
	case atip.ClassOutside:
		if status.Older(real) {
			return ""
		}
		return "no policy was asked about it"
	}
	return "it is a place that no command may write"
}

// PathOf is the value of a flag as it was judged.
func (p *Plan) PathOf(value string) string {
	for _, path := range p.Invocation.Paths {
		if path.Value == value || filepath.Base(path.Value) == filepath.Base(value) && path.Name == "--stdin" {
			return path.Value
		}
	}
	return value
}

// JudgedOwn reports whether the judgement was about the file of this name. f.Fd of a deleted
// file has another name, which is refused too.
func (p *Plan) JudgedOwn(name string) bool {
	return slices.Contains(p.ownFiles, name)
}

// workspaceSecrets are the files of secrets in the workspace, for the sandbox and the output filter.
// The same search finds the files that mark a package, which may lie anywhere in a repository.
func (at Place) workspaceSecrets() (secrets []string, packages map[string]bool) {
	packages = map[string]bool{}
	for _, f := range place.PackageFamilies() {
		for _, name := range f.Files {
			packages[name] = false
		}
	}
	secrets = place.FindSecrets(at.Workspace, at.Cwd, func(path string) bool {
		name := filepath.Base(path)
		if _, marks := packages[name]; marks {
			packages[name] = true
		}
		return at.World.Classify(path, atip.AccessRead, false) == atip.ClassSecret
	})
	return secrets, packages
}

// hiddenSecrets are those of them that the run must not find. Code of the project keeps them,
// as it is what they are for, and so does a call that names one and may read it. Git
// needs the files that it tracks, and any that it is to add.
func (p *Plan) hiddenSecrets(mode sandbox.EnvFiles, networked bool) []string {
	if mode == sandbox.EnvFilesAllow {
		return nil
	}
	project, git, changes := false, false, false
	for _, s := range p.Steps {
		project = project || s.RunsCode == policy.CodeProject
		if s.Call.Tool == "git" {
			git, changes = true, changes || s.Call.Effects[atip.Write].Value != atip.No
		}
	}
	if mode == sandbox.EnvFilesNetwork && !networked && (project || changes) {
		return nil
	}
	var out []string
	for _, path := range p.SecretFiles {
		if p.namesSecret(path) || git && (changes || p.World.Tracked(path)) {
			continue
		}
		out = append(out, path)
	}
	return out
}

// namesSecret reports whether a step names the file itself, so that it was judged, or removes a
// directory above it, where a cover would stay in the way.
func (p *Plan) namesSecret(path string) bool {
	return slices.ContainsFunc(p.Steps, func(s *step.Step) bool {
		return slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
			if r.Kind != "path" || r.Abs == "" {
				return false
			}
			return filepath.Clean(r.Abs) == path || r.Access&atip.AccessDelete != 0 && subpath.Within(path, filepath.Clean(r.Abs))
		})
	})
}
