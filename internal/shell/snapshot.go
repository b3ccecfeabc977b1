package shell

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"

	"mvdan.cc/sh/v3/syntax"
)

// A snapshot is the file with which a host of agents gives each of its shells the functions
// and aliases of the user's own. It is sourced as it is; what follows from it for the rest of
// the text is read here.

// snapshot takes over what the file of a host defines.
func (w *walker) snapshot(raw string, st *state) {
	for _, text := range w.handedOver(raw, st) {
		file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
		if err != nil {
			continue // a call of it is one of an unknown command
		}
		for _, stmt := range file.Stmts {
			c, ok := stmt.Cmd.(*syntax.FuncDecl)
			// The handler of missing commands is the user's own, and no command is named so.
			if !ok || c.Name == nil || c.Name.Value == "command_not_found_handle" {
				continue
			}
			st.own()
			st.funcs[c.Name.Value] = definition{bodies: []*syntax.FuncDecl{c}}
		}
	}
	if w.aliases == nil {
		w.aliases = map[string]string{}
	}
	for line := range strings.Lines(raw) {
		definition, ok := strings.CutPrefix(line, "alias -- ")
		if !ok {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimRight(definition, "\n"), "=")
		if !ok {
			continue
		}
		if plain, ok := aliasValue(value); ok {
			w.aliases[name] = plain
		} else {
			w.aliases[name] = Hole
		}
	}
}

// handedOver are the texts that a snapshot evaluates: older hosts write them encoded, newer ones as
// bash quotes a word. Functions that stand in the file as they are belong to the host, and are
// named after the tools that they stand for.
func (w *walker) handedOver(raw string, st *state) []string {
	var out []string
	for _, part := range strings.Split("\n"+raw, "\neval ")[1:] {
		line, _, _ := strings.Cut(part, " > /dev/null 2>&1")
		text, ok := encoded(line)
		if !ok {
			text, ok = w.literalWord(line, st)
		}
		if ok && len(text) <= maxFile && !strings.Contains(text, "\x00") && !shelltext.Deep(text) {
			out = append(out, text)
		}
	}
	return out
}

func encoded(word string) (string, bool) {
	code, ok := strings.CutPrefix(word, `"$(echo '`)
	if ok {
		code, ok = strings.CutSuffix(code, `' | base64 -d)"`)
	}
	if !ok {
		return "", false
	}
	text, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", " ", "").Replace(code))
	return string(text), err == nil
}

// literalWord is what a word means in which nothing is expanded.
func (w *walker) literalWord(word string, st *state) (string, bool) {
	if len(word) > maxFile {
		return "", false
	}
	var words []*syntax.Word
	for one, err := range syntax.NewParser(syntax.Variant(syntax.LangBash)).WordsSeq(strings.NewReader(strings.TrimPrefix(word, "-- "))) {
		if err != nil {
			return "", false
		}
		words = append(words, one)
	}
	if len(words) != 1 || slices.ContainsFunc(words[0].Parts, func(p syntax.WordPart) bool { return !literal(p) }) {
		return "", false
	}
	v := w.scalar(words[0], st.clone())
	return v[0].s, len(v) == 1 && v[0].exact()
}

// aliasValue reads a word as the alias command prints it: 'it'\”s'.
func aliasValue(s string) (string, bool) {
	if !strings.HasPrefix(s, "'") {
		return s, !strings.ContainsAny(s, "'\"\\$`")
	}
	s, ok := strings.CutSuffix(strings.ReplaceAll(s, `'\''`, "\x00"), "'")
	if !ok || len(s) == 0 || strings.Contains(s[1:], "'") {
		return "", false
	}
	return strings.ReplaceAll(s[1:], "\x00", "'"), true
}

// alias reads a command as its alias has it, besides the command as it stands: whether the
// word was quoted, which keeps an alias away, is not known any more.
func (w *walker) alias(r *run, st *state) {
	value, ok := w.aliases[r.words[0].s]
	if !ok || w.expanding[r.words[0].s] {
		return
	}
	name := r.words[0].s
	words := make([]string, 0, len(r.words))
	for _, f := range r.words[1:] {
		if !f.exact() || f.glob {
			value = Hole
		}
		words = append(words, f.s)
	}
	if value == Hole {
		w.opaque(st, "the alias "+name+" gets words that are not known, or cannot be read", []string{name}, nil)
		return
	}
	if w.expanding == nil {
		w.expanding = map[string]bool{}
	}
	w.expanding[name] = true
	side := st.clone()
	w.text(value+" "+quote.Words(words), side, "the alias "+name)
	w.join(st, side)
	delete(w.expanding, name)
}
