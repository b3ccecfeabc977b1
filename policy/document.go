package policy

import (
	_ "embed"
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

// DangerName is the name of an effect in policies, plans and grants: "irreversible" for Reversible.
func DangerName(e atip.Effect) string {
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

// The built-in policy is static data: it costs nothing at start. It is a document
// of the policy language all the same: builtin.json.
//
// Allow rows are the only way to run without asking. Confirm rows say why a call
// that no allow row covers asks, and what a user's own rule would lift; they are
// cancelled by any allow row that covers the whole call, so that the switches
// decide between the two. Deny rows hold whatever the switches say.

const (
	fWrite       = atip.Set(1 << atip.Write)
	fDelete      = atip.Set(1 << atip.Delete)
	fNetwork     = atip.Set(1 << atip.Network)
	fDestructive = atip.Set(1 << atip.Destructive)
	fIrrevocable = atip.Set(1 << atip.Reversible)
	fBillable    = atip.Set(1 << atip.Billable)
	fSecretRead  = atip.Set(1 << atip.SecretRead)
	fPrivileged  = atip.Set(1 << atip.Privileged)
	fPersistence = atip.Set(1 << atip.Persistence)
	fRemote      = atip.Set(1 << atip.RemoteMutation)
	fOpaque      = atip.Set(1 << atip.ExecOpaque)

	// fCode is what code of the workspace may do. Whatever it deletes or destroys
	// lies in the workspace, because the kernel lets it reach nothing else.
	fCode = fWrite | fDelete | fDestructive | fIrrevocable | fOpaque

	cFiles  = classes(1<<atip.ClassWorkspace | 1<<atip.ClassWorkspaceTracked | 1<<atip.ClassWorkspaceRegenerable | 1<<atip.ClassTmp)
	cRegen  = classes(1<<atip.ClassWorkspaceRegenerable | 1<<atip.ClassTmp)
	cAway   = classes(1<<atip.ClassOutside | 1<<atip.ClassSystem | 1<<atip.ClassRoot)
	aModify = atip.AccessWrite | atip.AccessDelete
)

// These are pointed to by the tables below and never written.
var (
	yes       = true
	exactOnly = []Confidence{Exact}
	undone    = UndoYes
	anyAllow  = []string{"*"}
	documents = []string{"override", "native", "shim", "registry", "builtin", "user", "probe"}
	noDoc     = []string{"none"}

	fetching = []string{"network_read", "workspace_write"}
	// A service the call does not name, or one that configuration names.
	ownService = []hostPattern{{kind: HostService, isKind: true}, {kind: HostNamed, isKind: true}}

	// Tools that show what exists, not what is in it.
	listing = []string{"ls", "stat", "tree", "du", "test", "[", "realpath", "readlink", "dirname", "basename", "find", "fd", "eza", "exa", "lsd"}
	// Tools that change modes, owners or attributes of everything below a path.
	modes = []string{"chmod", "chown", "chgrp", "setfacl", "chattr", "chcon", "setfattr"}
	// Tools that destroy only what their arguments name. Another tool that says it is
	// destructive may mean something that is no file.
	removing = []string{"rm", "rmdir", "unlink", "shred", "find", "fd", "rimraf"}
	// Commands of git that change nothing but the work tree, the index and refs.
	undoableGit = [][]string{{"add"}, {"am"}, {"apply"}, {"branch"}, {"checkout"}, {"checkout-index"}, {"cherry-pick"}, {"clean"}, {"commit"}, {"merge"}, {"mv"}, {"notes", "remove"},
		{"read-tree"}, {"rebase"}, {"reset"}, {"restore"}, {"revert"}, {"rm"}, {"stash"}, {"submodule", "deinit"}, {"switch"}, {"tag"}, {"update-index"},
		{"update-ref"}, {"worktree", "remove"}}
	// Interpreters whose inline code does what it does itself; where a framework runs it, a
	// database may be meant.
	interpreters = []string{"python", "python3", "node", "perl", "ruby", "awk", "gawk", "mawk", "lua"}
	// Tools that overwrite or move single files, as a redirection does.
	placing = []string{"cp", "mv", "ln", "install", "tee", "touch", "mkdir"}
	// Tools that put another form of a file in its place.
	rewriting = []string{"gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd", "lz4", "ar", "ranlib", "strip",
		"black", "ruff", "isort", "yapf", "autopep8", "prettier", "gofmt", "goimports", "rustfmt", "clang-format", "shfmt"}
)

var builtinAllow = [...]rule{
	{id: "read", decision: Allow, when: when{confined: &yes, path: &pathCond{}},
		reason: "reads only"},
	{id: "read_known", decision: Allow, when: when{known: &yes, path: &pathCond{}},
		reason: "a known tool that reads only"},
	{id: "workspace_write", decision: Allow, sw: []string{"workspace_write"}, grants: fWrite,
		when:   when{confined: &yes, path: &pathCond{class: scratchClasses}},
		reason: "writes in the workspace only"},
	{id: "workspace_write_exact", decision: Allow, sw: []string{"workspace_write"}, grants: fWrite,
		when:   when{known: &yes, confidence: exactOnly, path: &pathCond{class: scratchClasses, named: true}},
		reason: "a known tool that writes in the workspace only"},
	{id: "workspace_copy", decision: Allow, sw: []string{"workspace_write"}, grants: fWrite | fDelete | fDestructive | fIrrevocable,
		when:   when{confined: &yes, tool: placing, path: &pathCond{class: cFiles, named: true}},
		reason: "copies or moves files of the workspace"},
	{id: "workspace_rewrite", decision: Allow, sw: []string{"workspace_write"}, grants: fWrite | fDelete | fDestructive | fIrrevocable,
		when:   when{confined: &yes, tool: rewriting, code: []CodeKind{CodeNone}, path: &pathCond{class: cFiles, access: atip.AccessRead, named: true}},
		reason: "formats or compresses files of the workspace"},
	{id: "git_local", decision: Allow, sw: []string{"git_local"}, grants: fWrite | fDelete | fOpaque, notDeclared: fOpaque,
		when:   when{confined: &yes, tool: []string{"git"}, path: &pathCond{class: scratchClasses}},
		reason: "local git that destroys nothing"},
	{id: "git_local_exact", decision: Allow, sw: []string{"git_local"}, grants: fWrite | fDelete,
		when: when{known: &yes, confidence: exactOnly, tool: []string{"git"}, code: []CodeKind{CodeNone},
			path: &pathCond{class: scratchClasses}},
		reason: "local git that destroys nothing and runs no hook"},
	{id: "regenerable_delete", decision: Allow, sw: []string{"regenerable_delete"}, grants: fWrite | fDelete | fDestructive | fIrrevocable,
		when:   when{confined: &yes, tool: removing, path: &pathCond{class: cRegen, named: true}},
		reason: "deletes only what can be built again"},
	{id: "regenerable_delete_exact", decision: Allow, sw: []string{"regenerable_delete"}, grants: fWrite | fDelete | fDestructive | fIrrevocable,
		when:   when{known: &yes, confidence: exactOnly, tool: removing, path: &pathCond{class: cRegen, named: true}},
		reason: "deletes only what can be built again"},
	{id: "undoable", decision: Allow, sw: []string{"undoable", "workspace_write"}, grants: fWrite | fDelete | fDestructive | fIrrevocable,
		when: when{confined: &yes, undo: &undone, metadata: documents, code: []CodeKind{CodeNone},
			path: &pathCond{class: cFiles, named: true}},
		reason: "what it deletes or overwrites in the workspace can be restored"},
	{id: "undoable_git", decision: Allow, sw: []string{"undoable", "git_local"}, grants: fWrite | fDelete | fDestructive | fIrrevocable | fOpaque, notDeclared: fOpaque,
		when: when{confined: &yes, undo: &undone, tool: []string{"git"}, command: undoableGit, code: []CodeKind{CodeNone, CodeProject},
			path: &pathCond{class: scratchClasses}},
		reason: "what local git changes can be restored"},
	{id: "undoable_inline", decision: Allow, sw: []string{"undoable", "inline_code"}, grants: fCode,
		when: when{confined: &yes, undo: &undone, tool: interpreters, metadata: documents, code: []CodeKind{CodeInline},
			path: &pathCond{class: scratchClasses}},
		reason: "what inline code does in the workspace can be restored"},
	{id: "project_code", decision: Allow, sw: []string{"project_code"}, grants: fCode, notDeclared: fDestructive,
		when:   when{confined: &yes, code: []CodeKind{CodeProject}, path: &pathCond{class: scratchClasses}},
		reason: "code of the workspace, held to it without network"},
	{id: "inline_code", decision: Allow, sw: []string{"inline_code"}, grants: fCode, notDeclared: fDestructive,
		when: when{confined: &yes, code: []CodeKind{CodeInline}, metadata: documents,
			path: &pathCond{class: scratchClasses}},
		reason: "inline code, held to the workspace without network"},
	{id: "network_read", decision: Allow, sw: []string{"network_read"}, grants: fNetwork,
		when: when{known: &yes, code: []CodeKind{CodeNone}, effects: []effectCond{{atip.RemoteMutation, false}},
			host: ownService},
		unless: installing,
		reason: "a known tool that reads from its own service"},
	{id: "network_fetch", decision: Allow, sw: fetching, grants: fNetwork | fWrite,
		when: when{known: &yes, confined: &yes, code: []CodeKind{CodeNone}, effects: []effectCond{{atip.RemoteMutation, false}},
			host: ownService, path: &pathCond{class: scratchClasses}},
		unless: installing,
		reason: "a known tool that fetches from its own service into the workspace"},
	{id: "network_fetch_exact", decision: Allow, sw: fetching, grants: fNetwork | fWrite,
		when: when{known: &yes, confidence: exactOnly, code: []CodeKind{CodeNone}, effects: []effectCond{{atip.RemoteMutation, false}},
			host: ownService, path: &pathCond{class: scratchClasses}},
		unless: installing,
		reason: "a known tool that fetches from its own service into the workspace"},
	{id: "undoable_pull", decision: Allow, sw: append([]string{"undoable"}, fetching...), grants: fNetwork | fWrite | fDelete | fDestructive | fIrrevocable,
		when: when{known: &yes, confined: &yes, undo: &undone, tool: []string{"git"}, command: [][]string{{"pull"}}, code: []CodeKind{CodeNone},
			effects: []effectCond{{atip.RemoteMutation, false}}, host: ownService, path: &pathCond{class: scratchClasses}},
		reason: "git that fetches from its own service, and what it rewrites here can be restored"},

	{id: "tracked_delete", decision: Allow, sw: []string{"tracked_delete"}, grants: fWrite | fDelete | fDestructive | fIrrevocable,
		when: when{trackedClean: &yes, confined: &yes, tool: removing,
			path: &pathCond{class: 1<<atip.ClassWorkspaceTracked | cRegen, named: true}},
		reason: "deletes tracked files that are as in the index"},
	{id: "loopback", decision: Allow, sw: []string{"loopback"}, grants: fNetwork | fWrite | fRemote,
		when: when{known: &yes, code: []CodeKind{CodeNone}, host: []hostPattern{{kind: HostLoopback, isKind: true}},
			path: &pathCond{class: scratchClasses}},
		// Docker, Kubernetes, its proxy, a browser's debugger, kubelet: each is
		// worth more than the service it stands beside.
		unless: []when{{host: []hostPattern{
			{kind: HostLoopback, isKind: true, port: 2375}, {kind: HostLoopback, isKind: true, port: 2376},
			{kind: HostLoopback, isKind: true, port: 6443}, {kind: HostLoopback, isKind: true, port: 8001},
			{kind: HostLoopback, isKind: true, port: 9222}, {kind: HostLoopback, isKind: true, port: 10250}}}},
		reason: "a service on this machine"},
	{id: "url_fetch", decision: Allow, sw: []string{"url_fetch"}, grants: fNetwork | fWrite,
		when: when{known: &yes, code: []CodeKind{CodeNone}, effects: []effectCond{{atip.RemoteMutation, false}},
			host: []hostPattern{{kind: HostPublic, isKind: true}}, path: &pathCond{class: scratchClasses}},
		reason: "fetches from a public host"},
	{id: "declared_dependencies", decision: Allow, sw: []string{"declared_dependencies"}, grants: fNetwork | fWrite | fDelete | fDestructive | fIrrevocable,
		when: when{declared: &yes, known: &yes, confined: &yes, code: []CodeKind{CodeNone}, effects: []effectCond{{atip.RemoteMutation, false}},
			host: ownService, path: &pathCond{class: scratchClasses}},
		reason: "fetches what the project declares, beside the project"},
	{id: "package_install", decision: Allow, sw: []string{"package_install"}, grants: fNetwork | fCode, notDeclared: 0,
		when: when{known: &yes, confined: &yes, tool: installers, command: installs,
			host: ownService,
			path: &pathCond{class: scratchClasses}},
		reason: "installs packages into the workspace"},
	{id: "unknown_tools", decision: Allow, sw: []string{"unknown_tools"}, grants: fCode, notDeclared: fDestructive,
		when:   when{confined: &yes, metadata: noDoc, path: &pathCond{class: scratchClasses}},
		reason: "an unknown tool, held to the workspace without network"},
	{id: "remote_change", decision: Allow, sw: []string{"remote_change"}, grants: fNetwork | fRemote | fWrite,
		when: when{known: &yes, code: []CodeKind{CodeNone},
			host: ownService,
			path: &pathCond{class: scratchClasses}},
		reason: "a remote change that destroys nothing"},
}

var (
	installers = []string{"npm", "pnpm", "yarn", "bun", "deno", "pip", "pip3", "uv", "poetry", "go", "cargo", "bundle", "composer", "gem"}
	installs   = [][]string{{"install"}, {"add"}, {"ci"}, {"get"}, {"fetch"}, {"sync"}, {"pip", "install"}, {"mod", "download"}, {"update"},
		{"mod", "tidy"}, {"work", "sync"}, {"download"}, {"wheel"}, {"lock"}}
	// Fetching packages is no reading: what comes is code that soon runs.
	installing = []when{{tool: installers, command: installs}}
)

var builtinConfirm = [...]rule{
	{id: "destructive", decision: Confirm, floor: Allow, unlessAllowed: anyAllow,
		when:   when{anyEffect: fDestructive | fIrrevocable | fDelete},
		unless: []when{{metadata: noDoc}},
		reason: "it may destroy data"},
	{id: "url", decision: Confirm, floor: Allow, unlessAllowed: anyAllow,
		when: when{anyEffect: fNetwork, host: []hostPattern{{kind: HostPublic, isKind: true},
			{kind: HostPrivate, isKind: true}, {kind: HostLoopback, isKind: true}}},
		reason: "it connects to a host that is not listed"},
	{id: "install", decision: Confirm, floor: Allow, unlessAllowed: anyAllow,
		when:   when{tool: installers, command: installs, anyEffect: fNetwork},
		reason: "it installs packages, which run code"},
	{id: "remote", decision: Confirm, floor: Allow, unlessAllowed: anyAllow,
		when: when{anyEffect: fRemote}, unless: []when{{metadata: noDoc}},
		reason: "it may change something on a remote service"},
	{id: "billable", decision: Confirm, floor: Allow, unlessAllowed: anyAllow,
		when: when{anyEffect: fBillable}, unless: []when{{metadata: noDoc}},
		reason: "it may cost money"},
	{id: "secret_tool", decision: Confirm, floor: Allow, unlessAllowed: anyAllow,
		when: when{anyEffect: fSecretRead}, unless: []when{{metadata: noDoc}},
		reason: "it may read stored secrets"},
	{id: "secret_list", decision: Confirm, floor: Allow,
		when:   when{tool: listing, path: &pathCond{class: 1 << atip.ClassSecret, access: atip.AccessRead}},
		reason: "it lists where secrets are kept"},
	{id: "secret_write", decision: Confirm, floor: Allow,
		when:   when{path: &pathCond{class: 1 << atip.ClassSecret, access: aModify, in: "workspace"}},
		reason: "it changes a file that holds secrets"},
	{id: "privileged", decision: Confirm, floor: Allow, unlessAllowed: anyAllow,
		when: when{anyEffect: fPrivileged}, unless: []when{{metadata: noDoc}},
		reason: "it asks for the rights of another user"},
	{id: "outside", decision: Confirm, floor: Allow, unlessAllowed: anyAllow,
		when:   when{path: &pathCond{class: cAway, access: aModify, notIn: "workspace"}},
		reason: "it writes or deletes outside the workspace"},
	{id: "opaque", decision: Confirm, floor: Allow, unlessAllowed: anyAllow,
		when:   when{anyEffect: fOpaque},
		reason: "what it runs cannot be known"},
	{id: "device_read", decision: Confirm, floor: Allow,
		when:   when{path: &pathCond{class: 1 << atip.ClassDevice, access: atip.AccessRead}},
		reason: "it reads a device"},
	{id: "self_read", decision: Confirm, floor: Allow,
		when:   when{path: &pathCond{class: 1 << atip.ClassPolicySelf, access: atip.AccessRead, notIn: "workspace"}},
		reason: "it reads the policy or the state that judges it"},
	{id: "edge", decision: Confirm, floor: Allow,
		when:   when{edge: []EdgeKind{EdgeUnknown, WrittenToCode}},
		reason: "one part of the command feeds another that runs it"},
	{id: "trust", decision: Confirm, floor: Allow, needsDigest: true,
		unlessAllowed: []string{"project_code", "inline_code", "unknown_tools"},
		when:          when{anyEffect: dangerKeys},
		reason:        "the executable has no trusted source"},
}

var builtinDeny = [...]rule{
	{id: "secret_read", decision: Deny, floor: Confirm, onUnknown: Confirm,
		when:   when{path: &pathCond{class: 1 << atip.ClassSecret, access: atip.AccessRead | atip.AccessExec | atip.AccessSecret}},
		unless: []when{{tool: listing}},
		reason: "it reads a file that holds secrets"},
	{id: "secret_replace", decision: Deny, floor: Confirm, onUnknown: Confirm,
		when:   when{path: &pathCond{class: 1 << atip.ClassSecret, access: aModify, notIn: "workspace"}},
		reason: "it changes a file that holds secrets"},
	{id: "persistence", decision: Deny, floor: Confirm, onUnknown: Confirm,
		when:   when{path: &pathCond{class: 1 << atip.ClassStartup, access: aModify}},
		reason: "it changes a file that runs by itself later or steers an agent"},
	{id: "persistence_effect", decision: Deny, floor: Confirm, onUnknown: Confirm,
		when: when{effects: []effectCond{{atip.Persistence, true}}}, unless: []when{{metadata: noDoc}},
		reason: "it arranges for something to run by itself later"},
	{id: "device", decision: Deny, floor: Confirm, onUnknown: Confirm,
		when:   when{path: &pathCond{class: 1 << atip.ClassDevice, access: aModify}},
		reason: "it writes to a device"},
	{id: "system", decision: Deny, floor: Confirm, onUnknown: Confirm,
		when:   when{effects: []effectCond{{atip.Privileged, true}, {atip.Destructive, true}}},
		unless: []when{{metadata: noDoc}},
		reason: "it destroys with the rights of another user"},
	{id: "system_tree", decision: Deny, floor: Confirm, onUnknown: Confirm,
		when:   when{path: &pathCond{class: 1 << atip.ClassSystem, access: atip.AccessDelete, recursive: true}},
		reason: "it deletes a whole directory of the system"},
	{id: "system_tree_mode", decision: Deny, floor: Confirm, onUnknown: Confirm,
		when:   when{tool: modes, path: &pathCond{class: 1 << atip.ClassSystem, access: aModify, recursive: true}},
		reason: "it changes modes throughout a directory of the system"},
	{id: "system_tree_move", decision: Deny, floor: Confirm, onUnknown: Confirm,
		when:   when{tool: []string{"mv"}, path: &pathCond{class: 1 << atip.ClassSystem, access: atip.AccessDelete}},
		reason: "it moves a part of the system away"},
	{id: "metadata_host", decision: Deny, floor: Confirm, onUnknown: Confirm,
		when:   when{host: []hostPattern{{kind: HostMetadata, isKind: true}}},
		reason: "it asks a cloud's metadata service for credentials"},
	{id: "remote_code", decision: Deny, floor: Confirm, onUnknown: Confirm,
		when: when{edge: []EdgeKind{NetworkToCode}}, reason: "it runs what it downloads, unseen"},
	{id: "decoded_code", decision: Deny, floor: Confirm, onUnknown: Confirm,
		when: when{edge: []EdgeKind{DecodedToCode}}, reason: "it runs what it decodes, unseen"},

	// Nothing lifts the rows below: no rule, no grant.
	{id: "root_tree", decision: Deny, onUnknown: Confirm,
		when: when{path: &pathCond{class: 1 << atip.ClassRoot, access: atip.AccessDelete, recursive: true}},
		// A search of the workspace deletes what it finds there, which may be little.
		unless: []when{{tool: []string{"find", "fd"}, path: &pathCond{in: "workspace"}}},
		reason: "it deletes a home, a workspace or the whole system"},
	{id: "root_tree_mode", decision: Deny, onUnknown: Confirm,
		when:   when{tool: modes, path: &pathCond{class: 1 << atip.ClassRoot, access: aModify, recursive: true}},
		reason: "it changes modes throughout a home, a workspace or the whole system"},
	{id: "root_tree_move", decision: Deny, onUnknown: Confirm,
		when:   when{tool: []string{"mv"}, path: &pathCond{class: 1 << atip.ClassRoot, access: atip.AccessDelete}},
		reason: "it moves a home, a workspace or the whole system away"},
	{id: "self", decision: Deny, onUnknown: Confirm,
		when:   when{path: &pathCond{class: 1 << atip.ClassPolicySelf, access: aModify}},
		reason: "it changes the policy or the state that judges it"},
	{id: "self_verbs", decision: Deny, onUnknown: Deny,
		when: when{tool: []string{"atip", "atip-exec"}, command: [][]string{{"approve"}, {"policy", "trust"},
			{"policy", "lock"}, {"policy", "init"}, {"trust"}, {"lock"}, {"pin"}, {"init"}}},
		reason: "only you may do this, on your own terminal"},
	{id: "exfil", decision: Deny, onUnknown: Confirm,
		when: when{edge: []EdgeKind{SecretToNetwork}}, reason: "it sends secrets over the network"},
	{id: "socket_shell", decision: Deny, onUnknown: Confirm,
		when: when{edge: []EdgeKind{SocketShell}}, reason: "it puts a shell on a socket"},
	{id: "fork_bomb", decision: Deny, onUnknown: Confirm,
		when: when{edge: []EdgeKind{ForkBomb}}, reason: "it starts itself without end"},
}

// BuiltinText is what Builtin stands for, as a document. A test writes it, and holds that it is
// what the tables say.
//
//go:embed builtin.json
var BuiltinText string

// builtinDigest is the sha256 of BuiltinText. It is written here so that no command
// computes it, and because a change of these tables should be seen: a test holds it.
const builtinDigest = "2c78d29bfb5219e1b67979928936c61fa511c55f2e1b067b351a0c660c19afa6"

// Builtin is the built-in policy, a document of the same language.
func Builtin() *Document {
	return &Document{source: Source{File: "builtin", Layer: LayerBuiltin}, version: 1, profile: shippedProfiles[0], digest: builtinDigest}
}
