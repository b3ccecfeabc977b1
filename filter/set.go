package filter

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"path/filepath"
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

	spare atomic.Pointer[Writer] // for the next String, empty
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
	sn.entries = append(sn.entries, entry{text: "://", kind: eURL}, entry{text: "data:", kind: eData}, entry{text: "data\":", kind: eData}, entry{text: "value\":", kind: eValue, off: 2}, entry{text: " value=\"", kind: eValue, off: 3}, entry{text: "kty\":", kind: eKeyType}, entry{text: placeholderHead, kind: ePlaceholder},
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
	sn.entries = append(sn.entries, entry{text: escapedStart, ref: escapedValues, kind: eKnown})
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
				if rest := piece[1:]; strings.HasPrefix(kv.value, piece) && isAlnum(piece[0]) && len(rest) > 8 {
					// A sequence without its end takes the letter that follows.
					sn.addNeedle(needle{text: rest, value: id, plain: isPlainText(rest), lead: piece[0]})
				}
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
	// A record has a hundred texts of one line, and a Writer is larger than all of them.
	w := s.spare.Swap(nil)
	if w == nil {
		w = new(Writer)
	}
	w.init(s, &b, Stdout)
	w.text, w.keep = true, true
	defer func() {
		*w = Writer{} // keeps nothing of the text
		s.spare.Store(w)
	}()
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

// byteSet is a set of bytes as a bitmap.
type byteSet [4]uint64

func (s *byteSet) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

func (s *byteSet) without(chars string) byteSet {
	out := *s
	for i := range len(chars) {
		out[chars[i]>>6] &^= 1 << (chars[i] & 63)
	}
	return out
}

// The alphabets that rules may name. They are bitmaps written out because package
// initialisation is paid by every command.
const (
	bitsDigit  = 0x03ff000000000000 // in word 0
	bitsUpper  = 0x0000000007fffffe // in word 1
	bitsLower  = 0x07fffffe00000000
	bitsScore  = 0x0000000080000000 // _
	bitsDash   = 0x0000200000000000 // - in word 0
	bitsDot    = 0x0000400000000000
	bitsPlus   = 0x0000080000000000
	bitsSlash  = 0x0000800000000000
	bitsEqual  = 0x2000000000000000
	bitsLetter = bitsUpper | bitsLower
)

type setID uint8

const (
	setNone setID = iota
	setDigit
	setHex    // digits and a-f
	setHEX    // digits and A-F
	setXDigit // digits, a-f, A-F
	setLower
	setUpper
	setLoAlnum
	setUpAlnum
	setAlnum
	setBase32
	setBase58
	setBase64
	setBase64Pad
	setWord
	setToken
	setTokenDot
	setTokenTilde
	setPath
	setAny64 // both base64 alphabets and the padding
	setTokenEq
	setTokenDotEq
	setAny64List // joined by commas
	setCount
)

var sets = [setCount]byteSet{
	setDigit:      {bitsDigit},
	setHex:        {bitsDigit, 0x7e << 32},
	setHEX:        {bitsDigit, 0x7e},
	setXDigit:     {bitsDigit, 0x7e<<32 | 0x7e},
	setLower:      {0, bitsLower},
	setUpper:      {0, bitsUpper},
	setLoAlnum:    {bitsDigit, bitsLower},
	setUpAlnum:    {bitsDigit, bitsUpper},
	setAlnum:      {bitsDigit, bitsLetter},
	setBase32:     {0x00fc000000000000, bitsUpper},
	setBase58:     {bitsDigit &^ (1 << '0'), bitsLetter &^ (1<<('O'-64) | 1<<('I'-64) | 1<<('l'-64))},
	setBase64:     {bitsDigit | bitsPlus | bitsSlash, bitsLetter},
	setBase64Pad:  {bitsDigit | bitsPlus | bitsSlash | bitsEqual, bitsLetter},
	setWord:       {bitsDigit, bitsLetter | bitsScore},
	setToken:      {bitsDigit | bitsDash, bitsLetter | bitsScore},
	setTokenDot:   {bitsDigit | bitsDash | bitsDot, bitsLetter | bitsScore},
	setTokenTilde: {bitsDigit | bitsDash | bitsDot, bitsLetter | bitsScore | 1<<('~'-64)},
	setPath:       {bitsDigit | bitsDash | bitsDot | bitsSlash, bitsLetter | bitsScore},
	setAny64:      {bitsDigit | bitsPlus | bitsSlash | bitsEqual | bitsDash, bitsLetter | bitsScore},
	setTokenEq:    {bitsDigit | bitsDash | bitsEqual, bitsLetter | bitsScore},
	setAny64List:  {bitsDigit | bitsPlus | bitsSlash | bitsEqual | bitsDash | 1<<',', bitsLetter | bitsScore},
	setTokenDotEq: {bitsDigit | bitsDash | bitsDot | bitsEqual, bitsLetter | bitsScore},
}

// setByName is the inverse of the names in rules/*.jsonc.
func setByName(name string) (setID, bool) {
	switch name {
	case "digit":
		return setDigit, true
	case "hex":
		return setHex, true
	case "HEX":
		return setHEX, true
	case "xdigit":
		return setXDigit, true
	case "lower":
		return setLower, true
	case "upper":
		return setUpper, true
	case "loalnum":
		return setLoAlnum, true
	case "upalnum":
		return setUpAlnum, true
	case "alnum":
		return setAlnum, true
	case "base32":
		return setBase32, true
	case "base58":
		return setBase58, true
	case "base64":
		return setBase64, true
	case "base64pad":
		return setBase64Pad, true
	case "word":
		return setWord, true
	case "token", "base64url":
		return setToken, true
	case "tokendot":
		return setTokenDot, true
	case "tokentilde":
		return setTokenTilde, true
	case "path":
		return setPath, true
	case "any64":
		return setAny64, true
	case "any64list":
		return setAny64List, true
	case "tokeneq":
		return setTokenEq, true
	case "tokendoteq":
		return setTokenDotEq, true
	}
	return setNone, false
}

func isAlnum(c byte) bool { return sets[setAlnum].has(c) }
func isDigit(c byte) bool { return c-'0' < 10 }
func isUpper(c byte) bool { return c-'A' < 26 }
func isLower(c byte) bool { return c-'a' < 26 }
func isAlpha(c byte) bool { return c|0x20-'a' < 26 }
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func fold(c byte) byte    { return c | byte((uint32(c-'A')-26)>>31)<<5 }

// hasFold reports whether text starts with want, ignoring ASCII case; want is
// lower case.
func hasFold(text []byte, want string) bool {
	if len(text) < len(want) {
		return false
	}
	for i := range len(want) {
		if fold(text[i]) != want[i] {
			return false
		}
	}
	return true
}

func hasFoldSuffix(text []byte, want string) bool {
	return len(text) >= len(want) && hasFold(text[len(text)-len(want):], want)
}

// Sources is where known values are looked for. Collect reads them before the
// child starts: a value echoed before it is known is the classic leak.
type Sources struct {
	Env        []string // the wrapper's environment before scrubbing
	ChildEnv   []string // the child's
	Argv       []string // the child's
	Files      []CredentialFile
	AuthVars   []string // authentication.methods[].envVar of the tool's metadata
	ExtraFiles []string // files that policy names
	Home       string   // what "~/" in those stands for
	ExtraEnv   []string // globs of variable names that policy names
}

// Skip is a variable whose value is not treated as a secret, and why.
type Skip struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Known is what Collect found. The values themselves are not exported: nothing
// but the Set may see them.
type Known struct {
	Loaded     int      `json:"loaded"`
	Skipped    []Skip   `json:"skipped,omitempty"`
	Dropped    int      `json:"dropped,omitempty"`    // over a limit
	Unreadable []string `json:"unreadable,omitempty"` // files that exist and could not be read
	values     []knownValue
}

type knownValue struct {
	name  string // env.NAME, file.netrc, argv.--token
	value string
}

const (
	maxKnown      = 1000
	maxKnownBytes = 1 << 20
)

// collector gathers values; several names for one value become the first in byte
// order, so that the name does not depend on the order of the environment.
type collector struct {
	known Known
	size  int
	at    map[string]int
}

func (c *collector) add(name, value string) {
	name = safeName(name)
	value = strings.TrimSpace(value)
	if why := notSecret(value); why != "" {
		c.skip(name, why)
		return
	}
	if i, ok := c.at[value]; ok {
		c.known.values[i].name = min(c.known.values[i].name, name)
		return
	}
	if len(c.known.values) >= maxKnown || c.size+len(value) > maxKnownBytes {
		c.known.Dropped++
		return
	}
	c.size += len(value)
	c.at[value] = len(c.known.values)
	c.known.values = append(c.known.values, knownValue{name, value})
}

func (c *collector) skip(name, why string) {
	s := Skip{name, why}
	if !slices.Contains(c.known.Skipped, s) && len(c.known.Skipped) < maxKnown {
		c.known.Skipped = append(c.known.Skipped, s)
	}
}

// Collect gathers known values. A file that cannot be read is not an error: it is
// listed in Known.Unreadable and the run goes on.
func Collect(src Sources) (Known, error) {
	c := &collector{at: make(map[string]int, 16)}
	for _, env := range [...][]string{src.Env, src.ChildEnv} {
		for _, kv := range env {
			if name, value, ok := strings.Cut(kv, "="); ok && value != "" {
				c.variable(name, value, &src)
			}
		}
	}
	c.argv(src.Argv)
	if err := c.files(&src); err != nil {
		return Known{}, err
	}
	c.known.Loaded = len(c.known.values)
	return c.known, nil
}

// variable adds the value of an environment variable if its name asks for it.
func (c *collector) variable(name, value string, src *Sources) {
	declared := slices.Contains(src.AuthVars, name)
	if !declared {
		for _, g := range src.ExtraEnv {
			if globFold(g, name) {
				declared = true
				break
			}
		}
	}
	switch kind := secretNameKind(name); {
	case kind == nameURL:
		if password, ok := urlPassword(value); ok {
			c.add("env."+name, value)
			c.password(name, password)
		}
	case declared || kind == nameSecret:
		c.add("env."+name, value)
		if password, ok := urlPassword(value); ok {
			c.password(name, password)
		}
		if strings.HasSuffix(strings.ToUpper(name), "_B64") {
			if dec, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value)); err == nil && utf8.Valid(dec) {
				c.add("env."+name, string(dec))
			}
		}
	case kind == nameExempt:
		c.skip("env."+name, "the name says that it is no secret")
	}
}

// password adds a password of a URL as it stands there and decoded.
func (c *collector) password(name, password string) {
	c.add("env."+name, password)
	if plain := unpercent(password); plain != password {
		c.add("env."+name, plain)
	}
}

// urlPassword returns the password in scheme://user:password@host.
func urlPassword(value string) (string, bool) {
	_, rest, ok := strings.Cut(value, "://")
	if !ok {
		return "", false
	}
	if end := strings.IndexAny(rest, "/ "); end >= 0 {
		rest = rest[:end]
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return "", false
	}
	user, password, ok := strings.Cut(rest[:at], ":")
	if !ok {
		return user, len(user) >= 16
	}
	return password, password != ""
}

// argv adds the values of options whose name says secret. A URL with a password
// is an argument like any other and is found as one.
func (c *collector) argv(argv []string) {
	for i, a := range argv {
		if i == 0 {
			continue
		}
		if len(a) > 2 && a[0] == '-' && a[1] == '-' {
			name, value, attached := strings.Cut(a, "=")
			if !secretOption(name) {
				continue
			}
			if !attached {
				if i+1 == len(argv) || strings.HasPrefix(argv[i+1], "-") {
					continue
				}
				value = argv[i+1]
			}
			c.add("argv."+name, value)
		} else if password, ok := urlPassword(a); ok {
			c.add("argv.url", password)
		} else if name, value := flagSecret(argv, i); value != "" {
			c.add("argv."+name, value)
		}
	}
}

// flagSecret returns the password in a short option of the tools that readFlag
// knows.
func flagSecret(argv []string, i int) (name, value string) {
	tool, a, next := filepath.Base(argv[0]), argv[i], ""
	if i+1 < len(argv) {
		next = argv[i+1]
	}
	switch tool {
	case "curl":
		if a == "-u" {
			_, value, _ = strings.Cut(next, ":")
		}
		return "-u", value
	case "sshpass":
		if a == "-p" {
			return "-p", next
		}
		value, _ = strings.CutPrefix(a, "-p")
	case "docker", "podman", "helm":
		if a == "-p" && slices.Contains(argv[:i], "login") {
			value = next
		}
		return "-p", value
	case "mysql", "mysqldump", "mariadb":
		value, _ = strings.CutPrefix(a, "-p")
	}
	if !strings.HasPrefix(a, "-p") {
		value = ""
	}
	return "-p", value
}

// secretOption reports whether the last words of an option name a secret.
func secretOption(name string) bool {
	e := engine{}
	e.view.vis = append(append(e.view.vis, name...), '=', ' ')
	for k := range keywords {
		kw := keywords[k].word
		if at := len(name) - len(kw); at > 0 {
			if info := e.readName(at, &entry{text: kw, ref: keywordRef(k), kind: eName}, true); info.outcome == found && info.class >= classWeak {
				return true
			}
		}
	}
	return false
}

// globFold matches a name against a pattern in which * stands for any text.
func globFold(pattern, name string) bool {
	for pattern != "" {
		if pattern[0] == '*' {
			pattern = strings.TrimLeft(pattern, "*")
			for i := 0; i <= len(name); i++ {
				if globFold(pattern, name[i:]) {
					return true
				}
			}
			return false
		}
		if name == "" || fold(name[0]) != fold(pattern[0]) {
			return false
		}
		pattern, name = pattern[1:], name[1:]
	}
	return name == ""
}

// notSecret says why a value cannot be looked for: it would mask ordinary text.
func notSecret(value string) string {
	b := []byte(value)
	switch {
	case len(b) < minKnown:
		return "shorter than 8 bytes"
	case isConstant(b):
		return "a constant"
	case isNumeric(b):
		return "a number or version"
	case isRegion(value):
		return "a region"
	case wordPath(b):
		return "a path of words"
	case fewWords(b):
		return "words"
	case entropy(b) < 2.5:
		return "too uniform"
	case HasPlaceholder(value):
		return "a placeholder"
	}
	return ""
}

// isRegion reports names such as eu-central-1 and us-east1.
func isRegion(v string) bool {
	if len(v) > 20 || !isDigit(v[len(v)-1]) && !(len(v) > 2 && isDigit(v[len(v)-2])) {
		return false
	}
	area, rest, ok := strings.Cut(v, "-")
	if !ok || len(area) > 12 {
		return false
	}
	for _, part := range [...]string{"east", "west", "north", "south", "central"} {
		if strings.HasPrefix(rest, part) || strings.HasPrefix(rest, "gov-"+part) {
			return true
		}
	}
	return false
}

func wordPath(b []byte) bool {
	if b[0] != '/' && b[0] != '~' && b[0] != '.' {
		return false
	}
	return isPathOrHost(b)
}

// fewWords reports one or two listed words, joined, with at most two digits.
func fewWords(b []byte) bool {
	if !wordy(b) {
		return false
	}
	words := 0
	for i, c := range b {
		if isAlpha(c) && (i == 0 || !isAlpha(b[i-1]) || isUpper(c) && isLower(b[i-1])) {
			words++
		}
	}
	return words <= 2
}
