package effects

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// unknownText stands in a recipe for what only make or just can tell: a parameter whose
// value nothing is known of.
const unknownText = "${_}"

// makeTargets judges the recipes that a call of make runs. The file is read as far as
// rules, recipes and plain variables go; both sides of its conditionals count.
func (c *collector) makeTargets(s *Step, dir string) {
	m := &makefile{c: c, s: s, dir: dir, vars: map[string]string{}, rules: map[string]*recipe{}, fixed: map[string]bool{}}
	for _, word := range s.Argv[1:] {
		if name, value, ok := strings.Cut(word, "="); ok && makeName(name) && strings.IndexByte(word, 0) < 0 {
			m.vars[name], m.fixed[name] = value, true
			if before := len(m.shells); strings.HasSuffix(name, "!") {
				m.shells = append(m.shells, value)
			} else if m.shellsIn(value); len(m.shells) == before {
				continue
			}
			s.RunsCode = max(s.RunsCode, policy.CodeInline) // it stands in no file
		}
	}
	found := false
	for _, text := range optionValues(s, "eval", "E") {
		s.RunsCode = max(s.RunsCode, policy.CodeInline)
		m.read(text)
		found = true
	}
	files := optionValues(s, "file", "makefile")
	if len(files) == 0 {
		files = []string{"GNUmakefile", "makefile", "Makefile"}
	}
	for _, file := range files {
		switch file {
		case "-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
			// What is fed to it is a program.
			c.note(s, sinkStdin)
			s.RunsCode = max(s.RunsCode, policy.CodeOpaque)
			if c.ctx != nil && c.ctx.stdin != nil {
				s.RunsCode = policy.CodeInline
				m.read(*c.ctx.stdin)
				found = true
			}
			continue
		}
		// The text may have written it itself.
		list := c.writers[subpath.Join(dir, file)]
		if text, ok := constantText(list); ok && len(list) > 0 {
			s.RunsCode = max(s.RunsCode, policy.CodeInline)
			m.read(text)
			found = true
		}
		for _, w := range list {
			if w.by.Call.Effects[atip.Network].Value == atip.Yes || decodes(w.by) {
				c.fileEdge(w.by, s)
			}
		}
		text, ok := c.targetFile(s, subpath.Join(dir, file))
		if !ok {
			continue
		}
		m.read(text)
		if found = true; len(optionValues(s, "file", "makefile")) == 0 {
			break
		}
	}
	if !found {
		return
	}
	var goals []string
	for _, p := range s.Call.Positionals {
		if name, _, ok := strings.Cut(p.Value, "="); strings.IndexByte(p.Value, 0) < 0 && !(ok && makeName(name)) {
			goals = append(goals, p.Value)
		}
	}
	if goal := m.vars[".DEFAULT_GOAL"]; len(goals) == 0 && goal != "" {
		goals = []string{goal}
	}
	if len(goals) == 0 && m.first != "" {
		goals = []string{m.first}
	}
	before := len(c.out.Hidden.Steps)
	defer func() {
		if s.RunsCode == policy.CodeInline && removes(c.out.Hidden.Steps[before:]) {
			s.RunsCode = policy.CodeOpaque // it stands in no file of the workspace
		}
	}()
	// What $(shell …) holds runs while the file is read, whatever the goal is.
	c.target(s, dir, "make\x00"+dir+"\x00"+strings.Join(files, "\x00"), m.shells)
	if hasOption(s, "just-print", "question", "touch", "help", "version") {
		return
	}
	for _, name := range reachable(goals, m.rules) {
		var lines []string
		for _, line := range m.rules[name].lines {
			lines = append(lines, m.expand(line, name, 0))
		}
		c.target(s, dir, "make\x00"+dir+"\x00"+strings.Join(files, "\x00")+"\x00"+name+"\x00"+strings.Join(s.Argv[1:], "\x00"), lines)
	}
}

// makefile is what was read of one.
type makefile struct {
	c      *collector
	s      *Step
	dir    string
	vars   map[string]string
	fixed  map[string]bool // given on the command line, which the file cannot change
	rules  map[string]*recipe
	first  string
	shells []string // texts that run when the file is read
	files  int
}

func (m *makefile) read(text string) {
	if m.files++; m.files > 8 {
		return
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var open []*recipe // those that a recipe line belongs to
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
				r.lines = append(r.lines, recipeText(line))
			}
			continue
		}
		line, _, _ = strings.Cut(line, "#")
		m.shellsIn(line)
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if m.directive(line) || m.assignment(line) {
			continue
		}
		open = m.rule(line)
	}
}

// recipeText is a recipe line without what make itself reads of it.
func recipeText(line string) string {
	return strings.TrimLeft(strings.TrimLeft(line, "\t "), "@-+ \t")
}

// directive handles the words that are neither a rule nor a variable.
func (m *makefile) directive(line string) bool {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "include", "-include", "sinclude":
		for _, file := range strings.Fields(m.expand(rest, "", 0)) {
			if !strings.Contains(file, unknownText) {
				if text, ok := m.c.targetFile(m.s, subpath.Join(m.dir, file)); ok {
					m.read(text)
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
func (m *makefile) assignment(line string) bool {
	for _, word := range [...]string{"export ", "override ", "private "} {
		line = strings.TrimPrefix(line, word)
	}
	i := strings.IndexByte(line, '=')
	if i < 0 {
		return false
	}
	name := strings.TrimRight(line[:i], ":?+! \t")
	if !makeName(name) {
		return false
	}
	op, value := line[len(name):i], strings.TrimSpace(line[i+1:])
	switch {
	case m.fixed[name]:
	case strings.HasSuffix(op, "!"):
		m.shells = append(m.shells, m.expand(value, "", 0))
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

func makeName(s string) bool {
	return s != "" && !strings.ContainsAny(s, " \t:#$()=/%") && strings.IndexByte(s, 0) < 0
}

// rule reads TARGETS: DEPS and returns what the lines below belong to.
func (m *makefile) rule(line string) []*recipe {
	i := ruleColon(line)
	if i < 0 {
		return nil
	}
	rest := strings.TrimLeft(line[i:], ":")
	rest, inline, hasInline := strings.Cut(rest, ";")
	rest = strings.ReplaceAll(rest, "|", " ")
	var out []*recipe
	for _, name := range strings.Fields(m.expand(line[:i], "", 0)) {
		r := m.rules[name]
		if r == nil {
			r = &recipe{}
			m.rules[name] = r
		}
		if m.first == "" && !strings.HasPrefix(name, ".") && !strings.ContainsRune(name, '%') {
			m.first = name
		}
		r.deps = append(r.deps, strings.Fields(m.expand(rest, name, 0))...)
		if hasInline {
			r.lines = append(r.lines, recipeText(inline))
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
func (m *makefile) shellsIn(line string) {
	for {
		i := strings.Index(line, "shell ")
		if i < 0 {
			return
		}
		if i >= 2 && (line[i-1] == '(' || line[i-1] == '{') && line[i-2] == '$' {
			inside, _ := untilClose(line[i-1:])
			m.shells = append(m.shells, m.expand(strings.TrimPrefix(inside, "shell "), "", 0))
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

// expand replaces references to variables by their text, and what only make can tell by
// unknownText.
func (m *makefile) expand(s, target string, depth int) string {
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
		if b.Len() > maxScript {
			return unknownText
		}
	}
	return b.String()
}

func (m *makefile) reference(name, target string, depth int) string {
	switch {
	case depth > 8:
	case name == "MAKE":
		return "make"
	case name == "CURDIR", name == "PWD":
		return m.dir
	case makeName(name):
		if value, ok := m.vars[name]; ok {
			return m.expand(value, target, depth+1)
		}
		switch name {
		case "RM":
			return "rm -f"
		case "CC", "CXX", "AR", "LD", "HOME", "SHELL", "TMPDIR", "USER":
			if name == "HOME" {
				return m.c.site.Dirs.Home
			}
			return unknownText
		}
		if _, set := m.c.site.lookupEnv(name); set || len(name) == 1 {
			return unknownText
		}
		return "" // as make does with what nobody set
	case strings.HasPrefix(name, "wildcard ") || strings.HasPrefix(name, "strip ") || strings.HasPrefix(name, "abspath ") || strings.HasPrefix(name, "realpath "):
		_, arg, _ := strings.Cut(name, " ")
		return filepath.Clean(strings.TrimSpace(m.expand(arg, target, depth+1)))
	}
	return unknownText
}

// optionValues are the values that a call gives an option.
func optionValues(s *Step, names ...string) []string {
	var out []string
	for _, o := range s.Call.Options {
		if slices.Contains(names, o.Name) && o.Value != "" && strings.IndexByte(o.Value, 0) < 0 {
			out = append(out, o.Value)
		}
	}
	return out
}

// usesOption reports whether one of these options is there, in any reading of the words.
func usesOption(s *Step, names ...string) bool {
	return slices.ContainsFunc(s.Call.Options, func(o atip.OptionUse) bool { return slices.Contains(names, o.Name) })
}

// hasOption reports whether one of these options is there for sure.
func hasOption(s *Step, names ...string) bool {
	for _, o := range s.Call.Options {
		if slices.Contains(names, o.Name) && !o.Maybe {
			return true
		}
	}
	return false
}

// justTargets judges the recipes that a call of just runs.
func (c *collector) justTargets(s *Step, dir string) {
	text, path, ok := c.justfile(s, dir)
	if !ok {
		return
	}
	rules, first := readJustfile(text)
	var goals []string
	for _, p := range s.Call.Positionals {
		goals = append(goals, p.Value)
	}
	if len(goals) == 0 && first != "" {
		goals = []string{first}
	}
	for _, name := range reachable(goals, rules) {
		r := rules[name]
		lines := r.lines
		if len(lines) > 0 && strings.HasPrefix(lines[0], "#!") {
			// One script in its own language.
			script := strings.Join(lines, "\n")
			if !ShellScript(script) {
				continue
			}
			lines = []string{script}
		}
		c.target(s, filepath.Dir(path), "just\x00"+path+"\x00"+name, lines)
	}
}

// justfile finds the file as just does: the one named, else the nearest above.
func (c *collector) justfile(s *Step, dir string) (text, path string, ok bool) {
	if named := optionValues(s, "justfile"); len(named) > 0 {
		path = subpath.Join(dir, named[len(named)-1])
		text, ok = c.targetFile(s, path)
		return text, path, ok
	}
	for ; ; dir = filepath.Dir(dir) {
		for _, name := range [...]string{"justfile", "Justfile", ".justfile"} {
			path = filepath.Join(dir, name)
			if text, ok = c.targetFile(s, path); ok {
				return text, path, true
			}
		}
		if dir == c.site.Workspace || filepath.Dir(dir) == dir {
			return "", "", false
		}
	}
}

// readJustfile reads recipes: a header that ends in a colon and its dependencies, and
// indented lines.
func readJustfile(text string) (rules map[string]*recipe, first string) {
	rules = map[string]*recipe{}
	var open *recipe
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			if open != nil && strings.TrimSpace(line) != "" {
				open.lines = append(open.lines, interpolated(strings.TrimLeft(strings.TrimSpace(line), "@-")))
			}
			continue
		}
		if strings.TrimSpace(line) == "" {
			continue
		}
		open = nil
		head, deps, ok := strings.Cut(line, ":")
		words := strings.Fields(head)
		if !ok || len(words) == 0 || strings.HasPrefix(deps, "=") || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "[") {
			continue
		}
		name := strings.TrimPrefix(words[0], "@")
		open = &recipe{}
		open.deps = strings.Fields(strings.NewReplacer("&&", " ", "(", " ", ")", " ").Replace(deps))
		rules[name] = open
		if first == "" {
			first = name
		}
	}
	return rules, first
}

// interpolated replaces {{…}}, which only just can tell.
func interpolated(line string) string {
	for {
		i := strings.Index(line, "{{")
		j := strings.Index(line, "}}")
		if i < 0 || j < i {
			return line
		}
		line = line[:i] + unknownText + line[j+2:]
	}
}
