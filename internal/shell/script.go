package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// options is the command that gives the shell its options, read and printed.
func options(o Options) ([]*syntax.Stmt, string, error) {
	if len(o.Set) == 0 {
		return nil, "", nil
	}
	words := append([]string{"set"}, o.Set...)
	for i, w := range words {
		q, err := syntax.Quote(w, variant(o.Dialect))
		if err != nil {
			return nil, "", &SyntaxError{Msg: "an option: " + err.Error()}
		}
		words[i] = q
	}
	file, printed, err := parse(strings.Join(words, " "), Options{Dialect: o.Dialect, Limits: o.Limits})
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
		if ok && p.Param != nil && p.Param.Value == "BASH_SOURCE" && !p.Length && !p.Excl && p.Names == 0 && (p.Index == nil || index(p) == "0") {
			p.Param.Value, p.Index = "0", nil
		}
		return true
	})
}
