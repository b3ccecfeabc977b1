package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// everyChoice lists all combinations that have a program.
func everyChoice() []seccompChoice {
	var all []seccompChoice
	for i := range 64 {
		c := seccompChoice{inet: i&1 != 0, unix: i&2 != 0, metadata: i&4 != 0, truncate: i&8 != 0, fork: i&16 != 0, private: i&32 != 0}
		if !c.private || c.unix && c.metadata && c.truncate {
			all = append(all, c)
		}
	}
	return all
}

func TestEveryChoiceLoads(t *testing.T) {
	const wrapper, worker, ticket = 4711, 4712, 0x77777777
	used := map[string]bool{}
	for _, c := range everyChoice() {
		progs, name, sha, err := loadProgram(c, wrapper, worker, ticket)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		var files []byte
		for _, n := range c.programs() {
			used[n] = true
			code, err := os.ReadFile(filepath.Join("seccomp", runtime.GOARCH, n+".bpf"))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, code...)
		}
		if sum := sha256.Sum256(files); sha != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: sha256 %s is not that of its files", name, sha)
		}
		var ks []uint32
		for _, prog := range progs {
			for _, in := range prog {
				ks = append(ks, in.K)
			}
		}
		for k, want := range map[uint32]bool{
			PatchWrapperPID: false, PatchWorkerTID: false, PatchTicket: false,
			wrapper: !c.private, worker: !c.private, ticket: !c.fork,
		} {
			if slices.Contains(ks, k) != want {
				t.Errorf("%s: %#x in the program: %v, want %v", name, k, !want, want)
			}
		}
	}
	for _, p := range FilterPrograms() {
		if !used[p.Name] {
			t.Errorf("program %s is generated and never chosen", p.Name)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, row := range []struct {
		name            string
		choice          seccompChoice
		wrapper, worker int
		ticket          uint32
	}{
		{"no wrapper", seccompChoice{fork: true}, 0, 2, 1},
		{"no worker", seccompChoice{fork: true}, 1, 0, 1},
		{"no ticket", seccompChoice{}, 1, 2, 0},
		{"private and without unix", seccompChoice{private: true, metadata: true, truncate: true, fork: true}, 1, 2, 1},
		{"private and metadata closed", seccompChoice{private: true, unix: true, truncate: true, fork: true}, 1, 2, 1},
		{"private and truncation not handled", seccompChoice{private: true, unix: true, metadata: true, fork: true}, 1, 2, 1},
	} {
		progs, _, _, err := loadProgram(row.choice, row.wrapper, row.worker, row.ticket)
		var typed *SeccompError
		if !errors.As(err, &typed) || typed.FaultCode() != "E4102" || progs != nil {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	if err := installSeccomp(nil); err == nil {
		t.Error("installing nothing succeeds")
	}
	if err := installSeccomp([][]unix.SockFilter{{}}); err == nil {
		t.Error("installing an empty program succeeds")
	}
}

// A program that the kernel's checker rejects must not pass for installed.
func TestInstallReportsTheKernel(t *testing.T) {
	err := installSeccomp([][]unix.SockFilter{{{Code: 0xffff}}})
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EACCES) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkSeccompLoad(b *testing.B) {
	for b.Loop() {
		if _, _, _, err := loadProgram(seccompChoice{truncate: true, fork: true}, 1, 2, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSeccompInstall measures the system call alone, each time on a thread
// of its own, because a filter stays.
func BenchmarkSeccompInstall(b *testing.B) {
	for _, c := range []seccompChoice{
		{truncate: true, fork: true},
		{truncate: true},
		{truncate: true, fork: true, inet: true, unix: true},
		{truncate: true, fork: true, unix: true, metadata: true, private: true},
	} {
		progs, name, _, err := loadProgram(c, os.Getpid(), os.Getpid(), testTicket)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			var times []time.Duration
			for range b.N {
				done := make(chan error)
				go func() {
					runtime.LockOSThread()
					err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
					if err == nil {
						start := time.Now()
						err = installSeccomp(progs)
						times = append(times, time.Since(start))
					}
					done <- err
				}()
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "ns-median/install")
			b.ReportMetric(float64(times[len(times)/10].Nanoseconds()), "ns-p10/install")
		})
	}
}
