package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/gitrepo"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
)

// Rights is what follows from a run that reaches other machines or holds a credential: it
// executes only files that no confined run can write, with the settings that were judged.
type Rights struct {
	held     bool              // a host beyond loopback, or a credential
	closed   *sandbox.Closed   // what may be started; nil for a run that runs code, which was asked about
	path     string            // PATH of the children
	account  *gitrepo.Config   // the account's settings of git
	Settings *gitrepo.Settings // of the one repository of the run; nil if there is none, or more
	Scratch  string            // where the copy of them is made
	urls     []string          // where its remotes lead, and what the words name; nil if that is not known
	Hooks    []string          // that the repository has, and that do not run
	modes    bool              // git is going to set the mode of a file
	refs     *gitrepo.Refs     // what git sees of the references instead of the repository's own; nil for those
}

// startsWritten reports a step whose words name a file to execute that a run can have written.
func (p *Plan) startsWritten(s *step.Step) bool {
	return slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
		return r.Kind == "path" && r.Access&atip.AccessExec != 0 && r.Abs != "" && p.site().Written(r.Abs)
	})
}

// entitled reports whether the tools of a run get the credentials that their metadata names.
// All steps share one sandbox, so that one which runs code of the project would read them,
// too: then a rule must grant secretRead to each such step, or a person must be asked about
// a command that talks to its service and be shown what it gets.
func (p *Plan) entitled() bool {
	if len(p.Own) > 0 {
		return false // those that need one are runs of their own
	}
	for i, s := range p.Steps {
		if !s.Foreign() && !p.startsWritten(s) {
			continue
		}
		granted := i < len(p.Decision.Steps) && p.Decision.Steps[i].Grants.Has(atip.SecretRead)
		asked := p.Decision.Action == policy.Confirm && s.Call.Effects[atip.Network].Value == atip.Yes
		if !granted && !asked {
			return false
		}
	}
	return true
}

// holds says what follows from what was granted. net is that of the run, files the credential
// files it gets.
func (p *confining) holds(net sandbox.NetMode, files []string) {
	p.Rights = Rights{}
	x := &p.Rights
	x.held = net == sandbox.NetAllowlist || net == sandbox.NetFull || slices.ContainsFunc(files, func(f string) bool { _, err := os.Lstat(f); return err == nil })
	if p.entitled() {
		for _, s := range p.Steps {
			for _, name := range s.Call.Secrets {
				x.held = x.held || s.Call.Provenance.Rank >= atip.Org && p.Machine.Getenv(name) != ""
			}
		}
	}
	if !x.held {
		x.closed = p.base()
		return
	}
	if _, err := p.gitAccount(); err != nil {
		// A file of the account that cannot be read is git's to complain of.
		x.account = &gitrepo.Config{}
	}
	x.path = p.unwrittenPath()
	p.judgedSettings()
	if !slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return s.Foreign() || s.Call.Provenance.Rank < atip.Org }) {
		x.closed = p.closed()
	}
}

// unwrittenPath is PATH without what a confined run can write: entries of the workspace and
// of the directories for temporary files, and relative ones.
func (p *Plan) unwrittenPath() string {
	var out []string
	for _, dir := range filepath.SplitList(p.Machine.Getenv("PATH")) {
		if filepath.IsAbs(dir) && !p.site().Written(dir) {
			out = append(out, dir)
		}
	}
	return strings.Join(out, string(filepath.ListSeparator))
}

// closed is what a run with rights and without foreign code may start: what the documents list, if
// each that starts something has a list and the account's own settings of git and ssh name nothing else.
func (p *confining) closed() *sandbox.Closed {
	out := &sandbox.Closed{Listed: true}
	for i, s := range p.Steps {
		out.Files = append(out.Files, p.listed(out, i)...)
		if slices.Contains(s.Call.Execs, "git") || s.Call.Tool == "git" {
			out.Files = append(out.Files, p.helpers(out)...)
		}
		if slices.Contains(s.Call.Execs, "ssh") || s.Call.Tool == "ssh" {
			out.Listed = out.Listed && !p.sshStarts()
		}
	}
	if !out.Listed {
		out.Files = nil
	}
	return out
}

// listed are the files that a step starts beside its own, as its document lists them. Without a list
// the ceiling knows none. The commands that a text or a launcher starts are steps themselves.
func (p *confining) listed(c *sandbox.Closed, i int) (files []string) {
	s := p.Steps[i]
	switch {
	case i == 0 && p.Invocation.IsShell && s.Call.Tool == ":" && step.IsShell(s.ID.Effective): // a text for this program starts a shell for it
	case s.Call.ExecsKnown:
		// A string often has several commands of one tool, whose list is looked up once.
		if !slices.ContainsFunc(p.Steps[:i], func(e *step.Step) bool {
			return !e.Own && e.Call.ExecsKnown && slices.Equal(e.Call.Execs, s.Call.Execs)
		}) {
			for _, name := range s.Call.Execs {
				files = append(files, p.startFiles(name)...)
			}
		}
	case s.Call.Effects[atip.Subprocess].Value != atip.No:
		c.Listed = false
	}
	switch f := p.Invocation.Fetching; {
	case f != nil && f.Work.Closed:
		// What it starts is stated, and what a manager starts in its place is known.
		if target, ok := s.ID.Target(); ok {
			files = append(files, filepath.Dir(target.Path))
		}
	case s.ID.Manager != "" || s.Executable != nil && fronted(s) || scripted(s):
		c.Listed = false
	}
	return files
}

// fronted reports a wrapper that starts the tool, so that the file says nothing about the tool itself: a
// script of a distribution, a compiled wrapper of Nix or Guix.
func fronted(s *step.Step) bool {
	return s.ID.Form != trust.FormELF || subpath.Within(s.ID.Canonical, "/nix") || subpath.Within(s.ID.Canonical, "/gnu")
}

// scripted reports a command that its tool keeps as a script in a directory of the list, as git does
// with `git submodule`. The helper of difftool and the merge of more than two sides are such, too.
func scripted(s *step.Step) bool {
	if len(s.Call.Path) == 0 {
		return false
	}
	return slices.ContainsFunc(s.Call.Execs, func(name string) bool {
		dir, ok := strings.CutSuffix(name, "/**")
		return ok && slices.ContainsFunc([]string{"", "--helper", "-octopus"}, func(part string) bool {
			return sandbox.Script(filepath.Join(dir, s.Call.Tool+"-"+s.Call.Path[0]+part))
		})
	})
}

// base is what a run without rights may start: nothing but its own commands and what their documents
// list, so that a command line that was misread starts nothing else. nil where that is not known:
// such a run may start whatever its files hold, and has no more rights with it.
func (p *confining) base() *sandbox.Closed {
	if p.Deferred || p.gatedAlone() || p.Invocation.Fetching != nil || slices.ContainsFunc(p.Steps, func(s *step.Step) bool {
		return !s.Own && (s.Foreign() || s.Certainty() == "opaque" || s.Call.Provenance.Rank < atip.Org || p.startsWritten(s))
	}) {
		return nil
	}
	out := &sandbox.Closed{Listed: true}
	for i, s := range p.Steps {
		if s.Own {
			continue // its stand-in is this program
		}
		known := p.leaves
		if s.Call.Tool == "git" {
			known = p.gitAlone
		}
		if !known(s) {
			return nil
		}
		if out.Files = append(out.Files, p.listed(out, i)...); !out.Listed {
			return nil
		}
	}
	return out
}

// leaves reports that what a document lists starts nothing further but of its own list.
func (p *confining) leaves(s *step.Step) bool {
	return !slices.ContainsFunc(s.Call.Execs, func(name string) bool {
		if name == s.Call.Tool || strings.HasSuffix(name, "/**") || len(p.startFiles(name)) == 0 {
			return false
		}
		name = filepath.Base(name)
		found, err := p.memo.Lookup(shims.Query{Effective: name, Invoked: name, Believed: true}, p.shimDirs)
		if err != nil {
			return true
		}
		call := found.Resolve([]string{name}, atip.ResolveOptions{})
		return call.Effects[atip.Subprocess].Value != atip.No && (!call.ExecsKnown || len(call.Execs) > 0)
	})
}

// gitAlone reports a git command that starts nothing but git's own programs: no pager, no reader of
// manuals, no program that the account names, and no other side in a repository of this machine, which
// git starts through a shell.
func (p *confining) gitAlone(s *step.Step) bool {
	switch {
	case slices.Contains(s.Argv, "--help"), len(s.Call.Nested) > 0: // an editor, --exec: through a shell
		return false
	case s.Call.Effects[atip.Subprocess].Value == atip.No:
		return true
	case p.Invocation.Terminal || isTerminal(p.Machine.Stdin) || s.Call.Effects[atip.Network].Value != atip.No,
		len(s.Call.Path) > 0 && s.Call.Path[0] == "help",
		slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool { return strings.HasPrefix(r.Why, "remote ") }):
		return false
	}
	account, err := p.gitAccount()
	return err == nil && !gitrepo.StartsLocally(account)
}

// gitAccount are the account's settings of git, read once.
func (p *confining) gitAccount() (*gitrepo.Config, error) {
	if p.Rights.account == nil {
		account, err := gitrepo.Account(p.Dirs.Home, filepath.Dir(p.Dirs.Config))
		if err != nil {
			return nil, err
		}
		p.Rights.account = account
	}
	return p.Rights.account, nil
}

// gitReads grants what git reads because the account says so, wherever a command may start it.
func (p *confining) gitReads(in *sandbox.Input) {
	if used, _ := p.git(); !used && p.Subprocess() == atip.No {
		return
	}
	if account, err := p.gitAccount(); err == nil {
		files, hooks := account.Reads()
		if in.ToolPaths = append(in.ToolPaths, files...); hooks != "" {
			in.PathDirs = append(in.PathDirs, hooks)
		}
	}
}

// helpers are what git starts by itself because the account says so, and the shell through
// which it does. A helper that is a script starts what only the account knows.
func (p *confining) helpers(c *sandbox.Closed) []string {
	programs, known := gitrepo.Starts(p.Rights.account, p.Rights.urls)
	c.Listed = c.Listed && known
	var out []string
	for _, name := range programs {
		path := name
		if !filepath.IsAbs(name) {
			path = p.findIn(name)
		}
		info, err := os.Stat(path)
		if path == "" || err != nil || !info.Mode().IsRegular() {
			continue // among git's own programs, or not there
		}
		c.Listed = c.Listed && !sandbox.Script(path)
		out = append(out, path)
	}
	if len(programs) > 0 {
		out = append(out, p.startFiles("sh")...)
	}
	return out
}

// findIn is the first executable file of that name on the PATH of the children.
func (p *confining) findIn(name string) string {
	if p.Rights.path == "" {
		p.Rights.path = p.unwrittenPath()
	}
	for _, dir := range filepath.SplitList(p.Rights.path) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// startFiles are the files of one entry of x-atip-execs, with what the kernel and env(1) open
// to start them.
func (p *confining) startFiles(entry string) []string {
	if dir, ok := strings.CutSuffix(entry, "/**"); ok {
		return []string{dir}
	}
	if !filepath.IsAbs(entry) {
		if entry = p.findIn(entry); entry == "" {
			return nil
		}
	}
	out := []string{entry}
	if name := sandbox.EnvTarget(entry); name != "" {
		if path := p.findIn(name); path != "" {
			out = append(out, path)
		}
	}
	return out
}

// sshStarts reports that the account's configuration of ssh makes it start programs.
func (p *Plan) sshStarts() bool {
	return p.site().SshSetting(func(words []string) bool {
		switch strings.ToLower(words[0]) {
		case "proxycommand", "proxyjump", "localcommand", "knownhostscommand", "pkcs11provider", "securitykeyprovider", "xauthlocation":
			return true
		case "match":
			return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, "exec") || strings.EqualFold(w, "!exec") })
		}
		return false
	})
}

// judgedSettings finds the one repository that the git of this run uses, and holds its settings
// as a value.
func (p *confining) judgedSettings() {
	var one *gitrepo.Repository
	approved := false
	for _, s := range p.Steps {
		git := s.Call.Tool == "git"
		switch {
		case !git && s.Foreign():
			return // it may use git anywhere
		case !git && s.Call.Effects[atip.Network].Value != atip.Yes:
			continue
		case slices.ContainsFunc(s.Call.Path, func(word string) bool {
			return slices.Contains([]string{"clone", "fork", "create", "init", "submodule", "worktree"}, word)
		}):
			return // another repository comes into being
		case !git && !slices.Contains(s.Call.Execs, "git"):
			if s.Call.Effects[atip.Subprocess].Value != atip.No {
				return
			}
			continue
		}
		r, named, err := repositoryOf(s)
		if err != nil {
			continue // git finds none, or the step is known to run code
		}
		if named || one != nil && one.Dir != r.Dir {
			return
		}
		one, approved = &r, approved || s.Foreign()
	}
	if one == nil {
		return
	}
	c, err := one.Config(p.Dirs.Home)
	if err != nil {
		return // judged to run code, and asked about
	}
	// The account may say where the hooks of all its repositories are.
	if read, err := one.Config(p.Dirs.Home, gitrepo.UserSources(p.Dirs.Home, "")...); err == nil {
		p.Rights.Hooks = slices.DeleteFunc(one.LiveHooks(read), func(name string) bool { return !p.meets(name) })
	}
	all := &gitrepo.Config{Settings: append(slices.Clone(p.Rights.account.Settings), c.Settings...)}
	for _, name := range all.Remotes() {
		r, _ := all.Remote(name)
		p.Rights.urls = append(append(p.Rights.urls, r.Fetch...), r.Push...)
	}
	for _, s := range p.Steps {
		p.Rights.urls = append(p.Rights.urls, s.Argv...)
	}
	settings, err := one.Settings(c, func(s gitrepo.Setting) bool { return approved || gitrepo.Inert(s.Key, s.Value) })
	if err != nil {
		return
	}
	if p.frozen(*one) {
		if refs, err := one.Refs(); err == nil && refs.Named() {
			settings, p.Rights.refs = settings.Frozen(refs), refs
			p.Rights.modes = all.Bool("push.autosetupremote") || len(all.All("core.sharedrepository")) > 0 || slices.ContainsFunc(p.Steps, func(s *step.Step) bool { return hasFlag(s, "--set-upstream", "-u") })
		}
	}
	p.Rights.Settings = &settings
	cache, err := filepath.EvalSymlinks(filepath.Dir(p.Dirs.Cache))
	if err != nil {
		cache = filepath.Dir(p.Dirs.Cache)
	}
	p.Rights.Scratch = filepath.Join(cache, filepath.Base(p.Dirs.Cache), "git", p.Run)
}

// meets reports whether the steps of this run would make git start a hook of that name.
func (p *Plan) meets(hook string) bool {
	for _, s := range p.Steps {
		switch {
		case pushes(s):
			if hook == "pre-push" || hook == "reference-transaction" {
				return true
			}
		case s.Call.Tool == "git" && len(s.Call.Path) == 1 && s.Call.Path[0] == "fetch":
			if hook == "reference-transaction" || hook == "pre-auto-gc" {
				return true
			}
		case s.Call.Tool == "git" && s.Call.Effects[atip.Write].Value == atip.No, s.Call.Effects[atip.Subprocess].Value == atip.No:
		default:
			return true
		}
	}
	return false
}

// quiet puts into an environment what keeps git from running the programs of a repository.
func (p *Plan) quiet(set map[string]string) {
	x := p.Rights
	if !x.held {
		return
	}
	if x.closed != nil {
		set["PATH"] = x.path
	}
	if p.Machine.Getenv("XDG_CONFIG_HOME") != "" {
		set["XDG_CONFIG_HOME"] = filepath.Dir(p.Dirs.Config) // git reads settings there
	}
	addGitConfig(set, gitrepo.Quiet(x.account))
	set["GIT_TERMINAL_PROMPT"] = "0"
	if x.Settings != nil {
		for _, kv := range x.Settings.Variables(x.Scratch) {
			set[kv[0]] = kv[1]
		}
	}
}

// addGitConfig adds settings to those that the variables of an environment hold already. A
// later one wins.
func addGitConfig(set map[string]string, config [][2]string) {
	n, _ := strconv.Atoi(set["GIT_CONFIG_COUNT"])
	for _, kv := range config {
		set[fmt.Sprintf("GIT_CONFIG_KEY_%d", n)], set[fmt.Sprintf("GIT_CONFIG_VALUE_%d", n)] = kv[0], kv[1]
		n++
	}
	set["GIT_CONFIG_COUNT"] = strconv.Itoa(n)
}

// narrowing are the settings of git that a caller may set by variables: each takes something
// away. A caller that has turned hooks off means it.
func narrowing(key, value string) bool {
	key = strings.ToLower(key)
	section, _, name := gitrepo.Split(key)
	switch {
	case key == "core.hookspath":
		return value == "/dev/null" || value == ""
	case key == "core.fsmonitor", key == "submodule.recurse", key == "fetch.recursesubmodules", key == "core.symlinks", key == "gc.auto", key == "maintenance.auto":
		return value == "false" || value == "0" || value == "no"
	case section == "protocol" && name == "allow":
		return value == "never"
	case key == "credential.helper":
		return value == ""
	case strings.HasSuffix(key, ".fsckobjects"):
		return value == "true"
	}
	return false
}

// callersGitConfig are the settings of the caller's variables that narrow.
func (p *Plan) callersGitConfig() [][2]string {
	n, err := strconv.Atoi(p.Machine.Getenv("GIT_CONFIG_COUNT"))
	if err != nil || n > 64 {
		return nil
	}
	var out [][2]string
	for i := range n {
		key, value := p.Machine.Getenv(fmt.Sprintf("GIT_CONFIG_KEY_%d", i)), p.Machine.Getenv(fmt.Sprintf("GIT_CONFIG_VALUE_%d", i))
		if narrowing(key, value) {
			out = append(out, [2]string{key, value})
		}
	}
	return out
}

// strictDelete reports a ceiling that lists write and not delete: the sandbox then
// withholds the right to remove, which it otherwise grants together with write.
func (p *Plan) strictDelete() bool {
	c := p.Invocation.Ceiling
	return c != nil && c.Effects.Has(atip.Write) && !c.Effects.Has(atip.Delete)
}

// belowCeiling takes from the profile what the ceiling of the script does not list,
// whoever granted it: the decision has already withheld the effects, and this holds for
// paths and sockets that a policy or the metadata of a tool adds.
func (p *confining) belowCeiling() {
	c := p.Invocation.Ceiling
	if c == nil {
		return
	}
	if !c.Effects.Has(atip.Network) {
		p.Profile.Unix = nil
	}
	if paths := p.ceilingPaths(); paths != nil {
		p.writeWithin(paths)
		p.Profile.HostWrite = len(paths) > 0 && p.Profile.HostWrite
	}
}

// ceilingPaths lists where the ceiling lets the run write, nil for wherever it was granted.
func (p *Plan) ceilingPaths() []string {
	c := p.Invocation.Ceiling
	if !c.Effects.Has(atip.Write) && !c.Effects.Has(atip.Delete) {
		return []string{}
	}
	if c.Paths == nil {
		return nil
	}
	paths := make([]string, len(c.Paths))
	for i, path := range c.Paths {
		paths[i] = filepath.Clean(subpath.Join(p.Cwd, path))
	}
	return paths
}

// mayStart refuses a script that starts programs under a ceiling without subprocess: the
// kernel would refuse the first of them with an error that says nothing about the reason.
func (p *judging) mayStart() error {
	c := p.Invocation.Ceiling
	if c == nil {
		return nil
	}
	if p.Host.ABI == 0 || p.Policies.Sandbox().Confine == "none" {
		return fault.New(errcode.GuaranteeMissing, "the ceiling of the script cannot be enforced: nothing confines commands here")
	}
	if c.Effects.Has(atip.Subprocess) {
		return nil
	}
	why, main := "", p.Steps[0]
	for _, s := range p.Steps[1:] {
		// A builtin of the shell has no file.
		if why == "" && (s.Missing != nil || s.ID.Canonical != "" && s.ID.Canonical != main.ID.Canonical) {
			why = "it starts " + quote.Words(s.Argv[:1])
		}
	}
	switch {
	case why != "":
	case p.Steps[0].Missing == nil && p.Steps[0].ID.Form != trust.FormELF:
		why = p.Steps[0].ID.Invoked + " is itself a script, which starts other programs"
	default:
		return nil
	}
	return fault.New(errcode.Denied, "the ceiling of the script permits no subprocess effect, but "+why).WithFix("add subprocess to the effects of the script", "# @effects subprocess").With("rules", []string{"flag/ceiling.subprocess"})
}

// judgeDoubt reads a text that would be allowed once more, with every variable that is
// not set standing for anything. Nothing is what it holds, and so it was read; but who
// wrote `$CMD` or `rm -rf "$DIR/build"` took it to hold something, and a start-up
// file or a later assignment in a file that was not read may give it that. The stricter
// judgement counts.
func (p *judging) judgeDoubt(req policy.Request) {
	if !p.Reading.Unset || p.Decision.Action != policy.Allow {
		return
	}
	steps, edges, err := p.Reading.Doubted()
	if err != nil {
		return // what runs was read; only the doubt was not
	}
	req.Steps, req.Edges = nil, edges
	if len(p.Own) > 0 {
		for _, s := range steps {
			req.Steps = append(req.Steps, s.Step)
		}
		flows := p.Policies.Flows(req)
		if steps = p.standIns(steps); flows != policy.Allow {
			p.Decision.Action, p.Decision.Grants = flows, policy.Grants{}
			return
		}
		req = p.apartOf(req, steps)
		req.Steps = nil
	}
	for _, s := range steps {
		switch {
		case p.Deferred && s.Known != nil:
			s.RedirectedAs(s.Known)
			s = s.Known
		case p.fetched(s):
			s.RedirectedAs(s.Apart)
			s = s.Apart
		}
		req.Steps = append(req.Steps, s.Step)
	}
	d := p.judged(req)
	if d.Action >= p.Decision.Action {
		return
	}
	p.Decision.Action, p.Decision.Grants = d.Action, policy.Grants{}
	for _, r := range d.Reasons {
		if r.Action != d.Action {
			continue
		}
		if r.Step < len(steps) {
			r.Text += " (" + quote.Words(steps[r.Step].Argv) + ", where a variable is not set)"
		}
		r.Step = 0
		p.Decision.Reasons = append(p.Decision.Reasons, r)
	}
}

// judgeHidden denies a run whose scripts hold what is denied.
func (p *judging) judgeHidden(req policy.Request) {
	if len(p.Reading.Hidden.Steps) == 0 || p.Decision.Action == policy.Deny {
		return
	}
	req.Steps, req.Edges = nil, p.Reading.Hidden.Edges
	for _, s := range p.Reading.Hidden.Steps {
		req.Steps = append(req.Steps, s.Step)
	}
	d := p.Policies.Decide(req)
	if d.Action != policy.Deny {
		return
	}
	p.Decision.Action, p.Decision.Grants = policy.Deny, policy.Grants{}
	for _, r := range d.Reasons {
		if r.Action == policy.Deny {
			at := r.Step
			r.Step = 0
			r.Text = "in a script it runs: " + r.Text
			if at < len(p.Reading.Hidden.Steps) {
				p.Reading.Hidden.Owners[at].ShowEffects(p.Reading.Hidden.Steps[at : at+1])
				r.Text += " (" + quote.Words(p.Reading.Hidden.Steps[at].Argv) + ")"
			}
			p.Decision.Reasons = append(p.Decision.Reasons, r)
		}
	}
}

// Subprocess is what the metadata of all steps says about starting other programs.
func (p *Plan) Subprocess() atip.Value {
	if c := p.Invocation.Ceiling; c != nil && !c.Effects.Has(atip.Subprocess) {
		return atip.No // mayStart refuses what could not run so
	}
	if len(p.Steps) > 1 {
		// Several commands in one line need a process each.
		return atip.Yes
	}
	value := atip.No
	for _, s := range p.Steps {
		if fronted(s) {
			// What metadata says of a tool holds for its program.
			return atip.Yes
		}
		value = worse(value, s.Call.Effects[atip.Subprocess].Value)
	}
	return value
}
