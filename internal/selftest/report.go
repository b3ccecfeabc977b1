package selftest

// Report is the outcome of a self-test.
type Report struct {
	Kind       string    `json:"kind"` // "atip-exec.sandbox-test/1"
	OK         bool      `json:"ok"`
	Tier       string    `json:"tier"`
	ABI        int       `json:"abi"`
	Guarantees []Verdict `json:"guarantees"`
	Probes     []Probe   `json:"probes"`
}

// Verdict is what the probes say of one guarantee.
type Verdict struct {
	Guarantee string `json:"guarantee"`
	// Status is holds, escaped, gap (not claimed here), unproven (claimed, but no probe
	// gave a clear answer) or n/a (what would be refused cannot be done here at all).
	Status  string `json:"status"`
	Denied  int    `json:"denied"`
	Escaped int    `json:"escaped"`
	NA      int    `json:"n/a"`
	Unclear int    `json:"unclear"`
	Why     string `json:"why,omitempty"`
}

// Probe is one way out and what became of it.
type Probe struct {
	Family    string `json:"family"`
	Name      string `json:"name"`
	Guarantee string `json:"guarantee"`
	Inside    string `json:"inside"`
	Outside   string `json:"outside"` // the same act without a sandbox
	// Status is denied, escaped, n/a (the control failed), unclear (neither let through
	// nor refused as it should be) or launch-fail.
	Status string `json:"status"`
}

// The words of Status.
const (
	held       = "holds"
	escaped    = "escaped"
	gap        = "gap"
	unproven   = "unproven"
	notHere    = "n/a"
	denied     = "denied"
	unclear    = "unclear"
	launchFail = "launch-fail"
)

// judge fills in the verdicts: guarantees in their order, gaps with their reason. A claim
// that no probe confirmed is not a claim that held.
func (r *Report) judge(guarantees []string, gaps map[string]string) {
	r.Kind, r.OK = "atip-exec.sandbox-test/1", true
	for _, g := range guarantees {
		v := Verdict{Guarantee: g}
		for _, p := range r.Probes {
			if p.Guarantee != g {
				continue
			}
			switch p.Status {
			case denied:
				v.Denied++
			case escaped:
				v.Escaped++
				v.Why = p.Name + " got through"
			case notHere:
				v.NA++
			default:
				v.Unclear++
			}
		}
		why, isGap := gaps[g]
		switch {
		case isGap:
			v.Status, v.Why = gap, why
		case v.Escaped > 0:
			v.Status, r.OK = escaped, false
		case v.Denied > 0:
			v.Status = held
		case v.Unclear > 0 || v.NA == 0:
			v.Status, r.OK = unproven, false
		default:
			v.Status = notHere
		}
		r.Guarantees = append(r.Guarantees, v)
	}
}
