package atip

import (
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Pattern is a sequence of commands that a document recommends (ATIP 0.6 section 3.9).
type Pattern struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Tags        []string   `json:"tags,omitempty"`
	Executable  bool       `json:"executable"` // false, the default: advice, not to be run
	Variables   []Variable `json:"variables"`
	Steps       []Step     `json:"steps"`
}

// Variable is a place in the steps that the caller fills. Those that steps name and the
// pattern does not declare are strings.
type Variable struct {
	Name        string   `json:"name"`
	Type        string   `json:"type,omitempty"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Default     string   `json:"default,omitempty"`
	HasDefault  bool     `json:"-"`
}

// Step is one command of a pattern.
type Step struct {
	Command     string `json:"command"`
	Description string `json:"description,omitempty"`
}

// Patterns lists the patterns of a document.
func (d *Document) Patterns() []Pattern { return readPatterns(d.root().get("patterns")) }

// ParsePatterns reads a file of patterns: a document with patterns, an object that has
// nothing else, or one pattern. It may hold comments.
func ParsePatterns(raw []byte) ([]Pattern, error) {
	s, err := scan(raw, ParseOptions{Comments: true}, true, true)
	if err != nil {
		return nil, err
	}
	d := &Document{src: s.s, tape: s.tape}
	root := d.root()
	if root.get("atip").ok() {
		if d, err = newDocument(s.s, s.tape); err != nil {
			return nil, err
		}
	}
	var list []Pattern
	switch {
	case root.get("patterns").is(KindArray):
		list = readPatterns(root.get("patterns"))
	case root.get("steps").is(KindArray):
		list = []Pattern{readPattern(root)}
	default:
		return nil, d.refuse(errcode.MetadataStructure, root, "", "neither patterns nor the steps of one")
	}
	if slices.ContainsFunc(list, func(p Pattern) bool { return p.Name == "" || len(p.Steps) == 0 }) {
		return nil, d.refuse(errcode.MetadataStructure, root, "/patterns", "a pattern without name or without steps")
	}
	return list, nil
}

func readPatterns(list val) []Pattern {
	out := []Pattern{}
	list.items(func(_ int, v val) {
		if p := readPattern(v); p.Name != "" {
			out = append(out, p)
		}
	})
	return out
}

func readPattern(v val) Pattern {
	p := Pattern{
		Name: v.get("name").str(), Description: v.get("description").str(), Executable: v.get("executable").isTrue(),
		Variables: []Variable{}, Steps: []Step{},
	}
	p.Tags, _ = v.get("tags").strings()
	v.get("variables").members(func(name string, m val) bool {
		w := Variable{Name: name, Type: m.get("type").str(), Description: m.get("description").str(), Default: m.get("default").scalar(), HasDefault: m.get("default").ok()}
		m.get("enum").items(func(_ int, e val) { w.Enum = append(w.Enum, e.scalar()) })
		p.Variables = append(p.Variables, w)
		return true
	})
	v.get("steps").items(func(_ int, m val) {
		p.Steps = append(p.Steps, Step{Command: m.get("command").str(), Description: m.get("description").str()})
	})
	for _, s := range p.Steps {
		eachVariable(s.Command, func(name string) {
			if p.variable(name) == nil {
				p.Variables = append(p.Variables, Variable{Name: name})
			}
		})
	}
	return p
}

func (p *Pattern) variable(name string) *Variable {
	for i := range p.Variables {
		if p.Variables[i].Name == name {
			return &p.Variables[i]
		}
	}
	return nil
}

// Bind splits every step into words and then puts the values in, so that no value can
// become more than a part of one word, whatever it holds. A value may not make a word
// start with a dash either: the tool would read it as an option.
func (p Pattern) Bind(values map[string]string) ([][]string, error) {
	full := make(map[string]string, len(p.Variables))
	for name := range values {
		if p.variable(name) == nil {
			return nil, &errcode.Error{Code: errcode.Arguments, Msg: "the pattern " + p.Name + " has no variable " + quoteShort(name)}
		}
	}
	for i := range p.Variables {
		v := &p.Variables[i]
		value, given := values[v.Name]
		if !given {
			if !v.HasDefault {
				return nil, &errcode.Error{Code: errcode.Arguments, Msg: "the pattern " + p.Name + " needs a value for " + v.Name}
			}
			value = v.Default
		}
		if err := v.check(value); err != "" {
			return nil, &errcode.Error{Code: errcode.FlagValue, Msg: v.Name + "=" + quoteShort(value) + ": " + err}
		}
		full[v.Name] = value
	}
	if len(p.Steps) == 0 {
		return nil, &errcode.Error{Code: errcode.MetadataStructure, Msg: "the pattern " + p.Name + " has no steps"}
	}
	var out [][]string
	for i, s := range p.Steps {
		words, err := stepWords(s.Command)
		if err != "" {
			return nil, &errcode.Error{Code: errcode.MetadataStructure, Msg: "step " + strconv.Itoa(i+1) + " of " + p.Name + ": " + err}
		}
		for j, template := range words {
			word := fill(template, full)
			if j == 0 && word != template {
				return nil, &errcode.Error{Code: errcode.MetadataStructure, Msg: "step " + strconv.Itoa(i+1) + " of " + p.Name + ": its program is not fixed"}
			}
			if strings.HasPrefix(word, "-") && !strings.HasPrefix(template, "-") {
				return nil, &errcode.Error{Code: errcode.FlagValue, Msg: "step " + strconv.Itoa(i+1) + " of " + p.Name + ": a value makes the word " + quoteShort(word) + ", which the tool would read as an option"}
			}
			words[j] = word
		}
		out = append(out, words)
	}
	return out, nil
}

// check says what is wrong with a value, "" if nothing.
func (v *Variable) check(value string) string {
	if strings.ContainsAny(value, "\x00\n\r") {
		return "a value is one line"
	}
	switch v.Type {
	case "integer":
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return "not a whole number"
		}
	case "number":
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			return "not a number"
		}
	case "boolean":
		if value != "true" && value != "false" {
			return "not true or false"
		}
	}
	if len(v.Enum) > 0 && !slices.Contains(v.Enum, value) {
		return "not one of " + strings.Join(v.Enum, ", ")
	}
	return ""
}

// stepWords splits a step as a shell would split its first command, without expanding
// anything. What only a shell can do is refused.
func stepWords(line string) (words []string, err string) {
	words, stop, closed := splitCommand(line, "|&;<>\n")
	switch {
	case stop != 0:
		return nil, strconv.Quote(string(stop)) + " needs a shell, and a step is one command"
	case !closed:
		return nil, "a quote is not closed"
	case len(words) == 0:
		return nil, "it has no words"
	}
	return words, ""
}

// splitCommand takes the words of a shell command up to one of the bytes that stop it,
// which is returned; 0 is the end. A "#" stops where it begins a word.
func splitCommand(line, stops string) (words []string, stop byte, closed bool) {
	var word strings.Builder
	open, quote := false, byte(0)
	end := func() {
		if open {
			words = append(words, word.String())
			word.Reset()
			open = false
		}
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != '\'' && c == '\\' && i+1 < len(line) && (quote == 0 || strings.IndexByte("\\\"$`", line[i+1]) >= 0):
			i++
			word.WriteByte(line[i])
			open = true
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, open = c, true
		case strings.IndexByte(stops, c) >= 0 && (c != '#' || !open):
			end()
			return words, c, true
		case c == ' ' || c == '\t' || c == '\n':
			end()
		default:
			word.WriteByte(c)
			open = true
		}
	}
	end()
	return words, 0, quote == 0
}

// eachVariable calls f for every {name} of a text.
func eachVariable(s string, f func(name string)) {
	for {
		_, after, ok := strings.Cut(s, "{")
		if !ok {
			return
		}
		if name, _, ok := strings.Cut(after, "}"); ok && isVariableName(name) {
			f(name)
		}
		s = after
	}
}

// fill puts the values in; other braces stay as they are, and so do braces in values.
func fill(template string, values map[string]string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(template, "{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		name, rest, ok := strings.Cut(after, "}")
		if !ok || !isVariableName(name) {
			b.WriteByte('{')
			template = after
			continue
		}
		b.WriteString(values[name])
		template = rest
	}
}

func isVariableName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || i > 0 && (c >= '0' && c <= '9' || c == '-')) {
			return false
		}
	}
	return s != ""
}
