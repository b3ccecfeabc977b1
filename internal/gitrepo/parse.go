package gitrepo

import (
	"errors"
	"fmt"
	"strings"
)

// Setting is one line of a configuration file.
type Setting struct {
	// Key is section.subsection.name; section and name are in lower case, as git compares
	// them, and the subsection is as it stands.
	Key string
	// Value is what git would get, without quotes and comments.
	Value string
	// Bare says that the line has no "=", which git takes for true.
	Bare bool
	// File is where it stands, "" for a text that was not read from a file.
	File string
	// Scope is the owner of that file.
	Scope Scope
}

// Scope tells whose word a setting is.
type Scope uint8

// The scopes, weakest first. The zero value is the one that is trusted least.
const (
	ScopeRepository Scope = iota // in the repository, or included from there
	ScopeUser                    // ~/.gitconfig
	ScopeSystem                  // /etc/gitconfig
)

// Split cuts a key into its three parts; sub is "" for a key of two.
func Split(key string) (section, sub, name string) {
	first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first < 0 {
		return "", "", key
	}
	if first != last {
		sub = key[first+1 : last]
	}
	return key[:first], sub, key[last+1:]
}

// Parse reads the text of a git configuration file as git does (config.c, git_parse_source).
// What git would refuse is an error that names the line. So are a key before the first
// section and a backslash at the very end, which git lets pass.
func Parse(text string) ([]Setting, error) {
	p := parser{text: strings.TrimPrefix(text, "\ufeff"), line: 1}
	if err := p.run(); err != nil {
		return nil, fmt.Errorf("line %d: %w", p.line, err)
	}
	return p.out, nil
}

type parser struct {
	text    string
	at      int
	line    int
	section string
	out     []Setting
}

const end = -1

// next is the next byte, with \r\n as one line end.
func (p *parser) next() int {
	if p.at >= len(p.text) {
		p.at++
		return end
	}
	c := p.text[p.at]
	p.at++
	if c == '\r' && p.at < len(p.text) && p.text[p.at] == '\n' {
		p.at++
		c = '\n'
	}
	if c == '\n' {
		p.line++
	}
	return int(c)
}

// space is what git's own isspace takes for one.
func space(c int) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r'
}

func alpha(c int) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func keyByte(c int) bool { return alpha(c) || c >= '0' && c <= '9' || c == '-' }

func lower(c int) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return byte(c)
}

func (p *parser) run() error {
	comment := false
	for {
		c := p.next()
		switch {
		case c == end:
			return nil
		case c == 0:
			return errors.New("a NUL byte")
		case c == '\n':
			comment = false
		case comment || space(c):
		case c == '#' || c == ';':
			comment = true
		case c == '[':
			if err := p.header(); err != nil {
				return err
			}
		case !alpha(c):
			return errors.New("a key begins with a letter")
		default:
			if err := p.setting(c); err != nil {
				return err
			}
		}
	}
}

// header reads what follows a bracket: name], name.sub] or name "sub"].
func (p *parser) header() error {
	var name strings.Builder
	for {
		c := p.next()
		switch {
		case c == end || c == '\n':
			return errors.New("a section header without an end")
		case c == ']':
			p.section = name.String()
			return nil
		case space(c):
			return p.subsection(name.String(), c)
		case !keyByte(c) && c != '.':
			return errors.New("a section name of letters, digits, dot and dash")
		}
		name.WriteByte(lower(c))
	}
}

func (p *parser) subsection(name string, c int) error {
	for ; space(c); c = p.next() {
		if c == '\n' {
			return errors.New("a section header without an end")
		}
	}
	if c != '"' {
		return errors.New("a subsection stands in quotes")
	}
	var sub strings.Builder
	for {
		switch c = p.next(); c {
		case end, '\n':
			return errors.New("a subsection without an end")
		case '"':
			if p.next() != ']' {
				return errors.New("a section header without an end")
			}
			p.section = name + "." + sub.String()
			return nil
		case '\\':
			if c = p.next(); c == '\n' || c == end {
				return errors.New("a subsection without an end")
			}
		}
		sub.WriteByte(byte(c))
	}
}

func (p *parser) setting(c int) error {
	var name strings.Builder
	for ; keyByte(c); c = p.next() {
		name.WriteByte(lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.next()
	}
	s := Setting{Key: p.section + "." + name.String()}
	if p.section == "" {
		return errors.New("a key without a section")
	}
	switch c {
	case end, '\n':
		s.Bare = true
	case '=':
		value, err := p.value()
		if err != nil {
			return err
		}
		s.Value = value
	default:
		return errors.New("a key is followed by =")
	}
	p.out = append(p.out, s)
	return nil
}

// value reads up to the end of the line, or of the last line that is continued.
func (p *parser) value() (string, error) {
	var b []byte
	quote, comment, trim := false, false, 0
	for {
		c := p.next()
		switch {
		case c == end || c == '\n':
			if quote {
				return "", errors.New("a quote without an end")
			}
			if trim > 0 {
				b = b[:trim]
			}
			return string(b), nil
		case comment:
			continue
		case c == 0:
			return "", errors.New("a NUL byte")
		case space(c) && !quote:
			if trim == 0 {
				trim = len(b)
			}
			if len(b) > 0 {
				b = append(b, ' ') // as git does before 2.45
			}
			continue
		case !quote && (c == ';' || c == '#'):
			comment = true
			continue
		}
		trim = 0
		switch c {
		case '\\':
			switch c = p.next(); c {
			case '\n':
				continue
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case 'n':
				c = '\n'
			case '\\', '"':
			default:
				return "", errors.New("an escape that git does not know")
			}
			b = append(b, byte(c))
		case '"':
			quote = !quote
		default:
			b = append(b, byte(c))
		}
	}
}
