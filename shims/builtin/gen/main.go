// Command gen checks the curated documents of package builtin and writes the
// table that is embedded in the program. It refuses a document that would load
// only with a warning: nobody is there to read warnings about a builtin.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "builtin table:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	files, err := build(dir)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// indexed is the least size of a document for which an index pays: one of that size with a
// few clauses in each command takes more than the 200 allocations a look-up may have.
const indexed = 4000

type name struct {
	text string
	doc  int
}

// build returns the files to write: the concatenated documents, and where they stand with the
// names that lead to them.
func build(dir string) (map[string][]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no documents in %s", dir)
	}
	slices.Sort(files)
	var problems []string
	var claims []name
	ids := map[string]int{}
	var blob []byte
	var index []byte
	var places []int // in it, of each document
	for i, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		id := strings.TrimSuffix(filepath.Base(file), ".json")
		ids[id] = i
		for _, f := range atip.Validate(raw, file) {
			problems = append(problems, fmt.Sprintf("%s:%d:%d: %s: %s %s", file, f.Line, f.Col, f.Pointer, f.Code, f.Message))
		}
		lints, err := lint(raw)
		if err != nil {
			lints = []string{err.Error()}
		}
		for _, l := range append(lints, lintManifests(id, raw)...) {
			problems = append(problems, file+": "+l)
		}
		doc, err := atip.Parse(raw, atip.ParseOptions{})
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", file, err))
			continue
		}
		for _, f := range doc.Lint() {
			if f.Code == "L11" {
				problems = append(problems, fmt.Sprintf("%s: %s %s: %s", file, f.Code, f.Pointer, f.Message))
			}
		}
		if doc.Name() != id {
			problems = append(problems, fmt.Sprintf("%s: the document is called %q", file, doc.Name()))
		}
		if rank, ok := doc.DeclaredSource(); !ok || rank != atip.Org {
			problems = append(problems, fmt.Sprintf("%s: trust.source is not org", file))
		}
		for _, n := range append([]string{id}, doc.Names()...) {
			if c := (name{n, i}); !slices.Contains(claims, c) {
				claims = append(claims, c)
			}
		}
		// The offsets are those of the compact form: look-up scans every byte.
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", file, err))
			continue
		}
		sum := sha256.Sum256(compact.Bytes())
		var clauses []byte
		if compact.Len() >= indexed {
			if clauses, err = atip.Index(compact.Bytes(), atip.ParseOptions{}); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %v", file, err))
				continue
			}
		}
		off, end := len(blob), len(blob)+compact.Len()
		places = append(places, len(index))
		index = fmt.Appendf(index, "%s\t%d\t%d\t%d\t%x\n", id, off, end, end+len(clauses), sum)
		blob = append(append(blob, compact.Bytes()...), clauses...)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("%d problems\n%s", len(problems), strings.Join(problems, "\n"))
	}
	names, globs := table(claims, ids)
	byText := func(a, b name) int { return strings.Compare(a.text, b.text) }
	slices.SortFunc(names, byText)
	// A longer glob says more, so it is asked first.
	slices.SortFunc(globs, func(a, b name) int {
		if d := len(b.text) - len(a.text); d != 0 {
			return d
		}
		return strings.Compare(a.text, b.text)
	})
	var starts []byte
	for _, list := range [][]name{names, globs} {
		starts = binary.LittleEndian.AppendUint32(starts, uint32(len(index)))
		for _, n := range list {
			index = fmt.Appendf(index, "%s\t%d\n", n.text, places[n.doc])
		}
	}
	return map[string][]byte{"documents.blob": blob, "index.blob": append(index, starts...)}, nil
}

// table decides which document a file name leads to. Several may list a name, since
// a link of that name may lead to each: sh is bash or dash, and both must know that
// they are called so. A file of that name is then the document called so, if any.
func table(claims []name, ids map[string]int) (names, globs []name) {
	count := map[string]int{}
	for _, c := range claims {
		count[c.text]++
	}
	for _, c := range claims {
		switch id, is := ids[c.text]; {
		case is && id != c.doc, !is && count[c.text] > 1:
		case strings.ContainsAny(c.text, "*?"):
			globs = append(globs, c)
		default:
			names = append(names, c)
		}
	}
	return names, globs
}
