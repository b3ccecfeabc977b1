package tools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/install"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/wiring"
)

// bypassed is what a wrapper in PATH does not cover.
const bypassed = "absolute paths, a PATH without the directory of wrappers, and what a running command starts itself"

// shimmed is what shim reports of one tool.
type shimmed struct {
	Tool   string   `json:"tool"`
	File   string   `json:"file"`
	Starts string   `json:"starts,omitempty"` // the executable behind the name
	State  string   `json:"state"`            // installed, unchanged, would change, would be removed, removed, ok, broken
	Faults []string `json:"faults,omitempty"`
	Next   string   `json:"next,omitempty"`
}

// shimJob is one call of shim.
type shimJob struct {
	dirs    place.Dirs
	program string
	store   *install.Store
}

func newShimJob(dirs place.Dirs, m caller.Machine, change bool) (*shimJob, error) {
	j := &shimJob{dirs: dirs, program: filepath.Join(filepath.Dir(m.Self), "atip-exec")}
	var err error
	j.store, err = install.Open(dirs.Data, j.program, change)
	return j, err
}

func shimVerb(c *cli.Console, v *cli.Values) (int, error) {
	m := caller.Here()
	dirs, err := m.Dirs()
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(m.Self), "atip-exec")); err != nil {
		return 0, fault.New(errcode.NoCompanion, "atip-exec is not beside atip").WithFix("install both into one directory", "")
	}
	list := v.Has("list") || v.Has("dry-run")
	j, err := newShimJob(dirs, m, !list)
	if err != nil {
		return 0, err
	}
	defer j.store.Close()
	var out []shimmed
	status := 0
	switch {
	case v.Has("list"):
		out, status = j.list(v.Rest)
	case v.Has("uninstall"):
		out, err = j.uninstall(v)
	default:
		out, status, err = j.install(v)
	}
	if err != nil {
		return 0, err
	}
	return status, c.Answer(map[string]any{"kind": "atip-exec.shim/1", "directory": dirs.Wrappers(), "shims": append([]shimmed{}, out...), "not_covered": []string{bypassed}}, shimText(out))
}

func shimText(out []shimmed) string {
	if len(out) == 0 {
		return "no tool has a wrapper\n"
	}
	var b strings.Builder
	next := ""
	for _, s := range out {
		b.WriteString(s.Tool + "  " + s.State + "\n  file: " + answer.Visible(s.File) + "\n")
		if s.Starts != "" {
			b.WriteString("  starts: " + answer.Visible(s.Starts) + "\n")
		}
		for _, f := range s.Faults {
			b.WriteString("  broken: " + f + "\n")
		}
		if s.Next != "" {
			next = s.Next
		}
	}
	if next != "" {
		b.WriteString("next: " + next + "\n")
	}
	return b.String() + "not covered: " + bypassed + "\n"
}

// list checks the wrappers of the named tools, or all.
func (j *shimJob) list(tools []string) (out []shimmed, status int) {
	for _, tool := range j.store.Shims() {
		if len(tools) > 0 && !slices.Contains(tools, tool) {
			continue
		}
		row := shimmed{Tool: tool, File: j.store.ShimFile(tool), State: "ok"}
		if j.try(&row); len(row.Faults) > 0 {
			row.State, status = "broken", 69
		}
		out = append(out, row)
	}
	for _, tool := range tools {
		if !slices.ContainsFunc(out, func(s shimmed) bool { return s.Tool == tool }) {
			out, status = append(out, shimmed{Tool: answer.Visible(tool), File: j.store.ShimFile(tool), State: "not installed"}), 69
		}
	}
	return out, status
}

// install looks at all tools before it writes one wrapper.
func (j *shimJob) install(v *cli.Values) (out []shimmed, status int, err error) {
	if len(v.Rest) == 0 {
		return nil, 0, fault.New(errcode.Arguments, "shim needs the name of a tool").WithFix("name one, or see what is there with --list", "atip shim gh git")
	}
	tools := slices.Compact(slices.Sorted(slices.Values(v.Rest)))
	for _, tool := range tools {
		if why := wiring.Wrappable(tool); why != "" {
			return nil, 0, fault.New(errcode.Arguments, "shim: "+answer.Visible(tool)+" "+why).WithFix("name the tool as you type it, without a directory", "atip shim git")
		}
		if err := j.store.CheckShim(tool); err != nil {
			return nil, 0, err
		}
		row := shimmed{Tool: tool, File: j.store.ShimFile(tool), State: "would change"}
		if row.Starts, err = j.resolve(tool); err != nil {
			return nil, 0, err
		}
		if slices.Contains(j.store.Shims(), tool) && j.store.ShimFault(tool) == "" {
			row.State = "unchanged"
		}
		out = append(out, row)
	}
	if v.Has("dry-run") {
		return out, 0, nil
	}
	if err := j.agree(v, out, "would change", "put these names before the tools"); err != nil {
		return nil, 0, err
	}
	for i, tool := range tools {
		changed, err := j.store.AddShim(tool)
		if err != nil {
			return nil, 0, err
		}
		if changed {
			out[i].State = "installed"
		}
		if j.try(&out[i]); len(out[i].Faults) > 0 {
			out[i].State, status = "broken", 69
		}
	}
	return out, status, nil
}

func (j *shimJob) uninstall(v *cli.Values) (out []shimmed, err error) {
	for _, tool := range j.store.Shims() {
		if len(v.Rest) == 0 || slices.Contains(v.Rest, tool) {
			out = append(out, shimmed{Tool: tool, File: j.store.ShimFile(tool), State: "would be removed"})
		}
	}
	if err := j.agree(v, out, "would be removed", "let these tools start without atip-exec"); err != nil {
		return nil, err
	}
	for i := range out {
		if err := j.store.RemoveShim(out[i].Tool); err != nil {
			return nil, err
		}
		out[i].State = "removed"
	}
	return out, nil
}

func (j *shimJob) agree(v *cli.Values, out []shimmed, state, purpose string) error {
	var lines []string
	for _, s := range out {
		if s.State == state {
			lines = append(lines, s.Tool+": "+s.State+" "+answer.Visible(s.File))
		}
	}
	return agree(v, lines, purpose)
}

// try asks through a wrapper, with a PATH in which no tool is found, so that nothing starts, and
// looks at where the name leads now.
func (j *shimJob) try(row *shimmed) {
	if why := j.store.ShimFault(row.Tool); why != "" {
		row.Faults = append(row.Faults, answer.Visible(why))
		return
	}
	env := append(slices.DeleteFunc(caller.Here().Environ, func(e string) bool { return strings.HasPrefix(e, "PATH=") }), "PATH="+j.dirs.Wrappers())
	_, errText, status := startFile("", env, nil, row.File)
	if status != 127 || !strings.Contains(errText, errcode.CommandNotFound) {
		row.Faults = append(row.Faults, "the wrapper does not reach atip-exec: "+firstLine(errText))
	}
	var err error
	if row.Starts, err = j.resolve(row.Tool); err != nil {
		row.Faults = append(row.Faults, answer.Visible(err.Error()))
		return
	}
	if first := firstOf(row.Tool, os.Getenv("PATH")); first != row.File {
		row.Next = "put the wrappers first: export PATH=" + wiring.Word(j.dirs.Wrappers()) + ":\"$PATH\""
	}
}

// resolve is the executable that a tool's name leads to behind the wrappers.
func (j *shimJob) resolve(tool string) (string, error) {
	if file := firstOf(tool, caller.Here().Getenv("PATH")); file != "" {
		return file, nil
	}
	return "", fault.New(errcode.CommandNotFound, tool+": not found in PATH").WithFix("install it first, or correct its name", "atip shim git")
}

// firstOf is the executable of a name in PATH, "" if there is none.
func firstOf(name, path string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// shimChecks say of each wrapper whether it leads to us.
func shimChecks(dirs place.Dirs, m caller.Machine) []check {
	j, err := newShimJob(dirs, m, false)
	if err != nil {
		return nil // agentChecks say it
	}
	var out []check
	rows, _ := j.list(nil)
	for _, row := range rows {
		k := check{ID: "shim " + row.Tool, Status: "ok", Summary: row.Tool + " starts " + answer.Visible(row.Starts) + " through atip-exec; fails closed; not covered: " + bypassed}
		k.Wiring = &wiringRow{Found: row.Starts != "", Covered: true, Fails: "closed", NotCovered: []string{bypassed}, File: row.File}
		switch {
		case len(row.Faults) > 0:
			k.Status, k.Summary, k.Fix, k.Wiring.Covered = "fail", strings.Join(row.Faults, "; "), "atip shim "+row.Tool, false
		case row.Next != "":
			k.Status, k.Fix, k.Wiring.Covered = "warn", row.Next, false
			k.Summary = row.Tool + " has a wrapper, and PATH does not lead to it"
		}
		out = append(out, k)
	}
	return out
}
