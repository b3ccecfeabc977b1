package place

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}
	out, err := cmd.CombinedOutput()
	if err != nil && !(args[0] == "check-ignore" && cmd.ProcessState.ExitCode() == 1) {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

// git itself is the oracle for what is ignored and what is tracked.
func TestAgainstGit(t *testing.T) {
	top := tempDir(t)
	git(t, top, "init", "-q")
	write(t, "# comment\n*.log\n!keep.log\n/dist/\nbuild\nout/**\ndoc/*.txt\na/**/z\n[ab]?.tmp\n\\#hash\ntrail \\ \ntarget/\n!target/keep\n[!x]y.c\nweird[\n**/deep/x\n.venv/\n", top, ".gitignore")
	write(t, "!*.log\ninner\n/rooted\n", top, "sub", ".gitignore")
	write(t, "excluded\n", top, ".git", "info", "exclude")
	names := []string{"x.log", "keep.log", "dist/a", "sub/dist/a", "build/x/y", "sub/build", "out/a/b", "doc/a.txt", "doc/sub/a.txt", "a/z", "a/b/c/z",
		"a1.tmp", "c1.tmp", "#hash", "trail ", "target/keep", "target/other", "sub/x.log", "sub/inner/q", "sub/rooted", "sub/deeper/rooted",
		"excluded", "ay.c", "xy.c", "weird[", "p/q/deep/x", "deep/x", "plain.go", "node_modules/m/i.js", "dist2", "sub/keep.log", ".venv/lib/x", "venv/lib/x"}
	for _, name := range names {
		write(t, "", top, name)
	}
	git(t, top, "add", "-f", "plain.go", "doc/sub/a.txt", "build/x/y", "sub/inner/q", "#hash")
	for _, version := range []int{2, 3, 4} {
		git(t, top, "update-index", "--index-version", fmt.Sprint(version))
		if version == 3 {
			git(t, top, "add", "-N", "xy.c") // intent to add needs the extended flags
		}
		idx, err := readIndex(filepath.Join(top, ".git", "index"))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimRight(git(t, top, "ls-files", "-z"), "\x00"), "\x00")
		if got := bytes.Join(idx.names, []byte("\n")); string(got) != strings.Join(want, "\n") {
			t.Errorf("version %d: %q, want %q", version, got, want)
		}
	}
	for _, name := range names {
		want := git(t, top, "check-ignore", "--no-index", "--", name) != ""
		if got := ignoredByGit(top, []string{filepath.Join(top, ".git")}, "", name, false); got != want {
			t.Errorf("%q ignored: %v, git says %v", name, got, want)
		}
	}
	w := World{Workspace: top, Cwd: top, GitDirs: []string{filepath.Join(top, ".git")}, Detail: true}
	for name, want := range map[string]atip.Class{
		"dist":         atip.ClassWorkspaceRegenerable,
		"dist/a":       atip.ClassWorkspaceRegenerable,
		"out/a":        atip.ClassWorkspaceRegenerable,
		".venv":        atip.ClassWorkspaceRegenerable,
		".venv/lib/x":  atip.ClassWorkspaceRegenerable,
		"venv":         atip.ClassWorkspace,        // not ignored
		"node_modules": atip.ClassWorkspace,        // not ignored
		"build":        atip.ClassWorkspaceTracked, // holds a tracked file
		"plain.go":     atip.ClassWorkspaceTracked,
		"doc":          atip.ClassWorkspaceTracked,
		"x.log":        atip.ClassWorkspace, // ignored, but no build made it
		"dist/.env":    atip.ClassSecret,
		"new.go":       atip.ClassWorkspace,
	} {
		if got := w.Classify(filepath.Join(top, name), wr, false); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	write(t, "*.log\n", top, ".gitignore")
	if got := w.Classify(filepath.Join(top, ".venv"), wr, false); got != atip.ClassWorkspace {
		t.Errorf(".venv is %v after the file of patterns was changed", got)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Add(append([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01"), make([]byte, 70)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		idx, err := parseIndex(data)
		if err != nil {
			return
		}
		for _, name := range idx.names {
			if !idx.has(string(name)) {
				t.Fatalf("%q is in the index and is not found", name)
			}
		}
	})
}

func FuzzIgnore(f *testing.F) {
	f.Add("a/**/b", "a/x/b")
	f.Add("[!a-c]*\\*", "dx*")
	f.Add(strings.Repeat("*a", 30), strings.Repeat("a", 60))
	f.Fuzz(func(t *testing.T, glob, name string) {
		if p, ok := parsePattern(glob, ""); ok {
			p.matches(name, true)
		}
		if strings.ContainsAny(name, "*?[\\") || name == "" {
			return
		}
		steps := 1 << 14
		if !wildmatch(name, name, &steps) && steps >= 0 {
			t.Fatalf("%q does not match itself", name)
		}
	})
}

// bigIndex is a version 2 index with n entries, as a large repository has.
func bigIndex(n int) []byte {
	data := append([]byte("DIRC"), 0, 0, 0, 2)
	data = binary.BigEndian.AppendUint32(data, uint32(n))
	for i := range n {
		start := len(data)
		data = append(data, make([]byte, 62)...)
		data = fmt.Appendf(data, "drivers/some/directory/file%07d.c", i)
		data = append(data, make([]byte, 8-(len(data)-start)%8)...)
	}
	return data
}

func BenchmarkIndex100k(b *testing.B) {
	data := bigIndex(100_000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		idx, err := parseIndex(data)
		if err != nil || !idx.has("drivers/some/directory/file0050000.c") {
			b.Fatal(err)
		}
	}
}
