package filter

import "strings"

// rule is a row of the compiled table: what must follow one of its prefixes.
type rule struct {
	id       string
	parts    []part
	left     leftSide
	exact    bool // a longer run is no token
	distinct uint8
	digits   uint8
	check    checkID
}

type part struct {
	lit      string
	set      setID
	min, max uint16
	opt      bool
}

// leftSide is what may stand before a prefix.
type leftSide uint8

const (
	leftWord   leftSide = iota // no letter or digit
	leftAny                    // anything
	leftDigits                 // eight digits, which are no secret
)

// fits reports whether a token of r may start at i.
func (r *rule) fits(v []byte, i int) bool {
	switch r.left {
	case leftAny:
		return true
	case leftDigits:
		if i < 8 {
			return false
		}
		for _, c := range v[i-8 : i] {
			if !isDigit(c) {
				return false
			}
		}
		return true
	}
	return leftOK(v, i)
}

type checkID uint8

const (
	checkNone checkID = iota
	checkJWT
	checkPEMBase64
)

func checkByName(name string) (checkID, bool) {
	switch name {
	case "", "crc32-github": // the checksum only raises confidence
		return checkNone, true
	case "jwt":
		return checkJWT, true
	case "pem-base64":
		return checkPEMBase64, true
	}
	return checkNone, false
}

type prefixEntry struct {
	text string
	rule uint16
}

// compileRule checks a row and turns it into its compiled form.
func compileRule(r *Rule) (rule, error) {
	fail := func(reason string) (rule, error) { return rule{}, &Error{Code: "E1501", Rule: r.ID, Reason: reason} }
	if !ruleName(r.ID) {
		return fail("id is not 1 to 48 letters, digits, _ . or -")
	}
	out := rule{id: r.ID, distinct: uint8(min(r.Need.Distinct, 64)), digits: uint8(min(r.Need.Digits, 64))}
	if len(r.Prefix) == 0 {
		return fail("no prefix")
	}
	for _, p := range r.Prefix {
		if len(p) < 3 || len(p) > 64 {
			return fail("prefix " + p + " is not 3 to 64 bytes")
		}
	}
	switch r.Left {
	case "", "word":
	case "any":
		out.left = leftAny
	case "digits":
		out.left = leftDigits
	default:
		return fail("left is neither word, digits nor any")
	}
	switch r.End {
	case "", "run":
	case "exact":
		out.exact = true
	default:
		return fail("end is neither run nor exact")
	}
	var ok bool
	if out.check, ok = checkByName(r.Check); !ok {
		return fail("unknown check " + r.Check)
	}
	if len(r.Body) == 0 {
		return fail("no body")
	}
	total, least := 0, 0
	last := setNone
	fixed := true
	for i, s := range r.Body {
		p := part{lit: s.Lit, opt: s.Opt}
		switch {
		case s.Lit != "" && s.Set != "":
			return fail("a shape has both set and lit")
		case s.Lit != "":
			// Greedy matching without backtracking needs this.
			if last != setNone && !fixed && sets[last].has(s.Lit[0]) {
				return fail("literal " + s.Lit + " is ambiguous after its set")
			}
			total += len(s.Lit)
			if !s.Opt {
				least += len(s.Lit)
			}
			last, fixed = setNone, true
		default:
			if p.set, ok = setByName(s.Set); !ok {
				return fail("unknown set " + s.Set)
			}
			p.min, p.max = uint16(s.Min), uint16(max(s.Min, s.Max))
			if s.Min < 1 || s.Max > 4096 || s.Opt {
				return fail("a set is 1 to 4096 bytes and not optional")
			}
			if last != setNone && !fixed {
				return fail("two sets side by side")
			}
			last, fixed = p.set, s.Max <= s.Min
			total += int(p.max)
			least += s.Min
		}
		out.parts = append(out.parts, p)
		if i == len(r.Body)-1 && p.set == setNone && !out.exact {
			return fail("a body that ends with a literal ends exactly")
		}
	}
	if limit := 512; !out.exact && least > limit || total > 4096 {
		return fail("longer than may be held back")
	}
	return out, nil
}

func ruleName(s string) bool {
	if s == "" || len(s) > 48 {
		return false
	}
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return true
}

func isNameByte(c byte) bool { return isAlnum(c) || c == '_' || c == '.' || c == '-' }

// safeName makes a rule name of a variable or option name.
func safeName(s string) string {
	if ruleName(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < 48; i++ {
		if isNameByte(s[i]) {
			b.WriteByte(s[i])
		} else {
			b.WriteByte('_')
		}
	}
	if b.Len() == 0 {
		return "value"
	}
	return b.String()
}
