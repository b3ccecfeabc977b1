package registries

import (
	"slices"
	"sort"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// shownCommand is one command with its effects: what it may do with any words, and
// what it does without options.
type shownCommand struct {
	atip.Command
	Effects map[string]atip.Fact `json:"effects"`
	Plain   map[string]atip.Fact `json:"withoutOptions,omitempty"`
}

// ShowVerb is `atip show`.
func ShowVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) == 0 {
		return 0, fault.New(errcode.Arguments, "show needs a tool").WithFix("name a tool, a digest or a document", "atip show git push")
	}
	s, err := answer.DocumentedSubject(v.Rest[0])
	if err != nil {
		return 0, err
	}
	path := v.Rest[1:]
	commands := []shownCommand{}
	for _, one := range s.Document().Commands(s.Provenance) {
		if !under(one.Path, path) {
			continue
		}
		shown := shownCommand{Command: one, Effects: one.Effects.Map()}
		if one.Plain != one.Effects {
			shown.Plain = one.Plain.Map()
		}
		commands = append(commands, shown)
	}
	if len(commands) == 0 {
		return 0, fault.New(errcode.NoInputFile, s.Name+" has no command "+strings.Join(path, " ")).WithFix("`atip show "+s.Name+"` lists them", "")
	}
	warnings := append([]string{}, s.Found.Warnings...)
	for _, f := range s.Document().Warnings() {
		warnings = append(warnings, f.Message+" (at "+f.Pointer+")")
	}
	lost := s.Found.Lost
	if lost == nil {
		lost = []atip.Provenance{}
	}
	if c.Documents() {
		return 0, c.Document(map[string]any{"kind": "atip-exec.show/1", "tool": s.Name, "version": s.Document().Version(), "description": s.Document().Description(),
			"executable": map[string]any{"path": s.Path, "sha256": s.Digest}, "metadata": s.Provenance, "lost": lost, "warnings": warnings,
			"partial": s.Document().Partial(), "commands": commands})
	}
	commands, left := answer.Most(v, commands)
	return 0, c.Text(showText(s, commands, warnings) + answer.LeftOutLine(left))
}

func under(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

func showText(s answer.Subject, commands []shownCommand, warnings []string) string {
	var b strings.Builder
	d := s.Document()
	b.WriteString(answer.Plain(strings.TrimSpace(s.Name+" "+d.Version())+"  "+d.Description()) + "\n")
	if s.Path != "" {
		b.WriteString("  executable  " + answer.Plain(s.Path) + "\n              sha256 " + s.Digest + "\n")
	}
	p := s.Provenance
	b.WriteString("  metadata    " + answer.Plain(p.Source) + ", rank " + p.Rank.String() + ", bound by " + p.Binding + "\n")
	for _, l := range s.Found.Lost {
		b.WriteString("  not used    " + answer.Plain(l.Source) + ", rank " + l.Rank.String() + "\n")
	}
	for _, w := range warnings {
		b.WriteString("  warning     " + answer.Plain(w) + "\n")
	}
	for _, one := range commands {
		name := strings.Join(append([]string{s.Name}, one.Path...), " ")
		if one.Bare {
			name += "  (without a subcommand)"
		}
		b.WriteString(answer.Plain(name) + "\n")
		if len(one.Path) > 0 && one.Description != "" {
			b.WriteString("    " + answer.Plain(one.Description) + "\n")
		}
		b.WriteString("    may: " + effectList(one.Effects, true) + "\n")
		if u := effectList(one.Effects, false); u != "none" {
			b.WriteString("    unknown: " + u + "\n")
		}
		if len(one.Execs) > 0 {
			b.WriteString("    starts: " + answer.Plain(strings.Join(one.Execs, " ")) + "\n")
		}
		if f := one.Fetch; f != nil && len(f.As) > 0 {
			b.WriteString("    fetches first, once: as " + answer.Plain(strings.Join(f.As, " ")) + "\n")
		} else if f != nil {
			b.WriteString("    fetches first: " + answer.Plain(strings.Join(f.Words, " ")+", from "+strings.Join(f.Hosts, " ")+", with "+strings.Join(slices.Concat(f.Inputs, f.Files), " ")) + "\n")
		}
	}
	return b.String()
}

// effectList names the dangerous effects that are stated, or those that are unknown.
func effectList(effects map[string]atip.Fact, stated bool) string {
	var out []string
	for key, f := range effects {
		e, _ := atip.EffectByKey(key)
		switch {
		case stated && f.Value == e.Dangerous():
			out = append(out, dangerName(e))
		case !stated && f.Value == atip.Unknown:
			out = append(out, key)
		}
	}
	if len(out) == 0 {
		return "none"
	}
	sort.Strings(out)
	return strings.Join(out, ", ")
}

func dangerName(e atip.Effect) string {
	switch e {
	case atip.Reversible:
		return "irreversible"
	case atip.Idempotent:
		return "not idempotent"
	}
	return e.String()
}
