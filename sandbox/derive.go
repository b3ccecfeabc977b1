package sandbox

import (
	"path/filepath"
	"strconv"

	"github.com/atip-dev/atip-exec/atip"
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
	Unreadable bool // state and runtime files are not to be read either
	Program    bool // our programs may lie in a workspace: there they are protected names
}

// Input is all that Derive looks at.
type Input struct {
	Workspace, Cwd, Home, TmpDir string
	WorkspaceNamed               string   // file:line if policy names the workspace
	PathDirs                     []string // PATH
	OtherWorktrees               []string // the .git of other work trees, which are there by name only
	GitDirs                      []string // writable git directories outside the workspace (worktrees)
	Private                      string   // W: the directory for TMPDIR and caches of this workspace
	Layers                       string   // beside it, for what is written over caches of the host; "" for no such layers
	Granted                      atip.Set
	Subprocess                   atip.Value
	OrgBound                     bool // every executable is bound to metadata of rank org or better
	Resources                    []atip.Resource
	ToolPaths                    []string // filesystem.paths of the metadata, believed
	Exec                         []string // the identified files of the chain, canonical
	CredentialFiles              []string // readable because the tool declares them or policy says so
	SecretLinks                  []string // names in the workspace of credential files outside of it
	Secrets                      []string // files and directories that the policy calls secret
	EnvFiles                     EnvFiles // files of secrets in the workspace
	Families                     []string // cache families in use: go npm pip cargo maven
	CargoSettings                []string // files of the user's cargo home that hold settings and no credential
	Net                          Net
	Forbidden                    []Forbidden
	ProtectAllow                 []string // protected names that the call was approved to change
	Policy                       PolicyProfile
	Root                         bool // the run has uid 0
	Outer                        bool // this is inside a private root, which says so in a file
	Getenv                       func(string) string
	Files                        Files
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
		Confine: in.Policy.Confine, Net: in.Net, Private: in.Private, Layers: in.Layers, SubprocessNo: in.Subprocess == atip.No,
		Limits: in.Policy.Limits, Need: in.Policy.Require, Accept: in.Policy.Accept, Forced: in.Policy.Tier,
		Caps: in.Policy.Caps, KeepLeftovers: in.Policy.KeepLeftovers, Tmp: in.Policy.Tmp,
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
}

// rights withholds EXECUTE from all but the identified files if the run may start
// nothing else.
func (d *deriver) rights(r Rights) Rights {
	if d.p.SubprocessNo {
		r &^= Exec
	}
	return r
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
	d.set.add(Grant{Path: canonical, Dir: dir, Rights: r, Why: why})
}

// refuse records a path that is asked for and not granted.
func (d *deriver) refuse(path, why string) {
	d.p.Absent = append(d.p.Absent, Absent{Path: path, Why: why})
}

func (d *deriver) unreadable(path string) bool {
	for _, f := range d.in.Forbidden {
		if f.Unreadable && (within(path, f.Path) || within(f.Path, path)) {
			return true
		}
	}
	return false
}

// unwritable returns why path must not be written: it is, lies below or contains
// what no run may change.
func (d *deriver) unwritable(path string) (Forbidden, bool) {
	for _, f := range d.in.Forbidden {
		if within(path, f.Path) || within(f.Path, path) && !f.Program {
			return f, true
		}
		if f.Program && within(f.Path, path) && !within(path, d.p.Workspace) {
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
	case within(d.in.Home, dir):
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
		default:
			path, why = canonical, d.tooWide(canonical)
		}
		if why != "" && d.in.WorkspaceNamed != "" {
			return &ForbiddenError{Path: path, Pos: d.in.WorkspaceNamed, Why: why}
		}
	}
	if path == "" || why != "" {
		d.optional(d.in.Cwd, List, "cwd")
		return nil
	}
	d.p.Workspace = path
	r := Read | d.rights(Exec)
	if d.in.Granted.Has(atip.Write) {
		r |= d.writing()
		d.hosts = true
	}
	d.set.add(Grant{Path: path, Dir: true, Rights: r, Why: "workspace"})
	for _, f := range d.in.Forbidden {
		if f.Program && within(f.Path, path) {
			d.p.Protect = append(d.p.Protect, f.Path)
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
		d.optional(path, Read|Exec, "executable")
		if d.p.SubprocessNo {
			for _, loader := range d.in.Files.Loader(path) {
				d.optional(loader, Read|Exec, "loader")
			}
		}
	}
	for _, dir := range d.in.PathDirs {
		d.pathEntry(dir)
	}
	if d.in.Net.Mode == NetFull {
		d.optional("/etc/resolv.conf", Read, "network")
	}
}

// pathEntry grants an entry of PATH and, where it is the bin directory of an own
// prefix, the prefix: a toolchain needs its lib beside its bin.
func (d *deriver) pathEntry(dir string) {
	if !filepath.IsAbs(dir) {
		return
	}
	dir = filepath.Clean(dir)
	if within(dir, "/usr") || within(dir, d.p.Workspace) || sharedTemporary(dir) {
		return
	}
	grant := dir
	if prefix := filepath.Dir(dir); filepath.Base(dir) == "bin" && !d.privatePrefix(prefix) {
		grant = prefix
	}
	if within(d.in.Home, grant) {
		return
	}
	d.optional(grant, d.rights(Read|Exec), "PATH")
}

func (d *deriver) privatePrefix(prefix string) bool {
	if prefix == "/" || within(d.in.Home, prefix) || sharedTemporary(prefix) {
		return true
	}
	switch prefix {
	case d.in.Home + "/.local", d.in.Home + "/.config":
		return true
	}
	for _, s := range homeSecrets() {
		if s = d.in.Home + "/" + s; within(s, prefix) || within(prefix, s) {
			return true
		}
	}
	return false
}

func (d *deriver) home() {
	if d.in.Home == "" || d.in.Home == "/" {
		return
	}
	d.p.Home = d.in.Home
	for _, name := range homeRead() {
		d.optional(d.in.Home+"/"+name, Read, "default")
	}
	d.optional(d.in.Home+"/.local/lib", d.rights(Read|Exec), "default")
	// What the programs in ~/.cargo/bin are is a question to rustup, which asks these.
	d.optional(d.in.Home+"/.rustup/toolchains", d.rights(Read|Exec), "default")
	d.optional(d.in.Home+"/.rustup/settings.toml", Read, "default")
}

// private grants the directory of this workspace for temporary files and caches.
// The start creates it.
func (d *deriver) private() {
	if d.in.Private == "" {
		return
	}
	path := filepath.Clean(d.in.Private)
	if canonical, dir, err := d.in.Files.Resolve(path); err == nil && dir {
		path = canonical
	}
	d.p.Private = path
	d.set.add(Grant{Path: path, Dir: true, Rights: d.rights(Exec) | Read | Write | Remove, Why: "private"})
	d.env("TMPDIR", path+"/tmp")
	d.env("XDG_CACHE_HOME", path+"/xdg")
	if d.p.Tmp == TmpHost {
		d.env("TMPDIR", "/tmp")
		for _, shared := range [...]string{"/tmp", "/var/tmp"} {
			d.optional(shared, d.rights(Exec)|Read|Write|Remove, "policy sandbox.tmp")
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
	url := "http://127.0.0.1:" + strconv.Itoa(ProxyPort)
	for _, name := range [...]string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		d.env(name, url)
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
	grants := d.set.compact()
	if len(grants) > maxGrants {
		return Profile{}, &TooLargeError{What: "path grants", Count: len(grants), Max: maxGrants}
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
	d.p.PlainRead = d.in.OrgBound && !d.hosts && d.p.Net.Mode == NetNone && d.p.Confine == ConfineKernel
	d.p.HostWrite = d.hosts
	d.protect()
	d.masks()
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
