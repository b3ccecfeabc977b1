package atip

import (
	"regexp"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/wildcard"
)

// regexpCache holds the expressions one call has compiled: a document repeats its own.
type regexpCache map[string]*regexp.Regexp

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
			out = triOf(wildcard.Match(fold(p.str()), folded))
		case "re":
			if a, ok := alternationOf(p.str()); ok {
				a.ci = a.ci || ci
				if match, known := a.matches(s); known {
					out = triOf(match)
					return true
				}
			} else if !ci && (!strings.HasPrefix(s, anchoredPrefix(p.str())) || !strings.Contains(s, requiredText(p.str()))) {
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
	expr := p.str()
	if ci {
		expr = "(?i:" + expr + ")"
	}
	if re, ok := c.regexps[expr]; ok {
		return re
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		re = nil
	}
	if c.regexps == nil {
		c.regexps = make(regexpCache)
	}
	c.regexps[expr] = re
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

// named is an option that a condition names: one spelling stands for all of an option.
type named struct {
	flag    string
	bit     spellings
	options [4]*option // those of the scope that have the flag; one may have hundreds
	listed  bool       // there is none beside them
}

func (r *reading) named(flag string) named {
	r.spelled()
	m := named{flag: flag, bit: spelling(flag), listed: true}
	n := r.n
	for i := 0; n != nil; n = n.parent {
		if i == len(m.options) || n.clashes {
			m.listed = false
			break
		}
		if o := n.own(flag); o != nil {
			m.options[i] = o
			i++
		}
	}
	return m
}

// namedBy is names for a flag that is asked for once.
func (u *use) namedBy(flag string) bool {
	return u.flag == flag || u.opt != nil && u.opt.has(flag)
}

// names reports whether a use is of that option.
func (u *use) names(m *named) bool {
	if u.spell&m.bit == 0 {
		return false
	}
	if u.flag == m.flag {
		return true
	}
	if u.opt == nil {
		return false
	}
	if !m.listed || u.opt.pending {
		return u.opt.has(m.flag)
	}
	for _, o := range m.options {
		if o == nil {
			return false
		}
		if o == u.opt {
			return true
		}
	}
	return false
}

func (r *reading) optionPresent(flag string) tri {
	if r.spelled()&spelling(flag) == 0 {
		return triFalse
	}
	m := r.named(flag)
	if !r.spend(len(r.uses) + 1) {
		return triMaybe
	}
	out, against := triFalse, false
	for i := range r.uses {
		u := &r.uses[i]
		if !u.names(&m) {
			continue
		}
		switch {
		case u.negated:
			against = true
		case u.denies(flag):
			// --force=false: some tools read any value as true.
			against = true
			out = max(out, triMaybe)
		case u.maybe:
			out = max(out, triMaybe)
		default:
			out = triTrue
		}
	}
	if out == triTrue && (against || r.opposed(&m)) {
		// --force --no-force: which one wins is the tool's secret.
		return triMaybe
	}
	return out
}

// denies reports a use that takes back what its option says: a boolean with a value other
// than true, any option with a value such as none, or a spelling that is the opposite of the
// one that is asked for.
func (u *use) denies(flag string) bool {
	return u.hasValue && (Denial(u.value) || u.opt != nil && u.opt.boolean() && !affirmative(u.value)) || u.flag != flag && opposite(u.flag, flag)
}

// Denial reports the values by which an option is switched off.
func Denial(value string) bool {
	switch strings.ToLower(value) {
	case "false", "0", "no", "off", "none", "never", "disable", "disabled":
		return true
	}
	return false
}

// opposite reports --x and --no-x.
func opposite(a, b string) bool {
	return opposes(a, b) || opposes(b, a)
}

func opposes(a, b string) bool {
	rest, ok := strings.CutPrefix(a, "--no-")
	name, long := strings.CutPrefix(b, "--")
	return ok && long && rest == name
}

// opposed reports that the words also have the opposite of an option, which may be declared as
// an option of its own or not at all.
func (r *reading) opposed(m *named) bool {
	for i := range r.uses {
		f := r.uses[i].flag
		if opposite(f, m.flag) {
			return true
		}
		for _, o := range m.options {
			if o != nil && !o.has(f) && slices.ContainsFunc(o.flags, func(g string) bool { return opposite(f, g) }) {
				return true
			}
		}
	}
	return false
}

// spellings is a set of flags that may hold more than was put in: most conditions ask
// for a flag that is not there, and need not compare it with every word for that.
type spellings uint64

func spelling(flag string) spellings {
	h := len(flag) * 31
	if len(flag) > 1 {
		h += int(flag[len(flag)-1])*7 + int(flag[len(flag)/2])*13
	}
	return 1 << (h & 63)
}

// spelled is the set of all spellings of the options of a reading that has come to its
// end.
func (r *reading) spelled() spellings {
	if r.spell == 0 {
		for i := range r.uses {
			u := &r.uses[i]
			u.spell = spelling(u.flag)
			if u.opt != nil {
				for _, f := range u.opt.flags {
					u.spell |= spelling(f)
				}
			}
			r.spell |= u.spell
		}
	}
	return r.spell
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
	var bits spellings
	flags.items(func(_ int, f val) { bits |= spelling(f.str()) })
	if r.spelled()&bits == 0 {
		return triFalse
	}
	if !r.spend((len(r.uses) + 1) * (flags.len() + 1)) {
		return triMaybe
	}
	list := make([]named, 0, 4)
	flags.items(func(_ int, f val) { list = append(list, r.named(f.str())) })
	out := triFalse
	seen, other := false, false
	for i := range r.uses {
		u := &r.uses[i]
		named := false
		for i := range list {
			named = named || u.names(&list[i])
		}
		if !named {
			continue
		}
		if u.negated {
			other = true
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
	if out == triTrue && (seen && other || slices.ContainsFunc(list, func(m named) bool { return r.opposed(&m) })) {
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
	out, other := triFalse, false
	for _, kv := range r.pairs {
		name, value, _ := strings.Cut(kv.text, "=")
		if name != key {
			continue
		}
		if !match.ok() {
			return triTrue
		}
		got := r.matches(match, value)
		out, other = max(out, got), other || got == triFalse
	}
	if out == triTrue && other {
		return triMaybe
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
	for _, kv := range r.offline {
		if kv[0] == name {
			value, ok = kv[1], true
		}
	}
	if !ok {
		return triFalse
	}
	if !match.ok() {
		return triTrue
	}
	return r.matches(match, value)
}
