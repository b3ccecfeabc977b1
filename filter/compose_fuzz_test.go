package filter

import (
	"bytes"
	"fmt"
	"io"
	"math/rand"
	"strings"
	"testing"
)

// visible is what of a text can be seen.
func visible(in string) string {
	var v view
	v.add([]byte(in))
	return string(v.vis)
}

// cutAt writes in pieces of the sizes, the last one repeated, and returns the output and the
// most that was held.
func cutAt(t testing.TB, s *Set, in string, sizes ...int) (string, int) {
	t.Helper()
	var out bytes.Buffer
	held := 0
	w := s.Writer(&out, Stdout)
	for i := 0; len(in) > 0; i++ {
		n := min(sizes[min(i, len(sizes)-1)], len(in))
		if _, err := w.Write([]byte(in[:n])); err != nil {
			t.Fatal(err)
		}
		in = in[n:]
		held = max(held, w.Held())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String(), held
}

// composedFault says which of the invariants a composed text breaks: the same output for any
// cutting; no known value in it; filtered twice as once; at most 8 KiB held; under block and
// mask-known too.
func composedFault(t testing.TB, c *composer, sets []*Set, program []byte, seed int64) string {
	in, wide := c.text(program)
	rng := rand.New(rand.NewSource(seed))
	for _, s := range sets {
		mode := s.cfg.Binary
		want := filterAll(t, s, in)
		cuts := [][]int{{1 + rng.Intn(1+len(in))}, {1 + rng.Intn(200)}}
		if len(in) < 2<<10 {
			cuts = append(cuts, []int{1})
		}
		var sizes []int
		for range 50 {
			sizes = append(sizes, 1+rng.Intn(1+rng.Intn(300)))
		}
		for _, sizes := range append(cuts, sizes) {
			got, held := cutAt(t, s, in, sizes...)
			if got != want {
				return fmt.Sprintf("%v, cut by %v: %s", mode, sizes[:min(len(sizes), 5)], firstDifference(got, want))
			}
			if held > 8<<10 {
				return fmt.Sprintf("%v: %d bytes held", mode, held)
			}
		}
		if wide {
			continue
		}
		seen := visible(want)
		for _, v := range c.known {
			if strings.Contains(seen, v) {
				return fmt.Sprintf("%v: the known value %.12q is left in %.300q", mode, v, seen)
			}
		}
		// Among escapes a placeholder is shorter than what it stands for, so that more is judged.
		if mode == BinaryPass && program[0] < firstEscaped {
			if again := filterAll(t, s, want); again != want && !behindLongMask(t, s, in, want, again) {
				return fmt.Sprintf("filtered twice: %s", firstDifference(again, want))
			}
		}
	}
	return ""
}

// behindLongMask reports whether what is found the second time only stands within reach of a placeholder that
// stands for more than the reach of a command. The looks of a command and of a name end so many bytes away, and
// a placeholder is shorter than what it stands for: docs/limits.md says so. Nothing else may be found late.
func behindLongMask(t testing.TB, s *Set, in, out, again string) bool {
	w := s.Writer(io.Discard, Stdout)
	if _, err := io.WriteString(w, in); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	late := 0
	for late < min(len(out), len(again)) && out[late] == again[late] {
		late++
	}
	at := 0
	for _, f := range w.Report().Findings {
		mark := string(appendPlaceholder(nil, f.Rule, f.Tag))
		k := strings.Index(out[at:], mark)
		if k < 0 {
			return false
		}
		from := at + k
		if at = from + len(mark); f.End-f.Start > maxCommand && at > late-history && from < late+history {
			return true
		}
	}
	return false
}

func composedSets(t testing.TB, c *composer) []*Set {
	var sets []*Set
	for _, mode := range []BinaryMode{BinaryPass, BinaryMaskKnown, BinaryBlock} {
		sets = append(sets, testSet(t, Config{NoMemory: true, Binary: mode, KeepFindings: true}, c.env...))
	}
	return sets
}

// FuzzComposed: the invariants hold of what is made of the composer's pieces.
func FuzzComposed(f *testing.F) {
	c := newComposer(f)
	sets := composedSets(f, c)
	rng := rand.New(rand.NewSource(11))
	for range 64 {
		f.Add(c.program(rng), int64(rng.Intn(1000)))
	}
	f.Fuzz(func(t *testing.T, program []byte, seed int64) {
		if len(program) == 0 || len(program) > 32 {
			return
		}
		if fault := composedFault(t, c, sets, program, seed); fault != "" {
			text, _ := c.text(program)
			t.Fatalf("%s\nin %q", fault, text[:min(len(text), 2000)])
		}
	})
}

// TestComposed: the same for as many texts as a test has time for.
func TestComposed(t *testing.T) {
	c := newComposer(t)
	sets := composedSets(t, c)
	n := 600
	if testing.Short() {
		n = 100
	}
	for seed := range int64(n) {
		program := c.program(rand.New(rand.NewSource(seed)))
		if fault := composedFault(t, c, sets, program, seed); fault != "" {
			text, _ := c.text(program)
			t.Errorf("text %d: %s\nin %.500q", seed, fault, text)
		}
	}
}
