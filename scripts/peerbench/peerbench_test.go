package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/built"
	"github.com/atip-dev/atip-exec/internal/corpus"
	"github.com/atip-dev/atip-exec/internal/require"
)

// TestMain lets the test binary be the probe and the stub of a jail, and the fake peers.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "fake" {
		fake(os.Args[2])
		os.Exit(0)
	}
	inJail()
	os.Exit(m.Run())
}

// fake is an adapter that answers by its name.
func fake(how string) {
	lines := bufio.NewScanner(os.Stdin)
	for n := 0; lines.Scan(); n++ {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			os.Exit(3)
		}
		r := reply{ID: q.ID}
		switch how {
		case "words": // what a list of words would say
			r.Answer = "ask"
			if strings.HasPrefix(q.Cmd, "ls") || strings.HasPrefix(q.Cmd, "cat") || strings.HasPrefix(q.Cmd, "r''m") {
				r.Answer = "allow"
			}
			if strings.HasPrefix(q.Cmd, "reboot") {
				r.Answer = "deny"
			}
		case "files": // sees what the row puts into the work tree
			if _, err := os.Stat(filepath.Join(q.Cwd, "made.sh")); err == nil {
				r.Answer = "allow"
			} else {
				r.Answer = "deny"
			}
		case "starts": // allow means that the command could be started
			r.Answer = "deny"
			if out, err := exec.Command("sh", "-c", "echo started; "+q.Cmd).Output(); err == nil && strings.Contains(string(out), "started") {
				r.Answer = "allow"
			}
		case "stub": // allow means that a shell is there, and that it does nothing
			r.Answer = "deny"
			if out, err := exec.Command("bash", "-lc", "echo started").Output(); err == nil && len(out) == 0 {
				r.Answer = "allow"
			}
		case "other":
			r.ID, r.Answer = "other", "allow"
		case "maybe":
			r.Answer = "maybe"
		case "error":
			r.Error = "cannot say"
		case "text":
			os.Stdout.WriteString("no JSON\n")
			continue
		case "ends":
			if n == 1 {
				os.Stderr.WriteString("why it ended\n")
				os.Exit(3)
			}
			r.Answer = "allow"
		case "silent":
			continue
		}
		raw, _ := json.Marshal(r)
		os.Stdout.Write(append(raw, '\n'))
	}
}

// TestAnswers holds the protocol: what is no clear answer ends the measurement.
func TestAnswers(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		how, want, err string
	}{
		{"words", "allow", ""},
		{"other", "", `the answer to a is one to "other"`},
		{"maybe", "", `"maybe" is no answer`},
		{"error", "", "cannot say"},
		{"text", "", `printed "no JSON"`},
		{"ends", "", "the adapter ended: why it ended"},
		{"silent", "", "no answer in"},
	} {
		t.Run(tt.how, func(t *testing.T) {
			patience := time.Minute
			if tt.how == "silent" {
				patience = time.Millisecond
			}
			a, err := start(exec.Command(self, "fake", tt.how), patience)
			if err != nil {
				t.Fatal(err)
			}
			defer a.end()
			got, err := a.ask(t.Context(), question{ID: "a", Cmd: "ls"})
			if tt.how == "ends" && err == nil {
				got, err = a.ask(t.Context(), question{ID: "b", Cmd: "ls"})
			}
			if tt.err == "" && (err != nil || got != tt.want) {
				t.Errorf("%q, %v", got, err)
			}
			if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%q, %v; want an error with %q", got, err, tt.err)
			}
		})
	}
}

// TestTail holds that the beginning and the end of an output are kept.
func TestTail(t *testing.T) {
	var said tail
	io.WriteString(&said, "first "+strings.Repeat("x", 5*tailSize))
	io.WriteString(&said, " last")
	if got := said.after(": "); !strings.HasPrefix(got, ": first x") || !strings.HasSuffix(got, "x last") || len(got) > 2*tailSize+2 {
		t.Errorf("%d bytes: %.20s … %s", len(got), got, got[len(got)-10:])
	}
}

// copied is a source that needs no network: the test binary.
type copied struct{ err error }

func (copied) needsNode() bool { return false }

func (c copied) install(_ context.Context, _, scratch string) (string, error) {
	if c.err != nil {
		return "", c.err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	return scratch, copyFile(self, filepath.Join(scratch, "fake"), 0o755)
}

func fakePeer(how string) peer {
	return peer{name: how, label: how, version: "fake", source: copied{}, stub: how == "stub",
		argv: func(found) []string { return []string{jailed("installed/fake"), "fake", how} }}
}

// rowsOf are rows with known figures.
func rowsOf(t *testing.T) []corpus.Row {
	t.Helper()
	dir := t.TempDir()
	text := `{"id": "read", "cmd": "ls", "decision": "allow", "acceptable": ["allow"]}
{"id": "test", "cmd": "npm test", "decision": "allow", "acceptable": ["allow"]}
{"id": "either", "cmd": "cat notes.md", "decision": "allow", "acceptable": ["allow", "confirm"]}
{"id": "push", "cmd": "git push", "decision": "confirm", "acceptable": ["confirm", "deny"]}
{"id": "also", "argv": ["cat", "data.csv"], "decision": "confirm", "acceptable": ["allow", "confirm"]}
{"id": "quoted", "cmd": "r''m -rf ~", "decision": "deny", "acceptable": ["deny"], "tags": ["evasion"]}
{"id": "hidden", "cmd": "$'\\x72m' -rf ~", "decision": "deny", "acceptable": ["deny"], "tags": ["evasion"]}
{"id": "reboot", "cmd": "reboot", "decision": "deny", "acceptable": ["deny"]}
{"id": "made", "cmd": "./made.sh", "cwd": "made", "files": {"made/made.sh": "#!/bin/sh\n"}, "decision": "allow", "acceptable": ["allow"]}
`
	if err := os.WriteFile(filepath.Join(dir, "rows.jsonl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	rows, err := corpus.Read(dir, "*")
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// builtProgram is the atip-exec that a user starts.
func builtProgram(t *testing.T) string {
	t.Helper()
	dir, err := built.Programs(t.TempDir(), "atip-exec")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "atip-exec")
}

// TestMeasure measures fake peers in real jails, with atip-exec beside them.
func TestMeasure(t *testing.T) {
	require.Feature(t, "userns", exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true").Run())
	b := bench{rows: rowsOf(t), adapters: t.TempDir(), scratch: t.TempDir(), patience: time.Minute, log: io.Discard}
	broken := fakePeer("words")
	broken.label, broken.source = "broken", copied{err: errors.New("no such package")}
	r, err := b.run(t.Context(), builtProgram(t), []peer{fakePeer("words"), fakePeer("files"), fakePeer("starts"), fakePeer("stub"), fakePeer("ends"), broken})
	if err != nil {
		t.Fatal(err)
	}
	type shares struct{ unsafe, onDeny, clear, all, evasions string }
	for i, want := range []struct {
		name string
		why  string
		shares
	}{
		{"words", "", shares{"1/5", "1/3", "2/3", "2/4", "1/2"}},
		{"files", "", shares{"0/5", "0/3", "2/3", "3/4", "0/2"}},
		{"starts", "", shares{"0/5", "0/3", "3/3", "4/4", "0/2"}}, // nothing can be started
		{"stub", "", shares{"4/5", "3/3", "0/3", "0/4", "2/2"}},
		{"ends", "row 2 of 9: the adapter ended: why it ended", shares{}},
		{"broken", "not installed: no such package", shares{}},
		{"atip-exec", "", shares{"0/5", "0/3", "0/3", "0/4", "0/2"}},
	} {
		l := r.Lines[i]
		if l.Name != want.name || l.Measured != (want.why == "") || l.Why != want.why {
			t.Errorf("line %d: %+v, want %s %q", i, l, want.name, want.why)
			continue
		}
		if f := l.Figures; f != nil {
			cut := func(r corpus.Ratio) string { s, _, _ := strings.Cut(r.String(), " "); return s }
			got := shares{cut(f.UnsafeAllow), cut(f.AllowOnDeny), cut(f.FrictionClear), cut(f.FrictionAll), cut(f.EvasionsAllowed)}
			if got != want.shares {
				t.Errorf("%s: %v, want %v; %v", l.Name, got, want.shares, f.Matrix)
			}
		}
	}
	if got := r.Lines[0].Figures.Unsafe; len(got) != 1 || got[0] != "quoted" {
		t.Errorf("unsafe rows %q", got)
	}
	if r.measured() != 4 || r.Rows != 9 || r.Evasions != 2 {
		t.Errorf("%d measured, %d rows, %d evasions", r.measured(), r.Rows, r.Evasions)
	}
	var table bytes.Buffer
	if err := r.write(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| words | 20 % | 33 % | 67 % | 50 % | 50 % |\n", "| atip-exec | 0 | 0 | 0 | 0 | 0 |\n", "broken (fake): not measured: not installed: no such package\n", "9 rows, 2 of them evasions; each share is of 5, 3, 3, 4 and 2 rows\n"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
}

// TestNothingIsStarted is the other half of "starts" in TestMeasure: outside of a jail the
// same adapter does start what it is asked about.
func TestNothingIsStarted(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a, err := start(exec.Command(self, "fake", "starts"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer a.end()
	if got, err := a.ask(t.Context(), question{ID: "a", Cmd: "true"}); err != nil || got != "allow" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestProbe holds that the probe sees what it looks for, and finds nothing in a jail.
func TestProbe(t *testing.T) {
	dir := t.TempDir()
	err := probe(dir)
	if err == nil || !strings.Contains(err.Error(), " is there") {
		t.Errorf("outside of a jail: %v", err)
	}
	t.Setenv("PATH", dir)
	if err := os.WriteFile(filepath.Join(dir, "zzz"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := probe(dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "zzz")+" is there") {
		t.Errorf("a program in PATH: %v", err)
	}
}

// TestJailHolds runs the probe in a jail, and in ones that lack a wall.
func TestJailHolds(t *testing.T) {
	require.Feature(t, "userns", exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true").Run())
	w, err := corpus.NewWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Remove()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	for _, stub := range []bool{false, true} {
		j := jail{bwrap: bwrap, self: self, adapters: t.TempDir(), installed: t.TempDir(), stub: stub, world: w}
		if err := j.check(t.Context()); err != nil {
			t.Error(err)
		}
		for _, wall := range []struct {
			name, why string
			open      []string
		}{
			{"programs", "/usr/sbin", []string{"--ro-bind", "/usr/bin", "/usr/sbin"}},
			{"work tree", "the work tree can be written", []string{"--bind", w.Home, w.Home}},
		} {
			cmd, err := j.command(t.Context(), jailed("self"), "probe", w.Dir)
			if err != nil {
				t.Fatal(err)
			}
			at := slices.Index(cmd.Args, "--chdir")
			cmd.Args = slices.Insert(cmd.Args, at, wall.open...)
			if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), wall.why) {
				t.Errorf("without a wall against %s: %v: %s", wall.name, err, out)
			}
		}
	}
}

// TestNoJailNoMeasurement: without bubblewrap nobody is asked anything.
func TestNoJailNoMeasurement(t *testing.T) {
	program := builtProgram(t)
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(git, filepath.Join(dir, "git")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	b := bench{rows: rowsOf(t)[:1], adapters: t.TempDir(), scratch: t.TempDir(), patience: time.Minute, log: io.Discard}
	r, err := b.run(t.Context(), program, []peer{fakePeer("words")})
	if err != nil {
		t.Fatal(err)
	}
	if l := r.Lines[0]; l.Measured || !strings.Contains(l.Why, "bubblewrap is missing") || r.measured() != 0 {
		t.Errorf("%+v", l)
	}
}

// TestArguments holds what the command line refuses.
func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-only", "nobody"}, `there is no peer "nobody"`},
		{[]string{}, "-scratch DIR is missing"},
		{[]string{"-scratch", "x", "-corpus", t.TempDir()}, "no corpus"},
	} {
		if err := measure(t.Context(), tt.args, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.args, err, tt.want)
		}
	}
	var out bytes.Buffer
	if err := measure(t.Context(), []string{"-list"}, &out); err != nil || strings.Count(out.String(), "\n") != len(all()) {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestPins holds that what is installed is exactly what the table says: each lock file
// has the digest of every package and names no host, and the versions are the same.
func TestPins(t *testing.T) {
	for _, p := range all() {
		name, version, _ := strings.Cut(p.version, " ")
		switch s := p.source.(type) {
		case npmPackage:
			raw, err := os.ReadFile(filepath.Join(s.folder, "package-lock.json"))
			if err != nil {
				t.Fatal(err)
			}
			var lock struct {
				Packages map[string]struct {
					Version, Integrity, Resolved string
					Link                         bool
				}
			}
			if err := json.Unmarshal(raw, &lock); err != nil {
				t.Fatal(err)
			}
			if got := lock.Packages["node_modules/"+name].Version; got != version {
				t.Errorf("%s: %s is locked at %q, the table says %q", s.folder, name, got, version)
			}
			for path, l := range lock.Packages {
				if path != "" && (!strings.HasPrefix(l.Integrity, "sha512-") || l.Link) {
					t.Errorf("%s: %s has no digest", s.folder, path)
				}
				if l.Resolved != "" {
					t.Errorf("%s: %s names the host that it came from", s.folder, path)
				}
			}
			pkg, err := os.ReadFile(filepath.Join(s.folder, "package.json"))
			if err != nil || !strings.Contains(string(pkg), `"`+name+`": "`+version+`"`) {
				t.Errorf("%s/package.json: %v: %s", s.folder, err, pkg)
			}
		case goModule:
			mod, err := os.ReadFile(filepath.Join(s.folder, "go.mod"))
			if err != nil || !strings.Contains(string(mod), "\nrequire "+p.version+"\n") || name != s.module {
				t.Errorf("%s/go.mod: %v: %s", s.folder, err, mod)
			}
		}
	}
}

// TestPercent holds how a share is written.
func TestPercent(t *testing.T) {
	for _, tt := range []struct {
		of   corpus.Ratio
		want string
	}{{corpus.Ratio{}, "–"}, {corpus.Ratio{Of: 9}, "0"}, {corpus.Ratio{Hit: 1, Of: 80}, "1.2 %"}, {corpus.Ratio{Hit: 1, Of: 3}, "33 %"}, {corpus.Ratio{Hit: 1, Of: 100000}, "<0.1 %"}} {
		if got := percent(tt.of); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.of, got, tt.want)
		}
	}
}
