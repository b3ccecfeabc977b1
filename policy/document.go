package policy

import (
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/trust/signer"
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
	name     string
	base     string
	switches map[string]bool
	rules    []rule
	dflt     *Action
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

// dangerKeys are the effects that need a grant. Reversible stands for
// irreversible; the other effects gate nothing unless a rule names them.
const dangerKeys = atip.Set(1<<atip.Write | 1<<atip.Delete | 1<<atip.Network | 1<<atip.Destructive |
	1<<atip.Reversible | 1<<atip.Billable | 1<<atip.SecretRead | 1<<atip.Privileged |
	1<<atip.Persistence | 1<<atip.RemoteMutation | 1<<atip.ExecOpaque)

// dangerByKey finds a danger key by its name in policies.
func dangerByKey(key string) (atip.Effect, bool) {
	if key == "irreversible" {
		return atip.Reversible, true
	}
	e, ok := atip.EffectByKey(key)
	if !ok || !dangerKeys.Has(e) || e == atip.Reversible {
		return 0, false
	}
	return e, true
}

// dangerName is the inverse of dangerByKey.
func dangerName(e atip.Effect) string {
	if e == atip.Reversible {
		return "irreversible"
	}
	return e.String()
}

// rule is one rule of any layer. A rule made from an ATIP form is an ordinary one.
type rule struct {
	id        string
	decision  Action
	when      when
	unless    []when
	grants    atip.Set
	floor     Action // restrictive: how far a lower layer may lift it
	lifts     []string
	onUnknown Action // a deny that is only maybe
	reason    string
	suggest   string
	expires   time.Time
	match     []example
	notMatch  []example

	// notDeclared: an allow rule does not cover these effects when the metadata
	// says yes, although it may grant them where they are merely unknown.
	notDeclared atip.Set

	// Of the built-in document only.
	sw            []string // the switches that must all be on for this allow rule
	unlessAllowed []string // built-in allow rules that cancel this row; "*" for any
	needsDigest   bool     // lifted only by a rule that names the executable's digest

	form      bool // made from an ATIP form, which may stand in a document twice
	layer     Layer
	file      string
	line, col int
}

// name is how a rule is shown: layer/id.
func (r *rule) name() string { return r.layer.String() + "/" + r.id }

// when is a condition; the zero value holds for every step. All that is set must hold.
type when struct {
	tool           []string
	toolNotIn      []string // delegation.allowedTools; nil means not set
	command        [][]string
	option         []optionCond
	effects        []effectCond
	anyEffect      atip.Set
	path           *pathCond
	host           []hostPattern
	level          []string
	reason         []string
	rankBelow      *atip.Rank
	rankAtLeast    *atip.Rank
	metadata       []string
	confidence     []Confidence
	edge           []EdgeKind
	unknownOptions *bool
	cwd            []string
	ci             *bool
	delegated      *bool
	agent          []string
	code           []CodeKind
	known          *bool
	confined       *bool
	trackedClean   *bool
	undo           *Undo
	declared       *bool
}

type optionCond struct {
	name  string // without dashes
	any   bool   // present, whatever its value
	value string // glob
}

type effectCond struct {
	effect atip.Effect
	value  bool
}

// pathCond is about paths. In a restrictive rule some path must satisfy it, in an
// allow rule every path that is written, deleted or executed.
type pathCond struct {
	class     classes
	glob      []string
	access    atip.Access // zero: any
	recursive bool        // the act reaches everything below
	in        string      // "workspace": below it
	notIn     string      // "workspace": not below it
	named     bool        // allow: at least one such path must be named in the call
}

// classes is a set of path classes; zero means any.
type classes uint32

func (m classes) has(c atip.Class) bool { return m&(1<<c) != 0 }

const workspaceClasses = classes(1<<atip.ClassWorkspace | 1<<atip.ClassWorkspaceTracked |
	1<<atip.ClassWorkspaceRegenerable | 1<<atip.ClassWorkspaceVCS)

// scratchClasses is where an allow rule that names no path may write.
const scratchClasses = workspaceClasses | 1<<atip.ClassTmp

// example is a command with which a rule is tested when its document is loaded.
type example struct {
	command   string
	argv      []string // if it is one
	cwd       string   // below or beside the imaginary workspace; "" for it
	effects   []statedEffect
	rank      *atip.Rank // of what is stated
	line, col int
}

// statedEffect is an effect that an example says its command has.
type statedEffect struct {
	effect atip.Effect
	value  atip.Value
}

// Allowlist is the demand of a document that only files which a registry approves run.
type Allowlist struct {
	File     string
	Layer    Layer
	Registry string // address of the registry, "" where the document does not name one
}

// Allowlists lists the demands in force. Each must be met: one registry's approval says
// nothing about another's.
func (s *Set) Allowlists() []Allowlist {
	var out []Allowlist
	for _, d := range s.docs {
		if d.allowlist {
			out = append(out, Allowlist{File: d.source.File, Layer: d.source.Layer, Registry: d.registry})
		}
	}
	return out
}

// PathRule is a path a document names, with the place where it does.
type PathRule struct {
	Path  string
	File  string
	Line  int
	Col   int
	Layer Layer
}

// SandboxPolicy is the merged sandbox object.
type SandboxPolicy struct {
	Tier         string   // "", "T1" to "T3"
	Require      []string // guarantees: the union
	Accept       []string // gaps that may remain
	Confine      string   // "" (kernel) or "none"
	Read         []PathRule
	Write        []PathRule
	Exec         []PathRule
	Sockets      []PathRule
	Devices      []PathRule
	DeleteStrict bool
	Workspace    string
	WorkspaceAt  string // file:line:column
	Tmp          string // "", "run", "host"
	ProtectCI    bool
	ProtectAllow []PathRule
	SecretFiles  []PathRule
	EnvFiles     string // "", "network", "mask", "allow"
	Observe      string // "" (off), "auto", "on", "off"
	Gate         string // "" (auto), "auto", "off"
	Trace        string // "" (where no starts are decided), "own", "off"
}

// OutputPolicy is the merged output object. Redact holds the redact objects of
// the documents as they stand, outermost layer first.
type OutputPolicy struct {
	MaxBytes     int64 // 0: no limit
	Binary       string
	Placeholders string
	Redact       []RawPart
}

// RawPart is one document's object, for the package that owns its meaning.
type RawPart struct {
	Layer Layer

	TightensOnly bool // of a user's document that may not loosen
	File         string
	Line         int
	Col          int
	JSON         []byte
}

// EnvPolicy is the merged env object.
type EnvPolicy struct {
	Pass []string // names, or prefixes ending in *
	Drop []string
	Set  map[string]string
}

// LimitsPolicy is the merged limits object; zero means no limit set.
type LimitsPolicy struct {
	Timeout   time.Duration
	Grace     time.Duration
	OpenFiles int
	Processes int
	Memory    int64
	FileSize  int64
	Shm       int64
	CPU       time.Duration
	Nice      int
}

// ProcessPolicy is the merged process object.
type ProcessPolicy struct {
	Caps      []string
	Leftovers string // "", "keep"
	Askpass   string
	Umask     int // bits to add
}

// NetworkPolicy is the merged network object.
type NetworkPolicy struct {
	Allow    []string
	Deny     []string
	Private  []string
	Forward  []string
	Upstream string
}

// PathsPolicy is the merged paths object: globs that extend two path classes.
type PathsPolicy struct {
	Secret    []PathRule
	Protected []PathRule
}

// TrustPolicy is the merged trust object.
type TrustPolicy struct {
	RequireMetadata  bool
	RequireTool      bool
	Signers          []signer.Signer   // of the layers that may add: managed and user
	SignersSet       bool              // this document names some, if only none
	SignerFilters    [][]signer.Signer // of each layer that only tightens
	Builders         []signer.Builder
	MinimumSLSALevel int
	Pins             map[string][]string // name or path: "sha256:..."
	ExpectationsOff  bool
	DistroTrust      string
	MaxRootAge       time.Duration
	MaxStateAge      time.Duration
	Revoked          []string // "sha256:..."
	RevokedSigners   []signer.Revocation
	OnUnsigned       string // "" (the verdict's own), allow, confirm, deny
	OnUnverified     string
	Scripts          string // "", "path", "descriptor"
	SystemPaths      []string
	SystemPathsSet   bool
	Recheck          string
}

// ApprovalPolicy is the merged approval object.
type ApprovalPolicy struct {
	Approvers []Approver
	MinLevel  map[string]int
	MaxAge    time.Duration // how long a grant of any kind counts at most; 0: as long as its kind
	Command   string
	Lock      string
	LockKeys  []string
	// LockApplies says that approvals.lock counts on this machine, which is a CI runner.
	LockApplies bool
}

// Approver is a key that may sign grants.
type Approver struct {
	ID    string
	Key   string
	Level int
	Layer Layer
}
