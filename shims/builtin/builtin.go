// Package builtin is the table of curated documents that is part of the program.
//
// Each NAME.json here is a plain ATIP document and NAME_test.jsonl its test: one
// call per line, with what the document must say about it. To add a tool, write
// both and run "go generate ./shims/builtin". The generator refuses what would
// load only with a warning and writes the documents, compacted, one after the
// other into documents.blob, their offsets into documents_table.go and the names
// that lead to them into names_table.go and globs_table.go; none of it needs any
// work at program start. The tests then hold that
//
//   - each row says what it must, and each clause is noticed by some row;
//   - no word added to a call lowers an effect, unless a narrow says so;
//   - reading a large document by its index says the same as reading all of it.
//
// A document describes a program by its effective name. If the program looks at
// the name it is called by, x-atip-names lists all such names, and effects states
// the worst that it does under any of them: under a name that is not listed all
// of effects is assumed.
package builtin

//go:generate go run ./gen

import (
	_ "embed"

	"github.com/atip-dev/atip-exec/atip"
)

//go:embed documents.blob
var table []byte

// Entry is one curated document.
type Entry struct {
	Name   string // the document's name
	Raw    []byte // its bytes; shared, not to be changed
	Digest string // lower-case hex SHA-256 of Raw
	Index  []byte // of atip.Index, nil for a small document
}

// Parse reads the document. A large one is read by its index: to scan every byte
// of all that git can do takes longer than the rest of a decision, and was done
// when the table was generated.
func (e Entry) Parse() (*atip.Document, error) {
	if e.Index != nil {
		return atip.ParseIndexed(e.Raw, e.Index)
	}
	return atip.Parse(e.Raw, atip.ParseOptions{})
}

// span says where a document stands in table.
type span struct {
	name          string
	off, end, idx int // table[off:end] is the document, table[end:idx] its index
	digest        string
}

// alias leads from a file name, or a glob of file names, to a span.
type alias struct {
	name string
	doc  int
}

// Find returns the document for the base name of an executable file.
func Find(name string) (Entry, bool) {
	lo, hi := 0, len(names)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if names[mid].name < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(names) && names[lo].name == name {
		return at(names[lo].doc), true
	}
	for i := range globs {
		if match(globs[i].name, name) {
			return at(globs[i].doc), true
		}
	}
	return Entry{}, false
}

// Lookup returns the document for name and how to cite it.
func Lookup(name string) (raw []byte, source string, ok bool) {
	e, ok := Find(name)
	if !ok {
		return nil, "", false
	}
	return e.Raw, "builtin:" + e.Name, true
}

// All returns every document in the order of their names.
func All() []Entry {
	all := make([]Entry, len(spans))
	for i := range spans {
		all[i] = at(i)
	}
	return all
}

// Names returns the file names and globs that lead to the document called name.
func Names(name string) []string {
	var out []string
	for _, list := range [][]alias{names[:], globs[:]} {
		for _, a := range list {
			if spans[a.doc].name == name && a.name != name {
				out = append(out, a.name)
			}
		}
	}
	return out
}

func at(i int) Entry {
	s := &spans[i]
	e := Entry{Name: s.name, Raw: table[s.off:s.end:s.end], Digest: s.digest}
	if s.idx > s.end {
		e.Index = table[s.end:s.idx:s.idx]
	}
	return e
}

// match is a glob with * and ? over a file name.
func match(pattern, name string) bool {
	star, retry := -1, 0
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, retry = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			retry++
			p, n = star+1, retry
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
