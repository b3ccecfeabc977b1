package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/require"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// ceilings are the texts of TestCeilings and the ceiling of a run of each.
var ceilings = map[string]sandbox.Ceiling{
	"ls":                                        sandbox.ExecNone,
	"ls | wc -l":                                sandbox.ExecClosed,
	"cd src && cat a | sort -u > ../b":          sandbox.ExecClosed,
	"for f in src/*; do wc -c \"$f\"; done":     sandbox.ExecClosed,
	"find src -name a -exec wc -l {} +":         sandbox.ExecClosed,
	"find src -name a | xargs -n1 basename":     sandbox.ExecClosed,
	"timeout 5 env X=1 nice sort src/a":         sandbox.ExecClosed,
	"sh -c 'ls | wc -l'":                        sandbox.ExecClosed,
	"tar czf a.tgz src && tar tzf a.tgz":        sandbox.ExecClosed,
	"git status; git log -1":                    sandbox.ExecClosed,
	"wc -l $(ls src)":                           sandbox.ExecClosed, // words that are not known, of a program that is
	"ls | wc -l; sh ./x.sh":                     sandbox.ExecOpen,
	"./x.sh":                                    sandbox.ExecOpen,
	"ls; make":                                  sandbox.ExecOpen,
	"ls; python3 -c 'print(1)'":                 sandbox.ExecOpen,
	"git merge x; ls":                           sandbox.ExecOpen, // more than two sides are merged by a script
	"git log --help | cat":                      sandbox.ExecOpen, // man shows it
	"git help log | cat":                        sandbox.ExecOpen,
	"git fetch . HEAD; ls":                      sandbox.ExecOpen, // the other side is started through a shell
	"git submodule status; ls":                  sandbox.ExecOpen, // a script of git's
	"zcat src/a; ls":                            sandbox.ExecOpen, // the program is a script
	"GIT_EDITOR=true git commit --amend | tail": sandbox.ExecClosed,
}

func TestCeilings(t *testing.T) {
	m := shellWorld(t)
	for text, want := range ceilings {
		if p := planOf(t, m, text); p.Decision.Action != policy.Allow || p.Profile.Ceiling != want {
			t.Errorf("%q: %s, %s, want %s: %v", text, p.Decision.Action, p.Profile.Ceiling, want, p.Decision.Reasons)
		}
	}
	// What the account has git start is no program of git's.
	home := filepath.Dir(mustGetwd(t))
	for setting, want := range map[string]sandbox.Ceiling{
		"[user]\n\tname = x\n[init]\n\tdefaultBranch = main\n[alias]\n\tst = status\n[core]\n\tpager = less\n[credential]\n\thelper = store\n": sandbox.ExecClosed,
		"[core]\n\tfsmonitor = true\n":                           sandbox.ExecClosed,
		"[core]\n\teditor = vim\n":                               sandbox.ExecOpen,
		"[core]\n\tfsmonitor = /opt/watch\n":                     sandbox.ExecOpen,
		"[alias]\n\tst = !id\n":                                  sandbox.ExecOpen,
		"[filter \"lfs\"]\n\tprocess = git-lfs filter-process\n": sandbox.ExecOpen,
		"[merge \"x\"]\n\tdriver = x %A\n":                       sandbox.ExecOpen,
		"[diff]\n\texternal = x\n":                               sandbox.ExecOpen,
	} {
		if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(setting), 0o600); err != nil {
			t.Fatal(err)
		}
		if p := planOf(t, m, "git log -1 | cat; git commit -m x | cat"); p.Decision.Action == policy.Allow && p.Profile.Ceiling != want {
			t.Errorf("%q: %s, want %s", setting, p.Profile.Ceiling, want)
		}
	}
}

func mustGetwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMisreadStartsNothing is the reader of command lines being wrong: the plan is of one text, and what
// runs under it is another. Nothing starts that the plan does not name, by whatever trick, and what
// it names does. Unconfined each of them ends the file.
func TestMisreadStartsNothing(t *testing.T) {
	m := shellWorld(t)
	if planOf(t, m, "ls | wc -l").Setup.Tier() == sandbox.T0 {
		require.Feature(t, "landlock", errors.New("nothing confines commands here"))
	}
	victim := filepath.Join(mustGetwd(t), "victim")
	own := filepath.Join(mustGetwd(t), "own")
	if out, err := exec.Command("cp", "/bin/rm", own).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, tier := range []string{"T1", "T2", "T3"} {
		m := withTier(t, m, tier)
		for _, trick := range []string{
			"rm victim", "/bin/rm victim", "X=rm; $X victim", `$'\x72m' victim`, "/???/r[m] victim", "exec rm victim", "command rm victim",
			"(exec -a wc rm victim)", "./own victim", "PATH=.:$PATH own victim", "echo victim | xargs rm", "sh -c 'rm victim'", "bash -c 'rm victim'",
			"python3 -c 'import os; os.unlink(\"victim\")'", "perl -e 'unlink \"victim\"'", "env rm victim", "find victim -delete", "git clean -xf victim",
			"unlink victim", "mv victim $TMPDIR/x", "hash -p /bin/rm ls; ls victim", "cp /bin/rm $TMPDIR/ls && $TMPDIR/ls victim", "shopt -s expand_aliases\nalias ls=rm\nls victim",
			"busybox rm victim || rm victim", "trap 'rm victim' EXIT", "coproc rm victim; wait", "cat < <(rm victim)", ". /dev/stdin <<<'rm victim'",
		} {
			if err := os.WriteFile(victim, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			out, code := runAs(t, planOf(t, m, "ls | wc -l"), "ls | wc -l; "+trick)
			if gone(victim) {
				t.Errorf("%s: %s: it ran", tier, trick)
			}
			if !strings.HasPrefix(strings.TrimSpace(out), "5") || code == 0 && !strings.Contains(trick, "trap") && !strings.Contains(trick, "wait") && !strings.Contains(trick, "<(") {
				t.Errorf("%s: %s: exit %d, %q", tier, trick, code, out)
			}
			if tier != "T1" {
				continue
			}
			plain := exec.Command("/bin/bash", "-c", trick)
			plain.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
			if said, err := plain.CombinedOutput(); !gone(victim) {
				t.Errorf("unconfined: %s: %v %s", trick, err, said)
			}
		}
	}
}

func gone(path string) bool { _, err := os.Lstat(path); return err != nil }

func withTier(t *testing.T, m caller.Machine, tier string) caller.Machine {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "atip-exec"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "atip-exec", "policy.json"), fmt.Appendf(nil, `{"version":1,"sandbox":{"tier":%q}}`, tier), 0o600); err != nil {
		t.Fatal(err)
	}
	m.Environ = append(m.Environ[:len(m.Environ):len(m.Environ)], "XDG_CONFIG_HOME="+dir)
	return m
}

// runAs starts a text under the confinement of a plan that was made of another one.
func runAs(t *testing.T, p *Plan, text string) (out string, code int) {
	t.Helper()
	if p.Profile.Ceiling != sandbox.ExecClosed {
		t.Fatalf("%v: ceiling %s", p.Setup.Tier(), p.Profile.Ceiling)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	path, byDescriptor, file := p.Steps[0].Executable.Start()
	proc, err := sandbox.Start(context.Background(), p.Profile, p.Setup, sandbox.Cmd{Path: path, ByDescriptor: byDescriptor, File: file,
		Argv: []string{"bash", "--noprofile", "--norc", "-c", text}, Env: p.Env.Entries, Stdin: null, Stdout: w, Stderr: w})
	w.Close()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	said, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := proc.Wait()
	proc.Sweep()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(said), exit.Code
}
