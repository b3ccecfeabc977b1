package sandbox

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// resources grants what the call itself names, each with exactly its access.
func (d *deriver) resources() {
	for _, path := range d.in.ToolPaths {
		d.optional(expand(path, d.in.Home, d.p.Workspace), Read, "metadata")
	}
	for _, path := range d.in.CredentialFiles {
		d.named(expand(path, d.in.Home, d.p.Workspace), Read, "credential")
	}
	for i, r := range d.in.Resources {
		if r.Kind == "path" && r.Abs != "" {
			d.resource(r, describe(r, i))
		}
	}
	for _, dir := range d.in.Patterns {
		if d.in.Mirrored != nil && d.temporary(dir) {
			d.p.Temporary = true
			continue
		}
		d.optional(dir, List, "pattern")
	}
}

func (d *deriver) resource(r atip.Resource, why string) {
	path := filepath.Clean(r.Abs)
	switch {
	case r.Class == atip.ClassPolicySelf:
		d.refuse(path, "it is part of the policy")
		return
	case r.Class == atip.ClassSecret && !d.in.Granted.Has(atip.SecretRead):
		d.refuse(path, "reading secrets is not granted")
		return
	}
	if d.in.Mirrored != nil && d.temporary(path) {
		d.p.Temporary = true
		if (r.Access&atip.AccessExec == 0 || d.rewritten(path)) && d.in.Mirrored(path) {
			return // the private /tmp is granted as it is
		}
	}
	var rights Rights
	if r.Access&(atip.AccessRead|atip.AccessSecret) != 0 {
		rights |= Read
	}
	if r.Access&atip.AccessExec != 0 {
		rights |= Read | Exec
	}
	if rights != 0 && (r.Class == atip.ClassSecret || !d.listed(path, why)) {
		d.named(path, rights, why)
	}
	if r.Class == atip.ClassRoot {
		if r.Access&(atip.AccessWrite|atip.AccessDelete) != 0 {
			d.refuse(path, "a root of the file system is never granted for writing")
		}
		return
	}
	if r.Access&atip.AccessWrite != 0 && d.in.Granted.Has(atip.Write) {
		d.written(path, r.Class, why)
	}
	if r.Access&atip.AccessDelete != 0 && d.in.Granted.Has(atip.Delete) {
		d.removed(path, r.Recursive, why)
	}
}

// listed grants the names in a directory that must not be read as a whole: rules of Landlock
// hold for all that lies below. It returns false for any other path.
func (d *deriver) listed(path, why string) bool {
	canonical, dir, err := d.in.Files.Resolve(path)
	if err != nil || !dir {
		return false
	}
	keeps := d.in.Keeps != nil && d.in.Keeps(canonical)
	for _, f := range d.in.Forbidden {
		if f.Unreadable && subpath.Within(canonical, f.Path) {
			return false
		}
		keeps = keeps || f.Unreadable && subpath.Within(f.Path, canonical)
	}
	if keeps {
		d.set.add(Grant{Path: canonical, Dir: true, Rights: List, Why: why})
	}
	return keeps
}

// temporary reports a path in the shared temporary directories that leads to nothing else
// that the run has.
func (d *deriver) temporary(path string) bool {
	if !subpath.Within(path, "/tmp") && !subpath.Within(path, "/var/tmp") {
		return false
	}
	return !slices.ContainsFunc(append([]string{d.p.Workspace, d.in.Home, d.in.Private}, d.in.GitDirs...), func(other string) bool {
		return other != "" && subpath.Within(path, other)
	})
}

// rewritten reports a path that the run itself writes before it starts what is there. The file of the machine would
// stand in the way of that, read-only.
func (d *deriver) rewritten(path string) bool {
	return d.in.Granted.Has(atip.Write) && slices.ContainsFunc(d.in.Resources, func(r atip.Resource) bool {
		return r.Kind == "path" && r.Access&atip.AccessWrite != 0 && r.Abs != "" && subpath.Within(path, filepath.Clean(r.Abs))
	})
}

// named grants a path that somebody named, or says why not.
func (d *deriver) named(path string, r Rights, why string) {
	if path == "" {
		return
	}
	canonical, dir, err := d.in.Files.Resolve(path)
	if err != nil {
		d.refuse(path, err.Error())
		return
	}
	if d.unreadable(canonical) {
		d.refuse(canonical, "state of this program is not readable")
		return
	}
	d.set.add(Grant{Path: canonical, Dir: dir, Rights: r, Why: why})
}

// written grants a file or directory for writing. For a file that is not there yet
// the kernel needs the right on the directory that will hold it.
func (d *deriver) written(path string, class atip.Class, why string) {
	canonical, dir, err := d.in.Files.Resolve(path)
	rights := Read | Write
	if class == atip.ClassDevice {
		rights |= Ioctl
	}
	if slices.Contains(d.in.Repositories, path) {
		rights |= d.writing()
	}
	if err == nil {
		if f, bad := d.unwritable(canonical); bad {
			d.refuse(canonical, f.Why+" is never writable")
			return
		}
		if dir {
			if wide := d.tooWide(canonical); wide != "" {
				d.refuse(canonical, wide)
				return
			}
		}
		d.set.add(Grant{Path: canonical, Dir: dir, Rights: rights, Why: why})
		d.hosts = true
		return
	}
	parent, ok := d.existingParent(path)
	if !ok {
		d.refuse(path, err.Error())
		return
	}
	d.parent(path, parent, rights, why)
}

// removed grants removing path, which the kernel asks of the directory it is in. A name that the
// run makes first, or of which only the directory is known yet, is not there now.
func (d *deriver) removed(path string, recursive bool, why string) {
	canonical, dir, err := d.in.Files.Resolve(path)
	if err == nil && dir && recursive {
		if wide := d.tooWide(canonical); wide != "" {
			d.refuse(canonical, wide)
			return
		}
		d.set.add(Grant{Path: canonical, Dir: true, Rights: Read | Remove, Why: why})
		d.hosts = true
	}
	if parent, ok := d.existingParent(path); ok {
		d.parent(path, parent, Remove|List, why)
	} else if err != nil {
		d.refuse(path, err.Error())
	}
}

func (d *deriver) parent(path, parent string, r Rights, why string) {
	if subpath.Within(parent, d.p.Workspace) || subpath.Within(parent, d.p.Private) {
		d.set.add(Grant{Path: parent, Dir: true, Rights: r, Why: why})
		d.hosts = d.hosts || !subpath.Within(parent, d.p.Private)
		return
	}
	if wide := d.tooWide(parent); wide != "" {
		d.refuse(path, "its directory cannot be granted: "+wide)
		return
	}
	d.set.add(Grant{Path: parent, Dir: true, Rights: r, Why: why + " (its directory)"})
	d.hosts = true
}

// existingParent is the nearest directory above path that is there.
func (d *deriver) existingParent(path string) (string, bool) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if canonical, isDir, err := d.in.Files.Resolve(dir); err == nil {
			return canonical, isDir
		}
		if dir == "/" || dir == "." {
			return "", false
		}
	}
}

// policy adds what the policy grants by name. A path that is missing means that the
// run goes on with less; one that no run may write stops it.
func (d *deriver) policy() error {
	p := d.in.Policy
	for _, group := range [...]struct {
		rules  []PathRule
		rights Rights
	}{
		{p.Read, Read}, {p.Exec, Read | Exec}, {p.Write, Read | Write | Remove}, {p.Devices, Read | Write | Ioctl},
	} {
		for _, rule := range group.rules {
			if err := d.policyRule(rule, group.rights); err != nil {
				return err
			}
		}
	}
	for _, rule := range p.Sockets {
		canonical, dir, err := d.in.Files.Resolve(expand(rule.Path, d.in.Home, d.p.Workspace))
		switch {
		case err != nil:
			d.refusePolicy(rule, err.Error())
		case dir:
			d.refusePolicy(rule, "it is a directory, not a socket")
		case d.unreadable(canonical):
			return &ForbiddenError{Path: canonical, Pos: rule.Pos, Rule: rule.Rule, Why: "state of this program is not reachable"}
		default:
			d.p.Unix = append(d.p.Unix, canonical)
		}
	}
	return nil
}

func (d *deriver) policyRule(rule PathRule, rights Rights) error {
	path := expand(rule.Path, d.in.Home, d.p.Workspace)
	why := rule.Rule
	why = cmp.Or(why, rule.Pos)
	// Judged by name too: a forbidden directory that is not there yet could be made.
	for _, name := range []string{path, d.canonical(path)} {
		if name == "" {
			continue
		}
		if f, bad := d.unwritable(name); bad && rights&(Write|Remove) != 0 {
			return &ForbiddenError{Path: name, Pos: rule.Pos, Rule: rule.Rule, Why: f.Path + " (" + f.Why + ") is never writable"}
		}
		if rights&Write != 0 && (subpath.Within(d.in.Home, name) || sharedTemporary(name)) && rights&Ioctl == 0 {
			return &ForbiddenError{Path: name, Pos: rule.Pos, Rule: rule.Rule, Why: "it holds what other programs rely on; name a directory in it"}
		}
		if d.unreadable(name) {
			return &ForbiddenError{Path: name, Pos: rule.Pos, Rule: rule.Rule, Why: "state of this program is not readable"}
		}
	}
	canonical, dir, err := d.in.Files.Resolve(path)
	if err != nil {
		d.refusePolicy(rule, err.Error())
		return nil
	}
	d.set.add(Grant{Path: canonical, Dir: dir, Rights: rights, Why: why})
	if rights&(Write|Remove) != 0 {
		d.hosts = true
	}
	return nil
}

// refusePolicy records a path that a policy grants in vain. Its writer is told.
func (d *deriver) refusePolicy(rule PathRule, why string) {
	at := rule.Pos
	at = cmp.Or(at, rule.Rule)
	d.refuse(rule.Path, "policy "+at+": "+why)
}

func (d *deriver) canonical(path string) string {
	canonical, _, err := d.in.Files.Resolve(path)
	if err != nil {
		return ""
	}
	return canonical
}

// caches points the package managers in use at private caches. A shared cache that a
// run could write would let it poison all later runs.
func (d *deriver) caches() {
	if d.p.Private == "" {
		return
	}
	w := d.p.Private
	offline := d.p.Net.Mode == NetNone || d.p.Net.Mode == NetLoopback
	for _, family := range d.in.Families {
		switch family {
		case "go":
			d.env("GOCACHE", w+"/go-build")
			host := d.goModCache()
			if build := d.cacheDir("GOCACHE", "go-build"); build != "" {
				d.overlay("go-build", build, map[string]string{"GOCACHE": build})
			}
			layers := len(d.p.Overlays)
			d.overlay("gomod", host, map[string]string{"GOMODCACHE": host, "GOPROXY": d.in.Getenv("GOPROXY")})
			if offline {
				// It notes there what it found out about the commit at hand, and warns if it cannot.
				d.p.Layered = len(d.p.Overlays) > layers
				d.optional(host, Read, "cache")
				if _, dir, err := d.in.Files.Resolve(host); err != nil || !dir {
					d.env("GOMODCACHE", w+"/gomod") // where an earlier run with network left what it fetched
				}
				continue
			}
			d.env("GOMODCACHE", w+"/gomod")
			if host != "" {
				d.optional(host, Read, "cache")
				old := d.in.Getenv("GOPROXY")
				old = cmp.Or(old, "https://proxy.golang.org,direct")
				d.env("GOPROXY", "file://"+host+"/cache/download,"+old)
			}
		case "npm":
			d.env("npm_config_cache", w+"/npm")
			// It asks for a newer npm at the end of whatever it did, and tries for a minute.
			d.env("npm_config_update_notifier", "false")
			if offline {
				d.env("npm_config_fetch_retries", "0")
			}
			cache := d.in.Getenv("npm_config_cache")
			if cache == "" && d.in.Home != "" {
				cache = d.in.Home + "/.npm"
			}
			if cache != "" {
				d.overlay("npm", cache+"/_cacache", map[string]string{"npm_config_cache": cache,
					"npm_config_logs_dir": w + "/npm-logs"})
			}
		case "pip":
			d.env("PIP_CACHE_DIR", w+"/pip")
			d.env("UV_CACHE_DIR", w+"/uv")
			if offline {
				d.env("PIP_RETRIES", "0")
			}
			for _, c := range [...][2]string{{"PIP_CACHE_DIR", "pip"}, {"UV_CACHE_DIR", "uv"}} {
				if dir := d.cacheDir(c[0], c[1]); dir != "" {
					d.overlay(c[1], dir, map[string]string{c[0]: dir})
				}
			}
		case "cargo":
			d.cargo()
		case "maven":
			d.maven()
		case "pre-commit":
			// It keeps the programs of its hooks there, and a database that it opens to write.
			if dir := d.cacheDir("PRE_COMMIT_HOME", "pre-commit"); dir != "" {
				d.optional(dir, d.rights(Read|Exec), "cache")
				d.overlay("pre-commit", dir, map[string]string{"PRE_COMMIT_HOME": dir})
			}
		}
	}
}

// cargo has its caches beside settings, credentials and programs. So its home is one of the
// workspace, in which links lead to the host's caches where those are of use: in a private
// root, where a layer lies over them, and without network, where nothing can be fetched
// that would have to be written.
func (d *deriver) cargo() {
	own, linked := d.p.Private+"/cargo", d.p.Private+"/cargo-host"
	d.env("CARGO_HOME", own)
	host := d.in.Getenv("CARGO_HOME")
	if host == "" && d.in.Home != "" {
		host = d.in.Home + "/.cargo"
	}
	if rustup := d.in.Getenv("RUSTUP_HOME"); rustup != "" {
		d.rustup(rustup, "cache")
	}
	if host == "" {
		return
	}
	for _, name := range [...]string{"registry", "git"} {
		canonical, dir, err := d.in.Files.Resolve(host + "/" + name)
		if err != nil || !dir || d.tooWide(canonical) != "" || d.stray(host+"/"+name, canonical, dir, "cache") != "" {
			continue
		}
		d.optional(canonical, Read, "cache")
		d.p.Links = append(d.p.Links, link{Name: "cargo-host/" + name, Target: canonical})
		d.overlay("cargo-"+name, canonical, map[string]string{"CARGO_HOME": linked})
	}
	caches := len(d.p.Links) > 0
	// Settings that a run left there could name a program or a registry for one that fetches.
	settings := map[string]bool{}
	defer func() {
		for _, home := range [...]string{"cargo/", "cargo-host/"} {
			for _, name := range [...]string{"config", "config.toml", "credentials", "credentials.toml"} {
				if d.in.Elsewhere && !settings[name] {
					d.p.Links = append(d.p.Links, link{Name: home + name})
				}
			}
		}
	}()
	for _, path := range d.in.CargoSettings {
		canonical, dir, err := d.in.Files.Resolve(path)
		if err != nil || dir || d.stray(path, canonical, dir, "cargo") != "" {
			continue
		}
		d.optional(canonical, Read, "cargo")
		// Below the directory that holds a .cargo cargo finds them by itself, and would
		// count them twice.
		if d.in.Elsewhere || filepath.Base(host) != ".cargo" || !subpath.Within(d.p.Workspace, filepath.Dir(host)) {
			settings[filepath.Base(path)] = true
			for _, home := range [...]string{"cargo/", "cargo-host/"} {
				d.p.Links = append(d.p.Links, link{Name: home + filepath.Base(path), Target: canonical})
			}
		}
	}
	if caches && (d.p.Net.Mode == NetNone || d.p.Net.Mode == NetLoopback) {
		d.env("CARGO_HOME", linked)
	}
}

// maven has its repository beside settings with passwords, and no variable of its own for
// it. Without network the host's can be read; with it, a run has its own.
func (d *deriver) maven() {
	host := ""
	if d.in.Home != "" {
		host = d.in.Home + "/.m2/repository"
	}
	_, dir, err := d.in.Files.Resolve(host)
	options := d.in.Getenv("MAVEN_OPTS")
	d.optional(host, Read, "cache")
	d.overlay("maven", host, map[string]string{"MAVEN_OPTS": options})
	offline := d.p.Net.Mode == NetNone || d.p.Net.Mode == NetLoopback
	if own := d.p.Private + "/maven"; (err != nil || !dir || !offline) && !strings.ContainsAny(own, " \t") {
		d.env("MAVEN_OPTS", strings.TrimLeft(options+" -Dmaven.repo.local="+own, " "))
	}
}

// cacheDir is where a tool keeps the user's cache: as the variable says, or under its
// name in the cache directory.
func (d *deriver) cacheDir(variable, name string) string {
	if dir := d.in.Getenv(variable); dir != "" {
		return dir
	}
	if dir := d.in.Getenv("XDG_CACHE_HOME"); dir != "" {
		return dir + "/" + name
	}
	if d.in.Home == "" {
		return ""
	}
	return d.in.Home + "/.cache/" + name
}

// goModCache is where go keeps the user's modules.
func (d *deriver) goModCache() string {
	if dir := d.in.Getenv("GOMODCACHE"); dir != "" {
		return dir
	}
	if dir := d.in.Getenv("GOPATH"); dir != "" {
		return dir + "/pkg/mod"
	}
	if d.in.Home == "" {
		return ""
	}
	return d.in.Home + "/go/pkg/mod"
}

// expand makes a path of a policy or a document absolute.
func expand(path, home, base string) string {
	switch {
	case path == "~":
		path = home
	case strings.HasPrefix(path, "~/"):
		if home == "" {
			return ""
		}
		path = home + path[1:]
	}
	if path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		if base == "" {
			return ""
		}
		path = base + "/" + path
	}
	return filepath.Clean(path)
}

// covered reports whether have allows all that want asks for.
func covered(have, want Rights) bool {
	if have&Read != 0 {
		have |= List
	}
	return want&^have == 0
}

// systemRead is readable and executable for every run; it holds programs,
// libraries and world-readable settings.
func systemRead() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu", "/snap"}
}

// systemData is readable for every run. Of /sys only what runtimes size themselves by.
func systemData() []string {
	return []string{"/proc", "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm",
		"/var/lib/dpkg", "/var/lib/rpm", "/var/lib/pacman", "/var/lib/alternatives", "/var/lib/ca-certificates",
		"/var/cache/fontconfig", "/var/cache/man"}
}

// settings is the directory whose names a run of root may list and of which it may read
// what rootEtc has.
const settings = "/etc"

// rootEtc stands in for /etc where the run has uid 0. Root owns shadow, sudoers, host
// keys and TLS keys, and Landlock cannot subtract, so what programs look up is
// granted name by name; a policy adds others.
func rootEtc() []string {
	return []string{"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "passwd", "group", "nsswitch.conf",
		"hosts", "hostname", "host.conf", "gai.conf", "resolv.conf", "services", "protocols", "localtime", "timezone",
		"os-release", "lsb-release", "debian_version", "redhat-release", "alpine-release", "ssl/certs",
		"ssl/openssl.cnf", "ssl/cert.pem", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust", "crypto-policies", "ca-certificates", "gitconfig",
		"gitattributes", "profile", "profile.d", "bash.bashrc", "bashrc", "inputrc", "terminfo", "mime.types", "magic",
		"locale.alias", "locale.conf", "python3", "python3.9", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14",
		"python3.15", "python3.16", "perl", "fonts", "shells", "vim", "nanorc", "emacs", "manpath.config", "man_db.conf",
		"java", "java-8-openjdk", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "java-25-openjdk", "maven",
		"php", "ImageMagick-6", "ImageMagick-7", "dpkg/dpkg.cfg", "dpkg/dpkg.cfg.d", "dpkg/origins", "apt/apt.conf", "apt/apt.conf.d",
		"apt/sources.list", "apt/sources.list.d", "apt/preferences.d", "ssh/ssh_config", "ssh/ssh_config.d", "ssh/ssh_known_hosts",
		"postgresql-common", "subversion", "mercurial", "wgetrc", "screenrc", "tmux.conf", "papersize", "machine-id", "login.defs", "xml", "sgml"}
}

// deviceNodes are open to every run. Other terminals are not: they are the user's.
func deviceNodes() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"}
}

// homeRead is all of the home directory that every run may read.
func homeRead() []string {
	return []string{".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes",
		".config/go/env", "go/pkg/mod"}
}

// homePrograms are where installers of the home directory keep programs, and what these need, behind links in
// ~/.local/bin: tests, hooks and recipes start them by that name, and hooks by their path.
func homePrograms() []string {
	return []string{".local/lib", ".local/share/pipx/venvs", ".local/pipx/venvs", ".local/share/uv/tools", ".local/share/uv/python"}
}

// sharedTemporary are directories in which other programs of the same user keep
// files: a grant on the directory itself would hand out all of them.
func sharedTemporary(path string) bool {
	switch path {
	case "/tmp", "/var/tmp", "/dev/shm", "/run", "/dev":
		return true
	}
	return false
}
