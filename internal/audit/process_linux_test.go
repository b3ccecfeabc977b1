package audit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/require"
)

// The test binary is its own writer process.
const (
	helperEnv = "AUDIT_TEST_HELPER"
	helperDir = "AUDIT_TEST_DIR"
)

func TestMain(m *testing.M) {
	if how := os.Getenv(helperEnv); how != "" {
		if err := helper(how, os.Getenv(helperDir)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func helper(how, dir string) error {
	switch how {
	case "ten":
		return writeRecords(dir, 10)
	case "forever":
		return writeRecords(dir, -1)
	case "limit":
		return fileLimit(dir)
	case "full":
		return fullDisk(dir)
	}
	return errors.New("unknown helper " + how)
}

func writeRecords(dir string, n int) error {
	l, err := Open(dir)
	if err != nil {
		return err
	}
	defer l.Close()
	for i := 0; i != n; i++ {
		if err := l.Reserve(); err != nil {
			return err
		}
		if _, err := l.Append(map[string]any{"kind": "run", "pad": strings.Repeat("p", i%3000)}); err != nil {
			return err
		}
	}
	return nil
}

func start(t *testing.T, how, dir string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), helperEnv+"="+how, helperDir+"="+dir)
	cmd.Stdout = &out
	return cmd, &out
}

func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	var cmds []*exec.Cmd
	for range 20 {
		cmd, _ := start(t, "ten", dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	verify(t, dir, 200, 0)
}

func TestKilledWriters(t *testing.T) {
	dir := t.TempDir()
	for range 4 {
		var cmds []*exec.Cmd
		for range 3 {
			cmd, _ := start(t, "forever", dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			cmds = append(cmds, cmd)
		}
		for _, cmd := range cmds {
			time.Sleep(time.Duration(20+rand.IntN(30)) * time.Millisecond)
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	if err := writeRecords(dir, 1); err != nil {
		t.Fatal(err)
	}
	s, err := Verify(dir)
	if err != nil || !s.OK() || s.Records < 2 {
		t.Fatalf("%+v, %v", s, err)
	}
}

// fileLimit reaches RLIMIT_FSIZE, which fails as a full disk does but needs no
// privilege: a part of the line is written first.
func fileLimit(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	if err := writeRecords(dir, 3); err != nil {
		return err
	}
	l, err := Open(dir)
	if err != nil {
		return err
	}
	names, err := dayFiles(dir)
	if err != nil {
		return err
	}
	fi, err := os.Stat(filepath.Join(dir, names[len(names)-1]))
	if err != nil {
		return err
	}
	limit := uint64(fi.Size()) + 100
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	if _, err := l.Append(map[string]any{"pad": strings.Repeat("x", 1000)}); err == nil {
		return errors.New("a record beyond the limit was written")
	}
	after, err := os.Stat(filepath.Join(dir, names[len(names)-1]))
	if err != nil || after.Size() != fi.Size() {
		return fmt.Errorf("the file has %d bytes, want %d: %v", after.Size(), fi.Size(), err)
	}
	return nil
}

func TestWriteCutShort(t *testing.T) {
	dir := t.TempDir()
	cmd, out := start(t, "limit", dir)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	verify(t, dir, 3, 0)
}

// fullDisk runs in its own namespaces with a small tmpfs on dir.
func fullDisk(dir string) error {
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=2m,mode=0700"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	audit := filepath.Join(dir, "audit")
	l, err := Open(audit)
	if err != nil {
		return err
	}
	if err := l.Reserve(); err != nil {
		return fmt.Errorf("reserve on an empty disk: %w", err)
	}
	fill, err := os.Create(filepath.Join(dir, "fill"))
	if err != nil {
		return err
	}
	page := make([]byte, 4096)
	for err == nil {
		_, err = fill.Write(page)
	}
	// What was reserved holds although the disk is full now.
	for range 8 {
		if _, err := l.Append(map[string]any{"pad": strings.Repeat("x", 40<<10)}); err != nil {
			return fmt.Errorf("append into the reservation: %w", err)
		}
	}
	for err = nil; err == nil; {
		err = l.Reserve()
		if err == nil {
			_, err = l.Append(map[string]any{"pad": strings.Repeat("x", 40<<10)})
		}
	}
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, syscall.ENOSPC) || e.Op != "reserve" {
		return fmt.Errorf("the disk is full and the error is: %w", err)
	}
	s, err := Verify(audit)
	if err != nil || !s.OK() || s.Records < 8 {
		return fmt.Errorf("%+v: %w", s, err)
	}
	return nil
}

func TestFullDisk(t *testing.T) {
	cmd, out := start(t, "full", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	err := cmd.Start()
	if err == nil {
		err = cmd.Wait()
	} else if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		require.Feature(t, "userns", err)
	}
	if err != nil && strings.Contains(out.String(), "mount: ") {
		require.Feature(t, "userns", errors.New(out.String()))
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
