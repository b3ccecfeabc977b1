package atip

import (
	"strconv"
	"strings"
	"unicode"
)

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

// camelField finds a field with upper-case letters by its lower-case form.
func camelField(lower string) string {
	switch lower {
	case "minagentversion":
		return "minAgentVersion"
	case "globaloptions":
		return "globalOptions"
	case "totalcommands":
		return "totalCommands"
	case "includedcommands":
		return "includedCommands"
	case "safetyassumption":
		return "safetyAssumption"
	case "envvar":
		return "envVar"
	case "setupcommand":
		return "setupCommand"
	case "checkcommand":
		return "checkCommand"
	case "slsalevel":
		return "slsaLevel"
	case "shimintegrity":
		return "shimIntegrity"
	case "lastverified":
		return "lastVerified"
	case "secretread":
		return "secretRead"
	case "remotemutation":
		return "remoteMutation"
	case "execopaque":
		return "execOpaque"
	case "addall":
		return "addAll"
	case "minrank":
		return "minRank"
	case "accessif":
		return "accessIf"
	case "recursiveif":
		return "recursiveIf"
	case "relativeto":
		return "relativeTo"
	case "safekeys":
		return "safeKeys"
	case "attachedvalue":
		return "attachedValue"
	case "abbrevcommands":
		return "abbrevCommands"
	case "singledashlong":
		return "singleDashLong"
	case "numericoption":
		return "numericOption"
	case "barecluster":
		return "bareCluster"
	case "keyvalueargs":
		return "keyValueArgs"
	case "optionalvalue":
		return "optionalValue"
	case "responsefiles":
		return "responseFiles"
	case "unknownoption":
		return "unknownOption"
	case "anyoption":
		return "anyOption"
	case "alloptions":
		return "allOptions"
	case "optionvalue":
		return "optionValue"
	case "anyarg":
		return "anyArg"
	case "argcount":
		return "argCount"
	case "keyvalue":
		return "keyValue"
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
