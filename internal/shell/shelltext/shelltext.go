// Package shelltext turns the text of a shell into a syntax tree, whose printed form reads as the same tree, or says
// at which place it is no shell text.
package shelltext

import (
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Max is the longest text that is read, in bytes.
const Max = 128 << 10

// maxDeep bounds brackets inside each other, before the parser sees them.
const maxDeep = 500

// Dialect is the language a text is written in.
type Dialect uint8

// Dialects. Bash is what -c runs.
const (
	Bash Dialect = iota
	POSIX
	Mksh
)

// Parser is a parser of the dialect.
func (d Dialect) Parser() *syntax.Parser { return syntax.NewParser(syntax.Variant(d.variant())) }

// Parse reads s and prints it. The tree it returns is that of the printed form,
// so that a bug of the printer cannot part what is judged from what runs. It is at most most bytes long; that
// of a script names itself.
func Parse(s string, d Dialect, most int, script bool) (*syntax.File, string, error) {
	switch {
	case len(s) > most:
		return nil, "", &SyntaxError{Msg: "it is longer than " + size(most), Fix: "split it into several commands"}
	case strings.IndexByte(s, 0) >= 0:
		// The parser would drop it.
		return nil, "", &SyntaxError{Msg: "it holds a NUL byte", Fix: "remove the byte"}
	case !utf8.ValidString(s):
		return nil, "", &SyntaxError{Msg: "it is not UTF-8", Fix: "write it in UTF-8"}
	case Deep(s):
		return nil, "", &SyntaxError{Msg: "its brackets are nested too deeply", Fix: "split it into several commands"}
	}
	p := d.Parser()
	first, err := p.Parse(strings.NewReader(s), "")
	if err != nil {
		return nil, "", Cause(err)
	}
	if script {
		ownSource(first)
	}
	once, err := printed(first)
	if err != nil {
		return nil, "", err
	}
	file, err := p.Parse(strings.NewReader(once), "")
	if err != nil {
		return nil, "", printError("its printed form cannot be read: " + err.Error())
	}
	twice, err := printed(file)
	if err != nil {
		return nil, "", err
	}
	if once != twice {
		return nil, "", printError("its printed form is not stable")
	}
	return file, once, nil
}

// printed has each statement on the line where it stands, as far as those before it leave room, so that what the
// shell says of a line is true of the text that was given.
func printed(file *syntax.File) (string, error) {
	var b strings.Builder
	many, one := syntax.NewPrinter(), syntax.NewPrinter(syntax.SingleLine(true))
	line := uint(1)
	for i, stmt := range file.Stmts {
		switch {
		case stmt.Pos().Line() > line:
			b.WriteString(strings.Repeat("\n", int(stmt.Pos().Line()-line)))
			line = stmt.Pos().Line()
		case i > 0 && endsLine(file.Stmts[i-1]):
			b.WriteByte('\n')
			line++
		case i > 0 && file.Stmts[i-1].Background:
			b.WriteByte(' ')
		case i > 0:
			b.WriteString("; ")
		}
		from, printer := b.Len(), many
		if stmt.Pos().Line() == stmt.End().Line() {
			printer = one
		}
		if err := printer.Print(&b, stmt); err != nil {
			return "", printError(err.Error())
		}
		line += uint(strings.Count(b.String()[from:], "\n"))
	}
	return strings.TrimRight(b.String(), "\n"), nil
}

// endsLine reports a statement after which a line has to end: a heredoc's text stands there.
func endsLine(stmt *syntax.Stmt) bool {
	found := false
	syntax.Walk(stmt, func(n syntax.Node) bool {
		if r, ok := n.(*syntax.Redirect); ok && r.Hdoc != nil {
			found = true
		}
		return !found
	})
	return found
}

func size(n int) string {
	if n%1024 == 0 {
		return strconv.Itoa(n/1024) + " KiB"
	}
	return strconv.Itoa(n) + " bytes"
}

func (d Dialect) variant() syntax.LangVariant {
	switch d {
	case POSIX:
		return syntax.LangPOSIX
	case Mksh:
		return syntax.LangMirBSDKorn
	}
	return syntax.LangBash
}

// Cause is what an error of the parser says, as a *SyntaxError.
func Cause(err error) error {
	var pe syntax.ParseError
	if errors.As(err, &pe) {
		return &SyntaxError{Line: int(pe.Pos.Line()), Col: int(pe.Pos.Col()), Msg: pe.Text}
	}
	var le syntax.LangError
	if errors.As(err, &le) {
		return &SyntaxError{Line: int(le.Pos.Line()), Col: int(le.Pos.Col()), Msg: le.Error()}
	}
	return &SyntaxError{Msg: err.Error()}
}

// Deep bounds how far the parser has to descend, counting every bracket that is not
// closed as if none were quoted.
func Deep(s string) bool {
	depth, most := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(', '{', '[':
			if depth++; depth > most {
				most = depth
			}
		case ')', '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return most > maxDeep || strings.Count(s, "`") > 2*maxDeep
}

// Suspicious finds characters outside quotes that show a person something else than
// what the shell reads.
func Suspicious(s string) string {
	single, double, escaped := false, false, false
	for _, r := range s {
		quoted := single || double
		switch {
		case escaped:
			escaped = false
		case r == '\\' && !single:
			escaped = true
			continue
		case r == '\'' && !double:
			single = !single
		case r == '"' && !single:
			double = !double
		}
		if quoted {
			continue
		}
		switch {
		case r == '\t' || r == '\n':
		case r == '\r':
			return "a carriage return stands outside quotes"
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return "a control character stands outside quotes"
		case r >= 0x80 && (unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zs, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)):
			return "an invisible character stands outside quotes"
		}
	}
	return ""
}
