package tools

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/prime"
	"github.com/atip-dev/atip-exec/internal/priming"
)

// skillVerb writes a SKILL.md: what an agent reads when it may need the tool.
func skillVerb(c *cli.Console, v *cli.Values) (int, error) {
	if v.Has("self") || len(v.Rest) == 0 {
		if len(v.Rest) > 0 {
			return 0, fault.New(errcode.Arguments, "skill takes a tool or --self").WithFix("choose one", "atip skill --self")
		}
		return 0, c.Text(selfSkill())
	}
	if len(v.Rest) != 1 {
		return 0, fault.New(errcode.Arguments, "skill takes one tool").WithFix("name one", "atip skill gh")
	}
	s, err := answer.DocumentedSubject(v.Rest[0])
	if err != nil {
		return 0, err
	}
	said := ""
	if v.Has("prime") {
		if said, err = primedText(v.Rest[0]); err != nil {
			return 0, err
		}
	}
	return 0, c.Text(toolSkill(s, said))
}

func primedText(tool string) (string, error) {
	agent, session := plan.Identity(caller.Here())
	raw, err := priming.Of(tool, prime.Request{AgentID: agent, SessionID: session}, caller.Here())
	if err != nil {
		return "", err
	}
	r, err := prime.Parse(raw)
	if err != nil {
		return "", err
	}
	return r.Said(), nil
}

// skillHead is the front matter. The description is what agents choose by, so it has a
// bound of 1,024 characters.
func skillHead(name, description string) string {
	var clean []byte
	for _, ch := range []byte(strings.ToLower(name)) {
		if ch >= 'a' && ch <= 'z' || ch >= '0' && ch <= '9' || ch == '-' {
			clean = append(clean, ch)
		} else {
			clean = append(clean, '-')
		}
	}
	if len(clean) > 64 {
		clean = clean[:64]
	}
	runes := []rune(answer.Plain(description))
	if len(runes) > 1024 {
		runes = append(runes[:1021], '.', '.', '.')
	}
	return "---\nname: " + string(clean) + "\ndescription: " + yamlText(string(runes)) + "\n---\n\n"
}

// yamlText is a double-quoted scalar.
func yamlText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func toolSkill(s answer.Subject, said string) string {
	var b strings.Builder
	d := s.Document()
	description := d.Description()
	description = cmp.Or(description, s.Name)
	b.WriteString(skillHead(s.Name, "Use "+s.Name+" through atip-exec. "+description))
	fmt.Fprintf(&b, "# %s\n\n%s\n\nWritten from metadata: %s, rank %s.\nRun it as `atip-exec -- %s …`; `atip-exec explain -- %s …` says what would happen and starts nothing.\n", answer.Plain(s.Name), answer.Plain(description), answer.Plain(s.Provenance.Source), s.Provenance.Rank, s.Name, s.Name)
	b.WriteString("\n## Commands\n\n")
	for _, one := range d.Commands(s.Provenance) {
		if !one.Leaf() {
			continue
		}
		flags := ""
		if list := atip.SafetyFlags(one.Effects); len(list) > 0 {
			flags = " [" + strings.Join(list, " | ") + "]"
		}
		text := one.Description
		text = cmp.Or(text, "no description")
		fmt.Fprintf(&b, "- `%s`: %s%s\n", answer.Plain(strings.Join(append([]string{s.Name}, one.Path...), " ")), answer.Plain(text), flags)
		for i, e := range one.Examples {
			if i < 3 {
				fmt.Fprintf(&b, "  - `%s`\n", answer.Plain(e))
			}
		}
	}
	if safety := d.SafetyPrompt(s.Provenance); safety != "" {
		b.WriteString("\n## Effects\n\n" + strings.TrimSpace(safety) + "\n")
	}
	b.WriteString("\n## Exit status\n\n" + exitSummary)
	if said != "" {
		b.WriteString("\n## What " + answer.Plain(s.Name) + " itself says\n\nThese are words of the tool, not of atip-exec or its user:\n\n> " + said + "\n")
	}
	return b.String()
}

const exitSummary = `The status of the command passes through. A failure of atip-exec is a JSON line on stderr with "origin":"atip-exec":
64 to 78 as in sysexits.h, 77 if nothing ran because policy denies (E2001) or approval is required (E2010), 124 at a timeout.
Running the same again after 77 changes nothing.
`

// selfSkill is the skill of atip-exec, from the table of verbs.
func selfSkill() string {
	var b strings.Builder
	root := cli.Root()
	b.WriteString(skillHead("atip-exec", "Run shell commands safely: atip-exec identifies the program, judges its declared effects by policy, confines it and redacts secrets. Use it in front of every command."))
	b.WriteString("# atip-exec\n\n" + root.Summary + "\n\n## Running commands\n\n")
	for _, e := range root.Examples {
		fmt.Fprintf(&b, "- `%s`: %s\n", e.Line, e.Help)
	}
	b.WriteString("\nFlags, left of the command:\n\n")
	for _, f := range root.Flags {
		fmt.Fprintf(&b, "- `--%s`: %s\n", f.Name, f.Help)
	}
	b.WriteString("\n## Verbs\n\n")
	for _, s := range cli.Specs() {
		if s.Verb != "" {
			fmt.Fprintf(&b, "- `%s %s`: %s\n", s.Program, s.Verb, s.Summary)
		}
	}
	b.WriteString("\n## Exit status\n\n" + exitSummary)
	agents, _ := cli.Topic("agents")
	b.WriteString("\n## For agents\n\n```text\n" + agents + "```\n")
	return b.String()
}
