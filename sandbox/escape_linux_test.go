package sandbox

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	"github.com/atip-dev/atip-exec/internal/escape"
	"github.com/atip-dev/atip-exec/internal/proxy"
	"github.com/atip-dev/atip-exec/sandbox/seccomp"
)

// The probes of package escape, tried inside, and in a world of their own without a
// sandbox, where each must succeed: a probe that fails there shows nothing. What is
// outside is compared before and after, whatever the probe itself reports.

const (
	escapeEnv  = "ATIP_TEST_ESCAPE" // family
	escapeBase = "ATIP_TEST_ESCAPE_BASE"
	victimEnv  = "ATIP_TEST_ESCAPE_VICTIM"
)

// TestEscapeChild tries the probes of a family and passes when run by itself.
func TestEscapeChild(t *testing.T) {
	family := os.Getenv(escapeEnv)
	if family == "" {
		return
	}
	victim, err := strconv.Atoi(os.Getenv(victimEnv))
	if err != nil {
		t.Fatal(err)
	}
	if err := escape.Try(os.Stdout, family, os.Getenv(escapeBase), victim); err != nil {
		t.Fatal(err)
	}
	os.Exit(0)
}

// stageScenes lays the scenes of the probes out in a new world.
func stageScenes(t *testing.T, probes []escape.Probe) world {
	t.Helper()
	w := newWorld(t)
	e, err := escape.NewWorld(w.base, probes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return w
}

func escapeVictim(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Dir = "/"
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func (w world) escapeEnv(family string, victim int) []string {
	return append(w.env(), escapeEnv+"="+family, escapeBase+"="+w.base, victimEnv+"="+strconv.Itoa(victim))
}

func TestEscapes(t *testing.T) {
	needLandlock(t, scopeABI)
	tryEscapes(t, T2)
}

func TestEscapesFromPrivateRoot(t *testing.T) {
	needLandlock(t, scopeABI)
	needNamespaces(t)
	tryEscapes(t, T3)
}

func tryEscapes(t *testing.T, tier Tier) {
	for _, family := range escape.Families() {
		t.Run(family.Name, func(t *testing.T) {
			outer := stageScenes(t, family.Probes)
			control := exec.Command(self(t), "-test.run=^TestEscapeChild$")
			control.Env = outer.escapeEnv(family.Name, escapeVictim(t))
			raw, err := control.CombinedOutput()
			if err != nil {
				t.Fatalf("control: %v\n%s", err, raw)
			}

			w := stageScenes(t, family.Probes)
			victim := escapeVictim(t)
			before := snapshot(t, w.out)
			if family.Read {
				maps.Copy(before, snapshot(t, w.ws))
			}
			status, err := escape.ProcessSnapshot(victim)
			if err != nil {
				t.Fatal(err)
			}
			p := w.profile(t, func(in *Input) {
				in.Policy.Accept = BuiltinAccept()
				switch family.Net {
				case escape.Loopback:
					in.Net.Mode = NetLoopback
				case escape.Allowlist:
					in.Net = Net{Mode: NetAllowlist, Allow: []string{escape.ListedHost}}
				case escape.Full:
					in.Net.Mode = NetFull
				}
				if family.Limit {
					in.Policy.Limits.OpenFiles = escape.OpenFiles
				}
				if family.Read {
					in.Granted, in.OrgBound = 0, true
				}
			})
			p.Forced = tier
			j := w.child(t, p)
			j.Argv = []string{"sandbox.test", "-test.run=^TestEscapeChild$"}
			j.Env, j.State = w.escapeEnv(family.Name, victim), t.TempDir()
			if family.Net == escape.Allowlist {
				j.Proxy = &proxy.Config{Allow: []string{escape.ListedHost}}
			}
			r := confined(t, j)
			if family.Net == escape.Allowlist && tier == T2 {
				if r.Code != "E4101" {
					t.Errorf("a list of hosts at %v: %s, %s", tier, r.Code, r.Err)
				}
				return // it starts nothing that could be tried
			}
			if r.Err != "" || r.Exit.Code != 0 {
				t.Fatalf("confined: %s, status %d\n%s", r.Err, r.Exit.Code, r.Out)
			}
			if r.Receipt.Tier != tier {
				t.Fatalf("tried at %v", r.Receipt.Tier)
			}
			judge(t, r, family, w.base, answers(t, r.Out), answers(t, string(raw)))
			after := snapshot(t, w.out)
			if family.Read {
				maps.Copy(after, snapshot(t, w.ws))
			}
			if !maps.Equal(before, after) {
				t.Errorf("what is outside has changed: %v", escape.Difference(before, after))
			}
			if after, err := escape.ProcessSnapshot(victim); err != nil || after != status {
				t.Errorf("the process outside was %q and is %q, %v", status, after, err)
			}
		})
	}
}

func answers(t *testing.T, text string) map[string]string {
	t.Helper()
	out, done := escape.Outcomes(text)
	if !done {
		t.Fatalf("the probes did not reach their end:\n%s", text)
	}
	return out
}

// judge holds each answer against what the receipt claims.
func judge(t *testing.T, r result, family escape.Family, base string, inside, outside map[string]string) {
	t.Helper()
	var notApplicable []string
	for _, p := range family.Probes {
		got, free := inside[p.Name()], outside[p.Name()]
		// The file or the call does not exist on this machine.
		if p.Expected(free) && (free == "ENOENT" || free == "ENOSYS" && got == free) {
			notApplicable = append(notApplicable, p.Name()+" ("+free+")")
			continue
		}
		promise := Guarantee(escape.Promise(family.Name, p))
		if !slices.Contains(Guarantees(), promise) {
			t.Errorf("%s is after %q, which nobody promises", p.Name(), promise)
		}
		claimed := slices.Contains(r.Receipt.Given, promise)
		if claimed && !p.Denied(got, r.Receipt.Tier == T3) {
			t.Errorf("%s inside: %q", p.Name(), got)
		}
		if claimed && p.Got(escape.SceneOf(base, p)) {
			t.Errorf("%s had its effect outside", p.Name())
		}
		if free == "ok" {
			continue
		}
		if !p.Expected(free) {
			t.Errorf("%s outside: %q, so the probe shows nothing", p.Name(), free)
		}
		notApplicable = append(notApplicable, p.Name()+" ("+free+")")
	}
	t.Logf("%d probes, n/a here: %v", len(family.Probes), notApplicable)
}

// TestTiersClaim: the judgement above is empty where a tier claims nothing.
func TestTiersClaim(t *testing.T) {
	h := Host{OS: "linux", ABI: 7, Seccomp: true, Namespaces: true, state: "/state"}
	p := newWorld(t).profile(t, func(in *Input) { in.Policy.Accept = BuiltinAccept() })
	for tier, lacks := range map[Tier][]Guarantee{T2: BuiltinAccept(), T3: nil} {
		p.Forced = tier
		s, err := Select(p, h)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range Guarantees() {
			if given := slices.Contains(s.given, g); given == slices.Contains(lacks, g) {
				t.Errorf("%s: %s given is %v", tier, g, given)
			}
		}
	}
}

func TestNewestCallOfTheProbes(t *testing.T) {
	if escape.Newest != seccomp.Newest {
		t.Error(fmt.Sprint(escape.Newest, " is not ", seccomp.Newest))
	}
}

func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	seen, err := escape.Snapshot(dir)
	if err != nil {
		t.Fatal(err)
	}
	return seen
}
