package atip

import (
	"errors"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Validate checks a document as `atip validate` does: what loading tolerates is
// an error here. file is its name, which a hash-keyed shim must match. It is the 0.6
// schema by hand, because a schema library costs more start-up time than a whole run.
func Validate(raw []byte, file string) []Finding {
	d, err := Parse(raw, ParseOptions{})
	if err != nil {
		var e *DocError
		if !errors.As(err, &e) {
			return []Finding{{Severity: SeverityError, Code: errcode.MetadataSyntax, Message: err.Error()}}
		}
		return []Finding{{Pointer: e.Pointer, Line: e.Line, Col: e.Col, Severity: SeverityError, Code: e.Code, Message: e.Msg}}
	}
	c := validator{d: d, strict: true}
	c.fileName(file)
	c.document()
	return c.sorted()
}

// Warnings lists what was ignored or weakened on loading.
func (d *Document) Warnings() []Finding {
	c := validator{d: d.whole()}
	c.document()
	return c.sorted()
}

type validator struct {
	d      *Document
	strict bool
	out    []Finding
}

// grade is how a finding weighs on loading and for validate; "" is not at all.
type grade struct{ load, validate string }

// tolerated is what loading only warns of.
func tolerated() grade { return grade{SeverityWarning, SeverityError} }
func warned() grade    { return grade{SeverityWarning, SeverityWarning} }
func advised() grade   { return grade{"", SeverityWarning} }
func schema() grade    { return grade{"", SeverityError} }

func (c *validator) note(g grade, v val, pointer, code, msg string) {
	severity := g.load
	if c.strict {
		severity = g.validate
	}
	if severity == "" {
		return
	}
	line, col := v.pos()
	c.out = append(c.out, Finding{Pointer: pointer, Line: line, Col: col, Severity: severity, Code: code, Message: msg})
}

func (c *validator) sorted() []Finding {
	sort.SliceStable(c.out, func(i, j int) bool {
		a, b := &c.out[i], &c.out[j]
		return a.Line < b.Line || a.Line == b.Line && a.Col < b.Col
	})
	return c.out
}

// fileName holds a file named by a digest against binary.hash.
func (c *validator) fileName(file string) {
	name, ok := strings.CutSuffix(baseName(file), ".json")
	if !ok || len(name) < 64 {
		return
	}
	hex, ok := sha256Hex("sha256:" + name[len(name)-64:])
	if !ok {
		return
	}
	if c.d.hash != hex && (len(name) == 64 || c.d.hash != "") {
		c.note(schema(), c.d.root(), "/binary/hash", errcode.MetadataBinary, "binary.hash is not the digest the file is named by")
	}
}

func (c *validator) document() {
	root := c.d.root()
	c.version(root.get("atip"))
	c.fields(root, "", "root")
	c.required(root, "", "description")
	for _, field := range [...]string{"name", "version"} {
		if root.get(field).str() == "" && c.d.lent(field) == "" {
			c.note(tolerated(), root, "/"+field, field, field+" is missing")
		}
	}
	if name := c.d.Name(); name != "" && !validName(name) {
		c.note(tolerated(), root.get("name"), "/name", "name", "name "+quoteShort(name)+" is not of A-Z a-z 0-9 _ -")
	}
	if home := root.get("homepage"); home.ok() && !validURL(home.str()) {
		c.note(tolerated(), home, "/homepage", "url", "homepage is not an http or https URL")
	}
	if o := root.get("omitted"); o.ok() {
		c.enum(o.get("reason"), "/omitted/reason", false, "filtered", "depth-limited", "size-limited", "deprecated")
		c.enum(o.get("safetyAssumption"), "/omitted/safetyAssumption", false, "unknown", "known-safe", "known-unsafe", "same-as-included")
		if !o.is(KindObject) {
			c.note(tolerated(), o, "/omitted", "type", "omitted is not an object")
		}
	}
	c.trust(root.get("trust"))
	c.authentication(root.get("authentication"))
	c.patterns(root.get("patterns"))
	c.node(c.d.rootNode())
}

func (c *validator) version(v val) {
	version := v
	if v.is(KindObject) {
		version = v.get("version")
		c.fields(v, "/atip", "atip")
		v.get("features").items(func(n int, f val) {
			switch f.str() {
			case "partial-discovery", "interactive-effects", "trust-v1", "trust-integrity", "trust-provenance", "patterns-v1", "content-addressable":
			default:
				c.note(tolerated(), f, "/atip/features/"+strconv.Itoa(n), "feature", "unknown feature "+quoteShort(f.scalar()))
			}
		})
	}
	if minor, patch, _ := protocolVersion(version.str()); minor > 6 || patch > 0 {
		c.note(tolerated(), version, "/atip", "version", "atip version "+version.str()+" is newer than 0.6")
	}
}

// required checks a description: there, and of at most 200 characters.
func (c *validator) required(v val, pointer, field string) {
	text := v.get(field)
	switch {
	case !text.is(KindString):
		c.note(tolerated(), v, pointer+"/"+field, "description", field+" is missing")
	case utf8.RuneCountInString(text.str()) > 200:
		c.note(tolerated(), text, pointer+"/"+field, "description", field+" has more than 200 characters")
	}
}

func (c *validator) enum(v val, pointer string, required bool, words ...string) {
	if !v.ok() && !required {
		return
	}
	s := v.str()
	if slices.Contains(words, s) {
		return
	}
	c.note(tolerated(), v, pointer, "enum", quoteShort(v.scalar())+" is not one of "+strings.Join(words, ", "))
}

// fields advises on unknown fields of an object of the given kind.
func (c *validator) fields(v val, pointer, kind string) {
	if !c.strict || !v.is(KindObject) {
		return
	}
	v.members(func(key string, m val) bool {
		if !isExtensionKey(key) && !fieldOf(kind, key) {
			c.note(advised(), m, pointerTo(pointer, key), "field", "unknown field "+quoteShort(key))
		}
		return true
	})
}

func fieldOf(kind, key string) bool {
	list := ""
	switch kind {
	case "root":
		list = " atip name version description homepage trust commands globalOptions options arguments authentication effects patterns examples partial filter totalCommands includedCommands omitted binary aliases "
	case "atip":
		list = " version features minAgentVersion "
	case "command":
		list = " description commands arguments options globalOptions effects examples aliases deprecated "
	case "option":
		list = " name flags type description required default enum envVar variadic "
	case "argument":
		list = " name type description required default variadic enum "
	case "trust":
		list = " source verified integrity provenance signature shimIntegrity "
	case "authentication":
		list = " required methods checkCommand "
	case "method":
		list = " type envVar description setupCommand "
	case "pattern":
		list = " name description steps variables tags executable "
	case "step":
		list = " command description "
	}
	return strings.Contains(list, " "+key+" ")
}

func (c *validator) trust(v val) {
	if !v.ok() {
		return
	}
	if !v.is(KindObject) {
		c.note(tolerated(), v, "/trust", "type", "trust is not an object")
		return
	}
	c.fields(v, "/trust", "trust")
	c.enum(v.get("source"), "/trust/source", false, "native", "vendor", "org", "community", "user", "inferred")
	if b := v.get("verified"); b.ok() {
		if _, ok := b.boolean(); !ok {
			c.note(schema(), b, "/trust/verified", "type", "verified is not true or false")
		}
	}
	if sum := v.get("integrity").get("checksum"); sum.ok() {
		if _, ok := sha256Hex(sum.str()); !ok {
			c.note(schema(), sum, "/trust/integrity/checksum", "checksum", "checksum is not sha256: and 64 hex digits")
		}
	}
	if level := v.get("provenance").get("slsaLevel"); level.ok() {
		if n, ok := level.integer(); !ok || n < 0 || n > 4 {
			c.note(schema(), level, "/trust/provenance/slsaLevel", "type", "slsaLevel is not 0 to 4")
		}
	}
	if u := v.get("provenance").get("url"); u.ok() && !validURL(u.str()) {
		c.note(tolerated(), u, "/trust/provenance/url", "url", "provenance.url is not an http or https URL")
	}
}

func (c *validator) authentication(v val) {
	if !v.ok() {
		return
	}
	c.fields(v, "/authentication", "authentication")
	v.get("methods").items(func(n int, m val) {
		at := "/authentication/methods/" + strconv.Itoa(n)
		c.fields(m, at, "method")
		if m.get("type").str() == "" {
			c.note(schema(), m, at+"/type", "type", "method without type")
		}
		if e := m.get("envVar"); e.ok() && !isVariable(e.str()) {
			c.note(schema(), e, at+"/envVar", "variable", quoteShort(e.scalar())+" is not the name of a variable")
		}
	})
	if check := v.get("checkCommand"); check.ok() {
		if word, _, _ := strings.Cut(check.str(), " "); word != c.d.Name() {
			c.note(schema(), check, "/authentication/checkCommand", "command", "checkCommand does not start with the tool's name")
		}
	}
}

func (c *validator) patterns(v val) {
	if v.ok() && !v.is(KindArray) {
		c.note(schema(), v, "/patterns", "type", "patterns is not an array")
	}
	v.items(func(n int, p val) {
		at := "/patterns/" + strconv.Itoa(n)
		c.fields(p, at, "pattern")
		c.required(p, at, "description")
		if p.get("name").str() == "" {
			c.note(schema(), p, at+"/name", "name", "pattern without name")
		}
		if p.get("steps").len() == 0 {
			c.note(schema(), p, at+"/steps", "type", "pattern without steps")
		}
		p.get("steps").items(func(n int, s val) {
			c.fields(s, at+"/steps/"+strconv.Itoa(n), "step")
			if s.get("command").str() == "" {
				c.note(schema(), s, at+"/steps/"+strconv.Itoa(n)+"/command", "type", "step without command")
			} else if _, bad := stepWords(s.get("command").str()); bad != "" && p.get("executable").isTrue() {
				c.note(schema(), s, at+"/steps/"+strconv.Itoa(n)+"/command", "step", "the step cannot be run: "+bad)
			}
		})
	})
}

func validName(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return s != ""
}

func validURL(s string) bool {
	rest, ok := strings.CutPrefix(s, "https://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "http://")
	}
	return ok && hostOf(rest) != "" && !strings.ContainsAny(s, " \t\n\"<>")
}
