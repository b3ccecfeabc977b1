package filter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Set is everything a run redacts: the rules, the known values and what was
// learned from the streams so far. It is shared by the Writers of a run.
type Set struct {
	cfg     Config
	key     TagKey
	loadKey func() TagKey // instead of key, once a tag is made
	allow   []string      // digests
	snap    atomic.Pointer[snapshot]
	full    atomic.Bool // nothing more is learned
	mu      sync.Mutex  // guards learning
	learned int
	bytes   int
}

// snapshot is one immutable state of a Set. The index is built by the first who
// cleans anything: most runs are past the start of their command by then.
type snapshot struct {
	indexed sync.Once
	index   *index
	entries []entry
	rules   []rule
	needles []needle
	values  []secretValue
	vendors []vendorName
}

const (
	// maxLearned and maxLearnedBytes bound what a run remembers of its streams.
	maxLearned      = 256
	maxLearnedBytes = 64 << 10
	minLearned      = 12
	maxLearnedLen   = 1024
)

// NewSet builds a Set. The zero Config redacts everything.
func NewSet(cfg Config, known Known, key TagKey) (*Set, error) {
	s := &Set{cfg: cfg, key: key}
	s.full.Store(cfg.NoMemory)
	sn := &snapshot{rules: builtinRules[:], vendors: vendorNames[:]}
	for _, a := range cfg.Allow {
		if a.Reason == "" {
			return nil, &Error{Code: errcode.RedactionRule, Rule: a.Rule, Reason: "allowed without a reason"}
		}
		switch {
		case a.SHA256 != "":
			s.allow = append(s.allow, strings.ToLower(a.SHA256))
		case a.Rule == "" || a.Tool == "":
			return nil, &Error{Code: errcode.RedactionRule, Rule: a.Rule, Reason: "allowed neither by digest nor by rule and tool"}
		case a.Tool == cfg.Tool:
			s.cfg.DisableRules = append(slices.Clone(s.cfg.DisableRules), a.Rule)
		}
	}
	sn.entries = make([]entry, 0, len(builtinPrefixes)+len(keywords)+len(flags)+len(arguments)+len(vendorNames)+len(cfg.Names)+8+len(known.values)*12)
	for _, p := range &builtinPrefixes {
		sn.entries = append(sn.entries, entry{text: p.text, ref: int32(p.rule)})
	}
	if len(cfg.Rules) > 0 {
		sn.rules = slices.Clone(sn.rules)
		for i := range cfg.Rules {
			r, err := CheckRule(&cfg.Rules[i])
			if err != nil {
				return nil, err
			}
			for _, n := range cfg.Rules[i].Names {
				sn.vendors = append(slices.Clip(sn.vendors), vendorName{word: n, rule: uint16(len(sn.rules)), alone: true})
			}
			for _, p := range cfg.Rules[i].Prefix {
				sn.entries = append(sn.entries, entry{text: p, ref: int32(len(sn.rules))})
			}
			sn.rules = append(sn.rules, r.rule)
		}
	}
	for i := range keywords {
		sn.entries = append(sn.entries, entry{text: keywords[i].word, ref: keywordRef(i), kind: eName, off: keywords[i].off})
	}
	for i, pattern := range cfg.Names {
		word, ok := patternWord(pattern)
		if !ok {
			return nil, &Error{Code: errcode.RedactionRule, Reason: "name " + pattern + " does not end with three literal bytes"}
		}
		sn.entries = append(sn.entries, entry{text: word, ref: int32(i), kind: eName})
	}
	sn.entries = append(sn.entries, entry{text: "://", kind: eURL}, entry{text: "data:", kind: eData}, entry{text: "data\":", kind: eData}, entry{text: "value\":", kind: eValue, off: 2}, entry{text: " value=\"", kind: eValue, off: 3}, entry{text: "kty\":", kind: eKeyType},
		entry{text: "- value: ", kind: eValue},
		entry{text: ":5432:", kind: eFlag}, entry{text: ":3306:", kind: eFlag}, entry{text: ":*:", kind: eFlag})
	for k := range flags {
		sn.entries = append(sn.entries, entry{text: flags[k].flag, kind: eFlag})
	}
	for k := range arguments {
		sn.entries = append(sn.entries, entry{text: arguments[k].text, ref: int32(k), kind: eArgument, off: arguments[k].off})
	}
	slices.SortStableFunc(sn.vendors[len(vendorNames):], func(a, b vendorName) int { return strings.Compare(a.word, b.word) })
	for k := 0; k < len(sn.vendors); { // one entry for all rows of a word
		first, alone := k, false
		for ; k < len(sn.vendors) && sn.vendors[k].word == sn.vendors[first].word; k++ {
			alone = alone || sn.vendors[k].alone
		}
		if alone {
			sn.entries = append(sn.entries, entry{text: sn.vendors[first].word, ref: int32(first), kind: eVendor, off: sn.vendors[first].off})
		}
	}
	for _, head := range [...]string{armourHead, sshHead, puttyHead} {
		sn.entries = append(sn.entries, entry{text: head, kind: eArmour})
	}
	s.addKnown(sn, known.values)
	if len(sn.entries) > maxEntries {
		return nil, &Error{Code: errcode.RedactionRule, Reason: "too many rules and values"}
	}
	s.snap.Store(sn)
	return s, nil
}

// current is the state to clean by.
func (s *Set) current() *snapshot {
	sn := s.snap.Load()
	sn.indexed.Do(func() { sn.index = newIndex(sn.entries) })
	return sn
}

// KeyFrom has the key of tags loaded when the first tag is made: most outputs hold
// nothing that needs one. Call it before the first Writer.
func (s *Set) KeyFrom(load func() TagKey) { s.loadKey = sync.OnceValue(load) }

// addKnown adds the forms of all values.
func (s *Set) addKnown(sn *snapshot, values []knownValue) {
	seen := make(map[string]bool, len(values)*8)
	total := 0
	for _, kv := range values {
		if s.allowed([]byte(kv.value)) {
			continue
		}
		sn.values = append(sn.values, secretValue(kv))
		id := int32(len(sn.values) - 1)
		forms(kv.value, func(text string, base64 bool) {
			need := func(piece string, last bool) {
				if seen[piece] || total+len(piece) > maxNeedleBytes || len(sn.entries)+maxWritings >= maxEntries {
					return
				}
				seen[piece] = true
				total += len(piece)
				sn.addNeedle(needle{text: piece, value: id, base64: base64 && last, plain: isPlainText(piece)})
			}
			if len(text) <= maxNeedle {
				need(text, true)
				return
			}
			for start := 0; ; start += chunk - chunkOverlap {
				piece := text[start:]
				if len(piece) <= chunk {
					need(fromRune(text, len(text)-chunk), true)
					need(fromRune(text, len(text)-chunk+chunkOverlap/2), true)
					return
				}
				// A line may break near the beginning of one of two.
				need(fromRune(piece[:chunk], 0), false)
				need(fromRune(piece[:chunk], chunkOverlap/2), false)
			}
		})
	}
}

// fromRune returns text from at on, or from the next whole character.
func fromRune(text string, at int) string {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return text[at:]
}

// maxNeedleBytes bounds all forms of all values.
const maxNeedleBytes = 4 << 20

// maxWritings is how many entries one needle may have.
const maxWritings = 2048

// addNeedle adds a needle and an entry for each way to write its beginning.
func (sn *snapshot) addNeedle(nd needle) {
	sn.needles = append(sn.needles, nd)
	ref := int32(len(sn.needles) - 1)
	if nd.plain {
		sn.entries = append(sn.entries, entry{text: nd.text, ref: ref, kind: eKnown})
		return
	}
	from := len(sn.entries)
	writings(nd.text, func(text string) {
		for k := from; k < len(sn.entries); k++ {
			if sn.entries[k].text == text {
				return
			}
		}
		if len(sn.entries)-from < maxWritings {
			sn.entries = append(sn.entries, entry{text: text, ref: ref, kind: eKnown})
		}
	})
}

// allowed reports whether policy lets this value through.
func (s *Set) allowed(value []byte) bool {
	if len(s.allow) == 0 {
		return false
	}
	sum := sha256.Sum256(value)
	return slices.Contains(s.allow, hex.EncodeToString(sum[:]))
}

// off reports whether policy switched the rule of a finding off. Known values have
// no rule.
func (s *Set) off(r *verdict) bool {
	return len(s.cfg.DisableRules) > 0 && r.layer != layerKnown && slices.Contains(s.cfg.DisableRules, r.rule)
}

// learn makes a found value a known one for the rest of the run. It never leaves
// memory.
func (s *Set) learn(value []byte, name string, tagged bool) {
	if s.cfg.NoMemory || len(value) < minLearned || len(value) > maxLearnedLen || bytes.IndexByte(value, 0) >= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.snap.Load()
	if s.learned >= maxLearned || s.bytes+len(value) > maxLearnedBytes || len(old.entries)+maxWritings > maxEntries {
		s.full.Store(s.learned >= maxLearned)
		return
	}
	text := string(value)
	for i := range old.needles {
		if old.needles[i].text == text {
			return
		}
	}
	if len(text) > maxNeedle {
		return
	}
	s.learned++
	s.bytes += len(text)
	sn := &snapshot{rules: old.rules, vendors: old.vendors}
	val := secretValue{name: name}
	if tagged {
		val.value = text
	}
	sn.values = append(slices.Clip(old.values), val)
	sn.needles, sn.entries = slices.Clip(old.needles), slices.Clip(old.entries)
	sn.addNeedle(needle{text: text, value: int32(len(sn.values) - 1), plain: isPlainText(text)})
	s.snap.Store(sn)
}

// Writer returns a Writer that sends the cleaned stream to dst. If dst has a
// method WriteAtomic, placeholders are written by it.
func (s *Set) Writer(dst io.Writer, stream Stream) *Writer { return newWriter(s, dst, stream) }

// String cleans one text. What cannot be cleaned is left out.
func (s *Set) String(text string) (string, []Finding) {
	if s.cfg.Disabled || len(text) < 6 {
		return text, nil
	}
	var b strings.Builder
	w := newWriter(s, &b, Stdout)
	w.text, w.keep = true, true
	if _, err := io.WriteString(w, text); err != nil {
		return "", nil
	}
	if w.Close() != nil {
		return "", nil
	}
	return b.String(), w.findings
}

// Digest identifies the rule table, for the audit record.
func (s *Set) Digest() string { return rulesDigest }
