package main_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/atip-dev/atip-exec/internal/built"
)

// bin is the directory of the real programs that every script drives, scratch one that goes with this process.
var bin, scratch string

func TestMain(m *testing.M) {
	// Most of a test's time it waits, for a program or for a limit.
	flag.Parse()
	if waiting := flag.Lookup("test.parallel"); waiting.Value.String() == waiting.DefValue {
		_ = waiting.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0)))
	}
	// A script's background ignores these, and nohup the last one; the programs would inherit that.
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGQUIT, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
	// What a test starts outside is what a run finds: a python3 of a version manager is thirty processes.
	os.Setenv("PATH", "/usr/local/bin:/usr/bin:/bin:"+os.Getenv("PATH"))
	os.Exit(func() int {
		// Runs in a private root copy what lies in /tmp, but no name that begins with a dot.
		dir, err := os.MkdirTemp("", ".atip-exec-bin-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		scratch = dir
		if bin, err = built.Programs(dir, "atip-exec", "atip", "atip-exec/testdata/probe", "atip-verify"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// whole reports whether tests do all that they say, and not a sample of it: repetitions of what
// happens by chance, and pairs of things that do not hang together.
func whole() bool { return os.Getenv("ATIP_TEST_WHOLE") != "" }

// paired reports whether a row is tried at one of two tiers: where row and tier do not hang together
// root tries half of the pairs and a user the other half.
func paired(row, tier int) bool {
	if os.Getuid() != 0 {
		tier++
	}
	return whole() || (row+tier)%2 == 0
}

// tries is how often something is tried.
func tries(some, all int) int {
	if whole() {
		return all
	}
	return some
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": statusCmd,
			"shell":  shellCmd,
			"person": personCmd,
			"words":  wordsCmd,
		},
	})
}

// toolchain is where Go is, if it is anywhere, and the build cache in which the runtime is compiled
// already.
var toolchain = sync.OnceValues(func() (root, cache string) {
	out, err := exec.Command("go", "env", "GOROOT", "GOCACHE").Output()
	if err != nil {
		return "", ""
	}
	root, cache, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	return root, cache
})

// setup gives each script a home, a workspace that is a git work tree, and a PATH
// whose first entry holds stand-ins for tools that this machine may lack.
func setup(env *testscript.Env) error {
	work := env.WorkDir
	home, ws, stubs := filepath.Join(work, "home"), filepath.Join(work, "ws"), filepath.Join(work, "stubs")
	for _, dir := range []string{home, ws, stubs, filepath.Join(home, ".ssh")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(home, ".ssh", "id_ed25519"), []byte("synthetic key\n"), 0o600); err != nil {
		return err
	}
	if err := errors.Join(repository(ws), probed(home, os.Getuid())); err != nil {
		return err
	}
	goroot, goCache := toolchain()
	if goroot == "" && os.Getenv(built.Env) == "" {
		return errors.New("go env says nothing")
	}
	system := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	env.Setenv("HOME", home)
	env.Setenv("PATH", strings.Join([]string{stubs, system, filepath.Join(goroot, "bin"), bin}, ":"))
	env.Setenv("BIN", bin)
	env.Setenv("WS", ws)
	env.Setenv("GOCACHE_OF_TEST", goCache)
	// A name below /tmp that no other run of this test has.
	env.Setenv("PID_OF_TEST", filepath.Base(filepath.Dir(filepath.Dir(work)))+fmt.Sprint(os.Getpid()))
	env.Setenv("NUMBER", fmt.Sprint(os.Getpid())) // that no other suite on this machine has
	env.Setenv("GOFLAGS", "")
	env.Setenv("GOTOOLCHAIN", "local")
	env.Setenv("GIT_CONFIG_GLOBAL", "")
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "CI", "TMPDIR"} {
		env.Setenv(name, "")
	}
	env.Cd = ws
	return nil
}

// statusCmd runs a program and compares its exit status: "status 77 atip-exec …".
func statusCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N program args…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v: %v", args[1:], err)
		}
		code = exit.ExitCode()
	}
	if got := fmt.Sprint(code); got != args[0] {
		ts.Fatalf("%v: exit %s, want %s", args[1:], got, args[0])
	}
}

// shellCmd runs one line in a plain shell: "shell 0 'yes | head -1'".
func shellCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: shell N LINE")
	}
	statusCmd(ts, false, []string{args[0], "bash", "-o", "pipefail", "-c", args[1]})
}

// wordsCmd asks for words that a shell completes, "words command pu -- git", until there are some: a
// completion that is not ready in time offers none.
func wordsCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: words KIND word…")
	}
	for range 60 {
		if err := ts.Exec("atip", append([]string{"__complete"}, args...)...); err != nil {
			ts.Fatalf("%v: %v", args, err)
		}
		if ts.ReadFile("stdout") != "" {
			return
		}
	}
	ts.Fatalf("%v: no words", args)
}

// personCmd runs one line as a person types it: on a terminal of its own, "person 0 'atip
// policy init'".
func personCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: person N LINE")
	}
	statusCmd(ts, false, append([]string{args[0]}, typed(args[1])...))
}

// typed is the command that runs a line of a shell on a terminal of its own.
func typed(line string) []string {
	return []string{"script", "-qec", "stty -onlcr; " + line, "/dev/null"}
}
