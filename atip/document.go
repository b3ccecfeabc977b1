package atip

import (
	"slices"
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

// Arities beside a fixed number of words.
const (
	arityUnknown    = -1
	arityRest       = -2
	arityTerminator = -3
)

// option is one declared option.
type option struct {
	name     string // the longest flag without dashes
	flags    []string
	typ      string
	arity    int  // words it takes
	optional bool // its value, if any, is attached: -i[SUF], --color[=WHEN]
	enum     val
	envVar   string
	pending  bool // not in scope yet: the arity is what all descendants agree on
}

func (o *option) has(flag string) bool {
	return slices.Contains(o.flags, flag)
}

// means reports whether what n says of a flag is said of o, the option of a use: a command below that declares
// the flag itself, with values of another type, has another option under it (git -C DIR, git commit -C COMMIT).
func (n *node) means(flag string, o *option) bool {
	for i := range n.options {
		if own := &n.options[i]; own.has(flag) {
			return o == nil || o == own || o.typ == own.typ
		}
	}
	return true
}

// spelledOut is the long flag that a short one stands for, by its first letter: documents also
// list unlike flags together.
func (o *option) spelledOut(name string) string {
	if len(name) == 1 {
		for _, f := range o.flags {
			if len(f) > 3 && strings.EqualFold(f[:3], "--"+name) {
				return f[2:]
			}
		}
	}
	return name
}

func (o *option) boolean() bool { return o.arity == 0 && !o.optional }

// argument is one declared positional.
type argument struct {
	name, typ          string
	required, variadic bool
	enum               val
}

// node is one command, or the tool itself, decoded from a document.
type node struct {
	d       *Document
	v       val
	parent  *node
	name    string // canonical; "" for the root and for commands[""]
	pointer string
	depth   int // number of command names above and including this
	conv    conventions

	options   []option
	arguments []argument
	argsKnown bool // arguments were declared, if only as []
	kids      val
	x         *index      // of the document, nil if all of it is on the tape
	rec       *nodeRecord // the node's place in it: kids is empty
	broken    bool        // not an object, or its commands are not: nothing is known of it

	ext    *extension
	extBad bool // an extension was there and could not be read

	index   flagIndex
	clashes bool        // two options share a flag
	agreed  flagSummary // flags of descendants: what they agree on
	blank   *node       // commands[""], once asked for
	blanked bool
}

func (d *Document) rootNode() *node {
	n := d.newNode(nil, "", "", d.root())
	if d.index != nil {
		rec, ok := d.index.record(0)
		n.x, n.rec, n.broken = d.index, rec, n.broken || !ok
	}
	return n
}

func (d *Document) newNode(parent *node, name, pointer string, v val) *node {
	n := &node{d: d, v: v, parent: parent, name: name, pointer: pointer}
	if parent == nil {
		n.conv = defaultConventions()
	} else {
		n.conv = parent.conv
		n.depth = parent.depth
		if name != "" {
			n.depth++
		}
	}
	if !v.is(KindObject) {
		n.broken = true
		return n
	}
	var options, global, arguments, ext val
	v.members(func(key string, m val) bool {
		switch key {
		case "options":
			options = m
		case "globalOptions":
			global = m
		case "arguments":
			arguments = m
		case "commands":
			n.kids = m
			n.broken = !m.is(KindObject)
		case "x-atip-effects":
			ext = m
		}
		return true
	})
	if ext.ok() {
		n.ext = readExtension(ext, n.pointer+"/x-atip-effects")
		n.extBad = n.ext == nil
	}
	if n.ext != nil {
		n.conv.apply(n.ext)
		if n.ext.parse.get("chdir").ok() {
			n.conv.chdirOf = n
		}
	}
	n.readOptions(options, global)
	n.readArguments(arguments)
	return n
}

func (n *node) readOptions(lists ...val) {
	total := 0
	for _, list := range lists {
		total += list.len()
	}
	if total == 0 {
		return
	}
	n.options = make([]option, 0, total)
	flags := make([]string, 0, 2*total)
	for _, list := range lists {
		list.items(func(_ int, v val) {
			from := len(flags)
			o := option{arity: arityUnknown}
			bad := !v.is(KindObject)
			v.members(func(key string, m val) bool {
				switch key {
				case "flags":
					bad = bad || !m.is(KindArray)
					m.items(func(_ int, f val) {
						flag := f.str()
						if len(flag) < 2 || flag[0] != '-' {
							bad = true
						}
						flags = append(flags, flag)
					})
				case "type":
					o.typ = m.str()
				case "enum":
					o.enum = m
				case "envVar":
					o.envVar = m.str()
				}
				return true
			})
			o.flags = flags[from:len(flags):len(flags)]
			if bad || len(o.flags) == 0 {
				return
			}
			for _, f := range o.flags {
				if bare := strings.TrimLeft(f, "-"); len(bare) > len(o.name) {
					o.name = bare
				}
			}
			n.conv.setArity(&o)
			n.options = append(n.options, o)
		})
	}
	n.mixFlags()
}

// mixFlags forgets the arity of options that share a flag and disagree on it.
func (n *node) mixFlags() {
	n.index.build(n.options, func(a, b *option) {
		n.clashes = n.clashes || a != b
		if a != b && (a.arity != b.arity || a.optional != b.optional) {
			a.arity, b.arity = arityUnknown, arityUnknown
		}
	})
}

func (n *node) readArguments(list val) {
	if !list.is(KindArray) {
		return
	}
	n.argsKnown = true
	if c := list.len(); c > 0 {
		n.arguments = make([]argument, 0, c)
	}
	list.items(func(_ int, v val) {
		a := argument{required: true}
		v.members(func(key string, m val) bool {
			switch key {
			case "name":
				a.name = m.str()
			case "type":
				a.typ = m.str()
			case "required":
				a.required = !m.is(KindFalse)
			case "variadic":
				a.variadic = m.isTrue()
			case "enum":
				a.enum = m
			}
			return true
		})
		if a.name == "" {
			n.argsKnown = false
			return
		}
		n.arguments = append(n.arguments, a)
	})
}

// own finds an option declared at this very node.
func (n *node) own(flag string) *option { return n.index.find(n.options, flag) }

// inScope finds an option of the node or of an ancestor; the nearest wins, since a
// tool hands its words to the innermost parser first.
func (n *node) inScope(flag string) *option {
	for a := n; a != nil; a = a.parent {
		if o := a.own(flag); o != nil {
			return o
		}
	}
	return nil
}

// anyKids reports subcommands, commands[""] included.
func (n *node) anyKids() bool {
	if n.rec != nil {
		return n.rec.children > 0
	}
	return n.kids.len() > 0
}

// hasKids reports subcommands other than commands[""].
func (n *node) hasKids() bool {
	if n.rec != nil {
		_, blank, _, _ := n.x.lookup(n.rec, "", false)
		return n.rec.children > 1 || n.rec.children == 1 && !blank
	}
	found := false
	n.kids.members(func(key string, _ val) bool {
		found = key != ""
		return !found
	})
	return found
}

// child is the command reached by a key of commands.
func (n *node) child(name string, v val) *node {
	return n.d.newNode(n, name, pointerTo(n.pointer+"/commands", name), v)
}

// indexed is the command of that number in the index.
func (n *node) indexed(number uint32) *node {
	rec, ok := n.x.record(number)
	var name string
	if ok {
		name, ok = n.x.str(rec.name, rec.nameLen)
	}
	var v val
	if ok {
		if d := n.x.load(rec); d != nil {
			v = d.root()
		}
	}
	c := v.d.newNode(n, name, pointerTo(n.pointer+"/commands", name), v)
	if c.x, c.rec = n.x, rec; !ok {
		c.rec, c.broken = nil, true
	}
	return c
}

// bare is commands[""], the node called without a subcommand; nil if there is none.
func (n *node) bare() *node {
	if n.blanked {
		return n.blank
	}
	n.blanked = true
	if n.rec != nil {
		child, found, _, damaged := n.x.lookup(n.rec, "", false)
		if found {
			n.blank = n.indexed(child)
		}
		n.broken = n.broken || damaged
	} else if v := n.kids.get(""); v.ok() {
		n.blank = n.child("", v)
	}
	return n.blank
}

// lookup finds a subcommand by exact name, alias, or, where the tool takes them,
// unique prefix.
func (n *node) lookup(word string) (found *node, abbreviated bool) {
	if word == "" {
		return nil, false
	}
	if n.rec != nil {
		child, ok, abbreviated, damaged := n.x.lookup(n.rec, word, n.conv.abbrevCommands)
		if n.broken = n.broken || damaged; !ok {
			return nil, false
		}
		return n.indexed(child), abbreviated
	}
	if v := n.kids.get(word); v.ok() {
		return n.child(word, v), false
	}
	var name, prefixed string
	var at, prefixAt val
	candidates := 0
	n.kids.members(func(key string, m val) bool {
		if hasAlias(m, word) {
			name, at = key, m
			return false
		}
		if n.conv.abbrevCommands && strings.HasPrefix(key, word) {
			prefixed, prefixAt = key, m
			candidates++
		}
		return true
	})
	if at.ok() {
		return n.child(name, at), false
	}
	if candidates == 1 {
		return n.child(prefixed, prefixAt), true
	}
	return nil, false
}

func hasAlias(m val, word string) bool {
	found := false
	for _, key := range [...]string{"aliases", "x-atip-aliases"} {
		m.get(key).items(func(_ int, item val) { found = found || item.str() == word && item.is(KindString) })
	}
	return found
}

// operands reports x-atip-operands: plain words of this command are its arguments although
// it has subcommands.
func (n *node) operands() bool { return n.v.get("x-atip-operands").isTrue() }

// takesArguments reports whether words that name no command can be meant for this
// node. Undeclared arguments count only where there is no command to mistype.
func (n *node) takesArguments(siblings bool) bool {
	return len(n.arguments) > 0 || !n.argsKnown && !siblings
}

// path lists the canonical names from the root.
func (n *node) path() []string {
	out := make([]string, 0, n.depth)
	return n.appendPath(out)
}

func (n *node) appendPath(out []string) []string {
	if n.parent != nil {
		out = n.parent.appendPath(out)
		if n.name != "" {
			out = append(out, n.name)
		}
	}
	return out
}

// each visits the node and all below it, in a document that is whole.
func (n *node) each(visit func(*node)) {
	visit(n)
	n.kids.members(func(key string, m val) bool {
		n.child(key, m).each(visit)
		return true
	})
}

// fromDescendants is what the commands below agree on for a flag that stands before
// the command word: its arity, as an option that is pending until the command is
// known. conflict means they disagree.
func (n *node) fromDescendants(flag string) (o *option, conflict bool) {
	if n.rec != nil {
		o, damaged := n.x.flag(n.rec, flag)
		if n.broken = n.broken || damaged; o != nil && o.arity == arityUnknown {
			return nil, true
		}
		return o, false
	}
	if n.agreed == nil {
		n.agreed = make(flagSummary)
		n.kids.members(func(key string, m val) bool {
			n.child(key, m).each(func(c *node) {
				for i := range c.options {
					n.agreed.agree(&c.options[i])
				}
			})
			return true
		})
	}
	o = n.agreed[flag]
	if o != nil && o.arity == arityUnknown {
		return nil, true
	}
	return o, false
}

// Value is a three-valued truth. The zero value is Unknown: what a document does
// not state is never read as "no".
type Value uint8

// The three truth values.
const (
	Unknown Value = iota
	No
	Yes
)

// String returns "unknown", "no" or "yes".
func (v Value) String() string { return [...]string{"unknown", "no", "yes"}[v] }

// MarshalText implements encoding.TextMarshaler.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Of turns a stated JSON boolean into a Value.
func Of(b bool) Value {
	if b {
		return Yes
	}
	return No
}

// Primes reports whether the tool says that it has the Prime Directive: a command prime of
// its own, or the feature. A document that only guesses says nothing.
func (d *Document) Primes() bool {
	if d.Inferred() {
		return false
	}
	root := d.rootNode()
	if _, found := d.primeNode(root); found {
		return true
	}
	has := false
	d.root().get("atip").get("features").items(func(_ int, v val) { has = has || v.str() == "prime" })
	return has
}

func (d *Document) primeNode(root *node) (*node, bool) {
	if root.rec != nil {
		n, abbreviated := root.lookup("prime")
		return n, n != nil && !abbreviated
	}
	if v := root.kids.get("prime"); v.ok() {
		return root.child("prime", v), true
	}
	return nil, false
}

// PrimesMetadata reports whether prime takes --metadata.
func (d *Document) PrimesMetadata() bool {
	n, found := d.primeNode(d.rootNode())
	return found && n.own("--metadata") != nil
}
