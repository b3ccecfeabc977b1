package policy

import (
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
			r.object(e, "an example", func(key string, m *atip.Node) bool {
				switch key {
				case "argv":
					argv = r.strings(m)
				case "cwd":
					x.cwd = r.str(m)
				case "effects":
					r.entries(m, func(name string, v *atip.Node) { x.effects = append(x.effects, r.statedEffect(name, v)) })
				case "rank":
					rank, ok := rankByName(r.str(m))
					if !ok {
						r.fail(m, "unknown rank %q", m.Text)
					}
					x.rank = &rank
				default:
					return false
				}
				return true
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
