package builtin

import "strings"

// part is one first-level command of a large document: its member, `"name":{...}`,
// stands in table[off:end]. An alias leads to the same bytes.
type part struct {
	name     string
	off, end int
}

// rootFlag is an option of a large document's root that takes exactly n words.
type rootFlag struct {
	flag string
	n    int
}

// Cut returns the document with only those of its commands that argv can mean.
// Every byte of a document is scanned for duplicate keys before anything in it
// is believed, which for all of git takes longer than the rest of a decision;
// the documents here were scanned when the program was built.
//
// It cuts only where the cut cannot change how argv is read: the words before the
// command must be options of the root whose number of values is known. Else it
// returns the whole document.
func (e Entry) Cut(argv []string) []byte {
	s := e.span
	if s == nil || s.parts[0] == s.parts[1] {
		return e.Raw
	}
	word, ok := s.command(argv)
	if !ok {
		return e.Raw
	}
	var out []byte
	for _, p := range parts[s.parts[0]:s.parts[1]] {
		if p.name != word {
			continue
		}
		if out == nil {
			out = make([]byte, 0, s.head-s.off+p.end-p.off+s.end-s.tail)
			out = append(out, table[s.off:s.head]...)
		} else {
			out = append(out, ',')
		}
		out = append(out, table[p.off:p.end]...)
	}
	if out == nil {
		return e.Raw
	}
	return append(out, table[s.tail:s.end]...)
}

// command finds the word that names the first-level command.
func (s *span) command(argv []string) (string, bool) {
	for i := 1; i < len(argv); i++ {
		w := argv[i]
		if w == "" || w == "-" || w[0] != '-' {
			return w, w != ""
		}
		flag, _, attached := strings.Cut(w, "=")
		n := -1
		for _, f := range rootFlags[s.flags[0]:s.flags[1]] {
			if f.flag == flag {
				n = f.n
			}
		}
		switch {
		case n < 0, attached && (n != 1 || !strings.HasPrefix(w, "--")):
			return "", false
		case !attached:
			i += n
		}
	}
	return "", false
}
