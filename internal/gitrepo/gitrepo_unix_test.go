//go:build unix

package gitrepo

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_ALLOW_PROTOCOL=file"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, stderr.String())
	}
	return string(out)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func temp(t testing.TB) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// listed is what git reads from a text: "key\nvalue\0" for each setting.
func listed(t testing.TB, text string) ([]Setting, bool) {
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, text)
	cmd := exec.Command("git", "config", "--no-includes", "--list", "-z", "-f", path)
	cmd.Env = []string{"HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "PATH=" + os.Getenv("PATH")}
	raw, err := cmd.Output()
	if err != nil {
		return nil, false
	}
	var out []Setting
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(raw), "\x00"), "\x00") {
		if entry == "" {
			continue
		}
		key, value, ok := strings.Cut(entry, "\n")
		out = append(out, Setting{Key: key, Value: value, Bare: !ok})
	}
	return out, true
}

func configs() []string {
	return []string{
		"", "[core]\n\tbare = false\n", "[a]b=1[c]d=2", "[a]b=1\n[c]d=2 # x\n", "[Core]\nSSHCommand = \"a b\" ; c\n", "[remote \"O r\\\"x\"]\n\turl = a\\tb\n",
		"[Sub.SeC]\nk=v\n", "[a]\nk = one \\\n two\n", "[a]\nk=  spaced   out  \t # gone\n", "[a]\nk=\"kept # here \"  \n", "[a]\nk\n[a]\nk =\n", "[a] k = v ; c",
		"\ufeff[a]\nk=v\r\nl=w\r\n", "[a]\nk=\\q\n", "[a\nk=v\n", "[a \"b]\nk=v\n", "k=v\n", "[a]\n1k=v\n", "[a]\nk v\n", "[a]\nk=\"open\n", "[a] # c\nk=v", "[a \"\"]\nk=v\n",
		"[a]\nk=a\"b c\"d\\\"e\n", "[a]\nk=v\\", "[a]\nk=v\\\n", "# only\n;x\n", "[include]\npath=x\n[includeIf \"gitdir:/x/\"]\npath=y\n", "[a]\nk=a\rb\n", "[a]\nk = \xff\xfe\n", "[a-b.c]\nd-e=f",
		"[a]\n  \t k  \t=  v", "[a]\nk=v # c \\\nl=w\n", "[a]\x0bk=v\n", "[]\nk=v\n", "[a \t\"b\"]\nk=v\n", "[a\"b\"]\nk=v\n", "[a]k\n", "[a]\nk=\\\\\n",
	}
}

var blanks = regexp.MustCompile(`[ \t\r]`)

// FuzzParse holds that what git reads is what we read. We may refuse more, never less, and
// never read another value.
func FuzzParse(f *testing.F) {
	for _, text := range configs() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.IndexByte(text, 0) >= 0 {
			return // the list is separated by it
		}
		want, ok := listed(t, text)
		got, err := Parse(text)
		if !ok {
			if err == nil {
				t.Errorf("%q: git refuses it, and we read %+v", text, got)
			}
			return
		}
		if err != nil {
			return
		}
		for i := range got {
			got[i].Value = blanks.ReplaceAllString(got[i].Value, " ")
		}
		for i := range want {
			want[i].Value = blanks.ReplaceAllString(want[i].Value, " ") // newer versions keep a tab
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %+v %v, git reads %+v", text, got, err, want)
		}
	})
}

func TestFindAsGitDoes(t *testing.T) {
	dir := temp(t)
	root := filepath.Join(dir, "r")
	git(t, dir, "init", "-q", "-b", "main", root)
	git(t, root, "commit", "-q", "--allow-empty", "-m", "x")
	write(t, root+"/a/b/c", "")
	git(t, root, "init", "-q", "nested")
	git(t, root, "worktree", "add", "-q", dir+"/tree")
	git(t, dir, "clone", "-q", "--bare", root, dir+"/bare.git")
	git(t, root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", dir+"/bare.git", "sub/one")
	write(t, root+"/broken/.git/HEAD", "ref: refs/heads/main\n") // no objects: git goes on above
	if err := os.Symlink(root+"/nested", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{root, root + "/a/b", root + "/nested", dir + "/tree", dir + "/bare.git", dir + "/bare.git/refs", root + "/sub/one", root + "/broken", dir + "/link", root + "/.git", root + "/.git/modules/sub/one"} {
		r, err := Find(at)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		out := strings.Fields(git(t, at, "rev-parse", "--path-format=absolute", "--absolute-git-dir", "--git-common-dir"))
		if r.Dir != out[0] || r.Common != out[1] {
			t.Errorf("%s: %+v, git says %v", at, r, out)
		}
	}
	if _, err := Find(dir); !errors.Is(err, ErrNone) {
		t.Errorf("%s: %v", dir, err)
	}
	if r, err := Find(dir + "/tree"); err != nil || r.Head() != "tree" || r.WorkTree != dir+"/tree" {
		t.Errorf("worktree: %+v %v", r, err)
	}
}

func TestFindRefusesWhatCannotBeJudged(t *testing.T) {
	for name, plant := range map[string]func(dir string) error{
		"fifo": func(dir string) error { return syscall.Mkfifo(dir+"/.git", 0o600) },
		"device": func(dir string) error {
			return os.Symlink("/dev/zero", dir+"/.git")
		},
		"dangling":  func(dir string) error { return os.WriteFile(dir+"/.git", []byte("gitdir: nowhere\n"), 0o600) },
		"nonsense":  func(dir string) error { return os.WriteFile(dir+"/.git", []byte("x"), 0o600) },
		"huge":      func(dir string) error { return os.WriteFile(dir+"/.git", make([]byte, 1<<16), 0o600) },
		"commondir": func(dir string) error { return commonDirIsFIFO(dir) },
	} {
		dir := temp(t)
		if err := plant(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Find(dir); err == nil || errors.Is(err, ErrNone) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func commonDirIsFIFO(dir string) error {
	return errors.Join(os.MkdirAll(dir+"/.git/objects", 0o700), os.MkdirAll(dir+"/.git/refs", 0o700), os.WriteFile(dir+"/.git/HEAD", []byte("ref: refs/heads/x\n"), 0o600),
		syscall.Mkfifo(dir+"/.git/commondir", 0o600))
}

func TestConfigFollowsIncludes(t *testing.T) {
	dir := temp(t)
	home := dir + "/home"
	git(t, dir, "init", "-q", "-b", "main", "r")
	write(t, home+"/.gitconfig", "[user]\nname=me\n[include]\npath=~/more\n")
	write(t, home+"/more", "[core]\nsshCommand=mine\n")
	write(t, dir+"/r/inc", "[core]\nsshCommand=theirs\n")
	f, err := os.OpenFile(dir+"/r/.git/config", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString("[include]\n\tpath = ../inc\n[includeIf \"onbranch:main\"]\n\tpath = gone\n[extensions]\n\tworktreeConfig = true\n")
	f.Close()
	write(t, dir+"/r/.git/config.worktree", "[core]\neditor=wt\n")
	r, err := Find(dir + "/r")
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Config(home, UserSources(home, "")...)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := c.Get("core.sshcommand"); v != "theirs" {
		t.Errorf("core.sshCommand is %q", v)
	}
	if v, _ := c.Get("core.editor"); v != "wt" {
		t.Errorf("core.editor is %q", v)
	}
	if !slices.Contains(c.Missing, dir+"/r/.git/gone") || !c.Conditional || !slices.Contains(c.Files, dir+"/r/inc") {
		t.Errorf("files %v, missing %v", c.Files, c.Missing)
	}
	for _, s := range c.Settings {
		if user := strings.HasPrefix(s.File, home); user != (s.Scope == ScopeUser) && s.Scope != ScopeSystem {
			t.Errorf("%s of %s has scope %d", s.Key, s.File, s.Scope)
		}
	}
	write(t, dir+"/r/inc", "[include]\npath=inc\n")
	if _, err := r.Config(home); err == nil {
		t.Error("a circle of includes has no end")
	}
	write(t, dir+"/r/inc", "[core\n")
	if _, err := r.Config(home); err == nil {
		t.Error("what git refuses is read")
	}
}

func TestRemoteAsGitResolvesIt(t *testing.T) {
	dir := temp(t)
	git(t, dir, "init", "-q", "-b", "main", ".")
	for _, kv := range [][2]string{{"remote.origin.url", "gh:o/r"}, {"url.https://git.example/.insteadOf", "gh:"}, {"url.https://git.example/special/.insteadOf", "gh:s/"},
		{"url.ssh://git@git.example/.pushInsteadOf", "gh:"}, {"remote.two.url", "gh:s/x"}, {"remote.two.pushurl", "gh:p/q"}, {"remote.three.url", "/srv/x"}} {
		git(t, dir, "config", "--add", kv[0], kv[1])
	}
	r, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Config("")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"origin", "two", "three"} {
		got, configured := c.Remote(name)
		fetch := strings.Fields(git(t, dir, "remote", "get-url", "--all", name))
		push := strings.Fields(git(t, dir, "remote", "get-url", "--push", "--all", name))
		if !configured || !slices.Equal(got.Fetch, fetch) || !slices.Equal(got.Push, push) {
			t.Errorf("%s: %+v, git says %v %v", name, got, fetch, push)
		}
	}
	if got, configured := c.Remote("gh:s/y"); configured || got.Fetch[0] != "https://git.example/special/y" {
		t.Errorf("an address: %+v %v", got, configured)
	}
	if c.DefaultRemote("main", true) != "origin" {
		t.Error("no origin")
	}
	git(t, dir, "config", "branch.main.pushRemote", "two")
	if c, _ = r.Config(""); c.DefaultRemote("main", true) != "two" || c.DefaultRemote("main", false) != "origin" {
		t.Error("branch.main.pushRemote does not count for a push only")
	}
}

func TestPointersOfARepository(t *testing.T) {
	dir := temp(t)
	root := dir + "/r"
	git(t, dir, "init", "-q", "-b", "main", root)
	git(t, root, "commit", "-q", "--allow-empty", "-m", "x")
	git(t, dir, "clone", "-q", root, dir+"/other")
	git(t, root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "--name", "deep/name", dir+"/other", "sub/one")
	git(t, root, "init", "-q", "link")
	git(t, root+"/link", "commit", "-q", "--allow-empty", "-m", "y")
	git(t, root, "add", "link")
	git(t, root, "worktree", "add", "-q", dir+"/tree")
	write(t, root+"/.git/modules/not/a/repository", "")
	git(t, root, "config", "include.path", "../shared.gitconfig")
	git(t, root, "config", "core.hooksPath", ".husky/_")
	write(t, root+"/.gitmodules", git(t, root, "show", ":.gitmodules")+"[submodule \"x\"]\n\tpath = unfetched\n[submodule \"y\"]\n\tpath = ../out\n")
	r, err := Find(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"2", "4"} {
		git(t, root, "update-index", "--index-version", version)
		p := r.Pointers("")
		want := Pointers{
			Trees:     []string{root + "/link", root + "/sub/one", root + "/unfetched"},
			GitDirs:   []string{root + "/.git/modules/deep", root + "/.git/modules/deep/name", root + "/.git/modules/not", root + "/.git/modules/not/a", root + "/link/.git"},
			Admin:     []string{root + "/.git/worktrees/tree"},
			Worktrees: []string{dir + "/tree/.git"},
			Includes:  []string{root + "/shared.gitconfig"},
			Hooks:     []string{root + "/.husky/_"},
		}
		if !equal(p, want) {
			t.Errorf("index version %s:\n%+v\nwant\n%+v", version, p, want)
		}
	}
}

func equal(a, b Pointers) bool {
	return slices.Equal(a.Trees, b.Trees) && slices.Equal(a.GitDirs, b.GitDirs) && slices.Equal(a.Admin, b.Admin) && slices.Equal(a.Worktrees, b.Worktrees) &&
		slices.Equal(a.Includes, b.Includes) && slices.Equal(a.Hooks, b.Hooks) && a.Truncated == b.Truncated
}

func TestGitlinksOfABrokenIndex(t *testing.T) {
	dir := temp(t)
	git(t, dir, "init", "-q", ".")
	for _, text := range []string{"", "DIRC", "DIRC\x00\x00\x00\x02\xff\xff\xff\xff", "DIRC\x00\x00\x00\x09\x00\x00\x00\x00", strings.Repeat("x", 100)} {
		write(t, dir+"/.git/index", text)
		r, err := Find(dir)
		if err != nil {
			t.Fatal(err)
		}
		if links, err := r.Gitlinks(); err == nil {
			t.Errorf("%q: %v", text, links)
		}
	}
}
