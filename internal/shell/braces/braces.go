// Package braces expands the braces of bash words: {a,b} and {1..9..2}.
package braces

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// In reports a word that may have such an expression.
func In(word *syntax.Word) bool {
	return slices.ContainsFunc(word.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return ok && strings.IndexByte(l.Value, '{') >= 0
	})
}

// Most is how many words one expansion makes.
const Most = 64

// Expand returns the words that a word stands for; false if there are more than Most.
func Expand(word *syntax.Word) ([]*syntax.Word, bool) {
	copied := &syntax.Word{Parts: append([]syntax.WordPart(nil), word.Parts...)}
	if !syntax.SplitBraces(copied) {
		return []*syntax.Word{word}, true
	}
	words, ok := product(copied.Parts)
	for _, word := range words {
		word.Parts = joinLiterals(word.Parts)
	}
	return words, ok
}

// joinLiterals makes one literal of adjacent ones, as the shell sees them: {~,x}root is
// one tilde prefix, {[,x}a] one pattern. An empty one is none: {,} makes no word.
func joinLiterals(parts []syntax.WordPart) []syntax.WordPart {
	out := parts[:0]
	var before *syntax.Lit
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		switch {
		case !ok:
			out, before = append(out, part), nil
		case strings.ReplaceAll(lit.Value, "\\\n", "") == "":
		case before != nil:
			before.Value += lit.Value
		default:
			before = &syntax.Lit{Value: lit.Value}
			out = append(out, before)
		}
	}
	return out
}

// product is the product of all brace expressions among parts.
func product(parts []syntax.WordPart) ([]*syntax.Word, bool) {
	out := []*syntax.Word{{}}
	for _, part := range parts {
		b, ok := part.(*syntax.BraceExp)
		if !ok {
			for _, o := range out {
				o.Parts = append(o.Parts, part)
			}
			continue
		}
		elems, ok := elements(b)
		if !ok || len(out)*len(elems) > Most {
			return nil, false
		}
		next := make([]*syntax.Word, 0, len(out)*len(elems))
		for _, o := range out {
			for _, e := range elems {
				next = append(next, &syntax.Word{Parts: append(append([]syntax.WordPart(nil), o.Parts...), e.Parts...)})
			}
		}
		out = next
	}
	return out, true
}

func elements(b *syntax.BraceExp) ([]*syntax.Word, bool) {
	if b.Sequence {
		return sequence(b)
	}
	var out []*syntax.Word
	for _, e := range b.Elems {
		words, ok := product(e.Parts)
		if !ok || len(out)+len(words) > Most {
			return nil, false
		}
		out = append(out, words...)
	}
	return out, true
}

// sequence is {a..z} or {1..9..2}.
func sequence(b *syntax.BraceExp) ([]*syntax.Word, bool) {
	from, to := b.Elems[0].Lit(), b.Elems[1].Lit()
	step := 1
	if len(b.Elems) > 2 {
		n, err := strconv.Atoi(b.Elems[2].Lit())
		if err != nil || n < -1<<30 || n > 1<<30 {
			return nil, false
		}
		if step = max(n, -n); step == 0 {
			step = 1
		}
	}
	lo, err1 := strconv.Atoi(from)
	hi, err2 := strconv.Atoi(to)
	letters := false
	if err1 != nil || err2 != nil {
		if len(from) != 1 || len(to) != 1 {
			return nil, false
		}
		lo, hi, letters = int(from[0]), int(to[0]), true
		if lo < 'a' != (hi < 'a') {
			return nil, false // between Z and a there are brackets, a backslash and a backquote
		}
	}
	if d := max(lo, hi) - min(lo, hi); d < 0 || d/step >= Most {
		return nil, false
	}
	width := 0
	if !letters && (padded(from) || padded(to)) {
		width = max(len(from), len(to))
	}
	var out []*syntax.Word
	for n := lo; lo <= hi && n <= hi || lo > hi && n >= hi; {
		s := strconv.Itoa(n)
		switch {
		case letters:
			s = string(rune(n))
		case width > 0:
			sign := ""
			if n < 0 {
				sign, s = "-", s[1:]
			}
			s = sign + strings.Repeat("0", max(0, width-len(s)-len(sign))) + s
		}
		out = append(out, &syntax.Word{Parts: []syntax.WordPart{&syntax.SglQuoted{Value: s}}})
		if lo <= hi {
			n += step
		} else {
			n -= step
		}
	}
	return out, true
}

func padded(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return len(s) > 1 && s[0] == '0'
}
