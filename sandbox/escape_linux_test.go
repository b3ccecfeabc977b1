package sandbox

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The escape probes: each is one way out of the sandbox that is known from the
// field. All are tried inside, and in a world of their own without a sandbox, where
// each must succeed: a probe that fails there shows nothing. What is outside is
// compared before and after, whatever the probe itself reports.

// escapeProbe is one way out.
type escapeProbe struct {
	name string
	act  func(s scene) error
	want []string // the errnos that count as denied at T2; nil is EACCES
	// private is what the probe may report at T3 beside them and what a path that is
	// not there gives: "ok" for what it then does to something of its own.
	private []string
	// only says why the control may fail: "" never, "root" as a user, "kernel" where
	// the kernel lacks the call or the privilege is missing in the machine itself.
	only string
}

// scene is the part of a world that one probe has for itself.
type scene struct {
	in, out string // directories inside the workspace and outside
	victim  int    // a process outside
	wrapper int
	base    string
}

const (
	mayNeedRoot   = "root"
	mayNeedKernel = "kernel"
)

// escapeFamily is the probes that are after one thing, and the run they are tried in.
type escapeFamily struct {
	probes []escapeProbe
	change func(*Input)
}

func escapeFamilies() map[string]escapeFamily {
	return map[string]escapeFamily{
		"files":        {probes: fileProbes()},
		"processes":    {probes: processProbes()},
		"kernel":       {probes: kernelProbes()},
		"channels":     {probes: channelProbes()},
		"full-network": {probes: fullNetworkProbes(), change: func(in *Input) { in.Net.Mode = NetFull }},
		"metadata":     {probes: metadataProbes(), change: func(in *Input) { in.Granted, in.OrgBound = 0, true }},
	}
}

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
	for _, p := range escapeFamilies()[family].probes {
		s := sceneOf(os.Getenv(escapeBase), p)
		s.victim, s.wrapper = victim, os.Getppid()
		done := make(chan error)
		go func() {
			// Never unlocked: what a probe did to its thread ends with it.
			runtime.LockOSThread()
			done <- p.act(s)
		}()
		fmt.Printf("%s=%s\n", p.name, outcome(<-done))
	}
	os.Exit(0)
}

func sceneOf(base string, p escapeProbe) scene {
	return scene{in: base + "/ws/" + p.name, out: base + "/out/" + p.name, base: base}
}

// stageScenes lays the scenes of the probes out in a new world.
func stageScenes(t *testing.T, probes []escapeProbe) world {
	t.Helper()
	w := newWorld(t)
	for _, p := range probes {
		s := sceneOf(w.base, p)
		for _, d := range []string{s.in, s.out + "/dir"} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range []string{s.in + "/mine", s.out + "/file", s.out + "/secret", s.out + "/dir/file"} {
			if err := os.WriteFile(f, []byte("content\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(s.out+"/tool", []byte("#!/bin/sh\nexit 0\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	listen(t, w)
	return w
}

// listen opens what the channel probes try to reach.
func listen(t *testing.T, w world) {
	t.Helper()
	if err := unix.Mkfifo(w.base+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	for address, network := range map[string]string{"127.0.0.1:0": "tcp", w.base + "/s": "unix", "@" + w.base: "unix"} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if network == "tcp" {
			if err := os.WriteFile(w.ws+"/port", []byte(l.Addr().String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
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
	families := escapeFamilies()
	for _, family := range slices.Sorted(maps.Keys(families)) {
		t.Run(family, func(t *testing.T) {
			probes := families[family].probes
			outer := stageScenes(t, probes)
			control := exec.Command(self(t), "-test.run=^TestEscapeChild$")
			control.Env = outer.escapeEnv(family, escapeVictim(t))
			raw, err := control.CombinedOutput()
			if err != nil {
				t.Fatalf("control: %v\n%s", err, raw)
			}

			w := stageScenes(t, probes)
			victim := escapeVictim(t)
			before := snapshot(t, w.out)
			if families[family].change != nil {
				// These runs may write nowhere.
				maps.Copy(before, snapshot(t, w.ws))
			}
			status := processSnapshot(t, victim)
			p := w.profile(t, families[family].change)
			p.Forced = tier
			j := w.child(t, p)
			j.Argv = []string{"sandbox.test", "-test.run=^TestEscapeChild$"}
			j.Env = w.escapeEnv(family, victim)
			r := confined(t, j)
			if r.Err != "" || r.Exit.Code != 0 {
				t.Fatalf("confined: %s, status %d\n%s", r.Err, r.Exit.Code, r.Out)
			}
			if r.Receipt.Tier != tier {
				t.Fatalf("tried at %v", r.Receipt.Tier)
			}
			judge(t, tier, probes, outcomes(t, r.Out), outcomes(t, string(raw)))
			after := snapshot(t, w.out)
			if families[family].change != nil {
				maps.Copy(after, snapshot(t, w.ws))
			}
			if !maps.Equal(before, after) {
				t.Errorf("what is outside has changed: %v", difference(before, after))
			}
			if after := processSnapshot(t, victim); after != status {
				t.Errorf("the process outside was %q and is %q", status, after)
			}
		})
	}
}

func judge(t *testing.T, tier Tier, probes []escapeProbe, inside, outside map[string]string) {
	t.Helper()
	var notApplicable []string
	for _, p := range probes {
		want := p.want
		if want == nil {
			want = []string{"EACCES"}
		}
		if tier == T3 {
			want = append([]string{"ENOENT", "EROFS", "EACCES", "EXDEV", "ESRCH"}, append(want, p.private...)...)
		}
		got, free := inside[p.name], outside[p.name]
		if free == "ENOENT" && p.only == mayNeedKernel {
			notApplicable = append(notApplicable, p.name+" ("+free+")")
			continue
		}
		if !slices.Contains(want, got) {
			t.Errorf("%s inside: %q, want %v", p.name, got, want)
		}
		if free == "ok" {
			continue
		}
		switch {
		case p.only == mayNeedRoot && os.Getuid() != 0, p.only == mayNeedKernel:
			notApplicable = append(notApplicable, p.name+" ("+free+")")
		default:
			t.Errorf("%s outside: %q, so the probe shows nothing", p.name, free)
		}
	}
	t.Logf("%d probes, n/a here: %v", len(probes), notApplicable)
}

// snapshot is everything below dir that a probe could have changed.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		content := ""
		switch {
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = fmt.Sprintf("%x", sha256.Sum256(data))
		case d.Type()&fs.ModeSymlink != 0:
			if content, err = os.Readlink(path); err != nil {
				return err
			}
		}
		seen[path] = fmt.Sprint(st.Ino, st.Mode, st.Nlink, st.Uid, st.Gid, st.Size, st.Mtim, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func difference(before, after map[string]string) []string {
	var out []string
	for path, v := range before {
		if after[path] != v {
			out = append(out, path)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			out = append(out, path)
		}
	}
	return out
}

// processSnapshot is what another process could have been given.
func processSnapshot(t *testing.T, pid int) string {
	t.Helper()
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, pid)
	if err != nil {
		t.Fatal(err)
	}
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &cpus); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &limit); err != nil {
		t.Fatal(err)
	}
	dir := fmt.Sprintf("/proc/%d/", pid)
	score, err := os.ReadFile(dir + "oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(nice, cpus.Count(), limit, strings.TrimSpace(string(score)), " ", statusField(dir+"status", "TracerPid:"))
}

// errOf makes an errno of a raw call's result.
func errOf(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
