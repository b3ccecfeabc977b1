package policy

import (
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

// Source is the text of one policy document and where it stands.
type Source struct {
	File    string
	Raw     []byte
	Layer   Layer
	Trusted bool // a project's document that a person has trusted, unchanged since

	// TightensOnly: a user's document that lies where whoever starts us can put it, under
	// a managed policy that wants it in the account's home directory.
	TightensOnly bool
}

// Document is one parsed policy document.
type Document struct {
	source    Source
	version   int
	profile   string
	profileAt at
	switchAt  map[string]at

	hasProfile bool // also of one whose name is empty, which there is none of
	profiles   []profile
	switches   map[string]bool
	rules      []rule
	dflt       *Action
	ceiling    *ceiling

	// withhold are effects a delegation forbids that the kernel can forbid too:
	// no rule's grants contain them.
	withhold atip.Set

	network           networkDoc
	paths             PathsPolicy
	budgets           Budgets
	analysis          Analysis
	undo              undoDoc
	sandbox           sandboxDoc
	approval          ApprovalPolicy
	belief            []beliefCond
	trust             TrustPolicy
	output            outputDoc
	env               EnvPolicy
	limits            LimitsPolicy
	process           ProcessPolicy
	delegable         *Delegable
	credentials       string // delegation.credentials: "", withhold, pass
	credentialsAt     at
	userConfigAccount bool
	userConfigAt      at
	allowlist         bool   // only what a registry approves may run
	registry          string // address of that registry, "" if not stated

	digest   string
	warnings []string
}

// at is a place in a document.
type at struct{ line, col int }

// profile is a named set of switches, rules and a default.
type profile struct {
	name      string
	base      string
	switches  map[string]bool
	rules     []rule
	dflt      *Action
	line, col int
}

// ceiling bounds what the layers below may loosen.
type ceiling struct {
	allow                              *atip.Set // effects they may grant; nil: any
	switches                           []string  // switches they may turn on; nil: any
	profiles                           []string
	lifts                              []string
	hasSwitches, hasProfiles, hasLifts bool
}

type beliefCond struct {
	effect atip.Effect
	rank   atip.Rank
}

// Delegable is the most a delegation may carry.
type Delegable struct {
	Tools, Effects, Hosts, Paths []string
	MaxDepth                     int
	MaxTTL                       time.Duration
}

// Analysis holds limits for reading shell strings; zero leaves the built-in one.
type Analysis struct {
	MaxBytes, MaxNodes, MaxSteps, MaxNesting, MaxUnroll int
}

// Budgets is the merged budgets object.
type Budgets struct {
	Billable       Budget
	RemoteMutation Budget
	Rate           map[string]string // tool: "60/m"
}

// Budget is at most Max calls within Window. Without one, Set is false.
type Budget struct {
	Set    bool
	Max    int
	Window time.Duration
}

// File is the name the document was read under.
func (d *Document) File() string { return d.source.File }

// UserConfigAccount reports that the document wants a user's policy to lie below the home
// directory of the account, and is one that may say so.
func (d *Document) UserConfigAccount() bool {
	return d.userConfigAccount && d.source.Layer == LayerManaged
}

// Layer is the layer the document speaks for.
func (d *Document) Layer() Layer { return d.source.Layer }

// Digest is the sha256 of the document's text, in hexadecimal.
func (d *Document) Digest() string { return d.digest }

// ParseError says what is wrong with a document and where. Line and Col are 1-based.
type ParseError struct {
	Code string // E2040 malformed, E2042 failing example, E2043 loosens where it may not
	File string
	Line int
	Col  int
	Msg  string

	fix, example string // a better next step than that of the code
}

// Error implements error.
func (e *ParseError) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return position(e.File, e.Line, e.Col) + ": " + e.Msg
}

// FaultCode is the stable code of the error table.
func (e *ParseError) FaultCode() string { return e.Code }

// FaultDetails implements the error table's interface.
func (e *ParseError) FaultDetails() map[string]any {
	return map[string]any{"file": e.File, "line": e.Line, "col": e.Col}
}

// FaultFix implements the error table's interface for a next step.
func (e *ParseError) FaultFix() (fix, example string) { return e.fix, e.example }
