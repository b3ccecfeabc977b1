package run

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// corpusRow is one labelled command.
type corpusRow struct {
	Cmd        string   `json:"cmd"`
	Decision   string   `json:"decision"`
	Acceptable []string `json:"acceptable"`
	Tags       []string `json:"tags"`
}

// scratchWorld is a work tree of a small project and a home with credentials.
func scratchWorld(t testing.TB) Machine {
	t.Helper()
	root := t.TempDir()
	home, ws := filepath.Join(root, "home", "u"), filepath.Join(root, "home", "u", "p")
	files := map[string]string{"p/README.md": "hello\n", "p/src/a": "a\n", "p/src/m.go": "package src\n", "p/go.mod": "module x\n", "p/x.sh": "#!/bin/sh\necho hi\n",
		"p/package.json": "{\"name\":\"x\"}\n", "p/Makefile": "all:\n\techo hi\n", "p/script.py": "print(1)\n", "p/index.js": "1\n",
		".ssh/id_rsa": "key\n", ".ssh/id_ed25519": "key\n", ".aws/credentials": "x\n", ".bashrc": "\n"}
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "x"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = ws, append(os.Environ(), "HOME="+home)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	t.Chdir(ws)
	m := Here()
	m.Environ = []string{"HOME=" + home, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C", "USER=u", "XDG_RUNTIME_DIR=" + filepath.Join(root, "run")}
	return m
}

func readCorpus(t *testing.T, name string) []corpusRow {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "testdata", "commands", name))
	if err != nil {
		t.Fatal(err)
	}
	var rows []corpusRow
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for n := 1; lines.Scan(); n++ {
		var row corpusRow
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestCorpus holds the gate: nothing is allowed that must not be, and few commands
// ask that need not.
func TestCorpus(t *testing.T) {
	var rows []corpusRow
	for _, name := range []string{"allow.jsonl", "confirm.jsonl", "deny.jsonl"} {
		rows = append(rows, readCorpus(t, name)...)
	}
	got := decideAll(t, rows)
	allowed, asked, acceptable, exact := 0, 0, 0, 0
	for i, row := range rows {
		d := got[i]
		if row.Decision == "allow" {
			allowed++
			if d != "allow" {
				asked++
				t.Logf("asks: %q: %s", row.Cmd, d)
			}
			if d == "deny" {
				t.Errorf("%q is denied, want %s", row.Cmd, row.Decision)
			}
		}
		if d == "allow" && !slices.Contains(row.Acceptable, "allow") {
			t.Errorf("unsafe: %q is allowed, want %s", row.Cmd, row.Decision)
		}
		if slices.Contains(row.Acceptable, d) {
			acceptable++
		} else {
			t.Logf("%q: %s, acceptable are %v", row.Cmd, d, row.Acceptable)
		}
		if d == row.Decision {
			exact++
		}
	}
	t.Logf("%d rows: %d of %d allow rows ask, %d acceptable, %d exact", len(rows), asked, allowed, acceptable, exact)
	if asked*50 > allowed {
		t.Errorf("%d of %d commands that should run ask: more than 2 %%", asked, allowed)
	}
	if acceptable*100 < len(rows)*97 {
		t.Errorf("%d of %d decisions are acceptable: less than 97 %%", acceptable, len(rows))
	}
	if exact*100 < len(rows)*90 {
		t.Errorf("%d of %d decisions are exact: less than 90 %%", exact, len(rows))
	}
}

// decideAll answers every row as `explain --batch` does.
func decideAll(t *testing.T, rows []corpusRow) []string {
	t.Helper()
	m := scratchWorld(t)
	var in, out bytes.Buffer
	enc := json.NewEncoder(&in)
	for i, row := range rows {
		if err := enc.Encode(map[string]any{"id": i, "cmd": row.Cmd}); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&Batch{Machine: m}).Answer(&in, &out); err != nil {
		t.Fatal(err)
	}
	var got []string
	dec := json.NewDecoder(&out)
	for range rows {
		var d struct{ Decision string }
		if err := dec.Decode(&d); err != nil {
			t.Fatal(err)
		}
		got = append(got, d.Decision)
	}
	return got
}
