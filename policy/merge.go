package policy

import (
	"maps"
	"time"
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
	for _, d := range s.docs {
		if d.UserConfigAccount() {
			return true
		}
	}
	return false
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
		if !contains(a, x) {
			a = append(a[:len(a):len(a)], x)
		}
	}
	return a
}

func intersect(a, b []string) []string {
	var out []string
	for _, x := range a {
		if contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}
