//go:build unix

package day

import (
	"flag"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/built"
)

// mostQuestions is how many harmless rows of the day may ask or be denied, as measured. It may
// only fall.
const mostQuestions = 2

var (
	whole  = flag.Bool("whole", false, "run all rows plain and wrapped")
	only   = flag.String("rows", "", "with -whole: only rows that match this regular expression")
	policy = flag.String("policy", "", "with -whole: text of a user's policy; the default without one")
)

// begin has the programs, for which HOME counts, and a directory for worlds, which is none for temporary files.
func begin(t *testing.T) (bin, cache string) {
	t.Helper()
	bin, err := built.Programs(t.TempDir(), "atip-exec", "atip")
	if err != nil {
		t.Fatal(err)
	}
	if cache, err = os.UserCacheDir(); err == nil {
		err = os.MkdirAll(cache, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bin, cache
}

// TestWholeDay prints the table of the documentation. It fails on no number.
func TestWholeDay(t *testing.T) {
	if !*whole {
		t.Skip("each row twice, for the table of docs/quality.md: -whole")
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		t.Fatal(err)
	}
	rows := slices.DeleteFunc(theDay(t), func(r Row) bool { return !pattern.MatchString(r.Text) })
	bin, cache := begin(t)
	worlds, err := NewWorlds(cache, min(runtime.NumCPU(), len(rows)), *policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, w := range worlds {
			w.Remove()
		}
	})
	results, err := Measure(worlds, bin, rows)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", Table(results))
}

// TestDay asks about each row, and runs a sample plain and wrapped: nothing is broken, and
// nothing that deserves a question runs.
func TestDay(t *testing.T) {
	bin, cache := begin(t)
	var worlds []*World
	for range 2 {
		w, err := NewWorld(cache, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.Remove() })
		worlds = append(worlds, w)
	}
	asked, err := worlds[0].Explain(bin, theDay(t))
	if err != nil {
		t.Fatal(err)
	}
	c := Counted(asked)
	t.Logf("\n%s", Table(asked))
	if n := c[Same][Asked] + c[Same][Denied]; n > mostQuestions {
		t.Errorf("%d of %d harmless rows ask or are denied, at most %d", n, c.Total(Same), mostQuestions)
	}

	// Those that would run without a question although they deserve one are run: the sandbox holds them.
	var sample []Row
	for i, r := range asked {
		if r.Label == Ask && r.Outcome == Ran || r.Label == Same && r.Outcome == RanSame && (i%15 == 0 || strings.Contains(r.Text, "PATH") || strings.Contains(r.Text, "activate") || strings.Contains(r.Text, "localhost")) && !strings.Contains(r.Text, "go ") {
			sample = append(sample, r.Row) // without Go, whose first build takes longer than all of them
		}
	}
	if len(sample) < 15 || !slices.ContainsFunc(sample, func(r Row) bool { return r.Label == Ask }) {
		t.Fatalf("only %d rows are run", len(sample))
	}
	ran, err := Measure(worlds, bin, sample)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range ran {
		if !r.Good() {
			t.Errorf("%s: %s: %q: %s", r.Outcome, r.Project, r.Text, r.Why)
		}
	}
}
