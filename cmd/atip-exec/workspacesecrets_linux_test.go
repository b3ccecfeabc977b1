package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAttackWorkspaceSecrets: what only reads does not find the secrets of the workspace, however
// it comes by their names; code of the project does, and no output of any run shows them.
func TestAttackWorkspaceSecrets(t *testing.T) {
	t.Parallel()
	secret := "qX7" + "vLm2Rz9TkW4bN8pY"
	for at, tier := range []string{"T2", "T3", ""} {
		w := newWorldAtHome(t)
		if tier != "" {
			w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		}
		for _, name := range []string{".env", "packages/api/.env.local", "pub.txt"} {
			path := filepath.Join(w.ws, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("SERVICE_TOKEN="+secret+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(filepath.Join(w.ws, "pub.txt")); err != nil {
			t.Fatal(err)
		}
		// Each prints the name of the variable where it reads a file; its value is another matter.
		attacks := []string{
			"cat < .en*", "cat < ./.e[n]v", "x=.e; cat ${x}nv", "tar cf - . | strings", "tar cf - packages | strings", "git grep --no-index SERVICE", "grep -r SERVICE .",
			"grep -rh SERVICE packages", "cat $(ls -A | grep env)", "find . -name '*.loc*' -exec cat {} +", "git diff --no-index /dev/null .env", "cd packages/api; cat .??*", "git hash-object .env --stdin-paths < /dev/null; head -3 .[e]*",
		}
		for n, attack := range attacks {
			plain := exec.Command("bash", "-c", attack)
			plain.Dir = w.ws
			if out, _ := plain.CombinedOutput(); !strings.Contains(string(out), "SERVICE_TOKEN") {
				t.Errorf("control: %s: %q", attack, out)
			}
			for form, args := range [][]string{{"-c", attack}, {"--", "bash", "-c", attack}} {
				if !paired(n+form, at) {
					continue
				}
				cmd := w.command(args...)
				out, _ := cmd.CombinedOutput()
				if strings.Contains(string(out), secret) {
					t.Errorf("%s %q shows it: %q", tier, args, out)
				}
				if tier != "T2" && strings.Contains(string(out), "SERVICE_TOKEN") || strings.Contains(string(out), "SERVICE_TOKEN=qX7") {
					t.Errorf("%s %q reads it: %q", tier, args, out)
				}
			}
		}
		if out, _ := w.command("-c", "grep -r SERVICE . || exit 1").CombinedOutput(); !strings.Contains(string(out), "hidden because it holds secrets; leave it out") {
			t.Errorf("%s: grep is told nothing: %q", tier, out)
		}
		// Ordinary commands beside it, and code that the file is for.
		if err := os.WriteFile(filepath.Join(w.ws, "app.py"), []byte("print(len(open('.e' + 'nv').read()), open('.e' + 'nv').read())"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := w.answer("-c", "cat app.py | wc -l; ls packages"); got != "0\napi" {
			t.Errorf("%s: beside it: %q", tier, got)
		}
		if got := w.answer("--", "python3", "app.py"); !strings.HasPrefix(got, "34 SERVICE_TOKEN=[REDACTED") {
			t.Errorf("%s: code of the project: %q", tier, got)
		}
		if got := w.answer("--", "git", "status", "--short"); !strings.Contains(got, "app.py") || strings.Contains(got, "status") {
			t.Errorf("%s: git status: %q", tier, got)
		}
	}
}
