package policy

import "github.com/atip-dev/atip-exec/atip"

// Decision is the outcome for a request. Its zero value denies and grants nothing.
type Decision struct {
	Action  Action         `json:"action"`
	Steps   []StepDecision `json:"steps"`
	Reasons []Reason       `json:"reasons"`
	Grants  Grants         `json:"grants"`
	Lifted  []Lift         `json:"lifted,omitempty"`
	// Warnings are about this request; those about documents are the Set's.
	Warnings []string `json:"warnings,omitempty"`
	// Trust is set if the verdict on an executable alone denies (E2101).
	Trust bool `json:"trust,omitempty"`
	// Alternatives are ways to reach the same without asking, such as running the
	// steps separately. They never say how to approve.
	Alternatives []string `json:"alternatives,omitempty"`
}

// StepDecision is the outcome for one step.
type StepDecision struct {
	Action Action                      `json:"action"`
	Values [atip.NumEffects]atip.Value `json:"-"` // effects as believed under the final grants
	Danger atip.Set                    `json:"-"` // effects that are or may be dangerous
	Grants atip.Set                    `json:"-"`
	Rules  []string                    `json:"rules"` // the rules that decided, layer/id
	Lifted []Lift                      `json:"lifted,omitempty"`
}

// Reason is one rule's part in the decision.
type Reason struct {
	Rule    string `json:"rule"` // layer/id
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Col     int    `json:"col,omitempty"`
	Action  Action `json:"action"`
	Maybe   bool   `json:"maybe,omitempty"` // it rests on an effect that is unknown
	Text    string `json:"text"`
	Suggest string `json:"suggest,omitempty"`
	Step    int    `json:"step"`
}

// Lift records that an allow rule of a lower layer set a restrictive rule aside.
type Lift struct {
	Rule string `json:"rule"`
	By   string `json:"by"`
}

// NetMode is how much network the whole run gets.
type NetMode uint8

// Network modes in ascending order.
const (
	NetNone      NetMode = iota
	NetLoopback          // a loopback of its own, nothing of the host
	NetAllowlist         // the hosts listed
	NetFull
)

// String returns the mode's name.
func (m NetMode) String() string { return [...]string{"none", "loopback", "allowlist", "full"}[m] }

// MarshalText implements encoding.TextMarshaler.
func (m NetMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Grants is the union of what all steps may do: one string is one sandbox. For a
// Confirm it is what an approval would cover; for a Deny it is empty.
type Grants struct {
	Effects atip.Set        `json:"-"`
	Paths   []atip.Resource `json:"paths,omitempty"`
	Hosts   []string        `json:"hosts,omitempty"`
	Net     NetMode         `json:"net"`
	// NetKnown: whoever gets network is a known tool. Only then may a sandbox that
	// cannot tell hosts apart turn an allowlist into full network.
	NetKnown bool `json:"netKnown,omitempty"`
}
