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
			out += dangerName(atip.Effect(e))
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
