package procstat

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestOf: what the name of a process holds shifts no field.
func TestOf(t *testing.T) {
	hostile := filepath.Join(t.TempDir(), "a) R 1 (b")
	raw, err := os.ReadFile("/bin/sleep")
	if err == nil {
		err = os.WriteFile(hostile, raw, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(hostile, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	s, err := Of(cmd.Process.Pid)
	if err != nil || s.Name != "a) R 1 (b" || s.Int(Parent) != os.Getpid() || len(s.Fields[State]) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	self, err := Of(os.Getpid())
	if err != nil || self.Int(Parent) != os.Getppid() || self.Int(Session) != s.Int(Session) {
		t.Errorf("%+v, %v", self, err)
	}
	if since, err := strconv.Atoi(self.Fields[Start]); err != nil || since > s.Int(Start) {
		t.Errorf("started at %s, its child at %s", self.Fields[Start], s.Fields[Start])
	}
	if _, err := Of(-1); !os.IsNotExist(err) {
		t.Errorf("no process: %v", err)
	}
}

// TestLines: this process is among them, with its words.
func TestLines(t *testing.T) {
	for pid, line := range Lines() {
		if pid == os.Getpid() {
			if words := strings.Split(line, "\x00"); !slices.Equal(words[:len(words)-1], os.Args) {
				t.Errorf("%q, want %q", words, os.Args)
			}
			return
		}
	}
	t.Error("it does not appear")
}
