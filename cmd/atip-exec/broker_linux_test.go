package main_test

import (
	"crypto/sha256"
	"encoding/json"
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
// token, and gh inside of it works nevertheless: the run outside decides and starts it.
func TestParentStartsWhatLacksACredential(t *testing.T) {
	w := newInside(t)
	for _, tier := range []string{"T2", "T3"} {
		for name, text := range map[string]string{"tier.json": `{"version":1,"sandbox":{"tier":"` + tier + `"}}`, "more.json": `{"version":1}`} {
			if err := os.WriteFile(filepath.Join(w.ws, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, row := range []struct {
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
		} {
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

// records reads the audit log.
func (w inside) records() []map[string]any {
	w.t.Helper()
	files, _ := filepath.Glob(w.state("audit/*.jsonl"))
	var out []map[string]any
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			var rec map[string]any
			if err := json.Unmarshal([]byte(line), &rec); err != nil {
				w.t.Fatalf("%v: %s", err, line)
			}
			out = append(out, rec)
		}
	}
	return out
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

// TestParentBelievesNothing: questions that no atip-exec would ask, on the socket itself.
func TestParentBelievesNothing(t *testing.T) {
	w := newInside(t)
	script := `import base64, json, os, socket, sys
def ask(message, fds=4, kind=socket.SOCK_SEQPACKET):
    up = socket.socket(fileno=os.dup(int(os.environ["ATIP_EXEC_PARENT"][3:])))
    mine, theirs = socket.socketpair(socket.AF_UNIX, kind)
    out, w = os.pipe()
    null = os.open("/dev/null", os.O_RDONLY)
    socket.send_fds(up, [message], [theirs.fileno(), null, w, w][:fds])
    theirs.close(); os.close(w); os.close(null); up.close()
    mine.settimeout(20)
    try: answer = json.loads(mine.recv(65536) or b'{"kind":"nothing"}')
    except ConnectionError: answer = {"kind": "nothing"}
    text = b""
    while True:
        part = os.read(out, 65536)
        if not part: break
        text += part
    return answer["kind"], answer.get("exitCode"), (answer.get("error") or {}).get("code"), text.decode()
def start(*words, cwd=os.getcwd(), **more):
    return json.dumps({"kind": "start", "argv": [base64.b64encode(x.encode()).decode() for x in words], "cwd": cwd, **more}).encode()
gh = ("gh", "pr", "list")
for name, got in {
    "honest": ask(start(*gh)),
    "a shell": ask(start("sh", "-c", "echo $GH_TOKEN; gh pr list")),
    "code of the workspace": ask(start("python3", "ask.py", "gh", "pr", "list")),
    "a piece of the token": ask(start("sh", "-c", "echo ${GH_TOKEN#?}; gh pr list")),
    "the token": ask(start("printenv", "GH_TOKEN")),
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

// TestParentsCommandEnds with whoever asked for it, with the run, and with a signal.
func TestParentsCommandEnds(t *testing.T) {
	w := newInside(t)
	awaits := func(line string) bool {
		for range 1000 {
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
		{"a timeout of the run", "T2", "", 0, []string{"--timeout", "4"}, 124},
		{"a timeout of the run", "T3", "", 0, []string{"--timeout", "4"}, 124},
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
	}
}
