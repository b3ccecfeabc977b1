package filter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

var noticePattern = regexp.MustCompile(`\[atip-exec: (\d+) bytes \((\d+) lines\) omitted; shown (\d+) head \+ (\d+) tail of (\d+); (.*); (\d+) redactions\]\n`)

func TestBound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "output")
	var in bytes.Buffer
	for i := range 20000 {
		fmt.Fprintf(&in, "line %d of the whole output\n", i)
	}
	for _, size := range []int{1, 100, 4096, 1 << 20} {
		var out bytes.Buffer
		b := NewBound(&out, Limits{Max: 16 << 10}, Save{Dir: dir, Name: fmt.Sprintf("run%d.stdout", size)})
		for rest := in.Bytes(); len(rest) > 0; {
			n := min(size, len(rest))
			if _, err := b.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		m := noticePattern.FindStringSubmatchIndex(out.String())
		if m == nil {
			t.Fatalf("no notice: %.300q", out.String())
		}
		head, tail := out.String()[:m[0]], out.String()[m[1]:]
		if !strings.HasPrefix(in.String(), head) || !strings.HasSuffix(in.String(), tail) || !strings.HasSuffix(head, "\n") ||
			!strings.HasPrefix(tail, "line ") {
			t.Errorf("head or tail is cut badly")
		}
		omitted, _ := strconv.Atoi(out.String()[m[2]:m[3]])
		if len(head)+omitted+len(tail) != in.Len() || len(head)+len(tail) > 16<<10 {
			t.Errorf("%d + %d + %d is not %d", len(head), omitted, len(tail), in.Len())
		}
		r := b.Report()
		saved, err := os.ReadFile(r.File)
		if err != nil || !bytes.Equal(saved, in.Bytes()) {
			t.Errorf("saved %d bytes, %v", len(saved), err)
		}
		if info, _ := os.Stat(r.File); info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
		if r.BytesTotal != int64(in.Len()) || r.BytesShown != int64(len(head)+len(tail)) || r.LinesTotal != 20000 {
			t.Errorf("%+v", r)
		}
	}
}

func TestBoundWithin(t *testing.T) {
	for _, max := range []int64{0, 100, 1000} {
		var out bytes.Buffer
		b := NewBound(&out, Limits{Max: max}, Save{})
		in := strings.Repeat("0123456789", 10)
		b.Write([]byte(in[:55]))
		b.Write([]byte(in[55:]))
		b.Close()
		if out.String() != in || b.Report().File != "" || b.Report().NotSaved != "" {
			t.Errorf("max %d: %q %+v", max, out.String(), b.Report())
		}
	}
}

func TestBoundKeepsPlaceholdersWhole(t *testing.T) {
	s := testSet(t, Config{})
	for size := int64(60); size < 400; size += 7 {
		var out bytes.Buffer
		b := NewBound(&out, Limits{Max: size}, Save{})
		w := s.Writer(b, Stdout)
		for i := range 40 {
			v, _ := ExpandTemplate("x ghp_{alnum:36} é ", uint64(i))
			w.Write([]byte(v))
		}
		w.Close()
		b.Close()
		text := noticePattern.ReplaceAllString(out.String(), "")
		if n := strings.Count(text, "[RED"); n != len(tagPattern.FindAllString(text, -1)) || strings.Count(text, "]") != n {
			t.Errorf("%d: a placeholder is cut: %q", size, text)
		}
		if b.Report().NotSaved == "" {
			t.Errorf("%d: %+v", size, b.Report())
		}
	}
}

func TestBoundCannotSave(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	b := NewBound(&out, Limits{Max: 100}, Save{Dir: filepath.Join(blocked, "sub"), Name: "a.stdout"})
	b.Write(bytes.Repeat([]byte("line\n"), 1000))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b.Report().NotSaved == "" || !strings.Contains(out.String(), "not saved: ") {
		t.Errorf("%q %+v", out.String(), b.Report())
	}
}

func TestTagKey(t *testing.T) {
	for _, dirs := range [][2]string{{t.TempDir(), ""}, {"", t.TempDir()}} {
		a, err := LoadTagKey(dirs[0], dirs[1])
		if err != nil {
			t.Fatal(err)
		}
		b, err := LoadTagKey(dirs[0], dirs[1])
		if err != nil || a != b || a == (TagKey{}) {
			t.Errorf("%v, same %v", err, a == b)
		}
		path := filepath.Join(dirs[0]+dirs[1], "atip-exec", "redact.key")
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v %v", info, err)
		}
		os.Remove(path)
		if c, err := LoadTagKey(dirs[0], dirs[1]); err != nil || c == a {
			t.Errorf("a removed key comes back: %v", err)
		}
		os.Chmod(path, 0o644)
		if _, err := LoadTagKey(dirs[0], dirs[1]); err == nil {
			t.Error("a readable key is used")
		}
		os.Remove(path)
		os.Symlink("/dev/zero", path)
		if _, err := LoadTagKey(dirs[0], dirs[1]); err == nil {
			t.Error("a symlink is followed")
		}
	}
	a, err := LoadTagKey("", "")
	b, _ := LoadTagKey("", "")
	if err == nil || a == b {
		t.Error("without a directory the key is random")
	}
}

func TestStripControl(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":               "plain\ttext\n",
		"\x1b[31mred\x1b[0m":          "red",
		"\x1b]8;;http://x\x07a\x1b\\": "a",
		"\x1b]0;title\x1b\\b":         "b",
		"a\u202eb\u200bc\U000e0041d":  "abcd",
		"a\u009b31mb":                 "ab",
		"x\x00\x07\x08\x7fy\r":        "xy",
		"bad\xffutf":                  "bad\ufffdutf",
		"grün ✓ 日本":                   "grün ✓ 日本",
	} {
		if got := StripControl(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestHasPlaceholder(t *testing.T) {
	for in, want := range map[string]bool{
		"x [REDACTED:github-pat:3fa91c] y": true,
		"[REDACTED:password]":              true,
		"[REDACTED:]":                      false,
		"[REDACTED]":                       false,
		"[REDACTED:a:zzzzzz]":              false,
		"[REDACTED:a b]":                   false,
		"[REDACTED: [REDACTED:env.X]":      true,
		"":                                 false,
	} {
		if got := HasPlaceholder(in); got != want {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func TestKeyIsLoadedOnceAndLate(t *testing.T) {
	loaded := 0
	s, err := NewSet(Config{}, Known{}, TagKey{})
	if err != nil {
		t.Fatal(err)
	}
	s.KeyFrom(func() TagKey { loaded++; return TagKey{7} })
	if s.String("nothing to hide"); loaded != 0 {
		t.Error("the key was loaded for nothing")
	}
	other, _ := NewSet(Config{}, Known{}, TagKey{7})
	value := []byte("some value to tag")
	if a, b := tagOf(s, value), tagOf(other, value); a != b || tagOf(s, value) != a || loaded != 1 {
		t.Errorf("tags %s and %s, key loaded %d times", a, b, loaded)
	}
}

func tagOf(s *Set, value []byte) string { return newWriter(s, io.Discard, Stdout).tagOf(value) }
