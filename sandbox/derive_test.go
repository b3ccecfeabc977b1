package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// tree is a file system of names: a value ending in "/" is a directory, one starting
// with "/" a link, anything else a file.
type tree map[string]string

func (t tree) Resolve(path string) (string, bool, error) {
	path = filepath.Clean(path)
	for range 8 {
		changed := false
		for at := path; at != "/" && at != "."; at = filepath.Dir(at) {
			if to := t[at]; strings.HasPrefix(to, "/") && len(to) > 1 {
				path, changed = filepath.Clean(to+path[len(at):]), true
				break
			}
		}
		if !changed {
			break
		}
	}
	if path == "/" {
		return path, true, nil
	}
	kind, ok := t[path]
	if !ok {
		return "", false, fs.ErrNotExist
	}
	return path, kind == "/", nil
}

func (t tree) Loader(string) []string { return []string{"/lib64/ld.so"} }

func machine() tree {
	t := tree{"/bin": "/usr/bin", "/lib64": "/usr/lib64", "/usr/lib64/ld.so": "file"}
	for _, d := range []string{"/usr", "/usr/bin", "/usr/lib64", "/opt", "/etc", "/etc/ssl", "/etc/ssl/certs", "/proc", "/sys/fs/cgroup", "/dev",
		"/tmp", "/home", "/home/u", "/home/u/.ssh", "/home/u/.cargo", "/home/u/.cargo/bin", "/home/u/sdk", "/home/u/sdk/bin",
		"/home/u/p", "/home/u/p/sub", "/home/u/other", "/home/u/.local", "/home/u/.local/bin", "/home/u/.local/state",
		"/home/u/.local/state/atip-exec", "/home/u/.config", "/home/u/.config/agent-tools", "/home/u/go", "/home/u/go/pkg/mod",
		"/home/u/.cache/atip-exec/ws/x", "/srv", "/srv/data"} {
		t[d] = "/"
	}
	for _, f := range []string{"/dev/null", "/dev/tty", "/etc/passwd", "/home/u/.gitconfig", "/home/u/.ssh/id", "/home/u/p/file",
		"/home/u/other/file", "/tmp/there", "/usr/bin/tool", "/dev/sda", "/home/u/.local/state/atip-exec/key"} {
		t[f] = "file"
	}
	return t
}

// tableNames are the names that package place hands in.
func tableNames() Names {
	names := place.ProtectedNames()
	return Names{Tree: names.Tree, CI: names.CI, Git: names.Git, Secrets: place.SystemSecrets()}
}

func input() Input {
	return Input{Names: tableNames(), Workspace: "/home/u/p", Cwd: "/home/u/p/sub", Home: "/home/u", Private: "/home/u/.cache/atip-exec/ws/x",
		PathDirs: []string{"/usr/bin", "/home/u/sdk/bin", "/home/u/.local/bin", "/home/u/.cargo/bin", ".", "/missing/bin"},
		Granted:  atip.SetOf(atip.Write), Exec: []string{"/usr/bin/tool"}, Files: machine(),
		Forbidden: []Forbidden{{Path: "/home/u/.config/agent-tools", Why: "configuration"},
			{Path: "/home/u/.local/state/atip-exec", Why: "state", Unreadable: true}},
		Judge: func(canonical string, _ bool) string {
			if canonical == "/home/u/.cargo" {
				return "a place of credentials"
			}
			return ""
		},
	}
}

// rightsOn sums what the profile allows on path, as the kernel would.
func (p Profile) rightsOn(path string) Rights {
	var r Rights
	for _, l := range [][]Grant{p.Read, p.Exec, p.Write} {
		for _, g := range l {
			if g.Path == path || g.Dir && subpath.Within(path, g.Path) {
				r |= g.Rights
			}
		}
	}
	return r
}

func TestDeriveRights(t *testing.T) {
	resource := func(path string, a atip.Access, c atip.Class) func(*Input) {
		return func(in *Input) {
			in.Resources = []atip.Resource{{Kind: "path", Abs: path, Access: a, Class: c, Why: "argv[1]"}}
		}
	}
	both := func(fs ...func(*Input)) func(*Input) {
		return func(in *Input) {
			for _, f := range fs {
				f(in)
			}
		}
	}
	grant := func(e ...atip.Effect) func(*Input) {
		return func(in *Input) { in.Granted = atip.SetOf(e...) }
	}
	const all = Read | Write | Exec | Remove
	for _, tc := range []struct {
		name   string
		change func(*Input)
		path   string
		want   Rights
		absent bool
	}{
		{"workspace", nil, "/home/u/p/file", all, false},
		{"workspace without write", grant(), "/home/u/p/file", Read | Exec, false},
		{"workspace, delete strict", func(in *Input) { in.Policy.DeleteStrict = true }, "/home/u/p/file", Read | Write | Exec, false},
		{"system", nil, "/usr/bin/x", Read | Exec, false},
		{"system by link", nil, "/bin", 0, false},
		{"home is an allowlist", nil, "/home/u/other/file", 0, false},
		{"secret", nil, "/home/u/.ssh/id", 0, false},
		{"git configuration", nil, "/home/u/.gitconfig", Read, false},
		{"prefix of PATH", nil, "/home/u/sdk/lib", Read | Exec, false},
		{"bin of .local", nil, "/home/u/.local/bin/x", Read | Exec, false},
		{"no prefix of .local", nil, "/home/u/.local/state/atip-exec/key", 0, false},
		{"no prefix with credentials", nil, "/home/u/.cargo/credentials", 0, false},
		{"bin of it", nil, "/home/u/.cargo/bin/x", Read | Exec, false},
		{"private", grant(), "/home/u/.cache/atip-exec/ws/x/tmp/f", all, false},
		{"device", nil, "/dev/null", Read | Write | Ioctl, false},
		{"other device", nil, "/dev/sda", 0, false},
		{"no /tmp", nil, "/tmp/there", 0, false},
		{"read resource", resource("/home/u/other/file", atip.AccessRead, atip.ClassOutside), "/home/u/other/file", Read, false},
		{"written resource", resource("/home/u/other/file", atip.AccessWrite, atip.ClassOutside), "/home/u/other/file", Read | Write, false},
		{"write is not granted", both(resource("/home/u/other/file", atip.AccessWrite, atip.ClassOutside), grant()), "/home/u/other/file", 0, false},
		{"file to be created", resource("/home/u/other/new", atip.AccessWrite, atip.ClassOutside), "/home/u/other/new", Read | Write, false},
		{"created in home", resource("/home/u/new", atip.AccessWrite, atip.ClassOutside), "/home/u/new", 0, true},
		{"created in /tmp", resource("/tmp/new", atip.AccessWrite, atip.ClassTmp), "/tmp/new", 0, true},
		{"file in /tmp", resource("/tmp/there", atip.AccessWrite, atip.ClassTmp), "/tmp/there", Read | Write, false},
		{"removed", both(resource("/home/u/other/file", atip.AccessDelete, atip.ClassOutside), grant(atip.Delete)), "/home/u/other/file", Remove | List, false},
		{"removed, not there yet", both(resource("/home/u/other/made", atip.AccessDelete, atip.ClassOutside), grant(atip.Delete)), "/home/u/other/made", Remove | List, false},
		{"removed by some name in the workspace", both(resource("/home/u/p/….c", atip.AccessDelete, atip.ClassWorkspace), grant(atip.Delete)), "/home/u/p/sub/x.c", Read | Exec | Remove | List, false},
		{"removal not granted", resource("/home/u/other/file", atip.AccessDelete, atip.ClassOutside), "/home/u/other/file", 0, false},
		{"removed from home", both(resource("/home/u/other", atip.AccessDelete, atip.ClassOutside), grant(atip.Delete)), "/home/u/x", 0, true},
		{"policy file", resource("/home/u/.config/agent-tools/p", atip.AccessRead|atip.AccessWrite, atip.ClassPolicySelf), "/home/u/.config/agent-tools/p", 0, true},
		{"state", resource("/home/u/.local/state/atip-exec/key", atip.AccessRead, atip.ClassOutside), "/home/u/.local/state/atip-exec/key", 0, true},
		{"parent of state", resource("/home/u/.local", atip.AccessWrite, atip.ClassOutside), "/home/u/.local/x", 0, true},
		{"root of the file system", resource("/", atip.AccessWrite, atip.ClassRoot), "/srv", 0, true},
		{"secret not granted", resource("/home/u/.ssh/id", atip.AccessRead, atip.ClassSecret), "/home/u/.ssh/id", 0, true},
		{"secret granted", both(resource("/home/u/.ssh/id", atip.AccessRead, atip.ClassSecret), grant(atip.SecretRead)), "/home/u/.ssh/id", Read, false},
		{"credential file", func(in *Input) { in.CredentialFiles = []string{"~/.ssh/id"} }, "/home/u/.ssh/id", Read, false},
		{"only that one", func(in *Input) { in.CredentialFiles = []string{"~/.ssh/id"} }, "/home/u/.ssh/other", 0, false},
		{"missing resource", resource("/nowhere/x", atip.AccessRead, atip.ClassOutside), "/nowhere/x", 0, true},
		{"policy read", func(in *Input) { in.Policy.Read = []PathRule{{Path: "/srv/data"}} }, "/srv/data/x", Read, false},
		{"policy write", func(in *Input) { in.Policy.Write = []PathRule{{Path: "/srv/data"}} }, "/srv/data/x", Read | Write | Remove, false},
		{"policy path missing", func(in *Input) { in.Policy.Write = []PathRule{{Path: "/srv/none"}} }, "/srv/none", 0, true},
		{"policy device", func(in *Input) { in.Policy.Devices = []PathRule{{Path: "/dev/sda"}} }, "/dev/sda", Read | Write | Ioctl, false},
		{"root: no /etc/shadow", func(in *Input) { in.Root = true }, "/etc/shadow", List, false},
		{"root: passwd", func(in *Input) { in.Root = true }, "/etc/passwd", Read | Exec | List, false},
		{"user: /etc", nil, "/etc/passwd", Read | Exec, false},
		{"subprocess no: system", func(in *Input) { in.Subprocess = atip.No }, "/usr/bin/x", Read, false},
		{"subprocess no: itself", func(in *Input) { in.Subprocess = atip.No }, "/usr/bin/tool", Read | Exec, false},
		{"subprocess no: loader", func(in *Input) { in.Subprocess = atip.No }, "/usr/lib64/ld.so", Read | Exec, false},
		{"subprocess no: workspace", func(in *Input) { in.Subprocess = atip.No }, "/home/u/p/file", Read | Write | Remove, false},
		{"home is no workspace", func(in *Input) { in.Workspace, in.Cwd = "/home/u", "/home/u" }, "/home/u/other/file", List, false},
		{"/tmp is no workspace", func(in *Input) { in.Workspace, in.Cwd = "/tmp", "/tmp" }, "/tmp/there", List, false},
		{"git directory", func(in *Input) { in.GitDirs = []string{"/srv/data"} }, "/srv/data/x", all, false},
		{"cache of modules", func(in *Input) { in.Families = []string{"go"} }, "/home/u/go/pkg/mod/x", Read, false},
	} {
		in := input()
		if tc.change != nil {
			tc.change(&in)
		}
		p, err := Derive(in)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		if got := p.rightsOn(tc.path); got != tc.want {
			t.Errorf("%s: %s on %s, want %s", tc.name, got, tc.path, tc.want)
		}
		if tc.absent != (len(p.Absent) > 0) {
			t.Errorf("%s: absent %v", tc.name, p.Absent)
		}
	}
}

func TestDeriveForbidden(t *testing.T) {
	for name, rule := range map[string]string{"home": "~", "state": "~/.local/state/atip-exec", "parent": "/home/u/.local",
		"below": "/home/u/.config/agent-tools/policy.json", "all": "/", "tmp": "/tmp"} {
		in := input()
		in.Policy.Write = []PathRule{{Path: rule, Pos: "policy.json:4"}}
		_, err := Derive(in)
		var f *ForbiddenError
		if !errors.As(err, &f) || f.FaultCode() != "E4103" || !strings.HasPrefix(err.Error(), "policy.json:4: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := input()
	in.Workspace, in.WorkspaceNamed = "/home/u", "policy.json:9"
	var f *ForbiddenError
	if _, err := Derive(in); !errors.As(err, &f) || f.Pos != "policy.json:9" {
		t.Errorf("named workspace: %v", err)
	}
	in = input()
	in.Policy.Read = []PathRule{{Path: "~/.local", Pos: "p:1"}}
	if _, err := Derive(in); !errors.As(err, &f) {
		t.Errorf("readable state: %v", err)
	}
	in = input()
	files := machine()
	for i := range maxGrants + 1 {
		path := "/srv/data" + strings.Repeat("x", i+1)
		files[path] = "/"
		in.Policy.Read = append(in.Policy.Read, PathRule{Path: path})
	}
	in.Files = files
	var large *errcode.Error
	if _, err := Derive(in); !errors.As(err, &large) || large.FaultCode() != "E4104" {
		t.Errorf("many rules: %v", err)
	}
}

func TestDerivePlainRead(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Input)
		want   bool
	}{
		"known, reads":     {func(in *Input) { in.Granted, in.OrgBound = 0, true }, true},
		"unknown":          {func(in *Input) { in.Granted = 0 }, false},
		"writes":           {func(in *Input) { in.OrgBound = true }, false},
		"network":          {func(in *Input) { in.Granted, in.OrgBound, in.Net.Mode = 0, true, NetFull }, false},
		"writes by rule":   {func(in *Input) { in.Granted, in.OrgBound, in.Policy.Write = 0, true, []PathRule{{Path: "/srv/data"}} }, false},
		"not confined":     {func(in *Input) { in.Granted, in.OrgBound, in.Policy.Confine = 0, true, ConfineNone }, false},
		"loopback network": {func(in *Input) { in.Granted, in.OrgBound, in.Net.Mode = 0, true, NetLoopback }, false},
	} {
		in := input()
		tc.change(&in)
		if p, err := Derive(in); err != nil || p.PlainRead != tc.want {
			t.Errorf("%s: %v %v", name, p.PlainRead, err)
		}
	}
}

func TestDeriveEnvironment(t *testing.T) {
	in := input()
	in.Families = []string{"go", "npm", "pip"}
	p, err := Derive(in)
	if err != nil {
		t.Fatal(err)
	}
	w := p.Private
	for name, want := range map[string]string{"TMPDIR": w + "/tmp", "XDG_CACHE_HOME": w + "/xdg", "GOCACHE": w + "/go-build",
		"GOMODCACHE": "", "npm_config_cache": w + "/npm", "PIP_CACHE_DIR": w + "/pip", "UV_CACHE_DIR": w + "/uv"} {
		if p.Env[name] != want {
			t.Errorf("%s=%q, want %q", name, p.Env[name], want)
		}
	}
	if !p.Layered {
		t.Error("no layer over the cache of modules")
	}
	bare := in
	bare.Families = []string{"npm", "pip"}
	if p, err = Derive(bare); err != nil || p.Layered {
		t.Errorf("a layer without go: %t, %v", p.Layered, err)
	}
	in.Net.Mode = NetFull
	if p, err = Derive(in); err != nil || p.Env["GOMODCACHE"] != w+"/gomod" ||
		p.Env["GOPROXY"] != "file:///home/u/go/pkg/mod/cache/download,https://proxy.golang.org,direct" {
		t.Errorf("with network: %v %v", p.Env, err)
	}

	// The caches of cargo are linked where nothing is fetched that would be written there.
	files := machine()
	for _, dir := range []string{"/home/u/.cargo/registry", "/home/u/.cargo/git"} {
		files[dir] = "/"
	}
	for mode, want := range map[NetMode]string{NetNone: w + "/cargo-host", NetLoopback: w + "/cargo-host", NetFull: w + "/cargo"} {
		in.Files, in.Families, in.Net.Mode = files, []string{"cargo"}, mode
		if p, err = Derive(in); err != nil || p.Env["CARGO_HOME"] != want || len(p.Links) != 2 || p.OverlayEnv["CARGO_HOME"] != w+"/cargo-host" || len(p.Overlays) != 2 {
			t.Errorf("cargo, %s: %v %v %v %v", mode, p.Env["CARGO_HOME"], p.Links, p.Overlays, err)
		}
	}
	// Settings are read where cargo looks for them: above the workspace, or in its home.
	files["/home/u/.cargo/config.toml"], files["/srv/cargo/config.toml"] = "file", "file"
	for path, links := range map[string]int{"/home/u/.cargo/config.toml": 2, "/srv/cargo/config.toml": 4} {
		in.CargoSettings = []string{path}
		in.Getenv = func(name string) string {
			if name == "CARGO_HOME" && links == 4 {
				return "/srv/cargo"
			}
			return ""
		}
		if links == 4 {
			files["/srv/cargo/registry"], files["/srv/cargo/git"] = "/", "/"
		}
		if p, err = Derive(in); err != nil || len(p.Links) != links || p.rightsOn(path) != Read {
			t.Errorf("settings in %s: %v %v %v", path, p.rightsOn(path), p.Links, err)
		}
	}
	in.Families, in.Net.Mode, in.Getenv = []string{"maven"}, NetNone, func(string) string { return "" }
	if p, err = Derive(in); err != nil || p.Env["MAVEN_OPTS"] != "-Dmaven.repo.local="+w+"/maven" || len(p.Overlays) != 0 {
		t.Errorf("maven, no repository: %v %v %v", p.Env, p.Overlays, err)
	}
	files["/home/u/.m2/repository"] = "/"
	for mode, want := range map[NetMode]string{NetNone: "", NetFull: "-Xmx1g -Dmaven.repo.local=" + w + "/maven"} {
		in.Net.Mode, in.Getenv = mode, func(name string) string {
			if name == "MAVEN_OPTS" {
				return "-Xmx1g"
			}
			return ""
		}
		if p, err = Derive(in); err != nil || p.Env["MAVEN_OPTS"] != want || len(p.Overlays) != 1 || p.OverlayEnv["MAVEN_OPTS"] != "-Xmx1g" ||
			p.rightsOn("/home/u/.m2/repository/x") != Read || p.rightsOn("/home/u/.m2/settings.xml") != 0 {
			t.Errorf("maven, %s: %v %v %v", mode, p.Env, p.OverlayEnv, err)
		}
	}
	files["/home/u/.rustup/toolchains"], files["/home/u/.rustup/settings.toml"], files["/home/u/.rustup/update-hashes"] = "/", "file", "/"
	in.Families = nil
	if p, err = Derive(in); err != nil || p.rightsOn("/home/u/.rustup/toolchains/stable/bin/cargo") != Read|Exec || p.rightsOn("/home/u/.rustup/settings.toml") != Read || p.rightsOn("/home/u/.rustup/update-hashes/x") != Read || p.rightsOn("/home/u/.rustup/tmp") != 0 {
		t.Errorf("rustup: %v", err)
	}
}

// TestDeriveSecrets: what the policy calls secret is hidden where it could be read, but for
// what the call names and was granted.
func TestDeriveSecrets(t *testing.T) {
	secrets := []string{"/home/u/p/file", "/home/u/p/sub", "/home/u/other", "/nowhere/x"}
	read := func(path string) []atip.Resource {
		return []atip.Resource{{Kind: "path", Abs: path, Access: atip.AccessRead, Class: atip.ClassSecret}}
	}
	for name, tc := range map[string]struct {
		granted   atip.Set
		resources []atip.Resource
		files     []string
		want      string
	}{
		"nothing granted":     {0, read("/home/u/p/file"), nil, "/home/u/p/file /home/u/p/sub"},
		"this one granted":    {atip.SetOf(atip.SecretRead), read("/home/u/p/file"), nil, "/home/u/p/sub"},
		"below one granted":   {atip.SetOf(atip.SecretRead), read("/home/u/p/sub/x"), nil, "/home/u/p/file"},
		"another one granted": {atip.SetOf(atip.SecretRead), read("/home/u/p/else"), nil, "/home/u/p/file /home/u/p/sub"},
		"declared":            {0, nil, []string{"/home/u/p/file"}, "/home/u/p/sub"},
	} {
		in := input()
		in.OrgBound, in.Secrets, in.Granted, in.Resources, in.CredentialFiles = true, secrets, tc.granted, tc.resources, tc.files
		p, err := Derive(in)
		if err != nil || strings.Join(p.Mask, " ") != tc.want || p.PlainRead {
			t.Errorf("%s: %v, plain %v, %v", name, p.Mask, p.PlainRead, err)
		}
	}
}

// TestDeriveHides: a secret of the workspace is covered in a private root; a run that only
// reads gets the entries beside it in place of the directory.
func TestDeriveHides(t *testing.T) {
	ws := t.TempDir()
	secret := ws + "/sub/.env"
	for _, path := range []string{"a", "sub/b", "sub/.env", "other/c"} {
		if err := os.MkdirAll(filepath.Dir(ws+"/"+path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(ws+"/"+path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	base := Input{Names: tableNames(), Workspace: ws, Cwd: ws, Home: "/home/u", Private: "/home/u/.cache/w", Hidden: []string{secret}, Mirrored: func(string) bool { return false }}
	reads := func(p Profile, path string) bool {
		for _, g := range p.grants() {
			if (g.Path == path || g.Dir && subpath.Within(path, g.Path)) && g.Rights&Read != 0 {
				return true
			}
		}
		return false
	}
	for name, tc := range map[string]struct {
		change func(*Input)
		read   bool // the rules let it be read
		mask   string
	}{
		"code":            {func(in *Input) { in.Granted = in.Granted.With(atip.Write) }, true, secret},
		"network":         {func(in *Input) { in.OrgBound, in.Net.Mode = true, NetFull }, true, secret},
		"plain":           {func(in *Input) { in.OrgBound = true }, false, ""},
		"no private root": {func(in *Input) { in.Mirrored = nil }, false, ""},
		"declared":        {func(in *Input) { in.CredentialFiles = []string{"sub/.env"} }, true, ""},
		"nothing hidden":  {func(in *Input) { in.Hidden = nil }, true, ""},
	} {
		in := base
		tc.change(&in)
		p, err := Derive(in)
		if err != nil || strings.Join(p.Mask, " ") != tc.mask || reads(p, secret) != tc.read || !reads(p, ws+"/a") || !reads(p, ws+"/sub/b") || !reads(p, ws+"/other/c") {
			t.Errorf("%s: %v, read %v, %v: %v", name, p.Mask, reads(p, secret), err, p.grants())
		}
	}
	in := base
	in.OrgBound = true
	for i := range maxSiblings {
		if err := os.WriteFile(ws+"/sub/"+strconv.Itoa(i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := Derive(in); err != nil || strings.Join(p.Mask, " ") != secret || p.PlainRead {
		t.Errorf("many entries: %v, %v", p.Mask, err)
	}
}

func TestCompactDropsOnlyWhatIsCovered(t *testing.T) {
	var s grantSet
	for _, g := range []Grant{{"/a", true, Read, ""}, {"/a/b", true, Read, ""}, {"/a/c", false, Write, ""}, {"/a/b/d", true, List, ""},
		{"/ab", true, Read, ""}, {"/f", false, Read, ""}, {"/f/x", true, Read, ""}, {"/a", true, Exec, ""}} {
		s.add(g)
	}
	var got []string
	for _, g := range s.compact() {
		got = append(got, g.Path+" "+g.Rights.String())
	}
	if want := "/a read,exec; /a/c write; /ab read; /f read; /f/x read"; strings.Join(got, "; ") != want {
		t.Errorf("compact: %s, want %s", strings.Join(got, "; "), want)
	}
}

// FuzzDeriveNeverWritesForbidden: whatever policy and call name, what no run may write
// is not below any path that is writable, or Derive fails.
func FuzzDeriveNeverWritesForbidden(f *testing.F) {
	for _, s := range []string{"/home/u", "~/.local", "/home/u/p/../.config", "..", "/home/u/.local/state/atip-exec/key", "/srv/data", "", "/"} {
		f.Add(s, s, uint8(3), uint8(12))
	}
	f.Fuzz(func(t *testing.T, rule, argument string, access, class uint8) {
		in := input()
		in.Granted = atip.SetOf(atip.Write, atip.Delete, atip.SecretRead)
		in.Policy.Write = []PathRule{{Path: rule}}
		in.ToolPaths = []string{argument}
		in.Resources = []atip.Resource{{Kind: "path", Abs: argument, Access: atip.Access(access), Class: atip.Class(class % 13), Recursive: access > 7}}
		p, err := Derive(in)
		if err != nil {
			return
		}
		for _, path := range []string{"/home/u/.config/agent-tools", "/home/u/.config/agent-tools/policy.json", "/home/u/.local/state/atip-exec/key"} {
			if r := p.rightsOn(path); r&(Write|Remove) != 0 {
				t.Errorf("rule %q, argument %q: %s on %s", rule, argument, r, path)
			}
		}
		if r := p.rightsOn("/home/u/.local/state/atip-exec/key"); r&Read != 0 {
			t.Errorf("rule %q, argument %q: state is readable", rule, argument)
		}
	})
}
