package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Limits of one document.
const (
	maxDocument = 256 << 10
	maxRules    = 1000
)

// Parse reads a document strictly: JSON with comments, and an unknown or repeated
// key is an error. It does not run the examples: see CheckExamples.
func Parse(src Source) (*Document, error) {
	r := &reader{src: src}
	root, err := atip.ParseTree(src.Raw, atip.ParseOptions{
		Comments: true, MaxBytes: maxDocument,
		// Their keys are file names, variables and the like, where case matters.
		DataKeys: []string{"pins", "set", "option", "rate", "profiles"},
	})
	if err != nil {
		return nil, r.refuse(err)
	}
	d := r.document(root)
	if r.err != nil {
		return nil, r.err
	}
	sum := sha256.Sum256(src.Raw)
	d.digest = hex.EncodeToString(sum[:])
	d.warnings = append(d.warnings, r.warnings...)
	return d, nil
}

func (r *reader) document(root *atip.Node) *Document {
	d := &Document{source: r.src}
	d.source.Raw = nil // the tree holds all that is needed
	own := false       // a key that is not an ATIP form
	r.object(root, "the policy", func(key string, v *atip.Node) bool {
		if r.atipForm(d, key, v) {
			return true
		}
		own = own || key != "version"
		return r.member(d, key, v)
	})
	if r.err != nil {
		return d
	}
	if own && d.version == 0 {
		r.fail(root, "version is missing: write \"version\": 1")
	}
	count := len(d.rules)
	ids := make(map[string]bool, count)
	for i := range d.rules {
		r.unique(ids, &d.rules[i])
	}
	for _, p := range d.profiles {
		count += len(p.rules)
		for i := range p.rules {
			r.unique(ids, &p.rules[i])
		}
	}
	if count > maxRules {
		r.fail(root, "%d rules are more than %d", count, maxRules)
	}
	return d
}

func (r *reader) unique(ids map[string]bool, x *rule) {
	if x.form {
		return
	}
	if ids[x.id] && r.err == nil {
		r.err = &ParseError{Code: errcode.PolicySyntax, File: r.src.File, Line: x.line, Col: x.col, Msg: "rule id " + x.id + " is used twice"}
	}
	ids[x.id] = true
}

// member reads one member of our own language.
func (r *reader) member(d *Document, key string, v *atip.Node) bool {
	switch key {
	case "version":
		d.version = int(r.integer(v, 1, 1))
	case "profile":
		d.profile, d.profileAt, d.hasProfile = r.str(v), at{v.Line, v.Col}, true
	case "profiles":
		r.entries(v, func(name string, p *atip.Node) { d.profiles = append(d.profiles, r.profile(name, p)) })
	case "switches":
		d.switches, d.switchAt = r.switches(v), make(map[string]at, len(v.Items))
		for _, m := range v.Items {
			d.switchAt[m.Key] = at{m.KeyLine, m.KeyCol}
		}
	case "rules":
		if rules := r.rules(v); d.rules == nil {
			d.rules = rules // the usual case, without copying
		} else {
			d.rules = append(d.rules, rules...)
		}
	case "default":
		d.dflt = r.defaultAction(v)
	case "ceiling":
		d.ceiling = r.ceiling(d, v)
	case "delegable":
		d.delegable = r.delegable(v)
	case "network":
		d.network = r.network(v)
	case "paths":
		r.keys(v, "paths", settings{
			"secret":    func(e *atip.Node) { d.paths.Secret = r.paths(e) },
			"protected": func(e *atip.Node) { d.paths.Protected = r.paths(e) },
		})
	case "budgets":
		d.budgets = r.budgets(v)
	case "analysis":
		d.analysis = r.analysis(v)
	case "sandbox":
		d.sandbox = r.sandbox(v)
	case "approval":
		d.approval = r.approval(v)
	case "belief":
		d.belief = r.belief(v)
	case "trust":
		d.trust = r.ownTrust(v)
	case "output":
		d.output = r.output(v)
	case "env":
		d.env = r.env(v)
	case "limits":
		d.limits = r.limits(v)
	case "undo":
		d.undo = r.undo(v)
	case "process":
		d.process = r.process(v)
	default:
		return false
	}
	return true
}

func (r *reader) defaultAction(v *atip.Node) *Action {
	a, ok := ActionByName(r.str(v))
	if !ok || a == Allow {
		r.fail(v, "default must be confirm or deny, not %q", v.Text)
	}
	return &a
}

func (r *reader) switches(v *atip.Node) map[string]bool {
	out := make(map[string]bool, len(v.Items))
	r.entries(v, func(name string, e *atip.Node) {
		if !isSwitch(name) {
			r.failKey(e, "unknown switch %q", name)
		}
		out[name] = r.boolean(e)
	})
	return out
}

func (r *reader) switchNames(v *atip.Node) []string {
	out := r.strings(v)
	for _, name := range out {
		if !isSwitch(name) {
			r.fail(v, "unknown switch %q", name)
		}
	}
	return out
}

func (r *reader) profile(name string, v *atip.Node) profile {
	p := profile{name: name}
	if !validID(name) || shippedProfile(name) {
		r.failKey(v, "%q cannot name a profile", name)
	}
	r.keys(v, "a profile", settings{
		"base":     func(e *atip.Node) { p.base = r.str(e) },
		"switches": func(e *atip.Node) { p.switches = r.switches(e) },
		"rules":    func(e *atip.Node) { p.rules = r.rules(e) },
		"default":  func(e *atip.Node) { p.dflt = r.defaultAction(e) },
	})
	return p
}

func (r *reader) ceiling(d *Document, v *atip.Node) *ceiling {
	c := &ceiling{}
	r.keys(v, "ceiling", settings{
		"allow": func(e *atip.Node) {
			s := r.grants(e)
			c.allow = &s
		},
		"switches": func(e *atip.Node) { c.switches, c.hasSwitches = r.switchNames(e), true },
		"profiles": func(e *atip.Node) { c.profiles, c.hasProfiles = r.strings(e), true },
		"lifts":    func(e *atip.Node) { c.lifts, c.hasLifts = r.strings(e), true },
		"userConfig": func(e *atip.Node) {
			d.userConfigAccount, d.userConfigAt = r.oneOf(e, "any", "account") == "account", at{e.Line, e.Col}
		},
	})
	return c
}

func (r *reader) belief(v *atip.Node) []beliefCond {
	var out []beliefCond
	r.entries(v, func(key string, e *atip.Node) {
		effect, ok := atip.EffectByKey(key)
		if key == "irreversible" {
			effect, ok = atip.Reversible, true
		}
		if !ok {
			r.failKey(e, "unknown effect %q", key)
			return
		}
		rank, ok := atip.RankByName(r.str(e))
		if !ok {
			r.fail(e, "unknown rank %q", e.Text)
		}
		out = append(out, beliefCond{effect, rank})
	})
	return out
}

func (r *reader) delegable(v *atip.Node) *Delegable {
	d := &Delegable{MaxDepth: 3}
	r.keys(v, "delegable", settings{
		"tools": func(e *atip.Node) { d.Tools = r.strings(e) },
		"effects": func(e *atip.Node) {
			r.grants(e)
			d.Effects = r.strings(e)
		},
		"hosts": func(e *atip.Node) {
			r.hosts(e)
			d.Hosts = r.strings(e)
		},
		"paths": func(e *atip.Node) {
			d.Paths = r.strings(e)
			r.items(e, func(path *atip.Node) {
				if !strings.HasPrefix(path.Text, "/") {
					r.fail(path, "a path to delegate must be absolute, not %q", path.Text)
				}
			})
		},
		"maxDepth": func(e *atip.Node) { d.MaxDepth = int(r.integer(e, 0, 8)) },
		"maxTtl":   func(e *atip.Node) { d.MaxTTL = r.duration(e) },
	})
	return d
}
