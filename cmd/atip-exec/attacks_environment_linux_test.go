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

// TestAttackPathVariables: a variable of the caller that names a directory opens none of the
// places that a run must not have, however the name is spelled.
func TestAttackPathVariables(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		for name, text := range map[string]string{"go.mod": "module x\n", "package.json": "{}", "pyproject.toml": "", "Cargo.toml": "[package]\n", "pom.xml": "<project/>",
			"look.py": "import os\nfor name in open('names').read().split():\n  try: print('read', name, open(name).read())\n  except OSError: pass\n"} {
			a.write(name, text)
		}
		put(t, a.home, map[string]string{".ssh/registry/x": "synthetic", ".ssh/toolchains/x": "synthetic", ".ssh/_cacache/x": "synthetic", ".ssh/pkg/mod/x": "synthetic",
			".config/autostart/x": "synthetic", ".local/state/atip-exec/x": "synthetic"})
		a.own(a.home)
		if err := os.Symlink(a.home+"/.ssh", a.ws+"/cache"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("..", a.ws+"/up"); err != nil {
			t.Fatal(err)
		}
		spelled := []string{a.home + "/.ssh", a.ws + "/cache", a.ws + "/../home/.ssh", "../home/.ssh", "/proc/self/root" + a.home + "/.ssh", a.ws + "/up/home/.ssh", "/proc/self/cwd/../home/.ssh", a.home + "/.ssh/../.ssh/.",
			a.home + "/.config/autostart", a.home + "/.local/state/atip-exec", a.home}
		var files []string
		for _, name := range []string{".ssh/id_ed25519", ".ssh/registry/x", ".ssh/toolchains/x", ".ssh/_cacache/x", ".ssh/pkg/mod/x", ".config/autostart/x", ".local/state/atip-exec/x"} {
			files = append(files, a.home+"/"+name)
		}
		a.write("names", strings.Join(files, "\n"))
		look := []string{"python3", "look.py"}
		if out, err := a.plain(a.ws, "env", look...); err != nil || strings.Count(out, "read") != len(files) {
			t.Fatalf("without us: %v %s", err, out)
		}
		offset := len(t.Name()) // another part of the pairs in each world
		for i, name := range []string{"PATH", "GOMODCACHE", "GOCACHE", "GOPATH", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR", "RUSTUP_HOME", "CARGO_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "TMPDIR", "ATIP_CACHE_DIR", "GIT_DIR"} {
			for k, dir := range spelled {
				if (i+k+offset)%4 != 0 && os.Getenv("MORE_STAGES") == "" {
					continue
				}
				value := name + "=" + dir
				if name == "PATH" {
					value += ":/usr/local/bin:/usr/bin:/bin"
				}
				a.extra = []string{value}
				if out, _ := a.run(a.ws, append([]string{"--"}, look...)...); strings.Contains(out, "read ") {
					t.Errorf("%s: %s", value, out)
				}
			}
		}
		// The gate is no wall: a cache of its own is used.
		put(t, a.home, map[string]string{"caches/pip/x": "mine"})
		a.own(a.home)
		a.extra = []string{"RUSTUP_HOME=" + a.home + "/caches"}
		put(t, a.home, map[string]string{"caches/toolchains/x": "mine"})
		a.own(a.home)
		a.write("names", a.home+"/caches/toolchains/x")
		if out, _ := a.run(a.ws, append([]string{"--"}, look...)...); !strings.Contains(out, "mine") {
			t.Errorf("an ordinary directory: %s", out)
		}
	})
}

// listed makes a copy of our program for which only the home directory of this world counts,
// as if an administrator had listed it: other directories that the environment names count for
// nothing. The program holds the path of the list.
func (a *attacked) listed() string {
	a.t.Helper()
	raw, err := os.ReadFile(filepath.Join(bin, "atip-exec"))
	if err != nil {
		a.t.Fatal(err)
	}
	was := filepath.Join(bin, "homes")
	own := filepath.Base(a.dir)
	own = own[strings.LastIndexByte(own, '-')+1:]
	is := "/var/tmp/" + strings.Repeat("h", max(1, len(was)-len("/var/tmp/")-len(own))) + own
	text := string(raw)
	if len(is) != len(was) || !strings.Contains(text, was) {
		a.t.Fatalf("the list of homes is not %s, or %s does not fit", was, is)
	}
	put(a.t, "/var/tmp", map[string]string{filepath.Base(is): a.home + "\n"})
	a.t.Cleanup(func() { os.Remove(is) })
	put(a.t, a.dir+"/listed", map[string]string{"atip-exec": strings.ReplaceAll(text, was, is)})
	if err := os.Chmod(a.dir+"/listed/atip-exec", 0o755); err != nil {
		a.t.Fatal(err)
	}
	return a.dir + "/listed/atip-exec"
}

// TestAttackOwnDirectories: the environment leads to no other policy than the account's, and a
// workspace holds neither our directories nor a link by which they are found.
func TestAttackOwnDirectories(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		listed := a.listed()
		a.write("loose/agent-tools/policy.json", `{"version":1,"approval":{"command":"echo x >`+a.home+`/outside"}}`)
		a.write("loose/agent-tools/approval.sh", a.program())
		asks := []string{"env", "XDG_CONFIG_HOME=" + a.ws + "/loose", "", "--", "git", "push", "origin", "main"}
		ran := func(program string) bool {
			asks[2] = program
			_, _ = a.plain(a.ws, asks[0], asks[1:]...)
			looks, pause := 3000, 20*time.Millisecond
			if program == listed { // it never happens
				looks, pause = 100, time.Millisecond
			}
			for range looks {
				if _, err := os.Stat(a.home + "/outside"); err == nil {
					os.Remove(a.home + "/outside")
					return true
				}
				time.Sleep(pause)
			}
			return false
		}
		if !ran(filepath.Join(bin, "atip-exec")) {
			t.Error("where XDG_CONFIG_HOME counts, its approval.command does not run: the row proves nothing")
		}
		if ran(listed) {
			t.Error("approval.command of a directory that the environment names ran")
		}

		// Each of these worked: what lies there decides over other runs, and a run could write it.
		aside := a.dir + "/aside"
		put(t, aside, map[string]string{"x": ""})
		a.own(aside)
		for _, row := range []struct {
			name, value string
			link        [2]string // at, to
		}{
			{"a cache in the workspace", "XDG_CACHE_HOME=" + a.ws + "/c", [2]string{}},
			{"a state in the workspace", "XDG_STATE_HOME=" + a.ws + "/s", [2]string{}},
			{"a link in the place of a directory", "XDG_CACHE_HOME=" + aside, [2]string{aside + "/atip-exec", a.ws + "/c"}},
			{"a state through a link of the workspace", "XDG_STATE_HOME=" + a.ws + "/l", [2]string{a.ws + "/l", aside}},
			{"a state through two", "XDG_STATE_HOME=" + aside + "/two", [2]string{aside + "/two", a.ws + "/l"}},
			{"data through a link and ..", "XDG_DATA_HOME=" + a.ws + "/l/../aside", [2]string{}},
		} {
			if row.link[0] != "" {
				if err := os.Symlink(row.link[1], row.link[0]); err != nil {
					t.Fatal(err)
				}
			}
			a.extra = []string{row.value}
			out, err := a.run(a.ws, "--", "python3", "-c", "open('planted', 'w')")
			if _, lerr := os.Stat(a.ws + "/planted"); lerr == nil || err == nil {
				t.Errorf("%s: the workspace can be written: %v\n%s", row.name, err, out)
			}
			os.Remove(a.ws + "/planted")
			if row.link[0] == aside+"/atip-exec" {
				os.Remove(row.link[0])
			}
		}
		a.extra = nil
		os.Remove(a.ws + "/l")
		if out, err := a.run(a.ws, "--", "python3", "-c", "open('planted', 'w')"); err != nil {
			t.Errorf("without them: %v\n%s", err, out)
		}
	})
}

// TestAttackSteering: variables that lead a known tool with network elsewhere, to a program, a
// proxy or an authority of the caller's, count like its words.
func TestAttackSteering(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		stubs := a.dir + "/stubs"
		put(t, stubs, map[string]string{
			"kubectl": "#!/bin/bash\nfor f in ${KUBECONFIG//:/ }; do p=$(sed -n 's/^exec: //p' $f); [ -z \"$p\" ] || $p; done 2>/dev/null\necho kubectl of this world\n",
			"gh":      "#!/bin/bash\necho gh by \"$HTTPS_PROXY$https_proxy$ALL_PROXY\" with \"$SSL_CERT_FILE$NODE_EXTRA_CA_CERTS\"\n",
		})
		pins := map[string]string{}
		for _, name := range []string{"kubectl", "gh"} {
			_ = os.Chmod(stubs+"/"+name, 0o755)
			raw, err := os.ReadFile(stubs + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			pins[name] = fmt.Sprintf(`["sha256:%x"]`, sha256.Sum256(raw))
		}
		tier := strings.Split(strings.Split(t.Name(), "/")[1], "/")[0]
		put(t, a.home, map[string]string{".config/agent-tools/policy.json": `{"version":1,"sandbox":{"tier":"` + tier + `"},"trust":{"pins":{"kubectl":` + pins["kubectl"] + `,"gh":` + pins["gh"] + `}}}`,
			".kube/config": "", ".kube/cache/x": ""})
		a.own(a.home)
		a.path = stubs + ":"
		a.write("kc", "exec: "+a.payload+"\n")
		a.write("ca.pem", "")
		if err := os.Symlink(a.ws+"/kc", a.home+"/kc"); err != nil {
			t.Fatal(err)
		}
		get, list := []string{"kubectl", "get", "pods"}, []string{"gh", "pr", "list"}
		for _, words := range [][]string{get, list} {
			if out, err := a.run(a.ws, append([]string{"--"}, words...)...); err != nil {
				t.Errorf("%v without variables: %v\n%s", words, err, out)
			}
		}
		for _, row := range []struct {
			value string
			words []string
		}{
			{"KUBECONFIG=./kc", get}, {"KUBECONFIG=kc", get}, {"KUBECONFIG=" + a.ws + "/kc", get}, {"KUBECONFIG=" + a.home + "/.kube/config:kc", get}, {"KUBECONFIG=" + a.home + "/kc", get}, {"KUBECONFIG=/proc/self/cwd/kc", get},
			{"HTTPS_PROXY=http://127.0.0.1:1", list}, {"https_proxy=proxy.example.invalid:3128", list}, {"ALL_PROXY=socks5://127.0.0.1:1", list},
			{"SSL_CERT_FILE=" + a.ws + "/ca.pem", list}, {"SSL_CERT_FILE=ca.pem", list}, {"NODE_EXTRA_CA_CERTS=./ca.pem", list},
		} {
			// Outside the variable leads the tool: its program runs, or it is told of another way.
			a.extra = nil
			out, _ := a.plain(a.ws, "env", append([]string{row.value}, row.words...)...)
			_, value, _ := strings.Cut(row.value, "=")
			if _, rights := a.traces(); !strings.Contains(rights, "network key") && !strings.Contains(out, value) {
				t.Errorf("%s: without us: %s", row.value, out)
			}
			lines := [][]string{append([]string{"--"}, row.words...), {"-c", row.value + " " + strings.Join(row.words, " ")}}
			for i, line := range lines {
				if a.extra = nil; i == 0 {
					a.extra = []string{row.value}
				}
				out, err := a.run(a.ws, line...)
				if _, rights := a.traces(); rights != "" || err == nil || !strings.Contains(out, "E2010") {
					t.Errorf("%s %v: %q (%v)\n%s", row.value, line, rights, err, out)
				}
			}
		}
	})
}

// TestAttackTmpdir: a program is not planted where the next shell finds it.
func TestAttackTmpdir(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, a *attacked) {
		plant := a.home + "/.local/bin"
		put(t, plant, map[string]string{"other": ""})
		a.own(a.home)
		// What a run leaves in a /tmp of its own goes to that of the machine, so that it has a name of this test.
		tool := filepath.Base(a.dir)
		t.Cleanup(func() { os.Remove("/tmp/" + tool) })
		a.write("copy.py", "import os, shutil\nshutil.copy('evil', os.environ['TMPDIR'] + '/"+tool+"')\n")
		for _, value := range []string{plant, a.home + "/.local/../.local/bin", "/proc/self/root" + plant, "../home/.local/bin"} {
			for _, words := range [][]string{{"-c", "cp evil $TMPDIR/" + tool}, {"-c", "cp evil \"$TMPDIR\"/" + tool}, {"-c", "cat evil >$TMPDIR/" + tool}, {"--", "python3", "copy.py"}, {"-c", "TMPDIR=" + value + " python3 copy.py"}} {
				a.extra = []string{"TMPDIR=" + value}
				plain := []string{"TMPDIR=" + value, "bash", "-c", words[1]}
				if len(words) > 2 {
					plain = append([]string{"TMPDIR=" + value}, words[1:]...)
				}
				out, _ := a.plain(a.ws, "env", plain...)
				if _, err := os.Stat(plant + "/" + tool); err != nil {
					t.Errorf("%s %v: not planted without us: %s", value, words, out)
				}
				os.Remove(plant + "/" + tool)
				out, err := a.run(a.ws, words...)
				if _, lerr := os.Stat(plant + "/" + tool); lerr == nil {
					t.Errorf("%s %v: planted (%v)\n%s", value, words, err, out)
				}
				os.Remove(plant + "/" + tool)
			}
		}
	})
}
