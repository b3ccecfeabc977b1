package seccomp

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/require"
)

// The kernel decides the rows of the table again, on calls made by a child that has
// installed the program, each beside the same call of a child that has not.

// harmless is an argument that names nothing: no such pid, descriptor, key or
// address, so that a control that passes the permission check changes nothing.
const harmless = 0x3ffffff1

// argsOf gives the arguments that the row does not test values with which the
// unconfined call gets as far as it can without harm.
func argsOf(call string) [6]uintptr {
	switch call {
	case "socket":
		return [6]uintptr{unix.AF_INET, unix.SOCK_STREAM, 0}
	case "socketpair":
		return [6]uintptr{unix.AF_INET, unix.SOCK_STREAM, 0, harmless}
	case "ioctl", "fcntl":
		return [6]uintptr{0, harmless, harmless}
	case "clone", "fork":
		return [6]uintptr{}
	case "kill", "tkill", "rt_sigqueueinfo":
		return [6]uintptr{harmless, 0, harmless}
	case "tgkill", "rt_tgsigqueueinfo":
		return [6]uintptr{harmless, harmless, 0, harmless}
	case "pidfd_open":
		return [6]uintptr{harmless, 0}
	case "mq_open":
		return [6]uintptr{harmless, 0}
	}
	return [6]uintptr{harmless, harmless, harmless, harmless, harmless, harmless}
}

// hits lists arguments that meet the test.
func (t ArgTest) hits(job filterJob) []uintptr {
	low := func(v uint32) []uintptr {
		switch v {
		case PatchWrapperPID:
			v = uint32(job.Wrapper)
		case PatchWorkerTID:
			v = uint32(job.Worker)
		}
		return []uintptr{uintptr(v), 0xdeadbeef<<32 | uintptr(v)}
	}
	switch t.Op {
	case OpEqual, OpMasked:
		return low(t.Value)
	case OpAny:
		var out []uintptr
		for bit := uint32(1); bit != 0; bit <<= 1 {
			if t.Mask&bit != 0 {
				out = append(out, low(bit)...)
			}
		}
		return out
	case OpNot:
		if t.Value == 0 {
			return []uintptr{harmless}
		}
		return []uintptr{uintptr(t.Value) + 1, harmless}
	case OpOutside:
		var out []uintptr
		for v := range uintptr(48) {
			if t.holds(uint64(v)) {
				out = append(out, v)
			}
		}
		return append(out, 132, 262)
	case OpOther:
		return []uintptr{1, 0x40000, 0xdeadbeef<<32 | 1}
	}
	return nil // OpHigh and OpHighOther have a test of their own
}

// kernelRow is a rule as calls of this machine.
type kernelRow struct {
	rule  Rule
	calls []kernelCall
}

func kernelRows(t *testing.T, job filterJob, groups []string) []kernelRow {
	numbers := callsOf(t, runtime.GOARCH)
	var rows []kernelRow
	for _, rule := range Rules(groups...) {
		if rule.Answer == AnswerKill || slices.ContainsFunc(rule.Tests, func(a ArgTest) bool { return a.Op >= OpHigh }) {
			continue
		}
		for _, call := range rule.Calls {
			nr, ok := numbers[call]
			if !ok {
				continue
			}
			row := kernelRow{rule: rule}
			row.rule.Calls = []string{call}
			combos := [][6]uintptr{argsOf(call)}
			for _, test := range rule.Tests {
				var next [][6]uintptr
				for _, args := range combos {
					for _, v := range test.hits(job) {
						args[test.Arg] = v
						next = append(next, args)
					}
				}
				combos = next
			}
			for _, args := range combos {
				row.calls = append(row.calls, kernelCall{call, uintptr(nr), args})
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func TestKernelRefusesEveryRow(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, c := range []Choice{
		{Truncate: true, Fork: true},
		{Truncate: true, Fork: true, Unix: true, Metadata: true},
		{Truncate: true, Fork: true, Inet: true, Metadata: true},
		{Truncate: true, Fork: true, Inet: true, Unix: true},
		{Private: true, Truncate: true, Fork: true, Unix: true, Metadata: true},
		{Private: true, Truncate: true, Fork: true, Unix: true, Metadata: true, Inet: true},
		{},
		{Truncate: true, Fork: true, Untraced: true},
	} {
		names := c.programs()
		t.Run(strings.Join(names, "+"), func(t *testing.T) {
			job := jobFor(c)
			var groups []string
			for _, p := range Programs() {
				// Below the ticket an upper half of clone's flags is a guess and fatal;
				// the complete program is tried without it.
				if slices.Contains(names, p.Name) && (c.Fork || len(p.Groups) == 1) {
					groups = append(groups, p.Groups...)
				}
			}
			rows := kernelRows(t, job, groups)
			control := job
			control.Unconfined = true
			for _, row := range rows {
				job.Calls = append(job.Calls, row.calls...)
				for _, call := range row.calls {
					if call.Name == "vfork" {
						// Shares the stack of its caller, which Go cannot allow; the
						// control is that of fork.
						call.Nr, call.Args = unix.SYS_GETPID, [6]uintptr{}
					}
					control.Calls = append(control.Calls, call)
				}
			}
			checkRows(t, rows, errnosOf(t, job), errnosOf(t, control))
		})
	}
}

// checkRows wants each call refused with the errno of its row and each row to be
// refused by the filter only. Where the control comes back with that very errno
// for every call of a row, the kernel itself lacks the call or refuses this user,
// and the row is n/a here: the interpreter has decided it.
func checkRows(t *testing.T, rows []kernelRow, confined, unconfined []syscall.Errno) {
	t.Helper()
	notApplicable := map[string]int{}
	total := 0
	for _, row := range rows {
		total++
		told := false
		for i, call := range row.calls {
			// Where another row of the program refuses the same call, its errno is
			// as good; only socket has such rows.
			if got := confined[i]; got != syscall.Errno(row.rule.Answer) && (call.Name != "socket" ||
				got != unix.EAFNOSUPPORT && got != unix.EPROTONOSUPPORT && got != unix.EPERM) {
				t.Errorf("%s%#x: %d (%v), want errno %d", call.Name, call.Args, got, got, row.rule.Answer)
			}
			told = told || unconfined[i] != confined[i]
		}
		if !told {
			notApplicable[fmt.Sprintf("%s:%s", row.rule.Group, row.rule.Calls[0])]++
		}
		confined, unconfined = confined[len(row.calls):], unconfined[len(row.calls):]
	}
	names := slices.Sorted(maps.Keys(notApplicable))
	t.Logf("%d rows, n/a without the filter too: %v", total, names)
	for _, name := range names {
		group, call, _ := strings.Cut(name, ":")
		// These need a privilege or a kernel option; all others any user can make.
		if !slices.Contains([]string{"A", "B", "C", "D", "H", "I", "G-type", "G-inet-type"}, group) {
			t.Errorf("row %s: the control of %s is refused alike, so the row shows nothing", group, call)
		}
	}
	if len(names) > total/2 {
		t.Errorf("%d of %d rows are n/a", len(names), total)
	}
}

// What the programs must leave alone, beside each row.
func TestKernelLetsOrdinaryCallsPass(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	job := jobFor(Choice{Truncate: true, Fork: true})
	numbers := callsOf(t, runtime.GOARCH)
	rows := []struct {
		call string
		args [6]uintptr
		want syscall.Errno
	}{
		{"kill", [6]uintptr{0, 0}, 0},
		{"kill", [6]uintptr{harmless, 0}, unix.ESRCH},
		{"pidfd_open", [6]uintptr{harmless, 0}, unix.ESRCH},
		{"fcntl", [6]uintptr{0, unix.F_GETFD}, 0},
		{"fcntl", [6]uintptr{0, unix.F_SETOWN, 0}, 0},
		{"ioctl", [6]uintptr{0, unix.TIOCGWINSZ, harmless}, unix.ENOTTY},
		{"personality", [6]uintptr{0xffffffff}, 0},
		{"personality", [6]uintptr{0}, 0},
		{"prlimit64", [6]uintptr{0, unix.RLIMIT_NOFILE, 0, 0}, 0},
		{"prlimit64", [6]uintptr{uintptr(os.Getpid()), unix.RLIMIT_NOFILE, 0, 0}, 0},
		{"setpriority", [6]uintptr{0, 0, 19}, 0},
		{"unshare", [6]uintptr{unix.CLONE_FS}, 0},
		{"clone", [6]uintptr{0}, 0},
		{"socketpair", [6]uintptr{unix.AF_UNIX, unix.SOCK_STREAM, 0, harmless}, unix.EFAULT},
		{"sendto", [6]uintptr{harmless, 0, 0, 0}, unix.EBADF},
		{"mknodat", [6]uintptr{harmless, harmless, unix.S_IFIFO}, unix.EFAULT},
	}
	for _, row := range rows {
		job.Calls = append(job.Calls, kernelCall{row.call, uintptr(numbers[row.call]), row.args})
	}
	for i, got := range errnosOf(t, job) {
		if got != rows[i].want {
			t.Errorf("%s%#x: %v, want %v", rows[i].call, rows[i].args, got, rows[i].want)
		}
	}
}

func TestForeignABIsDie(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	strict := jobFor(Choice{Truncate: true, Fork: true})
	free := strict
	free.Unconfined = true
	if runtime.GOARCH == "amd64" {
		// x32 numbers getpid differently from nothing at all: ENOSYS or a pid.
		for _, nr := range []uintptr{x32Number | 39, x32Number | 520} {
			call := []kernelCall{{Name: "x32", Nr: nr}}
			strict.Calls, free.Calls = call, call
			if _, status := runFilterJob(t, strict); !status.Signaled() || status.Signal() != unix.SIGSYS {
				t.Errorf("x32 call %#x: %#x, want SIGSYS", nr, status)
			}
			errnosOf(t, free)
		}
		strict.Calls, free.Calls = nil, nil
	}
	program := foreignPrograms()[runtime.GOARCH]
	strict.Exec = []string{program.write(t)}
	free.Exec = strict.Exec
	_, status := runFilterJob(t, free)
	if status.ExitStatus() != foreignExit {
		require.Feature(t, program.feature, fmt.Errorf("the call ended with %#x", status))
	}
	if _, status := runFilterJob(t, strict); !status.Signaled() || status.Signal() != unix.SIGSYS {
		t.Errorf("%s: %#x, want SIGSYS", program.feature, status)
	}
}

func TestForkTicket(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, row := range []struct {
		name   string
		fork   bool
		ticket uint64
		probe  string
		want   string
		kill   bool
	}{
		{name: "threads run", probe: "threads", want: "threads"},
		{name: "no ticket", probe: "fork", want: "fork: operation not permitted"},
		{name: "our ticket", probe: "fork", ticket: testTicket << 32, want: "forked: 0 <nil>"},
		{name: "a guess", probe: "fork", ticket: (testTicket + 1) << 32, kill: true},
		{name: "the placeholder", probe: "fork", ticket: PatchTicket << 32, kill: true},
		{name: "fork granted", fork: true, probe: "fork", want: "forked: 0 <nil>"},
		{name: "fork granted, any number", fork: true, probe: "fork", ticket: 7 << 32, want: "forked: 0 <nil>"},
	} {
		t.Run(row.name, func(t *testing.T) {
			job := jobFor(Choice{Truncate: true, Fork: row.fork})
			job.Probe, job.Ticket = row.probe, row.ticket
			out, status := runFilterJob(t, job)
			if row.kill != (status.Signaled() && status.Signal() == unix.SIGSYS) || !strings.Contains(out, row.want) {
				t.Errorf("%q, status %#x", out, status)
			}
		})
	}
}

func TestOrdinaryProgramsRun(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	full := Choice{Truncate: true, Fork: true, Inet: true, Metadata: true}
	closed := Choice{Truncate: true, Fork: true}
	alone := Choice{Truncate: true}
	dir := t.TempDir()
	rows := []struct {
		choice Choice
		argv   []string
		want   string
	}{
		{closed, []string{"sh", "-c", "echo a | cat; (exit 3) || echo b $(echo c)"}, "a\nb c\n"},
		{closed, []string{"sh", "-c", "sleep 9 & kill $!; wait $! || echo ended"}, "ended\n"},
		{alone, []string{"sh", "-c", "echo a"}, "a\n"},
		{full, []string{"sh", "-c", "cd " + dir + " && touch x && chmod 600 x && mv x y && ls"}, "y\n"},
		{full, []string{"go", "env", "GOOS"}, "linux\n"},
		{full, []string{"node", "-e", "console.log(require('child_process').execSync('echo hi')+'', require('net').createServer().listen(0,'127.0.0.1',function(){this.close()}) && 1)"}, "hi\n 1\n"},
		{alone, []string{"node", "-e", "try{require('child_process').execSync('echo hi')}catch(e){console.log(e.code)}"}, "EPERM\n"},
		{full, []string{"python3", "-c", "import subprocess,socket;socket.create_server(('127.0.0.1',0));print(subprocess.run(['echo','hi'],capture_output=True).stdout)"}, "b'hi\\n'\n"},
		{closed, []string{"python3", "-c", "import asyncio\nasync def f():\n p=await asyncio.create_subprocess_exec('true');return await p.wait()\nprint(asyncio.run(f()))"}, "0\n"},
		{closed, []string{"python3", "-c", "import socket\ntry: socket.socket()\nexcept OSError as e: print(e.errno)"}, "97\n"},
	}
	for _, row := range rows {
		path, err := exec.LookPath(row.argv[0])
		if err != nil && row.argv[0] != "sh" {
			t.Logf("%s is not installed here", row.argv[0])
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			t.Fatal(err)
		}
		for _, unconfined := range []bool{false, true} {
			job := jobFor(row.choice)
			job.Unconfined = unconfined
			job.Exec = append([]string{path}, row.argv[1:]...)
			out, status := runFilterJob(t, job)
			if same := out == row.want && status.ExitStatus() == 0; !same && !unconfined {
				t.Errorf("%s %q: %q, status %#x", row.choice.name(), row.argv, out, status)
			}
		}
	}
}

func TestOnlyThisThreadIsConfined(t *testing.T) {
	done := make(chan error)
	var own int
	go func() {
		// Never unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		own = unix.Gettid()
		done <- installJob(jobFor(Choice{Truncate: true, Fork: true}))
		<-done
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	defer close(done)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		status, err := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
		if err != nil {
			continue // a thread of another test has ended
		}
		confined := strings.Contains(string(status), "\nSeccomp:\t2\n")
		if confined != (task.Name() == fmt.Sprint(own)) {
			t.Errorf("task %s, confined %v; installed on %d", task.Name(), confined, own)
		}
	}
}
