package sandbox

import (
	"context"
	"os"
	"syscall"
	"testing"
)

func benchProfile(b *testing.B) (Profile, Host) {
	b.Helper()
	needLandlock(b, 1)
	h, err := Probe(Cache{})
	if err != nil {
		b.Fatal(err)
	}
	w := newWorld(b)
	return w.profile(b, func(in *Input) { in.Exec = []string{"/usr/bin/true"} }), h
}

// BenchmarkStart is a confined start to the end of the child; compare with
// BenchmarkForkExec, which does the same without any sandbox.
func BenchmarkStart(b *testing.B) {
	p, h := benchProfile(b)
	s, err := Select(p, h)
	if err != nil {
		b.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	for b.Loop() {
		proc, err := Start(context.Background(), p, s, Cmd{Path: "/usr/bin/true", Argv: []string{"true"}, Stdin: null, Stdout: null, Stderr: null})
		if err != nil {
			b.Fatal(err)
		}
		if e, err := proc.Wait(); err != nil || e.Code != 0 {
			b.Fatal(e, err)
		}
		proc.Sweep()
	}
	b.ReportMetric(float64(len(p.Read)+len(p.Exec)+len(p.Write)), "rules")
}

// BenchmarkStartPrepared leaves out what a run does while policy decides.
func BenchmarkStartPrepared(b *testing.B) {
	p, h := benchProfile(b)
	s, err := Select(p, h)
	if err != nil {
		b.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	for b.Loop() {
		b.StopTimer()
		prepared := Prepare("", []string{"/usr/bin"})
		prepared.Rules(p.SubprocessNo)
		<-prepared.done
		b.StartTimer()
		proc, err := Start(context.Background(), p, s, Cmd{Path: "/usr/bin/true", Argv: []string{"true"}, Stdin: null, Stdout: null, Stderr: null, Prepared: prepared})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := proc.Wait(); err != nil {
			b.Fatal(err)
		}
		proc.Sweep()
	}
}

func BenchmarkForkExec(b *testing.B) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer null.Close()
	attr := &syscall.ProcAttr{Files: []uintptr{null.Fd(), null.Fd(), null.Fd()}}
	for b.Loop() {
		pid, err := syscall.ForkExec("/usr/bin/true", []string{"true"}, attr)
		if err != nil {
			b.Fatal(err)
		}
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDeriveSelect(b *testing.B) {
	_, h := benchProfile(b)
	w := newWorld(b)
	in := Input{Names: tableNames(), Workspace: w.ws, Cwd: w.ws, Home: w.home, Private: w.private, Exec: []string{"/usr/bin/true"},
		PathDirs: []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"},
		Root:     os.Getuid() == 0, Policy: PolicyProfile{Accept: append(BuiltinAccept(), WSCheck)}}
	prepared := Prepare(w.home, in.PathDirs)
	defer prepared.Close()
	in.Files = prepared.Files()
	for b.Loop() {
		p, err := Derive(in)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Select(p, h); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProbeCached(b *testing.B) {
	c := Cache{Dir: b.TempDir(), Executable: self(b)}
	for b.Loop() {
		if _, err := Probe(c); err != nil {
			b.Fatal(err)
		}
	}
}
