package sandbox

import "errors"

// Host is what this machine was seen to enforce.
type Host struct {
	OS        string `json:"os"`
	ABI       int    `json:"abi"` // Landlock; 0 is none
	Errata    int    `json:"errata"`
	Seccomp   bool   `json:"seccomp"`
	Landlock  string `json:"landlock,omitempty"` // why it is missing
	Namespace bool   `json:"namespaces"`
	NSWhy     string `json:"namespacesWhy,omitempty"`
	Root      bool   `json:"root"`
	Cached    bool   `json:"-"`
}

// Cache says where Probe may keep its answer and for which executable.
type Cache struct{ Dir, Executable string }

// Enforce is what the kernel will enforce in a run of this machine; policy may
// count a "no" only for these.
type Enforce struct{ Files, Net bool }

// Setup is a chosen tier with its mechanisms. The zero Setup starts nothing.
type Setup struct {
	tier  Tier
	valid bool
}

// Enforceable tells, before there is a profile, what a run here will enforce.
func Enforceable(h Host) Enforce { return Enforce{} }

// Select chooses the lowest tier that gives what the profile needs and names every
// gap, or fails with E4101.
func Select(p Profile, h Host) (Setup, error) {
	return Setup{}, errors.New("no sandbox tier can be selected")
}

// Tier returns the chosen tier.
func (s Setup) Tier() Tier { return s.tier }
