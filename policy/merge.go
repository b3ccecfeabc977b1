package policy

import (
	"maps"
	"slices"
	"strings"
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
