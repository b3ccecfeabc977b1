package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestToolchainAtHome: a known tool in the user's own directories is believed as the system's is, and finds
// what lies beside it, by a PATH entry, by a shim or by a link. Where a run could have put it, it is not
// believed, and no run can put it there.
func TestToolchainAtHome(t *testing.T) {
	t.Parallel()
	const tool = "#!/bin/sh\n. \"$(dirname \"$(readlink -f \"$0\")\")/../lib/tool\"\n"
	for _, row := range []struct {
		name string
		dir  string // of the tool, below the home directory
		path string // of the entry of PATH, "" for dir
		with func(w world, dir string)
		want bool
	}{
		{"prefix", ".tool/bin", "", nil, true},
		{"clone of a version manager", ".nvm/bin", "", func(w world, _ string) { w.git(w.home + "/.nvm") }, true},
		{"shims", ".manager/shims", "", nil, true},
		{"link into a prefix", ".local/share/pipx/venvs/tool/bin", ".local/bin", nil, true},
		{"work tree of another project", "project/bin", "", func(w world, _ string) { w.git(w.home + "/project") }, false},
		{"below one", "project/deep/er/bin", "", func(w world, _ string) { w.git(w.home + "/project") }, false},
		{"link into a work tree", "project/bin", ".local/bin", func(w world, _ string) { w.git(w.home + "/project") }, false},
		{"others write it", ".tool/bin", "", func(_ world, dir string) { _ = os.Chmod(dir, 0o777) }, false},
		{"a policy lets runs write it", ".tool/bin", "", func(w world, _ string) { w.policy(`{"version":1,"sandbox":{"write":["~/.tool"]}}`) }, false},
		{"a policy lets runs write where a link leads to it", ".tool/bin", "", func(w world, _ string) {
			_ = os.Symlink(".tool", w.home+"/tools")
			w.policy(`{"version":1,"sandbox":{"write":["~/tools"]}}`)
		}, false},
		{"a rule lets a command write it", ".tool/bin", "", func(w world, _ string) {
			w.policy(`{"version":1,"rules":[{"id":"tools","decision":"allow","when":{"tool":"install","path":{"glob":["` + w.home + `/.tool/**"],"access":["write"]}},"grants":["write"]}]}`)
		}, false},
		{"a rule lets a command read it", ".tool/bin", "", func(w world, _ string) {
			w.policy(`{"version":1,"rules":[{"id":"tools","decision":"allow","when":{"tool":"ls","path":{"glob":["` + w.home + `/.tool/**"],"access":["read"]}},"grants":[]}]}`)
		}, true},
		{"a policy confines no run", ".tool/bin", "", func(w world, _ string) { w.policy(`{"version":1,"sandbox":{"confine":"none"}}`) }, false},
		{"registered directory", ".tool/bin", "", func(w world, _ string) {
			put(w.t, w.home+"/.config/agent-tools", map[string]string{"workspaces": w.home + "/.tool\n"})
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorldAtHome(t)
			dir := filepath.Join(w.home, row.dir)
			put(t, filepath.Dir(dir)+"/lib", map[string]string{"tool": "echo formatted >formatted\n"})
			put(t, dir, map[string]string{"black": tool})
			entry := dir
			err := os.Chmod(dir+"/black", 0o755)
			if row.path != "" {
				entry = filepath.Join(w.home, row.path)
				if err = os.MkdirAll(entry, 0o755); err == nil {
					err = os.Symlink(dir+"/black", entry+"/black")
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if row.with != nil {
				row.with(w, dir)
			}
			path := ""
			run := func(args ...string) (string, error) {
				cmd := w.command(args...)
				cmd.Env = []string{"HOME=" + w.home, "PATH=" + path}
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			system := "/usr/local/bin:/usr/bin:/bin:" + bin
			for _, way := range []struct {
				path string
				args []string
			}{
				{entry + ":" + system, []string{"--", "black", "."}},
				{entry + ":" + system, []string{"-c", "black . && true"}},
				// What the caller does not have in PATH.
				{system, []string{"--", entry + "/black", "."}},
				{system, []string{"-c", "true && ~/" + strings.TrimPrefix(entry, w.home+"/") + "/black ."}},
				{system, []string{"-c", "PATH=" + entry + ":$PATH black ."}},
				{system, []string{"-c", "if [ -d " + entry + " ]; then export PATH=\"" + entry + ":$PATH\"; fi; black ."}},
				{system, []string{"-c", "export PATH=\"$PATH:" + entry + "\" && sh -c 'black .'"}},
			} {
				path = way.path
				out, err := run(way.args...)
				if _, missing := os.Stat(w.ws + "/formatted"); (err == nil) != row.want || (missing == nil) != row.want {
					t.Errorf("%q: %v, want %v\n%s", way.args, err, row.want, out)
				} else if !row.want && !strings.Contains(out, "no trusted source") && !strings.Contains(out, "approval required") {
					t.Errorf("%q is refused for another reason\n%s", way.args, out)
				}
				_ = os.Remove(w.ws + "/formatted")
			}
			path = entry + ":" + system
			// With a network it is as any tool without a signature.
			put(t, dir, map[string]string{"gh": "#!/bin/sh\necho THE TOOL RAN\n"})
			if err := os.Chmod(dir+"/gh", 0o755); err != nil {
				t.Fatal(err)
			}
			_ = os.Symlink(dir+"/gh", entry+"/gh")
			if out, err := run("--", "gh", "pr", "list"); err == nil || strings.Contains(out, "THE TOOL RAN") || !strings.Contains(out, "no trusted source") {
				t.Errorf("a call with a network: %v\n%s", err, out)
			}
			if row.want {
				// The control: what a run has no right to, it does not do either.
				text := "import os\nopen('" + dir + "/black', 'a').write('#')\n"
				put(t, w.ws, map[string]string{"evil.py": text})
				if out, err := run("--", "python3", "evil.py"); err == nil {
					t.Errorf("a run wrote there\n%s", out)
				}
				if out, err := exec.Command("python3", w.ws+"/evil.py").CombinedOutput(); err != nil {
					t.Errorf("unconfined it must work: %v\n%s", err, out)
				}
			}
		})
	}
}

// git makes a repository that holds nothing.
func (w world) git(dir string) {
	w.t.Helper()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}
