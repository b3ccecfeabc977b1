package run

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
	"testing"

	"github.com/atip-dev/atip-exec/atip"
)

// corpusRow is one labelled command. The label says what the command really does
// and what the built-in policy means by that; it is never taken from our output.
type corpusRow struct {
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

func (r *corpusRow) text() string {
	if r.Cmd != nil {
		return *r.Cmd
	}
	return Quote(r.Argv)
}

func (r *corpusRow) tagged(tag string) bool { return slices.Contains(r.Tags, tag) }

// readCorpus reads all files; a row without an id is named by its place.
func readCorpus(t testing.TB) []corpusRow { return readCorpusFiles(t, "*") }

func readCorpusFiles(t testing.TB, pattern string) []corpusRow {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("..", "..", "testdata", "commands", pattern+".jsonl"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	var rows []corpusRow
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(bytes.NewReader(raw))
		lines.Buffer(nil, maxBatchLine)
		for n := 1; lines.Scan(); n++ {
			dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
			dec.DisallowUnknownFields()
			var r corpusRow
			if err := dec.Decode(&r); err != nil {
				t.Fatalf("%s:%d: %v", name, n, err)
			}
			if r.ID == "" {
				r.ID = fmt.Sprintf("%s-%03d", strings.TrimSuffix(filepath.Base(name), ".jsonl"), n)
			}
			rows = append(rows, r)
		}
	}
	return rows
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
		key := fmt.Sprint(r.text(), r.Cwd, r.Files, r.Env)
		if first := texts[key]; first != "" {
			t.Errorf("%s: the same row as %s: %s", r.ID, first, r.text())
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
			if !slices.ContainsFunc(dangerKeys(), func(k atip.Effect) bool { return dangerName(k) == e }) || v != "yes" && v != "no" {
				t.Errorf("%s: effect %s: %s", r.ID, e, v)
			}
		}
		count[r.Decision]++
		for _, tag := range r.Tags {
			count[tag]++
		}
		for _, w := range strings.FieldsFunc(r.text(), func(c rune) bool { return strings.ContainsRune(" \n\t;|&(){}'\"`$<>=,", c) }) {
			tools[filepath.Base(w)] = true
		}
	}
	n := len(rows)
	for _, want := range []struct {
		what string
		have int
		min  int
	}{{"rows", n, 1200}, {"allow", count["allow"], n * 35 / 100}, {"confirm", count["confirm"], n * 30 / 100}, {"deny", count["deny"], n * 20 / 100},
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

func (w corpusWorld) ask(r *corpusRow, b *Batch) answer {
	inv := w.invocation(r)
	var p *Plan
	var err error
	if len(r.Env) == 0 && len(r.Files) == 0 {
		p, err = b.make(inv)
	} else {
		m := b.Machine
		for name, value := range r.Env {
			m.Environ = append(slices.Clone(m.Environ), name+"="+value)
		}
		p, err = MakePlan(inv, m)
	}
	if err != nil {
		return answer{decision: "deny", reasons: err.Error()}
	}
	defer p.Close()
	a := answer{decision: p.Decision.Action.String(), effects: map[string]string{}, plan: p}
	for _, s := range p.steps {
		for _, e := range dangerKeys() {
			name := dangerName(e)
			if v := s.value(e).String(); a.effects[name] == "" || v == "yes" || v == "unknown" && a.effects[name] == "no" {
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

func (w corpusWorld) invocation(r *corpusRow) Invocation {
	inv := Invocation{Argv: r.Argv, Directory: filepath.Join(w.dir, r.Cwd)}
	if r.Cmd != nil {
		inv.Shell, inv.IsShell = *r.Cmd, true
	}
	return inv
}

// ratio counts hits among cases.
type ratio struct{ hit, of int }

func (r *ratio) add(hit bool) {
	r.of++
	if hit {
		r.hit++
	}
}

func (r ratio) share() float64 {
	if r.of == 0 {
		return 0
	}
	return float64(r.hit) / float64(r.of)
}

func (r ratio) String() string { return fmt.Sprintf("%d/%d %.2f %%", r.hit, r.of, 100*r.share()) }

// heldOut reports a row of the part that rules are not fitted to: a fifth, by the hash
// of its text. Its failures count in the gate but are not listed while tuning.
func (r *corpusRow) heldOut() bool {
	h := sha256.Sum256([]byte(r.text()))
	return h[0]%5 == 0
}

// recalled are the effects that must not be overlooked.
var recalled = []string{"delete", "destructive", "remoteMutation", "secretRead"}

// score is what the gate looks at.
type score struct {
	rows                                                                         int
	unsafe, allowOnDeny, clear, friction, overBlock, exact, acceptable, evasions ratio
	recall, stated                                                               map[string]*ratio
	matrix                                                                       map[string]map[string]int
}

func newScore() *score {
	s := &score{recall: map[string]*ratio{}, stated: map[string]*ratio{}, matrix: map[string]map[string]int{"allow": {}, "confirm": {}, "deny": {}}}
	for _, e := range recalled {
		s.recall[e], s.stated[e] = &ratio{}, &ratio{}
	}
	return s
}

func (s *score) add(r *corpusRow, got answer) {
	s.rows++
	s.matrix[r.Decision][got.decision]++
	fits := slices.Contains(r.Acceptable, got.decision)
	s.exact.add(got.decision == r.Decision)
	s.acceptable.add(fits)
	if r.tagged("evasion") && r.Decision != "allow" {
		s.evasions.add(got.decision == "allow" && !fits)
	}
	if r.Decision != "allow" {
		s.unsafe.add(got.decision == "allow" && !fits)
	} else {
		s.friction.add(got.decision != "allow")
		s.overBlock.add(got.decision == "deny")
		if len(r.Acceptable) == 1 {
			s.clear.add(got.decision != "allow")
		}
	}
	if r.Decision == "deny" {
		s.allowOnDeny.add(got.decision == "allow")
	}
	for _, e := range recalled {
		if r.Effects[e] != "yes" || got.plan == nil {
			continue
		}
		// Unknown is judged as yes: it is found, if not named.
		s.recall[e].add(got.effects[e] == "yes" || got.effects[e] == "unknown")
		s.stated[e].add(got.effects[e] == "yes")
	}
}

// gate prints the numbers and fails where one is too high. Where there are too few rows
// for a share to mean something, one row may differ.
func (s *score) gate(t *testing.T, part string) {
	t.Logf("%s: %d rows", part, s.rows)
	for _, d := range []string{"allow", "confirm", "deny"} {
		t.Logf("labelled %-7s  allow %4d  confirm %4d  deny %4d", d, s.matrix[d]["allow"], s.matrix[d]["confirm"], s.matrix[d]["deny"])
	}
	t.Logf("unsafe allow %v; allow on deny rows %v; evasions allowed %v", s.unsafe, s.allowOnDeny, s.evasions)
	t.Logf("friction: clear allow %v, all allow %v; deny on allow rows %v", s.clear, s.friction, s.overBlock)
	t.Logf("exact %v; acceptable %v", s.exact, s.acceptable)
	for _, e := range recalled {
		t.Logf("recall of %s %v (named %v)", e, *s.recall[e], *s.stated[e])
	}
	missed := func(r ratio) ratio { return ratio{r.of - r.hit, r.of} }
	for _, g := range []struct {
		what string
		have ratio
		max  float64
	}{{"unsafe allow", s.unsafe, 0}, {"allow on deny rows", s.allowOnDeny, 0}, {"evasions allowed", s.evasions, 0}, {"friction on clear allow", s.clear, .02}, {"friction", s.friction, .10},
		{"deny on allow rows", s.overBlock, .005}, {"not acceptable", missed(s.acceptable), .03}, {"not exact", missed(s.exact), .10},
		{"missed delete", missed(*s.recall["delete"]), .02}, {"missed destructive", missed(*s.recall["destructive"]), .02},
		{"missed remoteMutation", missed(*s.recall["remoteMutation"]), .02}, {"missed secretRead", missed(*s.recall["secretRead"]), .02}} {
		if g.have.share() > g.max && !(g.max > 0 && g.have.hit == 1) {
			t.Errorf("%s: %s: %v, at most %.2f %%", part, g.what, g.have, 100*g.max)
		}
	}
}

// TestCorpus plans every row and holds the gate: no unsafe allow, little needless
// friction, no dangerous effect overlooked; once for the rows that are worked with and
// once for those that are held out. With CORPUS_ROWS=all it lists every row of the
// former that differs from its label, with CORPUS_ROWS=held those of the latter, which
// is for a release and not for tuning. CORPUS_FILE=everyday takes one file only.
func TestCorpus(t *testing.T) {
	rows := readCorpus(t)
	if name := os.Getenv("CORPUS_FILE"); name != "" {
		rows = readCorpusFiles(t, name)
	}
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	open, held := newScore(), newScore()
	for i := range rows {
		r := &rows[i]
		undo, err := w.place(*r)
		if err != nil {
			t.Fatal(err)
		}
		got := w.ask(r, b)
		undo()
		part, list := open, os.Getenv("CORPUS_ROWS") == "all"
		if r.heldOut() {
			part, list = held, os.Getenv("CORPUS_ROWS") == "held"
		}
		part.add(r, got)
		fits := slices.Contains(r.Acceptable, got.decision)
		if got.decision == "allow" && !fits && (part == open || list) {
			t.Errorf("unsafe allow: %s: %q is labelled %s", r.ID, r.text(), r.Decision)
		}
		if list && !fits {
			t.Logf("differs: %s: %q is labelled %s, judged %s: %s", r.ID, r.text(), r.Decision, got.decision, got.reasons)
		}
		for _, e := range recalled {
			if list && r.Effects[e] == "yes" && got.plan != nil && got.effects[e] != "yes" {
				t.Logf("%s is %s: %s: %q", e, got.effects[e], r.ID, r.text())
			}
		}
	}
	open.gate(t, "worked with")
	held.gate(t, "held out")
}

// TestCorpusOrder holds that a decision does not depend on what was asked before: a
// batch remembers tools, a plan of its own does not.
func TestCorpusOrder(t *testing.T) {
	rows := readCorpus(t)
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	slices.SortStableFunc(rows, func(x, y corpusRow) int { return strings.Compare(x.text(), y.text()) })
	for i := 0; i < len(rows); i += 60 {
		first, second := w.ask(&rows[i], b), w.ask(&rows[i], &Batch{Machine: b.Machine})
		if first.decision != second.decision || first.reasons != second.reasons {
			t.Errorf("%q: %s after others, %s alone", rows[i].text(), first.decision, second.decision)
		}
	}
}
