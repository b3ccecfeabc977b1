package shell

import (
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/shell/braces"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"

	"mvdan.cc/sh/v3/syntax"
)

// quoting is where in a word a part stands.
type quoting uint8

const (
	unquoted quoting = iota
	quoted
	inText // a here-document: no quotes, but nothing splits
)

// fields expands a word to the words it may become, one list for each alternative.
func (w *walker) fields(word *syntax.Word, st *state) []fields {
	words := []*syntax.Word{word}
	if w.o.Dialect != shelltext.POSIX && braces.In(word) {
		var ok bool
		if words, ok = braces.Expand(word); !ok {
			return []fields{{text{s: HoleSplit, lead: true}}}
		}
	}
	out := []fields{{}}
	for _, one := range words {
		alts := w.parts(one.Parts, st, unquoted, true)
		if len(out)*len(alts) > maxAlternatives {
			alts = collapse(alts)
		}
		if len(out)*len(alts) > maxAlternatives {
			return []fields{{text{s: HoleSplit}}}
		}
		next := make([]fields, 0, len(out)*len(alts))
		for _, a := range out {
			for _, b := range alts {
				f := b.finish()
				if len(a) > 0 {
					f = append(append(make(fields, 0, len(a)+len(f)), a...), f...)
				}
				next = append(next, f)
			}
		}
		out = next
	}
	return out
}

// collapse makes one unknown of many alternatives.
func collapse(alts []partial) []partial {
	if len(alts) < 2 {
		return alts
	}
	var from []int
	for _, a := range alts {
		for _, f := range a.finish() {
			from = union(from, f.from)
		}
	}
	return []partial{{cur: text{s: HoleSplit, from: from}, open: true}}
}

// scalar expands a word where it is one string: an assignment, a case, a file name.
func (w *walker) scalar(word *syntax.Word, st *state) value {
	if word == nil {
		return constant("")
	}
	return values(w.parts(word.Parts, st, unquoted, false))
}

func (w *walker) inDocument(parts []syntax.WordPart, st *state) value {
	return values(w.parts(parts, st, inText, false))
}

// word expands a word for what runs inside it.
func (w *walker) word(word *syntax.Word, st *state) {
	if word != nil {
		w.scalar(word, st)
	}
}

func values(alts []partial) value {
	var out value
	for _, a := range alts {
		t := text{}
		for i, f := range a.finish() {
			if i > 0 {
				f.s = " " + f.s
			}
			t = concat(t, f)
		}
		t.s = strings.ReplaceAll(t.s, HoleSplit, Hole)
		t.glob, t.lead, t.unset = false, false, false
		out = out.or(value{t})
	}
	return out
}

// parts expands the parts of a word. splits: an unquoted expansion becomes words.
func (w *walker) parts(list []syntax.WordPart, st *state, q quoting, splits bool) []partial {
	have := []partial{{open: q == quoted || !splits}}
	for i, part := range list {
		pieces := w.part(part, st, q, splits, i == 0)
		w.nodes += len(have)*len(pieces) - 1
		next, ok := product(have, pieces)
		if !ok {
			have = collapse(have)
			if next, ok = product(have, pieces); !ok {
				next, _ = product(have, []piece{{fields: fields{{s: HoleSplit}}, quoted: q != unquoted}})
			}
		}
		have = next
	}
	return have
}

// part expands one part of a word to its alternatives.
func (w *walker) part(part syntax.WordPart, st *state, q quoting, splits, first bool) []piece {
	switch p := part.(type) {
	case *syntax.Lit:
		return w.lit(p.Value, st, q, first)
	case *syntax.SglQuoted:
		s := p.Value
		if p.Dollar {
			s = quote.ANSI(s)
		}
		return []piece{{fields: fields{{s: s}}, quoted: true}}
	case *syntax.DblQuoted:
		return w.inQuotes(p, st)
	case *syntax.ParamExp:
		return w.param(p, st, q, splits)
	case *syntax.CmdSubst:
		return pieces(w.substitute(p, st), q, splits, st)
	case *syntax.ArithmExp:
		return pieces(w.arithm(p.X, st), q, splits, st)
	case *syntax.ProcSubst:
		return []piece{{fields: fields{w.process(p, st)}, quoted: true}}
	case *syntax.ExtGlob:
		// Stands for names in the directory at hand, as any pattern does.
		return []piece{{fields: fields{{s: "*", glob: true, lead: true}}}}
	}
	w.opaque(st, "a part of a word that is not known", nil, nil)
	return []piece{{fields: fields{{s: HoleSplit}}}}
}

// pieces is a value as a part of a word.
func pieces(v value, q quoting, splits bool, st *state) []piece {
	out := make([]piece, 0, len(v))
	for _, t := range v {
		t.unset = false
		switch {
		case q == unquoted && splits && st.ifs && t.exact() && t.s != "":
			// How it falls apart is not known.
			out = append(out, piece{fields: fields{{s: HoleSplit, from: t.from}}})
		case q == unquoted && splits:
			t.whole = t.whole && !st.ifs
			x := split(t)
			if st.glob {
				for i := range x.fields {
					x.fields[i].glob, x.fields[i].lead = false, false
				}
			}
			out = append(out, x)
		default:
			out = append(out, piece{fields: fields{t}, quoted: true})
		}
	}
	return out
}

// inQuotes expands what stands in double quotes: one word, but for "$@".
func (w *walker) inQuotes(p *syntax.DblQuoted, st *state) []piece {
	alts := w.parts(p.Parts, st, quoted, true)
	out := make([]piece, 0, len(alts))
	for _, a := range alts {
		f := a.finish()
		if len(p.Parts) == 1 && len(f) == 1 && f[0].s == "" && w.emptyList(p.Parts[0], st) {
			f = nil
		}
		out = append(out, piece{fields: f, quoted: true})
	}
	return out
}

// emptyList reports whether a part is "$@" without parameters, which is no word.
func (w *walker) emptyList(part syntax.WordPart, st *state) bool {
	p, ok := part.(*syntax.ParamExp)
	if !ok || p.Param == nil {
		return false
	}
	if p.Param.Value == "@" {
		return len(st.params) == 0 && !st.paramsOpen
	}
	v := w.lookup(st, p.Param.Value)
	return shelltext.Index(p) == "@" && v.array && !v.open && len(v.elems) == 0
}

// notTilde reports letters that no tilde prefix has.
func notTilde(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '+' && r != '.'
}

// lit is literal text; backslashes still stand in it.
func (w *walker) lit(s string, st *state, q quoting, first bool) []piece {
	var b strings.Builder
	t := text{}
	i := 0
	if first && q == unquoted && strings.HasPrefix(s, "~") {
		name, rest, slash := strings.Cut(s, "/")
		if w.o.Home != "" && w.o.Home[strings.LastIndexByte(w.o.Home, '/')+1:] == name[1:] {
			name = "~"
		}
		var stands value
		switch here := !st.cwdUnknown && len(st.cwds) == 1 && st.vars["PWD"] == nil; {
		case name == "~":
			stands = w.home(st)
		case name == "~+" && here:
			stands = constant(st.cwds[0])
			if w.o.Dialect == shelltext.POSIX {
				stands = stands.or(constant(name)) // sh may be dash, which leaves it as it is
			}
		case strings.IndexFunc(name[1:], notTilde) < 0:
			// Another user's home, the directory before, one of the stack.
			b.WriteString(Hole)
			i = len(name)
		}
		if stands != nil {
			if slash {
				rest = "/" + rest
			}
			tail := w.lit(rest, st, q, false)
			out := make([]piece, 0, len(stands))
			for _, h := range stands {
				h.unset = false
				out = append(out, piece{fields: fields{concat(h, tail[0].fields[0])}, quoted: true})
			}
			return out
		}
	}
	for ; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s):
			next := s[i+1]
			switch {
			case next == '\n':
				i++
			case q == unquoted, next == '$', next == '`', next == '\\', next == '"' && q == quoted:
				b.WriteByte(next)
				i++
			default:
				b.WriteByte(c)
			}
			continue
		case q == unquoted && (c == '*' || c == '?' || c == '[' && strings.IndexByte(s[i:], ']') > 0):
			t.glob = true
			t.lead = t.lead || first && b.Len() == 0
		}
		b.WriteByte(c)
	}
	t.s = b.String()
	return []piece{{fields: fields{t}, quoted: true}}
}

// home is what ~ stands for.
func (w *walker) home(st *state) value {
	if v := st.vars["HOME"]; v != nil {
		return v.val
	}
	if w.o.Home != "" {
		return constant(w.o.Home)
	}
	return unknown(nil)
}

// substitute walks a command substitution and returns what it writes.
func (w *walker) substitute(c *syntax.CmdSubst, st *state) value {
	sub := st.clone()
	sub.out = &sink{}
	if c.TempFile || c.ReplyVar {
		// mksh's forms run in the shell itself.
		w.stmts(c.Stmts, st)
		return unknown(nil)
	}
	at := w.at
	if len(c.Stmts) == 1 && len(c.Stmts[0].Redirs) == 1 && c.Stmts[0].Cmd == nil && c.Stmts[0].Redirs[0].Op == syntax.RdrIn {
		// $(<file)
		w.stmts(c.Stmts, sub)
		w.at = at
		return unknown([]int{len(w.cmds) - 1})
	}
	w.stmts(c.Stmts, sub)
	w.at = at
	t := text{s: sub.out.s, from: sub.out.from, whole: sub.out.whole}
	if !t.known() {
		t.s = Hole
		if guess, ok := w.shape(c, sub); ok {
			return value{text{s: strings.TrimRight(guess, "\n"), rough: true, from: t.from}}
		}
		if w.printsName(sub) {
			return value{text{s: HoleName, from: t.from}}
		}
	}
	t.s = strings.TrimRight(t.s, "\n")
	return value{t}
}

// process walks a process substitution: a file name under /dev/fd.
func (w *walker) process(p *syntax.ProcSubst, st *state) text {
	sub := st.clone()
	sub.piped = true
	at := w.at
	defer func() { w.at = at }()
	if p.Op == syntax.CmdOut {
		first := len(w.cmds)
		sub.in, sub.out = &source{}, nil
		w.stmts(p.Stmts, sub)
		// What is written to the name goes there: the other way round, but a flow
		// of the same kind between the same commands.
		var into []int
		for i := first; i < len(w.cmds); i++ {
			into = append(into, i)
		}
		return text{s: "/dev/fd/63", from: into}
	}
	sub.in, sub.out = nil, &sink{}
	w.stmts(p.Stmts, sub)
	// The shell numbers them downwards, as far as anyone can tell beforehand.
	path := "/dev/fd/" + strconv.Itoa(max(63-len(w.pipes), 10))
	if w.pipes == nil {
		w.pipes = map[string]*source{}
	}
	w.pipes[path] = sub.out.piped()
	return text{s: path, from: sub.out.from}
}
