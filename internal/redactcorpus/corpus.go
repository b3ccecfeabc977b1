// Package redactcorpus reads the corpora of testdata/filter and scores the output
// filter against them. The corpora hold templates, so no literal token stands in the
// repository; secrets are expanded at run time.
package redactcorpus

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/filter"
)

// Record is one text of a corpus: what a command prints, or a line without secrets.
type Record struct {
	Name    string // the command, or the kind of a negative
	Text    []byte
	Secrets []Span // what has to go; none in a negative
	Unseen  bool   // kept apart while the filter is worked on
}

// Span is a half-open range of bytes.
type Span struct{ From, To int }

// unseenOneIn is the share of the records that is kept apart, chosen by a digest of
// their names.
const unseenOneIn = 4

var controls = strings.NewReplacer("␛", "\x1b", "␀", "\x00", "␍", "\r", "␉", "\t", "⏎", "\n")

// Outputs reads outputs-*.txt of dir and expands them with a seed.
func Outputs(dir string, seed uint64) ([]Record, error) {
	names, err := filepath.Glob(filepath.Join(dir, "outputs-*.txt"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var out []Record
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for i, part := range strings.Split(string(data), "\n=== ") {
			head, body, _ := strings.Cut(part, "\n")
			if i == 0 {
				if !strings.HasPrefix(part, "=== ") {
					continue // the comment
				}
				head = strings.TrimPrefix(head, "=== ")
			}
			if !strings.HasSuffix(body, "\n") {
				body += "\n"
			}
			r, err := expand(head, body, seed)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, head, err)
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// Negatives reads benign.txt of dir: one record for each line, and for each pair of a
// line that begins with @.
func Negatives(dir string, seed uint64) ([]Record, error) {
	data, err := os.ReadFile(filepath.Join(dir, "benign.txt"))
	if err != nil {
		return nil, err
	}
	var out []Record
	kind := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		head, isHead := strings.CutPrefix(line, "=== ")
		switch {
		case isHead:
			kind = head
			continue
		case line == "" || strings.HasPrefix(line, "# ") && kind == "":
			continue
		}
		for _, text := range pairs(line) {
			r, err := expand(kind, text+"\n", seed)
			if err != nil {
				return nil, fmt.Errorf("benign.txt: %s: %w", line, err)
			}
			r.Unseen = unseen(text)
			out = append(out, r)
		}
	}
	return out, nil
}

// pairs expands a line "@ NAMES × VALUES" into assignments in several forms.
func pairs(line string) []string {
	rest, ok := strings.CutPrefix(line, "@ ")
	names, values, ok2 := strings.Cut(rest, " × ")
	if !ok || !ok2 {
		return []string{line}
	}
	forms := [...]string{"%s=%s", "%s: %s", "  %s = %s", "export %s=%s", "  \"%s\": %s,", "%s := %s"}
	var out []string
	for _, n := range strings.Split(names, " ¦ ") {
		for _, v := range strings.Split(values, " ¦ ") {
			out = append(out, fmt.Sprintf(forms[len(out)%len(forms)], n, v))
		}
	}
	return out
}

func unseen(name string) bool {
	h := fnv.New32a()
	h.Write([]byte(name))
	return h.Sum32()%unseenOneIn == 0
}

var template = regexp.MustCompile(`\{([A-Za-z0-9]+):(\d+)\}`)

// expand replaces the templates and notes where the marked secrets lie.
func expand(name, text string, seed uint64) (Record, error) {
	r := Record{Name: name, Unseen: unseen(name)}
	h := fnv.New64a()
	h.Write([]byte(name))
	state := h.Sum64() + seed
	var failed error
	text = template.ReplaceAllStringFunc(text, func(t string) string {
		state = state*6364136223846793005 + 1442695040888963407
		m := template.FindStringSubmatch(t)
		switch m[1] {
		case "pw":
			return password(state >> 20)
		case "uuid":
			n, _ := strconv.Atoi(m[2])
			t = "{hex:8}-{hex:4}-4{hex:3}-a{hex:3}-{hex:12}"
			state += uint64(n)
		}
		s, err := filter.ExpandTemplate(t, state>>8)
		if err != nil {
			failed = err
		}
		return s
	})
	text = controls.Replace(text)
	for {
		before, rest, ok := strings.Cut(text, "‹")
		r.Text = append(r.Text, before...)
		if !ok {
			return r, failed
		}
		secret, after, ok := strings.Cut(rest, "›")
		if !ok {
			return r, fmt.Errorf("a secret does not end")
		}
		from := len(r.Text)
		r.Text = append(r.Text, secret...)
		r.Secrets = append(r.Secrets, Span{from, len(r.Text)})
		text = after
	}
}

// password makes one as people choose them: syllables, digits, a mark; or the output of a
// generator.
func password(n uint64) string {
	pick := func(list string) string {
		parts := strings.Fields(list)
		p := parts[n%uint64(len(parts))]
		n = n/uint64(len(parts)) ^ n<<7*2654435761
		return p
	}
	const syllables = "ba ko ri ta mu ne so li va pe du fi ga zo je wi ha ru xi to"
	const marks = "! # - _ . ? + * % ~"
	word := func() string { return pick(syllables) + pick(syllables) + pick(syllables) }
	digits := func() string { return pick("1 2 3 4 5 6 7 8 9") + pick("0 1 2 3 4 5 6 7 8 9") }
	w := word()
	upper := strings.ToUpper(w[:1]) + w[1:]
	switch n % 5 {
	case 0:
		return upper + digits() + digits() + pick("! # ? *")
	case 1:
		return w + pick("- _ .") + word() + pick("- _ .") + digits()
	case 2:
		return strings.NewReplacer("a", "4", "o", "0", "i", "1").Replace(upper) + word() + digits()
	case 3:
		s, _ := filter.ExpandTemplate("{alnum:7}", n)
		t, _ := filter.ExpandTemplate("{alnum:6}", n+1)
		return s + pick(marks) + t + digits()
	}
	s, _ := filter.ExpandTemplate("{alnum:16}", n)
	return s + digits()
}

// Score is what the filter did to a corpus.
type Score struct {
	Records, Secrets, Found int // Found: every byte of the secret went
	Bytes, Leaked, Over     int // of secrets; of these left; of all else taken
	Findings, FalseFindings int
	Missed, Excess          []string // for the one who works on the filter
}

// Add scores one record. Known values play no part: only rules, armour and context are
// measured.
func (s *Score) Add(set *filter.Set, r *Record) error {
	var out bytes.Buffer
	w := set.Writer(&out, filter.Stdout)
	if _, err := w.Write(r.Text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	gone := make([]bool, len(r.Text))
	s.Records++
	for _, f := range w.Report().Findings {
		s.Findings++
		hit := false
		for _, sp := range r.Secrets {
			hit = hit || int(f.Start) < sp.To && int(f.End) > sp.From
		}
		if !hit {
			s.FalseFindings++
			s.Excess = append(s.Excess, fmt.Sprintf("%s: %s %q in %.160q", r.Name, f.Rule, r.Text[f.Start:f.End], around(r.Text, int(f.Start))))
		}
		for i := f.Start; i < f.End; i++ {
			gone[i] = true
		}
	}
	planted := make([]bool, len(r.Text))
	for _, sp := range r.Secrets {
		s.Secrets++
		left := 0
		for i := sp.From; i < sp.To; i++ {
			planted[i] = true
			if !gone[i] {
				left++
			}
		}
		s.Bytes += sp.To - sp.From
		s.Leaked += left
		if left == 0 {
			s.Found++
		} else {
			s.Missed = append(s.Missed, fmt.Sprintf("%s: %d of %d bytes of %q in %.160q", r.Name, left, sp.To-sp.From, r.Text[sp.From:sp.To], around(r.Text, sp.From)))
		}
	}
	for i := range gone {
		if gone[i] && !planted[i] {
			s.Over++
		}
	}
	return nil
}

func around(text []byte, at int) []byte { return text[max(0, at-70):min(len(text), at+60)] }

// Recall is the share of secrets that went whole.
func (s *Score) Recall() float64 { return share(s.Found, s.Secrets) }

// Precision is the share of findings that touch a secret.
func (s *Score) Precision() float64 { return 1 - share(s.FalseFindings, s.Findings) }

// LeakedShare is the share of secret bytes that are left.
func (s *Score) LeakedShare() float64 { return share(s.Leaked, s.Bytes) }

func share(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
