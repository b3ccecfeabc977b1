package policy

import (
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

// atipForm reads the policy forms that ATIP 0.1 and 0.6 define, as they stand
// there, and turns them into ordinary rules.
func (r *reader) atipForm(d *Document, key string, v *atip.Node) bool {
	switch key {
	case "autoApprove":
		d.rules = append(d.rules, r.autoApprove(v))
	case "requireConfirmation":
		d.rules = append(d.rules, r.requireConfirmation(v)...)
	case "delegation":
		r.delegation(d, v)
	case "policy":
		r.orgPolicy(d, v)
	case "registry":
		// Which registry the policy speaks of. Where it lies in the folder of one, that is
		// the one.
		if u := v.Get("url"); u != nil {
			d.registry = r.text(u)
		}
	default:
		return false
	}
	return true
}

// autoApprove is one allow rule whose keys must all hold. A key that is unknown
// never holds. What it may grant follows from what it says: see neverImplied.
func (r *reader) autoApprove(v *atip.Node) rule {
	x := r.form("auto_approve", Allow, v)
	x.grants = dangerKeys &^ neverImplied
	r.entries(v, func(key string, e *atip.Node) {
		effect, ok := atip.EffectByKey(key)
		if !ok {
			r.failKey(e, "unknown effect %q in autoApprove", key)
			return
		}
		c := effectCond{effect, r.boolean(e)}
		x.when.effects = append(x.when.effects, c)
		switch {
		case !dangerKeys.Has(effect):
		case c.dangerous():
			x.grants = x.grants.With(effect)
		default:
			x.grants = x.grants.Without(effect)
		}
	})
	if len(x.when.effects) == 0 {
		r.fail(v, "autoApprove is empty: it would approve everything")
	}
	x.reason = "autoApprove"
	return x
}

// neverImplied are the effects that autoApprove grants only if it lists them.
const neverImplied = atip.Set(1<<atip.Destructive | 1<<atip.Billable | 1<<atip.SecretRead |
	1<<atip.Privileged | 1<<atip.Persistence | 1<<atip.ExecOpaque)

// requireConfirmation is a confirm rule per key; unknown satisfies it.
func (r *reader) requireConfirmation(v *atip.Node) []rule {
	var out []rule
	r.entries(v, func(key string, e *atip.Node) {
		effect, ok := atip.EffectByKey(key)
		if !ok {
			r.failKey(e, "unknown effect %q in requireConfirmation", key)
			return
		}
		x := r.form("require_confirmation."+strings.ToLower(effect.String()), Confirm, e)
		x.when.effects = []effectCond{{effect, r.boolean(e)}}
		x.reason = "requireConfirmation " + key
		out = append(out, x)
	})
	return out
}

func (r *reader) form(id string, decision Action, v *atip.Node) rule {
	x := rule{id: id, decision: decision, floor: decision, onUnknown: Confirm,
		form:  true,
		layer: r.src.Layer, file: r.src.File, line: v.Line, col: v.Col}
	if v.KeyLine > 0 {
		x.line, x.col = v.KeyLine, v.KeyCol
	}
	return x
}

func (r *reader) delegation(d *Document, v *atip.Node) {
	r.keys(v, "delegation", settings{
		"allowedTools": func(e *atip.Node) {
			x := r.form("delegation.allowed_tools", Deny, e)
			x.when.toolNotIn = r.tools(e)
			x.reason = "not among the tools that were delegated"
			d.rules = append(d.rules, x)
		},
		"deniedCommands": func(e *atip.Node) {
			r.items(e, func(c *atip.Node) {
				words := strings.Fields(r.str(c))
				if len(words) == 0 {
					r.fail(c, "deniedCommands contains an empty command")
					return
				}
				x := deniedCommand(words)
				f := r.form("delegation.denied_commands", Deny, c)
				f.when, f.reason, f.onUnknown, f.line, f.col = x.when, x.reason, x.onUnknown, c.Line, c.Col
				d.rules = append(d.rules, f)
			})
		},
		"effectRestrictions": func(e *atip.Node) {
			r.entries(e, func(k string, o *atip.Node) {
				effect, ok := atip.EffectByKey(k)
				if !ok {
					r.failKey(o, "unknown effect %q in effectRestrictions", k)
					return
				}
				x, withhold, restricts := restrictEffect(effect, r.boolean(o))
				if !restricts {
					return
				}
				f := r.form(x.id, Deny, o)
				f.when, f.reason = x.when, x.reason
				d.rules = append(d.rules, f)
				d.withhold |= withhold
			})
		},
		"credentials": func(e *atip.Node) { d.credentials, d.credentialsAt = r.oneOf(e, "withhold", "pass"), at{e.Line, e.Col} },
	})
}

// deniedCommand denies a command by a prefix of its words, on any reading.
func deniedCommand(words []string) rule {
	x := rule{id: "delegation.denied_commands", decision: Deny, floor: Deny, onUnknown: Deny}
	x.when.tool = words[:1]
	if len(words) > 1 {
		x.when.command = [][]string{words[1:]}
	}
	x.reason = "delegation denies " + strings.Join(words, " ")
	return x
}

// restrictEffect denies the dangerous value of an effect. Where the kernel can
// withhold the effect, unknown is left to the kernel; else unknown asks. A value
// of "may" (true for most effects) restricts nothing.
func restrictEffect(e atip.Effect, permitted bool) (x rule, withhold atip.Set, restricts bool) {
	c := effectCond{e, !permitted}
	if !c.dangerous() {
		return x, 0, false
	}
	x = rule{id: "delegation.effect." + strings.ToLower(e.String()), decision: Deny, floor: Deny, onUnknown: Confirm}
	x.when.effects = []effectCond{c}
	x.reason = "delegation permits no " + DangerName(e) + " effect"
	if e == atip.Network || e == atip.Write || e == atip.Delete {
		withhold = atip.SetOf(e)
	}
	return x, withhold, true
}

// orgPolicy reads an organisation's policy object. Only its execution part is a
// matter of this package, but the rest is checked for unknown keys all the same.
//
// A registry of shims states what it asks of signatures without a trust object around
// it (ATIP 0.6 section 3.2.2).
func (r *reader) orgPolicy(d *Document, v *atip.Node) {
	var shims TrustPolicy
	defer func() {
		d.trust.RequireMetadata = d.trust.RequireMetadata || shims.RequireMetadata
		d.trust.RequireTool = d.trust.RequireTool || shims.RequireTool
		d.trust.Signers = append(d.trust.Signers, shims.Signers...)
		d.trust.SignersSet = d.trust.SignersSet || shims.SignersSet
		d.trust.MinimumSLSALevel = max(d.trust.MinimumSLSALevel, shims.MinimumSLSALevel)
	}()
	r.object(v, "policy", func(key string, e *atip.Node) bool {
		switch key {
		case "version", "organization":
			if e.Kind != atip.KindNumber {
				r.text(e)
			}
		case "approval":
			r.keys(e, "policy.approval", settings{
				"mode": func(o *atip.Node) { d.allowlist = r.oneOf(o, "allowlist", "open") == "allowlist" },
				"note": func(o *atip.Node) { r.str(o) },
			})
		case "trust":
			d.trust = r.trust(e)
		case "execution":
			r.keys(e, "policy.execution", settings{
				"requireConfirmation": func(o *atip.Node) { d.rules = append(d.rules, r.requireConfirmation(o)...) },
				"auditAllCalls":       func(o *atip.Node) { r.boolean(o) }, // every call is recorded anyway
			})
		default:
			return r.signatures(&shims, v, e)
		}
		return true
	})
}
