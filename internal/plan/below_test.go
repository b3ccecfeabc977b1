package plan

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// denying is the plan of a run under which terraform destroy and pip are denied.
func denying(t testing.TB, rules string) *Plan {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	file := filepath.Join(dir, "deny.json")
	if err := os.WriteFile(file, []byte(`{"version":1,"rules":[`+rules+`]}`), 0o600); err != nil {
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
