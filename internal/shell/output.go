package shell

import (
	"strings"

	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/shell/shelltext"
)

// writes lists a builtin whose output is known.
func (w *walker) writes(r *run, st *state, t text) {
	i := w.finish(r, r.list(Builtin), st)
	for _, f := range r.words {
		t.from = union(t.from, f.from)
	}
	st.out.write(t)
	if t.exact() {
		w.toFile(i, r, t.s)
	} else if r.io.file != nil {
		r.io.file.write(t)
	}
}

// echo is what echo writes.
func (w *walker) echo(args fields) text {
	newline, escapes := true, false
	for len(args) > 0 && len(args[0].s) > 1 && args[0].s[0] == '-' && strings.Trim(args[0].s[1:], "neE") == "" {
		newline = newline && !strings.Contains(args[0].s, "n")
		escapes = strings.Contains(args[0].s, "e")
		args = args[1:]
	}
	t := joinFields(args)
	if strings.IndexByte(t.s, '\\') >= 0 {
		switch {
		case escapes:
			s, ok := escape(t.s)
			if !ok {
				return text{s: Hole, from: t.from}
			}
			t.s = s
		case w.o.Dialect == shelltext.POSIX:
			// Shells differ in what echo does with it.
			return text{s: Hole, from: t.from}
		}
	}
	if newline {
		t.s += "\n"
	}
	return t
}

// escape decodes what echo -e and printf know: like $'…' but for octal and \c.
func escape(s string) (string, bool) {
	// echo and printf count the digits of \0 differently, and a NUL byte is an end or
	// a separator to who reads it. The escape character alone is common.
	if strings.Contains(s, `\c`) || strings.Contains(strings.ReplaceAll(s, `\033`, ""), `\0`) {
		return "", false
	}
	return quote.Decode(s)
}

func (w *walker) printf(r *run, args fields, st *state) {
	target := ""
	if len(args) > 1 && args[0].s == "-v" {
		w.names("printf", args[1:2], st)
		target, args = args[1].s, args[2:]
	}
	if len(args) > 0 && args[0].s == "--" {
		args = args[1:]
	}
	t := format(args)
	for _, a := range args {
		t.from = union(t.from, a.from)
	}
	if target == "" {
		w.writes(r, st, t)
		return
	}
	w.finish(r, r.list(Builtin), st)
	if name(target) {
		w.assignValue(st, target, value{t})
	} else if i := strings.IndexByte(target, '['); i > 0 && name(target[:i]) {
		w.assignElement(st, target[:i], nil, unknown(t.from), false)
		w.lookup(st, target[:i]).open = true
	}
}

// format is what printf writes, if its format is made of %s, %d, %b and text.
func format(args fields) text {
	hole := text{s: Hole}
	if len(args) == 0 || !args[0].exact() {
		return hole
	}
	f, ok := escape(strings.ReplaceAll(args[0].s, `%%`, "\x02"))
	if !ok {
		return hole
	}
	rest := args[1:]
	var b strings.Builder
	rough := false
	for round := 0; round < maxWords; round++ {
		used := false
		for i := 0; i < len(f); i++ {
			switch {
			case f[i] == 2:
				b.WriteByte('%')
			case f[i] != '%':
				b.WriteByte(f[i])
			case i+1 == len(f) || !strings.ContainsRune("sdbi", rune(f[i+1])):
				return hole
			default:
				i++
				used = true
				if len(rest) == 0 {
					if f[i] != 's' && f[i] != 'b' {
						b.WriteByte('0')
					}
					continue
				}
				a := rest[0]
				rest = rest[1:]
				rough = rough || a.rough
				if f[i] == 'b' && a.known() {
					if a.s, ok = escape(a.s); !ok {
						return hole
					}
				}
				b.WriteString(a.s)
			}
		}
		if len(rest) == 0 || !used {
			return text{s: b.String(), rough: rough}
		}
	}
	return hole
}
