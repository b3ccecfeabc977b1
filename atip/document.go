package atip

import (
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// ParseOptions chooses how strictly and how much is read. The zero value allows
// no comments and reads at most 4 MiB.
type ParseOptions struct {
	Comments bool     // JSONC: // and /* */ outside strings; never for what may be signed
	MaxBytes int      // 0: 4 MiB
	DataKeys []string // ParseTree: objects under these keys have data as keys, exempt from case folding
	Known    []string // ParseTree: field names that no other key may equal under case folding
}

// Document is the parsed metadata of one tool. It is safe for concurrent use.
//
// Parse checks every byte but decodes almost nothing: a call reads the root and
// the few nodes on its path straight from the tape.
type Document struct {
	src  string
	tape []entry
	hash string

	index *index // nil: the tape holds all of it, else its root without commands

	lineOnce sync.Once
	lines    []int // offsets of line starts, for positions in findings
}

// Parse reads an ATIP document, versions 0.1 to 0.6, native or shim. A breach of
// strict JSON refuses all of it with a *DocError.
func Parse(raw []byte, o ParseOptions) (*Document, error) {
	s, err := scan(raw, o, true, true)
	if err != nil {
		return nil, err
	}
	return newDocument(s.s, s.tape)
}

func newDocument(src string, tape []entry) (*Document, error) {
	d := &Document{src: src, tape: tape}
	root := d.root()
	if !root.is(KindObject) {
		return nil, d.refuse(errcode.MetadataStructure, root, "", "the document is not an object")
	}
	if err := d.checkVersion(root.get("atip")); err != nil {
		return nil, err
	}
	if commands := root.get("commands"); commands.ok() && !commands.is(KindObject) {
		return nil, d.refuse(errcode.MetadataStructure, commands, "/commands", "commands is not an object")
	}
	if hash := root.get("binary").get("hash"); hash.ok() {
		hex, ok := sha256Hex(hash.str())
		if !ok {
			return nil, d.refuse(errcode.MetadataStructure, hash, "/binary/hash", "binary.hash is not sha256: and 64 hex digits")
		}
		d.hash = hex
	}
	return d, nil
}

func (d *Document) root() val { return val{d, 0} }

func (d *Document) refuse(code string, v val, pointer, msg string) error {
	line, col := v.pos()
	return &DocError{Code: code, Pointer: pointer, Line: line, Col: col, Msg: msg}
}

func (d *Document) position(off int) (line, col int) {
	d.lineOnce.Do(func() {
		d.lines = append(d.lines, 0)
		for i := 0; i < len(d.src); i++ {
			if d.src[i] == '\n' {
				d.lines = append(d.lines, i+1)
			}
		}
	})
	n := sort.SearchInts(d.lines, off+1)
	return n, off - d.lines[n-1] + 1
}

func sha256Hex(s string) (string, bool) {
	hex, ok := strings.CutPrefix(s, "sha256:")
	if !ok || len(hex) != 64 {
		return "", false
	}
	for i := 0; i < len(hex); i++ {
		c := hex[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return "", false
		}
	}
	return strings.ToLower(hex), true
}

func (d *Document) checkVersion(v val) error {
	if !v.ok() {
		return d.refuse(errcode.MetadataVersion, d.root(), "/atip", "no atip version: this is not an ATIP document")
	}
	version := v
	if v.is(KindObject) {
		version = v.get("version")
	}
	if _, _, ok := protocolVersion(version.str()); !ok {
		return d.refuse(errcode.MetadataVersion, v, "/atip", "atip version "+quoteShort(version.scalar())+" is not one of 0.1 to 0.6")
	}
	if need := v.get("minAgentVersion"); need.ok() {
		minor, patch, ok := protocolVersion(need.str())
		if !ok || minor > 6 || minor == 6 && patch > 0 {
			return d.refuse(errcode.MetadataVersion, need, "/atip/minAgentVersion", "the document needs an agent of version "+quoteShort(need.scalar())+", this one reads 0.6")
		}
	}
	return nil
}

// protocolVersion reads 0.N or 0.N.P with N of at least 1.
func protocolVersion(s string) (minor, patch int, ok bool) {
	rest, ok := strings.CutPrefix(s, "0.")
	if !ok {
		return 0, 0, false
	}
	first, second, has := strings.Cut(rest, ".")
	if minor, ok = smallNumber(first); !ok || minor == 0 {
		return 0, 0, false
	}
	if has {
		if patch, ok = smallNumber(second); !ok {
			return 0, 0, false
		}
	}
	return minor, patch, true
}

func smallNumber(s string) (int, bool) {
	if s == "" || len(s) > 4 || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

func (d *Document) lent(field string) string {
	if s := d.root().get(field).str(); s != "" {
		return s
	}
	return d.root().get("binary").get(field).str()
}

// Name is the tool's name; a shim's binary.name where the root has none.
func (d *Document) Name() string { return d.lent("name") }

// Version is the tool's version; a shim's binary.version where the root has none.
func (d *Document) Version() string { return d.lent("version") }

// Description is the one-line description of the tool.
func (d *Document) Description() string { return d.root().get("description").str() }

// Names returns the globs of x-atip-names: other names of the same program.
func (d *Document) Names() []string {
	names, _ := d.root().get("x-atip-names").strings()
	return names
}

// Multicall reports x-atip-multicall: the invoked name selects the command.
func (d *Document) Multicall() bool { return d.root().get("x-atip-multicall").isTrue() }

// OneTool reports a document that is read in full, of a single tool, and says of no words that they
// are a command or a program.
func (d *Document) OneTool() bool {
	return d.index == nil && !d.Multicall() && !strings.Contains(d.src, `"exec"`) && !strings.Contains(d.src, `\u`)
}

// BinaryHash is the lower-case hex SHA-256 of the one binary a shim describes, "" if none.
func (d *Document) BinaryHash() string { return d.hash }

// Platform is what a shim says its binary is for, such as linux-amd64; "" if nothing.
func (d *Document) Platform() string { return d.root().get("binary").get("platform").str() }

// DeclaredSource is trust.source as a rank; false if missing or "native", which
// declare what the place of the document allows. Any other word declares Inferred.
func (d *Document) DeclaredSource() (Rank, bool) {
	source := d.root().get("trust").get("source")
	if !source.ok() || source.str() == "native" {
		return Inferred, false
	}
	r, _ := RankByName(source.str())
	return r, true
}

// Inferred reports trust.source "inferred" or a word that is no source: such a
// document may claim danger only.
func (d *Document) Inferred() bool {
	r, ok := d.DeclaredSource()
	return ok && r == Inferred
}

// partial reports that commands may exist which the document does not list.
func (d *Document) partial() bool {
	root := d.root()
	return root.get("partial").isTrue() || root.get("omitted").ok()
}

// RankByName is the inverse of Rank.String.
func RankByName(name string) (Rank, bool) {
	for r := Inferred; r <= Vendor; r++ {
		if r.String() == name {
			return r, true
		}
	}
	return Inferred, false
}

// checkKeys refuses what Go's own decoder accepts silently: a key twice, or
// "Destructive" beside or in place of "destructive", which would let one reader
// see a harmless command where another sees a dangerous one.
func (s *scanner) checkKeys(keys []scannedKey, p place) error {
	if len(keys) > 12 {
		return s.checkManyKeys(keys, p)
	}
	for i, k := range keys {
		text := s.keyText(k)
		for _, l := range keys[:i] {
			other := s.keyText(l)
			if text == other {
				return s.bad(int(k.off), "duplicate key "+quoteShort(text))
			}
			if p == placeFields && (k.flags|l.flags)&flagMixed != 0 && strings.EqualFold(text, other) {
				return s.bad(int(k.off), "keys "+quoteShort(other)+" and "+quoteShort(text)+" differ in case only")
			}
		}
	}
	return nil
}

// checkManyKeys is linear in the number of keys.
func (s *scanner) checkManyKeys(keys []scannedKey, p place) error {
	seen := make(map[string]string, len(keys))
	for _, k := range keys {
		text := s.keyText(k)
		folded := text
		if p == placeFields && k.flags&flagMixed != 0 {
			folded = foldKey(text)
		}
		if other, ok := seen[folded]; ok {
			if other == text {
				return s.bad(int(k.off), "duplicate key "+quoteShort(text))
			}
			return s.bad(int(k.off), "keys "+quoteShort(other)+" and "+quoteShort(text)+" differ in case only")
		}
		seen[folded] = text
	}
	return nil
}

// keyBit spreads keys over the bits of a word: keys of one object that hit no bit twice
// differ, and most objects need no further comparison.
func keyBit(key string) uint64 {
	if key == "" {
		return 1
	}
	return 1 << ((uint(len(key))*7 + uint(key[0])*3 + uint(key[len(key)-1])) & 63)
}

// checkKnown refuses a key that is a field but for its case.
func (s *scanner) checkKnown(k scannedKey, text string) error {
	var known string
	if s.document {
		known = foldsToField(text, k.flags&flagMixed != 0)
	} else {
		for _, name := range s.known {
			if text == name {
				return nil
			}
			if strings.EqualFold(text, name) {
				known = name
			}
		}
	}
	if known != "" {
		return s.bad(int(k.off), "key "+quoteShort(text)+" differs from "+quoteShort(known)+" in case only")
	}
	return nil
}

// foldKey maps keys that are equal under simple case folding to one string.
func foldKey(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			if r >= 'A' && r <= 'Z' {
				r += 'a' - 'A'
			}
			return r
		}
		// The smallest rune of the orbit is upper case for letters; go through
		// it so that U+212A (Kelvin) and U+017F (long s) meet k and s.
		low := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			if f < low {
				low = f
			}
		}
		if low >= 'A' && low <= 'Z' {
			low += 'a' - 'A'
		}
		return low
	}, s)
}

// quoteShort quotes a part of a document for a message: escaped, since documents come
// from anywhere and messages go to terminals.
func quoteShort(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "..."
	}
	return strconv.Quote(s)
}

// documentPlace says what the keys below a field of an ATIP document are.
func documentPlace(field string) place {
	switch field {
	case "commands", "variables", "tools", "versions", "arity":
		return placeData
	case "default":
		return placeOpaque
	}
	if isExtensionKey(field) && !strings.HasPrefix(field, "x-atip-") {
		return placeOpaque
	}
	return placeFields
}

// isExtensionKey reports the prefixes that ATIP reserves for others (0.6 section 12.2).
func isExtensionKey(key string) bool {
	return strings.HasPrefix(key, "x-") || strings.HasPrefix(key, "_") || strings.HasPrefix(key, "$")
}

// isIdentifier reports fields whose strings are names or flags.
func isIdentifier(field string) bool {
	switch field {
	case "name", "flags", "aliases", "x-atip-aliases", "x-atip-names", "envVar":
		return true
	}
	return false
}

// foldsToField returns the field that key equals under case folding only. A key of
// lower-case letters can only be near a field that has upper-case ones.
func foldsToField(key string, mixed bool) string {
	if !mixed {
		if len(key) < len("addall") {
			return ""
		}
		return camelField(key)
	}
	folded := foldKey(key)
	if f := camelField(folded); f != "" {
		if f == key {
			return ""
		}
		return f
	}
	if isLowerField(folded) && folded != key {
		return folded
	}
	return ""
}

// camelFields are the fields with upper-case letters.
var camelFields = [...]string{
	"minAgentVersion", "globalOptions", "totalCommands", "includedCommands", "safetyAssumption", "envVar", "setupCommand", "checkCommand", "slsaLevel",
	"shimIntegrity", "lastVerified", "secretRead", "remoteMutation", "execOpaque", "addAll", "minRank", "accessIf", "recursiveIf", "relativeTo",
	"safeKeys", "attachedValue", "abbrevCommands", "singleDashLong", "numericOption", "bareCluster", "keyValueArgs", "optionalValue", "responseFiles",
	"unknownOption", "anyOption", "allOptions", "optionValue", "anyArg", "argCount", "keyValue",
}

// camelField finds a field with upper-case letters by its lower-case form.
func camelField(lower string) string {
	for _, field := range camelFields {
		if len(field) == len(lower) && strings.EqualFold(field, lower) {
			return field
		}
	}
	return ""
}

// isLowerField reports the fields written in lower case only.
func isLowerField(key string) bool {
	switch key {
	case "atip", "version", "features", "name", "description", "homepage", "trust", "source", "verified",
		"integrity", "checksum", "signature", "type", "identity", "issuer", "bundle", "provenance", "url",
		"format", "builder", "commands", "authentication", "required", "methods", "effects", "patterns",
		"steps", "command", "variables", "executable", "tags", "arguments", "options", "examples", "flags",
		"default", "variadic", "enum", "filesystem", "read", "write", "delete", "paths", "network",
		"subprocess", "idempotent", "reversible", "destructive", "creates", "modifies", "deletes",
		"interactive", "stdin", "prompts", "tty", "cost", "estimate", "billable", "duration", "typical",
		"timeout", "partial", "filter", "depth", "omitted", "reason", "binary", "hash", "platform",
		"privileged", "persistence", "aliases", "v", "base", "when", "narrow", "args", "exec", "env", "files",
		"sublanguage", "parse", "id", "if", "add", "unknown", "because", "despite", "inherit", "index", "flag",
		"key", "kind", "access", "from", "skip", "assignments", "terminator", "language", "placeholder",
		"path", "interspersed", "dashdash", "abbrev", "negation", "arity",
		"chdir", "match", "equals", "in", "prefix", "suffix", "contains", "glob", "re", "ci", "min", "max",
		"all", "any", "not", "x-atip-effects", "x-atip-aliases", "x-atip-names", "x-atip-multicall",
		"x-atip-tested", "x-atip-hosts", "x-atip-service", "x-atip-operands", "x-atip-execs", "x-atip-fetch":
		return true
	}
	return false
}
