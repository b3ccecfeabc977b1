package main_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeniedToolBelowCode: what a document denies does not start below code of the workspace
// either, whatever way it is started and whatever it is called there.
func TestDeniedToolBelowCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const tool = "/usr/bin/factor"
	raw, err := os.ReadFile(tool)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(w.ws, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("copy", string(raw), 0o755)
	write("by-line", "#!"+tool+"\n", 0o755)
	write("Makefile", "all:\n\t@factor 12\n", 0o644)
	write("script.sh", "#!/bin/sh\nfactor 12\n", 0o755)
	write("run.py", "import subprocess\nsubprocess.run(['factor', '12'])\n", 0o644)
	write("fork.py", "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.execvp('factor', ['factor', '12'])\n    os._exit(0)\nos.wait(); time.sleep(0.5)\n", 0o644)
	write("descriptor.py", "import os\nfd = os.open('/usr/bin/factor', os.O_PATH)\nos.execve(fd, ['other', '12'], {})\n", 0o644)
	write("other-name.py", "import os\nos.execv('/usr/bin/factor', ['true', '12'])\n", 0o644)
	write("thread.py", "import subprocess, threading\nt = threading.Thread(target=lambda: subprocess.run(['factor', '12']))\nt.start(); t.join()\n", 0o644)
	ways := [][]string{{"make"}, {"./script.sh"}, {"python3", "run.py"}, {"python3", "fork.py"}, {"python3", "descriptor.py"}, {"python3", "other-name.py"}, {"python3", "thread.py"},
		{"sh", "-c", "make; ./script.sh"}, {"python3", "-c", "import os; os.system('nohup factor 12; setsid factor 12; ./copy 12; env factor 12')"}, {"python3", "-c", "import os; os.system('./copy 12')"}}
	deny := `{"version":1,"rules":[{"id":"no-factor","decision":"deny","when":{"tool":["factor","sha256:` + hex.EncodeToString(sum[:]) + `"]},"match":["factor 12"],"notMatch":["sort a"]}]}`
	for at, tier := range []string{"T2", "T3"} {
		for n, way := range ways {
			if !paired(n, at) {
				continue
			}
			run := func(policy string) string {
				t.Helper()
				w.policy(strings.Replace(policy, `"version":1,`, `"version":1,"sandbox":{"tier":"`+tier+`"},`, 1))
				cmd := w.command(append([]string{"--status-file", filepath.Join(w.home, "status.json"), "--"}, way...)...)
				out, err := cmd.CombinedOutput()
				if _, exited := err.(*exec.ExitError); err != nil && !exited {
					t.Fatal(err)
				}
				return string(out)
			}
			if out := run(`{"version":1,"rules":[]}`); !strings.Contains(out, "12: 2 2 3") {
				t.Errorf("%s %q without the rule: %s", tier, way, out)
			}
			control, err := os.ReadFile(filepath.Join(w.home, "status.json"))
			out := run(deny)
			if strings.Contains(out, "12: 2 2 3") || !strings.Contains(out, "user/no-factor") || way[0] == "python3" && way[1] != "-c" && !strings.Contains(out, `"at":"exec"`) {
				t.Errorf("%s %q: %s", tier, way, out)
			}
			var status struct{ Sandbox struct{ Tier string } }
			if err != nil || json.Unmarshal(control, &status) != nil || status.Sandbox.Tier != tier {
				t.Errorf("%s %q: status %s %v", tier, way, control, err)
			}
		}
	}
}

// TestDeferredWords: words that are not known when a command is planned are decided when
// they start something, and the rest of the command runs.
func TestDeferredWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := filepath.Join(w.home, "kept")
	if err := os.WriteFile(outside, []byte("kept\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tier := range []string{"T2", "T3"} {
		for _, row := range []struct{ text, holds, out, refused string }{
			{`CMD=$(cat held); $CMD x; echo after`, "echo", "x\nafter\n", ""},
			{`CMD=$(cat held); $CMD ` + outside + `; echo after`, "rm", "after\n", "rm " + outside},
			{`sh -c "$(cat held)"; echo after`, "echo in; rm " + outside, "", "sh -c 'echo in; rm " + outside + "'"},
			{`sh < held; echo after`, "echo in\nrm " + outside + "\n", "in\nafter\n", "rm " + outside},
			{`xargs -n1 < held; echo after`, "a", "a\nafter\n", ""},
			{`xargs git < held; echo after`, "push origin main", "after\n", "git push origin main"},
			{`xargs -n1 sh -c < held`, "'cat " + outside + "'", "", ""},
			{`while read -r line; do $line; done < held`, "echo one\nshred " + outside + "\n", "one\n", "shred " + outside},
		} {
			if err := os.WriteFile(filepath.Join(w.ws, "held"), []byte(row.holds), 0o644); err != nil {
				t.Fatal(err)
			}
			w.policy(`{"version":1,"switches":{"defer":false},"sandbox":{"tier":"` + tier + `"}}`)
			if code := exitOf(w.command("-c", row.text)); code != 77 && row.refused != "" {
				t.Errorf("%s %q is not asked about without the switch: %d", tier, row.text, code)
			}
			w.policy(`{"version":1,"switches":{"defer":true},"sandbox":{"tier":"` + tier + `"}}`)
			cmd := w.command("-c", row.text)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, _ := cmd.Output()
			if row.out != "" && string(out) != row.out {
				t.Errorf("%s %q: %q: %s", tier, row.text, out, stderr.String())
			}
			if row.refused != "" && (!strings.Contains(stderr.String(), `"at":"exec"`) || !strings.Contains(stderr.String(), row.refused)) {
				t.Errorf("%s %q: %s", tier, row.text, stderr.String())
			}
			if kept, err := os.ReadFile(outside); err != nil || string(kept) != "kept\n" {
				t.Fatalf("%s %q: %v", tier, row.text, err)
			}
			starts := w.recordedStarts()
			if row.refused != "" && (starts.Decided == 0 || starts.Refused == 0 || len(starts.Refusals) == 0 || len(starts.Refusals[0].Argv) == 0 || starts.Refusals[0].Code == "") {
				t.Errorf("%s %q: the record says %+v of its starts", tier, row.text, starts)
			}
		}
	}
}

type recordedStarts struct {
	Decided, Refused int
	Refusals         []struct {
		Argv []string
		Code string
	}
}

// recordedStarts is what the last record says of the starts that were decided late.
func (w world) recordedStarts() recordedStarts {
	w.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "atip"), "audit", "show", "-n", "1", "-o", "json")
	cmd.Env = []string{"HOME=" + w.home}
	out, err := cmd.Output()
	var rec struct{ Starts recordedStarts }
	if err != nil || json.Unmarshal(out, &rec) != nil {
		w.t.Fatalf("audit show: %v: %s", err, out)
	}
	return rec.Starts
}

func exitOf(cmd *exec.Cmd) int {
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode()
}
