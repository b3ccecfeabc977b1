package sandbox

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEnclose confines a process of its own and tries what it must no longer do; each of
// these succeeds before.
func TestEnclose(t *testing.T) {
	if dir := os.Getenv("ENCLOSE_DIR"); dir != "" {
		enclosed(t, dir)
		return
	}
	dir := t.TempDir()
	for _, name := range []string{"open", "closed"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestEnclose$", "-test.v")
	cmd.Env = append(os.Environ(), "ENCLOSE_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all was refused") {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "written")); err == nil {
		t.Error("a file was written")
	}
}

func enclosed(t *testing.T, dir string) {
	attempts := map[string]func() error{
		"read": func() error { _, err := os.ReadFile(filepath.Join(dir, "closed")); return err },
		"write": func() error {
			f, err := os.Create(filepath.Join(dir, "written"))
			if err == nil {
				f.Close()
				os.Remove(f.Name())
			}
			return err
		},
		"socket": func() error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err == nil {
				l.Close()
			}
			return err
		},
		"unix socket": func() error {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err == nil {
				unix.Close(fds[0])
				unix.Close(fds[1])
				return errors.New("a pair is harmless")
			}
			return err
		},
		"exec": func() error { return exec.Command("/bin/true").Run() },
	}
	for name, try := range attempts {
		if err := try(); err != nil && name != "unix socket" {
			t.Fatalf("%s fails before: %v", name, err)
		}
	}
	if err := Enclose([]string{filepath.Join(dir, "open"), filepath.Join(dir, "missing")}); err != nil {
		t.Fatal(err)
	}
	for name, try := range attempts {
		// On threads that were there before and on new ones.
		done := make(chan error, 8)
		for range 8 {
			go func() { done <- try() }()
		}
		for range 8 {
			if err := <-done; err == nil {
				t.Fatalf("%s still succeeds", name)
			}
		}
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "open")); err != nil || string(raw) != "x" {
		t.Fatalf("what was granted cannot be read: %v", err)
	}
	t.Log("all was refused")
}
