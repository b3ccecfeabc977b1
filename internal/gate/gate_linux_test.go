package gate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// gatedEnv makes the test binary a stage: it installs the filter, hands the listener to
// its parent over descriptor 3, and becomes the program of its arguments.
const gatedEnv = "ATIP_TEST_GATED"

func init() {
	if os.Getenv(gatedEnv) == "" {
		return
	}
	os.Unsetenv(gatedEnv)
	runtime.LockOSThread()
	if err := becomeGated(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(99)
}

func becomeGated() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	l, err := Install()
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(3, []byte{1}, unix.UnixRights(int(l)), nil, 0); err != nil {
		return err
	}
	unix.Close(3)
	unix.CloseOnExec(int(l))
	return syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
}

// gated starts words under a gate. Its output is complete when the Gate has ended.
func gated(t *testing.T, c Rules, dir string, words ...string) (*exec.Cmd, *bytes.Buffer, *Gate) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "theirs")
	out := &bytes.Buffer{}
	// Not our own child: whoever waits for one takes its ptrace stops away from the verifier
	// (Config.Reaped).
	cmd := exec.Command("/bin/sh", append([]string{"-c", `"$0" "$@"; exit $?`, os.Args[0]}, words...)...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = dir, append(os.Environ(), gatedEnv+"=1"), []*os.File{theirs}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	defer unix.Close(pair[0])
	buf, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, oobn, _, _, err := unix.Recvmsg(pair[0], buf, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || oobn == 0 {
		cmd.Wait()
		t.Fatalf("no listener: %v: %s", err, out)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		t.Fatal(err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	return cmd, out, Serve(Listener(fds[0]), Config{Rules: c})
}

func finish(t *testing.T, cmd *exec.Cmd, g *Gate) int {
	t.Helper()
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		cmd.Process.Kill()
		t.Fatal("it hangs")
	}
	select {
	case <-g.Ended():
	case <-time.After(time.Minute):
		t.Fatal("the gate does not end")
	}
	return cmd.ProcessState.ExitCode()
}

// goOn lets everything start and has the words compared.
func goOn(Start) Verdict { return Verdict{Go: true, Words: true} }

// compile builds a C program of this test.
func compile(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file, bin := filepath.Join(dir, "p.c"), filepath.Join(dir, "p")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O1", "-pthread", "-o", bin, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

func TestRefusedStartsDoNotHappen(t *testing.T) {
	var mu sync.Mutex
	var reports []string
	c := Rules{
		Decide: func(s Start) Verdict {
			return Verdict{Go: s.Argv[len(s.Argv)-1] != "no" || s.Argv[0] == "/usr/bin/nohup", Words: true}
		},
		Refused: func(r Report) {
			mu.Lock()
			defer mu.Unlock()
			reports = append(reports, strings.Join(r.Start.Argv, " "))
		},
	}
	script := `/bin/echo yes; /bin/echo no; echo status $?; (exec /usr/bin/env printf '%s\n' no) ; /usr/bin/nohup /bin/echo no; exec /bin/echo end`
	cmd, out, g := gated(t, c, "", "/bin/sh", "-c", script)
	code := finish(t, cmd, g)
	text := out.String()
	if code != 0 || !strings.Contains(text, "yes\n") || !strings.Contains(text, "status 126") || !strings.Contains(text, "end\n") || strings.Contains(text, "\nno\n") {
		t.Errorf("exit %d: %s", code, text)
	}
	if len(reports) != 3 {
		t.Errorf("reports: %q", reports)
	}
	control, err := exec.Command("/bin/sh", "-c", script).CombinedOutput()
	if err != nil || strings.Count(string(control), "no\n") != 3 {
		t.Errorf("without a gate: %v: %s", err, control)
	}
}

// TestWhatIsRead: a start is read as the kernel carries it out, whatever way it takes.
func TestWhatIsRead(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"script": "#!/bin/sh\necho \"script $0 $@\"\n", "nested": "#!" + filepath.Join(dir, "script") + " option\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("script", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen []Start
	decide := func(s Start) Verdict {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, s)
		return goOn(s)
	}
	run := func(words ...string) (int, string, []Start) {
		seen = nil
		cmd, out, g := gated(t, Rules{Decide: decide}, dir, words...)
		code := finish(t, cmd, g)
		return code, out.String(), seen
	}
	py := func(code string) []string { return []string{"/usr/bin/python3", "-c", code} }
	// lengths are words around what is read of each at first, and around a page; edge is a page with nothing
	// behind it that ends with a word.
	lengths := []string{"true"}
	for n := range 4200 {
		if n < 300 || n > 4000 {
			lengths = append(lengths, strings.Repeat("w", n))
		}
	}
	const edge = "import ctypes, os\nc = ctypes.CDLL(None, use_errno=True)\nc.mmap.restype = ctypes.c_void_p\nat = c.mmap(None, 8192, 3, 0x22, -1, 0)\nc.munmap(ctypes.c_void_p(at + 4096), 4096)\n" +
		"ctypes.memmove(at + 4091, b'edge', 5)\nargv = (ctypes.c_void_p * 4)(at + 4091, at + 4093, at + 4095 + %d, None)\nc.execv(b'/bin/echo', argv)\nprint(ctypes.get_errno())"
	tests := []struct {
		name  string
		words []string
		path  string
		argv  []string
		out   string
	}{
		{"absolute", []string{"/bin/sh", "-c", "/bin/echo a 'b c'; :"}, "/bin/echo", []string{"/bin/echo", "a", "b c"}, "a b c\n"},
		{"relative", []string{"/bin/sh", "-c", "./script x; :"}, dir + "/./script", []string{"./script", "x"}, "script ./script x\n"},
		{"by link", []string{"/bin/sh", "-c", "./link x; :"}, dir + "/./link", []string{"./link", "x"}, "script ./link x\n"},
		{"nested script", []string{"/bin/sh", "-c", "./nested x; :"}, dir + "/./nested", []string{"./nested", "x"}, "script " + dir + "/script option ./nested x\n"},
		{"by descriptor", py("import os; fd=os.open('/bin/echo', os.O_PATH); os.execve(fd, ['other', 'x'], {})"), "/usr/bin/echo", []string{"other", "x"}, "x\n"},
		{"itself", py("import os; os.execv('/proc/self/exe', ['python3', '-c', 'print(1)'])"), "", []string{"python3", "-c", "print(1)"}, "1\n"},
		{"no UTF-8", py(`import os; os.execv('/bin/echo', [b'echo', b'\xff\xfe'])`), "/bin/echo", []string{"echo", "\xff\xfe"}, "\xff\xfe\n"},
		{"many words", py("import os; os.execv('/bin/true', ['true'] + ['w'] * 100000)"), "/bin/true", append([]string{"true"}, slices.Repeat([]string{"w"}, 100000)...), ""},
		{"words of all lengths", py("import os; os.execv('/bin/true', ['true'] + ['w' * n for n in range(4200) if n < 300 or n > 4000])"), "/bin/true", lengths, ""},
		{"the end of a page", py(fmt.Sprintf(edge, 0)), "/bin/echo", []string{"edge", "ge", ""}, "ge \n"},
		{"another thread", py("import os, threading\nt=threading.Thread(target=lambda: os.execv('/bin/echo', ['echo', 'thread']))\nt.start(); t.join()"), "/bin/echo", []string{"echo", "thread"}, "thread\n"},
	}
	for _, tt := range tests {
		code, out, got := run(tt.words...)
		if code != 0 || out != tt.out {
			t.Errorf("%s: exit %d, %.200q", tt.name, code, out)
		}
		if len(got) != 1 || !slices.Equal(got[0].Argv, tt.argv) || (tt.path != "" && got[0].Path != tt.path) {
			t.Errorf("%s: read %.300v", tt.name, got)
		} else if got[0].Cwd != dir {
			t.Errorf("%s: cwd %q", tt.name, got[0].Cwd)
		}
	}
	// What the kernel would refuse is refused with its errno, and nobody is asked.
	refused := map[string][]string{
		"a word of 200 KiB":   py("import os, sys\ntry: os.execv('/bin/echo', ['echo', 'x' * 200000])\nexcept OSError as e: print(e.errno)"),
		"words of 3 MiB":      py("import os, sys\ntry: os.execv('/bin/echo', ['echo'] + ['x' * 100000] * 30)\nexcept OSError as e: print(e.errno)"),
		"a word nowhere":      py(fmt.Sprintf(edge, 1)),
		"a missing file":      py("import os, sys\ntry: os.execv('/nowhere/at/all', ['x'])\nexcept OSError as e: print(e.errno)"),
		"a directory":         py("import os, sys\ntry: os.execv('/usr', ['x'])\nexcept OSError as e: print(e.errno)"),
		"a closed descriptor": py("import os, sys\ntry: os.execve(77, ['x'], {})\nexcept OSError as e: print(e.errno)"),
	}
	for name, words := range refused {
		_, out, got := run(words...)
		want, err := exec.Command(words[0], words[1:]...).Output()
		if len(got) != 0 || err != nil || (out != string(want) && name != "a closed descriptor") {
			t.Errorf("%s: asked about %d, %q, without a gate %q", name, len(got), out, want)
		}
	}
	// A memory file has no name; a directory that was removed cannot hold one.
	if code, out, got := run(py("import os, shutil\nfd=os.memfd_create('m'); os.write(fd, open('/bin/echo','rb').read()); os.execve(fd, ['m', 'memory'], {})")...); code != 0 || out != "memory\n" || len(got) != 1 {
		t.Errorf("memfd: %d %q %v", code, out, got)
	}
	if code, out, got := run("/bin/sh", "-c", "mkdir gone; cd gone; rmdir ../gone; /bin/echo here"); code != 0 || out != "here\n" || len(got) != 3 || got[2].Cwd != "" {
		t.Errorf("no directory: %d %q %v", code, out, got)
	}
}

// flipper changes the last letter of a word for ever, in another thread or in the parent of
// a vfork, while its process executes.
const flipper = `
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char word[] = "goodX";
static volatile int stop;
static void *flip(void *p) { while (!stop) { memcpy(word, "evilX", 5); __asm__ volatile("" ::: "memory"); memcpy(word, "goodX", 5); __asm__ volatile("" ::: "memory"); } return 0; }
static char *target; 
static void *threaded(void *p) { char *argv[] = {target, word, 0}; execv(target, argv); _exit(0); }
static int child(void *p) { char *argv[] = {target, word, 0}; execv(target, argv); execv("/nowhere/at/all", argv); _exit(0); }
int main(int argc, char **argv) {
  int rounds = atoi(argv[1]); target = argv[2]; int way = atoi(argv[3]);
  pthread_t t;
  for (int i = 0; i < rounds; i++) {
    if (way == 0) { /* vfork: the parent's threads share the memory */
      if (i == 0) pthread_create(&t, 0, flip, 0);
      static char stack[65536];
      pid_t pid = clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, 0);
      if (pid > 0) waitpid(pid, 0, 0);
    } else { /* a process of its own whose other thread executes */
      pid_t pid = fork();
      if (pid == 0) {
        pthread_create(&t, 0, flip, 0);
        if (way == 1) { pthread_t e; pthread_create(&e, 0, threaded, 0); pthread_join(e, 0); }
        threaded(0);
      }
      waitpid(pid, 0, 0);
    }
  }
  return 0;
}`

// TestWordsThatFlip: a program that changes its words while it waits does not run other
// words than were decided.
func TestWordsThatFlip(t *testing.T) {
	flip := compile(t, flipper)
	target := compile(t, "#include <string.h>\n#include <unistd.h>\nint main(int c, char **v) { return c > 1 && !strncmp(v[1], \"evil\", 4) ? write(1, \"E\", 1) : write(1, \"g\", 1), 0; }")
	rounds := 300
	switch {
	case everything():
		rounds = 1000
	case testing.Short(): // under the race detector it is not chance that is tried
		rounds = 100
	}
	for way, name := range []string{"vfork", "another thread", "main thread"} {
		run := func(words bool) string {
			decide := func(s Start) Verdict {
				return Verdict{Go: len(s.Argv) == 2 && s.Argv[1] == "goodX", Words: words}
			}
			cmd, out, g := gated(t, Rules{Decide: decide}, "", flip, fmt.Sprint(rounds), target, fmt.Sprint(way))
			finish(t, cmd, g)
			return out.String()
		}
		if got := run(true); strings.Contains(got, "E") || !strings.Contains(got, "g") {
			t.Errorf("%s: compared: %d forbidden starts of %d, %d others", name, strings.Count(got, "E"), rounds, strings.Count(got, "g"))
		}
		evil := 0
		for range 10 {
			if evil = strings.Count(run(false), "E"); evil > 0 {
				break
			}
		}
		if evil == 0 {
			t.Errorf("%s: without a comparison nothing slips through either, so this shows nothing", name)
		}
	}
}

// many is a program that starts argv[2] argv[1] times at once; argv[3] as its word.
const many = `
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
  int n = atoi(argv[1]), failed = 0, status, go[2];
  if (pipe(go)) return 1;
  for (int i = 0; i < n; i++) {
    pid_t pid = fork();
    if (pid == 0) { char c; close(go[1]); read(go[0], &c, 1); execl(argv[2], argv[2], argv[3], (char *)0); _exit(99); }
    if (pid < 0) { n = i; break; }
  }
  close(go[1]); close(go[0]);
  while (wait(&status) > 0) failed += status != 0;
  printf("%d of %d failed\n", failed, n);
  return 0;
}`

// everything reports whether whole counts are run, which take minutes, instead of a sample.
func everything() bool { return os.Getenv("ATIP_TEST_WHOLE") != "" }

// TestManyAtOnce: starts that all wait at the same moment are all answered, with one processor too, and
// while this process gets signals all the time.
func TestManyAtOnce(t *testing.T) {
	bin := compile(t, many)
	counts := map[int][]int{1: {1000}, 2: {300}}
	if everything() {
		counts[2] = append(counts[2], 1000, 10_000)
	}
	for procs, list := range counts {
		for _, n := range list {
			old := runtime.GOMAXPROCS(procs)
			storm := make(chan struct{})
			go func() {
				for {
					select {
					case <-storm:
						return
					case <-time.After(50 * time.Microsecond):
						_ = unix.Kill(os.Getpid(), unix.SIGURG)
					}
				}
			}()
			cmd, out, g := gated(t, Rules{Decide: goOn}, "", bin, fmt.Sprint(n), "/bin/true", "x")
			code := finish(t, cmd, g)
			close(storm)
			runtime.GOMAXPROCS(old)
			if want := fmt.Sprintf("0 of %d failed\n", n); code != 0 || out.String() != want || g.Starts() != n+1 {
				t.Errorf("%d processors: exit %d, %q, want %q, %d starts", procs, code, out, want, g.Starts())
			}
		}
	}
}

// TestVanishing: processes that exit, are killed or are stopped while they wait for their answer keep
// nothing else from its own.
func TestVanishing(t *testing.T) {
	decide := func(s Start) Verdict {
		if len(s.Argv) > 1 && s.Argv[1] == "slow" {
			time.Sleep(20 * time.Millisecond)
		}
		return Verdict{Go: true, Words: true}
	}
	script := `i=0; while [ $i -lt 60 ]; do /bin/echo slow & p=$!; kill -KILL $p; i=$((i+1)); done
i=0; while [ $i -lt 20 ]; do /bin/echo slow & p=$!; kill -STOP $p; kill -CONT $p; i=$((i+1)); done; wait; /bin/echo end`
	cmd, out, g := gated(t, Rules{Decide: decide}, "", "/bin/sh", "-c", script)
	if code := finish(t, cmd, g); code != 0 || !strings.HasSuffix(out.String(), "end\n") {
		t.Errorf("exit %d: %s", code, out)
	}
	if n := strings.Count(out.String(), "slow\n"); n < 20 {
		t.Errorf("%d of 20 that were only stopped ran: %s", n, out)
	}
}

// storms executes what is not there and what is, while another thread sends it signals without SA_RESTART.
const storms = `
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static void nothing(int s) {}
static pthread_t first;
static volatile int stop;
static void *storm(void *p) { while (!stop) { pthread_kill(first, SIGUSR1); usleep(20); } return 0; }
int main(int argc, char **argv_) {
  int restart = argc > 1;
  struct sigaction a = {.sa_handler = nothing, .sa_flags = restart ? SA_RESTART : 0};
  sigaction(SIGUSR1, &a, 0);
  first = pthread_self();
  pthread_t t;
  pthread_create(&t, 0, storm, 0);
  char *argv[] = {"true", 0}, *env[] = {0};
  int wrong = 0, failed = 0;
  for (int i = 0; i < 300; i++)
    if (execve("/nowhere/at/all", argv, env) != -1 || errno != ENOENT && (restart || errno != EINTR)) wrong++;
  for (int i = 0; i < 50; i++) {
    pid_t pid = vfork();
    if (pid == 0) { execve("/nowhere/at/all", argv, env); execve("/bin/true", argv, env); _exit(9); }
    int status;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    failed += status != 0;
  }
  stop = 1;
  printf("%d wrong, %d failed\n", wrong, failed);
  return 0;
}`

// TestStorms: starts of what is missing, under signals that interrupt calls, get the errno of the kernel.
// A handler without SA_RESTART that runs before the question is received makes the kernel give EINTR,
// whoever listens.
func TestStorms(t *testing.T) {
	bin := compile(t, storms)
	for _, words := range [][]string{{bin}, {bin, "restart"}} {
		cmd, out, g := gated(t, Rules{Decide: goOn}, "", words...)
		if code := finish(t, cmd, g); code != 0 || out.String() != "0 wrong, 0 failed\n" {
			t.Errorf("%q: exit %d: %s", words[1:], code, out)
		}
	}
}

// TestChains: a chain of "#!" lines is followed as far as the kernel does.
func TestChains(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	before := "/bin/echo"
	for i := range 7 {
		file := filepath.Join(dir, fmt.Sprint("s", i))
		if err := os.WriteFile(file, []byte("#!"+before+" o\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		before = file
	}
	for i := range 7 {
		file := filepath.Join(dir, fmt.Sprint("s", i))
		words := []string{"/usr/bin/python3", "-c", "import os, sys\ntry: os.execv(sys.argv[1], ['x', 'word'])\nexcept OSError as e: print(e.errno)", file}
		cmd, out, g := gated(t, Rules{Decide: goOn}, dir, words...)
		code := finish(t, cmd, g)
		want, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		if err != nil || code != 0 || out.String() != string(want) {
			t.Errorf("depth %d: exit %d %q, without a gate %q %v", i+1, code, out, want, err)
		}
	}
}

// TestDebuggers: strace and gdb work on programs that were compared when they started, and trace what
// starts below them.
func TestDebuggers(t *testing.T) {
	rows := map[string][]string{
		"/usr/bin/strace": {"-f", "-e", "trace=write", "/bin/sh", "-c", "/bin/echo traced; :"},
		"/usr/bin/gdb":    {"-nx", "-batch", "-ex", "set startup-with-shell off", "-ex", "run", "-ex", "quit", "--args", "/bin/echo", "traced"},
	}
	for tool, args := range rows {
		if _, err := os.Stat(tool); err != nil {
			t.Log(err)
			continue
		}
		want := "traced\n"
		// One that is traced already cannot be compared, and is refused.
		free := func(s Start) Verdict { return Verdict{Go: true, Words: s.Path == tool} }
		cmd, out, g := gated(t, Rules{Decide: free}, "", append([]string{tool}, args...)...)
		if code := finish(t, cmd, g); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit %d: %s", tool, code, out)
		}
		cmd, out, g = gated(t, Rules{Decide: goOn}, "", "/bin/sh", "-c", "exec "+tool+" --version")
		if code := finish(t, cmd, g); code != 0 {
			t.Errorf("%s, compared: exit %d: %s", tool, code, out)
		}
	}
}

// diesEnv makes the test binary a wrapper that dies while a start waits for it.
const diesEnv = "ATIP_TEST_GATE_DIES"

// TestGateThatEnds: when the process that answers is gone, no program starts any more.
func TestGateThatEnds(t *testing.T) {
	if os.Getenv(diesEnv) != "" {
		decide := func(Start) Verdict { _ = unix.Kill(os.Getpid(), unix.SIGKILL); select {} }
		cmd, _, g := gated(t, Rules{Decide: decide}, "", "/bin/sh", "-c", os.Getenv(diesEnv))
		finish(t, cmd, g)
		return
	}
	file := filepath.Join(t.TempDir(), "out")
	cmd := exec.Command(os.Args[0], "-test.run", "^TestGateThatEnds$")
	cmd.Env = append(os.Environ(), diesEnv+"=exec >"+file+" 2>&1; /bin/echo ran; echo $?; /bin/echo ran; echo end")
	if err := cmd.Run(); err == nil {
		t.Error("the wrapper did not die")
	}
	for range 200 {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "end\n") {
			if strings.Contains(string(text), "ran\n") {
				t.Errorf("a program started: %s", text)
			}
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the run hangs without its wrapper")
}

// TestKilledAnyTime: the process that answers is killed at a moment that it does not choose. What was not
// let go on until then never starts.
func TestKilledAnyTime(t *testing.T) {
	if os.Getenv(diesEnv) != "" {
		var n atomic.Int64
		decide := func(s Start) Verdict {
			// The word of a start is its number: what starts is written down before it may.
			fmt.Fprintln(os.Stdout, n.Add(1))
			return Verdict{Go: true, Words: true}
		}
		cmd, _, g := gated(t, Rules{Decide: decide}, "", "/bin/sh", "-c", os.Getenv(diesEnv))
		finish(t, cmd, g)
		return
	}
	kills := 8
	if everything() {
		kills = 200
	}
	for k := range kills {
		dir := t.TempDir()
		file := filepath.Join(dir, "out")
		cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledAnyTime$")
		cmd.Env = append(os.Environ(), diesEnv+"=exec >"+file+" 2>/dev/null; i=0; while [ $i -lt 400 ]; do /bin/echo ran; i=$((i+1)); done; echo end")
		var said bytes.Buffer
		cmd.Stdout = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for started := time.Now(); time.Since(started) < 10*time.Second; time.Sleep(time.Millisecond) {
			if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
				break
			}
		}
		time.Sleep(time.Duration(k*7%50) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		ended := false
		for range 500 {
			text, err := os.ReadFile(file)
			if ended = err == nil && strings.Contains(string(text), "end\n"); ended {
				if ran, let := strings.Count(string(text), "ran\n"), strings.Count(said.String(), "\n"); ran > let {
					t.Errorf("kill %d: %d programs started, %d were let", k, ran, let)
				}
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		if !ended {
			t.Errorf("kill %d: the run hangs without its wrapper", k)
		}
	}
}

// TestFailingDecisions: a panic and a decision without end refuse the start.
func TestFailingDecisions(t *testing.T) {
	var mu sync.Mutex
	var why []string
	cmd, out, g := gated(t, Rules{Decide: func(Start) Verdict { panic("x") }, Refused: func(r Report) { mu.Lock(); defer mu.Unlock(); why = append(why, fmt.Sprint(r.Why)) }}, "", "/bin/sh", "-c", "/bin/echo ran; echo $?")
	if finish(t, cmd, g); !strings.HasSuffix(out.String(), "126\n") || len(why) != 1 {
		t.Errorf("%q, %q", out, why)
	}
}

// TestDecisionsWithoutEnd: more decisions than there may be at once never end. Each of their starts is
// refused, those that come after them are decided, and the gate ends without them.
func TestDecisionsWithoutEnd(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	var refused atomic.Int64
	decide := func(s Start) Verdict {
		if s.Argv[len(s.Argv)-1] == "hangs" {
			<-release
		}
		return Verdict{Go: true, Words: true}
	}
	cmd, out, g := gated(t, Rules{Decide: decide, Refused: func(r Report) {
		if errors.Is(r.Why, errSlow) {
			refused.Add(1)
		}
	}}, "", "/bin/sh", "-c", "for i in 1 2 3 4 5 6; do /bin/echo hangs 2>/dev/null & done; wait; /bin/echo fine")
	if finish(t, cmd, g); out.String() != "fine\n" || refused.Load() != 6 {
		t.Errorf("%q, %d refused", out, refused.Load())
	}
}

func TestZones(t *testing.T) {
	var mu sync.Mutex
	zones := map[string]Zone{}
	decide := func(s Start) Verdict {
		mu.Lock()
		defer mu.Unlock()
		if len(s.Argv) > 1 && strings.HasPrefix(s.Argv[1], "at-") {
			zones[s.Argv[1]] = s.Zone
		}
		return Verdict{Go: true, Words: true, Code: strings.HasSuffix(s.Path, "python3")}
	}
	script := `/bin/echo at-first; /usr/bin/python3 -c "import os; os.system('/bin/echo at-below; setsid sh -c \"sleep 0.2; /bin/echo at-orphan\" &')"; /bin/echo at-after; sleep 0.5`
	cmd, out, g := gated(t, Rules{Decide: decide}, "", "/bin/sh", "-c", script)
	finish(t, cmd, g)
	want := map[string]Zone{"at-first": Typed, "at-below": Code, "at-orphan": Code, "at-after": Typed}
	for k, z := range want {
		if got, ok := zones[k]; !ok || got != z {
			t.Errorf("%s: %v, want %v (%s)", k, got, z, out)
		}
	}
}

func TestSupported(t *testing.T) {
	if !Supported() {
		t.Error("this kernel is said to lack what the other tests use")
	}
}

func BenchmarkStart(b *testing.B) {
	for _, words := range []bool{false, true} {
		b.Run(fmt.Sprintf("compared=%v", words), func(b *testing.B) {
			t := &testing.T{}
			cmd, _, g := gated(t, Rules{Decide: func(Start) Verdict { return Verdict{Go: true, Words: words} }}, "", "/bin/sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do /bin/true; i=$((i+1)); done", b.N))
			_ = cmd.Wait()
			<-g.Ended()
		})
	}
	b.Run("plain", func(b *testing.B) {
		_ = exec.Command("/bin/sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do /bin/true; i=$((i+1)); done", b.N)).Run()
	})
}
