package approve

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func bound(argv ...string) map[string]any {
	return map[string]any{"argv": argv, "cwd": "/home/u/p", "uid": 1000,
		"steps": []any{map[string]any{"binary": "sha256:00", "effects": map[string]string{"destructive": "yes"}}}}
}

func TestDigestIsCanonical(t *testing.T) {
	a, err := Digest(map[string]any{"b": []any{"x", int64(1)}, "a": true})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Digest(map[string]any{"a": true, "b": []any{"x", 1}})
	if a != b {
		t.Errorf("order of keys or kind of integer changes the digest: %s, %s", a, b)
	}
	if a[:7] != "sha256:" || len(a) != 7+64 {
		t.Errorf("digest %q", a)
	}
}

// Each of these differs from every other in one byte of what was decided.
func TestDigestTellsApart(t *testing.T) {
	seen := map[string]int{}
	for i, m := range []map[string]any{
		bound("git", "push"), bound("git", "push "), bound("git push"), bound("git", "push", ""),
		bound("git", "\xff"), bound("git", "\xfe"), bound("git", "\ufffd"), bound("git", "a\"b"), bound("git", `a\"b`),
		bound("git", `{"$bytes":"/w=="}`), {"argv": nil}, {"argv": []string{}}, {}, {"argv": "1"}, {"argv": 1},
	} {
		d, err := Digest(m)
		if err != nil {
			t.Fatal(err)
		}
		if j, ok := seen[d]; ok {
			t.Errorf("objects %d and %d have one digest", i, j)
		}
		seen[d] = i
	}
}

func TestDigestRefuses(t *testing.T) {
	for name, m := range map[string]map[string]any{
		"float": {"x": 1.5}, "struct": {"x": struct{}{}}, "marker": {"$bytes": "eA=="}, "key": {"\xff": 1}, "time": {"x": time.Now()},
	} {
		if _, err := Digest(m); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestWriteAndList(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "requests")
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	id, _, err := writeRequest(dir, Request{Bound: bound("git", "push", "\xff"), Display: Display{Message: "m"}}, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := writeRequest(dir, Request{Bound: bound("git", "push", "\xff")}, nil, now.Add(time.Hour))
	if err != nil || again != id {
		t.Errorf("the same request: id %s, %v, want %s", again, err, id)
	}
	other, _, err := writeRequest(dir, Request{Bound: bound("git", "push", "\xfe")}, nil, now.Add(time.Minute))
	if err != nil || other == id {
		t.Errorf("another request: id %s, %v", other, err)
	}
	got, err := list(dir, now.Add(2*time.Hour))
	if err != nil || len(got) != 2 || got[0].ID != id || got[1].ID != other {
		t.Fatalf("list: %+v, %v", got, err)
	}
	if argv := got[0].Bound["argv"].([]any); argv[2] != "\xff" {
		t.Errorf("bytes that are not UTF-8 came back as %q", argv[2])
	}
	if !got[0].Created.Equal(now) || !got[0].Expires.Equal(now.Add(24*time.Hour)) || got[0].Display.Message != "m" {
		t.Errorf("first request replaced: %+v", got[0])
	}
	info, err := os.Stat(filepath.Join(dir, id+".json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("directory mode %v", info.Mode())
	}
	if got, _ := list(dir, now.Add(25*time.Hour)); len(got) != 0 {
		t.Errorf("expired requests are listed: %v", got)
	}
	if got, err := List(filepath.Join(dir, "missing")); err != nil || got != nil {
		t.Errorf("missing directory: %v, %v", got, err)
	}
}

func TestExpiredIsReplaced(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	id, _, err := writeRequest(dir, Request{Bound: bound("a")}, nil, now.Add(-48*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, id+".json")
	if err := os.Chtimes(file, now.Add(-48*time.Hour), now.Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := writeRequest(dir, Request{Bound: bound("b")}, nil, now); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error("an expired request was not removed")
	}
}

// TestNeverFull: no number of questions keeps a person from being asked the next one, and one
// session does not displace what another asks.
func TestNeverFull(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	ask := func(n int, session string, argv ...string) (string, []string) {
		t.Helper()
		b := bound(argv...)
		b["n"] = n
		id, replaced, err := writeRequest(dir, Request{Bound: b, Requester: Requester{Session: session, SID: n}}, nil, now.Add(time.Duration(n)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return id, replaced
	}
	quiet, _ := ask(0, "quiet", "git", "push")
	for n := 1; n <= 3*maxOpen; n++ {
		id, replaced := ask(n, "loud", "rm", strconv.Itoa(n))
		if want := n > maxSession; (len(replaced) == 1) != want {
			t.Fatalf("request %d displaced %q", n, replaced)
		}
		if _, ok := RequestOf(dir, digestOf(t, dir, id)); !ok {
			t.Fatalf("request %d is not there", n)
		}
	}
	list, err := List(dir)
	if err != nil || len(list) != maxSession+1 || list[0].ID != quiet {
		t.Errorf("%d open, %v", len(list), err)
	}
	for n := range 3 * maxOpen { // an agent that calls itself something else each time
		ask(1000+n, "s"+strconv.Itoa(n), "rm", "x")
	}
	if list, err := List(dir); err != nil || len(list) != maxOpen {
		t.Errorf("%d open, %v", len(list), err)
	}
	dir = t.TempDir()
	first, _ := ask(1, "s", "git", "push")
	if again, replaced := ask(2, "s", "git", "push"); again == first || len(replaced) != 1 || replaced[0] != first {
		t.Errorf("the same command, changed: %s after %s, displaced %q", again, first, replaced)
	}
	if _, replaced := ask(3, "t", "git", "push"); len(replaced) != 0 {
		t.Errorf("another session displaced %q", replaced)
	}
	granted, _ := ask(4, "u", "git", "push")
	b := bound("git", "push")
	_, replaced, err := writeRequest(dir, Request{Bound: b, Requester: Requester{Session: "u"}}, []string{digestOf(t, dir, granted)}, now)
	if _, err2 := ReadRequest(dir, granted); err != nil || err2 != nil || len(replaced) != 0 {
		t.Errorf("what a person permitted was displaced: %q, %v, %v", replaced, err, err2)
	}
}

func digestOf(t *testing.T, dir, id string) string {
	t.Helper()
	r, err := read(filepath.Join(dir, id+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return r.Digest
}

func TestParallelWritersOfOneRequest(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, _, err := WriteRequest(dir, Request{Bound: bound("x")}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, _ := List(dir); len(got) != 1 {
		t.Errorf("%d requests", len(got))
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".new-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	id, _, err := WriteRequest(dir, Request{Bound: bound("git", "push")})
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(dir, id+".json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"edited":  strings.Replace(string(good), `"push"`, `"pull"`, 1),
		"unknown": strings.Replace(string(good), `"v"`, `"w": 1, "v"`, 1),
		"cut":     string(good[:len(good)/2]), "empty": "", "not ours": "{}",
	} {
		if err := os.WriteFile(filepath.Join(dir, id+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := List(dir); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "copy.json"), good, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := List(dir); len(got) != 0 {
		t.Error("a request under a foreign name is listed")
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add("git", "push\x00")
	f.Add("\xff", "{\"$bytes\":\"\"}")
	f.Fuzz(func(t *testing.T, a, b string) {
		m := map[string]any{"a": a, "list": []any{b, map[string]any{"c": a}}}
		raw, err := appendCanonical(nil, m, 0)
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]any
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		v, err := restore(back)
		if err != nil {
			t.Fatal(err)
		}
		again, err := appendCanonical(nil, v, 0)
		if err != nil || string(again) != string(raw) {
			t.Fatalf("%s became %s, %v", raw, again, err)
		}
	})
}
