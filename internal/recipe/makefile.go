package recipe

import (
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/subpath"
)

// unknownText stands in a recipe for what only make can tell: a parameter whose
// value nothing is known of.
const unknownText = "${_}"

// Makefile is what was read of one.
type Makefile struct {
	dir, home string
	Included  func(path string) (text string, ok bool) // of a file that it includes
	IsSet     func(variable string) bool               // in the environment of make

	vars   map[string]string
	fixed  map[string]bool // given on the command line, which the file cannot change
	rules  map[string]*Recipe
	first  string
	Shells []string // texts that run when the file is read
	files  int
}

// NewMakefile is an empty one that make reads in dir.
func NewMakefile(dir, home string) *Makefile {
	return &Makefile{
		dir: dir, home: home, vars: map[string]string{}, rules: map[string]*Recipe{}, fixed: map[string]bool{},
		Included: func(string) (string, bool) { return "", false }, IsSet: func(string) bool { return false },
	}
}

// Read adds what text says.
func (m *Makefile) Read(text string) {
	if m.files++; m.files > 8 {
		return
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var open []*Recipe // those that a recipe line belongs to
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		recipeLine := strings.HasPrefix(line, "\t") && len(open) > 0
		for strings.HasSuffix(line, "\\") && i+1 < len(lines) {
			i++
			next := lines[i]
			if recipeLine {
				// The shell sees the line break, without the tab that make wants.
				line += "\n" + strings.TrimPrefix(next, "\t")
			} else {
				line = strings.TrimSuffix(line, "\\") + " " + strings.TrimSpace(next)
			}
		}
		if recipeLine {
			for _, r := range open {
				r.Lines = append(r.Lines, recipeText(line))
			}
			continue
		}
		line, _, _ = strings.Cut(line, "#")
		m.shellsIn(line)
		line = strings.TrimSpace(line)
		if line == "" || m.directive(line) || m.assignment(line) {
			continue
		}
		open = m.rule(line)
	}
}

// Fix sets a variable that the files cannot change, and reports whether its value runs commands.
func (m *Makefile) Fix(name, value string) bool {
	m.vars[name], m.fixed[name] = value, true
	before := len(m.Shells)
	if strings.HasSuffix(name, "!") {
		m.Shells = append(m.Shells, value)
	} else {
		m.shellsIn(value)
	}
	return len(m.Shells) > before
}

// Goals are the targets that make reaches: those asked for, else the default one.
func (m *Makefile) Goals(asked []string) []string {
	if goal := m.vars[".DEFAULT_GOAL"]; len(asked) == 0 && goal != "" {
		asked = []string{goal}
	}
	if len(asked) == 0 && m.first != "" {
		asked = []string{m.first}
	}
	return Reachable(asked, m.rules)
}

// LinesOf are the commands of a target, with its variables replaced.
func (m *Makefile) LinesOf(name string) (lines []string) {
	for _, line := range m.rules[name].Lines {
		lines = append(lines, m.expand(line, name, 0))
	}
	return lines
}

// recipeText is a recipe line without what make itself reads of it.
func recipeText(line string) string {
	return strings.TrimLeft(strings.TrimLeft(line, "\t "), "@-+ \t")
}

// directive handles the words that are neither a rule nor a variable.
func (m *Makefile) directive(line string) bool {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "include", "-include", "sinclude":
		for _, file := range strings.Fields(m.expand(rest, "", 0)) {
			if !strings.Contains(file, unknownText) {
				if text, ok := m.Included(subpath.Join(m.dir, file)); ok {
					m.Read(text)
				}
			}
		}
	case "ifeq", "ifneq", "ifdef", "ifndef", "else", "endif", "vpath", "unexport", "undefine", "endef":
	case "define":
		name, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		delete(m.vars, name) // its lines are read as they come
	default:
		return false
	}
	return true
}

// assignment reads NAME = VALUE in all its forms.
func (m *Makefile) assignment(line string) bool {
	for _, word := range [...]string{"export ", "override ", "private "} {
		line = strings.TrimPrefix(line, word)
	}
	i := strings.IndexByte(line, '=')
	if i < 0 {
		return false
	}
	name := strings.TrimRight(line[:i], ":?+! \t")
	if !MakeName(name) {
		return false
	}
	op, value := line[len(name):i], strings.TrimSpace(line[i+1:])
	switch {
	case m.fixed[name]:
	case strings.HasSuffix(op, "!"):
		m.Shells = append(m.Shells, m.expand(value, "", 0))
		m.vars[name] = unknownText
	case strings.HasSuffix(op, "+"):
		m.vars[name] += " " + value
	case strings.HasSuffix(op, "?"):
		if _, ok := m.vars[name]; !ok {
			m.vars[name] = value
		}
	default:
		m.vars[name] = value
	}
	return true
}

func MakeName(s string) bool {
	return s != "" && !strings.ContainsAny(s, " \t:#$()=/%") && strings.IndexByte(s, 0) < 0
}

// rule reads TARGETS: DEPS and returns what the lines below belong to.
func (m *Makefile) rule(line string) []*Recipe {
	i := ruleColon(line)
	if i < 0 {
		return nil
	}
	rest := strings.TrimLeft(line[i:], ":")
	rest, inline, hasInline := strings.Cut(rest, ";")
	rest = strings.ReplaceAll(rest, "|", " ")
	var out []*Recipe
	for _, name := range strings.Fields(m.expand(line[:i], "", 0)) {
		r := m.rules[name]
		if r == nil {
			r = &Recipe{}
			m.rules[name] = r
		}
		if m.first == "" && !strings.HasPrefix(name, ".") && !strings.ContainsRune(name, '%') {
			m.first = name
		}
		r.deps = append(r.deps, strings.Fields(m.expand(rest, name, 0))...)
		if hasInline {
			r.Lines = append(r.Lines, recipeText(inline))
		}
		out = append(out, r)
	}
	return out
}

// ruleColon finds the colon of a rule outside of references to variables.
func ruleColon(line string) int {
	depth := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth--
		case ':':
			if depth <= 0 {
				return i
			}
		}
	}
	return -1
}

// shellsIn collects the texts of $(shell …) in a line.
func (m *Makefile) shellsIn(line string) {
	for {
		i := strings.Index(line, "shell ")
		if i < 0 {
			return
		}
		if i >= 2 && (line[i-1] == '(' || line[i-1] == '{') && line[i-2] == '$' {
			inside, _ := untilClose(line[i-1:])
			m.Shells = append(m.Shells, m.expand(strings.TrimPrefix(inside, "shell "), "", 0))
		}
		line = line[i+len("shell "):]
	}
}

// untilClose splits what begins with a bracket at the one that closes it.
func untilClose(s string) (inside, rest string) {
	closing := map[byte]byte{'(': ')', '{': '}'}[s[0]]
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case s[0]:
			depth++
		case closing:
			if depth--; depth == 0 {
				return s[1:i], s[i+1:]
			}
		}
	}
	return s[1:], ""
}

// maxExpanded bounds what the variables of one line may grow to.
const maxExpanded = 256 << 10

// expand replaces references to variables by their text, and what only make can tell by
// unknownText.
func (m *Makefile) expand(s, target string, depth int) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch ch := s[i]; ch {
		case '$':
			b.WriteByte('$')
		case '(', '{':
			inside, rest := untilClose(s[i:])
			b.WriteString(m.reference(inside, target, depth))
			i = len(s) - len(rest) - 1
		case '@':
			if target != "" && !strings.ContainsRune(target, '%') {
				b.WriteString(target)
			} else {
				b.WriteString(unknownText)
			}
		default:
			b.WriteString(m.reference(string(ch), target, depth))
		}
		if b.Len() > maxExpanded {
			return unknownText
		}
	}
	return b.String()
}

func (m *Makefile) reference(name, target string, depth int) string {
	switch {
	case depth > 8:
	case name == "MAKE":
		return "make"
	case name == "CURDIR", name == "PWD":
		return m.dir
	case MakeName(name):
		if value, ok := m.vars[name]; ok {
			return m.expand(value, target, depth+1)
		}
		switch name {
		case "RM":
			return "rm -f"
		case "CC", "CXX", "AR", "LD", "HOME", "SHELL", "TMPDIR", "USER":
			if name == "HOME" {
				return m.home
			}
			return unknownText
		}
		if m.IsSet(name) || len(name) == 1 {
			return unknownText
		}
		return "" // as make does with what nobody set
	case strings.HasPrefix(name, "wildcard ") || strings.HasPrefix(name, "strip ") || strings.HasPrefix(name, "abspath ") || strings.HasPrefix(name, "realpath "):
		_, arg, _ := strings.Cut(name, " ")
		return filepath.Clean(strings.TrimSpace(m.expand(arg, target, depth+1)))
	}
	return unknownText
}
