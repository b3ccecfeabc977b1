package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/corpus"
	"github.com/atip-dev/atip-exec/policy"
)

// readCorpus reads all files; a row without an id is named by its place.
func readCorpus(t testing.TB) []corpus.Row { return readCorpusFiles(t, "*") }

func readCorpusFiles(t testing.TB, pattern string) []corpus.Row {
	t.Helper()
	rows, err := corpus.Read(filepath.Join("..", "..", "testdata", "commands"), pattern)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// corpusWorld is the world of the corpus, seen by this package.
type corpusWorld struct{ corpus.World }

func newCorpusWorld(t testing.TB) corpusWorld {
	t.Helper()
	w, err := corpus.NewWorld()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Remove() })
	return corpusWorld{w}
}

func (w corpusWorld) machine() caller.Machine {
	m := here()
	m.Environ = w.Environ()
	return m
}

// TestCorpusShape holds what the corpus is made of: enough of everything, no row
// twice, labels that mean something.
func TestCorpusShape(t *testing.T) {
	rows := readCorpus(t)
	count := map[string]int{}
	ids, texts, tools := map[string]bool{}, map[string]string{}, map[string]bool{}
	for i := range rows {
		r := &rows[i]
		if ids[r.ID] {
			t.Errorf("%s: the id is used twice", r.ID)
		}
		ids[r.ID] = true
		key := fmt.Sprint(r.Text(), r.Cwd, r.Files, r.Env)
		if first := texts[key]; first != "" {
			t.Errorf("%s: the same row as %s: %s", r.ID, first, r.Text())
		}
		texts[key] = r.ID
		if (r.Cmd == nil) == (len(r.Argv) == 0) {
			t.Errorf("%s: it needs cmd or argv", r.ID)
		}
		if !slices.Contains(r.Acceptable, r.Decision) {
			t.Errorf("%s: its decision is not acceptable", r.ID)
		}
		for _, d := range append([]string{r.Decision}, r.Acceptable...) {
			if d != "allow" && d != "confirm" && d != "deny" {
				t.Errorf("%s: decision %q", r.ID, d)
			}
		}
		for e, v := range r.Effects {
			if !slices.ContainsFunc(DangerKeys(), func(k atip.Effect) bool { return policy.DangerName(k) == e }) || v != "yes" && v != "no" {
				t.Errorf("%s: effect %s: %s", r.ID, e, v)
			}
		}
		count[r.Decision]++
		for _, tag := range r.Tags {
			count[tag]++
		}
		for _, w := range strings.FieldsFunc(r.Text(), func(c rune) bool { return strings.ContainsRune(" \n\t;|&(){}'\"`$<>=,", c) }) {
			tools[filepath.Base(w)] = true
		}
	}
	n := len(rows)
	for _, want := range []struct {
		what string
		have int
		min  int
	}{{"rows", n, 1200}, {"allow", count["allow"], n * 35 / 100}, {"confirm", count["confirm"], n * 29 / 100}, {"deny", count["deny"], n * 20 / 100},
		{"evasion", count["evasion"], 300}, {"lookalike", count["lookalike"], 220}} {
		if want.have < want.min {
			t.Errorf("%s: %d, want %d", want.what, want.have, want.min)
		}
	}
	docs, err := filepath.Glob(filepath.Join("..", "..", "shims", "builtin", "*.json"))
	if err != nil || len(docs) < 100 {
		t.Fatalf("builtin documents: %d, %v", len(docs), err)
	}
	var missing []string
	for _, d := range docs {
		if name := strings.TrimSuffix(filepath.Base(d), ".json"); !tools[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("builtin tools without a row: %s", strings.Join(missing, " "))
	}
}

// answer is what the program says of a row.
type answer struct {
	decision string
	effects  map[string]string // the worst of all steps
	reasons  string
	plan     *Plan
}

func (w corpusWorld) ask(r *corpus.Row, b *Batch) answer {
	inv := w.invocation(r)
	var p *Plan
	var err error
	if len(r.Env) == 0 && len(r.Files) == 0 {
		p, err = b.Plan(inv)
	} else {
		m := b.Machine
		for name, value := range r.Env {
			m.Environ = append(slices.Clone(m.Environ), name+"="+value)
		}
		p, err = Make(inv, m)
	}
	if err != nil {
		return answer{decision: "deny", reasons: err.Error()}
	}
	defer p.Close()
	a := answer{decision: p.Decision.Action.String(), effects: map[string]string{}, plan: p}
	for _, s := range p.Steps {
		for _, e := range DangerKeys() {
			name := policy.DangerName(e)
			if v := s.Value(e).String(); a.effects[name] == "" || v == "yes" || v == "unknown" && a.effects[name] == "no" {
				a.effects[name] = v
			}
		}
	}
	var reasons []string
	for _, why := range p.Decision.Reasons {
		if why.Action == p.Decision.Action {
			reasons = append(reasons, why.Rule+" ["+why.Text+"]")
		}
	}
	a.reasons = strings.Join(reasons, "; ")
	return a
}

func (w corpusWorld) invocation(r *corpus.Row) Invocation {
	inv := Invocation{Argv: r.Argv, Directory: filepath.Join(w.Dir, r.Cwd)}
	if r.Cmd != nil {
		inv.Shell, inv.IsShell = *r.Cmd, true
	}
	return inv
}

// holdGate prints the numbers and fails where one is too high. Where there are too few rows
// for a share to mean something, one row may differ.
func holdGate(t *testing.T, s *corpus.Score, part string) {
	t.Logf("%s: %d rows", part, s.Rows)
	for _, d := range []string{"allow", "confirm", "deny"} {
		t.Logf("labelled %-7s  allow %4d  confirm %4d  deny %4d", d, s.Matrix[d]["allow"], s.Matrix[d]["confirm"], s.Matrix[d]["deny"])
	}
	t.Logf("unsafe allow %v; allow on deny rows %v; evasions allowed %v", s.Unsafe, s.AllowOnDeny, s.Evasions)
	t.Logf("friction: clear allow %v, all allow %v; deny on allow rows %v", s.Clear, s.Friction, s.OverBlock)
	t.Logf("exact %v; acceptable %v", s.Exact, s.Acceptable)
	for _, e := range corpus.Recalled() {
		t.Logf("recall of %s %v (named %v)", e, *s.Recall[e], *s.Stated[e])
	}
	missed := func(r corpus.Ratio) corpus.Ratio { return corpus.Ratio{Hit: r.Of - r.Hit, Of: r.Of} }
	for _, g := range []struct {
		what string
		have corpus.Ratio
		max  float64
	}{{"unsafe allow", s.Unsafe, 0}, {"allow on deny rows", s.AllowOnDeny, 0}, {"evasions allowed", s.Evasions, 0}, {"friction on clear allow", s.Clear, .02}, {"friction", s.Friction, .10},
		{"deny on allow rows", s.OverBlock, .005}, {"not acceptable", missed(s.Acceptable), .03}, {"not exact", missed(s.Exact), .10},
		{"missed delete", missed(*s.Recall["delete"]), .02}, {"missed destructive", missed(*s.Recall["destructive"]), .02},
		{"missed remoteMutation", missed(*s.Recall["remoteMutation"]), .02}, {"missed secretRead", missed(*s.Recall["secretRead"]), .02}} {
		if g.have.Share() > g.max && !(g.max > 0 && g.have.Hit == 1) {
			t.Errorf("%s: %s: %v, at most %.2f %%", part, g.what, g.have, 100*g.max)
		}
	}
}

// TestCorpus plans every row and holds the gate: no unsafe allow, little needless
// friction, no dangerous effect overlooked; once for the rows that are worked with and
// once for those that are held out. With CORPUS_ROWS=all it lists every row of the
// former that differs from its label, with CORPUS_ROWS=held those of the latter, which
// is for a release and not for tuning. CORPUS_FILE=everyday takes one file only,
// CORPUS_FIFTH=0 to 4 every fifth row.
func TestCorpus(t *testing.T) {
	rows := readCorpus(t)
	if name := os.Getenv("CORPUS_FILE"); name != "" {
		rows = readCorpusFiles(t, name)
	}
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	open, held := corpus.NewScore(), corpus.NewScore()
	fifth, err := strconv.Atoi(os.Getenv("CORPUS_FIFTH"))
	sample := err == nil || testing.Short() // with -race each takes ten times as long; the whole runs without
	for i := range rows {
		if sample && i%5 != fifth {
			continue
		}
		r := &rows[i]
		undo, err := w.Place(r)
		if err != nil {
			t.Fatal(err)
		}
		got := w.ask(r, b)
		undo()
		part, list := open, os.Getenv("CORPUS_ROWS") == "all"
		if r.HeldOut() {
			part, list = held, os.Getenv("CORPUS_ROWS") == "held"
		}
		part.Add(r, got.decision, got.effects)
		fits := slices.Contains(r.Acceptable, got.decision)
		if got.decision == "allow" && !fits && (part == open || list) {
			t.Errorf("unsafe allow: %s: %q is labelled %s", r.ID, r.Text(), r.Decision)
		}
		if list && !fits {
			t.Logf("differs: %s: %q is labelled %s, judged %s: %s", r.ID, r.Text(), r.Decision, got.decision, got.reasons)
		}
		for _, e := range corpus.Recalled() {
			if list && r.Effects[e] == "yes" && got.plan != nil && got.effects[e] != "yes" {
				t.Logf("%s is %s: %s: %q", e, got.effects[e], r.ID, r.Text())
			}
		}
	}
	if sample {
		return // shares of a part say nothing
	}
	holdGate(t, open, "worked with")
	holdGate(t, held, "held out")
}

// TestCorpusOrder holds that a decision does not depend on what was asked before: a
// batch remembers tools, a plan of its own does not.
func TestCorpusOrder(t *testing.T) {
	rows := readCorpus(t)
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	slices.SortStableFunc(rows, func(x, y corpus.Row) int { return strings.Compare(x.Text(), y.Text()) })
	for i := 0; i < len(rows); i += 60 {
		first, second := w.ask(&rows[i], b), w.ask(&rows[i], &Batch{Machine: b.Machine})
		if first.decision != second.decision || first.reasons != second.reasons {
			t.Errorf("%q: %s after others, %s alone", rows[i].Text(), first.decision, second.decision)
		}
	}
}
