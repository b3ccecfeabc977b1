package shelltext

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Set is the command that gives a shell these options, read and printed.
func Set(options []string, d Dialect, most int) ([]*syntax.Stmt, string, error) {
	if len(options) == 0 {
		return nil, "", nil
	}
	words := append([]string{"set"}, options...)
	for i, w := range words {
		q, err := syntax.Quote(w, d.variant())
		if err != nil {
			return nil, "", &SyntaxError{Msg: "an option: " + err.Error()}
		}
		words[i] = q
	}
	file, printed, err := Parse(strings.Join(words, " "), d, most, false)
	if err != nil {
		return nil, "", err
	}
	return file.Stmts, printed + "; ", nil
}

// ownSource makes $0 of BASH_SOURCE: the shell is handed the text, not the file, and
// would have nothing to say for it. In the text of a script both are its name; what it
// sources has a tree of its own.
func ownSource(f *syntax.File) {
	syntax.Walk(f, func(n syntax.Node) bool {
		p, ok := n.(*syntax.ParamExp)
		if ok && p.Param != nil && p.Param.Value == "BASH_SOURCE" && !p.Length && !p.Excl && p.Names == 0 && (p.Index == nil || Index(p) == "0") {
			p.Param.Value, p.Index = "0", nil
		}
		return true
	})
}

// Index is the subscript of a parameter if it is literal: "@", "*", a number.
func Index(p *syntax.ParamExp) string {
	word, ok := p.Index.(*syntax.Word)
	if !ok {
		return ""
	}
	return word.Lit()
}
