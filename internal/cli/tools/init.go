package tools

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/cli/approvals"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/install"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/wiring"
)

// wired is what init reports of one agent.
type wired struct {
	Agent    string       `json:"agent"`
	Title    string       `json:"title"`
	Scope    wiring.Scope `json:"scope"`
	Mode     wiring.Mode  `json:"mode,omitempty"`
	File     string       `json:"file,omitempty"`
	State    string       `json:"state"` // installed, unchanged, would change, removed, ok, broken, by hand
	Faults   []string     `json:"faults,omitempty"`
	Fails    string       `json:"fails,omitempty"` // if no answer comes
	Gaps     []string     `json:"not_covered,omitempty"`
	Steps    []string     `json:"steps,omitempty"`
	Tried    string       `json:"tried,omitempty"`
	Settings string       `json:"settings,omitempty"`
}

// initJob is one call of init.
type initJob struct {
	c       *cli.Console
	v       *cli.Values
	dirs    place.Dirs
	program string // atip-exec
	project string // the workspace, for --scope project
	scope   wiring.Scope
	out     []wired
}

func initVerb(c *cli.Console, v *cli.Values) (int, error) {
	m := caller.Here()
	dirs, err := m.Dirs()
	if err != nil {
		return 0, err
	}
	j := &initJob{c: c, v: v, dirs: dirs, program: filepath.Join(filepath.Dir(m.Self), "atip-exec"), scope: wiring.User}
	if v.Get("scope") == string(wiring.Project) {
		j.scope = wiring.Project
		if j.project, _, err = plan.ReadProject(m, ""); err != nil {
			return 0, err
		}
	}
	if _, err := os.Stat(j.program); err != nil {
		return 0, fault.New(errcode.NoCompanion, "atip-exec is not beside atip").WithFix("install both into one directory", "")
	}
	hosts, err := j.hosts(m)
	if err != nil {
		return 0, err
	}
	status := 0
	switch {
	case v.Has("status"):
		status, err = j.status(hosts)
	case v.Has("uninstall"):
		err = j.uninstall(hosts)
	case v.Has("print"):
		err = j.print(hosts)
	default:
		status, err = j.install(hosts)
	}
	if rerr := j.report(); err == nil {
		err = rerr
	}
	return status, err
}

// hosts are the agents that the call is about: those named, or those that are here.
func (j *initJob) hosts(m caller.Machine) ([]wiring.Host, error) {
	var out []wiring.Host
	for _, name := range j.v.Rest {
		h, ok := wiring.ByName(name)
		if !ok {
			return nil, fault.New(errcode.Arguments, "init: no agent "+answer.Visible(name)+" is known").WithFix("agents: "+strings.Join(wiring.Names(), ", "), "atip init claude")
		}
		out = append(out, h)
	}
	if len(out) > 0 || j.v.Has("status") || j.v.Has("uninstall") {
		return out, nil
	}
	for _, h := range wiring.Hosts() {
		if found(h, j.dirs.Home, m.Getenv("PATH")) {
			out = append(out, h)
		}
	}
	if len(out) == 0 {
		return nil, fault.New(errcode.Arguments, "init: none of the agents that are known was found here").WithFix("name one of "+strings.Join(wiring.Names(), ", "), "atip init claude")
	}
	return out, nil
}

// found reports an agent that is installed here, or was used.
func found(h wiring.Host, home, path string) bool {
	for _, dir := range filepath.SplitList(path) {
		for _, name := range h.Programs {
			if _, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(dir) {
				return true
			}
		}
	}
	return slices.ContainsFunc(h.Dirs, func(dir string) bool {
		info, err := os.Stat(filepath.Join(home, dir))
		return err == nil && info.IsDir()
	})
}

// row is what is said of an agent in any case.
func (j *initJob) row(h wiring.Host, mode wiring.Mode) wired {
	w := wired{Agent: h.Name, Title: h.Title, Scope: j.scope, Mode: mode, Gaps: h.Gaps, Steps: h.Steps, Tried: h.Seen}
	_, w.Fails = h.Fails(mode)
	return w
}

// target is the mode and the settings file of an agent; no file if nothing can be set.
func (j *initJob) target(h wiring.Host) (wiring.Mode, string, error) {
	modes := h.Modes()
	if len(modes) == 0 {
		return "", "", nil
	}
	mode := modes[0]
	if want := wiring.Mode(j.v.Get("mode")); want != "" {
		if mode = want; !slices.Contains(modes, want) {
			return "", "", fault.New(errcode.FlagValue, "--mode: "+h.Title+" has no mode "+string(want)).WithFix("leave out --mode", "atip init "+h.Name)
		}
	}
	base := j.dirs.Home
	if j.scope == wiring.Project {
		base = j.project
	}
	if h.Files[j.scope] == "" {
		return "", "", fault.New(errcode.FlagValue, "--scope: "+h.Title+" has no settings of that scope").WithFix("leave out --scope", "atip init "+h.Name)
	}
	return mode, filepath.Join(base, h.Files[j.scope]), nil
}

// install plans all agents before it changes one.
func (j *initJob) install(hosts []wiring.Host) (int, error) {
	dry := j.v.Has("dry-run")
	s, err := install.Open(j.dirs.Data, j.program, !dry)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	var changes []install.Change
	for _, h := range hosts {
		mode, file, err := j.target(h)
		if err != nil {
			return 0, err
		}
		w := j.row(h, mode)
		if file == "" {
			w.State, w.Steps = "by hand", fill(h.Steps, j.dirs.Data)
			j.out = append(j.out, w)
			continue
		}
		change, err := s.Plan(h, j.scope, mode, file)
		if err != nil {
			return 0, err
		}
		w.File, w.State, w.Steps = file, "unchanged", fill(h.Steps, j.dirs.Data)
		if change.Changed {
			w.State = "would change"
		}
		if dry && change.Changed {
			w.Settings = string(change.After)
		}
		changes = append(changes, change)
		j.out = append(j.out, w)
	}
	if dry {
		return 0, nil
	}
	if err := j.agree("would change", "let these agents run commands through atip-exec"); err != nil {
		return 0, err
	}
	status := 0
	for _, change := range changes {
		w := &j.out[slices.IndexFunc(j.out, func(w wired) bool { return w.Agent == change.Agent })]
		if err := s.Apply(change); err != nil {
			return 0, err
		}
		if change.Changed {
			w.State = "installed"
		}
		h, _ := wiring.ByName(change.Agent)
		if w.Faults = j.tryOut(h, change.Mode); len(w.Faults) > 0 {
			w.State, status = "broken", 69
		}
	}
	return status, nil
}

// agree asks before settings in that state change, unless it was said.
func (j *initJob) agree(state, purpose string) error {
	var lines []string
	for _, w := range j.out {
		if w.State == state {
			lines = append(lines, w.Title+": "+w.State+" "+answer.Visible(w.File))
		}
	}
	err := agree(j.v, lines, purpose)
	if err != nil {
		j.out = nil
	}
	return err
}

// agree shows what will change and asks the user at the terminal, unless --yes was given.
func agree(v *cli.Values, lines []string, purpose string) error {
	if v.Has("yes") || len(lines) == 0 {
		return nil
	}
	t, err := approvals.OpenTerminal()
	if err != nil {
		return approvals.Refused(err.Error())
	}
	defer t.Close()
	if err := t.Say(strings.Join(lines, "\n") + "\n"); err != nil {
		return err
	}
	return t.Confirm("Type yes to "+purpose+": ", "nothing was changed")
}

func (j *initJob) uninstall(hosts []wiring.Host) error {
	s, err := install.Open(j.dirs.Data, j.program, true)
	if err != nil {
		return err
	}
	defer s.Close()
	chosen := j.chosen(s, hosts)
	for _, w := range chosen {
		title := w.Agent
		if h, ok := wiring.ByName(w.Agent); ok {
			title = h.Title
		}
		j.out = append(j.out, wired{Agent: w.Agent, Title: title, Scope: w.Scope, Mode: w.Mode, File: w.File, State: "would be removed"})
	}
	if err := j.agree("would be removed", "let these agents run commands without atip-exec"); err != nil {
		return err
	}
	for i, w := range chosen {
		if err := s.Remove(w); err != nil {
			return err
		}
		j.out[i].State = "removed"
	}
	return nil
}

// chosen are the installations that a call is about.
func (j *initJob) chosen(s *install.Store, hosts []wiring.Host) []install.Wired {
	return slices.DeleteFunc(s.Wired(), func(w install.Wired) bool {
		if len(hosts) > 0 && !slices.ContainsFunc(hosts, func(h wiring.Host) bool { return h.Name == w.Agent }) {
			return true
		}
		if j.scope == wiring.Project {
			return w.Scope != wiring.Project || !strings.HasPrefix(w.File, j.project+string(filepath.Separator))
		}
		return j.v.Has("scope") && w.Scope != wiring.User
	})
}

// status checks what is installed, by a made-up event each.
func (j *initJob) status(hosts []wiring.Host) (int, error) {
	s, err := install.Open(j.dirs.Data, j.program, false)
	if err != nil {
		return 0, err
	}
	status := 0
	for _, w := range j.chosen(s, hosts) {
		h, ok := wiring.ByName(w.Agent)
		if !ok {
			continue
		}
		row := j.row(h, w.Mode)
		row.Scope, row.File, row.State, row.Steps = w.Scope, w.File, "ok", nil
		if row.Faults = s.Faults(w); len(row.Faults) == 0 {
			row.Faults = j.tryOut(h, w.Mode)
		}
		if len(row.Faults) > 0 {
			row.State, status = "broken", 69
		}
		j.out = append(j.out, row)
	}
	for _, h := range hosts {
		if !slices.ContainsFunc(j.out, func(w wired) bool { return w.Agent == h.Name }) {
			j.out = append(j.out, wired{Agent: h.Name, Title: h.Title, Scope: j.scope, State: "not installed"})
			status = 69
		}
	}
	return status, nil
}

// print shows what belongs into the settings of each agent, as it stands in an empty file.
func (j *initJob) print(hosts []wiring.Host) error {
	for _, h := range hosts {
		mode, file, err := j.target(h)
		if err != nil {
			return err
		}
		w := j.row(h, mode)
		w.File, w.State, w.Steps = file, "by hand", fill(h.Steps, j.dirs.Data)
		if file != "" {
			text, err := install.Fresh(j.dirs.Data, h, mode)
			if err != nil {
				return err
			}
			w.Settings = string(text)
		}
		j.out = append(j.out, w)
	}
	return nil
}

// fill puts our directory into steps that name it.
func fill(steps []string, data string) []string {
	out := slices.Clone(steps)
	for i := range out {
		out[i] = strings.NewReplacer("$BIN", filepath.Join(data, "bin"), "$SHELL", wiring.ShellFile(data)).Replace(out[i])
	}
	return out
}

func (j *initJob) report() error {
	if j.c.Documents() {
		return j.c.Document(map[string]any{"kind": "atip-exec.init/1", "agents": append([]wired{}, j.out...)})
	}
	var b strings.Builder
	if len(j.out) == 0 && (j.v.Has("status") || j.v.Has("uninstall")) {
		b.WriteString("no agent is installed\n")
	}
	for _, w := range j.out {
		b.WriteString(w.Title + "  " + w.State)
		if w.Mode != "" {
			b.WriteString(", mode " + string(w.Mode))
		}
		b.WriteString("\n")
		for _, line := range append([]string{"file: " + answer.Visible(w.File)}, prefixed("broken: ", w.Faults)...) {
			if line != "file: " {
				b.WriteString("  " + line + "\n")
			}
		}
		for _, line := range slices.Concat(prefixed("next: ", w.Steps), prefixed("not covered: ", w.Gaps), prefixed("without an answer: ", nonEmpty(w.Fails)), prefixed("tried with: ", nonEmpty(w.Tried))) {
			b.WriteString("  " + line + "\n")
		}
		b.WriteString(w.Settings)
	}
	return j.c.Text(b.String())
}

func prefixed(prefix string, lines []string) []string {
	var out []string
	for _, l := range lines {
		out = append(out, prefix+l)
	}
	return out
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
