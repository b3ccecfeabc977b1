package atip

import (
	"regexp"
	"strings"
)

// regexpCache holds the expressions one call has compiled, by their place in the document.
type regexpCache map[val]*regexp.Regexp

// matches applies a match to one string. A regular expression that does not compile
// may match anything.
func (c *resolver) matches(m val, s string) tri {
	if !c.spend(len(s)/16 + 1) {
		return triMaybe
	}
	ci := m.get("ci").isTrue()
	fold := func(x string) string {
		if ci {
			return foldKey(x)
		}
		return x
	}
	folded := fold(s)
	out := triFalse
	m.members(func(key string, p val) bool {
		switch key {
		case "equals":
			out = triOf(folded == fold(p.str()))
		case "in":
			p.items(func(_ int, item val) {
				if folded == fold(item.str()) {
					out = triTrue
				}
			})
		case "prefix":
			out = triOf(strings.HasPrefix(folded, fold(p.str())))
		case "suffix":
			out = triOf(strings.HasSuffix(folded, fold(p.str())))
		case "contains":
			out = triOf(strings.Contains(folded, fold(p.str())))
		case "glob":
			out = triOf(globMatch(fold(p.str()), folded))
		case "re":
			if !ci && !strings.HasPrefix(s, anchoredPrefix(p.str())) {
				out = triFalse
				return true
			}
			re := c.regexp(p, ci)
			if re == nil {
				out = triMaybe
				return true
			}
			out = triOf(re.MatchString(s))
		}
		return true
	})
	return out
}

// anchoredPrefix is a text that every match of the expression begins with, "" if none is
// evident or if the expression may not compile. Compiling costs tens of microseconds,
// and most words differ at once.
func anchoredPrefix(expr string) string {
	rest, ok := strings.CutPrefix(expr, "^")
	if !ok {
		return ""
	}
	plain := func(c byte) bool {
		return c < 0x80 && (isWordByte(c) || strings.IndexByte("/:@=-,%#", c) >= 0)
	}
	n := 0
	for n < len(rest) && plain(rest[n]) {
		n++
	}
	prefix := rest[:n]
	for i := n; i < len(rest); i++ {
		switch c := rest[i]; {
		case plain(c) || c == '.':
		case c == '$' && i == len(rest)-1:
		case (c == '*' || c == '+' || c == '?') && i > 0 && (plain(rest[i-1]) || rest[i-1] == '.'):
			if i == n {
				prefix = prefix[:n-1] // the last letter is repeated, or not there at all
			}
		default:
			return ""
		}
	}
	return prefix
}

// regexp compiles each expression once per call; nil if it does not compile.
func (c *resolver) regexp(p val, ci bool) *regexp.Regexp {
	if re, ok := c.regexps[p]; ok {
		return re
	}
	expr := p.str()
	if ci {
		expr = "(?i:" + expr + ")"
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		re = nil
	}
	if c.regexps == nil {
		c.regexps = make(regexpCache)
	}
	c.regexps[p] = re
	return re
}

// eval answers a condition for one reading of the words.
func (r *reading) eval(v val) tri {
	out := triMaybe
	v.members(func(key string, m val) bool {
		switch key {
		case "anyOption":
			out = triFalse
			m.items(func(_ int, f val) { out = max(out, r.optionPresent(f.str())) })
		case "allOptions":
			out = triTrue
			m.items(func(_ int, f val) { out = min(out, r.optionPresent(f.str())) })
		case "optionValue":
			out = r.evalOptionValue(m)
		case "anyArg":
			out = r.evalAnyArg(m)
		case "argCount":
			n := len(r.words)
			lo, hasMin := m.get("min").integer()
			hi, hasMax := m.get("max").integer()
			out = triOf((!hasMin || n >= lo) && (!hasMax || n <= hi))
		case "keyValue":
			out = r.evalKeyValue(m)
		case "env":
			out = r.evalEnv(m)
		case "all":
			out = triTrue
			m.items(func(_ int, c val) { out = min(out, r.eval(c)) })
		case "any":
			out = triFalse
			m.items(func(_ int, c val) { out = max(out, r.eval(c)) })
		case "not":
			out = triTrue - r.eval(m)
		}
		return true
	})
	return out
}

// names reports whether a use is of the option a condition names: one spelling
// stands for all of an option.
func (u *use) names(flag string) bool {
	if u.flag == flag {
		return true
	}
	return u.opt != nil && u.opt.has(flag)
}

func (r *reading) optionPresent(flag string) tri {
	if !r.spend(len(r.uses) + 1) {
		return triMaybe
	}
	out, negated := triFalse, false
	for i := range r.uses {
		u := &r.uses[i]
		if !u.names(flag) {
			continue
		}
		switch {
		case u.negated:
			negated = true
		case u.maybe || u.opt != nil && u.opt.boolean() && u.hasValue && !affirmative(u.value):
			// --force=false: some tools read any value as true.
			out = max(out, triMaybe)
		default:
			out = triTrue
		}
	}
	if negated && out == triTrue {
		// --force --no-force: which one wins is the tool's secret.
		return triMaybe
	}
	return out
}

func affirmative(value string) bool {
	switch value {
	case "true", "1", "yes":
		return true
	}
	return false
}

func (r *reading) evalOptionValue(m val) tri {
	flags, match := m.get("flags"), m.get("match")
	if !r.spend((len(r.uses) + 1) * (flags.len() + 1)) {
		return triMaybe
	}
	out := triFalse
	seen, other := false, false
	for i := range r.uses {
		u := &r.uses[i]
		named := false
		flags.items(func(_ int, f val) { named = named || u.names(f.str()) })
		if !named || u.negated {
			continue
		}
		got := triFalse
		values := u.values
		if values == nil && u.hasValue {
			values = []string{u.value}
		}
		for _, s := range values {
			got = max(got, r.matches(match, s))
		}
		if got == triTrue && (u.maybe || u.afterEquals) {
			got = triMaybe
		}
		if got != triFalse {
			seen = true
		} else {
			other = true
		}
		out = max(out, got)
	}
	if seen && other && out == triTrue {
		// --dry-run=client --dry-run=none: which one counts depends on the tool.
		return triMaybe
	}
	return out
}

func (r *reading) evalAnyArg(m val) tri {
	from, _ := m.get("from").integer()
	index, hasIndex := m.get("index").integer()
	name := m.get("name").str()
	match := m.get("match")
	if hasIndex && index < 0 {
		index += len(r.words)
	}
	if !r.spend(len(r.words) + 1) {
		return triMaybe
	}
	out := triFalse
	for i := range r.words {
		if i < from || hasIndex && i != index || name != "" && r.words[i].name != name {
			continue
		}
		out = max(out, r.matches(match, r.words[i].text))
		if out == triTrue {
			break
		}
	}
	return out
}

func (r *reading) evalKeyValue(m val) tri {
	key, match := m.get("key").str(), m.get("match")
	if !r.spend(len(r.pairs) + 1) {
		return triMaybe
	}
	out := triFalse
	for _, kv := range r.pairs {
		name, value, _ := strings.Cut(kv.text, "=")
		if name != key {
			continue
		}
		if !match.ok() {
			return triTrue
		}
		out = max(out, r.matches(match, value))
	}
	return out
}

func (r *reading) evalEnv(m val) tri {
	name, match := m.get("name").str(), m.get("match")
	if strings.HasSuffix(name, "*") {
		set, known := r.envPrefix(name[:len(name)-1])
		if !known {
			return triMaybe
		}
		return triOf(set)
	}
	value, ok := r.getenv(name)
	if !ok {
		return triFalse
	}
	if !match.ok() {
		return triTrue
	}
	return r.matches(match, value)
}
