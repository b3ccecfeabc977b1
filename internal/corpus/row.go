// Package corpus reads testdata/commands, makes the world that its rows speak of and
// counts answers against its labels. It decides nothing: the gate of this program and
// the measurement of others are the same numbers because both are counted here.
package corpus

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/quote"
)

// Row is one labelled command. The label says what the command really does
// and what the built-in policy means by that; it is never taken from our output.
type Row struct {
	ID         string            `json:"id"`
	Cmd        *string           `json:"cmd"`
	Argv       []string          `json:"argv"`
	Cwd        string            `json:"cwd"`   // relative to the work tree
	Files      map[string]string `json:"files"` // more files of the world
	Env        map[string]string `json:"env"`
	Decision   string            `json:"decision"`
	Acceptable []string          `json:"acceptable"`
	Effects    map[string]string `json:"effects"`
	Opaque     bool              `json:"opaque"`
	Tags       []string          `json:"tags"`
}

// maxLine bounds a row.
const maxLine = 2 << 20

// Read reads the files of a directory whose names match pattern, without ".jsonl". A row
// without an id is named by its place.
func Read(dir, pattern string) ([]Row, error) {
	names, err := filepath.Glob(filepath.Join(dir, pattern+".jsonl"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no corpus: no %s.jsonl in %s", pattern, dir)
	}
	var rows []Row
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(bytes.NewReader(raw))
		lines.Buffer(nil, maxLine)
		for n := 1; lines.Scan(); n++ {
			dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
			dec.DisallowUnknownFields()
			var r Row
			if err := dec.Decode(&r); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, n, err)
			}
			if r.ID == "" {
				r.ID = fmt.Sprintf("%s-%03d", strings.TrimSuffix(filepath.Base(name), ".jsonl"), n)
			}
			rows = append(rows, r)
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return rows, nil
}

// Text is the row as a shell string.
func (r *Row) Text() string {
	if r.Cmd != nil {
		return *r.Cmd
	}
	return quote.Words(r.Argv)
}

// Tagged reports a tag of the row.
func (r *Row) Tagged(tag string) bool { return slices.Contains(r.Tags, tag) }

// HeldOut reports a row of the part that rules are not fitted to: a fifth, by the hash
// of its text. Its failures count in the gate but are not listed while tuning.
func (r *Row) HeldOut() bool {
	h := sha256.Sum256([]byte(r.Text()))
	return h[0]%5 == 0
}
