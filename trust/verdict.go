package trust

import "github.com/atip-dev/atip-exec/internal/errcode"

// Level is how far a subject is believed: the five levels of ATIP 0.6. Their
// numbers are not their order; use Weaker.
type Level uint8

// Levels. The zero value is the worst.
const (
	Compromised Level = iota
	Unsigned
	Unverified
	ProvenanceFail
	Verified
)

// String returns the name of the protocol.
func (l Level) String() string {
	switch l {
	case Unsigned:
		return "UNSIGNED"
	case Unverified:
		return "UNVERIFIED"
	case ProvenanceFail:
		return "PROVENANCE_FAIL"
	case Verified:
		return "VERIFIED"
	}
	return "COMPROMISED"
}

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// rank orders levels: failed provenance is worse than none at all.
func (l Level) rank() int {
	switch l {
	case ProvenanceFail:
		return 1
	case Unsigned:
		return 2
	case Unverified:
		return 3
	case Verified:
		return 4
	}
	return 0
}

// Weaker reports whether l is believed less than other.
func (l Level) Weaker(other Level) bool { return l.rank() < other.rank() }

// Action is what a verdict asks for. The zero value denies.
type Action uint8

// Actions from the strictest to the loosest. Confirm means: ask if the call has,
// or may have, an effect beyond reading that this run's sandbox does not prevent.
const (
	Deny Action = iota
	Confirm
	Allow
)

// String returns the name used in policies and records.
func (a Action) String() string {
	switch a {
	case Confirm:
		return "confirm"
	case Allow:
		return "allow"
	}
	return "deny"
}

// MarshalText implements encoding.TextMarshaler.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Subject is what a verdict is about.
type Subject uint8

// Subjects: the bytes that run, and the document about them.
const (
	Tool Subject = iota
	Metadata
)

// String returns the name used in plans and records.
func (s Subject) String() string {
	if s == Metadata {
		return "metadata"
	}
	return "tool"
}

// MarshalText implements encoding.TextMarshaler.
func (s Subject) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Verdict is the answer about one subject.
type Verdict struct {
	Subject Subject `json:"subject"`
	Level   Level   `json:"level"`
	Reason  string  `json:"reason"`
	// Stage is where it was decided: policy, artifact, bundle, root, verify or
	// provenance.
	Stage  string   `json:"stage,omitempty"`
	Action Action   `json:"action"`
	Caps   []string `json:"caps,omitempty"`
	Part   string   `json:"part,omitempty"` // path of the chain part that set the action
	// Evidence is what was proven; nil if nothing was looked at.
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Combine judges a chain: its weakest level, its strictest action, and the reason
// of the first part that set the action. Without verdicts it denies.
func Combine(verdicts ...Verdict) Verdict {
	if len(verdicts) == 0 {
		return Verdict{Reason: "nothing_judged"}
	}
	out := verdicts[0]
	for _, v := range verdicts[1:] {
		level := out.Level
		if v.Level.Weaker(level) {
			level = v.Level
		}
		if v.Action < out.Action {
			caps := out.Caps
			out = v
			out.Caps = caps
		}
		out.Level = level
	}
	return out
}

// DeniedError says that trust alone refuses a run.
type DeniedError struct {
	Verdict Verdict
	Place   string
	Digest  string
}

// Err returns the refusal of a verdict that denies, nil otherwise.
func (v Verdict) Err(id Identity) error {
	if v.Action != Deny {
		return nil
	}
	return &DeniedError{Verdict: v, Place: id.Place, Digest: id.Digest}
}

func (e *DeniedError) Error() string {
	return "executable \"" + e.Place + "\" is not trusted: " + e.Verdict.Level.String() + " (" + e.Verdict.Reason + ")"
}

// FaultCode implements fault.Coded.
func (e *DeniedError) FaultCode() string { return errcode.NotTrusted }

// FaultDetails implements fault.Coded.
func (e *DeniedError) FaultDetails() map[string]any {
	return map[string]any{"level": e.Verdict.Level.String(), "reason": e.Verdict.Reason, "subject": e.Verdict.Subject.String(),
		"digest": e.Digest, "place": e.Place, "part": e.Verdict.Part}
}
