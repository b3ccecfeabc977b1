package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConsoleExamples runs every "$ …" line of the console blocks in README.md and
// docs/, and looks for the lines printed below it. "…" stands for anything.
func TestConsoleExamples(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, file := range append(files, "../../README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range consoleBlocks(string(text)) {
			w := exampleWorld(t)
			for _, step := range block {
				w.example(filepath.Base(file), step)
				ran++
			}
		}
	}
	if ran < 6 {
		t.Errorf("only %d examples were found", ran)
	}
}

type example struct {
	line string
	want []string
}

func consoleBlocks(text string) [][]example {
	var blocks [][]example
	for {
		_, rest, ok := strings.Cut(text, "```console\n")
		if !ok {
			return blocks
		}
		body, after, _ := strings.Cut(rest, "```")
		text = after
		var block []example
		for _, line := range strings.Split(body, "\n") {
			if cmd, ok := strings.CutPrefix(line, "$ "); ok {
				block = append(block, example{line: cmd})
			} else if strings.TrimSpace(line) != "" && len(block) > 0 {
				last := &block[len(block)-1]
				last.want = append(last.want, line)
			}
		}
		blocks = append(blocks, block)
	}
}

// exampleWorld is the repository that the examples speak of.
func exampleWorld(t *testing.T) world {
	w := newWorld(t)
	stubs := filepath.Join(w.home, "stubs")
	const setup = `set -e
mkdir -p "$HOME/stubs"
printf '#!/bin/sh\ntouch "$HOME/ran"\n' >"$HOME/stubs/gh"
chmod 755 "$HOME/stubs/gh"
printf 'hello\n' >README.md
git add README.md
git -c user.name=a -c user.email=a@example.invalid commit -q -m first
printf 'more\n' >>README.md
printf 'token: ghp_%s%s\n' a1B2c3D4e5F6g7H8i9 J0k1L2m3N4o5P6q7R8 >.git/notes
cp .git/notes "$HOME/notes.txt"
`
	cmd := exec.Command("bash", "-c", setup)
	cmd.Dir, cmd.Env = w.ws, append(w.command().Env, "PATH=/usr/bin:/bin")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w.path = stubs
	return w
}

func (w world) example(file string, e example) {
	w.t.Helper()
	cmd := exec.Command("bash", "-c", e.line)
	cmd.Dir = w.ws
	cmd.Env = []string{"HOME=" + w.home, "PATH=" + w.path + ":/usr/local/bin:/usr/bin:/bin:" + bin, "ATIP_EXEC_OUTPUT=text"}
	out, err := cmd.CombinedOutput()
	if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() == 64 || exit.ExitCode() == 70 || exit.ExitCode() == 78) {
		w.t.Errorf("%s: %q: %v: %s", file, e.line, err, out)
	}
	for _, want := range e.want {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*")
		pattern = regexp.MustCompile(`:[0-9a-f]{6}\\\]`).ReplaceAllString(pattern, `:[0-9a-f]{6}\]`)
		if !regexp.MustCompile("(?m)^" + pattern + "$").Match(out) {
			w.t.Errorf("%s: %q does not print %q, but\n%s", file, e.line, want, out)
		}
	}
}

// TestThreatModelNamesItsTests holds docs/threat-model.md to its word: each test
// and script it names must be there.
func TestThreatModelNamesItsTests(t *testing.T) {
	text, err := os.ReadFile("../../docs/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, pattern := range []string{"../../*/*_test.go", "../../*/*/*_test.go", "../../*/*/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(raw)
		}
	}
	names := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
	if len(names) < 10 {
		t.Fatalf("only %d tests are named", len(names))
	}
	for _, name := range names {
		if !strings.Contains(sources.String(), "func "+name[1]+"(") {
			t.Errorf("docs/threat-model.md names %s, which is not there", name[1])
		}
	}
	for _, script := range regexp.MustCompile("`([a-z]+\\.txt)`").FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join("testdata", script[1])); err != nil {
			t.Error(err)
		}
	}
}
