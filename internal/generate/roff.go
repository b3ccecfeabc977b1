package generate

import "strings"

// manPage is what a manual page says.
type manPage struct {
	help     Help
	synopsis string
}

// readMan reads the source of a manual page, of the man or of the mdoc macros. Only
// tagged paragraphs matter: their tags are options, and below a heading that speaks of
// commands, commands.
func readMan(source string) manPage {
	if len(source) > maxText {
		source = source[:maxText]
	}
	r := roffReader{p: parser{}}
	for line := range strings.SplitSeq(plainText(source), "\n") {
		r.line(strings.TrimRight(line, " \t\r"))
	}
	r.flush()
	r.p.h.settle()
	r.page.help = r.p.h
	return r.page
}

type roffReader struct {
	page    manPage
	p       parser
	section string
	tag     string
	body    string
	wantTag bool   // the next line is a tag
	started bool   // a paragraph has begun
	maybe   string // a paragraph that is a tag if what follows is indented
}

func (r *roffReader) line(line string) {
	if line == "" || line[0] != '.' && line[0] != '\'' {
		r.text(unroff(line))
		return
	}
	name, rest, _ := strings.Cut(strings.TrimLeft(line[1:], " \t"), " ")
	args := roffArgs(rest)
	switch name {
	case "SH", "Sh", "SS", "Ss":
		r.flush()
		r.section = strings.ToLower(unroff(strings.Join(args, " ")))
		r.wantTag = false
	case "TP", "HP":
		r.flush()
		r.wantTag = true
	case "TQ":
		r.wantTag = true
	case "IP":
		r.flush()
		if len(args) > 0 {
			r.tag = unroff(args[0])
		}
	case "It":
		r.flush()
		r.tag = mdoc(args)
	case "PP", "P", "LP", "sp", "Pp":
		r.flush()
		r.started = true
	case "RS":
		if r.maybe != "" {
			r.tag, r.maybe = r.maybe, ""
		}
	case "B", "I", "SM", "SB":
		r.text(unroff(strings.Join(args, " ")))
	case "BR", "RB", "BI", "IB", "IR", "RI":
		r.text(unroff(strings.Join(args, "")))
	case "Nm", "Fl", "Ar", "Op", "Cm", "Pa", "Li", "Ic", "Nd", "Em", "Sy", "Xr", "Ql", "Dq", "Sq":
		r.text(mdoc(append([]string{name}, args...)))
	}
}

func (r *roffReader) text(s string) {
	if s = strings.Join(strings.Fields(s), " "); s == "" {
		return
	}
	switch {
	case r.section == "name":
		if _, summary, ok := strings.Cut(" "+s, " - "); ok && r.p.h.Summary == "" {
			r.p.h.Summary = strings.TrimSuffix(strings.TrimSpace(summary), ".")
		}
	case r.section == "synopsis":
		r.page.synopsis += " " + s
	case r.wantTag:
		r.wantTag = false
		if r.tag != "" {
			s = r.tag + ", " + s
		}
		r.tag = s
	case r.tag != "":
		if len(r.body) < 200 {
			r.body += " " + s
		}
	case r.started && (s[0] == '-' || r.maybe != ""):
		r.maybe = strings.TrimPrefix(r.maybe+" "+s, " ")
	default:
		r.started = false
	}
}

// flush ends a tagged paragraph.
func (r *roffReader) flush() {
	tag, body := r.tag, strings.TrimSpace(r.body)
	r.tag, r.body, r.maybe, r.started = "", "", "", false
	switch {
	case tag == "" || strings.Contains(r.section, "example"):
	case tag[0] == '-':
		r.p.option(spaced(tag) + "  " + body)
	case strings.Contains(r.section, "command"):
		word, _, _ := strings.Cut(tag, " ")
		if commandName(word) && body != "" {
			r.p.command(word + "  " + body)
		}
	}
}

// spaced drops the spaces that would end an option's column in a help text.
func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// roffArgs splits the arguments of a macro.
func roffArgs(s string) []string {
	var out []string
	for i := 0; i < len(s); {
		switch {
		case s[i] == ' ' || s[i] == '\t':
			i++
		case s[i] == '"':
			var b strings.Builder
			for i++; i < len(s); i++ {
				if s[i] == '"' {
					if i+1 < len(s) && s[i+1] == '"' {
						i++
					} else {
						break
					}
				}
				b.WriteByte(s[i])
			}
			i++
			out = append(out, b.String())
		case strings.HasPrefix(s[i:], `\"`):
			return out
		default:
			from := i
			for i < len(s) && s[i] != ' ' && s[i] != '\t' {
				if s[i] == '\\' && i+1 < len(s) {
					i++
				}
				i++
			}
			out = append(out, s[from:min(i, len(s))])
		}
	}
	return out
}

// mdoc renders a line of semantic macros: "Fl o Ar file" is "-o file".
func mdoc(args []string) string {
	var b strings.Builder
	glue := true
	put := func(s string) {
		if !glue && b.Len() > 0 && !strings.ContainsAny(s[:1], ",.)]:;") {
			b.WriteByte(' ')
		}
		b.WriteString(s)
		glue = false
	}
	flag, close := false, 0
	for i := range args {
		switch a := args[i]; a {
		case "Fl":
			if flag {
				b.WriteByte('-')
				continue
			}
			put("-")
			flag, glue = true, true
			continue
		case "Ns", "Ap":
			glue = true
		case "Op", "Oo":
			put("[")
			glue = true
			close++
		case "Oc":
			if close > 0 {
				close--
				glue = true
				put("]")
			}
		case "Ar":
			if i+1 == len(args) {
				put("file")
			}
		case "Nm", "Cm", "Pa", "Li", "Ic", "Em", "Sy", "Xr", "Ql", "Dq", "Sq", "Xo", "Xc", "No", "Nd":
		default:
			if a = unroff(a); a != "" {
				put(a)
			}
		}
		flag = false
	}
	return b.String() + strings.Repeat("]", close)
}

// unroff removes what formats a text.
func unroff(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			break
		}
		switch c := s[i]; c {
		case '-':
			b.WriteByte('-')
		case 'e', '\\':
			b.WriteByte('\\')
		case ' ', '~', '0':
			b.WriteByte(' ')
		case '"', '#':
			return b.String()
		case 'f', '*', '(', '[', 'n', 's', 'h', 'v', 'm', 'F':
			var name string
			name, i = roffName(s, i)
			b.WriteString(roffChar(c, name))
		}
	}
	return b.String()
}

// roffName reads the name of an escape whose letter stands at i: one character, two
// after a parenthesis, or as many as brackets or quotes hold.
func roffName(s string, i int) (name string, last int) {
	letter := s[i]
	if letter != '(' && letter != '[' {
		i++
		if letter == 's' && i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
	}
	if i >= len(s) {
		return "", len(s)
	}
	switch s[i] {
	case '(':
		end := min(i+3, len(s))
		return s[i+1 : end], end - 1
	case '[', '\'':
		closing := byte(']')
		if s[i] == '\'' {
			closing = '\''
		}
		if n := strings.IndexByte(s[i+1:], closing); n >= 0 {
			return s[i+1 : i+1+n], i + 1 + n
		}
		return "", len(s)
	}
	return s[i : i+1], i
}

func roffChar(escape byte, name string) string {
	if escape != '(' && escape != '[' && escape != '*' {
		return ""
	}
	switch name {
	case "aq", "cq", "oq", "Aq":
		return "'"
	case "dq", "lq", "rq", "R":
		return `"`
	case "hy", "mi", "en", "em":
		return "-"
	case "rs":
		return `\`
	case "ti":
		return "~"
	case "ha":
		return "^"
	case "ba", "or":
		return "|"
	case "la", "lA":
		return "<"
	case "ra", "rA":
		return ">"
	}
	return ""
}
