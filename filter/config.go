package filter

// BinaryMode says what happens to binary stretches of a stream. Greater
// is stricter.
type BinaryMode uint8

// Binary modes.
const (
	BinaryPass      BinaryMode = iota // known values, keys and tokens become placeholders, as in text
	BinaryMaskKnown                   // they become asterisks of the same length
	BinaryBlock                       // stretches are discarded, a line says how much
)

// String returns the name used in policies.
func (m BinaryMode) String() string { return [...]string{"pass", "mask-known", "block"}[m] }

// BinaryModeByName is the inverse of BinaryMode.String.
func BinaryModeByName(name string) (BinaryMode, bool) {
	switch name {
	case "pass":
		return BinaryPass, true
	case "mask-known":
		return BinaryMaskKnown, true
	case "block":
		return BinaryBlock, true
	}
	return BinaryBlock, false
}

// Allow names a finding that is let through, with the reason an audit shows.
type Allow struct {
	SHA256 string `json:"sha256,omitempty"` // lower-case hex digest of the whole found value
	Rule   string `json:"rule,omitempty"`   // or a rule,
	Tool   string `json:"tool,omitempty"`   // for this tool
	Reason string `json:"reason"`
}

// Rule is a row of the rule table, as user policy may add. The fields are those
// of filter/rules/*.jsonc.
type Rule struct {
	ID         string   `json:"id"`
	Vendor     string   `json:"vendor,omitempty"`
	Confidence string   `json:"confidence,omitempty"`
	Prefix     []string `json:"prefix,omitempty"`
	Names      []string `json:"names,omitempty"`    // in place of Prefix: words of the name left of the value
	Lookback   []Shape  `json:"lookback,omitempty"` // what stands before the prefix and belongs to the token
	Regex      string   `json:"regex,omitempty"`    // in place of Body: RE2 for prefix and body
	Left       string   `json:"left,omitempty"`     // word (default), start, digits, any
	Body       []Shape  `json:"body,omitempty"`
	Alphabet   string   `json:"alphabet,omitempty"` // the marks that the issuer's form has in the last run of the body
	End        string   `json:"end,omitempty"`
	Need       Need     `json:"need,omitzero"`
	Check      string   `json:"check,omitempty"`
	Ref        string   `json:"ref,omitempty"`
	Examples   []string `json:"examples"`
	Counter    []string `json:"counter"`
}

// Shape is one part of a rule's body: a literal, Min to Max bytes of a set, or one of Any.
type Shape struct {
	Set string  `json:"set,omitempty"`
	Min int     `json:"min,omitempty"`
	Max int     `json:"max,omitempty"`
	Lit string  `json:"lit,omitempty"`
	Opt bool    `json:"opt,omitempty"`
	Any []Shape `json:"any,omitempty"` // literals and sets; the longest counts
}

// Need is what the first bytes of a body must show besides their alphabet.
type Need struct {
	Distinct int `json:"distinct,omitempty"`
	Digits   int `json:"digits,omitempty"`
}

// Config is what policy says about output. The zero Config redacts everything.
type Config struct {
	Tool         string // resolved metadata name; "" if its executable lies in the workspace
	Disabled     bool   // user or managed policy switched redaction off
	Binary       BinaryMode
	Rules        []Rule   // in addition to the built-in ones
	DisableRules []string // ids, for the tool of this run
	Names        []string // globs of further secret names, such as "*_SIGNING_SALT"
	Allow        []Allow
	KeepFindings bool // Report.Findings, for `atip redact`
	NoMemory     bool // do not learn found values, for `atip redact --records`
}

// Error is a rule or configuration that cannot be used.
type Error struct {
	Code   string // E1501 configuration
	Rule   string
	Reason string
}

func (e *Error) Error() string {
	if e.Rule == "" {
		return "redaction: " + e.Reason
	}
	return "redaction rule " + e.Rule + ": " + e.Reason
}

// FaultCode implements fault.Coded.
func (e *Error) FaultCode() string { return e.Code }

// FaultDetails implements fault.Coded.
func (e *Error) FaultDetails() map[string]any {
	return map[string]any{"rule": e.Rule, "reason": e.Reason}
}
