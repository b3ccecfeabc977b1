package place

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

const (
	r  = atip.AccessRead
	wr = atip.AccessWrite
	d  = atip.AccessDelete
)

func world() World {
	return World{Workspace: "/home/u/p", Home: "/home/u", Cwd: "/home/u/p", Config: "/home/u/.config/agent-tools",
		Data: "/home/u/.local/share/agent-tools", State: "/home/u/.local/state/atip-exec", Runtime: "/run/user/7/atip-exec",
		Managed: Managed, Programs: []string{"/home/u/go/bin/atip-exec"}, GitDirs: []string{"/home/u/p/.git", "/srv/common.git"},
		TmpDirs: []string{"/home/u/.cache/w/tmp"}}
}

func TestClassify(t *testing.T) {
	w := world()
	for _, row := range []struct {
		path      string
		access    atip.Access
		recursive bool
		want      atip.Class
	}{
		{"/home/u/.config/agent-tools/policy.json", r, false, atip.ClassPolicySelf},
		{"/home/u/.config/agent-tools", r, false, atip.ClassPolicySelf},
		{"/home/u/.config/agent-toolsx", r, false, atip.ClassOutside},
		{"/home/u/.local/state/atip-exec/digest/x", wr, false, atip.ClassPolicySelf},
		{"/home/u/.local/state", d, true, atip.ClassPolicySelf},
		{"/home/u/.local/state", r, true, atip.ClassOutside},
		{"/etc/agent-tools/policy.json", wr, false, atip.ClassPolicySelf},
		{"/home/u/go/bin/atip-exec", wr, false, atip.ClassPolicySelf},
		{"/home/u/p/.agent-tools/policy.json", wr, false, atip.ClassPolicySelf},
		{"/home/u/p/.claude/settings.json", wr, false, atip.ClassPolicySelf},
		{"/home/u/p/.claude/hooks/x.sh", wr, false, atip.ClassPolicySelf},
		{"/home/u/.claude/shell-snapshots/s.sh", wr, false, atip.ClassStartup},
		{"/home/u/p/.claude/notes.md", wr, false, atip.ClassStartup},
		{"/home/u/.claude/notes.md", wr, false, atip.ClassOutside},
		{"/home/u/p/.Claude/Settings.json", wr, false, atip.ClassPolicySelf},
		{"/home/u/p/sub/.cursor/rules", wr, false, atip.ClassStartup},
		{"/home/u/p/.cursor", d, false, atip.ClassStartup},
		{"/home/u/p/.cursor", d, true, atip.ClassPolicySelf}, // with its hooks
		{"/home/u/p/.mise.toml", wr, false, atip.ClassStartup},
		{"/home/u/p/.m\u0131se.toml", wr, false, atip.ClassStartup}, // without its dot the letter is an i in capitals
		{"/home/u/p/.github/workflows/x.yml", wr, false, atip.ClassWorkspace},
		{"/home/u/p/.mcp.json", wr, false, atip.ClassPolicySelf},

		{"/dev/sda", wr, false, atip.ClassDevice},
		{"/dev/mem", r, false, atip.ClassDevice},
		{"/dev/pts/3", wr, false, atip.ClassDevice},
		{"/dev/null", wr, false, atip.ClassTmp},
		{"/dev/fd/3", r, false, atip.ClassTmp},
		{"/dev/shm/x", wr, false, atip.ClassTmp},

		{"/home/u/.ssh/id_ed25519", r, false, atip.ClassSecret},
		{"/home/u/.ssh", r, false, atip.ClassSecret},
		{"/home/u/.sshx/config", r, false, atip.ClassOutside},
		{"/home/u/.config/gh/hosts.yml", r, false, atip.ClassSecret},
		{"/home/u/.config", r, true, atip.ClassSecret},
		{"/home/u/.config", r, false, atip.ClassOutside},
		{"/home/u/.npmrc", r, false, atip.ClassSecret},
		{"/home/u/p/.env", r, false, atip.ClassSecret},
		{"/home/u/p/.env.production", r, false, atip.ClassSecret},
		{"/home/u/p/.env.example", r, false, atip.ClassWorkspace},
		{"/home/u/p/.envrc", wr, false, atip.ClassStartup},
		{"/home/u/p/server.key", r, false, atip.ClassSecret},
		{"/home/u/p/id_rsa", r, false, atip.ClassSecret},
		{"/home/u/p/id_rsa.pub", r, false, atip.ClassWorkspace},
		{"/home/u/p/x.tfstate", r, false, atip.ClassSecret},
		{"/etc/ssl/certs/ca.pem", r, false, atip.ClassSystem},
		{"/etc/ssl/private/x", r, false, atip.ClassSecret},
		{"/etc/shadow", r, false, atip.ClassSecret},
		{"/proc/1/environ", r, false, atip.ClassSecret},
		{"/proc/1/status", r, false, atip.ClassSystem},

		{"/home/u/.bashrc", wr, false, atip.ClassStartup},
		{"/home/u/.config/systemd/user/x.service", wr, false, atip.ClassStartup},
		{"/home/u/.gitconfig", wr, false, atip.ClassStartup},
		{"/home/u/p/.git/hooks/pre-commit", wr, false, atip.ClassStartup},
		{"/home/u/p/.git/config", wr, false, atip.ClassStartup},
		{"/srv/common.git/hooks/x", wr, false, atip.ClassStartup},
		{"/home/u/p/.vscode/tasks.json", wr, false, atip.ClassStartup},
		{"/home/u/p/.vscode/extensions.json", wr, false, atip.ClassWorkspace},
		{"/home/u/p/.vscode", d, true, atip.ClassStartup},
		{"/home/u/p/.git/info/attributes", wr, false, atip.ClassStartup},
		{"/home/u/p/.git/info/exclude", wr, false, atip.ClassWorkspaceVCS},
		{"/home/u/p/.git/modules/a/b/hooks/x", wr, false, atip.ClassStartup},
		{"/home/u/p/.git/worktrees/w/commondir", wr, false, atip.ClassStartup},
		{"/home/u/p/sub/.git", wr, false, atip.ClassStartup},
		{"/home/u/.config/glab-cli/config.yml", r, false, atip.ClassSecret},
		{"/etc/pki/tls/private/x", r, false, atip.ClassSecret},
		{"/etc/pki/tls/certs/x.pem", r, false, atip.ClassSystem},
		{"/etc/cron.d/x", wr, false, atip.ClassStartup},
		{"/etc/profile.d/x.sh", wr, false, atip.ClassStartup},

		{"/", r, true, atip.ClassRoot},
		{"/usr", d, true, atip.ClassRoot},
		{"/tmp", d, true, atip.ClassRoot},
		{"/tmp", wr, false, atip.ClassTmp},
		{"/home", d, true, atip.ClassRoot},
		{"/home/u", d, true, atip.ClassRoot},
		{"/home/u", wr, false, atip.ClassRoot},
		{"/home/u/p", d, true, atip.ClassRoot},
		{"/home/u/p", wr | d, true, atip.ClassRoot},
		{"/home/u/p", wr, true, atip.ClassWorkspace},

		{"/home/u/p/.git/index", wr, false, atip.ClassWorkspaceVCS},
		{"/home/u/p/.git", d, true, atip.ClassWorkspaceVCS},
		{"/home/u/p/sub/.git/HEAD", wr, false, atip.ClassWorkspaceVCS},
		{"/srv/common.git/refs/heads/x", wr, false, atip.ClassWorkspaceVCS},
		{"/home/u/p/main.go", wr, false, atip.ClassWorkspace},
		{"/home/u/p2/main.go", wr, false, atip.ClassOutside},

		{"/tmp/x", wr, false, atip.ClassTmp},
		{"/tmpx/y", wr, false, atip.ClassOutside},
		{"/home/u/.cache/w/tmp/x", wr, false, atip.ClassTmp},
		{"/usr/bin/id", r, false, atip.ClassSystem},
		{"/lib64/ld.so", r, false, atip.ClassSystem},
		{"/var/log/syslog", r, false, atip.ClassSystem},
		{"/srv/data", wr, false, atip.ClassOutside},
		{"relative", wr, false, atip.ClassUnknown},
	} {
		if got := w.Secret(row.path); got != (w.Classify(row.path, r, false) == atip.ClassSecret) {
			t.Errorf("Secret(%q) = %v", row.path, got)
		}
		if got := w.Classify(row.path, row.access, row.recursive); got != row.want {
			t.Errorf("%s %v recursive=%v: %v, want %v", row.path, row.access, row.recursive, got, row.want)
		}
	}
}

func mkdir(t testing.TB, parts ...string) string {
	t.Helper()
	p := filepath.Join(parts...)
	if err := os.MkdirAll(p, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

func write(t testing.TB, text string, parts ...string) string {
	t.Helper()
	p := filepath.Join(parts...)
	mkdir(t, filepath.Dir(p))
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func link(t testing.TB, target string, parts ...string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(parts...)); err != nil {
		t.Fatal(err)
	}
}

func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestResolve(t *testing.T) {
	dir := tempDir(t)
	mkdir(t, dir, "real", "sub")
	write(t, "", dir, "real", "file")
	link(t, "real", dir, "rel")
	link(t, filepath.Join(dir, "real", "sub"), dir, "abs")
	link(t, "loop", dir, "loop")
	link(t, "real/none", dir, "dangling")
	for _, row := range [][2]string{
		{"rel/file", "real/file"},
		{"rel/./new//deep", "real/new/deep"},
		{"abs/../file", "real/file"}, // the dots count from the target
		{"abs/none/../x", "real/sub/x"},
		{"dangling", "real/none"},
		{"dangling/x", "real/none/x"},
		{"none/../real", "real"},
		{"loop/x", "loop/x"},
		{"real/file/x", "real/file/x"},
		{"../" + filepath.Base(dir) + "/rel", "real"},
	} {
		if got := Resolve(dir + "/" + row[0]); got != filepath.Join(dir, row[1]) {
			t.Errorf("%s: %s, want %s", row[0], got, row[1])
		}
	}
	for _, row := range [][2]string{
		{"/", "/"}, {"/..", "/"}, {"/dev/stdout", "/dev/stdout"}, {"/dev/fd/1", "/dev/fd/1"}, {"/proc/self/fd/1", "/dev/fd/1"},
	} {
		if got := Resolve(row[0]); got != row[1] {
			t.Errorf("%s: %s, want %s", row[0], got, row[1])
		}
	}
}

func TestFill(t *testing.T) {
	dir := tempDir(t)
	home := mkdir(t, dir, "home")
	ws := mkdir(t, home, "ws")
	mkdir(t, ws, "sub")
	mkdir(t, home, ".ssh")
	write(t, "", ws, "a*b")
	link(t, "../.ssh", ws, "innocent")
	link(t, filepath.Join(home, ".ssh", "id"), ws, "key")
	w := World{Workspace: ws, Home: home, Cwd: ws}.Resolved()
	for _, row := range []struct {
		value, chdir, abs string
		recursive         bool
		class             atip.Class
	}{
		{"x.go", "", ws + "/x.go", false, atip.ClassWorkspace},
		{"x.go", "sub", ws + "/sub/x.go", false, atip.ClassWorkspace},
		{"../x", "sub", ws + "/x", false, atip.ClassWorkspace},
		{"..", "", home, false, atip.ClassRoot},
		{"innocent/id_x", "", home + "/.ssh/id_x", false, atip.ClassSecret},
		{"innocent/../.bashrc", "", home + "/.bashrc", false, atip.ClassStartup},
		{"key", "", home + "/.ssh/id", false, atip.ClassSecret},
		{"~/.bashrc", "", home + "/.bashrc", false, atip.ClassStartup},
		{"~", "", home, false, atip.ClassRoot},
		{"*.go", "", ws, true, atip.ClassWorkspace},
		{"sub/*/x", "", ws + "/sub", true, atip.ClassWorkspace},
		{"a*b", "", ws + "/a*b", false, atip.ClassWorkspace},
		{"/etc/*", "", "/etc", true, atip.ClassRoot},
		{"/*", "", "/", true, atip.ClassRoot},
		{"/dev/stdout", "", "/dev/stdout", false, atip.ClassTmp},
		{"", "", "", false, atip.ClassUnknown},
		{"a\x00b", "", "", false, atip.ClassUnknown},
	} {
		res := atip.Resource{Kind: "path", Value: row.value, Access: r | wr}
		w.Fill(&res, row.chdir)
		if res.Abs != row.abs || res.Class != row.class || res.Recursive != row.recursive {
			t.Errorf("%q in %q: %q %v recursive=%v, want %q %v %v", row.value, row.chdir, res.Abs, res.Class, res.Recursive, row.abs, row.class, row.recursive)
		}
	}
	res := atip.Resource{Kind: "url", Value: "x"}
	if w.Fill(&res, ""); res.Abs != "" {
		t.Error("a URL got a path")
	}
}

func repo(t testing.TB, dir string) string {
	t.Helper()
	mkdir(t, dir, "objects")
	mkdir(t, dir, "refs")
	write(t, "ref: refs/heads/main\n", dir, "HEAD")
	write(t, "[core]\n\tbare = false\n", dir, "config")
	return dir
}

func TestFindWorkspace(t *testing.T) {
	home := mkdir(t, tempDir(t), "home")
	uid := os.Getuid()
	p := filepath.Join(home, "p")
	git := repo(t, filepath.Join(p, ".git"))
	mkdir(t, p, "a", "b")
	plain := mkdir(t, home, "plain")
	// A worktree of p and one that only claims to be.
	tree, fake := filepath.Join(home, "tree"), filepath.Join(home, "fake")
	wt := filepath.Join(git, "worktrees", "tree")
	write(t, "ref: x\n", wt, "HEAD")
	write(t, "../..\n", wt, "commondir")
	write(t, filepath.Join(tree, ".git")+"\n", wt, "gitdir")
	write(t, "gitdir: "+wt+"\n", tree, ".git")
	write(t, "gitdir: "+wt+"\n", fake, ".git")
	// A submodule, and a .git file that names somebody's repository.
	sub := repo(t, filepath.Join(git, "modules", "sub"))
	write(t, "[core]\n\tworktree = ../../../sub\n", sub, "config")
	write(t, "gitdir: ../.git/modules/sub\n", p, "sub", ".git")
	write(t, "gitdir: "+git+"\n", home, "claims", ".git")
	write(t, "gitdir: ../plain\n", home, "norepo", ".git")
	empty := mkdir(t, home, "empty")
	mkdir(t, empty, ".git")
	open := mkdir(t, home, "open")
	repo(t, filepath.Join(open, ".git"))
	mkdir(t, open, "inner")
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(home, "state", "atip-exec")
	write(t, "dotencode\n", home, "hg", ".hg", "requires")
	write(t, "x\n", home, "jj", ".jj", "repo", "store")
	// Work trees where a program keeps its own code, in places of credentials, and where a
	// linked one may be.
	for _, dir := range []string{".oh-my-zsh", ".ssh/x", ".config", ".config/nvim", ".cache/x", "go", "go/pkg/mod/x", ".agents/reg/in"} {
		repo(t, filepath.Join(home, dir, ".git"))
	}
	hiddenTree := filepath.Join(home, ".agents", "tree")
	write(t, "gitdir: "+filepath.Join(git, "worktrees", "hidden")+"\n", hiddenTree, ".git")
	write(t, "ref: x\n", git, "worktrees", "hidden", "HEAD")
	write(t, "../..\n", git, "worktrees", "hidden", "commondir")
	write(t, filepath.Join(hiddenTree, ".git")+"\n", git, "worktrees", "hidden", "gitdir")
	registered := mkdir(t, home, "registered", "below")
	mkdir(t, home, "wide")
	mkdir(t, home, ".aws")
	dirs := Dirs{Home: home, Config: filepath.Join(home, ".settings", "agent-tools"), State: state}
	var list strings.Builder
	for _, p := range []string{filepath.Dir(registered), home + "/.agents/reg", home + "/.aws", home + "/.cache", home, "/etc", filepath.Dir(home), home + "/.settings", open} {
		list.WriteString(p + "\n")
	}
	write(t, "# comment\n\n"+list.String(), dirs.WorkspacesFile())
	for _, row := range []struct {
		name, cwd, root string
		git             string // comma-separated
		uid             int
	}{
		{"top", p, p, git, uid},
		{"below", p + "/a/b", p, git, uid},
		{"no work tree", plain, "", "", uid},
		{"mercurial", home + "/hg", home + "/hg", "", uid},
		{"jujutsu", home + "/jj", home + "/jj", "", uid},
		{"hidden work tree", home + "/.oh-my-zsh", "", "", uid},
		{"hidden linked work tree", hiddenTree, hiddenTree, filepath.Join(git, "worktrees", "hidden") + "," + git, uid},
		{"work tree among credentials", home + "/.ssh/x", "", "", uid},
		{"work tree that holds credentials", home + "/.config", "", "", uid},
		{"work tree of what starts by itself", home + "/.config/nvim", "", "", uid},
		{"work tree in a cache", home + "/.cache/x", "", "", uid},
		{"work tree that holds a cache", home + "/go", "", "", uid},
		{"work tree in the module cache", home + "/go/pkg/mod/x", "", "", uid},
		{"registered", filepath.Dir(registered), filepath.Dir(registered), "", uid},
		{"below a registered one", registered, filepath.Dir(registered), "", uid},
		{"work tree below a registered one", home + "/.agents/reg/in", home + "/.agents/reg/in", filepath.Join(home, ".agents/reg/in/.git"), uid},
		{"credentials, registered", home + "/.aws", "", "", uid},
		{"cache, registered", home + "/.cache", "", "", uid},
		{"system, registered", "/etc", "", "", uid},
		{"our configuration, registered", home + "/.settings", "", "", uid},
		{"registered by another user", filepath.Dir(registered), "", "", uid + 1},
		{"worktree", tree, tree, wt + "," + git, uid},
		{"worktree without back link", fake, "", "", uid},
		{"submodule", p + "/sub", p + "/sub", sub, uid},
		{"somebody's repository", home + "/claims", "", "", uid},
		{"no repository", home + "/norepo", "", "", uid},
		{"empty .git", empty, "", "", uid},
		{"world-writable on the way", open + "/inner", "", "", uid},
		{"other owner", p + "/a", "", "", uid + 1},
		{"home", home, "", "", uid},
		{"above home", filepath.Dir(home), "", "", uid},
		{"root", "/", "", "", uid},
		{"/tmp", "/tmp", "", "", uid},
		{"holds our state", filepath.Join(home, "state"), "", "", uid},
		{"missing", home + "/none", "", "", uid},
		{"no path", "", "", "", uid},
	} {
		if row.name == "holds our state" {
			mkdir(t, state)
		}
		root, gitDirs, why := FindWorkspace(row.cwd, dirs, row.uid)
		if root != row.root || strings.Join(gitDirs, ",") != row.git || why == "" {
			t.Errorf("%s: %q %q (%s), want %q %q", row.name, root, gitDirs, why, row.root, row.git)
		}
		// Whatever is accepted, what runs may not write lies outside of it.
		for _, own := range dirs.Own() {
			if root != "" && (subpath.Within(own, root) || subpath.Within(root, own)) {
				t.Errorf("%s: the workspace %s holds or lies in %s", row.name, root, own)
			}
		}
	}
	write(t, list.String()+"relative\n", dirs.WorkspacesFile())
	if root, _, why := FindWorkspace(registered, dirs, uid); root != "" || !strings.Contains(why, "workspaces:10:") {
		t.Errorf("a list with a mistake: %q (%s)", root, why)
	}
	write(t, list.String(), dirs.WorkspacesFile())
	if err := os.Chmod(dirs.WorkspacesFile(), 0o666); err != nil {
		t.Fatal(err)
	}
	if root, _, why := FindWorkspace(registered, dirs, uid); root != "" || !strings.Contains(why, "written by others") {
		t.Errorf("a list that others can write: %q (%s)", root, why)
	}
	// A home that is itself a repository makes no workspace.
	repo(t, filepath.Join(home, ".git"))
	if root, gitDirs, _ := FindWorkspace(plain, dirs, uid); root != "" || gitDirs != nil {
		t.Errorf("below a home repository: %q %q", root, gitDirs)
	}
}

func TestDirsFromEnv(t *testing.T) {
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	account := AccountHome(os.Geteuid())
	usual := Dirs{Home: account, Config: account + "/.config/agent-tools", Data: account + "/.local/share/agent-tools", State: account + "/.local/state/atip-exec", Cache: account + "/.cache/atip-exec"}
	dir := tempDir(t)
	mkdir(t, dir, "home")
	allowed := filepath.Join(dir, "home")
	for _, row := range []struct {
		name  string
		env   func(string) string
		homes []string
		want  Dirs
	}{
		{"nothing set", env(), nil, usual},
		{"the account's own", env("HOME", account, "XDG_CONFIG_HOME", account+"/.config"), nil, usual},
		{"another home", env("HOME", dir, "XDG_STATE_HOME", dir, "XDG_CONFIG_HOME", dir, "XDG_CACHE_HOME", dir), nil, usual},
		{"permitted elsewhere", env("HOME", dir), []string{allowed}, usual},
		{"permitted", env("HOME", allowed, "XDG_STATE_HOME", allowed+"/s", "XDG_DATA_HOME", "relative", "XDG_CONFIG_HOME", dir), []string{allowed},
			Dirs{Home: allowed, Config: allowed + "/.config/agent-tools", Data: allowed + "/.local/share/agent-tools", State: allowed + "/s/atip-exec", Cache: allowed + "/.cache/atip-exec"}},
		{"by dots", env("HOME", allowed+"/.."), []string{allowed}, usual},
	} {
		d, err := DirsFromEnv(row.env, "", row.homes...)
		d.Runtime = ""
		if err != nil || d != row.want {
			t.Errorf("%s: %+v, %v", row.name, d, err)
		}
	}
	link(t, dir, allowed, "out")
	if d, err := DirsFromEnv(env("HOME", allowed+"/out"), "", allowed); err != nil || d.Home != account {
		t.Errorf("a home through a link: %+v, %v", d, err)
	}
	if _, err := DirsFromEnv(env("HOME", "h"), "", "/"); err == nil {
		t.Error("a relative HOME was accepted")
	}
	if d, err := DirsFromEnv(env("HOME", "/h"), "/other"); err != nil || d.Home != "/other" {
		t.Errorf("%+v, %v", d, err)
	}
	list := filepath.Join(dir, "homes")
	defer func(was string) { homesFile = was }(homesFile)
	homesFile = list
	write(t, "# here\n"+allowed+"\n", list)
	if d, err := DirsFromEnv(env("HOME", allowed), ""); err != nil || d.Home != allowed {
		t.Errorf("listed: %+v, %v", d, err)
	}
	write(t, "here\n", list)
	if d, err := DirsFromEnv(env("HOME", allowed), ""); err == nil || !strings.Contains(err.Error(), "homes:1: ") {
		t.Errorf("a list with a mistake: %+v, %v", d, err)
	}
	if _, err := DirsFromEnv(env("HOME", account), ""); err != nil {
		t.Errorf("the list is read where nobody asks for it: %v", err)
	}
}

// TestOwnDirsAreNotFollowed: a link in place of one of our directories would lead where
// somebody else decides.
func TestOwnDirsAreNotFollowed(t *testing.T) {
	dir := tempDir(t)
	d := Dirs{Config: dir + "/c", State: dir + "/s", Cache: dir + "/k", Data: dir + "/d"}
	mkdir(t, dir, "c")
	mkdir(t, dir, "ws")
	if err := d.Check(os.Getuid()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"s", "k", "d"} {
		link(t, "ws", dir, name)
		if err := d.Check(os.Getuid()); err == nil || !strings.Contains(err.Error(), dir+"/"+name) {
			t.Errorf("%s: %v", name, err)
		}
		os.Remove(filepath.Join(dir, name))
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir+"/c", 1, 1); err != nil {
			t.Fatal(err)
		}
		if err := d.Check(0); err == nil {
			t.Error("a directory of another user was accepted")
		}
	}
}

func BenchmarkClassify(b *testing.B) {
	w := world()
	b.ReportAllocs()
	for b.Loop() {
		w.Classify("/home/u/p/internal/place/place.go", wr, false)
	}
}

func BenchmarkFill(b *testing.B) {
	dir := tempDir(b)
	mkdir(b, dir, "a", "b")
	w := World{Workspace: dir, Home: "/home/u", Cwd: dir}.Resolved()
	b.ReportAllocs()
	for b.Loop() {
		res := atip.Resource{Kind: "path", Value: "a/b/c.go", Access: wr}
		w.Fill(&res, "")
	}
}

func TestResolvedWorld(t *testing.T) {
	dir := tempDir(t)
	mkdir(t, dir, "disk", "u", ".ssh")
	link(t, "disk", dir, "home")
	home := filepath.Join(dir, "home", "u")
	w := World{Home: home, Cwd: home, Config: home + "/.config/agent-tools", Workspace: home + "/p", TmpDirs: []string{"", home + "/t"}, GitDirs: []string{home + "/p/.git"}}.Resolved()
	real := filepath.Join(dir, "disk", "u")
	want := World{Home: real, Cwd: real, Config: real + "/.config/agent-tools", Workspace: real + "/p", TmpDirs: []string{real + "/t"}, GitDirs: []string{real + "/p/.git"}}
	if w.Home != want.Home || w.Cwd != want.Cwd || w.Config != want.Config || w.Workspace != want.Workspace || w.TmpDirs[0] != want.TmpDirs[0] ||
		len(w.TmpDirs) != 1 || w.GitDirs[0] != want.GitDirs[0] {
		t.Errorf("%+v", w)
	}
	res := atip.Resource{Kind: "path", Value: ".ssh/id", Access: r}
	if w.Fill(&res, ""); res.Class != atip.ClassSecret {
		t.Errorf("%+v", res)
	}
}

func BenchmarkFindWorkspace(b *testing.B) {
	home := mkdir(b, tempDir(b), "home")
	p := mkdir(b, home, "p", "a")
	repo(b, filepath.Join(home, "p", ".git"))
	d, err := DirsFromEnv(func(string) string { return "" }, home)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if root, _, why := FindWorkspace(p, d, os.Getuid()); root == "" {
			b.Fatal(why)
		}
	}
}

// TestOwnDirectory holds that /proc/self/cwd is the directory of the command that is
// judged, whatever this program's own one is.
func TestOwnDirectory(t *testing.T) {
	dir := t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := World{Workspace: dir, Cwd: dir, Home: "/nonexistent"}
	for value, want := range map[string]string{
		"/proc/self/cwd": dir, "/proc/self/cwd/a": dir + "/a", "/proc/thread-self/cwd/a": dir + "/a", "/proc//self/./cwd/a": dir + "/a",
		"/proc/self/cwd/../a": filepath.Dir(dir) + "/a",
	} {
		r := atip.Resource{Kind: "path", Value: value, Access: atip.AccessRead}
		if w.Fill(&r, ""); r.Abs != want {
			t.Errorf("%s leads to %s, want %s", value, r.Abs, want)
		}
	}
}

// TestOwnExecutable holds that /proc/self/exe is the program of the command that is judged,
// in each way to it, and not this one. The control is this program under its own name.
func TestOwnExecutable(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Skip("no /proc here")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/proc/self/exe", link); err != nil {
		t.Fatal(err)
	}
	w := World{Home: "/nonexistent", Programs: []string{self}}
	class := func(p string) atip.Class { return w.Classify(Resolve(p), atip.AccessRead, false) }
	if got := class(self); got != atip.ClassPolicySelf {
		t.Errorf("this program is %v", got)
	}
	for _, p := range []string{"/proc/self/exe", "/proc/thread-self/exe", "/proc//self/./exe", "/proc/self/../self/exe", "/proc/self/root/proc/self/exe", link,
		"/proc/self/status", "/proc/self/fd"} {
		if got := class(p); got != atip.ClassSystem {
			t.Errorf("%s is %v, as %s", p, got, Resolve(p))
		}
	}
	if got := class("/proc/self/root" + self); got != atip.ClassPolicySelf {
		t.Errorf("by way of /proc/self/root it is %v", got)
	}
}

// TestPublicPEM: what a *.pem file holds decides whether it is a secret, if all of it is known to be public.
func TestPublicPEM(t *testing.T) {
	dir := t.TempDir()
	block := func(label string) string {
		return "-----BEGIN " + label + "-----\nAAAA\n-----END " + label + "-----\n"
	}
	public, key := block("CERTIFICATE"), block("PRIVATE"+" KEY")
	for name, row := range map[string]struct {
		text string
		want atip.Class
	}{
		"ca":        {public, atip.ClassWorkspace},
		"fullchain": {"subject=CN = x\n" + public + public, atip.ClassWorkspace},
		"csr":       {block("CERTIFICATE REQUEST"), atip.ClassWorkspace},
		"pub":       {block("PUBLIC KEY") + block("EC PARAMETERS"), atip.ClassWorkspace},
		"key":       {key, atip.ClassSecret},
		"both":      {public + key, atip.ClassSecret},
		"rsa":       {block("RSA "+"PRIVATE KEY") + public, atip.ClassSecret},
		"pgp":       {public + block("PGP "+"PRIVATE KEY BLOCK"), atip.ClassSecret},
		"other":     {public + block("SOMETHING NEW"), atip.ClassSecret},
		"plain":     {public + "private_key: AAAA\n", atip.ClassSecret},
		"open":      {public + "-----BEGIN CERTIFICATE", atip.ClassSecret},
		"raw":       {"AAAA\n", atip.ClassSecret},
		"empty":     {"", atip.ClassSecret},
		"long":      {public + strings.Repeat("A", 1<<20), atip.ClassSecret},
	} {
		path := filepath.Join(dir, name+".pem")
		if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := (World{Home: "/home/u", Workspace: dir}).Classify(path, atip.AccessRead, false); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
	link := filepath.Join(dir, "link.pem")
	if err := os.Symlink("ca.pem", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, filepath.Join(dir, "absent.pem"), dir} {
		if publicPEM("x.pem", path) {
			t.Errorf("%s is taken for public", path)
		}
	}
}
