// Package redactcorpus reads the corpora of testdata/filter and scores the output
// filter against them. The corpora hold templates, so no literal token stands in the
// repository; secrets are expanded at run time.
package redactcorpus

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"html"
	"net/url"
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
	Family  string // what its kind of output belongs to; scores are given by family
	File    string // where it stands
	Name    string // the command, or the kind of a negative
	Text    []byte
	Secrets []Span // what has to go; none in a negative
	Unseen  bool   // held out: from a file that nobody who changes the filter looks at
}

// Part is the part of the corpora that a record belongs to, by how much the filter was worked
// on with it: earlier sets, open, held out.
func (r *Record) Part() string {
	if part := parts[r.File]; part != "" {
		return part
	}
	switch {
	case r.Unseen:
		return HeldOut
	case r.File == "benign.txt" || r.Family == earlier:
		return Earlier
	}
	return Open
}

// parts is the part of each file that is one by itself, or a half of one.
var parts = map[string]string{
	"unseen-outputs-3.txt": ThirdHeldOut, "unseen-benign-3.txt": ThirdHeldOut,
	"outputs-10.txt": ThirdOpen, "benign-4.txt": ThirdOpen,
	"outputs-11.txt": Fourth,
	"outputs-12.txt": Fifth, "benign-5.txt": Fifth,
	"outputs-13.txt": Sixth, "benign-6.txt": Sixth,
	"outputs-14.txt": Seventh, "benign-7.txt": Seventh,
	"outputs-15.txt": Eighth, "benign-8.txt": Eighth,
	"outputs-16.txt": Ninth, "benign-9.txt": Ninth,
	"outputs-17.txt": Tenth, "benign-10.txt": Tenth,
	"outputs-18.txt": Eleventh, "benign-11.txt": Eleventh,
	"outputs-19.txt": Twelfth, "benign-12.txt": Twelfth,
	"outputs-20.txt": Thirteenth, "benign-13.txt": Thirteenth,
	"outputs-21.txt": Fourteenth, "benign-14.txt": Fourteenth,
	"outputs-22.txt": Fifteenth,
	"outputs-23.txt": Sixteenth, "benign-15.txt": Sixteenth,
	"outputs-24.txt": Seventeenth, "benign-16.txt": Seventeenth,
	"outputs-25.txt": Eighteenth, "benign-17.txt": Eighteenth,
	"outputs-26.txt": Nineteenth, "benign-18.txt": Nineteenth,
	"outputs-27.txt": Twentieth, "benign-19.txt": Twentieth,
	"outputs-28.txt": TwentyFirst, "benign-20.txt": TwentyFirst,
}

// The parts of the corpora.
const (
	Earlier = "earlier sets" // read again and again while the filter was changed
	Open    = "open"         // written before it was known what the filter does with it
	HeldOut = "held out"     // so too, and not read since

	ThirdOpen    = "third set, open"     // protocols, debuggers, results of commands: harder than those before
	ThirdHeldOut = "third set, held out" // written with it

	Seventh = "seventh set, open" // places and tools that the sets before do not have
	Eighth  = "eighth set, open"  // written with it, and scored after what was learned of it
	Ninth   = "ninth set, open"   // by a session that had read nothing of the filter, and scored before it was read
	Tenth   = "tenth set, open"   // so too, after what was learned of the ninth

	Eleventh = "eleventh set, open" // so too, after what was learned of the tenth
	Twelfth  = "twelfth set, open"  // by the session that changed the filter then, before it was scored

	Thirteenth = "thirteenth set, open" // as the eleventh, after what was learned of a set of the same week
	Fourteenth = "fourteenth set, open" // as the thirteenth
	Fifteenth  = "fifteenth set, open"  // as the twelfth
	Sixteenth  = "sixteenth set, open"  // written with the fourteenth, and scored after what was learned of it

	Seventeenth = "seventeenth set, open"  // as the thirteenth
	Eighteenth  = "eighteenth set, open"   // as the twelfth
	Nineteenth  = "nineteenth set, open"   // as the thirteenth
	Twentieth   = "twentieth set, open"    // as the thirteenth
	TwentyFirst = "twenty-first set, open" // as the thirteenth

	Sixth = "sixth set, open" // written after the rules that the fifth brought, before it was scored
	Fifth = "fifth set, open" // a hundred kinds of output of tools, beside what they print without a secret

	Fourth = "fourth set, open" // by the place of a secret: prompts, protocols, tables, wrapped lines, further languages
)

// earlier is the family of outputs whose heads name none.
const earlier = "earlier sets"

// Span is a half-open range of bytes.
type Span struct{ From, To int }

// heldOut begins the name of a file whose records are held out.
const heldOut = "unseen-"

var controls = strings.NewReplacer("␛", "\x1b", "␀", "\x00", "␍", "\r", "␉", "\t", "⏎", "\n")

// Outputs reads outputs*.txt and unseen-outputs*.txt of dir and expands them with a seed.
func Outputs(dir string, seed uint64) ([]Record, error) {
	return read(dir, "outputs*.txt", func(data string, add func(family, head, body string) error) error {
		for i, part := range strings.Split("\n"+data, "\n=== ") {
			head, body, _ := strings.Cut(part, "\n")
			if i == 0 {
				continue // the comment
			}
			if !strings.HasSuffix(body, "\n") {
				body += "\n"
			}
			family, _, ok := strings.Cut(head, ": ")
			if !ok {
				family = earlier
			}
			if err := add(family, head, body); err != nil {
				return fmt.Errorf("%s: %w", head, err)
			}
		}
		return nil
	}, seed)
}

// Negatives reads benign*.txt and unseen-benign*.txt of dir: one record for each line, and for
// each pair of a line that begins with @.
func Negatives(dir string, seed uint64) ([]Record, error) {
	return read(dir, "benign*.txt", func(data string, add func(family, head, body string) error) error {
		kind := ""
		for line := range strings.Lines(data) {
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
				if err := add(kind, kind, text+"\n"); err != nil {
					return fmt.Errorf("%s: %w", line, err)
				}
			}
		}
		return nil
	}, seed)
}

func read(dir, pattern string, parse func(string, func(family, head, body string) error) error, seed uint64) ([]Record, error) {
	var out []Record
	for _, prefix := range [...]string{"", heldOut} {
		names, err := filepath.Glob(filepath.Join(dir, prefix+pattern))
		if err != nil {
			return nil, err
		}
		slices.Sort(names)
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			err = parse(string(data), func(family, head, body string) error {
				r, err := expand(head, body, seed)
				r.Family, r.File, r.Unseen = family, filepath.Base(name), prefix == heldOut
				out = append(out, r)
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
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

var template = regexp.MustCompile(`\{([A-Za-z0-9]+):(\d+)\}`)

// expand replaces the templates and notes where the marked secrets lie. The end of the name
// may say how the text is encoded: @crlf, @utf16 or @utf16bom.
func expand(name, text string, seed uint64) (Record, error) {
	name, encoding, _ := strings.Cut(name, " @")
	r := Record{Name: name}
	h := fnv.New64a()
	h.Write([]byte(name))
	state := h.Sum64() + seed
	var failed error
	text = template.ReplaceAllStringFunc(text, func(t string) string {
		state = state*6364136223846793005 + 1442695040888963407
		s, err := fill(template.FindStringSubmatch(t), state)
		if err != nil {
			failed = err
		}
		return s
	})
	text = controls.Replace(text)
	if encoding == "crlf" {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	for {
		before, rest, ok := strings.Cut(text, "‹")
		r.Text = append(r.Text, before...)
		if !ok {
			break
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
	switch encoding {
	case "", "crlf":
	case "utf16", "utf16bom":
		if err := r.widen(encoding == "utf16bom"); err != nil && failed == nil {
			failed = err
		}
	default:
		return r, fmt.Errorf("unknown encoding %q", encoding)
	}
	return r, failed
}

// widen makes the text UTF-16LE, as PowerShell writes it to a file.
func (r *Record) widen(bom bool) error {
	shift := 0
	if bom {
		shift = 2
	}
	var wide []byte
	if bom {
		wide = append(wide, 0xff, 0xfe)
	}
	for _, c := range r.Text {
		if c >= 0x80 {
			return fmt.Errorf("only ASCII can be widened")
		}
		wide = append(wide, c, 0)
	}
	for i := range r.Secrets {
		r.Secrets[i].From = r.Secrets[i].From*2 + shift
		r.Secrets[i].To = r.Secrets[i].To*2 + shift
	}
	r.Text = wide
	return nil
}

// fill makes the text of one template. What filter.ExpandTemplate does not know is composed
// here: passwords and what tools make of them.
func fill(m []string, state uint64) (string, error) {
	seed := state >> 8
	n, err := strconv.Atoi(m[2])
	if err != nil {
		return "", err
	}
	b64 := base64.StdEncoding.EncodeToString
	switch m[1] {
	case "pw":
		return password(state >> 20), nil
	case "hard": // with what has to be escaped somewhere
		return hard(state), nil
	case "hardpct":
		return url.QueryEscape(hard(state)), nil
	case "hardjson":
		return strings.Trim(strconv.Quote(hard(state)), `"`), nil
	case "hardxml":
		return html.EscapeString(hard(state)), nil
	case "phrase":
		return phrase(state >> 12), nil
	case "basic":
		return b64([]byte("deploy:" + password(state>>20))), nil
	case "b64pw":
		return b64([]byte(password(state >> 20))), nil
	case "b64tok":
		token, err := filter.ExpandTemplate("{alnum:32}", seed)
		return b64([]byte(token)), err
	case "jwt":
		parts, err := filter.ExpandTemplate("{alnum:12} {alnum:20} {base64url:171}", seed)
		kid, rest, _ := strings.Cut(parts, " ")
		sub, signature, _ := strings.Cut(rest, " ")
		header := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","kid":"` + kid + `","typ":"JWT"}`))
		claims := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://sso.example.org","sub":"` + sub + `","exp":1746180000}`))
		return header + "." + claims + "." + signature, err
	case "hexpairs":
		digits, err := filter.ExpandTemplate("{hex:"+strconv.Itoa(2*n)+"}", seed)
		return paired(digits), err
	case "uuid":
		return filter.ExpandTemplate("{hex:8}-{hex:4}-4{hex:3}-a{hex:3}-{hex:12}", seed+uint64(n))
	}
	return filter.ExpandTemplate(m[0], seed)
}

// paired puts a colon between bytes in hexadecimal.
func paired(digits string) string {
	var pairs []string
	for i := 0; i+1 < len(digits); i += 2 {
		pairs = append(pairs, digits[i:i+2])
	}
	return strings.Join(pairs, ":")
}

// hard makes a password that no format carries as it is.
func hard(n uint64) string {
	const marks = `&"\<@/+%#`
	return password(n>>20) + string(marks[n>>40%uint64(len(marks))]) + password(n>>28) + string(marks[n>>44%uint64(len(marks))]) + "7"
}

// phrase makes a passphrase of words.
func phrase(n uint64) string {
	words := strings.Fields("marble otter canyon flute ginger harbor velvet copper meadow lantern pepper saddle walnut ribbon thunder violet")
	var picked []string
	for range 4 {
		picked = append(picked, words[n%16])
		n = n/16 ^ n<<5*2654435761
	}
	return strings.Join(picked, "-") + strconv.Itoa(int(n%10))
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

// Taken is a range of bytes that a filter took, and the rule it named.
type Taken struct {
	Span
	Rule string
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
	var taken []Taken
	for _, f := range w.Report().Findings {
		taken = append(taken, Taken{Span{int(f.Start), int(f.End)}, f.Rule})
	}
	s.Count(r, taken)
	return nil
}

// Count scores what any filter took from a record.
func (s *Score) Count(r *Record, taken []Taken) {
	gone := make([]bool, len(r.Text))
	s.Records++
	for _, f := range taken {
		s.Findings++
		hit := false
		for _, sp := range r.Secrets {
			hit = hit || f.From < sp.To && f.To > sp.From
		}
		if !hit {
			s.FalseFindings++
			s.Excess = append(s.Excess, fmt.Sprintf("%s: %s %q in %.160q", r.Name, f.Rule, r.Text[f.From:f.To], around(r.Text, f.From)))
		}
		for i := f.From; i < f.To; i++ {
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
