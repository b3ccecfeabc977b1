package atip

import (
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/wildcard"
)

// example holds a command line of the document against the document.
func (l *linter) example(v val, pointer, line string, path []string) {
	words := exampleWords(line)
	if len(words) == 0 || !l.isTool(words[0]) {
		return
	}
	call := l.d.Resolve(words, ResolveOptions{Provenance: Provenance{Rank: Vendor}, InvokedAs: l.d.Name()})
	switch {
	case call.Exactness != Exact:
		msg := "example " + quoteShort(line) + " is " + call.Exactness.String()
		if len(call.UnknownOptions) > 0 {
			msg += ": " + strings.Join(call.UnknownOptions, " ") + " is not declared"
		}
		l.warn(v, pointer, "L08", msg)
	case path != nil && !startsWith(call.Path, path):
		l.warn(v, pointer, "L08", "example "+quoteShort(line)+" is the command "+quoteShort(strings.Join(call.Path, " ")))
	}
}

func startsWith(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

func (l *linter) isTool(word string) bool {
	word = baseName(word)
	return word == l.d.Name() || slices.ContainsFunc(l.d.Names(), func(glob string) bool { return wildcard.Match(glob, word) })
}

// patterns holds the steps of patterns that run this tool against the document. Words
// are split before variables are put in, as they are when a pattern is run.
func (l *linter) patterns() {
	l.d.root().get("patterns").items(func(i int, p val) {
		p.get("steps").items(func(j int, s val) {
			at := "/patterns/" + strconv.Itoa(i) + "/steps/" + strconv.Itoa(j) + "/command"
			l.example(s.get("command"), at, fillVariables(s.get("command").str()), nil)
		})
	})
}

// fillVariables replaces each {name} by a word.
func fillVariables(s string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "{")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		_, after, ok := strings.Cut(rest, "}")
		if !ok {
			b.WriteByte('{')
			s = rest
			continue
		}
		b.WriteByte('x')
		s = after
	}
}

// exampleWords splits the first command of an example, without expanding anything.
func exampleWords(line string) []string {
	words, _, _ := splitCommand(strings.TrimPrefix(line, "$ "), "|;&<>#")
	return words
}
