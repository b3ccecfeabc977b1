package main_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeniedFileBySpelling: a rule on a file denies it under each name that leads to it. Without the
// rule every spelling runs.
func TestDeniedFileBySpelling(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(w.ws, "bin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("/usr/bin/id")
	if err != nil {
		t.Fatal(err)
	}
	tool := filepath.Join(dir, "tool")
	if err := os.WriteFile(tool, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	link := func(make func(old, new string) error, old, name string) string {
		path := filepath.Join(dir, name)
		if err := make(old, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	elsewhere := filepath.Join(w.ws, "elsewhere")
	if err := os.Symlink(dir, elsewhere); err != nil {
		t.Fatal(err)
	}
	id, err := filepath.EvalSymlinks("/usr/bin/id")
	if err != nil {
		t.Fatal(err)
	}
	for _, spelled := range []struct{ file, word string }{
		{id, "id"},
		{id, "/usr/bin/id"},
		{id, "/proc/self/root/usr/bin/id"},
		{id, "/usr/bin/../bin//id"},
		{id, link(os.Symlink, "/usr/bin/id", "ls")},
		{tool, tool},
		{tool, "/proc/self/root" + tool},
		{tool, link(os.Symlink, tool, "link")},
		{tool, link(os.Symlink, "link", "link-of-link")},
		{tool, link(os.Link, tool, "hard")},
		{tool, filepath.Join(elsewhere, "tool")},
		{tool, filepath.Join(elsewhere, "hard")},
	} {
		w.policy(`{"version":1}`)
		if r := w.runs("", nil, "atip-exec", "--", spelled.word, "-u"); r.status != 0 {
			t.Errorf("%s, without the rule: %d %s", spelled.word, r.status, r.stderr)
		}
		w.policy(`{"version":1,"rules":[{"id":"no","decision":"deny","when":{"tool":"` + spelled.file + `"}}]}`)
		if r := w.runs("", nil, "atip-exec", "--", spelled.word, "-u"); r.status != 77 || r.stdout != "" {
			t.Errorf("%s: %d %q %s", spelled.word, r.status, r.stdout, r.stderr)
		}
	}
}

// TestProgramTextIsIdentified: the text that an interpreter is told to run is a part of what was
// identified. It is evidence by its bytes, condemned by them, and not read while somebody writes it.
func TestProgramTextIsIdentified(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		argv       []string
	}{
		{"a.sh", "echo ran\n", []string{"bash", "a.sh"}},
		{"sub/b.sh", "echo ran\n", []string{"sh", "-e", "sub/b.sh"}},
		{"c.py", "print('ran')\n", []string{"/usr/bin/python3", "-u", "./c.py", "word"}},
		{"d.js", "console.log('ran')\n", []string{"node", "d.js"}},
		{"e.rb", "puts 'ran'\n", []string{"ruby", "e.rb"}},
		{"f.pl", "print \"ran\\n\";\n", []string{"perl", "f.pl"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(tc.argv[0]); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			put(t, w.ws, map[string]string{tc.name: tc.text, "other": "something else\n"})
			path := filepath.Join(w.ws, tc.name)
			sum := fmt.Sprintf("%x", sha256.Sum256([]byte(tc.text)))
			run := func(trust string) outcome {
				w.policy(`{"version":1,"trust":{` + trust + `}}`)
				return w.runs("", nil, "atip-exec", append([]string{"--"}, tc.argv...)...)
			}
			ran := func(trust string) {
				t.Helper()
				if r := run(trust); r.status != 0 || r.stdout != "ran\n" {
					t.Errorf("%s: %d %q %s", trust, r.status, r.stdout, r.stderr)
				}
			}
			refused := func(trust, reason string) {
				t.Helper()
				if r := run(trust); r.status != 77 || r.stdout != "" || !strings.Contains(r.stderr, reason) {
					t.Errorf("%s: %d %q %s", trust, r.status, r.stdout, r.stderr)
				}
			}
			ran(``)
			if out := w.runs("", nil, "atip-exec", append([]string{"explain", "--output", "json", "--"}, tc.argv...)...).stdout; !strings.Contains(out, sum) {
				t.Errorf("the evidence does not name the text: %s", out)
			}
			ran(`"revoked":{"sha256":["` + strings.Repeat("ab", 32) + `"]}`)
			refused(`"revoked":{"sha256":["`+sum+`"]}`, "revoked")
			ran(`"pins":{"` + path + `":["sha256:` + sum + `"]}`)
			refused(`"pins":{"`+path+`":["sha256:`+strings.Repeat("ab", 32)+`"]}`, "hash_mismatch")

			// What is too large to be read in time has no digest, and no pin on it holds.
			if err := os.Truncate(path, 65<<20); err != nil {
				t.Fatal(err)
			}
			refused(`"pins":{"`+path+`":["sha256:`+sum+`"]}`, "hash_mismatch")
			put(t, w.ws, map[string]string{tc.name: tc.text})

			writer, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if r := run(``); r.status != 75 || r.stdout != "" || !strings.Contains(r.stderr, "E3301") {
				t.Errorf("open for writing: %d %q %s", r.status, r.stdout, r.stderr)
			}
			writer.Close()
			ran(``)
		})
	}
}

// TestFoundAndHeld: what the built programs start is what their rules of finding, naming and holding say.
func TestFoundAndHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := func(path, text string, mode os.FileMode) string {
		put(t, "/", map[string]string{path: text})
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(path string, argv ...string) outcome {
		return w.runs("", []string{"PATH=" + path}, "atip-exec", append([]string{"--"}, argv...)...)
	}
	explained := func(path string, argv ...string) string {
		return w.runs("", []string{"PATH=" + path}, "atip-exec", append([]string{"explain", "--output", "json", "--"}, argv...)...).stdout
	}
	sum := func(path string) string {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", sha256.Sum256(raw))
	}

	// Relative entries never match; what cannot be executed is passed over.
	script(filepath.Join(w.ws, "id"), "#!/bin/sh\necho planted\n", 0o755)
	script(filepath.Join(w.ws, "bin", "id"), "#!/bin/sh\necho planted\n", 0o755)
	script(filepath.Join(w.ws, "abs", "id"), "#!/bin/sh\necho planted\n", 0o644)
	for _, path := range []string{".:bin:/usr/bin", ":/usr/bin", "./bin:../ws:/usr/bin", filepath.Join(w.ws, "abs") + ":/usr/bin"} {
		if r := run(path, "id", "-u"); r.status != 0 || strings.Contains(r.stdout, "planted") {
			t.Errorf("PATH=%s: %d %q %s", path, r.status, r.stdout, r.stderr)
		}
	}
	if err := os.Chmod(filepath.Join(w.ws, "abs", "id"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r := run(filepath.Join(w.ws, "abs")+":/usr/bin:/bin", "id", "-u"); r.stdout != "planted\n" {
		t.Errorf("an absolute entry with a file that can be executed: %d %q %s", r.status, r.stdout, r.stderr)
	}

	// A script has the digests of all that runs.
	py := script(filepath.Join(w.ws, "tool"), "#!/usr/bin/env python3\nprint('ran')\n", 0o755)
	out := explained("/usr/bin:/bin", "./tool")
	for _, path := range []string{py, "/usr/bin/env", "/usr/bin/python3"} {
		if !strings.Contains(out, sum(path)) {
			t.Errorf("the evidence lacks the digest of %s", path)
		}
	}

	// Equal bytes of a version manager are different tools.
	root := filepath.Join(w.home, ".pyenv")
	shim := "#!/usr/bin/env bash\nset -e\nprogram=\"${0##*/}\"\nexport PYENV_ROOT=\"" + root + "\"\nexec \"" + root + "/libexec/pyenv\" exec \"$program\" \"$@\"\n"
	shims := filepath.Join(root, "shims")
	tools := map[string]string{}
	for _, name := range []string{"black", "python3"} {
		script(filepath.Join(shims, name), shim, 0o755)
		script(filepath.Join(root, "versions/3.12/bin", name), "#!/bin/sh\necho "+name+"\n", 0o755)
		put(t, w.home, map[string]string{".pyenv/version": "3.12\n"})
		out := explained(shims+":/usr/bin:/bin", name, "--version")
		if !strings.Contains(out, ".pyenv/versions/3.12/bin/"+name) {
			t.Errorf("the evidence of %s lacks the program behind the shim", name)
		}
		_, tool, _ := strings.Cut(out, `"tool":"`)
		tools[name], _, _ = strings.Cut(tool, `"`)
	}
	if tools["black"] == tools["python3"] {
		t.Errorf("two shims are one tool: %v", tools)
	}

	// What somebody writes is not started.
	writer, err := os.OpenFile(py, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r := run("/usr/bin:/bin", "./tool"); r.status != 75 || r.stdout != "" || !strings.Contains(r.stderr, "E3301") {
		t.Errorf("open for writing: %d %q %s", r.status, r.stdout, r.stderr)
	}
	writer.Close()
	if r := run("/usr/bin:/bin", "./tool"); r.status != 0 || r.stdout != "ran\n" {
		t.Errorf("closed: %d %q %s", r.status, r.stdout, r.stderr)
	}

	// A remembered digest that others could have written is as if it were absent: it is written anew.
	records := filepath.Join(w.home, ".local/state/atip-exec/digest")
	entries, err := os.ReadDir(records)
	if err != nil || len(entries) == 0 {
		t.Fatalf("no digest is remembered: %v", err)
	}
	for _, e := range entries {
		if err := os.Chmod(filepath.Join(records, e.Name()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run("/usr/bin:/bin", "id", "-u")
	renewed := 0
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(records, e.Name())); err == nil && info.Mode().Perm() == 0o600 {
			renewed++
		}
	}
	if renewed == 0 {
		t.Error("no record was written anew")
	}
}
