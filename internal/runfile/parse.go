package runfile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// parser reads one file into File.
type parser struct {
	file   *File
	path   string
	text   string
	at     int // index into text
	line   int // of at, from 1
	source func(path string) error
}

func (f *File) parse(path, text string, source func(string) error) error {
	p := &parser{file: f, path: path, text: strings.ReplaceAll(text, "\r\n", "\n"), line: 1, source: source}
	switch {
	case !utf8.ValidString(text):
		return p.bad("it is not UTF-8", "save it as UTF-8", "")
	case strings.IndexByte(text, 0) >= 0:
		return p.bad("it holds a NUL byte", "remove it", "")
	}
	return p.top()
}

func (p *parser) bad(message, fix, example string) error {
	return &Error{Code: errcode.RunfileSyntax, File: p.path, Line: p.line, Message: message, Fix: fix, Example: example}
}

// advance moves to index to and counts lines.
func (p *parser) advance(to int) {
	p.line += strings.Count(p.text[p.at:to], "\n")
	p.at = to
}

// currentLine is the rest of the line at hand, with lines that a backslash joins.
func (p *parser) currentLine() (text string, end int) {
	end = p.at
	for {
		n := strings.IndexByte(p.text[end:], '\n')
		if n < 0 {
			end = len(p.text)
			break
		}
		end += n
		if end > p.at && p.text[end-1] == '\\' {
			end++
			continue
		}
		break
	}
	return strings.ReplaceAll(p.text[p.at:end], "\\\n", " "), end
}

// top reads the top level: attributes, functions, variables, sources.
func (p *parser) top() error {
	var a attributes
	for p.at < len(p.text) {
		line, end := p.currentLine()
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "":
			a = attributes{}
		case trimmed[0] == '#':
			// A backslash at the end of a comment joins nothing.
			if n := strings.IndexByte(p.text[p.at:], '\n'); n >= 0 {
				end = p.at + n
				trimmed = p.text[p.at:end]
			}
			if err := p.attribute(&a, trimmed); err != nil {
				return err
			}
		default:
			used, err := p.item(&a, line, trimmed, end)
			if err != nil {
				return err
			}
			end, a = used, attributes{}
		}
		if end < len(p.text) {
			end++
		}
		p.advance(end)
	}
	return nil
}

// item reads what is no comment; it returns the index behind it.
func (p *parser) item(a *attributes, line, trimmed string, end int) (int, error) {
	if rest, ok := strings.CutPrefix(trimmed, "source"); ok && rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
		path := strings.TrimSpace(rest)
		if n := (lexis{quotes: `'"`}).skip(path+" ", 0); path != "" && n > 0 && n < len(path) && strings.HasPrefix(strings.TrimSpace(path[n:]), "#") {
			path = path[:n]
		} else if i := strings.Index(path, " #"); i >= 0 && n == 0 {
			path = strings.TrimSpace(path[:i])
		}
		if path = unquote(path); path == "" {
			return 0, p.bad("source names no file", "name a file", "source ./tools.Runfile")
		}
		return end, p.source(path)
	}
	start := p.at + len(line) - len(strings.TrimLeft(line, " \t"))
	word := trimmed
	keyword := false
	if rest, ok := strings.CutPrefix(trimmed, "function"); ok && rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
		keyword = true
		word = strings.TrimLeft(rest, " \t")
		start += len(trimmed) - len(word)
	}
	n := 0
	for n < len(word) && nameByte(word[n], n > 0) {
		n++
	}
	name := word[:n]
	next := byte(0)
	if n < len(word) {
		next = word[n]
	}
	after := strings.TrimLeft(word[n:], " \t")
	switch {
	case name == "":
	case !keyword && next == '=' && validVariable(name):
		value := strings.TrimSpace(word[n+1:])
		p.file.vars = append(p.file.vars, variable{name, unquote(value), filepath.Dir(p.path)})
		return end, nil
	case strings.HasPrefix(after, "("):
		return p.function(a, name, start+strings.IndexByte(p.text[start:], '('), true)
	case keyword:
		return p.function(a, name, start+n, false)
	}
	return 0, p.bad(fmt.Sprintf("%q is neither a function, VAR=value, source nor a comment", short(trimmed)), "a Runfile holds definitions only; put commands into a function", "build() { make; }")
}

func short(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// function reads parameters and body; at is the index of the "(" or behind the name.
func (p *parser) function(a *attributes, name string, at int, params bool) (int, error) {
	fn := &Function{Name: name, File: p.path, Line: p.line}
	if params {
		end := closing(p.text, at)
		if end < 0 {
			return 0, p.bad("the parameters of "+name+" have no end", "close them with )", name+"(service, replicas: int) { … }")
		}
		if err := p.params(fn, p.text[at+1:end]); err != nil {
			return 0, err
		}
		at = end + 1
	}
	a.apply(fn)
	if a.shell != "" {
		fn.Program = a.shell
		fn.Language, _ = languageOf(a.shell)
	}
	body := at
	for body < len(p.text) && (p.text[body] == ' ' || p.text[body] == '\t' || p.text[body] == '\n' && opens(p.text[body:])) {
		body++
	}
	end := 0
	if body < len(p.text) && p.text[body] == '{' {
		inner := p.text[body+1:]
		if a.shell == "" {
			fn.shebang(inner)
		}
		n := bodyEnd(inner, fn.Language, p.indent())
		if n < 0 {
			return 0, p.bad("the body of "+name+" has no end", "close it with }", "")
		}
		fn.Body = inner[:n]
		end = body + 1 + n + 1
		rest := p.text[end:]
		if i := strings.IndexByte(rest, '\n'); i >= 0 {
			rest = rest[:i]
		}
		trailing := strings.TrimSpace(rest)
		if trailing = strings.TrimLeft(trailing, "; \t"); trailing != "" && trailing[0] != '#' {
			p.advance(end)
			return 0, p.bad(fmt.Sprintf("%q stands behind the body of %s", short(trailing), name), "begin a new line", "")
		}
		end += len(rest)
	} else {
		if !params {
			return 0, p.bad("function "+name+" has no body in braces", "write { … }", "function "+name+" { make; }")
		}
		n := lineEnd(p.text[body:])
		end = body + n
		fn.Body = p.text[body:end]
		if strings.TrimSpace(fn.Body) == "" {
			return 0, p.bad("function "+name+" has no body", "write a command behind it", name+"() make")
		}
	}
	if strings.HasSuffix(p.text[:end], "\n") && end > body {
		end-- // of a here-document: the caller passes one newline
	}
	if fn.Language != Shell {
		fn.Body = dedent(fn.Body)
	}
	if !a.here() {
		return end, nil
	}
	return end, p.file.add(fn)
}

// opens reports whether a brace is the next thing on the lines that follow.
func opens(text string) bool { return strings.HasPrefix(strings.TrimLeft(text, " \t\n"), "{") }

// indent is what stands in front of the line at hand.
func (p *parser) indent() string {
	line := p.text[p.at:]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// bodyEnd is the index of the brace that closes a body. Quotes of a language with regular
// expressions or words such as %q can mislead the count; then a brace that stands alone,
// below the beginning of the function, counts.
func bodyEnd(inner string, l Language, indent string) int {
	n := blockEnd(inner, l)
	if l == Shell {
		return n
	}
	if i := strings.Index(inner, "\n"+indent+"}"); i >= 0 && n != i+1+len(indent) {
		rest, _, _ := strings.Cut(inner[i+1+len(indent)+1:], "\n")
		if strings.TrimSpace(rest) == "" && (n < 0 || n > i) {
			return i + 1 + len(indent)
		}
	}
	return n
}

// add keeps the later one of two functions of one name.
func (f *File) add(fn *Function) error {
	f.Functions = slices.DeleteFunc(f.Functions, func(old *Function) bool { return old.Name == fn.Name })
	if f.Functions = append(f.Functions, fn); len(f.Functions) > MaxFunctions {
		return &Error{Code: errcode.RunfileSyntax, File: fn.File, Line: fn.Line, Message: fmt.Sprintf("more than %d functions", MaxFunctions), Fix: "split the file"}
	}
	return nil
}

// shebang takes the interpreter from the first line of a body.
func (fn *Function) shebang(body string) {
	line := strings.TrimLeft(body, " \t\n")
	if !strings.HasPrefix(line, "#!") {
		return
	}
	line, _, _ = strings.Cut(line[2:], "\n")
	words := strings.Fields(line)
	if len(words) > 1 && filepath.Base(words[0]) == "env" {
		words = words[1:]
		if words[0] == "-S" && len(words) > 1 {
			words = words[1:]
		}
	}
	if len(words) == 0 {
		return
	}
	if l, ok := languageOf(words[0]); ok {
		fn.Language, fn.Program = l, filepath.Base(words[0])
		if fn.Program == "nodejs" {
			fn.Program = "node"
		}
	}
}

// closing is the index of the parenthesis that closes the one at i, -1 if none does.
func closing(text string, i int) int {
	depth := 0
	x := lexis{quotes: `'"`}
	for i < len(text) {
		if n := x.skip(text, i); n > i {
			i = n
			continue
		}
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
		i++
	}
	return -1
}

// params reads a signature: x, x: T, x = d, x: T = d, ...rest.
func (p *parser) params(fn *Function, text string) error {
	for _, part := range splitCommas(text) {
		part = strings.TrimSpace(strings.ReplaceAll(part, "\n", " "))
		if part == "" {
			if strings.TrimSpace(text) == "" {
				return nil
			}
			return p.bad("an empty parameter of "+fn.Name, "name each parameter", fn.Name+"(service, replicas: int = 1)")
		}
		if len(fn.Params) > 0 && fn.Params[len(fn.Params)-1].Rest {
			return p.bad("a parameter stands behind the one that takes the rest", "write it last", fn.Name+"(service, ...words)")
		}
		var q Param
		q.Signature = true
		left, value, has := strings.Cut(part, "=")
		if has {
			q.HasDefault, q.Default = true, unquote(strings.TrimSpace(value))
		}
		name, typ, typed := strings.Cut(left, ":")
		if q.Name = strings.TrimSpace(name); strings.HasPrefix(q.Name, "...") {
			q.Name, q.Rest = strings.TrimSpace(q.Name[3:]), true
		}
		if !validVariable(q.Name) {
			return p.bad(fmt.Sprintf("%q is not the name of a parameter", short(q.Name)), "use letters, digits and underscores", fn.Name+"(service, replicas: int = 1)")
		}
		if paramIndex(fn.Params, q.Name) >= 0 {
			return p.bad("two parameters are called "+q.Name, "rename one", "")
		}
		if typed {
			t, ok := typeByName(strings.TrimSpace(typ))
			if !ok {
				return p.bad(fmt.Sprintf("%q is not a type: str, int, float, bool, object", short(strings.TrimSpace(typ))), "choose one of them", fn.Name+"(replicas: int)")
			}
			q.Type = t
		}
		if q.Rest && (q.HasDefault || q.Type != String) {
			return p.bad("the rest has no default and no type", "write ..."+q.Name, fn.Name+"(..."+q.Name+")")
		}
		if q.HasDefault {
			if err := check(&q, q.Default); err != nil {
				return p.bad("the default of "+q.Name+": "+err.Error(), "correct the default", "")
			}
		} else if n := len(fn.Params); n > 0 && fn.Params[n-1].HasDefault && !q.Rest {
			return p.bad(q.Name+" is required and stands behind a parameter with a default", "write required parameters first", "")
		}
		fn.Params = append(fn.Params, q)
	}
	if len(fn.Params) > 99 {
		return p.bad("more than 99 parameters", "take the rest: ...words", "")
	}
	return nil
}

func splitCommas(text string) []string {
	var out []string
	x := lexis{quotes: `'"`}
	from, depth := 0, 0
	for i := 0; i < len(text); {
		if n := x.skip(text, i); n > i {
			i = n
			continue
		}
		switch text[i] {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, text[from:i]), i+1
			}
		}
		i++
	}
	return append(out, text[from:])
}

// dedent takes the blanks off that all lines of a body begin with.
func dedent(body string) string {
	lines := strings.Split(strings.Trim(body, "\n"), "\n")
	if len(lines) > 0 && !strings.HasPrefix(body, "\n") {
		lines[0] = strings.TrimLeft(lines[0], " \t") // it stands behind the brace
	}
	common := ""
	first := true
	for i, line := range lines {
		if strings.TrimSpace(line) == "" || i == 0 && !strings.HasPrefix(body, "\n") && len(lines) > 1 {
			continue
		}
		lead := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if first {
			common, first = lead, false
		}
		for !strings.HasPrefix(lead, common) {
			common = common[:len(common)-1]
		}
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, common) {
			line = strings.TrimLeft(line, " \t")
		} else {
			line = line[len(common):]
		}
		lines[i] = strings.TrimRight(line, " \t")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}
