package policy

import "strings"

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
