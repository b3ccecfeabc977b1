package builtin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// row is one line of a NAME_test.jsonl: what the document must say about an argv.
// Effects lists only those that matter; resources and nested commands are a
// subset unless they are [], which means none.
type row struct {
	Argv      []string          `json:"argv"`
	Path      []string          `json:"path"`
	Effects   map[string]string `json:"effects"`
	Exactness string            `json:"exactness"`
	Resources *[]resource       `json:"resources"`
	Nested    *[]atip.Nested    `json:"nested"`
	Env       map[string]string `json:"env"`
	Unknown   []string          `json:"unknownOptions"`
}

type resource struct {
	Kind      string `json:"kind"`
	Value     string `json:"value"`
	Access    string `json:"access"`
	Recursive *bool  `json:"recursive"`
	Host      string `json:"host"`
}

// document parses NAME.json itself, so that its author needs no generator run.
func document(t testing.TB, file string) *atip.Document {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := atip.Parse(raw, atip.ParseOptions{})
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return doc
}

func resolve(doc *atip.Document, r row) atip.Call {
	effective := filepath.Base(r.Argv[0])
	return doc.Resolve(r.Argv, atip.ResolveOptions{
		Provenance: atip.Provenance{Channel: "builtin", Rank: atip.Org, Binding: "name", Source: "builtin:" + doc.Name()},
		Effective:  effective,
		InvokedAs:  effective,
		Env:        func(name string) (string, bool) { v, ok := r.Env[name]; return v, ok },
		EnvNames:   slices.Collect(keys(r.Env)),
	})
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestRows(t *testing.T) {
	files, err := filepath.Glob("*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no documents", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".json")
		t.Run(name, func(t *testing.T) {
			doc := document(t, file)
			for _, w := range doc.Warnings() {
				t.Errorf("%s:%d: %s: %s", file, w.Line, w.Pointer, w.Message)
			}
			raw, err := os.ReadFile(name + "_test.jsonl")
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(bytes.NewReader(raw))
			lines.Buffer(nil, 1<<20)
			rows := 0
			for n := 1; lines.Scan(); n++ {
				if len(bytes.TrimSpace(lines.Bytes())) == 0 {
					continue
				}
				var r row
				dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
				dec.DisallowUnknownFields()
				if err := dec.Decode(&r); err != nil {
					t.Errorf("%s_test.jsonl:%d: %v", name, n, err)
					continue
				}
				rows++
				if bad := check(resolve(doc, r), r); len(bad) > 0 {
					t.Errorf("%s_test.jsonl:%d: %q\n\t%s", name, n, r.Argv, strings.Join(bad, "\n\t"))
				}
			}
			if rows == 0 {
				t.Error("no rows")
			}
		})
	}
}

func check(c atip.Call, r row) (bad []string) {
	want := r.Path
	if n := len(want); n > 0 && want[n-1] == "" {
		want = want[:n-1] // commands[""] is the command above it
	}
	if !slices.Equal(c.Path, want) {
		bad = append(bad, fmt.Sprintf("path %q, want %q", c.Path, want))
	}
	for key, want := range r.Effects {
		e, ok := atip.EffectByKey(key)
		if !ok {
			bad = append(bad, "no effect is called "+key)
			continue
		}
		if got := c.Effects[e]; got.Value.String() != want {
			bad = append(bad, fmt.Sprintf("%s is %s, want %s (%s %s)", e, got.Value, want, got.Pointer, got.Clause))
		}
	}
	if r.Exactness != "" && c.Exactness.String() != r.Exactness {
		bad = append(bad, fmt.Sprintf("%s, want %s; unknown options %q", c.Exactness, r.Exactness, c.UnknownOptions))
	}
	if r.Unknown != nil && !slices.Equal(r.Unknown, c.UnknownOptions) {
		bad = append(bad, fmt.Sprintf("unknown options %q, want %q", c.UnknownOptions, r.Unknown))
	}
	if r.Resources != nil {
		if len(*r.Resources) == 0 && len(c.Resources) > 0 {
			bad = append(bad, fmt.Sprintf("resources %+v, want none", c.Resources))
		}
		for _, want := range *r.Resources {
			if !slices.ContainsFunc(c.Resources, want.is) {
				bad = append(bad, fmt.Sprintf("no resource %+v in %s", want, show(c.Resources)))
			}
		}
	}
	if r.Nested != nil {
		if len(*r.Nested) == 0 && len(c.Nested) > 0 {
			bad = append(bad, fmt.Sprintf("nested %+v, want none", c.Nested))
		}
		for _, want := range *r.Nested {
			if !slices.ContainsFunc(c.Nested, func(got atip.Nested) bool {
				return got.Kind == want.Kind && slices.Equal(got.Argv, want.Argv) && got.Text == want.Text &&
					(want.File == "" || got.File == want.File) && (want.Language == "" || got.Language == want.Language)
			}) {
				bad = append(bad, fmt.Sprintf("no nested %s in %s", show(want), show(c.Nested)))
			}
		}
	}
	return bad
}

// is compares what want states; its accesses must all be among those of got.
func (want resource) is(got atip.Resource) bool {
	if want.Kind != "" && want.Kind != got.Kind || want.Value != got.Value || want.Host != "" && want.Host != got.Host {
		return false
	}
	if want.Recursive != nil && *want.Recursive != got.Recursive {
		return false
	}
	have := strings.Split(got.Access.String(), ",")
	for a := range strings.SplitSeq(want.Access, ",") {
		if a != "" && !slices.Contains(have, a) {
			return false
		}
	}
	return true
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
