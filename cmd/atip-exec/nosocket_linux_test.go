package main_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestKnownDigestAsksNobody traces a run with a registry configured: a file that is
// known opens no socket and reads no index; one that is not known is asked for, once.
func TestKnownDigestAsksNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.NotFound(rw, r)
	}))
	defer s.Close()
	put := func(file, text string, mode os.FileMode) string {
		t.Helper()
		file = filepath.Join(w.home, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return file
	}
	put(".config/agent-tools/registries.json", fmt.Sprintf(`{"registries":[{"url":%q}]}`, s.URL), 0o600)
	index := put(".local/share/agent-tools/registry.json", `{"version":"2","tools":{}}`, 0o600)
	known, unknown := put("stubs/known", "#!/bin/sh\nexit 0\n", 0o755), put("stubs/unknown", "#!/bin/sh\nexit 0 # other\n", 0o755)
	raw, err := os.ReadFile(known)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	digest := hex.EncodeToString(sum[:])
	shim := `{"atip":"0.6","binary":{"hash":"sha256:` + digest + `","name":"known","version":"1"},"description":"d","effects":{"network":false,"filesystem":{"write":false,"delete":false},"destructive":false}}`
	put(".local/share/agent-tools/shims/sha256/"+digest+".json", shim, 0o600)
	put(".local/share/agent-tools/shims/sha256/"+digest+".json.meta", fmt.Sprintf(`{"v":1,"sha256":"%x","registry":%q,"fetchedAt":"2026-01-01T00:00:00Z","expires":"2999-01-01T00:00:00Z"}`, sha256.Sum256([]byte(shim)), s.URL), 0o600)

	trace := func(env string, words ...string) string {
		t.Helper()
		out := filepath.Join(t.TempDir(), "trace")
		// Only calls that succeeded: the test of the machine tries a socket inside its
		// sandbox, where there is none.
		args := []string{"-f", "-qq", "-z", "-e", "trace=socket,open,openat,openat2", "-o", out, filepath.Join(bin, "atip-exec")}
		if env == "" {
			args = append(args, "explain", "-o", "json")
		}
		cmd := exec.Command("strace", append(args, words...)...)
		cmd.Dir = w.ws
		cmd.Env = []string{"HOME=" + w.home, "PATH=/usr/bin:/bin", env}
		text, err := cmd.CombinedOutput()
		if exit, ok := err.(*exec.ExitError); err != nil && (!ok || exit.ExitCode() != 77 && exit.ExitCode() != 0) {
			t.Fatalf("%v: %s", err, text)
		}
		raw, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	sockets := func(trace string) int { return strings.Count(trace, "socket(AF_INET") }
	for _, run := range []string{"", "RUN=1"} {
		calls := trace(run, "--", known)
		if n := sockets(calls); n != 0 || strings.Contains(calls, index) || asked.Load() != 0 {
			t.Errorf("a known file: %d sockets, %d questions", n, asked.Load())
		}
		if !strings.Contains(calls, digest) {
			t.Error("the trace shows no look-up at all")
		}
	}
	// The same trace sees the question about an unknown file, and the index is not
	// read for it either; the second time the answer is known.
	calls := trace("RUN=1", "--", unknown)
	if sockets(calls) == 0 || asked.Load() == 0 || strings.Contains(calls, index) {
		t.Errorf("an unknown file: %d sockets, %d questions", sockets(calls), asked.Load())
	}
	before := asked.Load()
	if calls := trace("RUN=1", "--", unknown); sockets(calls) != 0 || asked.Load() != before {
		t.Errorf("again: %d sockets, %d more questions", sockets(calls), asked.Load()-before)
	}
	// Asking again is said in words.
	for _, again := range [][]string{{"ATIP_REFRESH=1"}, {"RUN=1", "--refresh"}} {
		before := asked.Load()
		if calls := trace(again[0], append(again[1:], "--", known)...); sockets(calls) == 0 || asked.Load() == before {
			t.Errorf("%v: %d sockets", again, sockets(calls))
		}
	}
}
