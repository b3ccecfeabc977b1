package sandbox

// TierReport is what one tier gives on this machine, for a run that may write in its
// workspace and has no network.
type TierReport struct {
	Tier   Tier        `json:"tier"`
	Usable bool        `json:"usable"`
	Why    string      `json:"why,omitempty"` // it is not usable
	Given  []Guarantee `json:"given"`
	Gaps   []Gap       `json:"gaps"`
}

// Tiers says for each tier that confines whether it is usable here, and what it gives.
func (h Host) Tiers() []TierReport {
	p := Profile{Workspace: "/w", Write: []Grant{{Path: "/w", Dir: true, Rights: Read | Write | Remove}}, HostWrite: true}
	best := h.tier()
	var out []TierReport
	for t := T1; t <= T3; t++ {
		r := TierReport{Tier: t, Usable: t <= best && best != T0, Given: []Guarantee{}, Gaps: []Gap{}}
		switch {
		case r.Usable:
			// What the higher tier would add is the tier's lack, not the machine's.
			s := at(p, h, t)
			r.Given, r.Gaps = list(s.given), list(s.gaps)
		case best == T0:
			r.Why = h.missing()
		default:
			r.Why = h.lacks(t)
		}
		out = append(out, r)
	}
	return out
}

// Cgroup says whether limits of a whole run can be kept by a control group: in which
// directory, or why not.
func (h Host) Cgroup() (dir, why string) { return h.cgroupFor("pids") }
