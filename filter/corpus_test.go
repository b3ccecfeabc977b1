package filter_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/redactcorpus"
)

const corpora = "../testdata/filter"

// bounds are what the filter reaches on a part of the corpora. The aim for each is a recall of
// .95, a precision of .995 and 2 % of leaked bytes; `go run ./scripts/filterscore -v` says what is
// missing in the open records. The earlier sets were worked with, the held-out records were not.
var bounds = [...]struct {
	part                      string
	recall, precision, leaked float64
}{
	{redactcorpus.Earlier, 0.982, 0.995, 0.012},
	{redactcorpus.Open, 0.96, 0.997, 0.025},
	{redactcorpus.HeldOut, 0.94, 0.992, 0.045},
	{redactcorpus.ThirdOpen, 0.94, 0.995, 0.05},
	{redactcorpus.ThirdHeldOut, 0.86, 0.93, 0.12},
	{redactcorpus.Fourth, 0.95, 0.995, 0.05},
	{redactcorpus.Fifth, 0.95, 0.99, 0.045},
	{redactcorpus.Sixth, 0.95, 0.99, 0.02},
	{redactcorpus.Seventh, 0.93, 0.98, 0.07},
	{redactcorpus.Eighth, 0.9, 0.98, 0.09},
	{redactcorpus.Ninth, 0.96, 0.97, 0.02},
	{redactcorpus.Tenth, 0.94, 0.97, 0.06},
	{redactcorpus.Eleventh, 0.97, 0.95, 0.02},
	{redactcorpus.Twelfth, 0.93, 0.97, 0.05},
	{redactcorpus.Thirteenth, 0.9, 0.95, 0.07},
	{redactcorpus.Fourteenth, 0.98, 0.93, 0.01},
	{redactcorpus.Fifteenth, 0.95, 0.97, 0.04},
	{redactcorpus.Sixteenth, 0.97, 0.97, 0.02},
	{redactcorpus.Seventeenth, 0.98, 0.96, 0.01},
	{redactcorpus.Eighteenth, 0.94, 0.98, 0.05},
	{redactcorpus.Nineteenth, 0.96, 0.97, 0.015},
	{redactcorpus.Twentieth, 0.96, 0.98, 0.01},
	{redactcorpus.TwentyFirst, 0.94, 0.98, 0.03},
}

func corpus(t *testing.T, seed uint64) []redactcorpus.Record {
	t.Helper()
	records, err := redactcorpus.Outputs(corpora, seed)
	if err != nil {
		t.Fatal(err)
	}
	negatives, err := redactcorpus.Negatives(corpora, seed)
	if err != nil {
		t.Fatal(err)
	}
	return append(records, negatives...)
}

// TestOutputsBreakOff: an output may end at any byte. A build tries one end in twenty;
// CLIFF=all tries them all.
func TestOutputsBreakOff(t *testing.T) {
	t.Parallel()
	set, err := filter.NewSet(filter.Config{NoMemory: true}, filter.Known{}, filter.TagKey{})
	if err != nil {
		t.Fatal(err)
	}
	step := 20
	if os.Getenv("CLIFF") == "all" {
		step = 1
	}
	n, rng := 0, rand.New(rand.NewSource(3))
	for _, r := range corpus(t, 1) {
		for k := 1 + rng.Intn(step); k <= len(r.Text); k += 1 + rng.Intn(2*step-1) {
			n++
			w := set.Writer(io.Discard, filter.Stdout)
			if _, err := w.Write(r.Text[:k]); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Errorf("%s, held out %v, ends after %d bytes: %v", r.Name, r.Unseen, k, err)
			}
		}
	}
	if n < 1000 {
		t.Errorf("only %d ends were tried", n)
	}
}

func TestCorpora(t *testing.T) {
	t.Parallel()
	scores := make([]redactcorpus.Score, len(bounds))
	kinds := map[bool]map[string]bool{false: {}, true: {}}
	secrets, negatives, unseen := 0, 0, 0
	for _, r := range corpus(t, 1) {
		kinds[len(r.Secrets) > 0][r.Name] = true
		secrets += len(r.Secrets)
		if len(r.Secrets) == 0 {
			negatives++
		}
		if r.Unseen {
			unseen++
		}
		for i := range bounds {
			if bounds[i].part == r.Part() {
				if err := scores[i].Add(newSet(t), &r); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if secrets < 400 || negatives < 1000 || unseen < 500 || len(kinds[true]) < 150 || len(kinds[false]) < 60 {
		t.Errorf("too few: %d secrets in %d kinds of output, %d negatives of %d kinds, %d records held out",
			secrets, len(kinds[true]), negatives, len(kinds[false]), unseen)
	}
	for i, b := range bounds {
		s := &scores[i]
		t.Logf("%s: recall %.4f, leaked %.2f%%, %d bytes too much, precision %.4f", b.part, s.Recall(), 100*s.LeakedShare(), s.Over, s.Precision())
		if s.Recall() < b.recall || s.Precision() < b.precision || s.LeakedShare() > b.leaked {
			t.Errorf("%s: below a recall of %.3f, a precision of %.3f or above %.1f %% of leaked bytes", b.part, b.recall, b.precision, 100*b.leaked)
		}
	}
}

// TestCorporaKeepStructure: a record that is a JSON document, or lines of them, is one after
// filtering, with the same keys, numbers and literals; only strings change.
func TestCorporaKeepStructure(t *testing.T) {
	t.Parallel()
	documents, late := 0, expected(t, notJSON)
	for _, r := range corpus(t, 3) {
		got := pieces(t, r.Text, func() int { return len(r.Text) })
		if json.Valid(r.Text) {
			documents++
			sameStructure(t, &r, late, r.Text, got)
			continue
		}
		if bytes.Count(r.Text, []byte("\n")) != bytes.Count(got, []byte("\n")) {
			continue // a key over several lines went
		}
		after := bytes.Split(got, []byte("\n"))
		for i, line := range bytes.Split(r.Text, []byte("\n")) {
			if yamlList.Match(line) { // a key by its bytes, which may go
				continue
			}
			if at := bytes.IndexAny(line, "{["); at >= 0 && json.Valid(line[at:]) && at < len(after[i]) && bytes.Equal(line[:at], after[i][:at]) {
				documents++
				sameStructure(t, &r, late, line[at:], after[i][at:])
			}
		}
	}
	if documents < 100 {
		t.Errorf("only %d JSON documents", documents)
	}
}

var yamlList = regexp.MustCompile(`^\s*\w+: \[[0-9, ]+\]$`)

func sameStructure(t *testing.T, r *redactcorpus.Record, late func(string) bool, before, after []byte) {
	t.Helper()
	want, err := skeleton(before)
	if err != nil {
		t.Fatal(err)
	}
	got, err := skeleton(after)
	if err == nil && got == want || late(r.Name) {
		return
	}
	t.Errorf("%s: %v, another document:\n%s\ngot  %s\nwant %s", r.Name, err, after, got, want)
}

// skeleton is a JSON text without its string values. Strings that hold documents are followed.
func skeleton(text []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	var strip func(v any) any
	strip = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k := range v {
				v[k] = strip(v[k])
			}
		case []any:
			for i := range v {
				v[i] = strip(v[i])
			}
		case string:
			if len(v) > 1 && (v[0] == '{' || v[0] == '[') && json.Valid([]byte(v)) {
				s, err := skeleton([]byte(v))
				if err == nil {
					return s
				}
			}
			return ""
		}
		return v
	}
	out, err := json.Marshal(strip(v))
	return string(out), err
}

// What these tests found and nobody has mended yet. A name goes when its record holds.
var (
	notJSON  []string
	notKnown = []string{"usr/share/doc"}
	notTwice []string
)

// expected says of a name whether its record is known to fail, and lets the test fail at its
// end if one of them does not fail any more.
func expected(t *testing.T, names []string) func(string) bool {
	seen := map[string]bool{}
	t.Cleanup(func() {
		for _, name := range names {
			if !seen[name] {
				t.Errorf("%s holds now: take it from the list", name)
			}
		}
	})
	return func(name string) bool {
		seen[name] = true
		return slices.Contains(names, name)
	}
}

// TestCorporaTwice: what went through the filter once passes it unchanged.
func TestCorporaTwice(t *testing.T) {
	t.Parallel()
	late := expected(t, notTwice)
	for _, r := range corpus(t, 4) {
		once := pieces(t, r.Text, func() int { return len(r.Text) })
		if twice := pieces(t, once, func() int { return len(once) }); !bytes.Equal(once, twice) && !late(r.Name) {
			t.Errorf("%s:\nonce  %q\ntwice %q", r.Name, once, twice)
		}
	}
}

// TestKnownForms: a value that is known before the run is masked in each form that filter.md §5
// promises, as the encoders of the standard library and others make it; what is no secret stays.
func TestKnownForms(t *testing.T) {
	t.Parallel()
	late := expected(t, notKnown)
	for seed := range uint64(3) {
		score, err := scoreKnown(seed)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d of %d in promised forms, %d of %d in others; %d of %d that are no secrets taken\n  %s",
			score.PromisedFound, score.Promised, score.OthersFound, score.Others, score.WordsTaken, score.Words, strings.Join(score.Missed, "\n  "))
		for _, name := range score.Broken {
			if !late(name) {
				t.Errorf("%s: not as promised", name)
			}
		}
	}
}

// TestCorporaAtCuts sends each record in pieces: the output does not depend on them.
func TestCorporaAtCuts(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(1))
	for _, r := range corpus(t, 2) {
		want := pieces(t, r.Text, func() int { return len(r.Text) })
		for k, size := range []func() int{func() int { return 1 }, func() int { return 7 }, func() int { return 1 + rng.Intn(40) }} {
			if got := pieces(t, r.Text, size); !bytes.Equal(got, want) {
				t.Errorf("%s in pieces (%d):\ngot  %q\nwant %q", r.Name, k, got, want)
			}
		}
	}
}

var emptySet = sync.OnceValues(func() (*filter.Set, error) {
	return filter.NewSet(filter.Config{KeepFindings: true}, filter.Known{}, filter.TagKey{})
})

func newSet(t *testing.T) *filter.Set {
	t.Helper()
	set, err := emptySet()
	if err != nil {
		t.Fatal(err)
	}
	return set.Again()
}

func pieces(t *testing.T, text []byte, size func() int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := newSet(t).Writer(&out, filter.Stdout)
	for len(text) > 0 {
		n := min(size(), len(text))
		if _, err := w.Write(text[:n]); err != nil {
			t.Fatal(err)
		}
		text = text[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestFormsOfTools: what many tools print is found whole and alone, also byte by byte. The texts are
// no part of a score: what is missed of them is not there.
func TestFormsOfTools(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		records, err := redactcorpus.Outputs(corpora+"/forms", seed)
		if err != nil {
			t.Fatal(err)
		}
		var score redactcorpus.Score
		for i := range records {
			r := &records[i]
			if err := score.Add(newSet(t), r); err != nil {
				t.Fatal(err)
			}
			want := pieces(t, r.Text, func() int { return len(r.Text) })
			if got := pieces(t, r.Text, func() int { return 1 }); !bytes.Equal(got, want) {
				t.Errorf("%s byte by byte:\ngot  %q\nwant %q", r.Name, got, want)
			}
		}
		if score.Secrets < 1000 || len(score.Missed) > 0 || len(score.Excess) > 0 {
			t.Errorf("%d secrets, missed %q, too much %q", score.Secrets, score.Missed, score.Excess)
		}
	}
}

// TestTwice: what is filtered twice is filtered as once, also where placeholders stand in the text and
// where it was changed: a placeholder is a border of values, as the secret was.
func TestTwice(t *testing.T) {
	run := func(in string) string {
		set, err := filter.NewSet(filter.Config{NoMemory: true}, filter.Known{}, filter.TagKey{1})
		if err != nil {
			t.Fatal(err)
		}
		out, _ := set.String(in)
		return out
	}
	hex := func(n int) string {
		out, err := filter.ExpandTemplate("{hex:"+strconv.Itoa(n)+"}", uint64(n))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, in := range []string{
		"AKIA" + strings.ToUpper(hex(14)) + "xx[REDACTED:env.E_TOKEN:d36be4]A" + hex(40) + "Authorization: Bearer x",
		"password [REDACTED:password]: " + hex(64),
		"Enrollment token: [REDACTED:token:0f8fbb] = \"" + hex(63) + "\"",
		"password [REDACTED:password]<img src=\"" + hex(90) + "\" alt=\"secret12\">",
		"token=" + hex(30) + "[REDACTED:env.X_KEY]" + hex(30),
		"secret: [REDACTED:env.X_TOKEN:abcdef]" + hex(40),
		"https://bob:" + hex(12) + "[REDACTED:x]" + hex(12) + "@host/",
	} {
		if got := run(in); got != in {
			t.Errorf("a placeholder made a value:\n%s\n%s", in, got)
		}
	}
	records := corpus(t, 1)
	records = slices.DeleteFunc(records, func(r redactcorpus.Record) bool {
		return r.Unseen || bytes.ContainsAny(r.Text, "\x00\x1b")
	})
	n := 600
	if testing.Short() {
		n = 100
	}
	rng := rand.New(rand.NewSource(17))
	for range n {
		text := string(records[rng.Intn(len(records))].Text)
		for range 1 + rng.Intn(4) {
			at := rng.Intn(len(text) + 1)
			between := "[REDACTED:x:abcdef]"
			switch rng.Intn(3) {
			case 0:
				between = string(" \n=:\"'@/?&_-.|"[rng.Intn(14)])
			case 1:
				between = string(records[rng.Intn(len(records))].Text)
			}
			text = text[:at] + between + text[at:]
		}
		once := run(text)
		if twice := run(once); twice != once {
			t.Errorf("once:\n%s\ntwice:\n%s", once, twice)
		}
	}
}
