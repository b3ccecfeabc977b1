package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

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
	return contains(shippedProfiles[:], name)
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
		if contains(chain, name) {
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
		if above.source.Layer < d.source.Layer && c != nil && c.hasProfiles && !contains(c.profiles, d.profile) {
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
		if above.source.Layer < d.source.Layer && c != nil && c.hasSwitches && !contains(c.switches, name) {
			return false
		}
	}
	return d.source.Layer != LayerProject || projectSwitch(name) ||
		s.ceilingSet(LayerUser, func(c *ceiling) bool { return c.hasSwitches })
}
