package main_test

import (
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// credentialTool says which credentials it can get at. What it prints is no secret itself.
const credentialTool = `#!/usr/bin/env python3
# %s
import os, socket
def tried(f):
    try: return f()
    except OSError as e: return type(e).__name__
def agent():
    path = os.environ.get('SSH_AUTH_SOCK')
    if not path: return 'no variable'
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s.recv(99).decode()
print(len(os.environ.get('GH_TOKEN', '')), tried(lambda: len(open(os.path.expanduser('~/.config/gh/hosts.yml')).read())), tried(agent), sep=', ')
`

// agentStandIn answers on a socket as an agent of ssh would be reached.
func agentStandIn(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("agent"))
			c.Close()
		}
	}()
}

// TestCredentialsOfATool: a token, a credential file and the socket of an agent are there for
// the tool whose metadata names them or which policy grants them, each alone, and for no
// other.
func TestCredentialsOfATool(t *testing.T) {
	t.Parallel()
	w := newWorldAtHome(t)
	socket := filepath.Join(w.home, "agent.sock")
	agentStandIn(t, socket)
	put(t, w.home, map[string]string{".config/gh/hosts.yml": "github.com:\n    user: synthetic\n"})
	file := len("github.com:\n    user: synthetic\n")
	dir := filepath.Join(w.home, "tools")
	// Bound by digest in the user's own override, so that what it names counts.
	declare := func(name, more string) {
		t.Helper()
		text := fmt.Sprintf(credentialTool, name)
		put(t, dir, map[string]string{name: text})
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, w.home, map[string]string{fmt.Sprintf(".config/agent-tools/overrides/sha256/%x.json", sha256.Sum256([]byte(text))): `{"atip":"0.6","name":"` + name +
			`","version":"1","description":"Stands for a client","trust":{"source":"org"}` + strings.Replace(more, "PATHS", `"network":false,"destructive":false,"reversible":true,"subprocess":true`, 1) + `}`})
	}
	declare("other", `,"effects":{PATHS,"filesystem":{"read":true,"write":false,"delete":false}}`)
	declare("token", `,"authentication":{"required":true,"methods":[{"type":"token","envVar":"GH_TOKEN"}]},"effects":{PATHS,"filesystem":{"read":true,"write":false,"delete":false}}`)
	declare("file", `,"effects":{PATHS,"filesystem":{"read":true,"write":false,"delete":false,"paths":["~/.config/gh"]}}`)
	declare("agent", `,"authentication":{"required":true,"methods":[{"type":"key","envVar":"SSH_AUTH_SOCK"}]},"effects":{PATHS,"filesystem":{"read":true,"write":false,"delete":false}}`)

	run := func(program, tier, more string) string {
		t.Helper()
		if !strings.Contains(more, `"sandbox"`) {
			more += `"sandbox":{}`
		}
		text := `{"version":1,` + strings.Replace(more, `"sandbox":{`, `"sandbox":{"tier":"`+tier+`",`, 1) + `}`
		w.policy(strings.Replace(text, ",}", "}", 1))
		cmd := w.command("--", program)
		cmd.Env = append(cmd.Env, "PATH="+dir+":/usr/local/bin:/usr/bin:/bin", "GH_TOKEN=synthetic-0123456789", "SSH_AUTH_SOCK="+socket)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s at %s: %v: %s", program, tier, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	// Outside, each gets all.
	cmd := exec.Command(filepath.Join(dir, "other"))
	cmd.Env = []string{"HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin", "GH_TOKEN=synthetic-0123456789", "SSH_AUTH_SOCK=" + socket}
	if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != fmt.Sprintf("20, %d, agent", file) {
		t.Fatalf("outside: %v: %s", err, out)
	}
	for tier, hidden := range map[string]string{"T2": "PermissionError", "T3": "FileNotFoundError"} {
		noSocket := hidden
		if tier == "T2" {
			noSocket = "OSError" // no such sockets at all
		}
		for program, want := range map[string]string{
			"other": "0, " + hidden + ", no variable",
			"token": "20, " + hidden + ", no variable",
			"file":  fmt.Sprintf("0, %d, no variable", file),
			"agent": "0, " + hidden + ", " + noSocket, // the variable is declared, the socket is not granted
		} {
			if got := run(program, tier, ""); got != want {
				t.Errorf("%s at %s: %q, want %q", program, tier, got, want)
			}
		}
		agent := "agent"
		if tier == "T2" {
			agent = "no variable" // a socket cannot be granted alone here, and the receipt says so
		}
		for more, want := range map[string]string{
			`"env":{"pass":["GH_TOKEN"]},`:                               "20, " + hidden + ", no variable",
			`"sandbox":{"secrets":{"files":["~/.config/gh/hosts.yml"]}}`: fmt.Sprintf("0, %d, no variable", file),
			`"sandbox":{"sockets":["` + socket + `"]}`:                   "0, " + hidden + ", " + agent,
		} {
			if got := run("other", tier, more); got != want {
				t.Errorf("%s at %s: %q, want %q", more, tier, got, want)
			}
		}
	}
	// A directory is no socket, and neither is what our own state holds.
	w.policy(`{"version":1,"sandbox":{"tier":"T3","sockets":["` + w.home + `"]}}`)
	cmd = w.command("--", "true")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "is a directory, not a socket") {
		t.Errorf("a directory: %v: %s", err, out)
	}
	w.policy(`{"version":1,"sandbox":{"sockets":["` + w.home + `/.local/state/atip-exec/audit/lock"]}}`)
	cmd = w.command("--", "true")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 78 || !strings.Contains(string(out), "E4103") {
		t.Errorf("state: status %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}
