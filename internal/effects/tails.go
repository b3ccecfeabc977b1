package effects

import (
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// maxTails bounds how many words of one step are tried as the beginning of a command.
const maxTails = 12

// tails looks for commands in the words of a step of which nobody knows what it runs: a
// wrapper without metadata (`newwrapper -n 5 rm -rf ~`), an option with a text that its
// tool runs (`gdb -ex 'shell rm -rf ~'`). Such a step asks whatever they are, so they can
// only make it stricter and say what it would do.
func (c *collector) tails(s *step.Step) {
	unknown := s.Call.Provenance.Channel == "none" && s.RunsCode == policy.CodeNone
	opaque := s.RunsCode == policy.CodeOpaque || s.Call.Effects[atip.ExecOpaque].Value != atip.No && s.RunsCode == policy.CodeNone
	if c.peeking || len(s.Argv) < 2 {
		return
	}
	if unknown || opaque || s.RunsCode != policy.CodeNone {
		c.handedSecrets(s)
		c.handedOutputs(s)
	}
	if !unknown && !opaque && s.RunsCode == policy.CodeInline && !step.HasHole(s.Argv) {
		c.handedCommand(s)
	}
	if !unknown && !opaque || step.HasHole(s.Argv) {
		return
	}
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*step.Step{s}, peeking: true, depth: maxPeekDepth}
	cwd := subpath.Join(s.Cwd, s.Call.Chdir)
	for i := 1; i < len(s.Argv) && i <= maxTails; i++ {
		if step.TellTale(s.Argv[i]) && i+1 < len(s.Argv) {
			_ = sub.add(s.Argv[i:], s.Via, cwd, policy.Exact)
			break
		}
	}
	if opaque {
		for _, w := range s.Argv[1:] {
			for _, text := range step.CommandTexts(w) {
				word, _, more := strings.Cut(text, " ")
				if !more || !step.TellTale(word) {
					continue
				}
				if script, err := shell.Read(text, sub.options(cwd)); err == nil {
					_ = sub.script(s, script, s.Via)
				}
			}
		}
	}
	s.ShowEffects(sub.steps[1:])
	if s.Call.Effects[atip.Network].Value != atip.Yes || unknown {
		c.hide(sub) // else the paths may be those of another machine
	}
	s.ShowVerbs()
}

// handedSecrets adds the secrets of the home directory, and of the system, that are handed to
// code: what it does with them is not known, and reading them is the least.
func (c *collector) handedSecrets(s *step.Step) {
	if step.IsShell(s.Call.Tool) || s.Call.Tool == "ssh" {
		return
	}
	for _, w := range s.Argv[1:] {
		if name, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(name, "-") {
			w = value
		}
		if w = strings.TrimPrefix(w, "@"); !strings.HasPrefix(w, "/") && !strings.HasPrefix(w, "~/") || strings.IndexByte(w, 0) >= 0 {
			continue
		}
		r, ok := c.guarded(s, w)
		if !ok || r.Class != atip.ClassSecret || subpath.Within(r.Abs, c.site.Workspace) {
			continue
		}
		s.Raise(r)
		s.Call.Resources = append(s.Call.Resources, r)
	}
}

// handedCommand asks where a program text is handed the words of a command that deletes:
// python3 -c 'subprocess.run(sys.argv[1:])' rm -rf x.
func (c *collector) handedCommand(s *step.Step) {
	sub := &collector{site: c.site, out: c.out, path: c.path, found: c.found, steps: []*step.Step{s}, peeking: true, depth: maxPeekDepth}
	for i := 2; i+1 < len(s.Argv); i++ {
		if step.TellTale(s.Argv[i]) && step.ContainsAny(s.Argv[i-1], "argv", "ARGV", "$@") {
			_ = sub.add(s.Argv[i:], s.Via, subpath.Join(s.Cwd, s.Call.Chdir), policy.Exact)
			break
		}
	}
	if step.Removes(sub.steps[1:]) {
		s.RunsCode = policy.CodeOpaque
		s.ShowEffects(sub.steps[1:])
	}
	c.hide(sub)
}

// handedOutputs adds files outside of the workspace that code is told to write: the kernel
// keeps it from that, so a person is asked beforehand.
func (c *collector) handedOutputs(s *step.Step) {
	for i, w := range s.Argv[1:] {
		name, value, attached := strings.Cut(w, "=")
		if !attached {
			name, value = s.Argv[i], w
		}
		if i == 0 && !attached || !step.OutputOption(name) || strings.IndexByte(value, 0) >= 0 || !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "~/") && !strings.HasPrefix(value, "../") {
			continue
		}
		r := atip.Resource{Kind: "path", Value: value, Access: atip.AccessWrite, Why: name}
		switch c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class {
		case atip.ClassStartup, atip.ClassSecret, atip.ClassPolicySelf, atip.ClassDevice, atip.ClassSystem, atip.ClassOutside, atip.ClassRoot:
			if !step.HarmlessFile(value) {
				s.Raise(r)
				s.Call.Resources = append(s.Call.Resources, r)
			}
		}
	}
}
