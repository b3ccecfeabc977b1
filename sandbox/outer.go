package sandbox

import "slices"

// outerDir is where a private root says what it is, for a run inside it.
const outerDir = "/run/atip-exec"

// outerVersion changes with every change of Outer.
const outerVersion = 1

// Outer is the parent run of this one, whose private root this process is in. What it
// promises about its own outside holds here too; nothing in here can take it back.
type Outer struct {
	V         int         `json:"v"`
	Tier      Tier        `json:"tier"`
	ABI       int         `json:"abi"`
	Errata    int         `json:"errata"`
	Given     []Guarantee `json:"given"`
	Workspace string      `json:"workspace"`
	Protect   []string    `json:"protect"` // what was pinned if it was there, and is compared
}

// asOuter is what a run under this setup says to the runs inside it.
func (s *Setup) asOuter() *Outer {
	protect := slices.DeleteFunc(slices.Clone(s.profile.Protect), s.profile.lifts)
	return &Outer{V: outerVersion, Tier: s.tier, ABI: s.host.ABI, Errata: s.host.Errata, Given: s.given,
		Workspace: s.profile.Workspace, Protect: protect}
}

// host is what this machine enforces inside of o: the probe's answer of the parent run,
// without what its filter refuses.
func (o *Outer) host(root bool) Host {
	return Host{OS: "linux", ABI: o.ABI, Errata: o.Errata, Seccomp: true, Root: root, outer: o,
		NSWhy: "this run is inside another one, which refuses namespaces"}
}

// holds reports whether the parent run keeps g for what p describes. Its promises are
// about its own outside, so those about the workspace need the same one.
func (o *Outer) holds(g Guarantee, p *Profile) bool {
	if o == nil || !slices.Contains(o.Given, g) {
		return false
	}
	switch g {
	case FilesMeta, FilesHidden, ProcHidden, TreeKilled, ProcSignal:
		return true
	case WSProtect:
		return o.Workspace == p.Workspace && !slices.ContainsFunc(p.Protect, func(name string) bool { return !slices.Contains(o.Protect, name) })
	}
	return false // the net of the parent run has its hosts, its limits are its own
}

// Outer is the run that this process is inside of, nil if there is none that has a
// private root.
func (h Host) Outer() *Outer { return h.outer }
