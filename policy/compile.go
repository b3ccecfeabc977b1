package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Set is a compiled policy. It is not changed after Compile and may be used by
// several goroutines.
type Set struct {
	allow    []*rule // usable allow rules of every layer, switches applied
	restrict []*rule // confirm and deny rules
	dflt     Action
	dfltFrom Layer // the outermost layer that made it Deny
	belief   [atip.NumEffects]atip.Rank
	withhold atip.Set
	listed   []hostPattern // network.allow of the layers that may loosen
	secret   []string      // further globs of class secret
	self     []string      // further globs of class policy-self

	profiles []string // those in force; nil for the default one
	switches switchSet
	warnings []string
	sources  []SourceInfo
	docs     []*Document // outermost layer first
}

// SourceInfo identifies one document.
type SourceInfo struct {
	Layer  Layer  `json:"layer"`
	File   string `json:"file"`
	Digest string `json:"sha256"`
}

// Compile merges the documents of all layers. The built-in document is added if
// it is not among them. Where a document loosens what its layer may not, that
// part is dropped with a warning.
func Compile(docs []*Document) (*Set, error) {
	s := &Set{dflt: Confirm, switches: profileSwitches(shippedProfiles[0])}
	s.restrict = make([]*rule, 0, len(builtinConfirm)+len(builtinDeny)+16)
	for _, d := range docs {
		if d == nil {
			return nil, &ParseError{Code: errcode.PolicySyntax, File: "policy", Msg: "a document is missing"}
		}
		if d.source.Layer != LayerBuiltin {
			s.docs = append(s.docs, d)
		}
	}
	// One order for every permutation of the input: what is merged below depends
	// on the layers only, but messages and lists should not wander either.
	sort.SliceStable(s.docs, func(i, j int) bool {
		a, b := s.docs[i], s.docs[j]
		if a.source.Layer != b.source.Layer {
			return a.source.Layer < b.source.Layer
		}
		if a.source.File != b.source.File {
			return a.source.File < b.source.File
		}
		return a.digest < b.digest
	})
	s.sources = append(s.sources, SourceInfo{LayerBuiltin, "builtin", builtinDigest})
	for e := range s.belief {
		s.belief[e] = beliefThreshold(atip.Effect(e))
	}
	if err := s.mergeSwitches(); err != nil {
		return nil, err
	}
	for i := range builtinAllow {
		if r := &builtinAllow[i]; s.switches.has(r.sw) {
			s.allow = append(s.allow, r)
		}
	}
	for i := range builtinConfirm {
		s.restrict = append(s.restrict, &builtinConfirm[i])
	}
	for i := range builtinDeny {
		s.restrict = append(s.restrict, &builtinDeny[i])
	}
	for _, d := range s.docs {
		s.add(d)
	}
	return s, nil
}

// add merges one document's rules and what else bears on a decision.
func (s *Set) add(d *Document) {
	s.sources = append(s.sources, SourceInfo{d.source.Layer, d.source.File, d.digest})
	s.warnings = append(s.warnings, d.warnings...)
	for i := range d.rules {
		s.addRule(d, &d.rules[i])
	}
	if d.dflt != nil {
		s.setDefault(*d.dflt, d.source.Layer)
	}
	for _, b := range d.belief {
		s.belief[b.effect] = max(s.belief[b.effect], b.rank)
	}
	s.withhold |= d.withhold
	if d.userConfigAccount && !d.UserConfigAccount() {
		s.warn(d, d.userConfigAt.line, d.userConfigAt.col, "ceiling.userConfig is ignored: only a managed policy may say where a user's policy lies")
	}
	if d.credentials == "pass" && !owner(d) {
		s.warn(d, d.credentialsAt.line, d.credentialsAt.col, "delegation.credentials is ignored: only a user's and a managed policy may pass them on")
	}
	if d.network.set {
		s.addNetwork(d)
	}
	for _, p := range d.paths.Secret {
		s.secret = append(s.secret, p.Path)
	}
	for _, p := range d.paths.Protected {
		s.self = append(s.self, p.Path)
	}
}

func (s *Set) addRule(d *Document, r *rule) {
	if r.decision != Allow {
		s.restrict = append(s.restrict, r)
		return
	}
	if why := s.mayAllow(d, r); why != "" {
		s.warn(d, r.line, r.col, "allow rule "+r.id+" is ignored: "+why)
		return
	}
	s.allow = append(s.allow, r)
}

// mayAllow says why an allow rule of this document has no effect, "" if it has.
func (s *Set) mayAllow(d *Document, r *rule) string {
	if !loosens(d) {
		if d.source.Layer == LayerProject {
			return "the project is not trusted"
		}
		if d.source.Layer == LayerUser {
			return "it does not lie below the home directory of the account, which the managed policy demands"
		}
		return "a " + d.source.Layer.String() + " policy only tightens"
	}
	for _, above := range s.docs {
		if above.source.Layer >= d.source.Layer || above.ceiling == nil || above.ceiling.allow == nil {
			continue
		}
		if over := r.grants &^ *above.ceiling.allow; over != 0 {
			return "the ceiling of " + above.source.File + " admits no " + setNames(over)
		}
	}
	if d.source.Layer == LayerProject && !s.ceilingSet(LayerUser, func(c *ceiling) bool { return c.allow != nil }) {
		if over := r.grants &^ projectGrants; over != 0 {
			return "a project may not grant " + setNames(over) + " unless a user's ceiling admits it"
		}
	}
	return ""
}

// projectGrants and projectSwitches bound a trusted project if the user's policy
// states no ceiling.
const projectGrants = fWrite | fDelete | fNetwork | fOpaque

func (s *Set) ceilingSet(l Layer, has func(*ceiling) bool) bool {
	return slices.ContainsFunc(s.docs, func(d *Document) bool { return d.source.Layer == l && d.ceiling != nil && loosens(d) && has(d.ceiling) })
}

// loosens reports whether the document's layer may loosen anything.
func loosens(d *Document) bool {
	switch d.source.Layer {
	case LayerBuiltin, LayerManaged:
		return true
	case LayerUser:
		return !d.source.TightensOnly
	case LayerProject:
		return d.source.Trusted
	}
	return false
}

func (s *Set) warn(d *Document, line, col int, msg string) {
	s.warnings = append(s.warnings, position(d.source.File, line, col)+": "+msg)
}

// addNetwork turns network.deny into a rule, and keeps network.allow where the
// layer may loosen.
func (s *Set) addNetwork(d *Document) {
	n := &d.network
	if len(n.deny) > 0 {
		s.restrict = append(s.restrict, &rule{id: "network.deny", decision: Deny, floor: Deny, onUnknown: Confirm,
			when: when{host: n.deny}, reason: "the host is on a deny list",
			layer: d.source.Layer, file: d.source.File, line: n.line, col: n.col})
	}
	if len(n.allow) == 0 {
		return
	}
	if !owner(d) {
		s.warn(d, n.line, n.col, "network.allow is ignored: only a user's and a managed policy may add hosts")
		return
	}
	s.listed = append(s.listed, n.allow...)
}

// setDefault merges the answer for what no rule speaks of.
func (s *Set) setDefault(a Action, from Layer) {
	if a == Deny && (s.dflt != Deny || from < s.dfltFrom) {
		s.dfltFrom = from
	}
	s.dflt = min(s.dflt, a)
}

// answersFor reports whether a confirm rule is an answer where the default is a denial: one
// of an inner layer is none, or a flag that an agent types could make a question of it.
func (s *Set) answersFor(r *rule) bool { return r.layer != LayerBuiltin && r.layer <= s.dfltFrom }

// Digest identifies the documents of the set, independent of their order.
func (s *Set) Digest() string {
	h := sha256.New()
	for _, x := range s.sources {
		fmt.Fprintf(h, "%s\x00%s\x00%s\n", x.Layer, x.File, x.Digest)
	}
	fmt.Fprintf(h, "%s\x00%x\x00%d", s.Profile(), uint32(s.switches), s.dflt)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// NamedFiles are the executables that rules ask about or deny by their paths. Under another name of the
// same file they count too; which those are, the caller of Decide finds out.
func (s *Set) NamedFiles() []string {
	var out []string
	add := func(w *when) {
		for _, t := range w.tool {
			if t[0] == '/' {
				out = append(out, t)
			}
		}
	}
	for _, r := range s.restrict {
		add(&r.when)
	}
	for _, r := range s.allow {
		for i := range r.unless {
			add(&r.unless[i])
		}
	}
	return out
}

// Warnings says what of the documents was ignored, and why.
func (s *Set) Warnings() []string { return s.warnings }

// Profile names the profile in force; where a layer narrowed the one of another, both are,
// with a plus between them.
func (s *Set) Profile() string {
	if s.profiles == nil {
		return shippedProfiles[0]
	}
	return strings.Join(s.profiles, "+")
}

// UsesProfile reports whether this profile is in force, by itself or as the base of one that is.
func (s *Set) UsesProfile(name string) bool {
	for _, p := range s.profiles {
		for defined := (&profile{base: p}); defined != nil; defined, _ = s.findProfile(p, LayerDelegated) {
			if p = defined.base; p == name {
				return true
			}
		}
	}
	return false
}

// Switches returns the names of the switches that are on.
func (s *Set) Switches() []string { return s.switches.names() }

// Sources lists the documents of the set, outermost layer first.
func (s *Set) Sources() []SourceInfo { return s.sources }

// setNames lists the danger keys of a set.
func setNames(s atip.Set) string {
	out := ""
	for e := range atip.NumEffects {
		if s.Has(atip.Effect(e)) {
			if out != "" {
				out += ", "
			}
			out += DangerName(atip.Effect(e))
		}
	}
	return out
}

// beliefThreshold is the rank from which a stated "no" counts although nothing
// enforces it.
func beliefThreshold(e atip.Effect) atip.Rank {
	switch e {
	case atip.Read, atip.Write, atip.Delete, atip.Network, atip.Subprocess, atip.Idempotent:
		return atip.Community
	}
	return atip.Org
}

// A switch turns one allow rule of the built-in policy on or off.

// isSwitch reports whether name is a switch.
func isSwitch(name string) bool {
	for i := range switchTable {
		if switchTable[i].name == name {
			return true
		}
	}
	return false
}

type switchSet uint32

type switchRow struct {
	name string
	on   [4]bool // in the profiles workspace, read-only, ci, ops
}

// switchTable lists the switches and the shipped profiles. Inline code of an
// interpreter runs in the default profile because the kernel holds it to the
// workspace without network; where nobody watches (ci) or nothing may be written
// (read-only) it asks.
var switchTable = [...]switchRow{
	{"workspace_write", [4]bool{true, false, true, true}},
	{"git_local", [4]bool{true, false, true, true}},
	{"regenerable_delete", [4]bool{true, false, true, true}},
	{"undoable", [4]bool{true, false, true, false}},
	{"project_code", [4]bool{true, false, true, false}},
	{"network_read", [4]bool{true, true, true, true}},
	{"inline_code", [4]bool{true, false, false, false}},
	{"declared_dependencies", [4]bool{true, false, true, true}},
	{"tracked_delete", [4]bool{}},
	{"loopback", [4]bool{3: true}},
	{"url_fetch", [4]bool{3: true}},
	{"package_install", [4]bool{2: true}},
	{"unknown_tools", [4]bool{}},
	{"remote_change", [4]bool{}},
	{"defer", [4]bool{}}, // no rule: what planning may leave to the gate
}

var shippedProfiles = [...]string{"workspace", "read-only", "ci", "ops"}

func shippedProfile(name string) bool {
	return slices.Contains(shippedProfiles[:], name)
}

func switchBit(name string) switchSet {
	for i := range switchTable {
		if switchTable[i].name == name {
			return 1 << i
		}
	}
	return 0
}

func profileSwitches(name string) switchSet {
	var set switchSet
	for p, n := range shippedProfiles {
		if n != name {
			continue
		}
		for i := range switchTable {
			if switchTable[i].on[p] {
				set |= 1 << i
			}
		}
	}
	return set
}

// has reports whether all of the named switches are on.
func (s switchSet) has(names []string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return s&switchBit(n) == 0 })
}

func (s switchSet) names() []string {
	var out []string
	for i := range switchTable {
		if s&(1<<i) != 0 {
			out = append(out, switchTable[i].name)
		}
	}
	return out
}

func projectSwitch(name string) bool { return name == "package_install" || name == "loopback" }

// mergeSwitches settles the switches: each layer from the outermost in, and
// within a layer independent of the order of its documents.
func (s *Set) mergeSwitches() error {
	for l := LayerManaged; int(l) < NumLayers; l++ {
		var on, off switchSet
		base := ^switchSet(0)
		var names []string
		loose := true
		for _, d := range s.docs {
			if d.source.Layer != l {
				continue
			}
			can := loosens(d)
			if d.hasProfile {
				set, err := s.profileSet(d, d.profile)
				if err != nil {
					return err
				}
				if can && l == LayerProject {
					can = false // a project's profile narrows even when trusted
				}
				if can && !s.profileAdmitted(d) {
					s.warn(d, d.profileAt.line, d.profileAt.col, "profile "+d.profile+" only narrows: a ceiling above does not admit it")
					can = false
				}
				loose = loose && can
				base &= set
				names = union(names, []string{d.profile})
			}
			for name, v := range d.switches {
				switch {
				case !v:
					off |= switchBit(name)
				case s.switchAdmitted(d, name):
					on |= switchBit(name)
				case s.switches&switchBit(name) == 0:
					s.warn(d, d.switchAt[name].line, d.switchAt[name].col, "switch "+name+" is ignored: "+d.source.Layer.String()+" may not turn it on here")
				}
			}
		}
		if len(names) > 0 {
			sort.Strings(names)
			s.choose(names, base, loose)
		}
		s.switches = (s.switches | on) &^ off
	}
	return nil
}

// choose puts the profiles of one layer in force: in place of those of the layers
// above, or together with them.
func (s *Set) choose(names []string, base switchSet, loose bool) {
	if loose || s.profiles == nil && s.switches&base == base {
		s.profiles = nil // what a layer chooses in their place, or none of them was chosen
	} else if s.profiles == nil {
		s.profiles = shippedProfiles[:1]
	}
	s.profiles = union(s.profiles, names)
	if loose {
		s.switches = base
	} else {
		s.switches &= base
	}
}

// ProfileChoice is the document of a flag that chooses a profile. As all of its layer it
// only narrows.
func ProfileChoice(name string) *Document {
	sum := sha256.Sum256([]byte(name))
	return &Document{source: Source{File: "--profile " + name, Layer: LayerFlag}, profile: name, hasProfile: true, digest: hex.EncodeToString(sum[:])}
}

// unknownProfile names the profiles that this document could have chosen.
func (s *Set) unknownProfile(user *Document, name string) error {
	known := slices.Clone(shippedProfiles[:])
	for _, d := range s.docs {
		if d.source.Layer > user.source.Layer {
			continue
		}
		for i := range d.profiles {
			known = union(known, []string{d.profiles[i].name})
		}
	}
	sort.Strings(known)
	e := &ParseError{Code: errcode.PolicySyntax, File: user.source.File, Line: user.profileAt.line, Col: user.profileAt.col,
		Msg: fmt.Sprintf("unknown profile %q; there are %s", name, strings.Join(known, ", "))}
	if e.Line == 0 {
		e.File, e.fix, e.example = "--profile", "choose one of them", "--profile read-only"
	}
	return e
}

// profileSet resolves a profile to its switches, and adds the rules and default
// of a profile that documents define.
func (s *Set) profileSet(user *Document, name string) (switchSet, error) {
	var chain []string
	set := ^switchSet(0)
	overrides := []map[string]bool{}
	for {
		if shippedProfile(name) {
			set = profileSwitches(name)
			break
		}
		if slices.Contains(chain, name) {
			return 0, &ParseError{Code: errcode.PolicySyntax, File: user.source.File, Line: user.profileAt.line, Col: user.profileAt.col, Msg: "profile " + name + " is its own base"}
		}
		chain = append(chain, name)
		p, d := s.findProfile(name, user.source.Layer)
		if p == nil {
			return 0, s.unknownProfile(user, name)
		}
		overrides = append(overrides, p.switches)
		for i := range p.rules {
			// The rules speak with the voice of the layer that chose the profile, if
			// that is below the one that wrote it: choosing is what put them in force.
			r := p.rules[i]
			r.layer = max(d.source.Layer, user.source.Layer)
			chooser := d
			if user.source.Layer > d.source.Layer {
				chooser = user
			}
			s.addRule(chooser, &r)
		}
		if p.dflt != nil {
			s.setDefault(*p.dflt, max(d.source.Layer, user.source.Layer))
		}
		if name = p.base; name == "" {
			name = shippedProfiles[0]
		}
	}
	for i := len(overrides) - 1; i >= 0; i-- {
		for sw, v := range overrides[i] {
			if v {
				set |= switchBit(sw)
			} else {
				set &^= switchBit(sw)
			}
		}
	}
	return set, nil
}

// findProfile looks for a defined profile; the outermost layer that defines the
// name owns it. A layer below the one that chooses cannot supply it: a workspace
// would otherwise fill in a name that its user's policy uses.
func (s *Set) findProfile(name string, chooser Layer) (*profile, *Document) {
	for _, d := range s.docs {
		if d.source.Layer > chooser {
			continue
		}
		for i := range d.profiles {
			if d.profiles[i].name == name {
				return &d.profiles[i], d
			}
		}
	}
	return nil, nil
}

func (s *Set) profileAdmitted(d *Document) bool {
	for _, above := range s.docs {
		c := above.ceiling
		if above.source.Layer < d.source.Layer && c != nil && c.hasProfiles && !slices.Contains(c.profiles, d.profile) {
			return false
		}
	}
	return true
}

func (s *Set) switchAdmitted(d *Document, name string) bool {
	if !loosens(d) {
		return false
	}
	for _, above := range s.docs {
		c := above.ceiling
		if above.source.Layer < d.source.Layer && c != nil && c.hasSwitches && !slices.Contains(c.switches, name) {
			return false
		}
	}
	return d.source.Layer != LayerProject || projectSwitch(name) ||
		s.ceilingSet(LayerUser, func(c *ceiling) bool { return c.hasSwitches })
}
