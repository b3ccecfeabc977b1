package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// leadText leads another process by every way that the kernel has: a child of its own, so that
// Yama is no reason for a refusal.
const leadText = `import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
class iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
word = ctypes.create_string_buffer(b"before")
other = os.fork()
if other == 0:
    signal.pause()
def tell(way, ok):
    print(way + "=" + ("yes" if ok else "no"), end=" ", flush=True)
for way, request in (("attach", 16), ("seize", 0x4206), ("high", 16 | 1 << 32)):
    ok = libc.ptrace(request, other, 0, 0) == 0
    tell(way, ok)
    if ok:
        if request != 0x4206:
            os.waitpid(other, 0x40000000)
            libc.ptrace(17, other, 0, 0)
        else:
            libc.ptrace(0x4207, other, 0, 0)
            os.waitpid(other, 0x40000000)
            libc.ptrace(17, other, 0, 0)
mine = ctypes.create_string_buffer(b"after")
a, b = iovec(ctypes.addressof(mine), 5), iovec(ctypes.addressof(word), 5)
tell("writev", libc.process_vm_writev(other, ctypes.byref(a), 1, ctypes.byref(b), 1, 0) == 5)
for way, path in (("mem", "/proc/%d/mem"), ("task", "/proc/%d/task/%d/mem"), ("fd", "/dev/fd/../../%d/mem")):
    try:
        path = path % ((other, other) if path.count("%") == 2 else other)
        fd = os.open(path, os.O_RDWR)
        os.lseek(fd, ctypes.addressof(word), 0)
        tell(way, os.write(fd, b"after") == 5)
    except OSError:
        tell(way, False)
os.kill(other, signal.SIGKILL)
os.waitpid(other, 0)
child = os.fork()
if child == 0:
    os._exit(0 if libc.ptrace(0, 0, 0, 0) == 0 else 1)
tell("traceme", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0)
print()
`

// TestLedProcess: where starts are decided, no process of a run changes another one that was judged. What a
// debugger needs is left: a child that asks to be traced. Unconfined all of it works.
func TestLedProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(w.ws, "lead.py"), []byte(leadText), 0o644); err != nil {
		t.Fatal(err)
	}
	const all, left = "attach=yes seize=yes high=no writev=yes mem=yes task=yes fd=yes traceme=yes", "attach=no seize=no high=no writev=no mem=no task=no fd=no traceme=yes"
	control, err := exec.Command("python3", filepath.Join(w.ws, "lead.py")).CombinedOutput()
	if err != nil || strings.TrimSpace(string(control)) != all {
		t.Fatalf("control: %s %v", control, err)
	}
	// Below the root of its own that a normal user's run has, /proc is writable where nothing is judged.
	shut := strings.NewReplacer("mem=yes", "mem=no", "task=yes", "task=no", "fd=yes", "fd=no").Replace(all)
	put(t, w.ws, map[string]string{"debug.sh": `gdb -nx -batch -ex "set startup-with-shell off" -ex run -ex quit --args /bin/echo traced
strace -f -e trace=none /bin/sh -c "/bin/echo traced; :"`})
	debuggers := 2
	for _, tool := range []string{"gdb", "strace"} {
		if _, err := exec.LookPath(tool); err != nil {
			debuggers = 0
		}
	}
	for _, tier := range []string{"T2", "T3"} {
		free := all
		if tier == "T2" || os.Getuid() == 0 {
			free = shut
		}
		for _, row := range []struct {
			sandbox, rules, lead string
			traced               bool
		}{
			{"", "", free, true},
			{"", denyFactor, left, false},
			{`,"trace":"own"`, denyFactor, free, true},
			{`,"trace":"off"`, "", left, true},
		} {
			w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"` + row.sandbox + `},"rules":[` + row.rules + `]}`)
			out, err := w.command("--", "python3", "lead.py").CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != row.lead {
				t.Errorf("%s %+v: %s %v", tier, row, out, err)
			}
			out, _ = w.command("--", "sh", "debug.sh").CombinedOutput()
			if n := len(regexp.MustCompile(`(?m)^traced$`).FindAll(out, -1)); row.traced && n != debuggers || !row.traced && n != 0 {
				t.Errorf("%s %+v: debuggers started %d programs: %s", tier, row, n, out)
			}
			if !row.traced && debuggers > 0 && !strings.Contains(string(out), "a debugger traces it") {
				t.Errorf("%s %+v: the refusal does not say why: %s", tier, row, out)
			}
		}
	}
}

const denyFactor = `{"id":"no-factor","decision":"deny","when":{"tool":"factor"},"match":["factor 12"],"notMatch":["sort a"]}`
