package main_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// managed runs a command where the machine has a managed policy: in a mount namespace
// with a layer over /etc. A user makes it in a user namespace and is root in there, who
// owns the file; what a plain run decides there is the control of each test.
func (w world) managed(policy string, cmd *exec.Cmd) *exec.Cmd {
	w.t.Helper()
	dir := filepath.Join(w.home, "managed")
	for _, sub := range []string{"work", "etc/agent-tools"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "etc/agent-tools/policy.json")
	if policy == "" {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			w.t.Fatal(err)
		}
	} else if err := os.WriteFile(file, []byte(policy), 0o644); err != nil {
		w.t.Fatal(err)
	}
	own := []string{"unshare", "--mount"}
	if os.Getuid() != 0 {
		own = append(own, "--map-root-user")
	}
	own = append(own, "sh", "-c", `mount -t overlay -o "lowerdir=/etc,upperdir=$0/etc,workdir=$0/work" overlay /etc && exec "$@"`, dir)
	cmd.Args = append(append(own, cmd.Path), cmd.Args[1:]...)
	path, err := exec.LookPath("unshare")
	if err != nil {
		w.t.Fatal(err)
	}
	cmd.Path = path
	return cmd
}

// TestManagedDeny: what an administrator denies no rule of a user lifts, unless the denial
// gives a floor and the rule names it; then a person is asked.
func TestManagedDeny(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.ws, "a")
	// In the user namespace of a user the programs of the system belong to nobody.
	rm, err := exec.LookPath("rm")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(rm)
	if err != nil {
		t.Fatal(err)
	}
	pin := fmt.Sprintf(`"trust":{"pins":{"rm":["sha256:%x"]}}`, sha256.Sum256(raw))
	allow := func(lifts string) string {
		return `{"version":1,` + pin + `,"rules":[{"id":"remove","decision":"allow","when":{"tool":"rm"},"grants":["write","delete","destructive","irreversible"]` + lifts + `}]}`
	}
	deny := func(floor string) string {
		return `{"version":1,"rules":[{"id":"no-rm","decision":"deny"` + floor + `,"when":{"tool":"rm"},"reason":"files are kept"}]}`
	}
	for _, row := range []struct {
		name, managed, user string
		status              int
		code                string
	}{
		{"no managed policy", "", allow(""), 0, ""},
		{"a denial", deny(""), allow(""), 77, "E2001"},
		{"a denial that the rule names", deny(""), allow(`,"lifts":["no-rm"]`), 77, "E2001"},
		{"a floor, not named", deny(`,"floor":"confirm"`), allow(""), 77, "E2001"},
		{"a floor, named", deny(`,"floor":"confirm"`), allow(`,"lifts":["no-rm"]`), 77, "E2010"},
		{"a floor of allow, named", deny(`,"floor":"allow"`), allow(`,"lifts":["no-rm"]`), 0, ""},
		{"a ceiling without lifts", strings.Replace(deny(`,"floor":"allow"`), `"version":1`, `"version":1,"ceiling":{"lifts":[]}`, 1), allow(`,"lifts":["no-rm"]`), 77, "E2001"},
		{"a broken managed policy", `{"version":1,"rulez":[]}`, allow(""), 78, "E2040"},
	} {
		w.policy(row.user)
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := w.managed(row.managed, w.command("--", "rm", "a"))
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != row.status || row.code != "" && !strings.Contains(string(out), `"code":"`+row.code+`"`) {
			t.Errorf("%s: status %d, want %d %s: %.1500s", row.name, code, row.status, row.code, out)
		}
		_, err := os.Stat(file)
		if removed := err != nil; removed != (row.status == 0) {
			t.Errorf("%s: removed %v", row.name, removed)
		}
	}
}
