// Package built has the programs as users have them, for tests and measurements that start them.
package built

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Env names a directory that holds the programs already: on a machine without Go, or for many packages of tests.
const Env = "ATIP_TEST_BIN"

const module = "github.com/atip-dev/atip-exec/"

// Programs returns the directory of the programs: the one that Env names, otherwise dir, into which
// it builds those that are named.
func Programs(dir string, names ...string) (string, error) {
	if ready := os.Getenv(Env); ready != "" {
		return ready, nil
	}
	return dir, Build(dir, nil, names...)
}

// Build builds programs into dir with the given flags. HOME counts for them, as it does where an
// administrator lists directories for it (docs/sandbox.md), as each test has a home of its own. As those that are
// shipped they have no tables for debuggers.
func Build(dir string, flags []string, names ...string) error {
	homes := filepath.Join(dir, "homes")
	if err := os.WriteFile(homes, []byte("/\n"), 0o644); err != nil {
		return err
	}
	args := append([]string{"build", "-ldflags=-s -w -X " + module + "internal/place.homesFile=" + homes, "-o", dir + "/"}, flags...)
	for _, name := range names {
		args = append(args, module+"cmd/"+name)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if slices.Contains(flags, "-race") { // the detector needs cgo
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %q: %w\n%s", args, err, out)
	}
	// Programs that run as another user are started from here.
	return os.Chmod(dir, 0o755)
}
