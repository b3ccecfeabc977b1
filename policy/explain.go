package policy

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
)

// subject names a step for a person: its tool and command.
func (f *facts) subject() string {
	c := &f.step.Call
	name := c.Tool
	if name == "" && len(c.Argv) > 0 {
		name = baseName(c.Argv[0])
	}
	if len(c.Path) > 0 {
		name += " " + strings.Join(c.Path, " ")
	}
	name = cmp.Or(name, "the command")
	return name
}

func (j *judged) reason(r *rule, action Action, maybe bool, index int) Reason {
	text := j.supported(r)
	switch {
	case text != "":
	case r.reason == "":
		text = "a rule says " + r.decision.String()
	case maybe:
		text = r.reason + " (not known)"
	default:
		text = r.reason
	}
	if len(j.step.Lost) > 0 && r.decision == Confirm && r.when.anyEffect.Has(atip.Delete) {
		text += "; an undo would not bring back " + strings.Join(j.step.Lost, ", ")
	}
	return Reason{Rule: r.name(), File: r.file, Line: r.line, Col: r.col, Action: action, Maybe: maybe,
		Text: j.subject() + ": " + text, Suggest: r.suggest, Step: index}
}

// NotKnown begins a reason that rests on an effect of which nothing is known.
const NotKnown = "it is not known whether it "

// claim is what a reason says of an effect: as a possibility, and as a verb behind NotKnown.
type claim struct {
	effect    atip.Effect
	may, verb string
}

// claims are the effects of the built-in rules that ask about an effect, the worst first.
func claims(rule string) []claim {
	switch rule {
	case "destructive":
		return []claim{{atip.Destructive, "it may destroy data", "destroys data"}, {atip.Delete, "it may delete files", "deletes files"},
			{atip.Reversible, "what it does cannot be undone", "can be undone"}}
	case "remote":
		return []claim{{atip.RemoteMutation, "it may change something on a remote service", "changes something on a remote service"}}
	case "billable":
		return []claim{{atip.Billable, "it may cost money", "costs money"}}
	case "secret_tool":
		return []claim{{atip.SecretRead, "it may read stored secrets", "reads stored secrets"}}
	case "privileged":
		return []claim{{atip.Privileged, "it asks for the rights of another user", "asks for the rights of another user"}}
	case "persistence_effect":
		return []claim{{atip.Persistence, "it arranges for something to run by itself later", "arranges for something to run by itself later"}}
	case "opaque":
		return []claim{{atip.ExecOpaque, "what it runs cannot be known", "runs code that is not seen"}}
	}
	return nil
}

// supported is the reason of a built-in rule about effects as far as it is true of the step: what
// its metadata says, else what is not known. "" for any other rule.
func (j *judged) supported(r *rule) string {
	if r.layer != LayerBuiltin {
		return ""
	}
	if r.id == "opaque" && j.channel == "none" && j.step.RunsCode == CodeNone {
		return "nothing is known about this tool"
	}
	list := claims(r.id)
	for _, c := range list {
		switch {
		case j.base[c.effect] != atip.Yes:
		case c.effect == atip.RemoteMutation && j.onlyLoopback():
			return "it may change something in a service on this machine"
		default:
			return c.may
		}
	}
	for _, c := range list {
		if j.base[c.effect] == atip.Unknown {
			return NotKnown + c.verb
		}
	}
	return ""
}

// onlyLoopback reports a step that names hosts, all of them this machine.
func (j *judged) onlyLoopback() bool {
	return !slices.ContainsFunc(j.hosts, func(h HostUse) bool { return h.Kind != HostLoopback }) && len(j.hosts) > 0
}

// plain leaves out what is only possible and built-in where something certain gives
// the same decision: code that nobody knows may do anything, and saying so for each
// effect hides the point.
func plain(why []Reason, action Action) []Reason {
	certain := false
	for i := range why {
		certain = certain || !why[i].Maybe && why[i].Action == action
	}
	if !certain {
		return why
	}
	kept := why[:0]
	for _, r := range why {
		if !r.Maybe || !strings.HasPrefix(r.Rule, "builtin/") {
			kept = append(kept, r)
		}
	}
	return kept
}

// sortReasons puts the strictest first and is independent of the order of rules.
func sortReasons(rs []Reason) {
	sort.SliceStable(rs, func(i, k int) bool {
		a, b := &rs[i], &rs[k]
		switch {
		case a.Action != b.Action:
			return a.Action < b.Action
		case a.Maybe != b.Maybe:
			return b.Maybe
		case a.Step != b.Step:
			return a.Step < b.Step
		case a.Rule != b.Rule:
			return a.Rule < b.Rule
		case a.File != b.File:
			return a.File < b.File
		}
		return a.Line < b.Line
	})
}

// grantsOf is the union of what the steps are granted, in the sandbox's terms.
func grantsOf(steps []judged, ds []StepDecision, union atip.Set) Grants {
	g := Grants{Effects: union, NetKnown: true}
	seen := map[string]bool{}
	for i := range steps {
		f := &steps[i].facts
		g.addNet(f, ds[i].Grants)
		for k := range f.step.Call.Resources {
			r := f.step.Call.Resources[k]
			if r.Kind != "path" {
				continue
			}
			if !union.Has(atip.Write) {
				r.Access &^= atip.AccessWrite
			}
			if !union.Has(atip.Delete) {
				r.Access &^= atip.AccessDelete
			}
			if r.Access != 0 {
				g.Paths = append(g.Paths, r)
			}
		}
		if !ds[i].Grants.Has(atip.Network) {
			continue
		}
		for _, h := range f.hosts {
			if h.Host == "" {
				if h.Kind == HostService {
					for _, name := range f.step.ServiceHosts {
						if !seen[name] {
							seen[name] = true
							g.Hosts = append(g.Hosts, name)
						}
					}
				}
				continue
			}
			name := h.Host
			if h.Port != 0 && strings.IndexByte(name, ':') >= 0 {
				name = "[" + name + "]"
			}
			if h.Port != 0 {
				name += ":" + strconv.Itoa(h.Port)
			}
			if !seen[name] {
				seen[name] = true
				g.Hosts = append(g.Hosts, name)
			}
		}
	}
	sort.Strings(g.Hosts)
	if g.Net < NetAllowlist {
		g.NetKnown = false
	}
	return g
}

// addNet widens the network mode by one step. Code of the workspace and unknown
// tools get a loopback of their own at most, however they were granted network.
func (g *Grants) addNet(f *facts, granted atip.Set) {
	strange := f.step.RunsCode != CodeNone || f.channel == "none"
	switch {
	case strange:
		if f.base[atip.Network] != atip.No && !f.set.withhold.Has(atip.Network) {
			g.Net = max(g.Net, NetLoopback)
		}
		if granted.Has(atip.Network) && f.known && f.base[atip.Network] == atip.Yes {
			g.Net = NetFull // a known installer, whose metadata says that it needs it
		}
	case !granted.Has(atip.Network):
	case len(f.hosts) == 0:
		g.Net = NetFull
		g.NetKnown = g.NetKnown && f.known
	default:
		mode := NetAllowlist
		for _, h := range f.hosts {
			// Its own service, if nobody says where that is, or wherever the person sees it go.
			if h.Host == "" && (h.Kind != HostService || len(f.step.ServiceHosts) == 0) {
				mode = NetFull
			}
		}
		g.Net = max(g.Net, mode)
		g.NetKnown = g.NetKnown && f.known
	}
}
