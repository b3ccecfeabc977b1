package main_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inside is a world with programs of the workspace that start atip-exec inside of a run,
// and a gh that is known and shows which credential it has.
type inside struct{ asker }

func newInside(t *testing.T) inside {
	t.Parallel()
	w := inside{asker{world: newWorldAtHome(t)}}
	w.tool("gh", `echo "gh $* token=$GH_TOKEN in=$(cat)"; echo "on stderr" >&2; case "$3" in 5) exit 5;; 15) kill -TERM $$;; 6*) exec sleep $3.25;; esac`)
	for name, text := range map[string]string{
		// What the sandbox gives to it, descriptors too.
		"ask.py": "import subprocess, sys\nsys.stdout.flush()\nsys.exit(subprocess.run(sys.argv[1:], close_fds=False).returncode)\n",
		// As most programs do it: without the descriptor.
		"closed.py": "import subprocess, sys\nsys.exit(subprocess.run(sys.argv[1:]).returncode)\n",
	} {
		if err := os.WriteFile(filepath.Join(w.ws, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(w.home, ".local/share/agent-tools/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.policy(w.vouched(""))
	return w
}

// vouched is a policy under which the gh of this world is known; more are further keys.
func (w inside) vouched(more string) string {
	w.t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.home, "stubs/gh"))
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprintf(`{"version":1,"trust":{"pins":{"gh":["sha256:%x"]}}%s}`, sha256.Sum256(raw), more)
}

func (w inside) run(change func(*exec.Cmd), args ...string) (status int, stdout, stderr string) {
	w.t.Helper()
	cmd := w.command(args...)
	cmd.Env = []string{"HOME=" + w.home, "GH_TOKEN=the-credential-of-this-test", "CI=",
		"PATH=" + filepath.Join(w.home, "stubs") + ":" + filepath.Join(w.home, ".local/share/agent-tools/bin") + ":/usr/local/bin:/usr/bin:/bin:" + bin}
	cmd.Stdin = strings.NewReader("typed")
	if change != nil {
		change(cmd)
	}
	var out, errors strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		if _, ok := err.(*exec.ExitError); !ok {
			w.t.Fatal(err)
		}
	}
	return cmd.ProcessState.ExitCode(), out.String(), errors.String()
}

// TestParentStartsWhatLacksACredential: the sandbox of a program of the workspace has no
// token, and gh inside of it works nevertheless: the parent run decides and starts it.
func TestParentStartsWhatLacksACredential(t *testing.T) {
	w := newInside(t)
	for at, tier := range []string{"T2", "T3"} {
		for name, text := range map[string]string{"tier.json": `{"version":1,"sandbox":{"tier":"` + tier + `"}}`, "more.json": `{"version":1}`} {
			if err := os.WriteFile(filepath.Join(w.ws, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for n, row := range []struct {
			name   string
			args   []string
			status int
			out    string
		}{
			// The control: neither the program nor what it starts by itself has the token.
			{"the program", []string{"ask.py", "sh", "-c", "echo token=$GH_TOKEN"}, 0, "token=\n"},
			{"gh by itself", []string{"ask.py", "gh", "pr", "list"}, 0, "gh pr list token= in=typed\n"},
			{"gh by the parent", []string{"ask.py", "atip-exec", "--", "gh", "pr", "list"}, 0, "gh pr list token=[REDACTED"},
			{"a text", []string{"ask.py", "atip-exec", "-c", "gh pr list"}, 0, "gh pr list token=[REDACTED"},
			{"its status", []string{"ask.py", "atip-exec", "--", "gh", "pr", "view", "5"}, 5, "gh pr view 5 token=[REDACTED"},
			{"its signal", []string{"ask.py", "atip-exec", "--", "gh", "pr", "view", "15"}, 143, "gh pr view 15 token=[REDACTED"},
			{"two runs deep", []string{"ask.py", "atip-exec", "--", "python3", "ask.py", "atip-exec", "--", "gh", "pr", "list"}, 0, "gh pr list token=[REDACTED"},
			// Nothing is started outside that has no need of it, or is no known tool.
			{"another command", []string{"ask.py", "atip-exec", "--", "sh", "-c", "echo token=$GH_TOKEN"}, 0, "token=\n"},
			{"something beside it", []string{"ask.py", "atip-exec", "-c", "gh pr list; echo ${GH_TOKEN#?}"}, 77, ""},
			{"other code beside it", []string{"ask.py", "atip-exec", "-c", "gh pr list; python3 -c 'print(1)'"}, 77, ""},
			{"a command that asks", []string{"ask.py", "atip-exec", "--", "gh", "pr", "create"}, 77, ""},
			{"a command that is denied", []string{"ask.py", "atip-exec", "-c", "rm -rf ~"}, 77, ""},
			{"without the descriptor", []string{"closed.py", "atip-exec", "--", "gh", "pr", "list"}, 77, ""},
			{"under more policies", []string{"ask.py", "atip-exec", "--policy", "more.json", "--", "gh", "pr", "list"}, 77, ""},
			{"under a profile", []string{"ask.py", "atip-exec", "--profile", "workspace", "--", "gh", "pr", "list"}, 77, ""},
		} {
			if !paired(n, at) {
				continue
			}
			status, out, stderr := w.run(nil, append([]string{"--policy", "tier.json", "--", "python3"}, row.args...)...)
			if status != row.status || !strings.HasPrefix(out, row.out) || row.out == "" && out != "" || strings.Contains(out+stderr, "the-credential") {
				t.Errorf("%s, %s: status %d, want %d: %q; %s", tier, row.name, status, row.status, out, stderr)
			}
			if strings.Contains(row.out, "token=[") && (!strings.Contains(out, "in=typed") || !strings.Contains(stderr, "on stderr")) {
				t.Errorf("%s, %s: streams: %q; %q", tier, row.name, out, stderr)
			}
		}
	}
	w.auditSummary()
}

// TestParentRecordsWhatItStarts: the run of the parent stands in the log as any other, and
// says who asked; what the inside says of itself names it.
func TestParentRecordsWhatItStarts(t *testing.T) {
	w := newInside(t)
	if status, _, stderr := w.run(nil, "--", "python3", "ask.py", "atip-exec", "--", "gh", "pr", "list"); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	by := map[string]map[string]any{}
	for _, rec := range w.records() {
		kind := fmt.Sprint(rec["kind"])
		if rec["asked_by"] != nil {
			kind = "asked"
		}
		by[kind] = rec
	}
	outer, own, inner := by["run"], by["asked"], by["nested"]
	if outer == nil || own == nil || inner == nil || own["asked_by"] != outer["id"] || own["kind"] != "run" || inner["inner"].(map[string]any)["started_by_parent"] != own["id"] || inner["unverified"] != true {
		t.Errorf("records: %v", by)
	}
	if env := own["env"].(map[string]any); !strings.Contains(fmt.Sprint(env["credentials"]), "GH_TOKEN") {
		t.Errorf("credentials of the parent's run: %v", env)
	}
	if env := outer["env"].(map[string]any); strings.Contains(fmt.Sprint(env["credentials"]), "GH_TOKEN") {
		t.Errorf("credentials of the outer run: %v", env)
	}
	w.auditSummary()
}

// TestParentsCommandEnds with whoever asked for it, with the run, and with a signal.
func TestParentsCommandEnds(t *testing.T) {
	w := newInside(t)
	awaits := func(line string) bool {
		for range 5000 {
			if alive(line) {
				return true
			}
			time.Sleep(20 * time.Millisecond)
		}
		return false
	}
	for i, row := range []struct {
		name   string
		tier   string
		change string // what ask.py does instead of waiting
		signal syscall.Signal
		flags  []string
		status int
	}{
		{"a signal", "T2", "", syscall.SIGTERM, nil, 143},
		{"a signal", "T3", "", syscall.SIGTERM, nil, 143},
		{"the wrapper killed", "T2", "", syscall.SIGKILL, nil, -1},
		{"a timeout of the run", "T2", "", 0, []string{"--timeout", "2"}, 124},
		{"a timeout of the run", "T3", "", 0, []string{"--timeout", "2"}, 124},
		{"the one who asked is killed", "T2", "p.kill()", 0, nil, 0},
		{"the one who asked is killed", "T3", "p.kill()", 0, nil, 0},
		{"the program ends", "T2", "os._exit(7)", 0, nil, 7},
		{"the program ends", "T3", "os._exit(7)", 0, nil, 7},
	} {
		number := fmt.Sprint(600 + i*10 + os.Getpid()%10)
		line := "sleep " + number + ".25"
		text := "import os, signal, subprocess, sys, time\np = subprocess.Popen(sys.argv[1:], close_fds=False, stdin=subprocess.DEVNULL)\n" +
			"while not os.path.exists('go'): time.sleep(0.02)\n" + row.change + "\nr = p.wait()\nsys.exit(0 if r == -9 else r)\n"
		for name, text := range map[string]string{"end.py": text, "tier.json": `{"version":1,"sandbox":{"tier":"` + row.tier + `"}}`} {
			if err := os.WriteFile(filepath.Join(w.ws, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_ = os.Remove(filepath.Join(w.ws, "go"))
		cmd := w.command(append(append([]string{"--policy", "tier.json"}, row.flags...), "--", "python3", "end.py", "atip-exec", "--", "gh", "pr", "view", number)...)
		cmd.Env = []string{"HOME=" + w.home, "GH_TOKEN=the-credential-of-this-test",
			"PATH=" + filepath.Join(w.home, "stubs") + ":" + filepath.Join(w.home, ".local/share/agent-tools/bin") + ":/usr/local/bin:/usr/bin:/bin:" + bin}
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// A timeout may come before a slow machine has started gh.
		if row.flags == nil && !awaits(line) {
			t.Errorf("%s, %s: gh was not started: %s", row.name, row.tier, stderr.String())
		}
		if row.change != "" {
			if err := os.WriteFile(filepath.Join(w.ws, "go"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if row.signal != 0 {
			cmd.Process.Signal(row.signal)
		}
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != row.status {
			t.Errorf("%s, %s: status %d, want %d: %s", row.name, row.tier, code, row.status, stderr.String())
		}
		gone(t, line)
		recorded := 0
		for _, rec := range w.records() {
			if rec["asked_by"] != nil && strings.HasSuffix(fmt.Sprint(rec["argv"]), " "+number+"]") {
				recorded++
			}
		}
		// Once it has started it is recorded, whatever ended it.
		if recorded == 0 && row.flags == nil {
			t.Errorf("%s, %s: no record of what the parent started", row.name, row.tier)
		}
	}
}
