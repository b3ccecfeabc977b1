package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLock: in CI a signed lock lets the locked plan run, wherever it is checked out;
// a key that only the project names signs nothing.
func TestLock(t *testing.T) {
	a := newAsker(t)
	a.register()
	public, err := os.ReadFile(a.state("approver/id_ed25519.pub"))
	if err != nil {
		t.Fatal(err)
	}
	keys := fmt.Sprintf(`{"version":1,"approval":{"lockApplies":true,"lockKeys":[%q]}}`, strings.TrimSpace(string(public)))
	ci := func(c *exec.Cmd) { c.Env = append(c.Env, "CI=1", "GITHUB_REPOSITORY=o/r") }
	args := []string{"--", "gh", "repo", "delete", "o/r", "--yes"}
	code, e := a.try(ci, args...)
	if code != 77 || e.Details.LockDigest == "" {
		t.Fatalf("exit %d: %s", code, e.text)
	}
	a.userPolicy(keys)
	if _, e = a.try(ci, args...); e.Code != "E2010" {
		t.Fatalf("without a lock: %s", e.text)
	}
	add := exec.Command(filepath.Join(bin, "atip"), "policy", "lock", "add", e.Details.LockDigest, "--reason", "release")
	add.Dir, add.Env = a.ws, []string{"HOME=" + a.home}
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code, e := a.try(ci, args...); code != 78 || e.Code != "E2044" {
		t.Errorf("a lock without a signature: exit %d: %s", code, e.text)
	}
	if code, out := a.person([][2]string{{"to sign: ", "yes"}, {"passphrase", passphrase}}, "policy", "lock", "sign"); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	if code, e := a.try(ci, args...); code != 0 || a.runs() != 1 {
		t.Errorf("a signed lock: exit %d, %d runs: %s", code, a.runs(), e.text)
	}
	// What an agent can set makes no machine a runner: the policy says that it is one.
	a.userPolicy(strings.Replace(keys, `"lockApplies":true,`, "", 1))
	for _, set := range []string{"CI=1", "GITHUB_ACTIONS=true", "TF_BUILD=True"} {
		agent := func(c *exec.Cmd) { c.Env = append(c.Env, set, "GITHUB_REPOSITORY=o/r") }
		if code, e := a.try(agent, append([]string{"--ci"}, args...)...); code != 77 || e.Code != "E2010" {
			t.Errorf("%s where no policy lets a lock count: exit %d: %s", set, code, e.text)
		}
	}
	a.userPolicy(keys)
	if code, e := a.try(ci, "--", "gh", "repo", "delete", "o/other", "--yes"); code != 77 || e.Code != "E2010" {
		t.Errorf("another command: exit %d: %s", code, e.text)
	}
	moved := a.ws + "-moved"
	if err := os.Rename(a.ws, moved); err != nil {
		t.Fatal(err)
	}
	a.ws = moved
	if code, e := a.try(ci, args...); code != 0 || a.runs() != 2 {
		t.Errorf("in another checkout: exit %d: %s", code, e.text)
	}
	// The same key, named by the project only.
	a.userPolicy(`{"version":1}`)
	if err := os.WriteFile(filepath.Join(a.ws, ".agent-tools", "policy.json"), []byte(keys), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, e := a.try(ci, args...); code != 77 || e.Code != "E2010" {
		t.Errorf("a key of the project: exit %d: %s", code, e.text)
	}
}
