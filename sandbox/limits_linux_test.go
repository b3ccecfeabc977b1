package sandbox

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atip-dev/atip-exec/internal/require"
)

func TestKeep(t *testing.T) {
	user, root := Host{ABI: 7, cgroup: noCgroup}, Host{ABI: 7, Root: true, cgroup: noCgroup}
	grouped := Host{ABI: 7, Root: true, cgroup: "/group"}
	all := Limits{OpenFiles: 64, CPU: 5, FileSize: 1 << 20, Memory: 1 << 30, Processes: 512, Shm: 1 << 20}
	for _, tc := range []struct {
		name    string
		limits  Limits
		tier    Tier
		host    Host
		by      string
		problem bool
	}{
		{"nothing asked at T2", Limits{}, T2, user, "", false},
		{"what T3 counts for free", Limits{}, T3, user, "processes=rlimit-userns shm=tmpfs", false},
		{"root is not counted", Limits{}, T3, root, "shm=tmpfs", false},
		{"all in a group", all, T3, grouped, "cpu=rlimit fileSize=rlimit memory=cgroup openFiles=rlimit processes=cgroup shm=tmpfs", false},
		{"processes at T2", Limits{Processes: 512}, T2, user, "", true},
		{"processes of root", Limits{Processes: 512}, T3, root, "shm=tmpfs", true},
		{"shm at T2", Limits{Shm: 4096}, T2, user, "shm=none there", false},
		{"nothing is kept at T0", all, T0, grouped, "", false},
	} {
		k := keep(tc.limits, tc.tier, tc.host)
		var by []string
		for _, name := range []string{"cpu", "fileSize", "memory", "openFiles", "processes", "shm"} {
			if how := k.by[name]; how != "" {
				by = append(by, name+"="+how)
			}
		}
		if got := strings.Join(by, " "); got != tc.by || (k.problem != nil) != tc.problem {
			t.Errorf("%s: %q, %v", tc.name, got, k.problem)
		}
	}
	k := keep(all, T3, grouped)
	if own := k.ofProcess(); !maps.Equal(k.max, map[string]uint64{cgroupMemory: 1 << 30, cgroupProcesses: 512}) || own.Memory != 0 || own.Processes != 0 || own.CPU != 5 {
		t.Errorf("%+v, %+v", k.max, own)
	}
}

func TestOwnCgroup(t *testing.T) {
	const mount = "30 25 0:26 %s /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
	for _, tc := range []struct{ membership, root, own, top string }{
		{"0::/user.slice/a\n", "/", "/sys/fs/cgroup/user.slice/a", "/sys/fs/cgroup"},
		{"5:pids:/x\n0::/\n", "/", "/sys/fs/cgroup", "/sys/fs/cgroup"},
		{"0::/a/b\n", "/a", "/sys/fs/cgroup/b", "/sys/fs/cgroup"},
		{"0::/other\n", "/a", "", ""},
		{"5:pids:/x\n", "/", "", ""},
	} {
		own, top := ownCgroup(tc.membership, "1 2 0:1 / / rw - ext4 x rw\nshort\n"+strings.Replace(mount, "%s", tc.root, 1))
		if own != tc.own || top != tc.top {
			t.Errorf("%+v: %q %q", tc, own, top)
		}
	}
	if own, _ := ownCgroup("0::/a\n", "1 2 0:1 / / rw - ext4 x rw\n"); own != "" {
		t.Errorf("without a mount: %q", own)
	}
}

// groupToTry is a directory in which the kernel counts processes: a delegated group, or,
// as the files have the same names, one of the first version for root.
func groupToTry(t *testing.T) string {
	t.Helper()
	dir, _ := findCgroup([]string{"pids"})
	if dir == "" && unix.Access("/sys/fs/cgroup/pids/cgroup.procs", unix.W_OK) == nil {
		dir = "/sys/fs/cgroup/pids"
	}
	return dir
}

// TestProcessesAreCounted: forks beyond the limit fail inside and pass without one.
func TestProcessesAreCounted(t *testing.T) {
	needNamespaces(t)
	w := newWorld(t)
	count := func(r result) int {
		n, err := strconv.Atoi(outcomes(t, r.Out)["forks"])
		if err != nil {
			return -1
		}
		return n
	}
	run := func(tier Tier, processes uint64, group string) result {
		p := w.profile(t, func(in *Input) {
			in.Policy.Tier, in.Policy.Limits.Processes = tier, processes
		})
		j := w.child(t, p, "forks:60")
		j.Cgroup = group
		return confined(t, j)
	}
	if r := run(T3, 0, ""); count(r) != 60 || r.Rest != "[]" {
		t.Fatalf("without a limit: %d of 60 run; %+v", count(r), r.brief())
	}
	group := groupToTry(t)
	if os.Getuid() != 0 {
		if r := run(T3, 40, ""); count(r) >= 40 || r.Receipt.Limits["processes"].By != byUserNS {
			t.Errorf("user namespace: %d of 60 run under a limit of 40; %+v", count(r), r.Receipt.Limits)
		}
		if inherited, _ := findCgroup([]string{"pids"}); inherited == "" {
			if r := run(T2, 40, ""); r.Code != "E4006" {
				t.Errorf("T2 without a group: %+v", r.brief())
			}
		}
		return
	}
	if inherited, _ := findCgroup([]string{"pids"}); inherited == "" {
		for _, tier := range []Tier{T2, T3} {
			if r := run(tier, 40, ""); r.Code != "E4006" || !strings.Contains(r.Err, "control group") {
				t.Errorf("%s without a group: %+v", tier, r.brief())
			}
		}
	}
	if group == "" {
		require.Feature(t, "cgroup", errors.New("no group could be made"))
	}
	for _, tier := range []Tier{T2, T3} {
		r := run(tier, 40, group)
		if n := count(r); n < 1 || n >= 40 || r.Receipt.Limits["processes"] != (LimitReceipt{Max: 40, By: byCgroup}) || r.Err != "" || r.Rest != "[]" {
			t.Errorf("%s in a group: %d of 60 run; %+v %+v", tier, n, r.brief(), r.Receipt.Limits)
		}
		if left, _ := filepath.Glob(group + "/atip-*"); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	// A limit that the group does not know stops the run.
	if _, err := makeCgroup(group, map[string]uint64{"no.such.max": 1}); err == nil {
		t.Error("a limit without a file was set")
	}
	if left, _ := filepath.Glob(group + "/atip-*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestSharedMemoryIsBounded: the private /dev/shm holds what the limit says.
func TestSharedMemoryIsBounded(t *testing.T) {
	needNamespaces(t)
	w := newWorld(t)
	p := w.third(t, func(in *Input) { in.Policy.Limits.Shm = 1 << 20 })
	r := confined(t, w.shell(p, "head -c 900000 /dev/zero >/dev/shm/a && echo fits; head -c 900000 /dev/zero >/dev/shm/b && echo more"))
	if !strings.HasPrefix(r.Out, "fits\n") || strings.Contains(r.Out, "more") || r.Receipt.Limits["shm"].Max != 1<<20 {
		t.Errorf("%q %+v %s", r.Out, r.Receipt.Limits, r.Err)
	}
}
