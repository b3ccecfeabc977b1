// Package builtin is the table of curated documents that is part of the program.
//
// Each NAME.json here is a plain ATIP document and NAME_test.jsonl its test: one
// call per line, with what the document must say about it. To add a tool, write
// both and run "go generate ./shims/builtin". The generator refuses what would
// load only with a warning and writes the documents, compacted, one after the
// other into documents.blob, and where they stand and the names that lead to them
// into index.blob; none of it needs any work at program start. The tests then hold
// that
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
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/wildcard"
)

// table holds the documents, each followed by its index if it has one.
//
//go:embed documents.blob
var table []byte

// index holds lists of lines: where each document stands; the file names that lead to it, sorted;
// and the globs of file names, in the order in which they are tried. Where the second and the third
// list start is its end. It is text, because strings cut from it cost no allocation.
//
//go:embed index.blob
var index string

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

// lists returns the three lists of index: NAME OFFSET END END-OF-INDEX DIGEST of each document, and
// NAME PLACE-IN-THE-FIRST-LIST of each name and each glob.
func lists() (entries, names, globs string) {
	lines, ends := index[:len(index)-8], []byte(index[len(index)-8:])
	n, g := binary.LittleEndian.Uint32(ends), binary.LittleEndian.Uint32(ends[4:])
	return lines[:n], lines[n:g], lines[g:]
}

// number cuts a number from the start of a line.
func number(line string) (n int, rest string) {
	word, rest, _ := strings.Cut(line, "\t")
	n, _ = strconv.Atoi(strings.TrimSuffix(word, "\n")) // as the generator wrote it
	return n, rest
}

// Find returns the document for the base name of an executable file.
func Find(name string) (Entry, bool) {
	entries, names, globs := lists()
	for len(names) > 0 {
		start := strings.LastIndexByte(names[:len(names)/2], '\n') + 1
		end := start + strings.IndexByte(names[start:], '\n') + 1
		switch key, place, _ := strings.Cut(names[start:end], "\t"); {
		case key == name:
			return at(entries, place), true
		case key < name:
			names = names[end:]
		default:
			names = names[:start]
		}
	}
	for line := range strings.Lines(globs) {
		if glob, place, _ := strings.Cut(line, "\t"); wildcard.Match(glob, name) {
			return at(entries, place), true
		}
	}
	return Entry{}, false
}

// All returns every document in the order of their names.
func All() []Entry {
	var all []Entry
	entries, _, _ := lists()
	for line := range strings.Lines(entries) {
		all = append(all, at(line, "0"))
	}
	return all
}

// Names returns, for each document, the other file names and the globs that lead to it.
func Names() map[string][]string {
	out := map[string][]string{}
	entries, names, globs := lists()
	for line := range strings.Lines(names + globs) {
		name, place, _ := strings.Cut(line, "\t")
		if doc := at(entries, place).Name; doc != name {
			out[doc] = append(out[doc], name)
		}
	}
	return out
}

// at reads the entry at a place.
func at(entries, place string) Entry {
	start, _ := number(place)
	line, _, _ := strings.Cut(entries[start:], "\n")
	name, line, _ := strings.Cut(line, "\t")
	off, line := number(line)
	end, line := number(line)
	indexed, digest := number(line)
	e := Entry{Name: name, Raw: table[off:end:end], Digest: digest}
	if indexed > end {
		e.Index = table[end:indexed:indexed]
	}
	return e
}
