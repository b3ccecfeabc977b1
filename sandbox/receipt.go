package sandbox

// Receipt is what was enforced, for the status file, the audit record and explain.
type Receipt struct {
	Tier      Tier                    `json:"tier"`
	Why       string                  `json:"why,omitempty"` // this tier
	ABI       int                     `json:"abi"`
	Given     []Guarantee             `json:"given"`
	Gaps      []Gap                   `json:"gaps"`
	Reduced   []string                `json:"reduced"`
	Absent    []Absent                `json:"absent"`
	Read      []Grant                 `json:"read,omitempty"`
	Write     []Grant                 `json:"write"`
	Sockets   []string                `json:"sockets,omitempty"` // outside, that can be connected to
	Exec      Ceiling                 `json:"exec"`              // which programs the run may start
	Net       Net                     `json:"net"`
	Seccomp   Program                 `json:"seccomp"`
	Limits    map[string]LimitReceipt `json:"limits"`
	Denials   []Denial                `json:"denials"`
	Protected ProtectedReceipt        `json:"protected"`
	Nested    NestedReceipt           `json:"nested"`
}

// NestedReceipt says whether the run is inside another one.
type NestedReceipt struct {
	Outer *string     `json:"outer"`           // its tier, as it says; null for no outer run
	Given []Guarantee `json:"given,omitempty"` // what it keeps, and this run could not
}

// Gap is a guarantee this run does without.
type Gap struct {
	Guarantee Guarantee `json:"guarantee"`
	Why       string    `json:"why"`
	Fix       string    `json:"fix,omitempty"`
}

// Program identifies the system call filter.
type Program struct {
	Name   string `json:"program"`
	SHA256 string `json:"sha256"`
}

// LimitReceipt is a limit and the mechanism that keeps it.
type LimitReceipt struct {
	Max uint64 `json:"max"`
	By  string `json:"by"`
}

// ProtectedReceipt is the result of comparing the protected names.
type ProtectedReceipt struct {
	Checked int      `json:"checked"`
	Changed []string `json:"changed"`
	// Git directories that the run made where no name is protected; not all, if truncated.
	Repositories []string `json:"repositories,omitempty"`
	Unpinned     int      `json:"unpinned,omitempty"` // names that were there and only compared, for want of mounts
	Truncated    bool     `json:"truncated,omitempty"`
}

// Receipt returns the receipt of a run under this setup.
func (s Setup) Receipt() Receipt {
	p := &s.profile
	r := Receipt{Tier: s.tier, Why: s.why, ABI: s.host.ABI, Given: list(s.given), Gaps: list(s.gaps), Reduced: list(s.reduced),
		Absent: list(p.Absent), Write: list(p.Write), Sockets: s.Sockets(), Exec: p.Ceiling, Net: p.Net, Denials: []Denial{}, Limits: map[string]LimitReceipt{"core": {Max: 1, By: "rlimit"}},
		Protected: ProtectedReceipt{Changed: []string{}}}
	r.Read = append(append(r.Read, p.Exec...), p.Read...)
	if o := s.host.outer; o != nil {
		tier := o.Tier.String()
		r.Nested = NestedReceipt{Outer: &tier, Given: s.outside}
	}
	for name, by := range s.limits.by {
		r.Limits[name] = LimitReceipt{Max: s.limits.limits.value(name), By: by}
	}
	if s.valid && s.tier != T0 {
		r.Seccomp = s.program()
	} else {
		r.Net = Net{Mode: NetFull}
	}
	if s.tier != T3 && s.tier != T0 && p.Net.Mode == NetLoopback {
		r.Net = Net{Mode: NetNone}
	}
	return r
}

// list makes an empty list of none, which JSON readers tell from a missing one.
func list[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}
