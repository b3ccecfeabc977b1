package trust

// Level is how far a subject is believed: the five levels of ATIP 0.6. They are
// not ordered by their numbers; use Weaker.
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

// Action is what a verdict asks for. The zero value denies.
type Action uint8

// Actions from the strictest to the loosest.
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
	Subject Subject  `json:"subject"`
	Level   Level    `json:"level"`
	Reason  string   `json:"reason"`
	Stage   string   `json:"stage,omitempty"` // policy, artifact, bundle, root, verify, provenance
	Action  Action   `json:"action"`
	Caps    []string `json:"caps,omitempty"`
	Part    string   `json:"part,omitempty"` // path of the chain part that set the action
}

// Facts are what is known about a subject. The zero value means that nothing was
// found and nothing was verified.
type Facts struct{ Subject Subject }

// Policy is the "trust" object of a policy.
type Policy struct {
	RequireTool      bool
	RequireMetadata  bool
	MinimumSLSALevel int
	Pins             map[string][]string // name or path: sha256 hex digests
	Revoked          []string
}

// Decide is the pure decision: the same facts and policy always give the same
// verdict.
func Decide(f Facts, p Policy) Verdict {
	return Verdict{Subject: f.Subject, Reason: "undecided"}
}

// Evaluate collects the facts about the file of an identity, without any
// signature look-up.
func Evaluate(id Identity, p Policy) Facts { return Facts{} }

// Judge decides about every part of the chain and returns the weakest level with
// the strictest action.
func Judge(id Identity, p Policy) Verdict { return Decide(Evaluate(id, p), p) }
