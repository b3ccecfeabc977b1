package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOwnersLookUnchanged: in a private root files belong to whom they belong outside, and
// root, where a policy keeps the capability for it, unpacks them as they were packed.
func TestOwnersLookUnchanged(t *testing.T) {
	t.Parallel()
	needTier3(t)
	w := newWorldAtHome(t)
	ids := []int{os.Getuid()}
	if os.Getuid() == 0 {
		ids = []int{0, 1, 1000, 65534, 100000, 1<<32 - 2}
	}
	var names []string
	for _, id := range ids {
		name := fmt.Sprintf("of-%d", id)
		put(t, w.ws, map[string]string{name: "x"})
		if id != os.Getuid() {
			if err := os.Chown(filepath.Join(w.ws, name), id, id); err != nil {
				t.Fatal(err)
			}
		}
		names = append(names, name)
	}
	run := func(text string) (int, string, string) {
		return w.python("import subprocess, sys\nsys.exit(subprocess.call(['sh', '-c', '''" + text + "''']))")
	}
	outside := func(dir string) string {
		cmd := exec.Command("stat", append([]string{"-c", "%n %u %g"}, names...)...)
		cmd.Dir = filepath.Join(w.ws, dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	want := outside("")
	stat := "stat -c '%n %u %g' " + strings.Join(names, " ")
	w.policy(`{"version":1,"sandbox":{"tier":"T3"}}`)
	if status, got, stderr := run(stat); status != 0 || got != want {
		t.Errorf("inside: status %d, %q, outside %q; %s", status, got, want, stderr)
	}
	if status, _, stderr := run("tar cf all.tar " + strings.Join(names, " ")); status != 0 {
		t.Fatalf("tar: status %d; %s", status, stderr)
	}
	if os.Getuid() == 0 {
		// Without a capability nobody gives files away, and is told what to do.
		if status, _, stderr := run("mkdir none && tar -C none --same-owner -xf all.tar"); status == 0 || !strings.Contains(stderr, "--no-same-owner") {
			t.Errorf("without capabilities: status %d; %s", status, stderr)
		}
		if status, _, stderr := run("mkdir own && tar -C own -xf all.tar"); status != 0 {
			t.Errorf("without capabilities, owned by the caller: status %d; %s", status, stderr)
		}
		w.policy(accepting("privilege", `,"tier":"T3"`, `,"process":{"caps":["chown","fowner"]}`))
	}
	if status, _, stderr := run("mkdir kept && tar -C kept -xf all.tar"); status != 0 {
		t.Errorf("tar -x: status %d; %s", status, stderr)
	}
	if got := outside("kept"); got != want {
		t.Errorf("unpacked: %q, want %q", got, want)
	}
}
