package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadDocuments puts documents that must not be believed wherever a look-up finds
// them. What a person wrote stops the command and names file and place; what was fetched
// or probed makes the tool unknown, and no lower source answers for it.
func TestBadDocuments(t *testing.T) {
	w := newWorld(t)
	stubs := filepath.Join(w.home, "stubs")
	if err := os.Mkdir(stubs, 0o755); err != nil {
		t.Fatal(err)
	}
	// A name that a built-in document knows as harmless.
	tool := filepath.Join(stubs, "cat")
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(tool)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	digest, other := hex.EncodeToString(sum[:]), strings.Repeat("ab", 32)
	doc := func(more string) string {
		return `{"atip":{"version":"0.6"},"binary":{"hash":"sha256:` + digest + `","name":"cat","version":"1"},"description":"d"` + more + `}`
	}
	call := func(program string, args ...string) (int, string, string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, program), args...)
		cmd.Dir = w.ws
		cmd.Env = []string{"HOME=" + w.home, "PATH=" + stubs + ":/usr/bin:/bin"}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		if exit, ok := err.(*exec.ExitError); ok {
			return exit.ExitCode(), stdout.String(), stderr.String()
		} else if err != nil {
			t.Fatal(err)
		}
		return 0, stdout.String(), stderr.String()
	}
	data, config := filepath.Join(w.home, ".local/share/agent-tools"), filepath.Join(w.home, ".config/agent-tools")
	byHash := filepath.Join(data, "shims/sha256", digest+".json")
	places := []struct {
		name, file string
		fetched    bool
	}{
		{"override", filepath.Join(config, "overrides/sha256", digest+".json"), false},
		{"planted shim", byHash, false},
		{"fetched shim", byHash, true},
		{"probed", filepath.Join(data, "tools/sha256-"+digest+".json"), true},
		{"by name", filepath.Join(data, "shims/cat.json"), false},
	}
	for _, row := range []struct {
		name, body, code, where string
		skip                    string // a place where it is no mistake
	}{
		{"duplicate key", doc(`,"effects":{"destructive":true,"destructive":false}`), "E1101", ":1:", ""},
		{"case variant", doc(`,"effects":{"destructive":true,"Destructive":false}`), "E1101", ":1:", ""},
		{"byte order mark", "\ufeff" + doc(""), "E1101", "", ""},
		{"invalid UTF-8", doc(",\"homepage\":\"\xff\""), "E1101", "", ""},
		{"lone surrogate", doc(`,"homepage":"\ud800"`), "E1101", "", ""},
		{"U+0000", doc(`,"homepage":"\u0000"`), "E1101", "", ""},
		{"trailing object", doc("") + "{}", "E1101", "", ""},
		{"not JSON", "<html>not found</html>", "E1101", ":1:1", ""},
		{"nothing", "", "E1101", "", ""},
		{"depth 10,000", `{"atip":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `}`, "E1102", "", ""},
		{"100 MB", "100 MB", "E1102", "larger than 4 MiB", ""},
		{"an array", "[]", "E1103", "", ""},
		{"commands are a list", doc(`,"commands":[]`), "E1103", "(at /commands)", ""},
		{"version of the future", strings.Replace(doc(""), "0.6", "1.0", 1), "E1104", "/atip", ""},
		{"no version", `{"name":"cat","version":"1","description":"d"}`, "E1104", "", ""},
		{"an agent of the future", strings.Replace(doc(""), `"version":"0.6"`, `"version":"0.6","minAgentVersion":"0.7"`, 1), "E1104", "/atip", ""},
		{"hash of no form", strings.Replace(doc(""), digest, "abc", 1), "E1103", "(at /binary/hash)", ""},
		{"another file", strings.Replace(doc(""), digest, other, 1), "E1105", "(at /binary/hash)", "by name"},
		{"another platform", strings.Replace(doc(""), `"version":"1"`, `"version":"1","platform":"plan9-mips"`, 1), "", "", ""},
		{"another known platform", strings.Replace(doc(""), `"version":"1"`, `"version":"1","platform":"darwin-s390x"`, 1), "E1105", "(at /binary/platform)", ""},
	} {
		for _, place := range places {
			t.Run(row.name+"/"+place.name, func(t *testing.T) {
				for _, dir := range []string{data, config} {
					if err := os.RemoveAll(dir); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.MkdirAll(filepath.Dir(place.file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(place.file, []byte(row.body), 0o600); err != nil {
					t.Fatal(err)
				}
				if row.body == "100 MB" {
					if err := os.Truncate(place.file, 100<<20); err != nil {
						t.Fatal(err)
					}
				}
				if place.fetched {
					sum := sha256.Sum256([]byte(row.body))
					meta := fmt.Sprintf(`{"v":1,"sha256":"%x","registry":"https://r.invalid","expires":"2999-01-01T00:00:00Z"}`, sum)
					if err := os.WriteFile(place.file+".meta", []byte(meta), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				code, stdout, stderr := call("atip-exec", "explain", "-o", "json", "--", "cat", "x")
				if strings.Contains(stdout+stderr, "goroutine") {
					t.Fatalf("a stack trace: %s", stderr)
				}
				if row.code == "" || place.name == row.skip {
					if code != 0 {
						t.Errorf("exit %d: %s", code, stderr)
					}
					return
				}
				if !place.fetched {
					if code != 65 || !strings.Contains(stderr, row.code) || !strings.Contains(stderr, place.file) || !strings.Contains(stderr, row.where) {
						t.Errorf("exit %d, want 65 %s %s: %s", code, row.code, row.where, stderr)
					}
					if code, stdout, _ := call("atip-exec", "--", "cat", "x"); code != 65 || strings.Contains(stdout, "ran") {
						t.Errorf("the command ran: exit %d %s", code, stdout)
					}
					return
				}
				var plan struct {
					Warnings []string
					Steps    []struct {
						Metadata struct{ Channel string }
						Effects  map[string]string
					}
				}
				if err := json.Unmarshal([]byte(stdout), &plan); code != 0 || err != nil || len(plan.Steps) == 0 {
					t.Fatalf("exit %d %v: %s", code, err, stderr)
				}
				told := strings.Join(plan.Warnings, "\n")
				if s := plan.Steps[0]; s.Metadata.Channel != "none" || s.Effects["destructive"] != "unknown" || s.Effects["network"] != "unknown" {
					t.Errorf("a lower source answered: %+v", s)
				}
				if !strings.Contains(told, place.file) || !strings.Contains(told, row.where) {
					t.Errorf("the warning names neither file nor place %s: %s", row.where, told)
				}
				if code, stdout, _ := call("atip-exec", "--", "cat", "x"); code != 77 || strings.Contains(stdout, "ran") {
					t.Errorf("an unknown tool of the home directory ran unasked: exit %d %s", code, stdout)
				}
			})
		}
	}
	// The same tool without any of this is the built-in one, and runs.
	for _, dir := range []string{data, config} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	if code, stdout, stderr := call("atip-exec", "--", "cat", "x"); code != 0 || !strings.Contains(stdout, "ran") {
		t.Errorf("exit %d: %s %s", code, stdout, stderr)
	}
}
