package main_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAttackOrdinaryClone: none of what closes the attacks is felt in an ordinary clone, also
// with hooks, which are off and said to be once.
func TestAttackOrdinaryClone(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		a.commit("two")
		if out, err := a.run(a.ws, "--", "git", "fetch", "origin"); err != nil || !strings.Contains(out, "main") {
			t.Errorf("fetch: %v\n%s", err, out)
		}
		if out, err := a.run(a.ws, "--", "git", "pull"); err != nil || !strings.Contains(a.git(a.ws, "log", "-1", "--format=%s"), "two") {
			t.Errorf("pull: %v\n%s", err, out)
		}
		a.write(".husky/post-merge", a.program())
		a.git(a.ws, "config", "core.hooksPath", ".husky")
		a.commit("three")
		out, err := a.run(a.ws, "-c", "git pull && git log -1 --format=%s")
		if ran, _ := a.traces(); err != nil || ran || !strings.Contains(out, "three") || strings.Count(out, "hooks of this repository do not run") != 1 {
			t.Errorf("pull with husky: ran %v, %v\n%s", ran, err, out)
		}
		if got := a.git(a.ws, "config", "core.hooksPath"); got != ".husky\n" {
			t.Errorf("the setting is %q afterwards", got)
		}
		// What git writes into its settings is there afterwards, if it can run nothing.
		if out, err := a.run(a.ws, "--", "git", "fetch", "--set-upstream", "origin", "main"); err != nil {
			t.Errorf("fetch --set-upstream: %v\n%s", err, out)
		}
		a.git(a.ws, "checkout", "-q", "-b", "topic")
		if out, err := a.run(a.ws, "--", "git", "fetch", "--set-upstream", "origin", "main"); err != nil || a.git(a.ws, "config", "branch.topic.merge") != "refs/heads/main\n" {
			t.Errorf("the upstream of topic: %v\n%s", err, out)
		}
		if left, _ := os.ReadDir(a.home + "/.cache/atip-exec/git"); len(left) != 0 {
			t.Errorf("copies of settings are left: %v", left)
		}
	})
}

// TestAttackPath: a program that the workspace puts before the system's in PATH.
func TestAttackPath(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		a.git(a.ws, "remote", "add", "far", "ssh://127.0.0.1:1/x")
		a.write(".venv/bin/ssh", a.program())
		for _, path := range []string{a.ws + "/.venv/bin:", ".venv/bin:", a.ws + "/some/../.venv/bin:"} {
			_ = os.MkdirAll(a.ws+"/some", 0o755)
			a.path = path
			_, _ = a.plain(a.ws, "git", "fetch", "far")
			if ran, rights := a.traces(); !ran || rights != "network key outside" {
				t.Errorf("%s: plain git: ran %v, %q", path, ran, rights)
			}
			out, _ := a.run(a.ws, "--", "git", "fetch", "far")
			if ran, _ := a.traces(); ran {
				t.Errorf("%s: it ran\n%s", path, out)
			}
		}
	})
}

// TestAttackFlip: another run changes the settings between the plan and their use.
func TestAttackFlip(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		raw, err := os.ReadFile(a.ws + "/.git/config")
		if err != nil {
			t.Fatal(err)
		}
		plain := string(raw)
		hostile := plain + "[core]\n\tsshCommand = " + a.payload + "\n\tfsmonitor = " + a.payload + "\n\tgitProxy = " + a.payload + "\n[url \"ssh://127.0.0.1:1/\"]\n\tinsteadOf = git://127.0.0.1\n"
		flip := func(f func()) {
			stop, stopped := make(chan bool), make(chan bool)
			go func() {
				defer close(stopped)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					text := plain
					if i%2 == 0 {
						text = hostile
					}
					if os.WriteFile(a.ws+"/.git/flip", []byte(text), 0o644) == nil {
						_ = os.Rename(a.ws+"/.git/flip", a.ws+"/.git/config")
					}
					time.Sleep(time.Millisecond)
				}
			}()
			f()
			close(stop)
			<-stopped
			_ = os.WriteFile(a.ws+"/.git/config", raw, 0o644)
			a.own(a.ws)
		}
		// Who wins a race hangs on the machine: it is run until each side has won once.
		const most = 400
		rights := ""
		flip(func() {
			for i := 0; i < 10 || !strings.Contains(rights, "network key outside") && i < most; i++ {
				_, _ = a.plain(a.ws, "git", "fetch", "origin")
				_, got := a.traces()
				rights += got
			}
		})
		if !strings.Contains(rights, "network key outside") {
			t.Errorf("plain git: %q: the race proves nothing", rights)
		}
		fetched, tries := 0, 0
		flip(func() {
			for i := 0; i < 16 || fetched == 0 && i < most; i++ {
				tries++
				words := []string{"--", "git", "fetch", "origin"}
				if i%2 == 1 {
					words = []string{"-c", "git fetch origin && git pull"}
				}
				if out, err := a.run(a.ws, words...); err == nil {
					fetched++
				} else if _, rights := a.traces(); rights != "" {
					t.Errorf("%v: %s", err, out)
				}
			}
		})
		if ran, rights := a.traces(); ran && rights != "" || fetched == 0 {
			t.Errorf("it ran with %q; %d of %d were planned before the change", rights, fetched, tries)
		}
	})
}

// TestAttackEntitlement: a tool that is entitled to a credential runs the project's code.
func TestAttackEntitlement(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		put(t, a.home, map[string]string{".npmrc": "//registry.example.invalid/:_authToken=synthetic-" + strings.Repeat("x", 8) + "\n"})
		a.own(a.home)
		a.write("package.json", `{"name":"x","version":"1.0.0","scripts":{"test":"python3 look.py"}}`)
		a.write("look.py", "import os\nfor name in '.npmrc', '.ssh/id_ed25519':\n  try: print(name, len(open(os.path.expanduser('~/' + name)).read()))\n  except OSError as e: print(name, 'no')\nprint('token', len(os.environ.get('NPM_TOKEN', '')))\n")
		token := "npm_" + strings.Repeat("a1B2", 9)
		script := func(run func(dir string, args ...string) (string, error), args ...string) string {
			out, _ := run(a.ws, args...)
			return out
		}
		with := "NPM_TOKEN=" + token
		control := script(func(dir string, args ...string) (string, error) { return a.plain(dir, "env", args...) }, with, "npm", "test", "--silent")
		if !strings.Contains(control, "token 40") || strings.Contains(control, " no") {
			t.Fatalf("plain npm test sees no credential: %s", control)
		}
		a.extra = []string{with}
		out := script(a.run, "--", "npm", "test", "--silent")
		if !strings.Contains(out, "token 0") || strings.Count(out, " no\n") != 2 {
			t.Errorf("npm test:\n%s", out)
		}
	})
}

// TestAttackEntitledTools: tools whose documents entitle them to credentials get none of them for
// a command that runs code of the project, and the same tools get theirs where they do not.
func TestAttackEntitledTools(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		stubs, pins := a.dir+"/stubs", []string{}
		for _, name := range []string{"ansible-playbook", "terraform", "npm", "gh"} {
			// A provider, a plugin, a script of the package: code that the project chooses.
			text := "#!/bin/bash\nexec python3 look.py " + name + "\n"
			put(t, stubs, map[string]string{name: text})
			_ = os.Chmod(stubs+"/"+name, 0o755)
			pins = append(pins, fmt.Sprintf("%q:[\"sha256:%x\"]", name, sha256.Sum256([]byte(text))))
		}
		tier := strings.Split(t.Name(), "/")[1]
		put(t, a.home, map[string]string{".config/agent-tools/policy.json": `{"version":1,"sandbox":{"tier":"` + tier + `"},"trust":{"pins":{` + strings.Join(pins, ",") + `}}}`,
			".terraform.d/credentials.tfrc.json": "{}", ".terraformrc": "x", ".npmrc": "x", ".config/gh/hosts.yml": "x", ".aws/credentials": "x", ".vault-token": "x"})
		a.own(a.home)
		a.path = stubs + ":"
		a.write("site.yml", "- hosts: all\n")
		a.write("main.tf", "")
		a.write("package.json", `{"scripts":{"test":"look","build":"look"}}`)
		files := []string{".ssh/id_ed25519", ".terraform.d/credentials.tfrc.json", ".terraformrc", ".npmrc", ".config/gh/hosts.yml", ".aws/credentials", ".vault-token"}
		names := []string{"NPM_TOKEN", "GH_TOKEN", "TF_TOKEN_app_terraform_io", "AWS_SECRET_ACCESS_KEY", "ANSIBLE_VAULT_PASSWORD", "SSH_AUTH_SOCK"}
		a.write("look.py", "import os\nfor n in '"+strings.Join(files, " ")+"'.split():\n  try: open(os.path.expanduser('~/' + n)).read(); print('has', n)\n  except OSError: pass\n"+
			"for n in '"+strings.Join(names, " ")+"'.split():\n  if os.environ.get(n): print('has', n)\n")
		for _, name := range names {
			a.extra = append(a.extra, name+"=synthetic-"+strings.Repeat("a1B2", 9))
		}
		for _, words := range [][]string{{"ansible-playbook", "--syntax-check", "site.yml"}, {"ansible-playbook", "--list-tasks", "site.yml"}, {"terraform", "validate"}, {"terraform", "providers", "schema", "-json"}, {"npm", "test"}, {"npm", "run", "build"},
			{"sh", "-c", "npm test"}, {"env", "npm", "t"}, {"timeout", "9", "terraform", "validate"}} {
			if out, err := a.plain(a.ws, "env", append(append([]string(nil), a.extra...), words...)...); strings.Count(out, "has ") != len(files)+len(names) {
				t.Errorf("%v without us: %v\n%s", words, err, out)
			}
			if out, err := a.run(a.ws, append([]string{"--"}, words...)...); err != nil || strings.Contains(out, "has ") {
				t.Errorf("%v: %v\n%s", words, err, out)
			}
		}
		// What is entitled and runs no code of the project has what it needs, and shares it with no code.
		a.write("look.py", "import os\nif os.environ.get('GH_TOKEN'): print('code has GH_TOKEN')\n")
		text := "#!/bin/bash\n[ -z \"$GH_TOKEN\" ] || echo has GH_TOKEN\n"
		put(t, stubs, map[string]string{"gh": text})
		put(t, a.home, map[string]string{".config/agent-tools/policy.json": fmt.Sprintf(`{"version":1,"sandbox":{"tier":"%s"},"trust":{"pins":{"gh":["sha256:%x"]}}}`, tier, sha256.Sum256([]byte(text)))})
		a.own(a.home)
		if out, err := a.run(a.ws, "--", "gh", "pr", "list"); err != nil || !strings.Contains(out, "has GH_TOKEN") {
			t.Errorf("gh by itself: %v\n%s", err, out)
		}
		for _, text := range []string{"gh pr list; python3 look.py", "gh pr list | python3 look.py", "python3 look.py & gh pr list; wait"} {
			if out, err := a.run(a.ws, "-c", text); err != nil || strings.Contains(out, "code has GH_TOKEN") || strings.HasPrefix(out, "has GH_TOKEN") == strings.Contains(text, "|") {
				t.Errorf("%s: %v\n%s", text, err, out)
			}
		}
	})
}

// TestAttackPlants: what a run leaves where git follows its own pointers does not run at the
// user's next git status.
func TestAttackPlants(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		a.git(a.ws, "submodule", "add", "-q", a.url("up.git"), "sub")
		a.git(a.ws, "submodule", "add", "-q", "--name", "deep/name", a.url("up.git"), "third/sub")
		a.git(a.ws, "clone", "-q", a.url("up.git"), "linked")
		a.git(a.ws, "add", "linked")
		a.git(a.ws, "clone", "-q", a.url("up.git"), "alone")
		a.git(a.ws, "commit", "-q", "-m", "trees")
		a.git(a.ws, "worktree", "add", "-q", a.ws+"/tree", "-b", "tree")
		a.write("shared.gitconfig", "[color]\n\tui = false\n")
		a.git(a.ws, "config", "include.path", "../shared.gitconfig")
		a.write(".gitmodules", a.git(a.ws, "show", ":.gitmodules")+"[submodule \"un\"]\n\tpath = unfetched\n\turl = "+a.url("up.git")+"\n")
		setting := "[core]\\n\\tfsmonitor = " + a.payload + "\\n"
		for _, plant := range []struct{ name, shell, dir string }{
			{"config of a submodule", "printf '" + setting + "' >>.git/modules/sub/config", "."},
			{"config of a submodule with a name of two parts", "printf '" + setting + "' >>.git/modules/deep/name/config", "."},
			{"config of a gitlink", "printf '" + setting + "' >>linked/.git/config", "."},
			{"config of a nested repository", "printf '" + setting + "' >>alone/.git/config", "alone"},
			{"file that is included", "printf '" + setting + "' >>shared.gitconfig", "."},
			{"hook of a submodule", "cp evil .git/modules/sub/hooks/post-index-change; echo x >>sub/file", "sub"},
			{"config.worktree of a work tree", "git config extensions.worktreeConfig true; printf '" + setting + "' >.git/worktrees/tree/config.worktree", "tree"},
			{".git of a submodule", "cp -r linked/.git hidden; printf '" + setting + "' >>hidden/config; echo 'gitdir: ../hidden' >sub/.git", "."},
			{"submodule that was not fetched", "cp -r linked/.git .git/modules/un; printf '" + setting + "' >>.git/modules/un/config; mkdir -p unfetched; echo 'gitdir: ../.git/modules/un' >unfetched/.git", "unfetched"},
		} {
			control := a.dir + "/control"
			os.RemoveAll(control)
			if out, err := a.plain(a.dir, "cp", "-a", a.ws, control); err != nil {
				t.Fatal(out)
			}
			status := func(root string) (bool, string) {
				out, _ := a.plain(filepath.Join(root, plant.dir), "git", "status")
				ran, _ := a.traces()
				return ran, out
			}
			// By hand: git worktree repair would also turn the pointer of the original to the copy.
			put(t, control, map[string]string{"tree/.git": "gitdir: " + control + "/.git/worktrees/tree\n", ".git/worktrees/tree/gitdir": control + "/tree/.git\n"})
			if out, err := a.plain(control, "sh", "-ec", plant.shell); err != nil {
				t.Errorf("%s: control: %v %s", plant.name, err, out)
			}
			if ran, out := status(control); !ran && !strings.Contains(plant.name, "hook") {
				t.Errorf("%s: nothing runs unconfined: the row proves nothing\n%s", plant.name, out)
			}
			a.write("plant.py", fmt.Sprintf("import subprocess\nsubprocess.call(['sh', '-c', %q])\n", plant.shell))
			out, err := a.run(a.ws, "--", "python3", "plant.py")
			if err != nil {
				t.Errorf("%s: %v\n%s", plant.name, err, out)
			}
			_, _ = a.plain(a.ws, "rm", "-f", "ran", "rights")
			if ran, after := status(a.ws); ran {
				t.Errorf("%s: it runs at the next git status\n%s\n%s", plant.name, out, after)
			}
			if !strings.Contains(out, "E4111") && !strings.Contains(out, "Read-only") {
				t.Errorf("%s: nothing is said\n%s", plant.name, out)
			}
			// The next row begins with what was there.
			if out, err := a.plain(a.dir, "sh", "-ec", "rm -rf ws/hidden ws/unfetched ws/.git/modules/un; cd ws; git config --unset extensions.worktreeConfig || :; echo 'gitdir: ../.git/modules/sub' >sub/.git"); err != nil {
				t.Error(out)
			}
		}
	})
}
