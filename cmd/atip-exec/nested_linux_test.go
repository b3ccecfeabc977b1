package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// nestable puts the directory in PATH by which runs inside are expected.
func (w world) nestable(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(w.home, ".local/share/agent-tools/bin")+":/usr/local/bin:/usr/bin:/bin:"+bin)
	return cmd
}

// TestNestedIsNarrower: a run inside a run works, says so, and can no more than the outer
// one, whatever its own policy grants.
func TestNestedIsNarrower(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1}`)
		outside := filepath.Join(w.home, "outside")
		for _, dir := range []string{outside, filepath.Join(w.home, ".local/share/agent-tools/bin")} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		text := `import subprocess, sys, json, os
status = os.environ["TMPDIR"] + "/status.json"
r = subprocess.run([sys.argv[1], "--status-file", status, "--", "python3", "-c",
    "open('made', 'w')\ntry: open('` + outside + `/x', 'w')\nexcept OSError: print('denied')"], capture_output=True, text=True)
print(r.returncode, r.stdout.strip(), json.load(open(status))["sandbox"]["nested"]["outer"])
sys.stderr.write(r.stderr)
`
		if err := os.WriteFile(filepath.Join(w.ws, "inner.py"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		// Outside, the same policy lets the write through.
		if err := os.WriteFile(filepath.Join(w.ws, "outer.json"), []byte(`{"version":1,"sandbox":{"tier":"`+tier+`"}}`), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := w.nestable(w.command("--policy", "outer.json", "--", "python3", "inner.py", filepath.Join(bin, "atip-exec")))
		var errors strings.Builder
		cmd.Stderr = &errors
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != "0 denied "+tier {
			t.Errorf("%s: %v: %q; %s", tier, err, got, errors.String())
		}
		if _, err := os.Stat(filepath.Join(w.ws, "made")); err != nil {
			t.Error(err)
		}
		w.auditSummary()
	}
}

// nestedReceipt is the part of a status that says what a run inside another got.
type nestedReceipt struct {
	Tier   string
	Gaps   []struct{ Guarantee string }
	Nested struct {
		Outer *string
		Given []string
	}
}

func (w world) nestedReceipt(file string) (r nestedReceipt) {
	w.t.Helper()
	raw, err := os.ReadFile(file)
	var doc struct{ Sandbox *nestedReceipt }
	if err == nil {
		doc.Sandbox = &r
		err = json.Unmarshal(raw, &doc)
	}
	if err != nil {
		w.t.Fatalf("%v: %s", err, raw)
	}
	return r
}

// TestPrivateRootCountsInside: what a private root promises holds for the runs inside it,
// so that a policy which demands it lets them run. Below T3 there is no such promise.
func TestPrivateRootCountsInside(t *testing.T) {
	t.Parallel()
	const text = `import os, subprocess, sys
here, policy, depth = sys.argv[1], sys.argv[2], int(sys.argv[3])
args = [here, "--policy", policy, "--status-file", os.environ["TMPDIR"] + "/status%d.json" % depth, "--", "python3", "-c", "print('innermost')"]
if depth == 0:
    args[-2:] = ["inner.py", here, policy, "1"]
    os.environ.pop("ATIP_EXEC_SANDBOX") # the root says it, too
r = subprocess.run(args, capture_output=True, text=True)
print(r.returncode, r.stdout.strip())
sys.stderr.write(r.stderr)
`
	for tier, want := range map[string]string{"T3": "0 0 innermost", "T2": "69"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1}`)
		if err := os.MkdirAll(filepath.Join(w.home, ".local/share/agent-tools/bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{"inner.py": text,
			"outer.json": `{"version":1,"sandbox":{"tier":"` + tier + `"}}`,
			"inner.json": `{"version":1,"sandbox":{"tier":"` + tier + `","require":["files.hidden","proc.hidden","tree.killed"]}}`} {
			if err := os.WriteFile(filepath.Join(w.ws, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := w.nestable(w.command("--policy", "outer.json", "--", "python3", "inner.py", filepath.Join(bin, "atip-exec"), "inner.json", "0"))
		if tier == "T2" {
			// At T2 there is nothing but the variable.
			cmd.Args[len(cmd.Args)-1] = "1"
		}
		var errors strings.Builder
		cmd.Stderr = &errors
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: %v: %q, want %q; %s", tier, err, got, want, errors.String())
			continue
		}
		if tier == "T2" {
			if text := errors.String(); !strings.Contains(text, "E4101") || !strings.Contains(text, "proc.hidden") {
				t.Errorf("refused at T2: %s", text)
			}
			continue
		}
		// Each has its temporary directory below the cache of the parent run.
		const private = "/atip-exec/ws/*"
		for depth, dir := range []string{"/.cache" + private, "/.cache" + private + "/xdg" + private} {
			files, err := filepath.Glob(w.home + dir + "/tmp/status" + strconv.Itoa(depth) + ".json")
			if err != nil || len(files) != 1 {
				t.Fatalf("depth %d: %v, %v", depth, files, err)
			}
			r := w.nestedReceipt(files[0])
			if r.Tier != "T2" || r.Nested.Outer == nil || *r.Nested.Outer != "T3" || len(r.Gaps) != 0 ||
				strings.Join(r.Nested.Given, " ") != "files.meta files.hidden ws.protect proc.hidden tree.killed" {
				t.Errorf("depth %d: %+v", depth, r)
			}
		}
		w.auditSummary()
	}
}

// TestOuterIsBelievedInAPrivateRootOnly: what looks like the word of an outer run counts on
// a read-only file system of our name and in a confined process, and nowhere else.
func TestOuterIsBelievedInAPrivateRootOnly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, source, remount, text string
		filtered, believed          bool
	}{
		{name: "imitated whole", source: "atip-exec", remount: "ro", filtered: true, believed: true},
		{name: "not confined", source: "atip-exec", remount: "ro"},
		{name: "writable", source: "atip-exec", remount: "rw", filtered: true},
		{name: "another name", source: "tmpfs", remount: "ro", filtered: true},
		{name: "an unknown key", source: "atip-exec", remount: "ro", text: `"more":1,`, filtered: true},
		{name: "another version", source: "atip-exec", remount: "ro", text: `"v":99,`, filtered: true},
	} {
		w := newWorld(t)
		file := filepath.Join(w.home, "status.json")
		outer := `{` + tc.text + `"v":1,"tier":"T3","abi":` + landlockVersion(t) + `,"errata":0,"given":["proc.hidden"],"workspace":"","protect":[]}`
		if tc.text != "" && strings.HasPrefix(tc.text, `"v"`) {
			outer = strings.Replace(outer, `"v":1,`, "", 1)
		}
		script := `set -e; mount -t tmpfs x /run; mkdir /run/atip-exec; mount -t tmpfs "$1" /run/atip-exec; printf %s "$2" >/run/atip-exec/outer.json
mount -o remount,bind,"$3" /run/atip-exec; exec "$4" --status-file "$5" -- true`
		cmd := exec.Command("unshare", "-rm", "sh", "-c", script, "sh", tc.source, outer, tc.remount, filepath.Join(bin, "atip-exec"), file)
		cmd.Dir, cmd.Env = w.ws, w.command().Env
		var text strings.Builder
		cmd.Stdout, cmd.Stderr = &text, &text
		if tc.filtered {
			startFiltered(t, cmd, unix.SYS_ACCT, 0)
		} else if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%s: %v: %s", tc.name, err, text.String())
		}
		if r := w.nestedReceipt(file); (r.Nested.Outer != nil) != tc.believed {
			t.Errorf("%s: outer %v, believed %v", tc.name, r.Nested.Outer, tc.believed)
		}
	}
}

// landlockVersion asks the kernel, as the number stands in what a run says of itself.
func landlockVersion(t *testing.T) string {
	t.Helper()
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		t.Fatal(errno)
	}
	return strconv.Itoa(int(n))
}

// TestOuterIsNullOutside: the variable of the outer run means nothing where there is none.
// A log that cannot be written stops the run there, whatever the environment says.
func TestOuterIsNullOutside(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.home, "status.json")
	state := filepath.Join(w.home, ".local/state/atip-exec")
	run := func() (status int, nested any) {
		cmd := w.command("--status-file", file, "--", "true")
		cmd.Env = append(cmd.Env, "ATIP_EXEC_SANDBOX=T3", "ATIP_EXEC_PARENT=fd:9")
		_ = cmd.Run()
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Sandbox struct{ Nested struct{ Outer any } }
		}
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), doc.Sandbox.Nested.Outer
	}
	// The first run of a user has no log yet.
	if status, outer := run(); status != 0 || outer != nil {
		t.Errorf("first run: status %d, outer %v", status, outer)
	}
	if records, _ := w.auditSummary(); records != 2 {
		t.Errorf("%d records, want its intent and its end", records)
	}
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(state, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _ := run(); status != 73 {
		t.Errorf("without a log: status %d", status)
	}
	if os.Getuid() == 0 {
		return // root opens what has no mode
	}
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	if status, _ := run(); status != 0 {
		t.Fatalf("status %d", status)
	}
	if err := os.Chmod(filepath.Join(state, "audit", "lock"), 0); err != nil {
		t.Fatal(err)
	}
	if status, _ := run(); status != 73 {
		t.Errorf("with a log that was closed: status %d", status)
	}
}

// TestNestedTooDeep: the seventeenth layer is an error, not a run with one layer less.
func TestNestedTooDeep(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		if err := os.MkdirAll(filepath.Join(w.home, ".local/share/agent-tools/bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "import os, sys\nopen('levels', 'a').write('level\\n')\nos.execv(sys.argv[1], [sys.argv[1], '--', 'python3', 'deep.py', sys.argv[1]])\n"
		if err := os.WriteFile(filepath.Join(w.ws, "deep.py"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := w.nestable(w.command("--", "python3", "deep.py", filepath.Join(bin, "atip-exec")))
		out, _ := cmd.CombinedOutput()
		raw, err := os.ReadFile(filepath.Join(w.ws, "levels"))
		if n := strings.Count(string(raw), "level"); err != nil || cmd.ProcessState.ExitCode() != 69 || n < 8 || n > 16 || !strings.Contains(string(out), "too deep") {
			t.Errorf("%s: status %d after %d levels, %v: %.2000s", tier, cmd.ProcessState.ExitCode(), n, err, out)
		}
	}
}

// TestNestedSpellings: a run starts in a run, however either is written.
func TestNestedSpellings(t *testing.T) {
	w := newWorld(t)
	inner := []string{"-- echo inner", "-c 'echo inner'", "-c 'echo in | sed s/$/ner/'", "-c 'cat note; true'", "-- sh -c 'cat note'"}
	put(t, w.ws, map[string]string{"note": "inner\n"})
	for _, words := range inner {
		text := "atip-exec " + words
		for name, args := range map[string][]string{"argv": {"--", "sh", "-c", text}, "text": {"-c", text}, "one of two": {"-c", text + "; true"}, "piped": {"-c", text + " | cat"}, "in a shell": {"-c", `bash -c "` + text + `"`}} {
			if name == "in a shell" && strings.Contains(text, "$") {
				continue
			}
			if out, err := w.command(args...).CombinedOutput(); err != nil || string(out) != "inner\n" {
				t.Errorf("%s, %s: %v: %s", words, name, err, out)
			}
		}
	}
}
