//go:build unix

package scan

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func mkdir(t *testing.T, mode os.FileMode, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, mode os.FileMode, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func reasons(list []Skipped) map[string]string {
	out := map[string]string{}
	for _, s := range list {
		out[filepath.Base(s.Path)] = s.Reason
	}
	return out
}

func TestPlaces(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	good := mkdir(t, 0o755, home, ".local/bin")
	below := mkdir(t, 0o755, good, "sub")
	evil := mkdir(t, 0o755, home, ".local/bin-evil")
	open := mkdir(t, 0o777, home, ".local/bin/open")
	extra := mkdir(t, 0o755, home, "tools")
	link := filepath.Join(home, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	trap := filepath.Join(good, "trap")
	if err := os.Symlink(evil, trap); err != nil {
		t.Fatal(err)
	}
	write(t, 0o755, filepath.Join(home, "file"), "")
	dirs, skipped := Places([]string{"", ".", "bin", good, link, below, evil, trap, open, extra, filepath.Join(home, "gone"), filepath.Join(home, "file")}, home, []string{extra})
	if got, want := strings.Join(dirs, " "), strings.Join([]string{good, below, extra}, " "); got != want {
		t.Errorf("scanned %q, want %q", got, want)
	}
	got := reasons(skipped)
	for name, want := range map[string]string{".": "relative", "bin": "relative", "bin-evil": "usual directories", "trap": "usual directories", "open": "writable by everybody", "gone": "cannot be opened", "file": "not a directory"} {
		if !strings.Contains(got[name], want) {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	if len(skipped) != 8 {
		t.Errorf("%d of 8 are named: %v", len(skipped), skipped)
	}
}

func TestCandidates(t *testing.T) {
	root := t.TempDir()
	a, b, open := mkdir(t, 0o755, root, "a"), mkdir(t, 0o755, root, "b"), mkdir(t, 0o777, root, "open")
	write(t, 0o755, filepath.Join(a, "tool"), "one")
	write(t, 0o755, filepath.Join(b, "tool"), "two")
	write(t, 0o644, filepath.Join(a, "README"), "no program")
	write(t, 0o757, filepath.Join(a, "theirs"), "")
	write(t, 0o755|os.ModeSetuid, filepath.Join(a, "root"), "")
	write(t, 0o755, filepath.Join(open, "planted"), "")
	if err := syscall.Mkfifo(filepath.Join(a, "fifo"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"dangling": "/nonexistent/x", "leads-out": filepath.Join(open, "planted"), "loop": filepath.Join(a, "loop")} {
		if err := os.Symlink(to, filepath.Join(a, name)); err != nil {
			t.Fatal(err)
		}
	}
	list, skipped := Candidates([]string{a, b, filepath.Join(root, "gone")})
	if len(list) != 1 || list[0].Name != "tool" || list[0].Path != filepath.Join(a, "tool") || strings.Join(list[0].Also, "") != filepath.Join(b, "tool") {
		t.Errorf("%+v", list)
	}
	got := reasons(skipped)
	for name, want := range map[string]string{"theirs": "writable by everybody", "root": "setuid", "fifo": "not a regular file", "dangling": "nowhere", "loop": "nowhere", "leads-out": "writable by everybody", "gone": "cannot be listed"} {
		if !strings.Contains(got[name], want) {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	if got["README"] != "" {
		t.Error("a file that is no program is worth no word")
	}
}

func TestNever(t *testing.T) {
	for _, name := range []string{"sh", "bash", "python3.13", "lua5.4", "sudo", "env", "xargs", "reboot", "mkfs.ext4", "systemctl", "atip-exec", "nodejs"} {
		if never(name) == "" {
			t.Errorf("%s would be started", name)
		}
	}
	for _, name := range []string{"gh", "git", "kubectl", "shfmt", "nodemon", "envsubst", "timedatectl"} {
		if why := never(name); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	if c, err := ReadConfig(dir); err != nil || c.Probe != "auto" || c.MaxAge != 30*24*time.Hour {
		t.Errorf("%+v %v", c, err)
	}
	write(t, 0o600, filepath.Join(dir, "config.json"), `{"scan":{"paths":["/opt/x/bin"],"allow":["gh"],"skip":["dig"]},"probe":"listed","nativeMaxAge":"7d","other":1}`)
	if c, err := ReadConfig(dir); err != nil || c.Probe != "listed" || c.MaxAge != 7*24*time.Hour || len(c.Paths)+len(c.Allow)+len(c.Skip) != 3 {
		t.Errorf("%+v %v", c, err)
	}
	for _, bad := range []string{`{"probe":"always"}`, `{`, `{"nativeMaxAge":"-1d"}`, `{"nativeMaxAge":"soon"}`, `{"scan":{"skip":"x"}}`} {
		write(t, 0o600, filepath.Join(dir, "config.json"), bad)
		if _, err := ReadConfig(dir); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
