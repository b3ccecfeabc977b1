package seccomp

import (
	"errors"
	"math/rand"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/gate"
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
		progs, name, _, err := Load(choice, 77, 78, 5)
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
					c := gate.Call{Nr: nr, Arch: nativeArch}
					for i := range c.Args {
						c.Args[i] = values[random.Intn(len(values))]
					}
					want, err := interpret(plain, seccompData{nr: uint32(nr), arch: nativeArch, args: c.Args})
					if err != nil {
						t.Fatal(err)
					}
					got, err := Answer(prog, &c)
					if err != nil || got != want {
						t.Fatalf("%s: call %d %x: %#x, want %#x, %v", name, nr, c.Args, got, want, err)
					}
					rewritten, err := Answer(seen, &c)
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
	if _, err := Answer([]unix.SockFilter{{Code: 0xff}}, &gate.Call{}); err == nil {
		t.Error("an unknown instruction is carried out")
	}
	if _, err := Answer(nil, &gate.Call{}); err == nil {
		t.Error("a filter without an end has an answer")
	}
}

// TestOnlyOneListener: where somebody listens already, the filter is installed without one.
func TestOnlyOneListener(t *testing.T) {
	progs, _, _, err := Load(Choice{Truncate: true, Fork: true}, unix.Getpid(), unix.Getpid(), 0)
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		first, second int
		errs          [3]error
		refused       error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // the thread ends with its filters; nobody serves what it would open
		var r result
		r.errs[0] = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		r.first, r.errs[1] = installObserved(progs)
		r.second, r.errs[2] = installObserved(progs)
		// Of two filters the one that refuses itself wins over the one that asks.
		_, r.refused = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		done <- r
	}()
	r := <-done
	unix.Close(r.first)
	if r.errs != [3]error{} || r.first < 0 || r.second != -1 || !errors.Is(r.refused, unix.EAFNOSUPPORT) {
		t.Errorf("%+v", r)
	}
}
