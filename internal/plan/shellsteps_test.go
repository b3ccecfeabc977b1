package plan

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/policy"
)

// shellWorld is the work tree of a small project below a home.
func shellWorld(t testing.TB) caller.Machine {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home", "u")
	ws := filepath.Join(home, "p")
	for name, text := range map[string]string{"src/a": "a\n", "go.mod": "module x\n", "x.sh": "#!/bin/sh\necho hi\n"} {
		path := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git := exec.Command("git", "init", "-q", ws)
	git.Env = append(os.Environ(), "HOME="+home)
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	t.Chdir(ws)
	m := here()
	m.Environ = []string{"HOME=" + home, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "USER=u", "XDG_RUNTIME_DIR=" + filepath.Join(home, "run")}
	return m
}

// planOf is the plan of a shell string in the work tree that m was made for.
func planOf(t *testing.T, m caller.Machine, text string) *Plan {
	t.Helper()
	p, err := Make(Invocation{Shell: text, IsShell: true}, m)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	t.Cleanup(p.Close)
	return p
}

// A command that is denied is denied wherever it stands, and one too many is never
// allowed.
func TestTooManyCommands(t *testing.T) {
	m := shellWorld(t)
	many := strings.Repeat("echo x; ", 256)
	if p := planOf(t, m, "rm -rf ~; "+many); p.Decision.Action != policy.Deny {
		t.Errorf("first of 257: %v", p.Decision.Action)
	}
	if p := planOf(t, m, many+"rm -rf ~"); p.Decision.Action == policy.Allow {
		t.Errorf("last of 257 is allowed")
	}
}

func TestTextsThatAreNone(t *testing.T) {
	m := shellWorld(t)
	for _, text := range []string{"a\x00b", "\xff", "echo \"x", "if", "sh -c 'if'"} {
		_, err := Make(Invocation{Shell: text, IsShell: true}, m)
		if err == nil {
			t.Errorf("%q: no error", text)
			continue
		}
		if f := fault.From(err); f.Code != "E1601" || f.Exit != 65 {
			t.Errorf("%q: %s, exit %d", text, f.Code, f.Exit)
		}
	}
}

// Paths are judged from where the command would run.
func TestDirectoriesOfSteps(t *testing.T) {
	m := shellWorld(t)
	home := m.Getenv("HOME")
	if err := os.Mkdir("sub", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ text, want string }{
		{"cd /; rm -rf tmp2", "/tmp2"},
		{"cd sub && cat ../../../x", filepath.Dir(home) + "/x"},
		{"cd sub; cat ../y", home + "/p/y"},
		{"cd; cat y", home + "/y"},
		{"(cd sub; cat y)", home + "/p/sub/y"},
		{"cat < sub/../y", home + "/p/y"},
		{"cd gone && echo x > y", home + "/p/gone/y"},
		{"sh -c 'cd sub && cat y'", home + "/p/sub/y"},
		{"env -C sub cat y", home + "/p/sub/y"},
	} {
		found := false
		for _, s := range planOf(t, m, row.text).Steps {
			for _, r := range s.Call.Resources {
				found = found || r.Abs == row.want
			}
		}
		if !found {
			t.Errorf("%q: no step touches %s", row.text, row.want)
		}
	}
}

// What is started is what was identified: one plain command without a shell, else a
// shell that knows where each command is.
func TestWhatAStringStarts(t *testing.T) {
	m := shellWorld(t)
	if got := planOf(t, m, "ls  -l   'a b'").Argv; strings.Join(got, "|") != "ls|-l|a b" {
		t.Errorf("a plain command starts %q", got)
	}
	got := planOf(t, m, "ls | wc -l; no-such-tool; ./x.sh").Argv
	text := got[len(got)-1]
	for _, want := range []string{"hash -p /usr/bin/ls ls; ", "hash -p /usr/bin/wc wc; ", "hash -p /command-not-found/no-such-tool no-such-tool; "} {
		if !strings.Contains(strings.ReplaceAll(text, "-p /bin/", "-p /usr/bin/"), want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if got[1] != "--noprofile" || got[2] != "--norc" || got[3] != "-p" || strings.Contains(text, "hash -p ./x.sh") {
		t.Errorf("starts %q", got)
	}
	p, err := Make(Invocation{Shell: "echo $1; ls", IsShell: true, ShellArgs: []string{"name", "one"}}, m)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if n := len(p.Argv); p.Argv[n-2] != "name" || p.Argv[n-1] != "one" {
		t.Errorf("starts %q", p.Argv)
	}
	long, err := Make(Invocation{Shell: "ls; echo " + strings.Repeat("x", step.MaxArg), IsShell: true}, m)
	if err != nil {
		t.Fatal(err)
	}
	defer long.Close()
	if last := long.Argv[len(long.Argv)-1]; !strings.HasPrefix(last, ". /dev/fd/") || !strings.Contains(long.LongText, "hash -p ") || !strings.HasSuffix(long.LongText, "x\n") {
		t.Errorf("a text longer than one argument may be is handed over as %.40q, %.80q", last, long.LongText)
	}
	if argv := long.Steps[0].Argv; !strings.HasSuffix(argv[len(argv)-1], "x") {
		t.Error("an approval of a long text does not bind it")
	}
}

// The commands of one string share a sandbox: a test must not get the network that
// a neighbour needs. One that can be a run of its own is one.
func TestNeighbours(t *testing.T) {
	m := shellWorld(t)
	for text, want := range map[string]policy.Action{"gh pr list": policy.Allow, "./x.sh": policy.Allow, "gh pr list; ./x.sh": policy.Allow, "gh pr list; set +o pipefail; hash -r; ./x.sh": policy.Confirm} {
		p := planOf(t, m, text)
		if p.Decision.Action != want {
			t.Errorf("%q: %v, want %v", text, p.Decision.Action, want)
		}
		if want == policy.Confirm && len(p.Decision.Alternatives) == 0 {
			t.Errorf("%q: no advice to run them apart", text)
		}
	}
}

// A script of the workspace runs as code of the workspace, but what is denied in it
// stays denied.
func TestScriptsOfTheWorkspace(t *testing.T) {
	m := shellWorld(t)
	for name, text := range map[string]string{"bad.sh": "#!/bin/sh\nset -e\nrm -rf ~\n", "fine.sh": "#!/usr/bin/env bash\ncurl https://example.com\n\"$@\"\n", "odd.sh": "#!/bin/sh\nif\n"} {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]policy.Action{"./bad.sh": policy.Deny, "bash bad.sh": policy.Deny, "ls; sh ./bad.sh": policy.Deny, ". ./bad.sh": policy.Deny,
		"./fine.sh": policy.Allow, "bash fine.sh x": policy.Allow, "./odd.sh": policy.Allow, ". ./odd.sh": policy.Confirm} {
		if got := planOf(t, m, text).Decision.Action; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// Values of credentials stay out of a plan, and a variable that the text does not
// set is what the environment holds.
func TestVariablesOfTheEnvironment(t *testing.T) {
	m := shellWorld(t)
	secret := strings.Repeat("s3", 12)
	m.Environ = append(m.Environ, "MY_TOKEN="+secret, "WHERE="+m.Getenv("HOME"), "TOOL=rm")
	p := planOf(t, m, "echo $MY_TOKEN; ls \"$MY_TOKEN\"")
	raw, err := json.Marshal(p.Document())
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte(secret)) {
		t.Error("the plan shows the value of a credential")
	}
	for text, want := range map[string]policy.Action{"$TOOL -rf $WHERE": policy.Deny, "rm -rf \"$WHERE\"": policy.Deny, "$MY_TOKEN -rf x": policy.Confirm, "TOOL=ls; $TOOL $WHERE": policy.Allow} {
		if got := planOf(t, m, text).Decision.Action; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// The shape in which a host of agents sends its commands: its own snapshot first, the
// command in an eval, the directory it ended in last.
func TestHostSnapshot(t *testing.T) {
	m := shellWorld(t)
	dir := filepath.Join(m.Getenv("HOME"), ".claude", "shell-snapshots")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	snapshot := filepath.Join(dir, "s.sh")
	if err := os.WriteFile(snapshot, []byte("shopt -s expand_aliases\nexport PATH=/usr/bin\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := func(cmd string) string {
		return "source " + snapshot + " && eval '" + cmd + "' < /dev/null && pwd -P >| /tmp/host-1-cwd"
	}
	for cmd, want := range map[string]policy.Action{"ls -la": policy.Allow, "git push --force": policy.Confirm, "rm -rf ~": policy.Deny} {
		if got := planOf(t, m, text(cmd)).Decision.Action; got != want {
			t.Errorf("%q: %v, want %v", cmd, got, want)
		}
	}
	if err := os.Chmod(snapshot, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := planOf(t, m, text("ls -la")).Decision.Action; got == policy.Allow {
		t.Error("a snapshot that others can write is believed")
	}
}

// A port is part of whom a command talks to: the loopback switch leaves some out.
func TestPortsOfURLs(t *testing.T) {
	m := shellWorld(t)
	for value, want := range map[string]int{"http://127.0.0.1:2375/x": 2375, "127.0.0.1:2375/x": 2375, "http://a:b@h:99?x": 99, "http://[::1]:8001/": 8001, "http://h/a:1": 0, "h": 0, "http://h:x/": 0} {
		if got := step.UrlPort(value); got != want {
			t.Errorf("%s: %d, want %d", value, got, want)
		}
	}
	doc, err := policy.Parse(policy.Source{File: "user", Layer: policy.LayerUser, Raw: []byte(`{"version":1,"switches":{"loopback":true}}`)})
	if err != nil {
		t.Fatal(err)
	}
	set, err := policy.Compile([]*policy.Document{policy.Builtin(), doc})
	if err != nil {
		t.Fatal(err)
	}
	for cmd, want := range map[string]policy.Action{"curl http://127.0.0.1:3000/x": policy.Allow, "curl http://127.0.0.1:2375/x": policy.Confirm, "curl localhost:6443": policy.Confirm, "curl http://localhost:9222/json": policy.Confirm} {
		if v := NewJudge(m, set).Decide(Question{Cmd: cmd}); v.Action != want {
			t.Errorf("%s: %v, want %v (%v)", cmd, v.Action, want, v.Err)
		}
	}
}
