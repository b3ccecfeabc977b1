package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestApproveRefuses: whoever is not a person at a terminal of their own gets no grant.
func TestApproveRefuses(t *testing.T) {
	a := newAsker(t)
	a.register()
	args := []string{"--", "gh", "repo", "delete", "o/r", "--yes"}
	id := a.request(args...)
	last := a.digest(id)
	last = last[len(last)-4:]
	yes := [][2]string{{"to approve: ", last}, {"passphrase", passphrase}}
	refused := func(name string, code int, out string) {
		t.Helper()
		if files, _ := filepath.Glob(a.state("grants") + "/*.json"); code != 77 || len(files) != 0 {
			t.Errorf("%s: exit %d, grants %v: %s", name, code, files, out)
		}
	}
	code, out := a.personWith(func(c *exec.Cmd) { c.Env = append(c.Env, "ATIP_EXEC_SANDBOX=T2") }, yes, "approve", id)
	refused("inside a sandbox", code, out)
	code, out = a.personWith(func(c *exec.Cmd) { c.Stdin = strings.NewReader(last + "\n"); c.SysProcAttr.Setctty = false }, nil, "approve", id)
	refused("without a terminal", code, out)
	code, out = a.personWith(func(c *exec.Cmd) {
		c.Stdin, c.SysProcAttr.Ctty = strings.NewReader(last+"\n"), 1
	}, nil, "approve", id)
	refused("piped", code, out)
	code, e := a.try(nil, "--", filepath.Join(bin, "atip"), "approve", id)
	refused("by a command under the wrapper", code, e.text)
	code, out = a.person([][2]string{{"to approve: ", "yes"}}, "approve", id)
	refused("yes where the digest is asked for", code, out)
	code, out = a.person([][2]string{{"to approve: ", ""}}, "approve", id)
	refused("an empty answer", code, out)
	code, out = a.person([][2]string{{"to approve: ", last}, {"passphrase", "wrong"}, {"passphrase", "wrong"}, {"passphrase", "wrong"}}, "approve", id)
	refused("a wrong passphrase", code, out)
	code, out = a.person(yes, "approve", "--times", "3", id)
	if code != 64 {
		t.Errorf("--times for a destructive command: exit %d: %s", code, out)
	}
	// The agent asks again; now the request says truly where it comes from.
	if err := os.Remove(filepath.Join(a.state("requests"), id+".json")); err != nil {
		t.Fatal(err)
	}
	if _, e := a.try(nil, args...); e.Details.RequestID != id {
		t.Fatalf("another request: %s", e.text)
	}
	code, out = a.person(yes, "approve", id)
	refused("started by what asks", code, out)
	if !strings.Contains(out, "also started the command that asks") {
		t.Errorf("refused for another reason: %s", out)
	}
	// A key that nobody registered.
	a.elsewhere(id)
	if err := os.Remove(filepath.Join(a.home, ".config/agent-tools/approvers.json")); err != nil {
		t.Fatal(err)
	}
	code, out = a.person(yes, "approve", id)
	refused("an unregistered key", code, out)
}

// TestApproveShowsAll: what cannot be seen is written out, and nothing is cut.
func TestApproveShowsAll(t *testing.T) {
	a := newAsker(t)
	a.register()
	long := strings.Repeat("x", 10_000)
	id := a.request("--", "gh", "repo", "delete", "a\u202eb\u200bc\x1b[2J", long)
	_, out := a.person([][2]string{{"to approve: ", ""}}, "approve", id)
	for _, want := range []string{long, `a\u202eb\u200bc\x1b[2J`} {
		if !strings.Contains(out, want) {
			t.Errorf("not shown: %.40q in %.2000q", want, out)
		}
	}
	if strings.ContainsAny(out, "\x1b\u202e\u200b") {
		t.Error("a control character reached the terminal")
	}
}

// TestKeyOfAgent: a key that an SSH agent holds signs too, and is worth little: the
// agent asks nobody.
func TestKeyOfAgent(t *testing.T) {
	a := newAsker(t)
	key := filepath.Join(a.home, "agentkey")
	for _, args := range [][]string{{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "agent", "-f", key}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	socket := filepath.Join(a.home, "agent.sock")
	agent := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Process.Kill(); agent.Wait() })
	with := func(c *exec.Cmd) { c.Env = append(c.Env, "SSH_AUTH_SOCK="+socket) }
	for range 3000 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	add := exec.Command("ssh-add", key)
	add.Env = []string{"SSH_AUTH_SOCK=" + socket, "HOME=" + a.home}
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("ssh-add: %v: %s", err, out)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if code, out := a.personWith(with, nil, "approve", "--init", "--key", key+".pub"); code != 0 || !strings.Contains(out, "level 0") {
		t.Fatalf("exit %d: %s", code, out)
	}
	args := []string{"--", "gh", "repo", "delete", "o/r", "--yes"}
	approve := func() (int, string) {
		id := a.request(args...)
		return a.personWith(with, [][2]string{{"to approve: ", a.digest(id)[len(a.digest(id))-4:]}}, "approve", "--key", key+".pub", id)
	}
	if code, out := approve(); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	if code, e := a.try(nil, args...); code != 0 || a.runs() != 1 {
		t.Errorf("exit %d: %s", code, e.text)
	}
	doctor := exec.Command(filepath.Join(bin, "atip"), "doctor", "-o", "text")
	doctor.Dir, doctor.Env = a.ws, []string{"HOME=" + a.home, "PATH=/usr/bin:/bin"}
	if out, _ := doctor.CombinedOutput(); !strings.Contains(string(out), "weakest of level 0") {
		t.Errorf("doctor: %s", out)
	}
	a.userPolicy(`{"version":1,"approval":{"minLevel":{"destructive":1}}}`)
	if code, out := approve(); code != 77 || !strings.Contains(out, "below the 1") {
		t.Errorf("where a passphrase is demanded: exit %d: %s", code, out)
	}
	doctor = exec.Command(filepath.Join(bin, "atip"), "doctor", "-o", "text")
	doctor.Dir, doctor.Env = a.ws, []string{"HOME=" + a.home, "PATH=/usr/bin:/bin"}
	if out, _ := doctor.CombinedOutput(); !strings.Contains(string(out), "demands level 1 for destructive") {
		t.Errorf("doctor: %s", out)
	}
}

// TestPropose: the rule that would permit what asked is printed, and permits it once a
// person has put it into a policy.
func TestPropose(t *testing.T) {
	a := newAsker(t)
	propose := func(args ...string) (int, string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, "atip"), append([]string{"approve", "--propose"}, args...)...)
		cmd.Dir, cmd.Env = a.ws, []string{"HOME=" + a.home, "PATH=/usr/bin:/bin"}
		out, err := cmd.CombinedOutput()
		if exit, ok := err.(*exec.ExitError); ok {
			return exit.ExitCode(), string(out)
		} else if err != nil {
			t.Fatal(err)
		}
		return 0, string(out)
	}
	args := []string{"--", "curl", "-sS", "http://127.0.0.1:1/one"}
	id := a.request(args...)
	if code, out := propose(id, "-o", "text"); code != 0 || !strings.Contains(out, `+  {"id":"curl","decision":"allow","when":{"host":["127.0.0.1"],"tool":"curl"},"grants":["network"]`) {
		t.Fatalf("exit %d: %s", code, out)
	}
	if code, e := a.try(nil, args...); code != 77 {
		t.Errorf("a proposal permits nothing: exit %d: %s", code, e.text)
	}
	code, out := propose(id, "-o", "json")
	var doc struct{ Rules json.RawMessage }
	if err := json.Unmarshal([]byte(out), &doc); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	a.userPolicy(`{"version":1,"rules":` + string(doc.Rules) + `}`)
	if code, e := a.try(nil, args...); !unreached(code) {
		t.Errorf("under the proposed rule: exit %d: %s", code, e.text)
	}
	if code, e := a.try(nil, "--", "curl", "-sS", "http://127.0.0.2:1/one"); code != 77 {
		t.Errorf("another host: exit %d: %s", code, e.text)
	}
	a.tool("mystery", "echo run")
	if code, out := propose(a.request("--", "mystery", "--now")); code != 64 {
		t.Errorf("a tool nobody knows: exit %d: %s", code, out)
	}
}
