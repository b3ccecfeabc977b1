package policy

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

// A layer's settings can loosen only where its rules can: that is the managed and
// the user's layer, and a trusted project for paths. Everything else tightens.

func owner(d *Document) bool {
	return d.source.Layer == LayerManaged || d.source.Layer == LayerUser && !d.source.TightensOnly
}

// builtinGaps are accepted without a policy: a stock distribution could build
// nothing otherwise.
var builtinGaps = [...]string{"files.meta", "files.hidden", "ws.protect", "proc.hidden", "tree.killed"}

// Sandbox returns the merged sandbox object.
func (s *Set) Sandbox() SandboxPolicy {
	p := SandboxPolicy{Accept: builtinGaps[:]}
	accepted, kernel := false, false
	for _, d := range s.docs {
		x := &d.sandbox
		if !x.set {
			continue
		}
		p.Tier = max(p.Tier, x.Tier)
		p.Require = union(p.Require, x.Require)
		if x.acceptSet {
			if owner(d) && !accepted {
				p.Accept = x.Accept
			} else {
				p.Accept = intersect(p.Accept, x.Accept)
			}
			accepted = true
		}
		kernel = kernel || x.Confine == "kernel"
		p.DeleteStrict = p.DeleteStrict || x.DeleteStrict
		p.ProtectCI = p.ProtectCI || x.ProtectCI
		if x.Observe != "" {
			p.Observe = x.Observe
		}
		if x.EnvFiles == "mask" || x.EnvFiles == "network" && p.EnvFiles != "mask" {
			p.EnvFiles = x.EnvFiles
		}
		if x.Tmp == "run" {
			p.Tmp = "run"
		}
		if x.Trace == "off" {
			p.Trace = "off"
		}
		if loosens(d) {
			p.Read = append(p.Read, x.Read...)
			p.Write = append(p.Write, x.Write...)
			p.Exec = append(p.Exec, x.Exec...)
		}
		if !owner(d) {
			continue
		}
		if x.Confine == "none" {
			p.Confine = "none"
		}
		if x.Gate != "" {
			p.Gate = x.Gate
		}
		if p.Trace == "" {
			p.Trace = x.Trace
		}
		if p.Workspace == "" {
			p.Workspace, p.WorkspaceAt = x.Workspace, x.WorkspaceAt
		}
		if p.Tmp == "" {
			p.Tmp = x.Tmp
		}
		if p.EnvFiles == "" {
			p.EnvFiles = x.EnvFiles
		}
		p.Sockets = append(p.Sockets, x.Sockets...)
		p.Devices = append(p.Devices, x.Devices...)
		p.ProtectAllow = append(p.ProtectAllow, x.ProtectAllow...)
		p.SecretFiles = append(p.SecretFiles, x.SecretFiles...)
	}
	if kernel {
		p.Confine = "" // whoever insists on confinement wins over whoever waives it
	}
	return p
}

// Output returns the merged output object.
func (s *Set) Output() OutputPolicy {
	var p OutputPolicy
	for _, d := range s.docs {
		x := &d.output
		if !x.set {
			continue
		}
		p.MaxBytes = least(p.MaxBytes, x.MaxBytes)
		if p.Binary != "block" && x.Binary != "" {
			p.Binary = x.Binary
		}
		if placeholderRank(x.Placeholders) > placeholderRank(p.Placeholders) {
			p.Placeholders = x.Placeholders
		}
		for _, part := range x.Redact {
			part.TightensOnly = d.source.TightensOnly
			p.Redact = append(p.Redact, part)
		}
	}
	return p
}

func placeholderRank(s string) int {
	switch s {
	case "pass":
		return 1
	case "warn":
		return 2
	case "":
		return 0
	}
	return 3
}

// Env returns the merged env object.
func (s *Set) Env() EnvPolicy {
	p := EnvPolicy{Set: map[string]string{}}
	for i := len(s.docs) - 1; i >= 0; i-- { // the outermost value of a name wins
		d := s.docs[i]
		p.Drop = append(p.Drop, d.env.Drop...)
		if owner(d) {
			p.Pass = append(p.Pass, d.env.Pass...)
			maps.Copy(p.Set, d.env.Set)
		}
	}
	return p
}

// Limits returns the merged limits object: of two limits the lower.
func (s *Set) Limits() LimitsPolicy {
	var p LimitsPolicy
	for _, d := range s.docs {
		x := &d.limits
		p.Timeout = least(p.Timeout, x.Timeout)
		p.Grace = least(p.Grace, x.Grace)
		p.OpenFiles = least(p.OpenFiles, x.OpenFiles)
		p.Processes = least(p.Processes, x.Processes)
		p.Memory = least(p.Memory, x.Memory)
		p.FileSize = least(p.FileSize, x.FileSize)
		p.Shm = least(p.Shm, x.Shm)
		p.CPU = least(p.CPU, x.CPU)
		p.Nice = max(p.Nice, x.Nice)
	}
	return p
}

// Process returns the merged process object.
func (s *Set) Process() ProcessPolicy {
	var p ProcessPolicy
	end := false
	for _, d := range s.docs {
		x := &d.process
		p.Umask |= x.Umask
		end = end || x.Leftovers == "end"
		if !owner(d) {
			continue
		}
		p.Caps = union(p.Caps, x.Caps)
		if x.Leftovers == "keep" {
			p.Leftovers = "keep"
		}
		if p.Askpass == "" {
			p.Askpass = x.Askpass
		}
	}
	if end {
		p.Leftovers = ""
	}
	return p
}

// Network returns the merged network object.
func (s *Set) Network() NetworkPolicy {
	var p NetworkPolicy
	for _, d := range s.docs {
		x := &d.network
		p.Deny = union(p.Deny, x.Deny)
		if !owner(d) {
			continue
		}
		p.Allow = union(p.Allow, x.Allow)
		p.Private = union(p.Private, x.Private)
		p.Forward = union(p.Forward, x.Forward)
		if p.Upstream == "" {
			p.Upstream = x.Upstream
		}
	}
	return p
}

// Paths returns the merged paths object; both lists only grow.
func (s *Set) Paths() PathsPolicy {
	var p PathsPolicy
	for _, d := range s.docs {
		p.Secret = append(p.Secret, d.paths.Secret...)
		p.Protected = append(p.Protected, d.paths.Protected...)
	}
	return p
}

// UserConfigAccount reports that a managed policy lets a user's file loosen only
// if it lies below the home directory of the password database.
func (s *Set) UserConfigAccount() bool {
	return slices.ContainsFunc(s.docs, func(d *Document) bool { return d.UserConfigAccount() })
}

// least is the smaller of two limits, where zero means none.
func least[T int | int64 | time.Duration](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func union(a, b []string) []string {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a[:len(a):len(a)], x)
		}
	}
	return a
}

func intersect(a, b []string) []string {
	var out []string
	for _, x := range a {
		if slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}

// Approval returns the merged approval object. Keys come from the managed and the
// user's layer only: a repository cannot name who may approve.
func (s *Set) Approval() ApprovalPolicy {
	p := ApprovalPolicy{MinLevel: map[string]int{}}
	for _, d := range s.docs {
		x := &d.approval
		for k, v := range x.MinLevel {
			p.MinLevel[k] = max(p.MinLevel[k], v)
		}
		p.MaxAge = least(p.MaxAge, x.MaxAge)
		if p.Lock == "" {
			p.Lock = x.Lock
		}
		if !owner(d) {
			continue
		}
		p.Approvers = append(p.Approvers, x.Approvers...)
		p.LockKeys = union(p.LockKeys, x.LockKeys)
		p.LockApplies = p.LockApplies || x.LockApplies || d.profile == "ci"
		if p.Command == "" {
			p.Command = x.Command
		}
	}
	return p
}

// Budgets returns the merged budgets: a layer that only tightens can lower a
// budget but not create one.
func (s *Set) Budgets() Budgets {
	b := Budgets{Rate: map[string]string{}}
	for _, d := range s.docs {
		b.Billable = stricterBudget(b.Billable, d.budgets.Billable, owner(d))
		b.RemoteMutation = stricterBudget(b.RemoteMutation, d.budgets.RemoteMutation, true)
		for tool, rate := range d.budgets.Rate {
			if old, ok := b.Rate[tool]; !ok || perHour(rate) < perHour(old) {
				b.Rate[tool] = rate
			}
		}
	}
	return b
}

func stricterBudget(a, b Budget, create bool) Budget {
	switch {
	case !b.Set, !a.Set && !create:
		return a
	case !a.Set, b.Max < a.Max, b.Max == a.Max && b.Window > a.Window:
		return b
	}
	return a
}

// perHour turns a rate that the parser has checked into calls per hour.
func perHour(rate string) int {
	n, unit, _ := strings.Cut(rate, "/")
	v := 0
	for _, c := range n {
		v = v*10 + int(c-'0')
	}
	switch unit {
	case "s":
		return v * 3600
	case "m":
		return v * 60
	}
	return v
}

// Analysis returns the merged limits for reading shell strings.
func (s *Set) Analysis() Analysis {
	var a Analysis
	for _, d := range s.docs {
		x := &d.analysis
		a.MaxBytes = least(a.MaxBytes, x.MaxBytes)
		a.MaxNodes = least(a.MaxNodes, x.MaxNodes)
		a.MaxSteps = least(a.MaxSteps, x.MaxSteps)
		a.MaxNesting = least(a.MaxNesting, x.MaxNesting)
		a.MaxUnroll = least(a.MaxUnroll, x.MaxUnroll)
	}
	return a
}

// Delegable lists what each document lets a delegation carry at most; a delegation
// must fit them all.
func (s *Set) Delegable() []Delegable {
	var out []Delegable
	for _, d := range s.docs {
		if d.delegable != nil {
			out = append(out, *d.delegable)
		}
	}
	return out
}

// Credentials says what becomes of a credential that a command below a run needs and
// its sandbox does not have.
type Credentials uint8

// What may become of such a credential; the zero value gives nothing.
const (
	CredentialsWithheld Credentials = iota
	CredentialsByParent             // the parent run decides anew and starts the command itself
	CredentialsPassed               // a delegated run gets those of the tools that were delegated
)

// Credentials merges delegation.credentials: whoever withholds wins, and only a user's or
// a managed policy gives away.
func (s *Set) Credentials() Credentials {
	out := CredentialsByParent
	for _, d := range s.docs {
		switch {
		case d.credentials == "withhold":
			return CredentialsWithheld
		case d.credentials == "pass" && owner(d):
			out = CredentialsPassed
		}
	}
	return out
}

// TrustPolicy returns the merged trust object: the managed layer wins over the
// user's, and every other layer only tightens.
func (s *Set) TrustPolicy() TrustPolicy {
	p := TrustPolicy{Pins: map[string][]string{}}
	for _, d := range s.docs {
		x := &d.trust
		p.RequireMetadata = p.RequireMetadata || x.RequireMetadata
		p.RequireTool = p.RequireTool || x.RequireTool
		p.MinimumSLSALevel = max(p.MinimumSLSALevel, x.MinimumSLSALevel)
		p.Revoked = union(p.Revoked, x.Revoked)
		p.RevokedSigners = append(p.RevokedSigners, x.RevokedSigners...)
		switch {
		case owner(d):
			p.Signers = append(p.Signers, x.Signers...)
			p.Builders = append(p.Builders, x.Builders...)
		case x.SignersSet:
			p.SignerFilters = append(p.SignerFilters, x.Signers)
		}
		p.MaxRootAge = least(p.MaxRootAge, x.MaxRootAge)
		p.MaxStateAge = least(p.MaxStateAge, x.MaxStateAge)
		p.OnUnsigned = replaceAction(p.OnUnsigned, x.OnUnsigned, owner(d))
		p.OnUnverified = replaceAction(p.OnUnverified, x.OnUnverified, owner(d))
		for name, digests := range x.Pins {
			if old, pinned := p.Pins[name]; pinned {
				p.Pins[name] = intersect(old, digests)
			} else if owner(d) {
				p.Pins[name] = digests
			}
			// A pin vouches for a file, so a project cannot add one.
		}
		if x.SystemPathsSet {
			switch {
			case p.SystemPathsSet:
				p.SystemPaths = intersect(p.SystemPaths, x.SystemPaths)
			case owner(d):
				p.SystemPaths, p.SystemPathsSet = x.SystemPaths, true
			}
		}
		if !owner(d) {
			continue
		}
		p.ExpectationsOff = p.ExpectationsOff || x.ExpectationsOff
		if p.DistroTrust == "" {
			p.DistroTrust = x.DistroTrust
		}
		if p.Scripts == "" {
			p.Scripts = x.Scripts
		}
		if p.Recheck == "" {
			p.Recheck = x.Recheck
		}
	}
	return p
}

// replaceAction merges onUnsigned and onUnverified. Unset, the verdict's own
// action holds, which is never looser than confirm.
func replaceAction(old, now string, owner bool) string {
	switch {
	case now == "":
		return old
	case old == "":
		if now == "allow" && !owner {
			return old
		}
		return now
	}
	a, _ := ActionByName(old)
	b, _ := ActionByName(now)
	return min(a, b).String()
}

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
