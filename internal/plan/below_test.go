package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// denying is the plan of a run under which terraform destroy and pip are denied.
func denying(t testing.TB, rules string, more ...string) *Plan {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	file := filepath.Join(dir, "deny.json")
	if err := os.WriteFile(file, []byte(`{"version":1,"rules":[`+rules+`]`+strings.Join(more, "")+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Make(Invocation{Argv: []string{"true"}, Policies: []string{file}}, here())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

const denyTerraform = `{"id":"no","decision":"deny","when":{"tool":"terraform","command":["destroy"]}}`

// TestByFile: an answer hangs on the file alone only where no words of the program can matter to
// the rules that restrict.
func TestByFile(t *testing.T) {
	byFile := func(p *Plan, words ...string) bool {
		t.Helper()
		path, err := exec.LookPath(words[0])
		if err != nil {
			t.Skip(err)
		}
		words[0] = path
		sub, err := p.Below(words, p.Cwd, os.Environ(), false)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		if err := sub.Refusal(); err != nil {
			t.Fatalf("%q: %v", words, err)
		}
		return sub.ByFile(path)
	}
	tool := denying(t, denyTerraform)
	for _, words := range [][]string{{"true", "x"}, {"cat", "f"}} {
		if !byFile(tool, words...) {
			t.Errorf("%q hung on more than its file", words)
		}
	}
	// Its words choose a tool, or may do so in other starts of the same file.
	for _, words := range [][]string{{"env", "true"}, {"bash", "--version"}, {"python3", "--version"}, {"find", "."}, {"git", "--version"}, {"node", "--version"}} {
		if byFile(tool, words...) {
			t.Errorf("%q hung on its file alone", words)
		}
	}
	// A rule that is about the tool, by one of its names, or about any tool.
	for _, rules := range []string{
		`{"id":"other","decision":"deny","when":{"tool":"cat","option":{"never":true}}}`,
		`{"id":"other","decision":"deny","when":{"tool":"c*","option":{"never":true}}}`,
		`{"id":"other","decision":"deny","when":{"tool":"/usr/bin/cat","option":{"never":true}}}`,
		`{"id":"other","decision":"deny","when":{"effects":{"network":true}}}`,
		`{"id":"other","decision":"deny","when":{"cwd":"/nowhere/**"}}`,
	} {
		if byFile(denying(t, denyTerraform+","+rules), "cat", "f") {
			t.Errorf("%s: cat hung on its file alone", rules)
		}
	}
}

// TestBelowRemembers: a program of the system is identified once in a run, and what it is told to run each
// time it starts.
func TestBelowRemembers(t *testing.T) {
	const bad = "echo bad\n"
	sum := sha256.Sum256([]byte(bad))
	p := denying(t, denyTerraform, `,"trust":{"revoked":{"sha256":["`+hex.EncodeToString(sum[:])+`"]}}`)
	for name, text := range map[string]string{"bad.sh": bad, "good.sh": "#!/bin/sh\necho good\n"} {
		if err := os.WriteFile(filepath.Join(p.Cwd, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/bin/sh", filepath.Join(p.Cwd, "link")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		words          []string
		opened, denied bool
	}{
		{[]string{"/bin/sh", "bad.sh"}, true, true},
		{[]string{"/bin/sh", "good.sh"}, true, false},
		{[]string{"/bin/sh", "bad.sh"}, true, true},
		{[]string{"/bin/sh", "-c", "echo a"}, false, false},
		{[]string{"/bin/sh", "./bad.sh"}, true, true},
		{[]string{"/bin/true", "1"}, true, false},
		{[]string{"/bin/true", "2"}, false, false},
		// What a run can write is looked at each time.
		{[]string{filepath.Join(p.Cwd, "link"), "-c", "echo a"}, true, false},
		{[]string{filepath.Join(p.Cwd, "link"), "-c", "echo b"}, true, false},
		{[]string{filepath.Join(p.Cwd, "good.sh")}, true, false},
		{[]string{filepath.Join(p.Cwd, "good.sh"), "b"}, true, false},
	} {
		sub, err := p.Below(row.words, p.Cwd, os.Environ(), false)
		if err != nil {
			t.Fatalf("%q: %v", row.words, err)
		}
		if opened := sub.Steps[0].Executable != nil; opened != row.opened {
			t.Errorf("%q: opened %v", row.words, opened)
		}
		if err := sub.Refusal(); (err != nil) != row.denied {
			t.Errorf("%q: %v", row.words, err)
		}
		sub.Close()
	}
}

// BenchmarkBelow decides starts with other words below code of the workspace.
func BenchmarkBelow(b *testing.B) {
	p := denying(b, denyTerraform)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		sub, err := p.Below([]string{"/bin/true", strconv.Itoa(n)}, p.Cwd, os.Environ(), false)
		if err != nil {
			b.Fatal(err)
		}
		if err := sub.Refusal(); err != nil {
			b.Fatal(err)
		}
		sub.Close()
	}
}
