package atip

import (
	"strconv"
	"strings"
)

// SafetyPrompt is text for a model's system prompt: the patterns of a tool and which of
// its commands do what cannot be undone.
func (d *Document) SafetyPrompt(p Provenance) string {
	var b strings.Builder
	name := d.Name()
	b.WriteString("# " + name + "\n")
	if text := d.Description(); text != "" {
		b.WriteString(oneLine(text) + "\n")
	}
	commands := d.Commands(p)
	for _, s := range [...]struct {
		title string
		has   func(Effects) bool
	}{
		{"Destroys data for good; ask before each use", func(e Effects) bool { return e[Destructive].Value == Yes }},
		{"Cannot be undone", func(e Effects) bool { return e[Reversible].Value == No }},
		{"Costs money", func(e Effects) bool { return e[Billable].Value == Yes }},
		{"Deletes files", func(e Effects) bool { return e[Delete].Value == Yes }},
		{"Writes files", func(e Effects) bool { return e[Write].Value == Yes }},
		{"Uses the network", func(e Effects) bool { return e[Network].Value == Yes }},
		{"Not declared: treat as destructive", func(e Effects) bool { return e[Destructive].Value == Unknown }},
	} {
		var lines []string
		for i := range commands {
			if c := &commands[i]; c.Leaf() && s.has(c.Effects) {
				lines = append(lines, "- "+oneLine(strings.Join(append([]string{name}, c.Path...), " ")))
			}
		}
		if len(lines) > 0 {
			b.WriteString("\n## " + s.title + "\n" + strings.Join(lines, "\n") + "\n")
		}
	}
	d.patternText(&b)
	if d.partial() {
		b.WriteString("\nOther commands exist that are not listed here; treat them as destructive.\n")
	}
	return b.String()
}

func (d *Document) patternText(b *strings.Builder) {
	patterns := d.root().get("patterns")
	if patterns.len() == 0 {
		return
	}
	b.WriteString("\n## Patterns\n")
	patterns.items(func(_ int, p val) {
		b.WriteString("- " + oneLine(p.get("name").str()) + ": " + oneLine(p.get("description").str()) + "\n")
		p.get("steps").items(func(n int, s val) {
			b.WriteString("  " + strconv.Itoa(n+1) + ". " + oneLine(s.get("command").str()))
			if text := s.get("description").str(); text != "" {
				b.WriteString(" (" + oneLine(text) + ")")
			}
			b.WriteByte('\n')
		})
	})
}

// oneLine keeps text of a document from starting a section of its own.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
