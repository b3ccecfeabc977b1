package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func systemPath() []string { return []string{"/usr/local/bin", "/usr/bin", "/bin"} }

func open(t testing.TB, o Opener, word string, path []string, cwd string) *File {
	t.Helper()
	f, err := o.Open(word, path, cwd)
	if err != nil {
		t.Fatalf("Open(%q): %v", word, err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func write(t testing.TB, p, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p, mode); err != nil {
		t.Fatal(err)
	}
	return p
}

// copyBinary copies a system program, so that a test may change it.
func copyBinary(t testing.TB, name, to string) string {
	t.Helper()
	data, err := os.ReadFile(realPath(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return write(t, to, string(data), 0o755)
}

func realPath(t testing.TB, name string) string {
	t.Helper()
	for _, dir := range systemPath() {
		if p, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
			return p
		}
	}
	t.Fatalf("no %s on this machine", name)
	return ""
}

func fileDigest(t testing.TB, p string) string {
	t.Helper()
	data, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func TestOpenSystemBinary(t *testing.T) {
	id := open(t, Opener{}, "true", systemPath(), "/").Identity()
	real := realPath(t, "true")
	if id.Canonical != real || id.Digest != fileDigest(t, real) {
		t.Errorf("canonical %q digest %q, want %q %q", id.Canonical, id.Digest, real, fileDigest(t, real))
	}
	if id.Form != FormELF || id.Invoked != "true" || !id.SystemPath || id.Swappable || len(id.Chain) != 1 {
		t.Errorf("identity %+v", id)
	}
	if id.Class == ClassLoose {
		t.Error("a system binary is loose")
	}
}

func TestLookup(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	copyBinary(t, "true", filepath.Join(dir, "tool"))
	copyBinary(t, "true", filepath.Join(bin, "tool"))
	write(t, filepath.Join(dir, "plain", "tool"), "x", 0o644)
	write(t, filepath.Join(dir, "onlyplain", "mine"), "x", 0o644)
	if err := os.MkdirAll(filepath.Join(dir, "d", "tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, word string
		path       []string
		want       string // found path, or the code of the error
		skipped    int
	}{
		{"relative entries never match", "tool", []string{".", "bin", ""}, "E3001", 0},
		{"absolute after relative", "tool", []string{".", "", bin}, filepath.Join(bin, "tool"), 2},
		{"non-executable hit passed over", "tool", []string{filepath.Join(dir, "plain"), bin}, filepath.Join(bin, "tool"), 0},
		{"directory passed over", "tool", []string{filepath.Join(dir, "d"), bin}, filepath.Join(bin, "tool"), 0},
		{"only a non-executable", "mine", []string{filepath.Join(dir, "onlyplain")}, "E3002", 0},
		{"missing", "no-such-command", []string{bin}, "E3001", 0},
		{"empty word", "", []string{bin}, "E3001", 0},
		{"dot", ".", []string{bin}, "E3001", 0},
		{"relative word with slash", "./tool", nil, filepath.Join(dir, "tool"), 0},
		{"directory by path", "./d", nil, "E3002", 0},
		{"dots", "./bin/../tool", nil, dir + "/bin/../tool", 0},
		{"dangling link", "./dangling", nil, "E3001", 0},
		{"looping link", "./loop", nil, "E3002", 0},
		{"no permission", "./plain/tool", nil, "E3002", 0},
		{"file used as directory", "./tool/x", nil, "E3001", 0},
		{"binary noise", "a\xff\xfe", []string{bin}, "E3001", 0},
		{"too long", strings.Repeat("a", 5000), []string{bin}, "E3001", 0},
		{"too long with slash", "./" + strings.Repeat("a", 5000), nil, "E3001", 0},
		{"NUL", "./a\x00b", nil, "E3002", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, err := Opener{}.Open(row.word, row.path, dir)
			if err != nil {
				var coded interface{ FaultCode() string }
				if !errors.As(err, &coded) || coded.FaultCode() != row.want {
					t.Errorf("error %v, want %s", err, row.want)
				}
				return
			}
			defer f.Close()
			if id := f.Identity(); id.Found != row.want || len(id.SkippedPath) != row.skipped {
				t.Errorf("found %q skipped %q, want %q, %d", id.Found, id.SkippedPath, row.want, row.skipped)
			}
		})
	}
}

// The same file under other names must have the same identity: a deny rule on it
// holds for all of them.
func TestAliases(t *testing.T) {
	dir := t.TempDir()
	tool := copyBinary(t, "true", filepath.Join(dir, "a", "tool"))
	real, err := filepath.EvalSymlinks(tool)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	hard := filepath.Join(dir, "hard")
	if err := os.Symlink(tool, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(tool, hard); err != nil {
		t.Fatal(err)
	}
	want := open(t, Opener{}, tool, nil, "/").Identity()
	for _, word := range []string{"/proc/self/root" + tool, link, hard} {
		id := open(t, Opener{}, word, nil, "/").Identity()
		if id.Dev != want.Dev || id.Ino != want.Ino || id.Digest != want.Digest {
			t.Errorf("%s: other file: %+v", word, id)
		}
		if word != hard && id.Canonical != real {
			t.Errorf("%s: canonical %q, want %q", word, id.Canonical, real)
		}
	}
	id := open(t, Opener{}, link, nil, "/").Identity()
	if filepath.Base(id.Place) != "link" || id.Effective != "tool" || id.Invoked != "link" {
		t.Errorf("place %q effective %q invoked %q", id.Place, id.Effective, id.Invoked)
	}
}

func roles(id Identity) (out []string) {
	for _, p := range id.Chain {
		out = append(out, p.Role+":"+filepath.Base(p.Path))
	}
	return out
}

func TestChain(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	copyBinary(t, "true", filepath.Join(bin, "interp"))
	interp := filepath.Join(bin, "interp")
	env := realPath(t, "env")
	path := append([]string{bin}, systemPath()...)
	p := func(name string) string { return filepath.Join(dir, name) }
	write(t, p("plain"), "#!"+interp+" -x  y\n", 0o755)
	write(t, p("spaces"), "#! \t"+interp+"\t \n", 0o755)
	write(t, p("viaenv"), "#!/usr/bin/env interp\n", 0o755)
	write(t, p("split"), "#!/usr/bin/env -S A=1 interp --flag\n", 0o755)
	write(t, p("envgone"), "#!/usr/bin/env no-such-interp\n", 0o755)
	write(t, p("envquoted"), "#!/usr/bin/env -S \"interp\" x\n", 0o755)
	write(t, p("nonewline"), "#!"+interp, 0o755)
	write(t, p("long"), "#!"+interp+" "+strings.Repeat("a", 250)+"\n", 0o755)
	write(t, p("gone"), "#!/no/such/interp\n", 0o755)
	write(t, p("nothing"), "#!\n", 0o755)
	write(t, p("noshebang"), "echo hello\n", 0o755)
	write(t, p("empty"), "", 0o755)
	write(t, p("relative"), "#!bin/interp\n", 0o755)
	last := interp
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5"} {
		write(t, p(name), "#!"+last+"\n", 0o755)
		last = p(name)
	}
	e := "interpreter:" + filepath.Base(env)
	for _, row := range []struct {
		name string
		want []string // nil: E3002
		cap  string
	}{
		{"plain", []string{"script:plain", "interpreter:interp"}, CapMutablePath},
		{"spaces", []string{"script:spaces", "interpreter:interp"}, ""},
		{"viaenv", []string{"script:viaenv", e, "program:interp"}, ""},
		{"split", []string{"script:split", e, "program:interp"}, ""},
		{"envgone", []string{"script:envgone", e}, CapUnresolvedProgram},
		{"envquoted", []string{"script:envquoted", e}, CapUnresolvedProgram},
		{"relative", []string{"script:relative", "interpreter:interp"}, ""},
		{"n4", []string{"script:n4", "interpreter:n3", "interpreter:n2", "interpreter:n1", "interpreter:interp"}, ""},
		{"n5", nil, ""},
		{"nonewline", nil, ""},
		{"long", nil, ""},
		{"gone", nil, ""},
		{"nothing", nil, ""},
		{"noshebang", nil, ""},
		{"empty", nil, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, err := Opener{TmpDirs: []string{dir}}.Open("./"+row.name, path, dir)
			if row.want == nil {
				var ne *NotExecutableError
				if !errors.As(err, &ne) {
					t.Fatalf("error %v, want E3002", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			id := f.Identity()
			if got := roles(id); !slices.Equal(got, row.want) {
				t.Errorf("chain %q, want %q", got, row.want)
			}
			if row.cap != "" && !id.HasCap(row.cap) {
				t.Errorf("caps %q lack %s", id.Caps, row.cap)
			}
			for _, part := range id.Chain {
				if part.Digest != fileDigest(t, part.Path) {
					t.Errorf("digest of %s is wrong", part.Path)
				}
			}
		})
	}
}

// A script is started by the path that was typed: links carry its $0.
func TestScriptStartKeepsLink(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tool-1.2"), "#!/bin/sh\necho ${0##*/}\n", 0o755)
	link := filepath.Join(dir, "tool")
	if err := os.Symlink("tool-1.2", link); err != nil {
		t.Fatal(err)
	}
	f := open(t, Opener{TmpDirs: []string{dir}}, link, nil, "/")
	if path, byDescriptor, _ := f.Start(); path != link || byDescriptor {
		t.Errorf("start by %q, descriptor %v", path, byDescriptor)
	}
}

func link(t testing.TB, target, p string) {
	t.Helper()
	if err := os.Symlink(target, p); err != nil {
		t.Fatal(err)
	}
}

func hardLink(t testing.TB, old, p string) {
	t.Helper()
	if err := os.Link(old, p); err != nil {
		t.Fatal(err)
	}
}
