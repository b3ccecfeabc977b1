package trust

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// run starts f as the sandbox does and returns the result of the check and the
// exit status.
func run(t testing.TB, f *File) (checked string, code int, err error) {
	t.Helper()
	if err := f.Recheck(); err != nil {
		return "", 0, err
	}
	return runUnchecked(t, f)
}

func runUnchecked(t testing.TB, f *File) (checked string, code int, err error) {
	t.Helper()
	path, byDescriptor, file := f.Start()
	if byDescriptor {
		path = fdPath(file)
	}
	cmd := &exec.Cmd{Path: path, Args: []string{f.Identity().Argv0}, Dir: "/"}
	if err := cmd.Start(); err != nil {
		return "", 0, err
	}
	checked, err = f.CheckStarted(cmd.Process.Pid)
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return "", 0, err
	}
	f.StartedOK()
	cmd.Wait()
	return checked, cmd.ProcessState.ExitCode(), nil
}

func fdPath(file *os.File) string {
	const digits = "0123456789"
	n := int(file.Fd())
	s := ""
	for ; n > 0; n /= 10 {
		s = digits[n%10:n%10+1] + s
	}
	return "/proc/self/fd/" + s
}

func TestStartForms(t *testing.T) {
	dir := t.TempDir()
	tool := copyBinary(t, "false", filepath.Join(dir, "tool"))
	script := write(t, filepath.Join(dir, "script"), "#!/bin/sh\nexit 7\n", 0o755)
	// The directory belongs to the test's user, so as root it must be named.
	o := Opener{TmpDirs: []string{dir}, Scripts: ScriptsPath}
	for _, row := range []struct {
		word         string
		byDescriptor bool
		code         int
	}{
		{tool, true, 1},
		{script, false, 7},
		{"true", false, 0},
	} {
		f := open(t, o, row.word, systemPath(), "/")
		if _, byDescriptor, file := f.Start(); byDescriptor != row.byDescriptor || file == nil {
			t.Errorf("%s: by descriptor %v", row.word, byDescriptor)
		}
		checked, code, err := run(t, f)
		if err != nil || code != row.code || (checked != "true" && checked != "ended") {
			t.Errorf("%s: %q, exit %d, %v", row.word, checked, code, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Two programs take turns under one name; only one of them is what the run
// pinned. Whatever is replaced when, the other must never run.
func TestReplacementNeverRuns(t *testing.T) {
	good, err := os.ReadFile(realPath(t, "true"))
	if err != nil {
		t.Fatal(err)
	}
	bad, err := os.ReadFile(realPath(t, "false"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name    string
		replace func(path string, data []byte) error
	}{
		{"rename", func(path string, data []byte) error {
			if err := os.WriteFile(path+".new", data, 0o755); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}},
		{"write in place", func(path string, data []byte) error {
			f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt(data, 0)
			return err
		}},
		{"truncate and write", func(path string, data []byte) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC|syscall.O_NONBLOCK, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.Write(data)
			return err
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			path := write(t, filepath.Join(dir, "tool"), string(good), 0o755)
			pinned := fileDigest(t, path)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			var replaced atomic.Int32
			wg.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					data := bad
					if i%2 == 1 {
						data = good
					}
					if row.replace(path, data) == nil {
						replaced.Add(1)
					}
					time.Sleep(200 * time.Microsecond)
				}
			})
			o := Opener{TmpDirs: []string{dir}, CacheDir: filepath.Join(dir, "cache")}
			ran := 0
			// Enough of both, or some of both after a while.
			began := time.Now()
			for (ran < 50 || replaced.Load() < 10) && (time.Since(began) < 5*time.Second || (ran == 0 || replaced.Load() == 0) && time.Since(began) < time.Minute) {
				f, err := o.Open(path, nil, "/")
				if err != nil {
					continue // busy or cut short: refusing is always right
				}
				if f.Identity().Digest == pinned {
					if _, code, err := run(t, f); err == nil {
						ran++
						if code != 0 {
							t.Error("the replacement ran")
						}
					}
				}
				f.Close()
			}
			close(stop)
			wg.Wait()
			if ran == 0 || replaced.Load() == 0 {
				t.Errorf("%d runs, %d replacements: nothing was tested", ran, replaced.Load())
			}
			// The control: the same replacement, unhindered, does run.
			if err := row.replace(path, bad); err != nil {
				t.Fatal(err)
			}
			if err := exec.Command(path).Run(); err == nil {
				t.Error("the control did not run the replacement")
			}
		})
	}
}

// What happens between the last check and the start shows after it.
func TestReplacedAfterRecheck(t *testing.T) {
	dir := t.TempDir()
	o := Opener{TmpDirs: []string{dir}, Scripts: ScriptsPath}
	replace := func(path, text string) {
		write(t, path+".new", text, 0o755)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	script := write(t, filepath.Join(dir, "script"), "#!/bin/sh\nsleep 0.05\n", 0o755)
	f := open(t, o, script, nil, "/")
	if err := f.Recheck(); err != nil {
		t.Fatal(err)
	}
	replace(script, "#!/bin/sh\nsleep 1\n")
	var changed *ChangedError
	if _, _, err := runUnchecked(t, f); !errors.As(err, &changed) || changed.FaultCode() != "E3302" {
		t.Errorf("replaced script: %v", err)
	}
	f = open(t, o, script, nil, "/")
	replace(script, "#!/bin/sh\n")
	if err := f.Recheck(); !errors.As(err, &changed) {
		t.Errorf("replaced before the check: %v", err)
	}
	// A swapped interpreter of a script.
	interp := copyBinary(t, "sleep", filepath.Join(dir, "interp"))
	uses := write(t, filepath.Join(dir, "uses"), "#!"+interp+" 2\n", 0o755)
	f = open(t, o, uses, nil, "/")
	if err := f.Recheck(); err != nil {
		t.Fatal(err)
	}
	copyBinary(t, "tail", interp+".new")
	write(t, filepath.Join(dir, "uses.f"), "x", 0o644)
	if err := os.Rename(interp+".new", interp); err != nil {
		t.Fatal(err)
	}
	if _, _, err := runUnchecked(t, f); !errors.As(err, &changed) {
		t.Errorf("replaced interpreter: %v", err)
	}
	f.Close()
	if err := f.Recheck(); err == nil {
		t.Error("a closed file passes the check")
	}
}

func TestReplacedByExecIsNoAlarm(t *testing.T) {
	f := open(t, Opener{}, "env", systemPath(), "/")
	if err := f.Recheck(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(f.Identity().Canonical, "sleep", "5")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	for {
		checked, err := f.CheckStarted(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if checked == "replaced" {
			return
		}
		if checked != "true" {
			t.Fatalf("checked %q", checked)
		}
	}
}

func TestBusy(t *testing.T) {
	dir := t.TempDir()
	tool := copyBinary(t, "true", filepath.Join(dir, "tool"))
	w, err := os.OpenFile(tool, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if f, err := (Opener{}).Open(tool, nil, "/"); !errors.As(err, &busy) || busy.FaultCode() != "E3301" {
		t.Errorf("open for writing elsewhere: %v, %v", f, err)
	}
	w.Close()
	open(t, Opener{}, tool, nil, "/")
	// While it is held, a writer that does not wait is turned away.
	if _, err := os.OpenFile(tool, os.O_WRONLY|syscall.O_NONBLOCK, 0); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("writing while it is held: %v", err)
	}
}

// A writer that waits gets the file soon, and then the run is refused.
func TestWriterIsLetIn(t *testing.T) {
	dir := t.TempDir()
	script := write(t, filepath.Join(dir, "script"), "#!/bin/sh\nexit 0\n", 0o755)
	f := open(t, Opener{TmpDirs: []string{dir}}, script, nil, "/")
	done := make(chan error, 1)
	go func() {
		w, err := os.OpenFile(script, os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = w.WriteString("exit 9\n")
			w.Close()
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the writer hangs")
	}
	if _, _, err := run(t, f); err == nil {
		t.Error("the changed script was started")
	}
}

func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		// Root reads everything; the form is decided by EACCES alone.
		t.Log("root: nothing is unreadable")
		return
	}
	dir := t.TempDir()
	tool := copyBinary(t, "true", filepath.Join(dir, "tool"))
	if err := os.Chmod(tool, 0o111); err != nil {
		t.Fatal(err)
	}
	f := open(t, Opener{TmpDirs: []string{dir}}, tool, nil, "/")
	id := f.Identity()
	if id.Form != FormUnreadable || id.Digest != "" {
		t.Errorf("%+v", id)
	}
	if v := Judge(id, Policy{}); v.Reason != "unreadable" || v.Action != Confirm {
		t.Errorf("%+v", v)
	}
	if _, code, err := run(t, f); err != nil || code != 0 {
		t.Errorf("exit %d, %v", code, err)
	}
}

// A wrapper such as env is often another program by the time we look, above all where other work
// keeps every processor busy.
func TestExecCheckNeverKillsWrappers(t *testing.T) {
	dir := t.TempDir()
	o := Opener{CacheDir: filepath.Join(dir, "digest")}
	var done atomic.Bool
	defer done.Store(true)
	for range 2 * runtime.NumCPU() {
		go func() {
			for !done.Load() {
			}
		}()
	}
	times := 250
	if os.Getenv("ATIP_TEST_WHOLE") != "" {
		times = 1000
	}
	for range times {
		f := open(t, o, "env", systemPath(), "/")
		if err := f.Recheck(); err != nil {
			t.Fatal(err)
		}
		path, _, _ := f.Start()
		cmd := exec.Command(path, "true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.CheckStarted(cmd.Process.Pid); err != nil {
			t.Fatal(err)
		}
		f.StartedOK()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

func TestHoldArgument(t *testing.T) {
	dir := t.TempDir()
	script := write(t, filepath.Join(dir, "script.py"), "print(1)\n", 0o644)
	o := Opener{TmpDirs: []string{dir}}
	f := open(t, o, "sh", systemPath(), dir)
	if err := o.HoldArgument(f, "script.py", dir); err != nil {
		t.Fatal(err)
	}
	id := f.Identity()
	part := id.Chain[len(id.Chain)-1]
	if part.Role != RoleArgument || part.Digest != fileDigest(t, script) || !id.HasCap(CapCodeArgument) {
		t.Errorf("%+v", id)
	}
	if err := f.Recheck(); err != nil {
		t.Error(err)
	}
	f.Close()
	f = open(t, o, "sh", systemPath(), dir)
	if err := o.HoldArgument(f, "script.py", dir); err != nil {
		t.Fatal(err)
	}
	write(t, script+".new", "print(2)\n", 0o644)
	if err := os.Rename(script+".new", script); err != nil {
		t.Fatal(err)
	}
	var changed *ChangedError
	if err := f.Recheck(); !errors.As(err, &changed) {
		t.Errorf("the replaced argument passes: %v", err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	f = open(t, o, "sh", systemPath(), dir)
	for _, bad := range []string{"none", "fifo", "."} {
		if err := o.HoldArgument(f, bad, dir); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

// A script started through its descriptor is the one that was hashed, whatever
// its path leads to by then; started by path it would be the other.
func TestScriptByDescriptor(t *testing.T) {
	dir := t.TempDir()
	script := write(t, filepath.Join(dir, "script"), "#!/bin/sh\nexit 7\n", 0o755)
	start := func(o Opener) (f *File, code int) {
		f = open(t, o, script, nil, "/")
		if err := f.Recheck(); err != nil {
			t.Fatal(err)
		}
		write(t, script+".new", "#!/bin/sh\nexit 9\n", 0o755)
		if err := os.Rename(script+".new", script); err != nil {
			t.Fatal(err)
		}
		path, byDescriptor, file := f.Start()
		files := []uintptr{0, 1, 2}
		if byDescriptor {
			path = fdPath(file)
			for len(files) < int(file.Fd()) {
				files = append(files, ^uintptr(0))
			}
			files = append(files, file.Fd())
		}
		pid, err := syscall.ForkExec(path, []string{"script"}, &syscall.ProcAttr{Dir: "/", Files: files})
		if err != nil {
			t.Fatal(err)
		}
		var ws syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(pid, &ws, 0, nil); err != syscall.EINTR {
				break
			}
		}
		return f, ws.ExitStatus()
	}
	f, code := start(Opener{TmpDirs: []string{dir}, Scripts: ScriptsDescriptor})
	if !f.Inherit() || f.Identity().HasCap(CapMutablePath) || code != 7 {
		t.Errorf("inherit %v, caps %q, exit %d", f.Inherit(), f.Identity().Caps, code)
	}
	write(t, script, "#!/bin/sh\nexit 7\n", 0o755)
	if f, code := start(Opener{TmpDirs: []string{dir}, Scripts: ScriptsPath}); f.Inherit() || code != 9 {
		t.Errorf("control: exit %d", code)
	}
}
