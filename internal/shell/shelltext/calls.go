package shelltext

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Call is a command word of a text that is written out, such as "make" in `make all`.
type Call struct {
	Name   string
	Offset int // in bytes
}

// Calls lists the command words of a text in bash's or, with posix, in sh's language. A
// *SyntaxError says that it is no shell text.
func Calls(text string, posix bool) ([]Call, error) {
	dialect := Bash
	if posix {
		dialect = POSIX
	}
	switch {
	case len(text) > Max:
		return nil, &SyntaxError{Msg: "it is longer than " + size(Max), Fix: "split it into several commands"}
	case Deep(text):
		return nil, &SyntaxError{Msg: "its brackets are nested too deeply", Fix: "split it into several commands"}
	}
	file, err := dialect.Parser().Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, Cause(err)
	}
	var out []Call
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			if name := call.Args[0].Lit(); name != "" {
				out = append(out, Call{name, int(call.Args[0].Pos().Offset())})
			}
		}
		return true
	})
	return out, nil
}
