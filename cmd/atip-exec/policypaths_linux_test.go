package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPolicyPathsAreHeld: what paths.secret and paths.protected name is held by the kernel
// against code and against commands that read all there is, and not by rules alone.
func TestPolicyPathsAreHeld(t *testing.T) {
	t.Parallel()
	needTier3(t)
	w := newWorldAtHome(t)
	files := map[string]string{"vault/deep/a": "synthetic\n", "src/x.pass": "synthetic\n", "keys/one": "synthetic\n", "deploy/prod.yml": "mine\n", "src/b.lock": "mine\n", "plain": "plain\n"}
	put(t, w.ws, files)
	const text = `
import glob, os
for path in ("vault/deep/a", "src/x.pass", "keys/one", "plain"):
    try: print("read", open(path).read().strip())
    except OSError as e: print(type(e).__name__)
for path in ("deploy/prod.yml", "src/b.lock", "deploy/new.yml", "plain"):
    try:
        open(path, "a").write("changed")
        print("wrote", path)
    except OSError as e: print(type(e).__name__)
for path in ("vault", "deploy", "src/b.lock"):
    try:
        os.rename(path, path + "-moved")
        os.rename(path + "-moved", path)
        print("moved", path)
    except OSError as e: print(type(e).__name__)
`
	again := func() {
		os.Remove(filepath.Join(w.ws, "deploy/new.yml"))
		put(t, w.ws, files)
	}
	status, stdout, stderr := w.python(text)
	if status != 0 || strings.Count(stdout, "read synthetic") != 3 || strings.Count(stdout, "wrote") != 4 || strings.Count(stdout, "moved") != 3 {
		t.Fatalf("without a policy: status %d, %q; %s", status, stdout, stderr)
	}
	again()
	w.policy(`{"version":1,"paths":{"secret":["vault/**","*.pass","` + w.ws + `/key?"],"protected":["deploy/**","src/*.lock"]}}`)
	status, stdout, stderr = w.python(text)
	if status != 0 || strings.Contains(stdout, "synthetic") || !strings.Contains(stdout, "read plain") || strings.Count(stdout, "wrote") != 1 || strings.Contains(stdout, "moved") {
		t.Errorf("status %d, %q; %s", status, stdout, stderr)
	}
	for name, want := range files {
		if raw, err := os.ReadFile(filepath.Join(w.ws, name)); name != "plain" && (err != nil || string(raw) != want) {
			t.Errorf("%s: %q %v", name, raw, err)
		}
	}
	out, _ := w.command("--", "grep", "-r", "s[y]nthetic", ".").CombinedOutput()
	if strings.Contains(string(out), "synthetic") {
		t.Errorf("a command that reads: %s", out)
	}
	inside := w.command("-C", filepath.Join(w.ws, "vault/deep"), "--", "true")
	if out, err := inside.CombinedOutput(); err == nil || !strings.Contains(string(out), "paths.secret") {
		t.Errorf("inside of a secret: %v, %s", err, out)
	}
	again()
	w.policy(`{"version":1,"sandbox":{"tier":"T2"},"paths":{"secret":["vault/**"],"protected":["deploy/**","src/*.lock"]}}`)
	status, stdout, stderr = w.python(text)
	if status != 0 || !strings.Contains(stderr, "paths.secret") || !strings.Contains(stdout, "wrote src/b.lock") {
		t.Errorf("T2: status %d, %q; %s", status, stdout, stderr)
	}
	for _, name := range []string{"deploy/prod.yml", "src/b.lock"} {
		if raw, err := os.ReadFile(filepath.Join(w.ws, name)); err != nil || string(raw) != files[name] {
			t.Errorf("T2, %s was not put back: %q %v", name, raw, err)
		}
	}
	w.policy(`{"version":1,"paths":{"secret":["*.many"]}}`)
	for i := range 300 {
		put(t, w.ws, map[string]string{fmt.Sprintf("many/%d.many", i): "x"})
	}
	if out, err := w.command("--", "true").CombinedOutput(); err == nil || !strings.Contains(string(out), "E4104") || !strings.Contains(string(out), "policy.json:1:33") {
		t.Errorf("more than can be hidden: %v, %s", err, out)
	}
}
