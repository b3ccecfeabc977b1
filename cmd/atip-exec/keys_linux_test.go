package main_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/atip-dev/atip-exec/internal/procstat"
)

// accepting is a policy that does without what the built-in one does, and one guarantee more.
func accepting(guarantee, sandbox, rest string) string {
	return `{"version":1,"sandbox":{"accept":["files.meta","files.hidden","ws.protect","proc.hidden","tree.killed","` + guarantee + `"]` + sandbox + `}` + rest + `}`
}

// TestKeptCapabilities: a run has those that policy keeps, its caller has and the gap is
// accepted for, and else none.
func TestKeptCapabilities(t *testing.T) {
	const text = "print([l.split()[1].lstrip('0') or '0' for l in open('/proc/self/status') if l[:6] in ('CapEff', 'CapPrm', 'CapInh', 'CapAmb')])"
	has := map[string]string{"T2": "0", "T3": "1"} // a namespace of one's own has them all
	if os.Getuid() == 0 {
		has["T2"] = "1"
	}
	for _, tier := range []string{"T2", "T3"} {
		for _, tc := range []struct{ policy, want string }{
			{`{"version":1,"sandbox":{"tier":"` + tier + `"}}`, "0"},
			{accepting("privilege", `,"tier":"`+tier+`"`, `,"process":{"caps":["chown"]}`), has[tier]},
			// A limit is set by a stage.
			{accepting("privilege", `,"tier":"`+tier+`"`, `,"process":{"caps":"chown"},"limits":{"cpu":"60s"}`), has[tier]},
		} {
			w := newWorldAtHome(t)
			w.policy(tc.policy)
			want := strings.ReplaceAll("['C', 'C', 'C', 'C']", "C", tc.want)
			if status, stdout, stderr := w.python(text); status != 0 || stdout != want {
				t.Errorf("%s: status %d, %q, want %q; %s", tc.policy, status, stdout, want, stderr)
			}
		}
	}
	w := newWorld(t)
	w.policy(`{"version":1,"process":{"caps":["chown"]}}`)
	if status, _, stderr := w.python("print(1)"); status != 69 || !strings.Contains(stderr, "E4101") || !strings.Contains(stderr, "privilege") {
		t.Errorf("not accepted: status %d: %s", status, stderr)
	}
	w.policy(`{"version":1,"process":{"caps":["sys_admin"]}}`)
	if status, _, stderr := w.python("print(1)"); status != 78 || !strings.Contains(stderr, "policy.json:1:") || !strings.Contains(stderr, "sys_admin") {
		t.Errorf("one that cannot be kept: status %d: %s", status, stderr)
	}
	w.policy(`{"version":1,"sandbox":{"tier":"T0"}}`)
	if status, _, stderr := w.python("print(1)"); status != 78 || !strings.Contains(stderr, "confine") {
		t.Errorf("tier T0: status %d: %s", status, stderr)
	}
}

// TestKeptLeftovers: what a command leaves behind goes on where policy says so and accepts
// it, though not after a timeout, and not in a private root.
func TestKeptLeftovers(t *testing.T) {
	w := newWorldAtHome(t)
	name := "sleep 86." + strconv.Itoa(os.Getpid())
	leave := "import subprocess, sys, time\nsubprocess.Popen(" + fmt.Sprintf("%q", strings.Fields(name)) + ", start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
	leave = strings.Replace(leave, `["sleep" "`, `["sleep", "`, 1)
	file := filepath.Join(t.TempDir(), "status.json")
	w.policy(`{"version":1,"process":{"leftovers":"keep"}}`)
	if status, _, stderr := w.python(leave); status != 69 || !strings.Contains(stderr, "tree.end") {
		t.Errorf("not accepted: status %d: %s", status, stderr)
	}
	w.policy(accepting("tree.end", `,"tier":"T3"`, `,"process":{"leftovers":"keep"}`))
	if status, _, stderr := w.python(leave); status != 69 || !strings.Contains(stderr, "E4101") {
		t.Errorf("private root: status %d: %s", status, stderr)
	}
	w.policy(accepting("tree.end", "", `,"process":{"leftovers":"keep"}`))
	if status, _, stderr := w.python(leave+"time.sleep(60)", "--timeout", "1", "--kill-after", "0.1"); status != 124 {
		t.Errorf("timeout: status %d: %s", status, stderr)
	}
	gone(t, name)
	if status, _, stderr := w.python(leave, "--status-file", file); status != 0 {
		t.Errorf("kept: status %d: %s", status, stderr)
	}
	raw, _ := os.ReadFile(file)
	if !alive(name) || !strings.Contains(string(raw), `"leftovers":1,"survivors":0,"kept":1`) || !strings.Contains(string(raw), `"tree.end"`) {
		t.Errorf("kept: alive %v; %s", alive(name), raw)
	}
	end(t, name)
	w.policy(`{"version":1,"sandbox":{"tier":"T2"}}`)
	if status, _, stderr := w.python(leave); status != 0 {
		t.Errorf("ended: status %d: %s", status, stderr)
	}
	gone(t, name)
}

// end kills the one process with this command line, which this test has made.
func end(t *testing.T, line string) {
	t.Helper()
	for pid, words := range procstat.Lines() {
		if strings.ReplaceAll(strings.TrimRight(words, "\x00"), "\x00", " ") == line {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	gone(t, line)
}

// TestAskpass: a tool that asks for a password gets the program that policy names, where it
// would have nobody to ask.
func TestAskpass(t *testing.T) {
	w := newWorldAtHome(t)
	dir := filepath.Join(w.home, "tools")
	text := "#!/bin/sh\nread -r x </dev/null; exec \"$SSH_ASKPASS\" \"$GIT_ASKPASS\" \"$SUDO_ASKPASS\"\n"
	put(t, dir, map[string]string{"asking": text, "answer": "#!/bin/sh\necho answered $#; test \"$1\" = \"$2\"\n"})
	put(t, w.home, map[string]string{fmt.Sprintf(".config/agent-tools/overrides/sha256/%x.json", sha256.Sum256([]byte(text))): `{"atip":"0.6","name":"asking","version":"1","description":"Asks",
"trust":{"source":"org"},"interactive":{"stdin":"password"},"effects":{"network":false,"destructive":false,"reversible":true,"subprocess":true,"filesystem":{"read":true,"write":false,"delete":false},"interactive":{"stdin":"password"}}}`})
	for _, name := range []string{"asking", "answer"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := func() (int, string) {
		t.Helper()
		cmd := w.command("--", "asking")
		cmd.Env = append(cmd.Env, "PATH="+dir+":/usr/bin:/bin")
		cmd.Stdin = strings.NewReader("")
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	if status, out := run(); status != 66 || !strings.Contains(out, "E4004") {
		t.Errorf("without: status %d: %s", status, out)
	}
	for _, tier := range []string{"T2", "T3"} {
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"},"process":{"askpass":"` + dir + `/answer"}}`)
		if status, out := run(); status != 0 || out != "answered 2\n" {
			t.Errorf("%s: status %d: %s", tier, status, out)
		}
	}
	w.policy(`{"version":1,"process":{"askpass":"answer"}}`)
	if status, out := run(); status != 78 {
		t.Errorf("relative: status %d: %s", status, out)
	}
}

// TestTemporaryOfARun: what policy says of /tmp is what a run finds there.
func TestTemporaryOfARun(t *testing.T) {
	w := newWorldAtHome(t)
	name := "atip-exec-test-" + strconv.Itoa(os.Getpid())
	t.Cleanup(func() { os.Remove("/tmp/" + name) })
	write := "import os\nfor d in {'/tmp', os.environ['TMPDIR']}: open(d + '/" + name + "', 'a').write('x')\nprint([n for n in os.listdir('/tmp') if n == '" + name + "'], os.environ['TMPDIR'])"
	file := filepath.Join(t.TempDir(), "status.json")
	w.policy(`{"version":1,"sandbox":{"tier":"T3","tmp":"run"}}`)
	for range 2 {
		if status, stdout, stderr := w.python(strings.Replace(write, "'a'", "'x'", 1)); status != 0 || stdout != "['"+name+"'] /tmp" {
			t.Errorf("run: status %d, %q; %s", status, stdout, stderr)
		}
	}
	w.policy(`{"version":1,"sandbox":{"tier":"T2","tmp":"run"}}`)
	if status, _, stderr := w.python("print(1)", "--status-file", file); status != 0 {
		t.Errorf("run at T2: status %d: %s", status, stderr)
	}
	if raw, _ := os.ReadFile(file); !strings.Contains(string(raw), "those of earlier runs of the workspace are there") {
		t.Errorf("run at T2: %s", raw)
	}
	if _, err := os.Lstat("/tmp/" + name); err == nil {
		t.Error("the host has it")
	}
	w.policy(`{"version":1,"sandbox":{"tmp":"host"}}`)
	if status, _, stderr := w.python("print(1)"); status != 69 || !strings.Contains(stderr, "tmp.private") {
		t.Errorf("host, not accepted: status %d: %s", status, stderr)
	}
	for _, tier := range []string{"T2", "T3"} {
		w.policy(accepting("tmp.private", `,"tmp":"host","tier":"`+tier+`"`, ""))
		status, _, stderr := w.python(strings.Replace(write, "print", "0 and print", 1))
		if raw, err := os.ReadFile("/tmp/" + name); status != 0 || err != nil || string(raw) != "x" {
			t.Errorf("host at %s: status %d, %v, %q; %s", tier, status, err, raw, stderr)
		}
		os.Remove("/tmp/" + name)
	}
}

// TestObserve: whether denials are seen exactly is what policy says: always, never, or once
// the same command has failed so.
func TestObserve(t *testing.T) {
	t.Parallel()
	w := newWorldAtHome(t)
	outside := filepath.Join(w.home, "outside")
	text := "import os, sys\nif not os.path.exists('fixed'): open('" + outside + "', 'w')"
	certain := func(flags ...string) string {
		t.Helper()
		status, _, stderr := w.python(text, flags...)
		switch {
		case strings.Contains(stderr, "denied write "+outside):
			return "certain"
		case strings.Contains(stderr, "denied, probably"):
			return "guess"
		case status == 0 && stderr == "":
			return "none"
		}
		return fmt.Sprint(status, ": ", stderr)
	}
	for _, tc := range []struct {
		observe string
		flags   []string
		want    string
	}{
		{"", nil, "guess guess"}, {"", []string{"--explain-denials"}, "certain certain"},
		{"on", nil, "certain certain"}, {"off", nil, "guess guess"}, {"off", []string{"--explain-denials"}, "guess guess"},
		{"auto", nil, "guess certain"}, {"auto", []string{"--explain-denials"}, "certain certain"},
	} {
		if err := os.RemoveAll(filepath.Join(w.home, ".local/state/atip-exec/observe")); err != nil {
			t.Fatal(err)
		}
		policy := `{"version":1,"sandbox":{"tier":"T2"`
		if tc.observe != "" {
			policy += `,"observe":"` + tc.observe + `"`
		}
		w.policy(policy + `}}`)
		if got := certain(tc.flags...) + " " + certain(tc.flags...); got != tc.want {
			t.Errorf("observe %q, %v: %s, want %s", tc.observe, tc.flags, got, tc.want)
		}
	}
	// What has been mended is not listened to any more.
	w.policy(`{"version":1,"sandbox":{"tier":"T2","observe":"auto"}}`)
	put(t, w.ws, map[string]string{"fixed": ""})
	got := certain()
	if err := os.Remove(filepath.Join(w.ws, "fixed")); err != nil {
		t.Fatal(err)
	}
	if got += " " + certain() + " " + certain(); got != "none guess certain" {
		t.Errorf("mended: %s", got)
	}
}
