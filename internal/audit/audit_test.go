package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func openLog(t testing.TB, dir string) *Log {
	t.Helper()
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func appendTo(t testing.TB, l *Log, rec any) string {
	t.Helper()
	id, err := l.Append(rec)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func verify(t testing.TB, dir string, records, torn int) Summary {
	t.Helper()
	s, err := Verify(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !s.OK() || s.Records != records || s.Torn != torn {
		t.Fatalf("%d records, %d torn, broken %v; want %d, %d, none", s.Records, s.Torn, s.Broken, records, torn)
	}
	return s
}

func TestAppendReadVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "audit")
	l := openLog(t, dir)
	var ids []string
	ids = append(ids, appendTo(t, l, map[string]any{"kind": "run", "argv": []string{"git", "<&>"}, "v": 9, "prev": "forged"}))
	ids = append(ids, appendTo(t, l, map[string]any{"id": "chosen", "kind": "intent"}))
	ids = append(ids, appendTo(t, l, struct {
		Kind string `json:"kind"`
	}{"run"}))
	ids = append(ids, appendTo(t, l, map[string]any{}))
	if ids[1] != "chosen" {
		t.Errorf("id %q", ids[1])
	}
	verify(t, dir, 4, 0)
	var got []string
	err := Read(dir, func(line []byte) error {
		var h struct {
			header
			Argv []string
		}
		if err := json.Unmarshal(line, &h); err != nil {
			return err
		}
		if h.V != 1 || (h.Argv != nil && h.Argv[1] != "<&>") {
			t.Errorf("line %s", line)
		}
		got = append(got, h.ID)
		return nil
	})
	if err != nil || !slices.Equal(got, ids) {
		t.Errorf("read %q, %v; want %q", got, err, ids)
	}
	for _, name := range []string{"", lockName, time.Now().UTC().Format("20060102") + suffix} {
		fi, err := os.Stat(filepath.Join(dir, name))
		if err != nil || fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%q: %v, %v", name, fi.Mode(), err)
		}
	}
	appendTo(t, l, Encoded{Object: []byte(`{"kind":"run","text":"a\nb"}`)})
	verify(t, dir, 5, 0)
	for _, bad := range []any{[]int{1}, Encoded{}, Encoded{Object: []byte("[]")}, Encoded{Object: []byte("{\n}")}, Encoded{Object: []byte("{} ")}, Encoded{Object: []byte(`{"a":}`)}} {
		if _, err := l.Append(bad); err == nil {
			t.Errorf("%v was written", bad)
		}
	}
	verify(t, dir, 5, 0)
}

func TestEveryChangeShows(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	for i := range 5 {
		appendTo(t, l, map[string]any{"n": i})
	}
	name := filepath.Join(dir, l.day+suffix)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(good, []byte("\n"))
	change := func(edit func(lines [][]byte) [][]byte) []byte {
		return bytes.Join(edit(slices.Clone(lines[:5])), nil)
	}
	for _, row := range []struct {
		name string
		text []byte
	}{
		{"edited", bytes.Replace(good, []byte(`"n":2`), []byte(`"n":7`), 1)},
		{"removed", change(func(l [][]byte) [][]byte { return slices.Delete(l, 2, 3) })},
		{"swapped", change(func(l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l })},
		{"doubled", change(func(l [][]byte) [][]byte { return slices.Insert(l, 2, l[2]) })},
		{"garbage between", change(func(l [][]byte) [][]byte { return slices.Insert(l, 2, []byte("x\n")) })},
		{"garbage after", append(bytes.Clone(good), "x\n"...)},
		{"empty line", change(func(l [][]byte) [][]byte { return slices.Insert(l, 2, []byte("\n")) })},
		{"second value on a line", bytes.Replace(good, []byte("}\n"), []byte("}{}\n"), 1)},
	} {
		if err := os.WriteFile(name, row.text, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Verify(dir); err != nil || s.OK() {
			t.Errorf("%s: not noticed: %+v, %v", row.name, s, err)
		}
	}
}

// A writer killed inside its write leaves a prefix of a line: every length of it
// must be survived.
func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	appendTo(t, l, map[string]any{"n": 0})
	appendTo(t, l, map[string]any{"n": 1})
	name := filepath.Join(dir, l.day+suffix)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(good, '\n') + 1
	for cut := first + 1; cut < len(good); cut++ {
		if err := os.WriteFile(name, good[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Verify(dir); err != nil || !s.OK() || !s.TornTail {
			t.Fatalf("cut at %d: %+v, %v", cut, s, err)
		}
		appendTo(t, l, map[string]any{"n": 2})
		appendTo(t, l, map[string]any{"n": 3})
		// The first, the mark and two more; a line that lacks only its newline
		// is whole once that is written.
		if cut == len(good)-1 {
			verify(t, dir, 5, 0)
		} else {
			verify(t, dir, 4, 1)
		}
	}
}

func TestDays(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	now := time.Date(2026, 3, 1, 23, 59, 0, 0, time.UTC)
	l.now = func() time.Time { return now }
	appendTo(t, l, map[string]any{"n": 0})
	now = now.Add(time.Hour)
	appendTo(t, l, map[string]any{"n": 1})
	now = now.Add(-48 * time.Hour) // the clock was set back
	appendTo(t, l, map[string]any{"n": 2})
	if s := verify(t, dir, 3, 0); s.Files != 2 {
		t.Errorf("%d files, want 2", s.Files)
	}
	// Another process, a lost lock file, a torn line at the end of the day.
	if err := os.WriteFile(filepath.Join(dir, lockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "20260302"+suffix), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"v":1,"id":"x`)
	f.Close()
	now = time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC)
	m := openLog(t, dir)
	m.now = l.now
	appendTo(t, m, map[string]any{"n": 3})
	appendTo(t, l, map[string]any{"n": 4})
	if s := verify(t, dir, 6, 1); s.Files != 3 {
		t.Errorf("%d files, want 3", s.Files)
	}
	// Old files may be removed: the chain then starts later and says so.
	if err := os.Remove(filepath.Join(dir, "20260301"+suffix)); err != nil {
		t.Fatal(err)
	}
	if s := verify(t, dir, 5, 1); !s.Pruned {
		t.Error("pruning not shown")
	}
}

func TestLongFieldsAreCut(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	many := make([]string, 5000)
	for i := range many {
		many[i] = strings.Repeat("é", 100)
	}
	wide := map[string]any{}
	for i := range 5000 {
		wide[fmt.Sprintf("key%d", i)] = strings.Repeat("y", 50)
	}
	for _, rec := range []map[string]any{
		{"kind": "run", "argv": []string{strings.Repeat("x", 1<<20)}},
		{"kind": "run", "argv": many},
		{"kind": "run", "effects": wide},
	} {
		appendTo(t, l, rec)
	}
	n := 0
	err := Read(dir, func(line []byte) error {
		n++
		if len(line) >= maxLine || !bytes.Contains(line, []byte(`"kind":"run"`)) || !bytes.Contains(line, []byte(`"cut":`)) {
			t.Errorf("line %d: %d bytes", n, len(line))
		}
		return nil
	})
	if err != nil || n != 3 {
		t.Errorf("%d lines, %v", n, err)
	}
	verify(t, dir, 3, 0)
}

func TestGoroutines(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				if _, err := l.Append(map[string]any{"kind": "run"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	verify(t, dir, 200, 0)
}

func TestRefusals(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(base, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "x"), link, filepath.Join(os.DevNull, "x")} {
		if _, err := Open(dir); err == nil {
			t.Errorf("%s was opened", dir)
		} else if e, ok := err.(*Error); !ok || e.FaultCode() != "E3003" {
			t.Errorf("%s: %v", dir, err)
		}
	}
	// A second name for the daily file, or a link in its place.
	dir := filepath.Join(base, "audit")
	l := openLog(t, dir)
	today := filepath.Join(dir, time.Now().UTC().Format("20060102")+suffix)
	if err := os.Symlink(file, today); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(map[string]any{}); err == nil {
		t.Error("written through a link")
	}
	os.Remove(today)
	if err := os.Link(file, today); err != nil {
		t.Fatal(err)
	}
	if err := l.Reserve(); err == nil {
		t.Error("reserved in a file with two names")
	}
	l.Close()
	if _, err := l.Append(map[string]any{}); err == nil {
		t.Error("written to a closed log")
	}
	if s, err := Verify(filepath.Join(base, "none")); err == nil {
		t.Errorf("a missing log verifies: %+v", s)
	}
}

func TestNewID(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	a, b := newID(at), newID(at.Add(time.Millisecond))
	if len(a) != 26 || a >= b || a[:10] != newID(at)[:10] || a == newID(at) {
		t.Errorf("ids %s %s", a, b)
	}
	var ms int64
	for _, c := range a[:10] {
		ms = ms<<5 | int64(strings.IndexRune(idDigits, c))
	}
	if ms != at.UnixMilli() {
		t.Errorf("time of %s: %d", a, ms)
	}
}

func BenchmarkAppend(b *testing.B) {
	l := openLog(b, b.TempDir())
	rec := map[string]any{"kind": "run", "argv": []string{"git", "status"}, "cwd": "/home/u/project", "decision": map[string]any{"action": "allow"},
		"sandbox": map[string]any{"tier": "T2", "gaps": []string{}}, "pad": strings.Repeat("x", 1500)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Append(rec); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenReserveAppend(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		l, err := Open(dir)
		if err == nil {
			err = l.Reserve()
		}
		if err == nil {
			_, err = l.Append(map[string]any{"kind": "run"})
		}
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}

// TestOpenRelative: without a home directory nothing is written where the caller stands.
func TestOpenRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Open("audit"); err == nil {
		t.Error("a relative directory was opened")
	}
	if _, err := os.Stat("audit"); err == nil {
		t.Error("it was made")
	}
}
