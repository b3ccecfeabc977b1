package main_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/plan"
)

// sample is a file of one row of the table of names.
type sample struct {
	row  place.Name
	path string // absolute
}

// samples are files of each row: in the workspace, below it, in a submodule's git directory,
// in the home directory. Those of the system are not to be touched.
func (w world) samples() []sample {
	var out []sample
	for _, row := range place.Names() {
		file := strings.Replace(row.Path, "*", "a", 1)
		if row.Path == ".env*" {
			file = ".env"
		}
		if strings.HasSuffix(file, "/") {
			file += "note"
		}
		var dirs []string
		switch row.Where {
		case place.Anywhere, place.Workspace:
			dirs = []string{w.ws, w.ws + "/sub"}
		case place.GitDir:
			dirs = []string{w.ws + "/.git", w.ws + "/.git/modules/m"}
		case place.Home:
			dirs = []string{w.home}
		}
		for _, dir := range dirs {
			out = append(out, sample{row, dir + "/" + file})
		}
	}
	return out
}

// act is one way to change a file. It starts in the workspace, where "src" is a file.
type act struct {
	name  string
	there bool // the file exists before, else its directory is missing too
	free  bool // allowed where no name is protected
	argv  func(path, dir string) []string
}

var acts = []act{
	{"cp over", true, false, func(p, _ string) []string { return []string{"cp", "src", p} }},
	{"make directory", false, true, func(p, dir string) []string {
		return []string{"sh", "-c", "mkdir -p '" + dir + "' && cp src '" + p + "'"}
	}},
	{"redirect", true, false, func(p, _ string) []string { return []string{"sh", "-c", "echo new > '" + p + "'"} }},
	{"rename over", true, false, func(p, _ string) []string { return []string{"mv", "src", p} }},
	{"rename away", true, false, func(p, _ string) []string { return []string{"mv", p, "away"} }},
	{"copy into", true, false, func(p, dir string) []string {
		return []string{"sh", "-c", "mkdir away && cp src 'away/" + filepath.Base(p) + "' && cp 'away/" + filepath.Base(p) + "' '" + dir + "'/"}
	}},
	{"copy all into", true, false, func(p, dir string) []string { return []string{"cp", "-r", "full/.", dir} }},
	{"link", true, false, func(p, _ string) []string { return []string{"ln", "-sf", "src", p} }},
	{"remove", true, false, func(p, _ string) []string { return []string{"rm", "-f", p} }},
	{"remove directory", true, false, func(_, dir string) []string { return []string{"rm", "-r", dir} }},
	{"rename directory", true, false, func(_, dir string) []string { return []string{"mv", dir, "away"} }},
}

// content is what a name is: a text, a link, or nothing.
func content(t *testing.T, path string) string {
	t.Helper()
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "absent"
	case err != nil:
		t.Fatal(err)
	case fi.Mode()&fs.ModeSymlink != 0:
		return "link"
	case fi.IsDir():
		return "directory"
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// own reports a directory of the world itself, which no act makes or removes.
func (w world) own(dir string) bool {
	if strings.HasPrefix(w.home+"/.config/agent-tools", dir+"/") || strings.HasPrefix(w.home+"/.local/state", dir+"/") || dir == w.home+"/.cache" || dir == w.home+"/.local/share" {
		return true
	}
	return dir == w.ws || dir == w.home || dir == w.ws+"/.git" || dir == w.ws+"/sub" || dir == w.ws+"/.git/modules/m"
}

// prepare makes the world as an act needs it.
func (w world) prepare(a act, path string) {
	t := w.t
	t.Helper()
	dir := filepath.Dir(path)
	if err := errors.Join(os.RemoveAll(w.ws+"/away"), os.WriteFile(w.ws+"/src", []byte("new\n"), 0o644), os.RemoveAll(path)); err != nil {
		t.Fatal(err)
	}
	if !w.own(dir) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	if a.there {
		put(t, "/", map[string]string{path: "old\n"})
	}
	if err := os.RemoveAll(w.ws + "/full"); err != nil {
		t.Fatal(err)
	}
	put(t, w.ws, map[string]string{"full/" + filepath.Base(path): "new\n"})
}

// TestNamesAreDecidedAsTheyAreHeld: for each row of the table, and each way to change a file,
// what is decided is what happens. A call that is refused changes nothing; one that runs is
// not taken back. The same call changes the file if nothing confines it. The program is started for
// what is not refused, and for some ways to change each name: a refusal is decided in this process,
// which takes a fifth of the time. ATIP_TEST_WHOLE=1 starts it always, and does all at both tiers.
func TestNamesAreDecidedAsTheyAreHeld(t *testing.T) {
	first := 0 // of the turns of this user
	if os.Getuid() != 0 {
		first = 2
	}
	for at, tier := range []string{"T2", "T3"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			put(t, w.ws, map[string]string{".git/modules/m/HEAD": "ref: refs/heads/main\n", "sub/file": "text\n"})
			for _, ci := range []bool{false, true} {
				w.policy(fmt.Sprintf(`{"version":1,"sandbox":{"tier":%q,"protect":{"ci":%t}}}`, tier, ci))
				for n, s := range w.samples() {
					if ci && s.row.Kind != place.CI {
						continue // the switch is about rows of CI only
					}
					dir := filepath.Dir(s.path)
					for i, a := range acts {
						// Names that hold in one directory hold in the next, and a secret is one by its name.
						few := s.row.Where == place.Home || s.row.Kind == place.Secret || strings.HasPrefix(s.path, w.ws+"/sub/")
						if few && i > 1 || strings.HasSuffix(a.name, "directory") && a.there && w.own(dir) || strings.HasPrefix(a.name, "copy ") && s.row.Where == place.GitDir {
							continue
						}
						// What a text makes of files of the workspace holds no secret, whatever its name is.
						own := s.row.Kind == place.Secret && !a.there && strings.HasPrefix(s.path, w.ws+"/")
						// Each way meets each name once: at one of the tiers, as root or as a user.
						if turn := i + n; whole() || turn%4 == first+at {
							w.decided(a, s, s.row.Kind == place.CI && !ci || own, whole() || turn/4%3 == 0)
						}
					}
				}
			}
		})
	}
}

// refusal is what the program decides of a call, said by this process.
func (w world) refusal(inv plan.Invocation) error {
	inv.Directory = w.ws
	p, err := plan.Make(inv, caller.Machine{Environ: w.command().Env, Homes: []string{"/"}, UID: os.Geteuid(), Self: filepath.Join(bin, "atip-exec")})
	if err != nil {
		return err
	}
	defer p.Close()
	return p.Refusal()
}

// decided runs one act alone, and under atip-exec if it may run or the program is to be started anyhow.
func (w world) decided(a act, s sample, free, started bool) {
	t := w.t
	t.Helper()
	if raw, err := os.ReadFile(s.path); err == nil { // git's own configuration
		defer put(t, "/", map[string]string{s.path: string(raw)})
	}
	argv := a.argv(s.path, filepath.Dir(s.path))
	defer func() {
		_ = errors.Join(os.RemoveAll(s.path), os.RemoveAll(w.ws+"/"+filepath.Base(s.path)))
	}()
	w.prepare(a, s.path)
	before := content(t, s.path)
	control := exec.Command(argv[0], argv[1:]...)
	control.Dir = w.ws
	if out, err := control.CombinedOutput(); err != nil || content(t, s.path) == before {
		t.Errorf("control %s %s: %v %s", a.name, s.path, err, out)
		return
	}
	want := content(t, s.path)
	w.prepare(a, s.path)
	words, inv := append([]string{"--"}, argv...), plan.Invocation{Argv: argv}
	if argv[0] == "sh" {
		words, inv = argv[1:], plan.Invocation{Shell: argv[2], IsShell: true}
	}
	refusal := w.refusal(inv)
	if f := fault.From(refusal); f != nil && f.Exit == 77 && !free && !started {
		return
	}
	out, err := w.command(words...).CombinedOutput()
	if (err == nil) != (refusal == nil) {
		t.Errorf("%s %s: the program says %v, this process %v: %s", a.name, s.path, err, refusal, out)
	}
	after := content(t, s.path)
	var exit *exec.ExitError
	switch {
	case err == nil && (after != want || strings.Contains(string(out), "E411")):
		t.Errorf("%s %s: allowed, and then it is %q: %s", a.name, s.path, after, out)
	case err == nil && !free:
		t.Errorf("%s %s: allowed: %s", a.name, s.path, out)
	case err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 77):
		t.Errorf("%s %s: neither refused nor done: %v: %s", a.name, s.path, err, out)
	case err != nil && after != before:
		t.Errorf("%s %s: refused, and then it is %q: %s", a.name, s.path, after, out)
	case err != nil && free && a.free:
		t.Errorf("%s %s: refused: %s", a.name, s.path, out)
	}
}

// TestNamesAreHeldAgainstCode: what code does to them is not known beforehand. It is refused
// by the kernel or taken back.
func TestNamesAreHeldAgainstCode(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		for _, a := range []act{
			{"write", true, false, func(p, _ string) []string { return []string{"open(" + p + ", 'w').write('new')"} }},
			{"create", false, false, func(p, _ string) []string {
				return []string{"os.makedirs(os.path.dirname(" + p + "), exist_ok=True); open(" + p + ", 'w').write('new')"}
			}},
			{"rename", true, false, func(p, _ string) []string {
				return []string{"open('t', 'w').write('new'); os.rename('t', " + p + ")"}
			}},
			{"remove", true, false, func(p, _ string) []string { return []string{"os.remove(" + p + ")"} }},
		} {
			w := newWorld(t)
			put(t, w.ws, map[string]string{".git/modules/m/HEAD": "ref: refs/heads/main\n", ".git/modules/m/objects/x": "", ".git/modules/m/refs/x": ""})
			w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `","protect":{"ci":true}}}`)
			var paths []string
			var script strings.Builder
			script.WriteString("import os\n")
			for _, s := range w.samples() {
				if s.row.Where == place.Home || s.row.Kind == place.Secret || strings.Contains(s.path, "/sub/") || filepath.Base(s.path) == "config" {
					continue // what git's configuration may say is a question of its own
				}
				if a.there {
					put(t, "/", map[string]string{s.path: "old"})
				}
				paths = append(paths, s.path)
				script.WriteString("try:\n    " + a.argv("'"+s.path+"'", "")[0] + "\nexcept OSError: pass\n")
			}
			before := map[string]string{}
			for _, p := range paths {
				before[p] = content(t, p)
			}
			held := func() (wrong []string) {
				for _, p := range paths {
					if content(t, p) != before[p] {
						wrong = append(wrong, strings.TrimPrefix(p, w.ws+"/"))
					}
				}
				return wrong
			}
			put(t, w.ws, map[string]string{"act.py": script.String()})
			out, err := w.command("--", "python3", "act.py").CombinedOutput()
			if wrong := held(); err != nil || len(wrong) > 0 {
				t.Errorf("%s %s: %v: not held: %q: %s", tier, a.name, err, wrong, out)
			}
			control := exec.Command("python3", "act.py")
			control.Dir = w.ws
			if out, err := control.CombinedOutput(); err != nil || !slices.Equal(held(), relative(w.ws, paths)) {
				t.Errorf("%s %s: the control changed only %q: %v %s", tier, a.name, held(), err, out)
			}
		}
	}
}

func relative(dir string, paths []string) []string {
	var out []string
	for _, p := range paths {
		out = append(out, strings.TrimPrefix(p, dir+"/"))
	}
	return out
}

// TestApprovedNamesHappen: what you approve is neither refused by the kernel nor taken back,
// and nothing beside it becomes free.
func TestApprovedNamesHappen(t *testing.T) {
	names := []string{".claude/commands/x.md", ".codex/AGENTS.md", ".cursor/rules", ".mise.toml", ".envrc", ".vscode/tasks.json", ".git/info/attributes", ".git/hooks/pre-commit"}
	for _, tier := range []string{"T2", "T3"} {
		for _, there := range []bool{false, true} {
			t.Run(fmt.Sprint(tier, there), func(t *testing.T) { approvedNames(t, tier, there, names) })
		}
	}
}

func approvedNames(t *testing.T, tier string, there bool, names []string) {
	a := newAsker(t)
	a.register()
	a.policy(`{"version":1,"sandbox":{"tier":"` + tier + `","tmp":"run"},"rules":[{"id":"settings","decision":"allow",` +
		`"when":{"tool":["cp","mkdir","python3"],"path":{"class":["startup","workspace","workspace-vcs","workspace-tracked","workspace-regenerable"]}},` +
		`"grants":["write","delete","destructive","irreversible","execOpaque","persistence"],"lifts":["persistence","persistence_effect"]}]}`)
	text := "python3 plant.py"
	for _, name := range names {
		text += " && mkdir -p " + filepath.Dir(name) + " && cp src " + name
		if there {
			put(t, a.ws, map[string]string{name: "old\n"})
		}
	}
	put(t, a.ws, map[string]string{"src": "new\n", "plant.py": `import os
for name in ('.claude/beside', '.mcp.json'):
    try:
        os.makedirs(os.path.dirname(name) or '.', exist_ok=True)
        open(name, 'w').close()
    except OSError as e: print(name, e)
`})
	a.approve(a.request("-c", text))
	code, e := a.try(nil, "-c", text)
	if code != 0 {
		t.Errorf("exit %d: %s", code, e.text)
	}
	for _, name := range names {
		if got := content(t, filepath.Join(a.ws, name)); got != "new\n" || strings.Contains(e.text, name) {
			t.Errorf("%s is %q: %s", name, got, e.text)
		}
	}
	for _, name := range []string{".claude/beside", ".mcp.json"} {
		if got := content(t, filepath.Join(a.ws, name)); got != "absent" || !strings.Contains(e.text, name) {
			t.Errorf("%s is %q: %s", name, got, e.text)
		}
	}
}
