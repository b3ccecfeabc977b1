package seccomp

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// filterJob is what the child of a kernel test does.
type filterJob struct {
	Unix, Inet, Metadata, Truncate, Fork, Private, Untraced bool
	Unconfined                                              bool
	Wrapper, Worker                                         int
	Calls                                                   []kernelCall
	Exec                                                    []string // instead of Calls
	Ticket                                                  uint64   // presented by a fork
	Probe                                                   string   // "threads", "fork"
}

type kernelCall struct {
	Name string
	Nr   uintptr
	Args [6]uintptr
}

func jobFor(c Choice) filterJob {
	return filterJob{Inet: c.Inet, Unix: c.Unix, Metadata: c.Metadata, Truncate: c.Truncate, Fork: c.Fork,
		Private: c.Private, Untraced: c.Untraced, Wrapper: os.Getpid(), Worker: unix.Gettid()}
}

const (
	filterJobEnv = "ATIP_TEST_FILTER_JOB"
	testTicket   = 0x1badcafe
)

// TestFilterChild is the child of the other tests and passes when run by itself.
func TestFilterChild(t *testing.T) {
	text := os.Getenv(filterJobEnv)
	if text == "" {
		return
	}
	var job filterJob
	if err := json.Unmarshal([]byte(text), &job); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	// Some controls would reach the terminal of whoever runs the tests.
	_, _ = unix.Setsid()
	if !job.Unconfined {
		if err := installJob(job); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case len(job.Exec) > 0:
		err := syscall.Exec(job.Exec[0], job.Exec, slices.DeleteFunc(os.Environ(), func(v string) bool {
			return strings.HasPrefix(v, filterJobEnv)
		}))
		t.Fatal(err)
	case job.Probe == "threads":
		probeThreads(t)
	case job.Probe == "fork":
		probeFork(job.Ticket)
	default:
		for _, c := range job.Calls {
			fmt.Println("errno", int(rawCall(c)))
		}
	}
	os.Exit(0)
}

func installJob(job filterJob) error {
	c := Choice{Inet: job.Inet, Unix: job.Unix, Metadata: job.Metadata, Truncate: job.Truncate, Fork: job.Fork, Private: job.Private, Untraced: job.Untraced}
	progs, _, _, err := Load(c, job.Wrapper, job.Worker, testTicket)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return Install(progs)
}

// rawCall makes the call; a child that it forks ends at once.
func rawCall(c kernelCall) syscall.Errno {
	forks := c.Name == "clone" || c.Name == "fork"
	r1, _, errno := syscall.RawSyscall6(c.Nr, c.Args[0], c.Args[1], c.Args[2], c.Args[3], c.Args[4], c.Args[5])
	if forks && errno == 0 && r1 == 0 {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return errno
}

func probeThreads(t *testing.T) {
	done := make(chan int)
	for range 20 {
		go func() {
			runtime.LockOSThread()
			done <- unix.Gettid()
		}()
	}
	tids := map[int]bool{}
	for range 20 {
		tids[<-done] = true
	}
	if len(tids) != 20 {
		t.Fatalf("%d threads", len(tids))
	}
	fmt.Println("threads")
}

func probeFork(ticket uint64) {
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: uintptr(ticket)}})
	if err != nil {
		fmt.Println("fork:", err)
		return
	}
	var status syscall.WaitStatus
	_, err = syscall.Wait4(pid, &status, 0, nil)
	fmt.Println("forked:", status.ExitStatus(), err)
}

// runFilterJob returns the output of the child and how it ended.
func runFilterJob(t *testing.T, job filterJob) (string, syscall.WaitStatus) {
	t.Helper()
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFilterChild$")
	// The race detector otherwise lets each child sleep for a second at its end.
	cmd.Env = append(os.Environ(), filterJobEnv+"="+string(text), "GORACE=atexit_sleep_ms=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if stderr.Len() > 0 {
		t.Logf("child: %s", stderr.String())
	}
	return string(out), status
}

// errnosOf makes the calls in a child and returns what each came back with.
func errnosOf(t *testing.T, job filterJob) []syscall.Errno {
	t.Helper()
	out, status := runFilterJob(t, job)
	var errnos []syscall.Errno
	for line := range strings.Lines(out) {
		var n int
		if _, err := fmt.Sscanf(line, "errno %d", &n); err == nil {
			errnos = append(errnos, syscall.Errno(n))
		}
	}
	if len(errnos) != len(job.Calls) {
		t.Fatalf("child ended with %#x after %d of %d calls: %s", status, len(errnos), len(job.Calls), out)
	}
	return errnos
}
