package policy

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

func (r *reader) rules(v *atip.Node) []rule {
	if v.Kind != atip.KindArray {
		r.fail(v, "rules must be a list")
		return nil
	}
	out := make([]rule, 0, len(v.Items))
	for _, e := range v.Items {
		if r.err != nil {
			break
		}
		out = append(out, r.rule(e))
	}
	return out
}

func (r *reader) rule(v *atip.Node) rule {
	x := rule{layer: r.src.Layer, file: r.src.File, line: v.Line, col: v.Col, onUnknown: Confirm}
	// The decision changes how conditions are read, so it is read first.
	if d := v.Get("decision"); d != nil {
		a, ok := ActionByName(r.str(d))
		if !ok {
			r.fail(d, "decision must be allow, confirm or deny, not %q", d.Text)
		}
		x.decision = a
	}
	x.floor = x.decision
	r.object(v, "a rule", func(key string, e *atip.Node) bool {
		return r.ruleMember(&x, key, e)
	})
	if r.err != nil {
		return x
	}
	for _, key := range [...]string{"id", "decision", "when"} {
		if v.Get(key) == nil {
			r.fail(v, "rule %s has no %q", x.id, key)
		}
	}
	for _, key := range [...]string{"grants", "lifts", "expires", "notDeclared", "switch"} {
		if m := v.Get(key); m != nil && x.decision != Allow {
			r.failKey(m, "%q belongs to allow rules only", key)
		}
	}
	for _, key := range [...]string{"floor", "onUnknown", "unlessAllowed", "needsDigest"} {
		if m := v.Get(key); m != nil && x.decision == Allow {
			r.failKey(m, "%q belongs to confirm and deny rules only", key)
		}
	}
	if x.decision == Allow && v.Get("grants") == nil {
		r.fail(v, "allow rule %s has no \"grants\": list the effects it may cover, [] for none", x.id)
	}
	if x.decision != Allow && x.floor < x.decision {
		r.fail(v.Get("floor"), "floor %s is stricter than the decision", x.floor)
	}
	return x
}

func (r *reader) ruleMember(x *rule, key string, e *atip.Node) bool {
	switch key {
	case "id":
		x.id = r.str(e)
		if !validID(x.id) {
			r.fail(e, "%q is not a rule id: a lower case letter, then letters, digits, . _ -, at most 64", x.id)
		}
	case "decision":
	case "when":
		x.when = r.when(e, x.decision == Allow)
	case "unless":
		r.items(e, func(u *atip.Node) {
			// What cancels a restrictive rule must be proven, as for an allow rule.
			x.unless = append(x.unless, r.when(u, x.decision != Allow))
		})
	case "grants":
		x.grants = r.grants(e)
	case "notDeclared":
		x.notDeclared = r.grants(e)
	case "floor":
		x.floor = r.action(e)
	case "lifts":
		x.lifts = r.strings(e)
	case "onUnknown":
		x.onUnknown, _ = ActionByName(r.oneOf(e, "confirm", "deny"))
	case "reason":
		x.reason = r.text(e)
	case "suggest":
		x.suggest = r.text(e)
	case "expires":
		t, err := time.Parse(time.RFC3339, r.str(e))
		if err != nil {
			if t, err = time.Parse(time.DateOnly, e.Text); err != nil {
				r.fail(e, "expires must be a date or an RFC 3339 time, not %q", e.Text)
			}
		}
		x.expires = t
	case "match":
		x.match = r.examples(e)
	case "notMatch":
		x.notMatch = r.examples(e)
	default:
		return r.src.Layer == LayerBuiltin && r.builtinMember(x, key, e)
	}
	return true
}

func (r *reader) builtinMember(x *rule, key string, e *atip.Node) bool {
	switch key {
	case "switch":
		x.sw = r.switchNames(e)
	case "unlessAllowed":
		x.unlessAllowed = r.strings(e)
	case "needsDigest":
		x.needsDigest = r.boolean(e)
	default:
		return false
	}
	return true
}

func (r *reader) action(e *atip.Node) Action {
	a, ok := ActionByName(r.str(e))
	if !ok {
		r.fail(e, "%s must be allow, confirm or deny, not %q", label(e), e.Text)
	}
	return a
}

func (r *reader) grants(v *atip.Node) atip.Set {
	var s atip.Set
	r.items(v, func(e *atip.Node) {
		effect, ok := dangerByKey(r.str(e))
		if !ok {
			r.fail(e, "%q is not an effect that can be granted", e.Text)
			return
		}
		s = s.With(effect)
	})
	return s
}

func (r *reader) examples(v *atip.Node) []example {
	var out []example
	r.items(v, func(e *atip.Node) {
		x := example{line: e.Line, col: e.Col}
		switch e.Kind {
		case atip.KindString:
			x.command = e.Text
		case atip.KindObject:
			var argv []string
			r.keys(e, "an example", settings{
				"argv": func(m *atip.Node) { argv = r.strings(m) },
				"cwd":  func(m *atip.Node) { x.cwd = r.str(m) },
				"effects": func(m *atip.Node) {
					r.entries(m, func(name string, v *atip.Node) { x.effects = append(x.effects, r.statedEffect(name, v)) })
				},
				"rank": func(m *atip.Node) {
					rank, ok := atip.RankByName(r.str(m))
					if !ok {
						r.fail(m, "unknown rank %q", m.Text)
					}
					x.rank = &rank
				},
			})
			x.argv, x.command = argv, quote(argv)
		default:
			r.fail(e, "an example is a command or {\"argv\": [...]}")
		}
		if x.command == "" {
			r.fail(e, "an example is empty")
		}
		out = append(out, x)
	})
	return out
}

// statedEffect reads what an example says of its command: true, false or "unknown".
func (r *reader) statedEffect(key string, v *atip.Node) statedEffect {
	turned := key == "irreversible"
	effect, ok := atip.EffectByKey(key)
	if turned {
		effect, ok = atip.Reversible, true
	}
	if !ok {
		r.failKey(v, "unknown effect %q", key)
		return statedEffect{}
	}
	if v.Kind == atip.KindString {
		r.oneOf(v, "unknown")
		return statedEffect{effect, atip.Unknown}
	}
	return statedEffect{effect, atip.Of(r.boolean(v) != turned)}
}

// quote renders an argv as a shell string.
func quote(argv []string) string {
	var b strings.Builder
	for i, w := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("'" + strings.ReplaceAll(w, "'", `'\''`) + "'")
	}
	return b.String()
}

func validID(s string) bool {
	if s == "" || len(s) > 64 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// when reads a condition. proven is set where the condition loosens (an allow
// rule, an exception to a restrictive one): there, conditions that a worse call
// would satisfy more easily are refused, so that more danger never loosens.
func (r *reader) when(v *atip.Node, proven bool) when {
	var w when
	r.object(v, "a condition", func(key string, e *atip.Node) bool {
		r.notEmpty(e)
		switch key {
		case "tool":
			w.tool = r.tools(e)
		case "command":
			r.items(e, func(c *atip.Node) { w.command = append(w.command, strings.Fields(r.str(c))) })
		case "option":
			r.entries(e, func(name string, o *atip.Node) { w.option = append(w.option, r.option(name, o)) })
		case "effects":
			r.entries(e, func(k string, o *atip.Node) { w.effects = append(w.effects, r.effectCond(k, o, proven)) })
		case "anyEffect":
			w.anyEffect = r.grants(e)
			if proven {
				r.failKey(e, "anyEffect names dangers: it cannot loosen")
			}
		case "path":
			w.path = r.pathCond(e)
		case "host":
			w.host = r.hosts(e)
		default:
			return r.whenFacts(&w, key, e, proven)
		}
		return true
	})
	return w
}

// notEmpty refuses an empty list: nobody can tell whether it means all or nothing.
func (r *reader) notEmpty(v *atip.Node) {
	if v.Kind == atip.KindArray && len(v.Items) == 0 {
		r.fail(v, "%s is an empty list", label(v))
	}
}

// whenFacts reads the conditions that are about the executable and the run.
func (r *reader) whenFacts(w *when, key string, e *atip.Node, proven bool) bool {
	flag := func() *bool { b := r.boolean(e); return &b }
	switch key {
	case "trust":
		r.object(e, "trust", func(k string, o *atip.Node) bool {
			r.notEmpty(o)
			switch k {
			case "level":
				w.level = r.strings(o)
				for i, l := range w.level {
					if levelRank(l) < 0 {
						r.fail(o, "unknown trust level %q", w.level[i])
					}
				}
			case "reason":
				w.reason = r.strings(o)
			default:
				return false
			}
			return true
		})
	case "rank":
		r.object(e, "rank", func(k string, o *atip.Node) bool {
			if k != "below" && k != "atLeast" {
				return false
			}
			rank, ok := atip.RankByName(r.str(o))
			if !ok {
				r.fail(o, "unknown rank %q", o.Text)
			}
			if k == "below" {
				w.rankBelow = &rank
				if proven {
					r.failKey(o, "a low rank cannot loosen: use atLeast")
				}
			} else {
				w.rankAtLeast = &rank
				if !proven {
					r.failKey(o, "a rule that restricts only high ranks is loosened by a lower one: use below")
				}
			}
			return true
		})
	case "metadata":
		w.metadata = r.strings(e)
		for _, m := range w.metadata {
			if !slices.Contains(channels[:], m) {
				r.fail(e, "unknown metadata source %q", m)
			}
		}
	case "confidence":
		r.items(e, func(c *atip.Node) {
			switch r.oneOf(c, "exact", "bounded", "opaque") {
			case "exact":
				w.confidence = append(w.confidence, Exact)
			case "bounded":
				w.confidence = append(w.confidence, Bounded)
			default:
				w.confidence = append(w.confidence, Opaque)
			}
		})
	case "edge":
		r.items(e, func(c *atip.Node) {
			for k := EdgeUnknown; k <= ForkBomb; k++ {
				if k.String() == c.Text {
					w.edge = append(w.edge, k)
					return
				}
			}
			r.fail(c, "unknown edge %q", r.str(c))
		})
	case "unknownOptions":
		w.unknownOptions = flag()
		if *w.unknownOptions == proven {
			r.fail(e, "unknownOptions must be %v here", !proven)
		}
	case "cwd":
		w.cwd = r.strings(e)
	case "ci":
		w.ci = flag()
	case "delegated":
		w.delegated = flag()
	case "agent":
		w.agent = r.strings(e)
		if proven {
			r.failKey(e, "agent is a label that the caller sets: it cannot loosen")
		}
	case "code":
		r.items(e, func(c *atip.Node) {
			for k := CodeNone; k <= CodeOpaque; k++ {
				if k.String() == c.Text {
					w.code = append(w.code, k)
					return
				}
			}
			r.fail(c, "unknown kind of code %q", r.str(c))
		})
	case "known":
		w.known = flag()
		if *w.known != proven {
			r.fail(e, "known must be %v here", proven)
		}
	case "confined":
		w.confined = flag()
		if *w.confined != proven {
			r.fail(e, "confined must be %v here", proven)
		}
	case "trackedClean":
		w.trackedClean = flag()
	case "declared":
		w.declared = flag()
	case "undo":
		w.undo = r.undoCond(e, proven)
	default:
		return false
	}
	return true
}

// channels are the metadata sources, as Provenance.Channel names them.
var channels = [...]string{"override", "native", "shim", "registry", "builtin", "user", "probe", "inferred", "none"}

func (r *reader) tools(v *atip.Node) []string {
	out := r.strings(v)
	for _, t := range out {
		switch {
		case strings.HasPrefix(t, "sha256:"):
			if len(t) != 7+64 || strings.Trim(t[7:], "0123456789abcdef") != "" {
				r.fail(v, "%q is not a digest: sha256: and 64 lower case hexadecimal digits", t)
			}
		case strings.HasPrefix(t, "/"):
			if path.Clean(t) != t {
				r.fail(v, "%q is not a clean path", t)
			}
		case strings.ContainsAny(t, "/ \t"):
			r.fail(v, "%q is not a tool: a base name, an absolute path or a digest", t)
		}
	}
	return out
}

func (r *reader) option(name string, v *atip.Node) optionCond {
	o := optionCond{name: strings.TrimLeft(name, "-")}
	if o.name == "" {
		r.failKey(v, "%q is not an option", name)
	}
	switch v.Kind {
	case atip.KindTrue:
		o.any = true
	case atip.KindString:
		o.value = v.Text
	default:
		r.fail(v, "option %s must be true or a pattern for its value", name)
	}
	return o
}

func (r *reader) effectCond(key string, v *atip.Node, proven bool) effectCond {
	if key == "irreversible" {
		return effectCond{atip.Reversible, !r.boolean(v)}
	}
	e, ok := atip.EffectByKey(key)
	if !ok {
		r.failKey(v, "unknown effect %q", key)
		return effectCond{}
	}
	c := effectCond{e, r.boolean(v)}
	if !proven && !c.dangerous() {
		r.fail(v, "%s: %v is harmless: a confirm or deny rule names the dangerous value", key, c.value)
	}
	return c
}

// dangerous reports whether the condition names the dangerous value.
func (c effectCond) dangerous() bool { return atip.Of(c.value) == c.effect.Dangerous() }

func (r *reader) pathCond(v *atip.Node) *pathCond {
	p := &pathCond{}
	r.object(v, "path", func(key string, e *atip.Node) bool {
		r.notEmpty(e)
		switch key {
		case "class":
			r.items(e, func(c *atip.Node) {
				if c.Kind == atip.KindString && c.Text == "workspace*" {
					p.class |= workspaceClasses
					return
				}
				class, ok := atip.ClassByName(r.str(c))
				if !ok {
					r.fail(c, "unknown path class %q", c.Text)
				}
				p.class |= 1 << class
			})
		case "glob":
			p.glob = r.strings(e)
			for _, g := range p.glob {
				if !strings.HasPrefix(g, "/") && !strings.HasPrefix(g, "**/") {
					r.fail(e, "%q: a path pattern begins with / or **/", g)
				}
			}
		case "access":
			r.items(e, func(a *atip.Node) {
				bit := accessBit(r.str(a))
				if bit == 0 {
					r.fail(a, "unknown access %q", a.Text)
				}
				p.access |= bit
			})
		case "recursive":
			p.recursive = r.boolean(e)
		case "in":
			p.in = r.oneOf(e, "workspace")
		case "notIn":
			p.notIn = r.oneOf(e, "workspace")
		case "named":
			p.named = r.boolean(e)
		default:
			return false
		}
		return true
	})
	return p
}

func accessBit(name string) atip.Access {
	for b := atip.AccessRead; b <= atip.AccessSecret; b <<= 1 {
		if b.String() == name {
			return b
		}
	}
	return 0
}

func (r *reader) hosts(v *atip.Node) []hostPattern {
	var out []hostPattern
	r.items(v, func(e *atip.Node) {
		h, ok := parseHostPattern(r.str(e))
		if !ok {
			r.fail(e, "%q is not a host: a name, *.name, an address, a CIDR, or one of public named service loopback private metadata", e.Text)
		}
		out = append(out, h)
	})
	return out
}

// levelRank orders trust levels; -1 for a word that is none.
func levelRank(level string) int {
	return slices.Index([]string{"COMPROMISED", "PROVENANCE_FAIL", "UNSIGNED", "UNVERIFIED", "VERIFIED"}, level)
}
