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
	t.Parallel()
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

// TestUserConfigOfTheAccount: a managed policy can want the user's files in the home directory
// of the account. From elsewhere, where whoever sets HOME or XDG_CONFIG_HOME has put them,
// they only tighten.
func TestUserConfigOfTheAccount(t *testing.T) {
	w := newWorld(t)
	rm, err := exec.LookPath("rm")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(rm)
	if err != nil {
		t.Fatal(err)
	}
	// Without undo, which would let rm run without the rule.
	pin := fmt.Sprintf(`"switches":{"undoable":false},"trust":{"pins":{"rm":["sha256:%x"]}}`, sha256.Sum256(raw))
	account := `{"version":1,` + pin + `,"ceiling":{"userConfig":"account"}}`
	allow := `{"version":1,` + pin + `,"rules":[{"id":"remove","decision":"allow","when":{"tool":"rm"},"grants":["write","delete","destructive","irreversible"]}]}`
	deny := `{"version":1,"rules":[{"id":"no-ls","decision":"deny","when":{"tool":"rm"}}]}`
	elsewhere := filepath.Join(filepath.Dir(w.home), "elsewhere")
	put(t, w.home, map[string]string{"managed/etc/passwd": "root:x:0:0:root:" + w.home + ":/bin/sh\n"})
	if err := os.MkdirAll(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(w.home, "link")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, managed, dir, env, policy string
		status                          int
		says                            string
	}{
		{"at home", account, w.home, "HOME=" + w.home, allow, 0, ""},
		{"another HOME", account, elsewhere, "HOME=" + elsewhere, allow, 77, "allow rule remove is ignored: it does not lie below the home directory of the account"},
		{"another XDG_CONFIG_HOME", account, elsewhere, "XDG_CONFIG_HOME=" + elsewhere + "/.config", allow, 77, "allow rule remove is ignored"},
		{"behind a link at home", account, elsewhere, "XDG_CONFIG_HOME=" + w.home + "/link/.config", allow, 77, "allow rule remove is ignored"},
		{"another HOME that tightens", account, elsewhere, "HOME=" + elsewhere, deny, 77, `"code":"E2001"`},
		{"another HOME, nobody minds", `{"version":1,` + pin + `}`, elsewhere, "HOME=" + elsewhere, allow, 0, ""},
		{"only a managed policy can want it", "", elsewhere, "HOME=" + elsewhere, strings.Replace(allow, `"version":1`, `"version":1,"ceiling":{"userConfig":"account"}`, 1), 0, "ceiling.userConfig is ignored"},
	} {
		put(t, w.ws, map[string]string{"a": "text"})
		for _, home := range []string{w.home, elsewhere} {
			_ = os.Remove(filepath.Join(home, ".config/agent-tools/policy.json"))
		}
		at := w
		at.home = row.dir
		at.policy(row.policy)
		cmd := w.command("--", "rm", "a")
		cmd.Env = append([]string{row.env}, cmd.Env...)
		cmd = w.managed(row.managed, cmd)
		if strings.HasPrefix(row.env, "HOME=") {
			cmd.Env = append([]string{row.env}, cmd.Env[2:]...)
		}
		// A refusal is short, so explain is asked for what else there is to say.
		asked := w.managed(row.managed, w.command("explain", "--", "rm", "a"))
		asked.Env = cmd.Env
		told, _ := asked.CombinedOutput()
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != row.status || !strings.Contains(string(out)+string(told), row.says) {
			t.Errorf("%s: status %d, want %d %s: %.1500s", row.name, code, row.status, row.says, out)
		}
	}
}
