package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"golang.org/x/sys/unix"
)

func TestProfileZeroNeverRuns(t *testing.T) {
	host := Host{OS: "linux", ABI: 7, Seccomp: true}
	if _, err := Start(context.Background(), Profile{}, Setup{}, Cmd{Path: "/bin/true", Argv: []string{"true"}}); err == nil {
		t.Error("zero setup started something")
	}
	if s, err := Select(Profile{}, host); err == nil {
		t.Errorf("zero profile selected %v although policy accepts no gap", s.Tier())
	}
	s, err := Select(Profile{Confine: ConfineNone}, host)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(context.Background(), Profile{}, s, Cmd{Path: "/bin/true", Argv: []string{"true"}}); err == nil {
		t.Error("a setup of another profile started something")
	}
}

func TestChildGetsExactlyWhatItIsGiven(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	j := w.child(t, w.profile(t, nil), "argv", "environment", "fds", "where", "exe")
	j.Argv = append(j.Argv, "", "a b", "\xff\xfe", "*")
	j.Env = []string{"A=1", "A=2", "EMPTY=", "=odd", "X=\xff", "GORACE=atexit_sleep_ms=0"}
	j.Dir, j.Umask = w.ws, 0o077
	j.Pass = map[int]string{63: w.ws + "/mine"}
	for _, byDescriptor := range []bool{false, true} {
		j.ByDescriptor = byDescriptor
		r := confined(t, j)
		got := outcomes(t, r.Out)
		want := fmt.Sprintf("%q", j.Argv)
		if got["argv"] != want {
			t.Errorf("argv %s, want %s; %s", got["argv"], want, r.Err)
		}
		if got["environment"] != fmt.Sprintf("%q", j.Env) && got["environment"] != `["A=1" "EMPTY=" "=odd" "X=\xff" "GORACE=atexit_sleep_ms=0"]` {
			t.Errorf("environment %s", got["environment"])
		}
		if got["fds"] != "0,1,2,63" && got["fds"] != "0,1,2,63," {
			t.Errorf("descriptors %s", got["fds"])
		}
		if got["where"] != w.ws+" 0077" {
			t.Errorf("directory and umask %s", got["where"])
		}
		if got["exe"] != self(t) {
			t.Errorf("exe %s", got["exe"])
		}
	}
}

func TestNothingRanErrors(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	file := func(name, text string, mode os.FileMode) string {
		path := w.ws + "/" + name
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	busy := file("busy", "", 0o700)
	self, err := os.ReadFile("/usr/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(busy, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(self); err != nil {
		t.Fatal(err)
	}
	outside := w.out + "/program"
	if err := os.WriteFile(outside, self, 0o700); err != nil {
		t.Fatal(err)
	}
	p := w.profile(t, nil)
	for _, tc := range []struct{ name, path, code, layer string }{
		{"interpreter", file("script", "#!/nonexistent/sh\n", 0o700), "E3002", "interpreter"},
		{"mode", file("plain", "#!/bin/sh\n", 0o600), "E3002", "mode"},
		{"directory", w.ws, "E3002", "mode"},
		{"no format", file("text", "hello\n", 0o700), "E3002", ""},
		{"missing", w.ws + "/missing", "E3002", ""},
		{"busy", busy, "E3301", ""},
		{"not granted", outside, "E3002", "landlock"},
	} {
		r := confined(t, job{Profile: p, Path: tc.path, Argv: []string{"x"}, Env: w.env()})
		layer, _ := r.Details["layer"].(string)
		if r.Code != tc.code || layer != tc.layer || r.Rest != "[]" {
			t.Errorf("%s: code %s layer %q rest %s: %s", tc.name, r.Code, layer, r.Rest, r.Err)
		}
	}
	j := w.child(t, p, "wswrite:"+w.base)
	j.Dir = w.base + "/nowhere"
	if r := confined(t, j); r.Code != "E4102" || !strings.Contains(r.Err, "nowhere") {
		t.Errorf("missing directory: %+v", r.brief())
	}
	j.Dir, j.CheckFails = "", true
	if r := confined(t, j); r.Err != "the file was replaced" || r.Rest != "[]" {
		t.Errorf("failed check: %+v", r.brief())
	}
}

func TestPathChangedUnderThePlan(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	profiles := []Profile{w.profile(t, nil)}
	if try("").Namespaces {
		profiles = append(profiles, w.third(t, nil))
	}
	if err := os.Rename(w.ws, w.base+"/moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.home, w.ws); err != nil {
		t.Fatal(err)
	}
	for _, p := range profiles {
		r := confined(t, w.child(t, p, "secret:"+w.base))
		if r.Code != "E4010" {
			t.Errorf("replaced workspace: %+v", r.brief())
		}
	}
}

func TestOldLandlock(t *testing.T) {
	needLandlock(t, scopeABI)
	w := newWorld(t)
	p := w.profile(t, func(in *Input) { in.Policy.Accept = append(in.Policy.Accept, ProcSignal) })
	acts := []string{"truncate:" + w.base, "otrunc:" + w.base, "create:" + w.base, "secret:" + w.base}
	for _, abi := range []int{1, 2} {
		j := w.child(t, p, acts...)
		j.ABI = abi
		r := confined(t, j)
		for name, got := range outcomes(t, r.Out) {
			if got == "ok" {
				t.Errorf("ABI %d: %s passes", abi, name)
			}
		}
		if r.Receipt.Tier != T1 || r.Err != "" || !strings.Contains(r.Out, "secret=EACCES") {
			t.Errorf("ABI %d: %+v", abi, r.brief())
		}
	}
	if data, err := os.ReadFile(w.out + "/file"); err != nil || len(data) == 0 {
		t.Error("the file was emptied")
	}
	j := w.child(t, w.profile(t, nil), acts...)
	j.ABI = 5
	if r := confined(t, j); r.Code != "E4101" || !strings.Contains(r.Err, string(ProcSignal)) {
		t.Errorf("ABI 5 without acceptance: %+v", r.brief())
	}
}

func TestUnconfinedMustBeSpelledOut(t *testing.T) {
	_, err := Select(Profile{Accept: Guarantees()}, Host{OS: "linux", Landlock: "no Landlock"})
	var u *errcode.Error
	if !errors.As(err, &u) || u.FaultCode() != "E4106" {
		t.Errorf("no Landlock: %v", err)
	}
	w := newWorld(t)
	r := confined(t, w.child(t, Profile{Confine: ConfineNone}, "create:"+w.base))
	if got := outcomes(t, r.Out)["create"]; got != "ok" || r.Receipt.Tier != T0 || len(r.Receipt.Given) != 0 {
		t.Errorf("confine none: %s %+v", got, r.brief())
	}
}

func TestProbeCache(t *testing.T) {
	c := Cache{Dir: t.TempDir(), Executable: self(t)}
	first, err := Probe(c)
	if err != nil {
		t.Fatal(err)
	}
	path := c.Dir + "/" + probeFile
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		change func() error
	}{
		{"hit", func() error { return nil }},
		{"damaged", func() error { return os.WriteFile(path, []byte("{"), 0o600) }},
		{"stale", func() error { return os.WriteFile(path, []byte("x\n"+formatHost(Host{ABI: 99})), 0o600) }},
		{"too long", func() error { return os.WriteFile(path, make([]byte, 1<<20), 0o600) }},
		{"no directory", func() error { return os.RemoveAll(c.Dir) }},
	} {
		if err := tc.change(); err != nil {
			t.Fatal(err)
		}
		h, err := Probe(c)
		if h.kept != (tc.name == "hit") {
			t.Errorf("%s: kept %v", tc.name, h.kept)
		}
		if h.kept = false; err != nil || h != first {
			t.Errorf("%s: %+v, %v; want %+v", tc.name, h, err, first)
		}
	}
}

// TestProbeLeavesNothing: neither in the state directory nor in the temporary one, and
// it needs neither.
func TestProbeLeavesNothing(t *testing.T) {
	needLandlock(t, 1)
	state, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	want := try(state)
	if again := try(""); again != want {
		t.Errorf("without a state directory: %+v, want %+v", again, want)
	}
	t.Setenv("TMPDIR", temp+"/missing")
	want.Overlay = false // which has to be tried somewhere
	if again := try(state + "/missing"); again != want || !want.Seccomp {
		t.Errorf("without a scratch directory: %+v, want %+v", again, want)
	}
	for _, dir := range []string{state, temp} {
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}

// TestProbeUsesWhatAKilledOneLeft: directories of probes that were killed do not pile up, and those
// of probes that go on are not touched.
func TestProbeUsesWhatAKilledOneLeft(t *testing.T) {
	parent := t.TempDir()
	going, lock := scratchDir(parent)
	killed, dead := scratchDir(parent)
	if lock == nil || dead == nil || going == killed {
		t.Fatalf("%q, %q", going, killed)
	}
	defer lock.Close()
	dead.Close()
	for range 3 {
		dir, lock := scratchDir(parent)
		if lock == nil || dir != killed {
			t.Fatalf("%q, want %q", dir, killed)
		}
		if err := os.WriteFile(dir+"/left", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		lock.Close()
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	if err := touch(going+"/in/f", os.O_RDONLY); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(killed, 0o777); err != nil {
		t.Fatal(err)
	}
	if dir, lock := scratchDir(parent); dir == killed || lock == nil {
		t.Errorf("%q is open to others", dir)
	}
}

// TestPreparedRulesAreUsed: whatever is judged of the directories in PATH, the rules that were made
// meanwhile count; otherwise each start looks up and adds all of them twice.
func TestPreparedRulesAreUsed(t *testing.T) {
	needLandlock(t, 1)
	w := newWorld(t)
	tool := w.home + "/tool"
	if err := os.MkdirAll(tool+"/bin", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, refused := range []string{"", tool, tool + "/bin"} {
		in := Input{Workspace: w.ws, Cwd: w.ws, Home: w.home, Private: w.private, PathDirs: []string{"/usr/bin", tool + "/bin"},
			Exec: []string{"/usr/bin/true"}, Root: os.Getuid() == 0, Policy: PolicyProfile{Accept: append(BuiltinAccept(), WSCheck)}}
		in.Judge = func(path string, _ bool) string {
			if path == refused {
				return "refused"
			}
			return ""
		}
		prepared := Prepare(w.home, in.PathDirs)
		in.Files = prepared.Files()
		p, err := Derive(in)
		if err != nil {
			t.Fatal(err)
		}
		abi, _, _ := landlockABI()
		rs, _, ok := prepared.take(&p, abi)
		if !ok {
			t.Errorf("%q is refused: not used", refused)
		} else {
			unix.Close(rs)
		}
		prepared.Close()
	}
}

// TestHostIsKeptWhole: a field that is added to Host must be kept, too.
func TestHostIsKeptWhole(t *testing.T) {
	var want Host
	v := reflect.ValueOf(&want).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if !f.CanSet() {
			continue // what belongs to one run
		}
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int:
			f.SetInt(int64(i) + 1)
		case reflect.String:
			if i > 0 {
				f.SetString("a \"why\"\nwith lines " + strconv.Itoa(i))
			}
		}
	}
	for _, h := range []Host{want, {OS: "linux"}} {
		if got, ok := parseHost(formatHost(h)); !ok || got != h {
			t.Errorf("%+v, %v; want %+v", got, ok, h)
		}
	}
	for _, text := range []string{"", "\n\n\n", "linux 1 1 true true\n\"\"\n\"\"\n", "linux x 1 true true true true\n\"\"\n\"\"\n", "linux 1 1 true true true true\n\n\n", "linux 1 1 true true true\n\"\"\n\"\"\n"} {
		if h, ok := parseHost(text); ok {
			t.Errorf("%q is %+v", text, h)
		}
	}
}

func TestInheritedDescriptors(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := unix.FcntlInt(r.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.CloseOnExec(int(r.Fd()))
	found := false
	for _, fd := range openDescriptors() {
		found = found || fd == int(r.Fd())
		if fd == int(w.Fd()) || fd < 3 {
			t.Errorf("descriptor %d is not inherited", fd)
		}
	}
	if !found {
		t.Error("an inherited descriptor is not noted")
	}
	named := strconv.Itoa(int(r.Fd()))
	for _, tc := range []struct {
		args []string
		want bool
	}{
		{[]string{"a", "/dev/fd/" + named}, true},
		{[]string{named}, true},
		{[]string{"--status-fd=" + named, named}, true},
		{[]string{"x" + named + "y", "-1", "99999999999999999999999"}, true},
		{[]string{"", "1" + named, named + "0", strconv.Itoa(int(w.Fd())), "0", "2"}, false},
		{nil, false},
	} {
		got := namedDescriptors(tc.args)
		if tc.want != slices.Equal(got, []int{int(r.Fd())}) || !tc.want && len(got) != 0 {
			t.Errorf("%q: %v", tc.args, got)
		}
	}
}

// TestPreparedChangesNothing: rules built ahead of the decision allow what the profile
// allows, also where it allows less than they do.
func TestPreparedChangesNothing(t *testing.T) {
	needLandlock(t, truncateABI)
	w := newWorld(t)
	acts := []string{"create:" + w.base, "secret:" + w.base, "wswrite:" + w.base, "fork", "udp"}
	for name, change := range map[string]func(*Input){
		"default":       nil,
		"no subprocess": func(in *Input) { in.Subprocess = 1 },
		"no write":      func(in *Input) { in.Granted = 0 },
		"network":       func(in *Input) { in.Net.Mode = NetFull },
	} {
		j := w.child(t, w.profile(t, change), acts...)
		want := outcomes(t, confined(t, j).Out)
		j.Prepare, j.Home = true, w.home
		r := confined(t, j)
		if got := outcomes(t, r.Out); len(got) != len(acts) || !maps.Equal(got, want) {
			t.Errorf("%s: prepared %v, else %v; %s", name, got, want, r.Err)
		}
	}
	narrow, plain := w.profile(t, func(in *Input) { in.Subprocess = 1 }), w.profile(t, nil)
	less := plain
	less.Exec = nil
	for _, tc := range []struct {
		name    string
		guess   bool // that nothing else may be started
		profile Profile
		ok      bool
		most    int // rules that are built again
	}{
		{"right", false, plain, true, 5},
		{"right for no subprocess", true, narrow, true, 5},
		{"too strict", true, plain, true, maxGrants},
		{"too loose", false, narrow, false, 0},
		{"less is granted than the rules allow", false, less, false, 0},
	} {
		prepared := Prepare(w.home, []string{"/usr/bin"})
		prepared.Rules(tc.guess)
		<-prepared.done
		rs, rest, ok := prepared.take(&tc.profile, prepared.abi)
		if ok != tc.ok || len(rest) > tc.most {
			t.Errorf("%s: used %v, built again %v", tc.name, ok, rest)
		}
		if ok {
			unix.Close(rs)
		}
		prepared.Close()
	}
}

// TestTerminal: the run's own terminal can be opened again, others cannot.
func TestTerminal(t *testing.T) {
	needLandlock(t, 5)
	master, other, err := openPty()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer other.Close()
	w := newWorld(t)
	text := `test -t 0 && test -t 1 && ! test -t 2 && echo terminal; echo again >/dev/tty; stty size >/dev/null && echo ioctl
		(: <>` + other.Name() + `) 2>&1 && echo stolen; exit 3`
	tiers := []Tier{T2}
	if try("").Namespaces {
		tiers = append(tiers, T3)
	}
	for _, tier := range tiers {
		j := w.shell(w.profile(t, func(in *Input) { in.Policy.Tier = tier }), text)
		j.Pty = true
		r := confined(t, j)
		if got := strings.ReplaceAll(r.Out, "\r", ""); !strings.HasPrefix(got, "terminal\nagain\nioctl\n") || strings.Contains(got, "stolen") || r.Exit.Code != 3 {
			t.Errorf("%s: %q, status %d, %s", r.Receipt.Tier, got, r.Exit.Code, r.Err)
		}
	}
	for _, tier := range tiers {
		j := w.shell(w.profile(t, func(in *Input) { in.Policy.Tier = tier }), `: <>"$(tty)" && echo by name`)
		j.Pty = true
		if r := confined(t, j); !strings.Contains(r.Out, "by name") {
			t.Errorf("%s: own terminal by name: %q %s", tier, r.Out, r.Err)
		}
	}
}
