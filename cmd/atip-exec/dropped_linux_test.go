package main_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// dropping starts a command under atip-exec without the token, as an agent would that is
// under one.
const dropping = `import subprocess, sys
sys.exit(subprocess.run(["env", "-u", "ATIP_DELEGATION", "atip-exec", "--", *sys.argv[1:]], close_fds=False).returncode)
`

// spec makes a token that takes away what a document says.
func (w inside) spec(text string) string {
	w.t.Helper()
	file := filepath.Join(w.home, "spec.json")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return w.token("", "--spec", file)
}

func delegated(token string) func(*exec.Cmd) {
	return func(c *exec.Cmd) {
		if token != "" {
			c.Env = append(c.Env, "ATIP_DELEGATION="+token)
		}
	}
}

// TestDroppingTheTokenGainsNothing: a run inside a delegated one that unsets the variable is
// judged without it, and reaches no file, host or credential by that. Each row has the same
// run without a delegation beside it, which reaches what it tries.
func TestDroppingTheTokenGainsNothing(t *testing.T) {
	w := newInside(t)
	put(t, w.ws, map[string]string{"drop.py": dropping, "out/README": "delegated", "src/README": "not delegated"})
	put(t, w.home, map[string]string{".config/gh/hosts.yml": "oauth_token: the-credential-in-a-file\n"})
	w.tool("gh", `echo "gh $* token=$GH_TOKEN file=$(cat ~/.config/gh/hosts.yml)"`)
	w.policy(w.vouched(""))
	made := func(path string) func() bool {
		return func() bool {
			path := filepath.Join(w.ws, path)
			_, err := os.Lstat(path)
			_ = os.Remove(path)
			return err == nil
		}
	}
	var out string
	printed := func(text string) func() bool { return func() bool { return strings.Contains(out, text) } }
	const tools = `"python","touch","ls","env","sh","cat","atip-exec"`
	for at, tier := range []string{"T2", "T3"} {
		put(t, w.ws, map[string]string{"tier.json": `{"version":1,"sandbox":{"tier":"` + tier + `"}}`})
		for n, row := range []struct {
			name, spec string
			words      []string
			reached    func() bool
			stillRuns  []string // what the delegation leaves, nil for none
			leaves     func() bool
		}{
			{"a file, no writing", `{"delegation":{"effectRestrictions":{"filesystem.write":false}}}`, []string{"touch", "src/made"}, made("src/made"), []string{"cat", "src/README"}, printed("not delegated")},
			{"a file, other paths", `{"version":1,"delegable":{"paths":["` + w.ws + `/out"]}}`, []string{"touch", "src/made"}, made("src/made"), []string{"touch", "out/made"}, made("out/made")},
			{"a file, no path", `{"version":1,"delegable":{"paths":[]}}`, []string{"touch", "out/made"}, made("out/made"), []string{"cat", "src/README"}, printed("not delegated")},
			{"a credential, other tools", `{"delegation":{"allowedTools":[` + tools + `]}}`, []string{"gh", "pr", "list"}, printed("token=[REDACTED"), []string{"ls"}, printed("drop.py")},
			{"a credential, no network", `{"delegation":{"effectRestrictions":{"network":false}}}`, []string{"gh", "pr", "list"}, printed("token=[REDACTED"), []string{"ls"}, printed("drop.py")},
			{"a credential file, other tools", `{"delegation":{"allowedTools":[` + tools + `]}}`, []string{"gh", "pr", "list"}, printed("file=oauth_token: [REDACTED"), []string{"ls"}, printed("drop.py")},
			{"a credential, other hosts", `{"version":1,"delegable":{"hosts":["docs.example"]}}`, []string{"gh", "pr", "list"}, printed("token=[REDACTED"), []string{"ls"}, printed("drop.py")},
		} {
			if !paired(n, at) {
				continue
			}
			token := w.spec(row.spec)
			try := func(token string, words []string) (status int, stderr string) {
				status, out, stderr = w.run(delegated(token), append([]string{"--policy", "tier.json", "--", "python3", "drop.py"}, words...)...)
				return status, stderr
			}
			if status, stderr := try("", row.words); status != 0 || !row.reached() {
				t.Errorf("%s, %s: the control does not reach it: status %d: %q; %s", tier, row.name, status, out, stderr)
			}
			if status, stderr := try(token, row.words); status == 0 || row.reached() || strings.Contains(out, "REDACTED") {
				t.Errorf("%s, %s: reached: status %d: %q; %s", tier, row.name, status, out, stderr)
			}
			if status, stderr := try(token, row.stillRuns); status != 0 || !row.leaves() {
				t.Errorf("%s, %s: %v: status %d: %q; %s", tier, row.name, row.stillRuns, status, out, stderr)
			}
		}
	}
}

// TestDroppingTheTokenReachesNoHost: of a program that was lent one host, what it starts
// without the token reaches no other, although the user's policy lists one.
func TestDroppingTheTokenReachesNoHost(t *testing.T) {
	needTier3(t)
	n := newInternet(t)
	w := newInside(t)
	w.tool("fetcher", "shift\nexec \"$@\"")
	// A run with a host starts nothing from where a run could write, such as the /tmp of the test.
	self, err := os.ReadFile(filepath.Join(bin, "atip-exec"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.home, "stubs/atip-exec"), self, 0o755); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(w.home, "stubs/fetcher"))
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(raw))
	put(t, w.home, map[string]string{".config/agent-tools/overrides/sha256/" + digest + ".json": `{"atip":"0.6","name":"fetcher","version":"1","description":"Stands for a client","trust":{"source":"org"},
		"commands":{"":{"description":"fetch","arguments":[{"name":"url","type":"url","required":true,"description":"what to fetch"},{"name":"rest","type":"string","variadic":true,"required":false,"description":"more"}],
		"effects":{"filesystem":{"read":true,"write":false,"delete":false},"network":true,"subprocess":true,"idempotent":true,"destructive":false,"reversible":true,"cost":{"billable":false}}}},
		"x-atip-effects":{"v":1,"base":{"network":true,"remoteMutation":false}}}`})
	w.policy(`{"version":1,"trust":{"pins":{"fetcher":["sha256:` + digest + `"]}},"switches":{"url_fetch":true},"sandbox":{"read":["` + bin + `"]},"network":{"allow":["also.example:80"],"upstream":"http://` + n.address + `"}}`)
	lent := w.spec(`{"version":1,"delegable":{"hosts":["api.example"]}}`)
	for _, row := range []struct {
		host, token string
		reached     bool
	}{
		{"api.example", "", true},
		{"also.example", "", true},
		{"api.example", lent, true},
		{"also.example", lent, false},
	} {
		status, out, stderr := w.run(delegated(row.token), "--", "fetcher", "http://api.example/", "env", "-u", "ATIP_DELEGATION", "atip-exec", "--", "curl", "-sSf", "http://"+row.host+"/")
		if reached := strings.Contains(out, "hello from "+row.host); reached != row.reached || (status == 0) != row.reached {
			t.Errorf("%s, delegated %t: status %d: %q; %s", row.host, row.token != "", status, out, stderr)
		}
		if !row.reached && !strings.Contains(stderr, "was not delegated") {
			t.Errorf("%s: the refusal does not say why: %s", row.host, stderr)
		}
	}
}

// TestEmptyDelegation: a list that permits nothing is not a missing one.
func TestEmptyDelegation(t *testing.T) {
	w := newInside(t)
	put(t, w.home, map[string]string{"two.json": `{"delegation":{"allowedTools":["git"]}}`})
	for _, row := range []struct {
		name, token string
		words       []string
		status      int
	}{
		{"no tool", w.spec(`{"delegation":{"allowedTools":[]}}`), []string{"ls"}, 77},
		{"no tool in common", w.token("", "--spec", filepath.Join(w.home, "two.json"), "--tools", "ls"), []string{"ls"}, 77},
		{"no host", w.spec(`{"version":1,"delegable":{"hosts":[]}}`), []string{"gh", "pr", "list"}, 77},
		{"no host, no need of one", w.spec(`{"version":1,"delegable":{"hosts":[]}}`), []string{"ls"}, 0},
		{"no path", w.spec(`{"version":1,"delegable":{"paths":[]}}`), []string{"touch", "made"}, 77},
		{"control", "", []string{"ls"}, 0},
		{"control", "", []string{"gh", "pr", "list"}, 0},
		{"control", "", []string{"touch", "made"}, 0},
	} {
		if status, out, stderr := w.run(delegated(row.token), append([]string{"--"}, row.words...)...); status != row.status {
			t.Errorf("%s: %v: status %d: %q; %s", row.name, row.words, status, out, stderr)
		}
	}
}
