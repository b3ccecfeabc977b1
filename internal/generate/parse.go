// Package generate writes metadata from what a tool prints for --help. What it writes
// is inferred: it names commands and options and may say that something is dangerous,
// never that it is harmless.
package generate

import (
	"slices"
	"strings"
)

// Help is what a help text says.
type Help struct {
	Framework string // cobra, clap, click, argparse, gnu, "" if it cannot be told
	Summary   string
	Commands  []Command
	Options   []Option
}

// Command is one subcommand that a help text lists.
type Command struct {
	Name, Description string
	Aliases           []string
}

// Option is one option that a help text lists.
type Option struct {
	Flags       []string
	Metavar     string
	Description string
	Enum        []string
	Arity       Arity
}

// Arity is how many words an option takes. The zero value is the unknown one: only a
// metavar, or a framework that always prints one, tells.
type Arity uint8

// Arities.
const (
	Unknown Arity = iota
	None
	One
	Attached // the value, if any, follows "="
)

const (
	maxText    = 1 << 20
	maxEntries = 2000
)

// Parse reads a help text.
func Parse(text string) Help {
	if len(text) > maxText {
		text = text[:maxText]
	}
	text = plainText(text)
	p := parser{h: Help{Framework: framework(text)}}
	for line := range strings.SplitSeq(text, "\n") {
		p.line(strings.TrimRight(line, " \t\r"))
	}
	p.h.settle()
	return p.h
}

// plainText removes what formats text on terminals: escape sequences, and letters that
// are struck over each other as man pages have them.
func plainText(s string) string {
	out := make([]rune, 0, len(s))
	escape := 0
	for _, r := range s {
		switch {
		case escape == 1 && r == '[':
			escape = 2
		case escape > 0:
			if escape == 1 || r >= '@' && r <= '~' {
				escape = 0
			}
		case r == 0x1b:
			escape = 1
		case r == '\b':
			if len(out) > 0 {
				out = out[:len(out)-1]
			}
		case r == '\n' || r == '\t' || r >= ' ' && r != 0x7f:
			out = append(out, r)
		}
	}
	return string(out)
}

func framework(text string) string {
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case has("Available Commands:") && has("Flags:"), has("Use \"") && has("for more information about a command"), has("\nFlags:\n") && has("-h, --help "):
		return "cobra"
	case has("Show this message and exit."):
		return "click"
	case has("show this help message and exit"):
		return "argparse"
	case has("Print help") && (has("\nOptions:\n") || has("\nOPTIONS:\n")), has("Prints help information"):
		return "clap"
	case has("Mandatory arguments to long options"), has("display this help and exit"), has("give this help list"):
		return "gnu"
	}
	return ""
}

type parser struct {
	h        Help
	commands bool // inside a list of commands
	usage    bool
	choices  []string // argparse lists its subcommands in braces first
	last     *Option  // whose description goes on
	lastCol  int
}

// line takes one line; what it is hangs on its indentation and on the heading above.
func (p *parser) line(line string) {
	body := strings.TrimLeft(line, " \t")
	indent := columns(line[:len(line)-len(body)])
	if indent == 0 {
		// What is indented below "Usage:" goes on with it.
		p.usage = strings.HasPrefix(strings.ToLower(body), "usage")
	}
	switch {
	case body == "":
		p.last = nil
	case indent == 0 && p.heading(body):
	case body[0] == '-' && indent <= 16:
		p.option(body)
	case p.commands && indent > 0 && indent <= 12:
		p.command(body)
	case p.last != nil && indent >= p.lastCol && indent > 2:
		if len(p.last.Description) < 160 {
			p.last.Description = strings.TrimSpace(p.last.Description + " " + body)
		}
	case strings.HasPrefix(body, "{") && p.h.Framework == "argparse":
		p.choice(body)
	case indent == 0 && p.h.Summary == "" && !p.usage && !strings.HasPrefix(strings.ToLower(body), "usage"):
		p.h.Summary = strings.TrimSuffix(body, ".")
	}
}

func columns(indent string) int {
	n := 0
	for _, r := range indent {
		if r == '\t' {
			n += 8 - n%8
		} else {
			n++
		}
	}
	return n
}

// heading reports whether a line begins a section.
func (p *parser) heading(body string) bool {
	low := strings.ToLower(body)
	if strings.HasPrefix(low, "usage") {
		p.usage, p.commands, p.last = true, false, nil
		return true
	}
	upper := body == strings.ToUpper(body) && len(body) > 3 && !strings.HasPrefix(body, "-")
	if !strings.HasSuffix(body, ":") && !upper {
		return false
	}
	p.last = nil
	p.commands = strings.Contains(low, "command") && !strings.Contains(low, "option") && !strings.Contains(low, "example")
	p.choices = nil
	return true
}

// choice reads the subcommands of argparse: {a,b,c} and then one line each.
func (p *parser) choice(body string) {
	inside, _, ok := strings.Cut(body[1:], "}")
	if !ok {
		return
	}
	p.choices = strings.Split(inside, ",")
	p.commands = len(p.choices) > 0
}

func (p *parser) command(body string) {
	if strings.HasPrefix(body, "{") {
		p.choice(body)
		return
	}
	head, text := columnsOf(body)
	if text == "" && p.choices == nil || len(p.h.Commands) >= maxEntries {
		return
	}
	c := Command{Description: text}
	for name := range strings.SplitSeq(head, ",") {
		name = strings.TrimSuffix(strings.TrimSpace(name), ":")
		name = strings.TrimSuffix(name, "*")
		if !commandName(name) {
			return
		}
		if c.Name == "" {
			c.Name = name
		} else {
			c.Aliases = append(c.Aliases, name)
		}
	}
	if p.choices != nil && !contains(p.choices, c.Name) || c.Name == "" {
		return
	}
	if slices.ContainsFunc(p.h.Commands, func(have Command) bool { return have.Name == c.Name }) {
		return
	}
	p.h.Commands = append(p.h.Commands, c)
}

func commandName(s string) bool {
	if s == "" || len(s) > 64 || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_:.", c) >= 0) {
			return false
		}
	}
	return true
}

func contains(list []string, s string) bool {
	return slices.ContainsFunc(list, func(have string) bool { return strings.TrimSpace(have) == s })
}

// columnsOf cuts a line where two blanks, or a tab, separate what is described from its
// description.
func columnsOf(body string) (head, text string) {
	at := len(body)
	for i := range len(body) {
		if body[i] == '\t' || body[i] == ' ' && i+1 < len(body) && (body[i+1] == ' ' || body[i+1] == '\t') {
			at = i
			break
		}
	}
	return body[:at], strings.TrimLeft(strings.TrimSpace(body[at:]), ": ")
}
