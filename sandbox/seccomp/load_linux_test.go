package seccomp

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
func everyChoice() []Choice {
	var all []Choice
	for i := range 128 {
		c := Choice{Inet: i&1 != 0, Unix: i&2 != 0, Metadata: i&4 != 0, Truncate: i&8 != 0, Fork: i&16 != 0, Private: i&32 != 0, Untraced: i&64 != 0}
		if !c.Private || c.Unix && c.Metadata && c.Truncate {
			all = append(all, c)
		}
	}
	return all
}

func TestEveryChoiceLoads(t *testing.T) {
	const wrapper, worker, ticket = 4711, 4712, 0x77777777
	used := map[string]bool{}
	for _, c := range everyChoice() {
		progs, name, sha, err := Load(c, wrapper, worker, ticket)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		var files []byte
		for _, n := range c.programs() {
			used[n] = true
			code, err := os.ReadFile(filepath.Join(runtime.GOARCH, n+".bpf"))
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
			wrapper: !c.Private, worker: !c.Private, ticket: !c.Fork,
		} {
			if slices.Contains(ks, k) != want {
				t.Errorf("%s: %#x in the program: %v, want %v", name, k, !want, want)
			}
		}
	}
	for _, p := range Programs() {
		if !used[p.Name] {
			t.Errorf("program %s is generated and never chosen", p.Name)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, row := range []struct {
		name            string
		choice          Choice
		wrapper, worker int
		ticket          uint32
	}{
		{"no wrapper", Choice{Fork: true}, 0, 2, 1},
		{"no worker", Choice{Fork: true}, 1, 0, 1},
		{"no ticket", Choice{}, 1, 2, 0},
		{"private and without unix", Choice{Private: true, Metadata: true, Truncate: true, Fork: true}, 1, 2, 1},
		{"private and metadata closed", Choice{Private: true, Unix: true, Truncate: true, Fork: true}, 1, 2, 1},
		{"private and truncation not handled", Choice{Private: true, Unix: true, Metadata: true, Fork: true}, 1, 2, 1},
	} {
		progs, _, _, err := Load(row.choice, row.wrapper, row.worker, row.ticket)
		var typed *Error
		if !errors.As(err, &typed) || typed.FaultCode() != "E4102" || progs != nil {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	if err := Install(nil); err == nil {
		t.Error("installing nothing succeeds")
	}
	if err := Install([][]unix.SockFilter{{}}); err == nil {
		t.Error("installing an empty program succeeds")
	}
}

// A program that the kernel's checker rejects must not pass for installed.
func TestInstallReportsTheKernel(t *testing.T) {
	err := Install([][]unix.SockFilter{{{Code: 0xffff}}})
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EACCES) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkSeccompLoad(b *testing.B) {
	for b.Loop() {
		if _, _, _, err := Load(Choice{Truncate: true, Fork: true}, 1, 2, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSeccompInstall measures the system call alone, each time on a thread
// of its own, because a filter stays.
func BenchmarkSeccompInstall(b *testing.B) {
	for _, c := range []Choice{
		{Truncate: true, Fork: true},
		{Truncate: true},
		{Truncate: true, Fork: true, Inet: true, Unix: true},
		{Truncate: true, Fork: true, Unix: true, Metadata: true, Private: true},
	} {
		progs, name, _, err := Load(c, os.Getpid(), os.Getpid(), testTicket)
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
						err = Install(progs)
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
