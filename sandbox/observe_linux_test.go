package sandbox

import (
	"errors"
	"math/rand"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestObservedFilter: the interpreter of the wrapper agrees with the one that the table is
// tested with, and the rewritten filter lets nothing through that the filter does not.
func TestObservedFilter(t *testing.T) {
	notified := map[int32]bool{}
	for _, nr := range observed {
		notified[int32(nr)] = true
	}
	nativeArch := uint32(auditAMD64)
	if runtime.GOARCH == "arm64" {
		nativeArch = auditARM64
	}
	random := rand.New(rand.NewSource(1))
	values := []uint64{0, 1, 2, 3, 16, unix.AF_INET, unix.AF_NETLINK, 0x5412, 0xdeadbeef00005412, unix.CLONE_NEWUSER, 1 << 29, 1 << 32, 1<<64 - 100, 77, 78}
	for _, choice := range everyChoice() {
		progs, name, _, err := loadProgram(choice, 77, 78, 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, prog := range progs {
			seen, err := observing(prog)
			if err != nil {
				t.Fatal(err)
			}
			var plain []bpfInsn
			for _, in := range prog {
				plain = append(plain, bpfInsn{in.Code, in.Jt, in.Jf, in.K})
			}
			refused := 0
			for nr := int32(0); nr < 480; nr++ {
				for range 24 {
					c := call{Nr: nr, Arch: nativeArch}
					for i := range c.Args {
						c.Args[i] = values[random.Intn(len(values))]
					}
					want, err := interpret(plain, seccompData{nr: uint32(nr), arch: nativeArch, args: c.Args})
					if err != nil {
						t.Fatal(err)
					}
					got, err := answer(prog, &c)
					if err != nil || got != want {
						t.Fatalf("%s: call %d %x: %#x, want %#x, %v", name, nr, c.Args, got, want, err)
					}
					rewritten, err := answer(seen, &c)
					switch {
					case err != nil:
						t.Fatal(err)
					case want == retAllow && rewritten == retAllow && !notified[nr], want == retAllow && rewritten == unix.SECCOMP_RET_USER_NOTIF && notified[nr]:
					case want&unix.SECCOMP_RET_ACTION_FULL == retErrno && rewritten == unix.SECCOMP_RET_USER_NOTIF:
						refused++
					case want == retKill && rewritten == retKill:
					default:
						t.Fatalf("%s: call %d %x: %#x became %#x", name, nr, c.Args, want, rewritten)
					}
				}
			}
			if refused == 0 {
				t.Errorf("%s: nothing was refused, so nothing was compared", name)
			}
		}
	}
	if _, err := answer([]unix.SockFilter{{Code: 0xff}}, &call{}); err == nil {
		t.Error("an unknown instruction is carried out")
	}
	if _, err := answer(nil, &call{}); err == nil {
		t.Error("a filter without an end has an answer")
	}
}

// TestOnlyOneListener: where somebody listens already, the filter is installed without one.
func TestOnlyOneListener(t *testing.T) {
	needLandlock(t, 1)
	progs, _, _, err := loadProgram(seccompChoice{truncate: true, fork: true}, unix.Getpid(), unix.Getpid(), 0)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		first, second int
		errs          [3]error
		refused       error
	}
	done := make(chan result)
	go offMain(func() { // the thread ends with its filters; nobody serves what it would open
		var r result
		r.errs[0] = noNewPrivs()
		r.first, r.errs[1] = installObserved(progs)
		r.second, r.errs[2] = installObserved(progs)
		// Of two filters the one that refuses itself wins over the one that asks.
		_, r.refused = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		done <- r
	})
	r := <-done
	unix.Close(r.first)
	if r.errs != [3]error{} || r.first < 0 || r.second != -1 || !errors.Is(r.refused, unix.EAFNOSUPPORT) {
		t.Errorf("%+v", r)
	}
}

func TestAddresses(t *testing.T) {
	for _, tc := range []struct {
		family uint16
		raw    []byte
		want   string
		local  bool
	}{
		{unix.AF_INET, []byte{2, 0, 1, 0xbb, 10, 0, 0, 1}, "10.0.0.1:443", false},
		{unix.AF_INET, []byte{2, 0, 0, 80, 127, 0, 0, 1}, "127.0.0.1:80", true},
		{unix.AF_INET, []byte{2, 0, 0}, "", false},
		{unix.AF_INET6, append([]byte{10, 0, 0, 80, 0, 0, 0, 0}, append(make([]byte, 15), 1)...), "[0:0:0:0:0:0:0:1]:80", true},
		{unix.AF_INET6, append([]byte{10, 0, 0, 80, 0, 0, 0, 0}, append([]byte{0xfe, 0x80}, make([]byte, 14)...)...), "[fe80:0:0:0:0:0:0:0]:80", false},
	} {
		if got, local := addressOf(tc.family, tc.raw); got != tc.want || local != tc.local {
			t.Errorf("%v: %q %v", tc.raw, got, local)
		}
	}
}

func TestDenialWords(t *testing.T) {
	d := Denial{Op: "write", Path: "/home/u/.cache/x", Guarantee: FilesWrite, Count: 2, Certain: true}
	d.outside(Write)
	if got := d.String(); got != "denied write /home/u/.cache/x: outside the write set; use the workspace, $TMPDIR or policy sandbox.write (2 times) [E4110]" {
		t.Error(got)
	}
	d = Denial{Op: "read", Path: "/home/u/.ssh/id\x1b[2J", Count: 1, Certain: true}
	d.outside(Read)
	if got := d.String(); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
}
