package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// job is a test binary and what is run of it.
type job struct {
	pkg string
	// only are the tests that are run; nil is every test of the package.
	only []string
	// without says of tests why they are left out.
	without map[string]string
	as      string // the only user who runs it, "" for all
}

// user is who runs the jobs.
type user struct {
	name string
	id   uint32
	home string
}

// who runs each job: root, and a user without any privilege.
var who = []user{{"root", 0, "/root"}, {"user", 1000, "/home/user"}}

// require is what this kernel has; a test that would be skipped for the lack of it fails.
const require = "landlock userns cgroup aarch32"

// onlyEnv is a word of the kernel's command line: a pattern for the names of the tests
// that are run, for a person who looks for something.
const onlyEnv = "ATIP_ONLY"

// runJobs runs the jobs of all users at the same time: the machine has two processors.
func runJobs() error {
	var all sync.WaitGroup
	errs := make([]error, len(who))
	ran := make([]int, len(who))
	for i, u := range who {
		all.Go(func() {
			for _, j := range jobs {
				if j.as != "" && j.as != u.name {
					continue
				}
				n, err := j.run(u)
				ran[i] += n
				if err != nil {
					errs[i] = errors.Join(errs[i], fmt.Errorf("%s as %s: %w", j.pkg, u.name, err))
				}
			}
		})
	}
	all.Wait()
	for _, j := range jobs {
		for _, name := range slices.Sorted(maps.Keys(j.without)) {
			fmt.Printf("arm64: %s left out %s: %s\n", j.pkg, name, j.without[name])
		}
	}
	if slices.Contains(ran, 0) {
		errs = append(errs, errors.New("no test ran"))
	}
	return errors.Join(errs...)
}

// command is a process of the user in the directory of the package and in the user's
// control group.
func (j job) command(u user, args ...string) (*exec.Cmd, func(), error) {
	cmd := exec.Command("/tests/"+j.pkg+"/test", args...)
	cmd.Dir = "/tests/" + j.pkg
	group, err := unix.Open("/sys/fs/cgroup/"+u.name+"/run", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: group}
	if u.id != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: u.id, Gid: u.id}
	}
	cmd.Env = []string{"HOME=" + u.home, "USER=" + u.name, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"ATIP_REQUIRE=" + require, "ATIP_TEST_BIN=/programs"}
	return cmd, func() { unix.Close(group) }, nil
}

// wanted lists the tests that must pass.
func (j job) wanted(u user) ([]string, error) {
	list, done, err := j.command(u, "-test.list", ".")
	if err != nil {
		return nil, err
	}
	defer done()
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing its tests: %w", err)
	}
	have := strings.Fields(string(out))
	wanted := j.only
	if wanted == nil {
		wanted = slices.DeleteFunc(slices.Clone(have), func(name string) bool { return !strings.HasPrefix(name, "Test") || j.without[name] != "" })
	}
	for _, name := range slices.Concat(wanted, slices.Collect(maps.Keys(j.without))) {
		if !slices.Contains(have, name) {
			return nil, fmt.Errorf("it has no %s", name)
		}
	}
	if len(wanted) == 0 {
		return nil, errors.New("it has no tests")
	}
	only, err := regexp.Compile(os.Getenv(onlyEnv))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return !only.MatchString(name) }), nil
}

// run says how many tests passed, and reports an error unless every wanted test has passed; one that was skipped has not.
func (j job) run(u user) (int, error) {
	began := time.Now()
	wanted, err := j.wanted(u)
	if err != nil || len(wanted) == 0 {
		return 0, err
	}
	pattern := "^(" + strings.Join(wanted, "|") + ")$"
	cmd, done, err := j.command(u, "-test.v", "-test.short", "-test.count=1", "-test.timeout=10m", "-test.run="+pattern)
	if err != nil {
		return 0, err
	}
	defer done()
	out, in, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	cmd.Stdout, cmd.Stderr = in, in
	err = cmd.Start()
	in.Close()
	if err != nil {
		return 0, err
	}
	passed := map[string]bool{}
	lines := bufio.NewReader(out)
	for {
		line, more := lines.ReadString('\n')
		if test, ok := strings.CutPrefix(strings.TrimSpace(line), "--- PASS: "); ok {
			passed[strings.Fields(test)[0]] = true
		}
		if line != "" && !strings.HasPrefix(line, "=== ") {
			fmt.Printf("%s %s: %s\n", j.pkg, u.name, strings.TrimSuffix(line, "\n"))
		}
		if more != nil {
			if more != io.EOF {
				err = more
			}
			break
		}
	}
	err = errors.Join(err, cmd.Wait())
	missing := slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return passed[name] })
	fmt.Printf("arm64: %s as %s: %d of %d tests passed in %.0f s\n", j.pkg, u.name, len(wanted)-len(missing), len(wanted), time.Since(began).Seconds())
	if len(missing) > 0 {
		err = errors.Join(err, fmt.Errorf("failed or skipped: %s", strings.Join(missing, " ")))
	}
	return len(wanted) - len(missing), err
}

const oneUser = "hundreds of programs, run by one user only"

// jobs are what an emulated processor can do in a few minutes: what the kernel decides, and
// what differs between processors.
var jobs = []job{
	{pkg: "cmd/atip-exec", only: []string{"TestExplainRefusedCalls", "TestWithoutNamespaces", "TestWithoutLandlock", "TestNothingOutlivesTheRun",
		"TestNestedIsNarrower", "TestListedHosts", "TestEnvironment", "TestOnlyOneThreadIsConfined"}},
	{pkg: "trust", without: map[string]string{
		"TestExecCheckNeverKillsWrappers": "hundreds of starts",
	}},
	{pkg: "internal/tty"},
	{pkg: "sandbox", without: map[string]string{
		"TestEveryStepCanFail":    "a hundred starts of a private root, alike on every machine",
		"TestProtectedNames":      "compares files, without a sandbox",
		"TestProcessesAreCounted": "hundreds of processes; the kernel counts them alike everywhere",
		"TestAllowlistClients":    "many clients in Python; TestListedHosts tries the proxy",
		"TestDirectHosts":         "the same",
		"TestOrdinaryCommands":    "compilers and toolchains; TestEverydayCommands runs the rest",
		"TestEverydayCommands":    oneUser,
		"TestPrivateRootDetails":  oneUser,
	}},
	{pkg: "sandbox", only: []string{"TestEverydayCommands", "TestPrivateRootDetails"}, as: "user"},
	{pkg: "sandbox/seccomp", without: map[string]string{
		"TestEveryRowIsDecidedAsTheTableSays": "the interpreter decides alike on every machine",
		"TestOrdinaryProgramsRun":             oneUser,
	}},
	{pkg: "sandbox/seccomp", only: []string{"TestOrdinaryProgramsRun"}, as: "user"},
}
