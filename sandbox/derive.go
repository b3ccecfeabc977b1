package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// Files is the file system as Derive sees it.
type Files interface {
	// Resolve returns the path free of symbolic links and whether it is a directory.
	Resolve(path string) (canonical string, dir bool, err error)
	// Loader returns the programs that the kernel itself opens to run the file: the
	// ELF loader, or the interpreter of a script and its loader.
	Loader(path string) []string
}

// PathRule is a path that a policy grants, with where it says so.
type PathRule struct {
	Path string
	Pos  string // file:line
	Rule string
}

// PolicyProfile is the merged "sandbox" object of the policy.
type PolicyProfile struct {
	Read, Write, Exec, Sockets, Devices []PathRule
	Protected                           []string // beyond the built-in protected names
	ProtectCI                           bool     // what a CI service runs is protected, too
	Tier                                Tier     // T0: chosen by need
	Require, Accept                     []Guarantee
	Confine                             Confine
	DeleteStrict                        bool
	Caps                                []string
	KeepLeftovers                       bool
	Tmp                                 Tmp
	Limits                              Limits
}

// Forbidden is a directory that no run may write: configuration, data, state, our
// programs.
type Forbidden struct {
	Path, Why  string
	Unreadable bool   // state and runtime files are not to be read either
	Except     string // a directory below it that belongs to this run, "" for none
	Shared     bool   // each workspace has a part of it, which its runs write
	Program    bool   // our programs may lie in a workspace: there they are protected names
}

// Input is all that Derive looks at.
type Input struct {
	Workspace, Cwd, Home string
	WorkspaceNamed       string   // file:line if policy names the workspace
	PathDirs             []string // PATH
	Named                []string // directories of programs, which no run can write, that a command line names
	TmpFiles             []string // files of /tmp that every run here may read, as there is no private root
	OtherWorktrees       []string // the .git of other work trees, which are there by name only
	GitDirs              []string // writable git directories outside the workspace (worktrees)
	Private              string   // W: the directory for TMPDIR and caches of this workspace
	Layers               string   // beside it, for what is written over caches of the host; "" for no such layers
	// Mirrored reports a path below /tmp or /var/tmp of which the private /tmp has, or will
	// have, the only copy that a run sees; nil where runs have no private root.
	Mirrored        func(path string) bool
	Granted         atip.Set
	Subprocess      atip.Value
	Untraced        bool // no process of the run may trace another one
	OrgBound        bool // every executable is bound to metadata of rank org or better
	Resources       []atip.Resource
	Patterns        []string // directories in which a shell looks up the words of the call
	ToolPaths       []string // filesystem.paths of the metadata, believed
	Exec            []string // the identified files of the chain, canonical
	Closed          *Closed  // what may be started at most; nil for no such bound
	Scratch         []string // directories made for this run, which it may write
	Changes         []string // Profile.Loose, as the call names them
	Rewrites        bool     // git writes settings there, whose mode it sets
	Repositories    []string // among Resources: where writing means to replace files, as git does
	CredentialFiles []string // readable because the tool declares them or policy says so
	SecretLinks     []string // names in the workspace of credential files outside of it
	Secrets         []string // files and directories that the policy calls secret
	Hidden          []string // files of secrets in the workspace that this run must not read
	Families        []string // cache families in use: go npm pip cargo maven
	CargoSettings   []string // files of the user's cargo home that hold settings and no credential
	Elsewhere       bool     // the child starts outside of Cwd, where no directory above has settings
	Net             Net
	Forbidden       []Forbidden
	Names           Names
	ProtectAllow    []string // protected names that the policy, or an approval of this call, lets it change
	Policy          PolicyProfile
	Root            bool // the run has uid 0
	Outer           bool // this is inside a private root, which says so in a file
	Getenv          func(string) string
	Files           Files
	// Judge says why a path without links is nothing that a variable of the caller may open to
	// a run, "" if it may: it holds or lies in a place of credentials, of files that run by
	// themselves, of the system or of this program. nil: everything may, but no directory beside
	// a "bin" on PATH.
	Judge func(canonical string, dir bool) string
	// Keeps reports a directory in or below which credentials or files of this program lie, so
	// that a call which names it gets the names in it and no file. nil: none does.
	Keeps func(canonical string) bool
}

// Closed is the ceiling of a run that starts no file that a confined run could have written: of
// one that holds a host or a credential, and of one whose commands are all known and run no code.
type Closed struct {
	// Files are all that may be started beside Input.Exec: files, and directories for what
	// lies below them. Only if Listed.
	Files []string
	// Listed says that the documents list what their tools start. Otherwise programs of the
	// system and of the directories on PATH may be started.
	Listed bool
}

// Derive computes the profile of a run from what was granted. All it does to the
// file system is resolve paths, through in.Files.
func Derive(in Input) (Profile, error) {
	if in.Files == nil {
		in.Files = HostFiles()
	}
	if in.Getenv == nil {
		in.Getenv = func(string) string { return "" }
	}
	d := deriver{in: in, p: Profile{
		Confine: in.Policy.Confine, Net: in.Net, Private: in.Private, Layers: in.Layers, SubprocessNo: in.Subprocess == atip.No, Untraced: in.Untraced,
		Limits: in.Policy.Limits, Need: in.Policy.Require, Accept: in.Policy.Accept, Forced: in.Policy.Tier,
		Loose: in.Changes, Caps: in.Policy.Caps, KeepLeftovers: in.Policy.KeepLeftovers, Tmp: in.Policy.Tmp,
	}}
	if err := d.workspace(); err != nil {
		return Profile{}, err
	}
	d.system()
	d.home()
	d.private()
	d.proxied()
	d.caches()
	d.resources()
	d.closed()
	if err := d.policy(); err != nil {
		return Profile{}, err
	}
	return d.finish()
}

// deriver collects the grants of one run.
type deriver struct {
	in    Input
	p     Profile
	set   grantSet
	hosts bool // some path beyond the private directory may be written
	// programs says that ours lie in the workspace.
	programs bool
}

// rights withholds EXECUTE from all but the identified files if the run may start
// nothing else.
func (d *deriver) rights(r Rights) Rights {
	if d.p.SubprocessNo || d.in.Closed != nil && d.in.Closed.Listed {
		r &^= Exec
	}
	return r
}

// code is rights for where runs write: what lies there is not started by one that holds a
// host or a credential.
func (d *deriver) code(r Rights) Rights {
	if d.in.Closed != nil {
		r &^= Exec
	}
	return d.rights(r)
}

// closed grants what a closed run may start beside its own commands, with what the kernel
// opens for it.
func (d *deriver) closed() {
	d.hosts = d.hosts || d.in.Rewrites && len(d.in.Scratch) > 0
	for _, path := range d.in.Scratch {
		d.p.Scratch = append(d.p.Scratch, path)
		d.set.add(Grant{Path: path, Dir: true, Rights: Read | Write | Remove, Why: "settings of git"})
	}
	if d.in.Closed == nil || !d.in.Closed.Listed || d.p.SubprocessNo {
		return
	}
	for _, path := range d.in.Closed.Files {
		d.optional(path, Read|Exec, "x-atip-execs")
		for _, loader := range d.in.Files.Loader(path) {
			d.optional(loader, Read|Exec, "loader")
		}
	}
}

// unwritten takes EXECUTE from all that this run can write, in whatever way it was granted.
// Rules of Landlock add up, so a directory that holds a writable one is granted entry by entry.
func (d *deriver) unwritten(grants []Grant) []Grant {
	if d.in.Closed == nil {
		return grants
	}
	var writable []string
	for _, g := range grants {
		if g.Rights&(Write|Remove) != 0 && !subpath.Within(g.Path, "/dev") && !subpath.Within(g.Path, "/proc") {
			writable = append(writable, g.Path)
		}
	}
	out := make([]Grant, 0, len(grants))
	for _, g := range grants {
		if g.Rights&Exec == 0 {
			out = append(out, g)
			continue
		}
		parts := []string{g.Path}
		for _, w := range writable {
			if subpath.Within(g.Path, w) {
				parts = nil
			}
		}
		if parts != nil && g.Dir {
			parts = beside(parts, writable)
		}
		if len(parts) == 1 && parts[0] == g.Path {
			out = append(out, g)
			continue
		}
		why, dir := g.Why, g.Dir
		g.Rights &^= Exec
		out = append(out, g)
		for _, path := range parts {
			if canonical, isDir, err := d.in.Files.Resolve(path); err == nil && dir && canonical == path {
				out = append(out, Grant{Path: path, Dir: isDir, Rights: Read | Exec, Why: why})
			}
		}
	}
	return out
}

// beside replaces each directory that holds one of others by its entries, except for those.
func beside(dirs, others []string) []string {
	var out []string
	for len(dirs) > 0 {
		dir := dirs[0]
		dirs = dirs[1:]
		holds, is := false, false
		for _, w := range others {
			is = is || w == dir
			holds = holds || w != dir && subpath.Within(w, dir)
		}
		switch {
		case is:
		case !holds:
			out = append(out, dir)
		default:
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) > maxGrants {
				continue // nothing below it is started
			}
			for _, e := range entries {
				if e.Type()&os.ModeSymlink == 0 {
					dirs = append(dirs, filepath.Join(dir, e.Name()))
				}
			}
		}
	}
	return out
}

// optional grants a path if it is there.
func (d *deriver) optional(path string, r Rights, why string) {
	if path == "" {
		return
	}
	canonical, dir, err := d.in.Files.Resolve(path)
	if err != nil || r != List && d.unreadable(canonical) {
		return
	}
	if stray := d.stray(path, canonical, dir, why); stray != "" {
		d.refuse(canonical, why+" leads to "+stray)
		return
	}
	d.set.add(Grant{Path: canonical, Dir: dir, Rights: r, Why: why})
}

// chosen are the reasons of grants whose path a variable of the caller gave.
var chosen = [...]string{"PATH", "cache", "cargo"}

// stray is the one gate of all grants that the call itself does not name: a path that the
// caller's environment gave, or a usual one that is a link, must not lead where credentials,
// startup files, the system's or our own files are.
func (d *deriver) stray(path, canonical string, dir bool, why string) string {
	if d.in.Judge == nil {
		return ""
	}
	if slices.Contains(chosen[:], why) {
		return d.in.Judge(canonical, dir)
	}
	if canonical == path {
		return ""
	}
	bad := d.in.Judge(canonical, dir)
	if bad != "" && bad == d.in.Judge(filepath.Clean(path), dir) {
		return "" // of the kind that was meant
	}
	for _, top := range systemRead() {
		if subpath.Within(canonical, top) {
			return "" // readable by its own name: /bin is /usr/bin
		}
	}
	return bad
}

// refuse records a path that is asked for and not granted.
func (d *deriver) refuse(path, why string) {
	d.p.Absent = append(d.p.Absent, Absent{Path: path, Why: why})
}

func (d *deriver) unreadable(path string) bool {
	return slices.ContainsFunc(d.in.Forbidden, func(f Forbidden) bool {
		return f.Unreadable && (subpath.Within(path, f.Path) || subpath.Within(f.Path, path))
	})
}

// unwritable returns why path must not be written: it is, lies below or contains
// what no run may change.
func (d *deriver) unwritable(path string) (Forbidden, bool) {
	for _, f := range d.in.Forbidden {
		if f.Shared && d.p.Private != "" && subpath.Within(path, d.p.Private) {
			continue // this run's own part
		}
		if f.Except != "" && subpath.Within(path, f.Except) {
			continue
		}
		if subpath.Within(path, f.Path) || subpath.Within(f.Path, path) && !f.Program {
			return f, true
		}
		if f.Program && subpath.Within(f.Path, path) && !subpath.Within(path, d.p.Workspace) {
			return f, true
		}
	}
	return Forbidden{}, false
}

// tooWide says why a directory must not be handed out only because of one name in it.
func (d *deriver) tooWide(dir string) string {
	switch {
	case dir == "/":
		return "it would open the whole file system"
	case subpath.Within(d.in.Home, dir):
		return "it would open the whole home directory"
	case sharedTemporary(dir):
		return "it would open all of " + dir + "; use $TMPDIR"
	}
	if f, bad := d.unwritable(dir); bad {
		return "it would open " + f.Path + " (" + f.Why + ")"
	}
	return ""
}

// workspace decides whether there is one; in a directory that is too wide to be one,
// names can be listed and arguments still count.
func (d *deriver) workspace() error {
	why, path := "", d.in.Workspace
	if path != "" {
		canonical, dir, err := d.in.Files.Resolve(path)
		switch {
		case err != nil || !dir:
			why = "it is not a directory that can be opened"
		case canonical != filepath.Clean(path) && d.in.WorkspaceNamed == "":
			return &StepError{Step: "open workspace", Path: path, Code: errcode.PathChanged, Err: errors.New("it leads elsewhere now")}
		default:
			d.p.Workspace = canonical // our programs in it are protected names, no reason against it
			path, why = canonical, d.tooWide(canonical)
		}
		if why != "" && d.in.WorkspaceNamed != "" {
			return &ForbiddenError{Path: path, Pos: d.in.WorkspaceNamed, Why: why}
		}
	}
	if path == "" || why != "" {
		d.p.Workspace = ""
		d.p.Temporary = d.in.Mirrored != nil && d.temporary(d.in.Cwd)
		d.optional(d.in.Cwd, List, "cwd")
		return nil
	}
	r := Read | d.code(Exec)
	if d.in.Granted.Has(atip.Write) {
		r |= d.writing()
		d.hosts = true
	}
	d.set.add(Grant{Path: path, Dir: true, Rights: r, Why: "workspace"})
	for _, f := range d.in.Forbidden {
		if f.Program && subpath.Within(f.Path, path) {
			d.p.Protect = append(d.p.Protect, f.Path)
			d.programs = true
		}
	}
	for _, path := range d.in.OtherWorktrees {
		if canonical, dir, err := d.in.Files.Resolve(path); err == nil && !dir {
			d.set.add(Grant{Path: canonical, Rights: List, Why: "git work tree"})
		}
	}
	for _, g := range d.in.GitDirs {
		canonical, dir, err := d.in.Files.Resolve(g)
		if err != nil || !dir {
			d.refuse(g, "git directory cannot be opened")
		} else if why := d.tooWide(canonical); why != "" {
			d.refuse(canonical, why)
		} else {
			d.set.add(Grant{Path: canonical, Dir: true, Rights: r, Why: "git"})
			d.p.GitDirs = append(d.p.GitDirs, canonical)
		}
	}
	return nil
}

// writing is what a granted write means: replacing a file by a temporary one needs
// REMOVE, so without delete:"strict" a missing grant of delete is not enforced.
func (d *deriver) writing() Rights {
	if d.in.Policy.DeleteStrict && !d.in.Granted.Has(atip.Delete) {
		return Write
	}
	return Write | Remove
}

func (d *deriver) system() {
	for _, path := range systemRead() {
		d.optional(path, d.rights(Read|Exec), "default")
	}
	for _, path := range systemData() {
		d.optional(path, Read, "default")
	}
	if d.in.Outer {
		d.optional(outerDir, Read, "outer")
	}
	if d.in.Root {
		d.optional(settings, List, "default")
		for _, name := range rootEtc() {
			d.optional(settings+"/"+name, d.rights(Read|Exec), "default")
		}
	} else {
		d.optional(settings, d.rights(Read|Exec), "default")
	}
	for _, path := range deviceNodes() {
		d.optional(path, Read|Write|Ioctl, "default")
	}
	for _, path := range d.in.Exec {
		if d.in.Mirrored != nil && d.temporary(path) && d.rewritten(path) && d.in.Mirrored(path) {
			continue
		}
		d.optional(path, Read|Exec, "executable")
		if d.rights(Exec) == 0 {
			for _, loader := range d.in.Files.Loader(path) {
				d.optional(loader, Read|Exec, "loader")
			}
		}
	}
	for _, dir := range d.in.PathDirs {
		d.pathEntry(dir, true)
	}
	for _, dir := range d.in.Named {
		d.pathEntry(dir, d.installed(dir))
	}
	if d.in.Net.Mode == NetFull {
		d.optional("/etc/resolv.conf", Read, "network")
	}
}

// installed reports whether a directory of programs is one of an installation: beside it lie libraries,
// or what a version manager installs.
func (d *deriver) installed(dir string) bool {
	has := func(name string) bool {
		_, dir, err := d.in.Files.Resolve(filepath.Dir(dir) + "/" + name)
		return err == nil && dir
	}
	return slices.ContainsFunc([]string{"lib", "lib64", "libexec", "pkg", "installs"}, has)
}

// pathEntry grants an entry of PATH and, if whole and it is the bin directory of an own
// prefix or the shims of a version manager, the prefix: a toolchain needs its lib beside its bin.
func (d *deriver) pathEntry(dir string, whole bool) {
	if !filepath.IsAbs(dir) {
		return
	}
	dir = filepath.Clean(dir)
	if subpath.Within(dir, "/usr") || subpath.Within(dir, d.p.Workspace) || sharedTemporary(dir) {
		return
	}
	for _, top := range systemRead() {
		if subpath.Within(d.canonical(dir), top) {
			return // there already
		}
	}
	grant := dir
	if prefix := filepath.Dir(dir); whole && (filepath.Base(dir) == "bin" || filepath.Base(dir) == "shims") && !d.privatePrefix(prefix) {
		if canonical := d.canonical(prefix); canonical == "" || d.stray(prefix, canonical, true, "PATH") == "" {
			grant = prefix
		}
	}
	if subpath.Within(d.in.Home, grant) {
		return
	}
	d.optional(grant, d.rights(Read|Exec), "PATH")
}

func (d *deriver) privatePrefix(prefix string) bool {
	if prefix == "/" || subpath.Within(d.in.Home, prefix) || sharedTemporary(prefix) {
		return true
	}
	switch prefix {
	case d.in.Home + "/.local", d.in.Home + "/.config":
		return true
	}
	return d.in.Judge == nil || d.in.Judge(prefix, true) != ""
}

func (d *deriver) home() {
	if d.in.Home == "" || d.in.Home == "/" {
		return
	}
	d.p.Home = d.in.Home
	for _, name := range homeRead() {
		d.optional(d.in.Home+"/"+name, Read, "default")
	}
	for _, name := range homePrograms() {
		d.optional(d.in.Home+"/"+name, d.rights(Read|Exec), "default")
	}
	d.rustup(d.in.Home+"/.rustup", "default")
}

// rustup grants what the programs in ~/.cargo/bin ask to find out what they are. Since 1.28 they also
// make update-hashes where they do not see it, and end if they cannot.
func (d *deriver) rustup(home, why string) {
	d.optional(home+"/toolchains", d.rights(Read|Exec), why)
	d.optional(home+"/settings.toml", Read, why)
	d.optional(home+"/update-hashes", Read, why)
}

// WhyListed is why a run may read a file of the machine's /tmp that nobody named: it was there when
// the profile was made.
const WhyListed = "/tmp"

// private grants the directory of this workspace for temporary files and caches.
// The start creates it.
func (d *deriver) private() {
	if d.in.Private == "" {
		return
	}
	path := filepath.Clean(d.in.Private)
	for at := path; at != "/" && at != "."; at = filepath.Dir(at) { // what is missing the start makes
		if canonical, dir, err := d.in.Files.Resolve(at); err == nil && dir {
			path = canonical + strings.TrimPrefix(path, at)
			break
		}
	}
	d.p.Private = path
	d.set.add(Grant{Path: path, Dir: true, Rights: d.code(Exec) | Read | Write | Remove, Why: "private"})
	d.env("TMPDIR", path+"/tmp")
	d.env("XDG_CACHE_HOME", path+"/xdg")
	for _, path := range d.in.TmpFiles {
		d.optional(path, Read, WhyListed)
	}
	if d.p.Tmp == TmpHost {
		d.env("TMPDIR", "/tmp")
		for _, shared := range [...]string{"/tmp", "/var/tmp"} {
			d.optional(shared, d.code(Exec)|Read|Write|Remove, "policy sandbox.tmp")
		}
		d.hosts = true
	}
}

// proxied names the proxy to the programs of the run. It is one URL for all, because
// clients without a package for SOCKS end with an error when they are told of it.
func (d *deriver) proxied() {
	if d.p.Net.Mode != NetAllowlist {
		return
	}
	for _, name := range [...]string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		d.env(name, ProxyURL())
	}
	d.env("NO_PROXY", "localhost,127.0.0.1,::1")
	d.env("no_proxy", "localhost,127.0.0.1,::1")
	d.env("NODE_USE_ENV_PROXY", "1")
}

func (d *deriver) env(name, value string) {
	if d.p.Env == nil {
		d.p.Env = make(map[string]string, 8)
	}
	d.p.Env[name] = value
}

// finish orders the grants and refuses what is too large to enforce.
func (d *deriver) finish() (Profile, error) {
	plain := d.in.OrgBound && !d.hosts && d.p.Net.Mode == NetNone && d.p.Confine == ConfineKernel
	// In a private root a file is covered, which leaves its name where it is.
	if plain && d.p.Forced != T3 && !d.p.Temporary && !d.p.Layered && len(d.p.Need) == 0 || d.in.Mirrored == nil {
		whole := grantSet{list: slices.Clone(d.set.list)}
		d.leaveOut()
		if split := (&grantSet{list: slices.Clone(d.set.list)}).compact(); len(d.unwritten(split)) > maxGrants {
			d.set = whole // too many entries beside the others: the private root covers the files
		}
	}
	grants := d.unwritten(d.set.compact())
	switch {
	case d.p.SubprocessNo:
		d.p.Ceiling = ExecNone
	case d.in.Closed != nil:
		d.p.Ceiling = ExecClosed
	default:
		d.p.Ceiling = ExecOpen
	}
	if len(grants) > maxGrants {
		return Profile{}, &errcode.Error{Code: errcode.TooManyPaths, Msg: fmt.Sprintf("sandbox profile has %d path grants, at most %d can be enforced", len(grants), maxGrants),
			Details: map[string]any{"what": "path grants", "count": len(grants), "max": maxGrants}}
	}
	for _, g := range grants {
		switch {
		case g.Rights&(Write|Remove) != 0:
			d.p.Write = append(d.p.Write, g)
		case g.Rights&Exec != 0:
			d.p.Exec = append(d.p.Exec, g)
		default:
			d.p.Read = append(d.p.Read, g)
		}
	}
	d.p.PlainRead = plain
	d.p.HostWrite = d.hosts
	if err := d.protect(); err != nil {
		return Profile{}, err
	}
	d.masks()
	// Code that replaced our programs would judge the next command, before a comparison after the
	// run puts them back. So no policy can accept that, as it can for other protected names.
	if d.programs && d.p.workspaceWritable() {
		d.p.Need = append(slices.Clip(d.p.Need), WSProtect)
	}
	return d.p, nil
}

// maxGrants is the number of rules from which on a profile is refused; each costs
// the start about three microseconds.
const maxGrants = 128

// describe is the position of argument i as the reasons of grants name it.
func describe(r atip.Resource, i int) string {
	if r.Why != "" {
		return r.Why
	}
	return "resource " + strconv.Itoa(i)
}
