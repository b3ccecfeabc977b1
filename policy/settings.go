package policy

import (
	"time"

	"github.com/atip-dev/atip-exec/trust/signer"
)

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
