package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/gitrepo"
)

// repository is a world whose workspace is a git work tree with agent settings.
func repository(t *testing.T) (world, Profile) {
	t.Helper()
	w := newWorld(t)
	for name, text := range map[string]string{
		".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\tbare = false\n[alias]\n\tx = !true\n",
		".git/hooks/pre-commit": "#!/bin/sh\nexit 0\n", ".git/hooks/a.sample": "x", ".claude/settings.json": "{}",
		"src/file": "source\n", ".git/modules/m/HEAD": "x", ".git/modules/m/hooks/h": "hook",
		"shared/rules.md": "rules\n", ".VSCODE/tasks.json": "{}", ".VSCODE/other": "x",
	} {
		path := w.ws + "/" + name
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o754); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("shared", w.ws+"/.cursor"); err != nil {
		t.Fatal(err)
	}
	return w, w.profile(t, nil)
}

func guarded(t *testing.T, p Profile, state string) *protection {
	t.Helper()
	g, err := guardNames(p, state)
	if err != nil || g == nil {
		t.Fatalf("guard %v, %v", g, err)
	}
	return g
}

func TestProtectedNames(t *testing.T) {
	for _, tc := range []struct{ name, shell, want string }{
		{"nothing", `echo x >src/file; echo y >new; touch .git/index; mkdir -p .git/objects/aa`, ""},
		{"new settings", `mkdir .vscode; echo '{}' >.vscode/tasks.json`, "new .vscode/tasks.json quarantined"},
		{"new mcp", `echo '{}' >.mcp.json`, "new .mcp.json quarantined"},
		{"new tree", `mkdir -p .gemini/a; echo x >.gemini/a/b`, "new .gemini/a/b quarantined"},
		{"empty tree", `mkdir .gemini`, ""},
		{"changed settings", `echo evil >.claude/settings.json`, "changed .claude/settings.json restored"},
		{"removed settings", `rm -r .claude`, "removed .claude/settings.json restored"},
		{"new file in a tree", `echo x >.claude/hook.sh`, "new .claude/hook.sh quarantined"},
		{"new hook", `echo x >.git/hooks/post-checkout`, "new .git/hooks/post-checkout quarantined"},
		{"sample", `echo x >.git/hooks/b.sample`, ""},
		{"overwritten hook", `echo evil >.git/hooks/pre-commit`, "changed .git/hooks/pre-commit restored"},
		{"mode of a hook", `chmod 777 .git/hooks/pre-commit`, "changed .git/hooks/pre-commit restored"},
		{"replaced by the same", `cp -p .git/hooks/pre-commit h; mv h .git/hooks/pre-commit`, ""},
		{"hooks moved away", `mv .git/hooks .git/h; ln -s /tmp .git/hooks`,
			"changed .git/hooks restored; removed .git/hooks/pre-commit restored"},
		{"hook of a submodule", `echo evil >.git/modules/m/hooks/h`, "changed .git/modules/m/hooks/h restored"},
		{"behind a link", `echo evil >shared/rules.md`, "changed shared/rules.md restored"},
		{"link replaced", `rm .cursor; mkdir .cursor; echo x >.cursor/y`, "changed .cursor restored"},
		{"planted link", `ln -s src .codex`, "new .codex quarantined"},
		{"planted link outside", `ln -s ../home .codex`, "new .codex quarantined"},
		{"planted link to a directory of the user's", `mv .VSCODE x; echo '{}' >src/settings.json; ln -s src .vscode`,
			"new .vscode quarantined; removed .VSCODE/tasks.json restored"},
		{"another repository in its place", `mv .git g; cp -rp g .git; printf '[core]\n\tfsmonitor = evil\n' >>.git/config; echo x >.git/hooks/post-checkout`,
			"new .git/hooks/post-checkout quarantined; changed .git/config restored"},
		{"fifo", `mkfifo .envrc`, "new .envrc quarantined"},
		{"inert configuration", `printf '[remote "o"]\n\turl = https://h/r\n' >>.git/config`, ""},
		{"executable configuration", `printf '[core]\n\tfsmonitor = evil\n' >>.git/config`, "changed .git/config restored"},
		{"remote helper", `printf '[remote "o"]\n\turl = ext::sh -c x\n' >>.git/config`, "changed .git/config restored"},
		{"include", `printf '[include]\n\tpath = x\n' >>.git/config`, "changed .git/config restored"},
		{"worktree config", `echo x >.git/config.worktree`, "new .git/config.worktree quarantined"},
		{"git file", `mv .git g; echo 'gitdir: g' >.git`, "changed .git restored"},
		{"another case", `mkdir .Claude; echo x >.Claude/settings.json; echo x >.MCP.json`, "new .Claude/settings.json quarantined; new .MCP.json quarantined"},
		{"another case of a repository", `mkdir -p .GIT/hooks .git/Hooks; echo x >.GIT/hooks/post-merge; echo x >.git/Hooks/post-merge`,
			"new .GIT quarantined; new .git/Hooks/post-merge quarantined"},
		{"another case that was there", `echo x >.VSCODE/tasks.json`, "changed .VSCODE/tasks.json restored"},
		{"quoted remote helper", `printf '[remote "o"]\n\turl = ext:":"sh -c x\n' >>.git/config`, "changed .git/config restored"},
		{"remote helper as a remote", `printf '[branch "o"]\n\tremote = ext::sh\n' >>.git/config`, "changed .git/config restored"},
		{"too many to look at", `mkdir .agent-tools; (cd .agent-tools; seq 5000 | xargs touch); echo x >.mcp.json`, "new .agent-tools quarantined; new .mcp.json quarantined"},
		{"too many beside what was there", `cd .claude; seq 5000 | xargs touch; echo evil >settings.json`, "changed .claude restored; removed .claude/settings.json restored"},
		{"deeper than one looks", `d=.gemini/a/b/c/d/e/f/g/h/i/j/k; mkdir -p $d; echo x >$d/x`, "new .gemini quarantined"},
		{"larger than a disk", `truncate -s 4T .mcp.json`, "new .mcp.json quarantined"},
		{"larger than a disk, with another name", `truncate -s 4T big; ln big .mcp.json`, "new .mcp.json quarantined"},
		{"another name", `echo x >n; ln n .mcp.json`, "new .mcp.json quarantined"},
		{"no text", `mkdir .gemini; echo x >.gemini/$(printf '\377')`, "new .gemini/\xff quarantined"},
		{"cannot be listed", `mkdir .gemini; echo x >.gemini/x; chmod 311 .gemini`, "new .gemini/x quarantined"},
		{"cannot be changed", `mkdir .gemini; echo x >.gemini/x; chmod 555 .gemini; echo evil >.claude/settings.json; chmod 555 .claude`,
			"changed .claude/settings.json restored; new .gemini/x quarantined"},
		{"too many, and cannot be changed", `mkdir .gemini; (cd .gemini; seq 100 | xargs touch); chmod 555 .gemini`, "new .gemini quarantined"},
		{"cannot be entered", `mkdir .vscode; echo x >.vscode/mcp.json; chmod 0 .vscode`, "new .vscode/mcp.json quarantined"},
		{"workspace cannot be entered", `echo x >.mcp.json; chmod 0 .`, "new .mcp.json quarantined"},
		{"a directory of that name", `mkdir -p .mcp.json/a; echo x >.mcp.json/a/b`, "new .mcp.json quarantined"},
		{"socket, device and loop", `mkdir .gemini; mkfifo .gemini/p; ln -s loop .gemini/loop`, "new .gemini/loop quarantined; new .gemini/p quarantined"},
		{"unreadable", `echo x >.mcp.json; chmod 0 .mcp.json`, "new .mcp.json quarantined"},
	} {
		w, p := repository(t)
		p.GitDirs = []string{w.ws + "/.git"} // as a plan has it
		state := w.base + "/state"
		g := guarded(t, p, state)
		before, _ := os.ReadFile(w.ws + "/.git/hooks/pre-commit")
		cmd := exec.Command("/bin/sh", "-ec", tc.shell)
		cmd.Dir = w.ws
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", tc.name, err, out)
		}
		s := g.settle()
		var got []string
		for _, c := range s.Changes {
			got = append(got, c.What+" "+strings.TrimPrefix(c.Path, w.ws+"/")+" "+c.Action)
			if c.Kept != "" {
				if _, err := os.Lstat(c.Kept); err != nil {
					t.Errorf("%s: %v", tc.name, err)
				}
			}
		}
		if strings.HasPrefix(tc.name, "socket") {
			sort.Strings(got)
		}
		list := strings.Join(got, "; ")
		if list != tc.want && !(tc.name == "git file" && strings.HasPrefix(list, tc.want)) {
			t.Errorf("%s: %q, want %q; %+v", tc.name, list, tc.want, s.Changes)
		}
		after, _ := os.ReadFile(w.ws + "/.git/hooks/pre-commit")
		fi, err := os.Stat(w.ws + "/.git/hooks/pre-commit")
		if string(before) != string(after) || err != nil || fi.Mode().Perm() != 0o754 {
			t.Errorf("%s: the hook is %q, %v", tc.name, after, err)
		}
		if data, _ := os.ReadFile(w.ws + "/src/file"); len(data) == 0 {
			t.Errorf("%s: the source is gone", tc.name)
		}
		if left, _ := filepath.Glob(state + "/protect/*/pending/*"); len(left) != 0 {
			t.Errorf("%s: pending %v", tc.name, left)
		}
	}
}

// TestMoreThanCanBeCompared: of a directory that held more before the run than is noted, only
// what was noted is compared, and nothing of the user's is taken for new. The receipt says so.
func TestMoreThanCanBeCompared(t *testing.T) {
	w, p := repository(t)
	fill := func(dir string) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range maxEntries + 10 {
			if err := os.WriteFile(dir+"/"+strconv.Itoa(i), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(w.ws + "/.idea")
	g := guarded(t, p, w.base+"/state")
	if err := os.WriteFile(w.ws+"/.idea/more", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.ws+"/.mcp.json", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := g.settle()
	if len(s.Changes) != 1 || s.Changes[0].Path != w.ws+"/.mcp.json" || !s.Receipt().Truncated {
		t.Errorf("%+v", s)
	}
	if left, _ := os.ReadDir(w.ws + "/.idea"); len(left) != maxEntries+11 {
		t.Errorf("%d names are left", len(left))
	}

	// One that is new goes as it is, and comes back so.
	g = guarded(t, p, w.base+"/state")
	fill(w.ws + "/.gemini")
	if s = g.settle(); len(s.Changes) != 1 || s.Changes[0].Kept == "" {
		t.Fatalf("%+v", s)
	}
	if _, err := os.Lstat(w.ws + "/.gemini"); err == nil {
		t.Error("the directory stays")
	}
	all, err := Quarantines(w.base + "/state")
	if err != nil || len(all) != 2 {
		t.Fatalf("%v %v", all, err)
	}
	if done, err := all[1].Restore(nil, false); err != nil || len(done) != 1 {
		t.Errorf("%v %v", done, err)
	}
	if back, _ := os.ReadDir(w.ws + "/.gemini"); len(back) != maxEntries+10 {
		t.Errorf("%d names came back", len(back))
	}
	if _, err := all[1].Restore(nil, true); err == nil {
		t.Error("a directory is replaced")
	}
}

// TestQuarantineElsewhere: what cannot be moved to our directory gets another name, and
// can be put back from there.
func TestQuarantineElsewhere(t *testing.T) {
	w, p := repository(t)
	g := guarded(t, p, w.base+"/state")
	// A file where the directory of the quarantine would be: no place to move to.
	if err := os.WriteFile(g.dir+"/quarantine", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.ws+"/.mcp.json", []byte("planted"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := g.settle()
	if len(s.Changes) == 0 || s.Changes[0].Action != "quarantined" || !strings.HasPrefix(s.Changes[0].Kept, w.ws+"/.mcp.json.quarantined-") {
		t.Fatalf("%+v", s.Changes)
	}
	if _, err := os.Lstat(w.ws + "/.mcp.json"); err == nil {
		t.Error("the planted file stays")
	}
	if data, err := os.ReadFile(s.Changes[0].Kept); err != nil || string(data) != "planted" {
		t.Errorf("%q %v", data, err)
	}
}

// TestKilledWrapperIsSettledByTheNextRun: the record of a run is locked while it lives.
func TestKilledWrapperIsSettledByTheNextRun(t *testing.T) {
	w, p := repository(t)
	state := w.base + "/state"
	dead := guarded(t, p, state)
	if err := os.WriteFile(w.ws+"/.mcp.json", []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	alive := guarded(t, p, state) // settles nothing: dead's lock is held
	dead.close()                  // as the kernel does for a killed process
	g := guarded(t, p, state)
	if len(g.earlier) != 1 || g.earlier[0].Action != "quarantined" || len(alive.earlier) != 0 {
		t.Fatalf("settled %+v and %+v", g.earlier, alive.earlier)
	}
	if _, err := os.Lstat(w.ws + "/.mcp.json"); err == nil {
		t.Error("the planted file stays")
	}
	g.settle()
	alive.settle()
}

func TestNoGuardWithoutWrite(t *testing.T) {
	w, _ := repository(t)
	p := w.profile(t, func(in *Input) { in.Granted = 0 })
	if g, err := guardNames(p, w.base+"/state"); g != nil || err != nil {
		t.Errorf("guard of a run that writes nothing: %v %v", g, err)
	}
	var none *protection
	if s := none.settle(); s.Checked != 0 {
		t.Error("a missing guard settles something")
	}
}

// TestRunPutsProtectedNamesBack plants from inside the sandbox, by a process that
// outlives the child.
func TestRunPutsProtectedNamesBack(t *testing.T) {
	needLandlock(t, 1)
	w, p := repository(t)
	j := w.shell(p, "cd "+w.ws+`; echo evil >.git/hooks/pre-commit; (while :; do echo evil >.mcp.json; done) >/dev/null 2>&1 & while [ ! -e .mcp.json ]; do sleep 0.01; done`)
	j.State = w.base + "/state"
	r := confined(t, j)
	if len(r.Settlement.Changes) != 2 || r.Rest != "[]" || r.Err != "" {
		t.Errorf("settlement %+v, left %s, %s", r.Settlement, r.Rest, r.Err)
	}
	if data, _ := os.ReadFile(w.ws + "/.git/hooks/pre-commit"); strings.Contains(string(data), "evil") {
		t.Error("the hook stays")
	}
	if _, err := os.Lstat(w.ws + "/.mcp.json"); err == nil {
		t.Error("the settings stay")
	}
	j.State = w.ws + "/mine/x"
	if r := confined(t, j); r.Code != "E4102" {
		t.Errorf("no place for the record: %+v", r.brief())
	}
}

func TestInertGitConfig(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "[user]\nname = x": true, "[core]\n\tbare = false": true, "[CORE]\nBare = true ; c": true,
		"[core]\nhooksPath = x": false, "[core] fsmonitor = x": false, "[core]\\\nbare = x": false, "[user]name=x#\\\n": true, "[user][core]pager=x": false, "[alias]\nx = !y": false,
		"[branch \"a.b\"]\nremote = o\nmerge = refs/heads/x": true, "[branch \"a\"]\nx = y": false,
		"[remote \"o\"]\nurl = git@h:r\nfetch = +a:b": true, "[remote \"o\"]\nurl = --upload-pack=x": false,
		"[remote \"o\"]\nurl = \"ext::x\"": false, "[remote \"o\"]\nuploadpack = x": false,
		"[include]\npath = x": false, "[includeIf \"x\"]\npath = x": false, "[filter \"x\"]\nclean = y": false,
		"[extensions]\nworktreeConfig = true": false, "[url \"x\"]\ninsteadOf = y": false, "nonsense": false, "[a": false,
		"[remote \"o\"]\nurl = https://h/\\\nr": true, "[core \"x\"]\nbare = true": false, "[user] name = x\n[core]\neditor = y": false,
	} {
		if got := gitrepo.InertChange("", text); got != want {
			t.Errorf("%q: inert %v", text, got)
		}
	}
	if gitrepo.InertChange("[core]\nfsmonitor = false\n", "") {
		t.Error("a removed key that is not inert counts as inert")
	}
}

// FuzzInertGitConfig: git itself is the oracle. Whatever it reads from a text that
// counts as inert is an inert key.
func FuzzInertGitConfig(f *testing.F) {
	for _, s := range []string{"[core]\nfsmonitor=x", "[remote \"a\"]\nurl=ext::x", "[core]\n\\\nbare=x",
		"[user]\nname=a # \\\n[core]\npager=x", "[a \"]\"]b", "[user][core]pager=x", "[user] name=a\n[core \"a\"] bare\n",
		"[user]\r\nname=x\r\n[core]\npager=x", "[remote \"o\"]\nurl=\"e\"xt::x", "[remote \"o\"]\nurl=a\\\"b", "\ufeff[user]\nname=x",
		"[remote \"o\"]url=\"-\"x\n", "[Core]BARE=1;x\n[user.x]y=z"} {
		f.Add(s)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		git = ""
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		if !gitrepo.InertChange("", text) || git == "" {
			return
		}
		file := dir + "/config"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(git, "config", "-f", file, "--no-includes", "--list", "-z").Output()
		if err != nil {
			return // git runs nothing with a file it cannot read
		}
		for _, item := range strings.Split(string(out), "\x00") {
			if key, value, _ := strings.Cut(item, "\n"); item != "" && !gitrepo.Inert(key, value) {
				t.Errorf("%q: git reads %s = %q", text, key, value)
			}
		}
	})
}

func BenchmarkGuard(b *testing.B) {
	w := newWorld(b)
	for _, d := range []string{"/.git/hooks", "/.claude"} {
		if err := os.MkdirAll(w.ws+d, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	for _, f := range []string{"/.git/config", "/.git/hooks/x", "/.claude/settings.json"} {
		if err := os.WriteFile(w.ws+f, nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	p := w.profile(b, nil)
	for b.Loop() {
		g, err := guardNames(p, w.base+"/state")
		if err != nil {
			b.Fatal(err)
		}
		g.settle()
	}
}

// TestNewRepositories: what git directories a run has made is told, and left, but for hooks;
// those that were there are not told, whatever the run did in them.
func TestNewRepositories(t *testing.T) {
	w, p := repository(t)
	for _, dir := range []string{"old/.git", "kept/plain"} {
		if err := os.MkdirAll(w.ws+"/"+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func(shell string) Settlement {
		t.Helper()
		g := guarded(t, p, w.base+"/state")
		g.patience = time.Hour
		cmd := exec.Command("/bin/sh", "-ec", shell)
		cmd.Dir = w.ws
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		return g.settle()
	}
	// So that what the test has made itself is older than the run: a stamp can be finer, and
	// later, than the coarse clock of its time (multigrain timestamps, Linux 6.13).
	wait := func() {
		for now := time.Now(); !coarseNow().After(now); {
			runtime.Gosched()
		}
	}
	wait()
	s := run(`echo x >old/.git/index; mkdir -p a/b/.git/hooks c/.Git; echo x >a/b/.git/hooks/post-merge; echo 'gitdir: x' >src/.git; mv kept/plain kept/.git`)
	sort.Strings(s.Repositories)
	want := []string{w.ws + "/a/b/.git", w.ws + "/c/.Git", w.ws + "/kept/.git", w.ws + "/src/.git"}
	if !slices.Equal(s.Repositories, want) || s.Truncated || len(s.Changes) != 1 {
		t.Errorf("%v, want %v; %+v", s.Repositories, want, s)
	}
	if _, err := os.Stat(w.ws + "/a/b/.git/hooks/post-merge"); err == nil {
		t.Error("the hook of a new repository stays")
	}
	wait()
	if s := run(`echo x >a/b/.git/index`); len(s.Repositories) != 0 || s.Truncated {
		t.Errorf("the next run: %+v", s)
	}
	if s := run(`mkdir many; cd many; for i in $(seq 5000); do : >$i; done`); !s.Truncated {
		t.Error("more than is looked at, and nothing says so")
	}
	if r := (Settlement{Repositories: want, Truncated: true}).Receipt(); !slices.Equal(r.Repositories, want) || !r.Truncated {
		t.Errorf("receipt: %+v", r)
	}
}
