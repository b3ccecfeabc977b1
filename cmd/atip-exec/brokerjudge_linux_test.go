package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestParentJudgesUnderItsChain: what the inside says of its token is not believed.
func TestParentJudgesUnderItsChain(t *testing.T) {
	w := newInside(t)
	own := w.token("", "--tools", "python,gh,env,atip-exec", "--deny-command", "gh pr view")
	less := w.token(own, "--tools", "python,env,atip-exec")
	other := w.token("", "--tools", "python,gh,env,atip-exec")
	for _, row := range []struct {
		name, token string
		words       []string
		status      int
		code        string
	}{
		{"permitted", own, []string{"gh", "pr", "list"}, 0, ""},
		{"denied", own, []string{"gh", "pr", "view", "1"}, 77, "E2001"},
		{"dropped", "", []string{"gh", "pr", "list"}, 0, ""},
		{"denied, dropped", "", []string{"gh", "pr", "view", "1"}, 77, "E2001"},
		{"denied, of another token", other, []string{"gh", "pr", "view", "1"}, 77, "E2002"},
		{"of another token", other, []string{"gh", "pr", "list"}, 77, "E2002"},
		{"more taken away", less, []string{"gh", "pr", "list"}, 77, "E2001"},
		{"edited", own[:len(own)-2], []string{"gh", "pr", "list"}, 77, "E2002"},
	} {
		script := "import os, subprocess, sys\nos.environ['ATIP_DELEGATION'] = sys.argv[1]\nif not sys.argv[1]: del os.environ['ATIP_DELEGATION']\n" +
			"sys.exit(subprocess.run(['atip-exec', '--', *sys.argv[2:]], close_fds=False).returncode)\n"
		if err := os.WriteFile(filepath.Join(w.ws, "as.py"), []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
		status, out, stderr := w.run(func(c *exec.Cmd) { c.Env = append(c.Env, "ATIP_DELEGATION="+own) }, append([]string{"--", "python3", "as.py", row.token}, row.words...)...)
		if status != row.status || row.code != "" && !strings.Contains(stderr, `"code":"`+row.code+`"`) || row.status == 0 && !strings.Contains(out, "token=[REDACTED") {
			t.Errorf("%s: status %d, want %d %s: %q; %s", row.name, status, row.status, row.code, out, stderr)
		}
	}
	// The control: without any token the same command runs.
	if status, out, stderr := w.run(nil, "--", "python3", "ask.py", "atip-exec", "--", "gh", "pr", "view", "1"); status != 0 {
		t.Errorf("control: status %d: %q; %s", status, out, stderr)
	}
}

// TestParentJudgesUnderItsFlags: the policies and the profile that the parent run was given
// hold for what it starts for the inside.
func TestParentJudgesUnderItsFlags(t *testing.T) {
	w := newInside(t)
	w.policy(w.vouched(`,"profiles":{"offline":{"switches":{"network_read":false}}}`))
	if err := os.WriteFile(filepath.Join(w.ws, "offline.json"), []byte(`{"version":1,"switches":{"network_read":false}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		flags  []string
		status int
		code   string
	}{
		{nil, 0, ""},
		{[]string{"--profile", "workspace"}, 0, ""},
		{[]string{"--profile", "offline"}, 77, "E2010"},
		{[]string{"--policy", "offline.json"}, 77, "E2010"},
	} {
		status, out, stderr := w.run(nil, append(row.flags, "--", "python3", "ask.py", "atip-exec", "--", "gh", "pr", "list")...)
		if status != row.status || row.code != "" && (out != "" || !strings.Contains(stderr, `"code":"`+row.code+`"`)) || row.status == 0 && !strings.Contains(out, "token=[REDACTED") {
			t.Errorf("%v: status %d, want %d: %q; %s", row.flags, status, row.status, out, stderr)
		}
	}
}

// TestParentBelievesNothing: questions that no atip-exec would ask, on the socket itself.
func TestParentBelievesNothing(t *testing.T) {
	w := newInside(t)
	script := `import base64, json, os, socket, sys
def ask(message, fds=4, kind=socket.SOCK_SEQPACKET):
    up = socket.socket(fileno=os.dup(int(os.environ["ATIP_EXEC_PARENT"][3:])))
    mine, theirs = socket.socketpair(socket.AF_UNIX, kind)
    out, w = os.pipe()
    beside, e = os.pipe()
    null = os.open("/dev/null", os.O_RDONLY)
    socket.send_fds(up, [message], [theirs.fileno(), null, w, e][:fds])
    theirs.close(); os.close(w); os.close(e); os.close(null); up.close()
    mine.settimeout(300)
    try: answer = json.loads(mine.recv(65536) or b'{"kind":"nothing"}')
    except ConnectionError: answer = {"kind": "nothing"}
    text = b""
    while True:
        part = os.read(out, 65536)
        if not part: break
        text += part
    os.close(out); os.close(beside)
    return answer["kind"], answer.get("exitCode"), (answer.get("error") or {}).get("code"), text.decode()
def start(*words, cwd=os.getcwd(), **more):
    return json.dumps({"kind": "start", "argv": [base64.b64encode(x.encode()).decode() for x in words], "cwd": cwd, **more}).encode()
gh = ("gh", "pr", "list")
for name, got in {
    "honest": ask(start(*gh)),
    "a shell": ask(start("sh", "-c", "echo $GH_TOKEN; gh pr list")),
    "code of the workspace": ask(start("python3", "ask.py", "gh", "pr", "list")),
    "a piece of the token": ask(start("sh", "-c", "echo ${GH_TOKEN#?}; gh pr list")),
    "the token": ask(start("env")),
    "elsewhere": ask(start(*gh, cwd=os.environ["HOME"])),
    "no directory": ask(start(*gh, cwd="/nonexistent")),
    "a relative one": ask(start(*gh, cwd=".")),
    "that asks": ask(start(*gh, asks=True)),
    "denied": ask(start("rm", "-rf", "/")),
    "no words": ask(start()),
    "nonsense": ask(b"{"),
    "nothing": ask(b""),
    "too long": ask(start("gh", "x" * 100000)),
    "few descriptors": ask(start(*gh), fds=2),
    "a stream": ask(start(*gh), kind=socket.SOCK_STREAM),
    "honest again": ask(start(*gh)),
}.items(): print(name, got[:3], "token=[REDACTED" in got[3] or got[3][:20] if got[3] else "")
`
	if err := os.WriteFile(filepath.Join(w.ws, "forge.py"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, stderr := w.run(nil, "--", "python3", "forge.py")
	want := `honest ('end', 0, None) True
a shell ('end', 77, 'E2004')
code of the workspace ('keep', 0, None)
a piece of the token ('end', 77, 'E2004')
the token ('keep', 0, None)
elsewhere ('end', 77, 'E2004')
no directory ('end', 66, 'E1005')
a relative one ('nothing', None, None)
that asks ('end', 77, 'E2004')
denied ('end', 77, 'E2001')
no words ('nothing', None, None)
nonsense ('nothing', None, None)
nothing ('nothing', None, None)
too long ('nothing', None, None)
few descriptors ('nothing', None, None)
a stream ('nothing', None, None)
honest again ('end', 0, None) True
`
	if strings.ReplaceAll(out, " \n", "\n") != want || status != 0 || strings.Contains(out+stderr, "the-credential") {
		t.Errorf("status %d:\n%s\nwant:\n%s\n%s", status, out, want, stderr)
	}
	if records := w.records(); len(records) == 0 {
		t.Error("no records")
	}
}

// TestInsideFilesARequest: what needs a person is asked for outside; a grant permits one
// run of it, which the parent starts.
func TestInsideFilesARequest(t *testing.T) {
	w := newInside(t)
	w.register()
	create := []string{"--", "python3", "ask.py", "atip-exec", "--", "gh", "pr", "create", "--fill"}
	ask := func() (int, refusal, string) {
		status, out, stderr := w.run(nil, create...)
		var doc struct{ Error refusal }
		for line := range strings.Lines(stderr) {
			_ = json.Unmarshal([]byte(line), &doc)
		}
		doc.Error.text = stderr
		return status, doc.Error, out
	}
	status, e, _ := ask()
	if status != 77 || e.Code != "E2010" || e.Details.RequestID == "" {
		t.Fatalf("status %d: %s", status, e.text)
	}
	w.elsewhere(e.Details.RequestID)
	code, shown := w.person([][2]string{{"to approve: ", "yes"}, {"passphrase", passphrase}}, "approve", e.Details.RequestID)
	if code != 0 || !strings.Contains(shown, "Inside of  python3 ask.py atip-exec -- gh pr create --fill, which may run any code") {
		t.Errorf("the person is not told who asks: %s", shown)
	}
	if status, e, out := ask(); status != 0 || !strings.Contains(out, "gh pr create --fill token=[REDACTED") {
		t.Errorf("permitted: status %d: %q; %s", status, out, e.text)
	}
	if status, e, out := ask(); status != 77 || out != "" {
		t.Errorf("a second time: status %d: %q; %s", status, out, e.text)
	}
	// Without the descriptor nobody is asked.
	create[2] = "closed.py"
	if status, e, _ := ask(); status != 77 || e.Code != "E2010" || e.Details.RequestID != "" {
		t.Errorf("without the descriptor: status %d: %s", status, e.text)
	}
}

// TestLockIsNotForTheInside: what a job may start by itself, code that it runs may not.
func TestLockIsNotForTheInside(t *testing.T) {
	w := newInside(t)
	w.register()
	public, err := os.ReadFile(w.state("approver/id_ed25519.pub"))
	if err != nil {
		t.Fatal(err)
	}
	w.policy(w.vouched(fmt.Sprintf(`,"approval":{"lockApplies":true,"lockKeys":[%q]}`, strings.TrimSpace(string(public)))))
	ci := func(c *exec.Cmd) { c.Env = append(c.Env[:2:2], append([]string{"CI=1"}, c.Env[3:]...)...) }
	create := []string{"gh", "pr", "create", "--fill"}
	status, _, stderr := w.run(ci, append([]string{"--"}, create...)...)
	var doc struct{ Error refusal }
	if err := json.Unmarshal([]byte(stderr), &doc); err != nil || status != 77 || doc.Error.Details.LockDigest == "" {
		t.Fatalf("status %d, %v: %s", status, err, stderr)
	}
	add := exec.Command(filepath.Join(bin, "atip"), "policy", "lock", "add", doc.Error.Details.LockDigest, "--reason", "release")
	add.Dir, add.Env = w.ws, []string{"HOME=" + w.home}
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code, out := w.person([][2]string{{"to sign: ", "yes"}, {"passphrase", passphrase}}, "policy", "lock", "sign"); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	if status, out, stderr := w.run(ci, append([]string{"--"}, create...)...); status != 0 {
		t.Errorf("the job itself: status %d: %q; %s", status, out, stderr)
	}
	if status, out, stderr := w.run(ci, append([]string{"--", "python3", "ask.py", "atip-exec", "--"}, create...)...); status != 77 || out != "" || strings.Contains(stderr, "lockDigest") {
		t.Errorf("from inside: status %d: %q; %s", status, out, stderr)
	}
}

// TestCredentialsByPolicy: withhold starts nothing for the inside; pass gives a delegation
// the credentials of the tools that it names.
func TestCredentialsByPolicy(t *testing.T) {
	w := newInside(t)
	gh := w.token("", "--tools", "python,gh,sh,atip-exec")
	none := w.token("", "--tools", "python,sh,atip-exec")
	all := w.token("", "--deny-command", "gh pr create")
	doctor := func() string {
		cmd := exec.Command(filepath.Join(bin, "atip"), "doctor", "-o", "text")
		cmd.Dir, cmd.Env = w.ws, []string{"HOME=" + w.home, "PATH=/usr/bin:/bin"}
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	for _, row := range []struct {
		name, policy, token string
		words               []string
		status              int
		out                 string
	}{
		{"withheld", "withhold", gh, []string{"ask.py", "atip-exec", "--", "gh", "pr", "list"}, 77, ""},
		{"withheld, no delegation", "withhold", "", []string{"ask.py", "atip-exec", "--", "gh", "pr", "list"}, 77, ""},
		{"passed", "pass", gh, []string{"ask.py", "sh", "-c", "echo token=$GH_TOKEN"}, 0, "token=[REDACTED"},
		{"passed to other tools only", "pass", none, []string{"ask.py", "sh", "-c", "echo token=$GH_TOKEN"}, 0, "token=\n"},
		{"passed to nobody by name", "pass", all, []string{"ask.py", "sh", "-c", "echo token=$GH_TOKEN"}, 0, "token=\n"},
		{"passed without a delegation", "pass", "", []string{"ask.py", "sh", "-c", "echo token=$GH_TOKEN"}, 0, "token=\n"},
		{"neither", "", gh, []string{"ask.py", "sh", "-c", "echo token=$GH_TOKEN"}, 0, "token=\n"},
	} {
		w.policy(w.vouched(map[string]string{"": ""}[row.policy]))
		if row.policy != "" {
			w.policy(w.vouched(`,"delegation":{"credentials":"` + row.policy + `"}`))
		}
		status, out, stderr := w.run(func(c *exec.Cmd) {
			if row.token != "" {
				c.Env = append(c.Env, "ATIP_DELEGATION="+row.token)
			}
		}, append([]string{"--", "python3"}, row.words...)...)
		if status != row.status || !strings.HasPrefix(out, row.out) || status == 77 && !strings.Contains(stderr, `"code":"E2004"`) {
			t.Errorf("%s: status %d: %q; %s", row.name, status, out, stderr)
		}
		list := w.records()
		handed := fmt.Sprint(list[len(list)-1]["env"].(map[string]any)["handed_down"])
		if (row.name == "passed") != strings.Contains(handed, "GH_TOKEN") {
			t.Errorf("%s: the record says %s", row.name, handed)
		}
		if text := doctor(); (row.policy == "pass") != strings.Contains(text, "! delegation") {
			t.Errorf("%s: doctor: %s", row.name, text)
		}
	}
	// A project or a flag gives nothing away.
	w.policy(w.vouched(""))
	if err := os.WriteFile(filepath.Join(w.ws, "pass.json"), []byte(`{"version":1,"delegation":{"credentials":"pass"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	status, out, stderr := w.run(func(c *exec.Cmd) { c.Env = append(c.Env, "ATIP_DELEGATION="+gh) }, "--policy", "pass.json", "--", "python3", "ask.py", "sh", "-c", "echo token=$GH_TOKEN")
	if status != 0 || out != "token=\n" || !strings.Contains(stderr, "delegation.credentials is ignored") {
		t.Errorf("a flag: status %d: %q; %s", status, out, stderr)
	}
}
