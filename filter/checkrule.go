package filter

import (
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// CheckedRule is a Rule whose examples were found and whose counter-examples were
// not.
type CheckedRule struct{ rule rule }

// CheckRule compiles a row and tries its examples. It is what stands between a
// mistyped rule and a stream that is not redacted.
func CheckRule(r *Rule) (CheckedRule, error) {
	c, err := compileRule(r)
	if err != nil {
		return CheckedRule{}, err
	}
	fail := func(reason string) (CheckedRule, error) {
		return CheckedRule{}, &Error{Code: errcode.RedactionRule, Rule: r.ID, Reason: reason}
	}
	if len(r.Examples) == 0 || len(r.Counter) == 0 {
		return fail("at least one example and one counter are needed")
	}
	for _, t := range r.Examples {
		text, err := ExpandTemplate(t, 1)
		if err != nil {
			return fail(err.Error())
		}
		if !c.matches(text, r.Prefix) {
			return fail("example " + t + " is not found")
		}
	}
	for _, t := range r.Counter {
		text, err := ExpandTemplate(t, 1)
		if err != nil {
			return fail(err.Error())
		}
		if c.matches(text, r.Prefix) {
			return fail("counter " + t + " is found")
		}
	}
	return CheckedRule{c}, nil
}

// matches reports whether text begins with a prefix and is a token as a whole.
func (r *rule) matches(text string, prefixes []string) bool {
	if len(prefixes) == 0 {
		return r.whole([]byte(text))
	}
	if r.back.set != setNone {
		for _, p := range prefixes {
			if i := strings.Index(text, p); i > 0 && r.fits([]byte(text), i) && r.start([]byte(text), i) == 0 {
				v := matchRule([]byte(text), i, len(p), r, true)
				if v.outcome == found && v.end == len(text) {
					return true
				}
			}
		}
		return false
	}
	for _, p := range prefixes {
		if !strings.HasPrefix(text, p) {
			continue
		}
		v := matchRule([]byte(text), 0, len(p), r, true)
		if (v.outcome == found || v.outcome == swallow) && v.end == len(text) {
			return true
		}
	}
	return false
}

// ExpandTemplate replaces {set:n} by n random characters of a set, and {c:n} by n
// times the character c. Templates keep literal tokens out of files: what looks
// like a secret in a repository is reported by every scanner that reads it.
func ExpandTemplate(template string, seed uint64) (string, error) {
	h := fnv.New64a()
	h.Write([]byte(template))
	state := h.Sum64() ^ seed*0x9E3779B97F4A7C15
	next := func(n int) int { // splitmix64
		state += 0x9E3779B97F4A7C15
		z := state
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		return int((z ^ z>>31) % uint64(n))
	}
	var b strings.Builder
	for template != "" {
		lit, rest, ok := strings.Cut(template, "{")
		b.WriteString(lit)
		if !ok {
			break
		}
		spec, after, ok := strings.Cut(rest, "}")
		name, count, ok2 := strings.Cut(spec, ":")
		n, err := strconv.Atoi(count)
		if !ok || !ok2 || err != nil || n < 1 || n > 1<<20 {
			return "", &Error{Code: errcode.RedactionRule, Reason: "template {" + spec + "} is not {set:n}"}
		}
		template = after
		if len(name) == 1 {
			b.WriteString(strings.Repeat(name, n))
			continue
		}
		id, ok := setByName(name)
		if !ok {
			return "", &Error{Code: errcode.RedactionRule, Reason: "template names no set: " + name}
		}
		var chars []byte
		for c := range 128 {
			if sets[id].has(byte(c)) && c != '=' {
				chars = append(chars, byte(c))
			}
		}
		for i := range n {
			c := chars[next(len(chars))]
			if i == 0 || i == n-1 { // a dash or dot at the edge reads like punctuation
				for !isAlnum(c) {
					c = chars[next(len(chars))]
				}
			}
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
