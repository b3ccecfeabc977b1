package tools

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/atip-dev/atip-exec/docs"
	"github.com/atip-dev/atip-exec/internal/cli"
)

// formatPage is the manual page of a file format: a section of a document.
type formatPage struct {
	name    string
	summary string
	doc     string
	heading string // "" for the whole document
}

// formatPages are the pages of section 5. Their text stands in docs/ and nowhere else.
func formatPages() []formatPage {
	return []formatPage{
		{"atip-policy", "policies: which commands are allowed, confirmed or denied", "policy.md", ""},
		{"atip-metadata", "metadata of a tool: commands, options and effects", "metadata.md", ""},
		{"atip-config", "config.json: how tools are looked for and primed", "metadata.md", "`config.json`"},
		{"atip-registries", "registries.json, and registries of metadata", "registries.md", ""},
		{"atip-lock", "lock.json: which files and documents tools are", "registries.md", "Locks"},
		{"atip-approvals-lock", "approvals.lock: what a CI system may run", "approvals.md", "In CI"},
		{"atip-delegation", "tokens that give a subagent less than you have", "delegation.md", ""},
		{"atip-runfile", "Runfile: functions for agents", "agents.md", "Runfile"},
		{"atip-plan", "the document that --dry-run and explain print", "plan.md", ""},
		{"atip-output", "envelope, events and errors of a run", "output.md", ""},
		{"atip-status", "the document of --status-file and --status-fd", "output.md", "Status, `--status-file FILE` and `--status-fd N`"},
		{"atip-audit", "audit records and reports", "output.md", "Audit records and reports"},
	}
}

// manFormat is one page of section 5.
func manFormat(p formatPage) (string, error) {
	raw, err := docs.Files.ReadFile(p.doc)
	if err != nil {
		return "", err
	}
	text, level := string(raw), 1
	if p.heading != "" {
		if text, level = section(text, p.heading); level == 0 {
			return "", fmt.Errorf("%s has no section %q", p.doc, p.heading)
		}
	}
	r := roffWriter{level: level}
	r.out.WriteString(".TH " + roff(strings.ToUpper(p.name)) + " 5 \"\" \"atip-exec " + roff(cli.Version) + "\"\n.SH NAME\n" + roff(p.name) + " \\- " + roff(p.summary) + "\n")
	if !strings.HasPrefix(strings.TrimSpace(text), "#") {
		r.out.WriteString(".SH DESCRIPTION\n")
	}
	r.markdown(text)
	r.out.WriteString(".SH SEE ALSO\n")
	others := []string{"atip\\-exec(1)", "atip(1)"}
	for _, other := range formatPages() {
		if other.name != p.name {
			others = append(others, roff(other.name)+"(5)")
		}
	}
	r.out.WriteString(strings.Join(others, ", ") + "\n")
	return r.out.String(), nil
}

// section is what stands below a heading, and the level of that; 0 if there is no such heading.
func section(text, heading string) (string, int) {
	lines := strings.Split(text, "\n")
	start, level := 0, 0
	fenced := false
	for i, line := range lines {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		n := headingLevel(line)
		switch {
		case fenced || n == 0:
		case level > 0 && n <= level:
			return strings.Join(lines[start:i], "\n"), level
		case level == 0 && strings.TrimSpace(line[n:]) == heading:
			start, level = i+1, n
		}
	}
	if level == 0 {
		return "", 0
	}
	return strings.Join(lines[start:], "\n"), level
}

// headingLevel counts the # of a heading.
func headingLevel(line string) int {
	n := len(line) - len(strings.TrimLeft(line, "#"))
	if n > 0 && n < len(line) && line[n] == ' ' {
		return n
	}
	return 0
}

// roffWriter turns the Markdown that our documents use into requests of man(7).
type roffWriter struct {
	out   strings.Builder
	level int // of the heading above the text
}

func (r *roffWriter) markdown(text string) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		switch n := headingLevel(line); {
		case strings.TrimSpace(line) == "":
			i++
		case n > 0:
			switch n - r.level {
			case 0: // the title of the whole document; its first lines follow
				r.out.WriteString(".SH DESCRIPTION\n")
			case 1:
				r.out.WriteString(".SH " + strings.ToUpper(plainInline(line[n+1:])) + "\n")
			default:
				r.out.WriteString(".SS " + plainInline(line[n+1:]) + "\n")
			}
			i++
		case strings.HasPrefix(line, "```"):
			i++
			r.out.WriteString(".PP\n.RS 4\n.nf\n")
			for ; i < len(lines) && !strings.HasPrefix(lines[i], "```"); i++ {
				r.out.WriteString(code(lines[i]) + "\n")
			}
			i++
			r.out.WriteString(".fi\n.RE\n")
		case strings.HasPrefix(line, "|"):
			for row := 0; i < len(lines) && strings.HasPrefix(lines[i], "|"); i, row = i+1, row+1 {
				if row >= 2 { // a header and a line of dashes
					r.row(lines[i])
				}
			}
		default:
			i = r.paragraph(lines, i)
		}
	}
}

// paragraph writes a paragraph or an item of a list, with the lines that belong to it.
func (r *roffWriter) paragraph(lines []string, i int) int {
	item, rest := listItem(lines[i])
	joined := []string{rest}
	for i++; i < len(lines); i++ {
		next, _ := listItem(lines[i])
		if strings.TrimSpace(lines[i]) == "" || next != "" || headingLevel(lines[i]) > 0 || strings.HasPrefix(lines[i], "```") || strings.HasPrefix(lines[i], "|") {
			break
		}
		joined = append(joined, strings.TrimSpace(lines[i]))
	}
	if item == "" {
		r.out.WriteString(".PP\n")
	} else {
		r.out.WriteString(".IP " + item + " 4\n")
	}
	r.out.WriteString(inline(strings.Join(joined, "\n")) + "\n")
	return i
}

// listItem is the mark of an item, "" for other text, and the text.
func listItem(line string) (mark, text string) {
	if rest, ok := strings.CutPrefix(line, "- "); ok {
		return `\(bu`, rest
	}
	if number, rest, ok := strings.Cut(line, ". "); ok && number != "" && strings.Trim(number, "0123456789") == "" {
		return number + ".", rest
	}
	return "", line
}

// row writes a row of a table: the first cell names what the others say.
func (r *roffWriter) row(line string) {
	const escaped = "\x00"
	line = strings.Trim(strings.ReplaceAll(strings.TrimSpace(line), `\|`, escaped), "|")
	var cells []string
	for _, cell := range strings.Split(line, "|") {
		if cell = strings.TrimSpace(strings.ReplaceAll(cell, escaped, "|")); cell != "" {
			cells = append(cells, inline(cell))
		}
	}
	if len(cells) > 0 {
		r.out.WriteString(".TP\n" + cells[0] + "\n" + strings.Join(cells[1:], "\n.br\n") + "\n")
	}
}

// code is a line as it stands.
func code(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "\\(ga", "'", `\(aq`).Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	return line
}

// inline writes code and emphasis of a text as fonts, and links as what they show.
func inline(text string) string {
	links := regexp.MustCompile(`\[([^][]+)\]\(([^()\s]+)\)`)
	text = links.ReplaceAllStringFunc(text, func(m string) string {
		g := links.FindStringSubmatch(m)
		if strings.Contains(g[2], "://") {
			return g[1] + " <" + g[2] + ">"
		}
		return g[1]
	})
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			b.WriteString(`\fB` + code(part) + `\fR`)
			continue
		}
		part = code(part)
		for mark, font := 0, ""; ; mark++ {
			font = `\fB`
			if mark%2 == 1 {
				font = `\fR`
			}
			before, after, found := strings.Cut(part, "**")
			if !found {
				break
			}
			part = before + font + after
		}
		b.WriteString(part)
	}
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// plainInline is the text of a heading, without fonts.
func plainInline(text string) string {
	return strings.NewReplacer(`\fB`, "", `\fR`, "").Replace(inline(text))
}
