package generate

import (
	"slices"
	"strings"
)

// option reads "-o, --output FILE  Where to write".
func (p *parser) option(body string) {
	head, text := columnsOf(body)
	o := Option{Description: text}
	rest := head
	for {
		flag, negated, after := cutFlag(rest)
		if flag == "" {
			break
		}
		o.Flags = append(o.Flags, flag)
		if negated {
			o.Flags = append(o.Flags, "--no-"+strings.TrimPrefix(flag, "--"))
		}
		var value string
		value, rest = cutValue(after)
		o.value(value)
		if rest == "" {
			break
		}
	}
	if len(o.Flags) == 0 || len(p.h.Options) >= maxEntries {
		return
	}
	p.h.Options = append(p.h.Options, o)
	p.last = &p.h.Options[len(p.h.Options)-1]
	p.lastCol = 3
}

// cutFlag takes the first flag of a list.
func cutFlag(s string) (flag string, negated bool, rest string) {
	s = strings.TrimLeft(s, " ,|/")
	if rest, ok := strings.CutPrefix(s, "--[no-]"); ok {
		s, negated = "--"+rest, true
	}
	i := 0
	for i < len(s) && s[i] == '-' && i < 2 {
		i++
	}
	dashes := i
	for i < len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '?' && dashes == 1 || i > dashes && strings.IndexByte("-_.:+", c) >= 0) {
			break
		}
		i++
	}
	if dashes == 0 || i == dashes || i > 80 {
		return "", false, ""
	}
	flag = strings.TrimRight(s[:i], ".:")
	return flag, negated, s[len(flag):]
}

// cutValue takes what stands between a flag and the next one: its metavar.
func cutValue(s string) (value, rest string) {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '[', '<', '{', '(':
			depth++
		case ']', '>', '}', ')':
			depth--
		case ',', '|', '/', ' ':
			next := strings.TrimLeft(s[i:], " ,|/")
			if depth <= 0 && strings.HasPrefix(next, "-") {
				return strings.TrimSpace(s[:i]), next
			}
		}
	}
	return strings.TrimSpace(s), ""
}

// value reads a metavar: "=FILE", "<FILE>", "[=WHEN]", "{a,b}", "string".
func (o *Option) value(v string) {
	v = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "..."))
	if v == "" {
		return
	}
	switch {
	case strings.HasPrefix(v, "[=") || strings.HasPrefix(v, "[<") || strings.HasPrefix(v, "["):
		if inside := strings.Trim(v, "[]"); !strings.HasPrefix(v, "[=") && strings.Contains(inside, "|") {
			o.Enum, o.Arity = words(inside, "|"), One // click: [a|b]
			return
		}
		// An optional value may be the next word or must be attached: the text of GNU
		// says which, others do not.
		if strings.HasPrefix(v, "[=") {
			o.Arity = Attached
		} else {
			o.Arity = Unknown
		}
		o.Metavar = strings.Trim(v, "[]=<>")
	default:
		v = strings.TrimPrefix(v, "=")
		if inside, ok := strings.CutPrefix(v, "{"); ok {
			o.Enum = words(strings.TrimSuffix(inside, "}"), ",")
		}
		if !strings.ContainsAny(v, " ") || strings.HasPrefix(v, "<") || strings.HasPrefix(v, "{") {
			o.Arity = One
		}
		o.Metavar = strings.Trim(v, "<>{}")
	}
}

func words(s, separator string) []string {
	var out []string
	for w := range strings.SplitSeq(s, separator) {
		if w = strings.TrimSpace(w); w != "" && len(w) <= 64 {
			out = append(out, w)
		}
	}
	return out
}

// settle decides on options without a metavar: frameworks print one wherever a value
// is taken, hand-written texts do not.
func (h *Help) settle() {
	for i := range h.Options {
		o := &h.Options[i]
		o.enumFromText()
		if o.Arity == Unknown && o.Metavar == "" && (h.Framework != "" || isHelp(o.Flags)) {
			o.Arity = None
		}
	}
}

func isHelp(flags []string) bool {
	return slices.ContainsFunc(flags, func(f string) bool { return f == "--help" || f == "--version" })
}

// enumFromText finds the values that clap and cobra print in the description.
func (o *Option) enumFromText() {
	if o.Arity != One || o.Enum != nil {
		return
	}
	if _, list, ok := strings.Cut(o.Description, "[possible values: "); ok {
		if list, _, ok := strings.Cut(list, "]"); ok {
			o.Enum = words(list, ",")
		}
	}
}
