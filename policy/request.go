package policy

import (
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

// Request is everything a decision depends on besides the policy itself.
type Request struct {
	Steps   []Step
	Edges   []Edge
	Enforce Enforce // what THIS run can enforce; zero: nothing
	Agent   string
	Session string
	// Delegated says that the caller runs under a lead agent's restrictions.
	Delegated bool
	CI        bool
	Workspace string // real path; "" if there is none
	Cwd       string
	Chain     []Restrict // the blocks of a delegation, outermost first
	Ceiling   *Ceiling   // of the script that runs, nil for none
	// BillableLeft is how many billable calls the budget still permits. Zero makes
	// every billable call ask, whatever the rules say.
	BillableLeft int
	// Now is compared with the expiry of allow rules; if it is zero, every rule
	// that expires has expired.
	Now time.Time
}

// Enforce is what the kernel will hold a child to in this run.
type Enforce struct {
	Files        bool // writes and reads only where granted
	Net          bool // no network unless granted
	DeleteStrict bool // no removal at all unless delete is granted
	Secrets      bool // credential files unreadable, credential variables scrubbed
}

// Full reports whether both files and network are enforced, which is what the
// built-in allow rules for code of the workspace rest on.
func (e Enforce) Full() bool { return e.Files && e.Net }

// Confidence says how well the words of a step are known before the tool's
// metadata is asked. The zero value, Opaque, has every effect unknown.
type Confidence uint8

// Degrees of confidence in ascending order.
const (
	Opaque  Confidence = iota // the command itself is not known
	Bounded                   // the words are an upper bound
	Exact                     // a plain argv
)

// String returns the name used in policy documents.
func (c Confidence) String() string { return [...]string{"opaque", "bounded", "exact"}[c] }

// MarshalText implements encoding.TextMarshaler.
func (c Confidence) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// CodeKind says whose code a step runs besides the tool's own.
type CodeKind uint8

// Kinds of code. CodeOpaque is for text that could not be known at all, such as
// "python -c "$X"": it is never treated as the workspace's.
const (
	CodeNone    CodeKind = iota
	CodeProject          // files of the workspace: scripts, tests, builds, hooks, an executable in it
	CodeInline           // program text in the argv of an interpreter the built-in metadata knows
	CodeOpaque           // anything else that runs
)

// String returns the name used in policy documents.
func (k CodeKind) String() string { return [...]string{"none", "project", "inline", "opaque"}[k] }

// MarshalText implements encoding.TextMarshaler.
func (k CodeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Step is one command of a request: a plain argv has one, a shell string several.
type Step struct {
	Call       atip.Call
	Via        []string // wrappers around it, outermost first: "env", "timeout"
	Cwd        string   // "" means the request's
	File       FileFacts
	Trust      TrustFacts
	Confidence Confidence
	RunsCode   CodeKind
	// Entitled lists absolute paths of credential files this tool may read: those
	// its metadata declares, at a rank that may declare them.
	Entitled []string
	Hosts    []HostUse
	// ServiceHosts are the hosts behind HostService, as its metadata lists them; empty if
	// it does not.
	ServiceHosts []string
	// TrackedClean: every tracked file the step deletes is as in the index.
	TrackedClean bool
	// Declared: the step fetches what the project declares, in a directory of its own, from the
	// registry of its tool, and neither starts nor sees code of the project.
	Declared bool
	// Undo says how far what it does can be taken back; Lost names what would not come
	// back, a few of them.
	Undo Undo
	Lost []string
	// NestedTools names the tools of commands inside this one which are not steps
	// of their own.
	NestedTools []string
}

// FileFacts is what is known about the executable of a step.
type FileFacts struct {
	Canonical   string // resolved path
	Place       string // path through which it was found
	Digest      string // sha256, hex
	InWorkspace bool
	Believed    bool
	SystemPath  bool
	// Names holds further names of the same file: those of [Set.NamedFiles] that lead to its
	// inode, the name its metadata gives it.
	Names []string
}

// TrustFacts is the verdict on the executable. Its zero value denies.
type TrustFacts struct {
	Level  string // VERIFIED, UNVERIFIED, UNSIGNED, PROVENANCE_FAIL, COMPROMISED
	Reason string
	Action Action
}

// HostKind groups hosts by what connecting to them means.
type HostKind uint8

// Kinds of host. The zero value, HostPublic, is any host the caller chose.
const (
	HostPublic   HostKind = iota
	HostNamed             // one that configuration names, such as a git remote
	HostService           // the tool's own service, not named in the call
	HostLoopback          // this machine
	HostPrivate           // RFC 1918, link local, unique local
	HostMetadata          // a cloud's metadata address
)

// String returns the name used in policy documents.
func (k HostKind) String() string {
	return [...]string{"public", "named", "service", "loopback", "private", "metadata"}[k]
}

// MarshalText implements encoding.TextMarshaler.
func (k HostKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// HostUse is one host a step may talk to. HostUseOf classifies a literal.
type HostUse struct {
	Host string   `json:"host,omitempty"`
	Port int      `json:"port,omitempty"` // 0: the scheme's
	Kind HostKind `json:"kind"`
}

// EdgeKind is a flow of data between two steps that is dangerous as a whole.
type EdgeKind uint8

// Kinds of flow. The zero value is a flow of unknown meaning, which asks.
const (
	EdgeUnknown EdgeKind = iota
	NetworkToCode
	DecodedToCode
	WrittenToCode
	SecretToNetwork
	SocketShell
	ForkBomb
)

// String returns the name used in policy documents.
func (k EdgeKind) String() string {
	return [...]string{"unknown", "network-code", "decoded-code", "written-code", "secret-network", "socket-shell", "fork-bomb"}[k]
}

// MarshalText implements encoding.TextMarshaler.
func (k EdgeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Edge is a flow from one step into another; the indices are into Steps.
type Edge struct {
	From, To int
	Kind     EdgeKind
}

// Restrict is one block of a delegation. It can only narrow.
type Restrict struct {
	Profile            string
	Default            string // "confirm" or "deny"; "" leaves it
	AllowedTools       []string
	DeniedCommands     []string
	EffectRestrictions map[string]bool
	Hosts              []string // if not nil, no other host
	Paths              []string // if not nil, writes only below these
}
