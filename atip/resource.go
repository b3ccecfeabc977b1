package atip

// Access is what a call does to a resource; a set of bits.
type Access uint8

// Access bits.
const (
	AccessRead Access = 1 << iota
	AccessWrite
	AccessDelete
	AccessExec
	AccessSecret
)

// String lists the bits, comma-separated, "none" for zero.
func (a Access) String() string {
	out := ""
	for i, name := range [...]string{"read", "write", "delete", "exec", "secret"} {
		if a&(1<<i) != 0 {
			if out != "" {
				out += ","
			}
			out += name
		}
	}
	if out == "" {
		return "none"
	}
	return out
}

// MarshalText implements encoding.TextMarshaler.
func (a Access) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Class groups paths by what harm touching them does. The zero value is the
// unclassified path, which policies treat as ClassOutside.
type Class uint8

// Path classes, in the order in which the first match wins.
const (
	ClassUnknown Class = iota
	ClassPolicySelf
	ClassDevice
	ClassSecret
	ClassStartup
	ClassRoot
	ClassWorkspaceVCS
	ClassWorkspaceRegenerable
	ClassWorkspaceTracked
	ClassWorkspace
	ClassTmp
	ClassSystem
	ClassOutside
)

var classNames = [...]string{"unknown", "policy-self", "device", "secret", "startup", "root", "workspace-vcs",
	"workspace-regenerable", "workspace-tracked", "workspace", "tmp", "system", "outside"}

// String returns the name used in policies and plans.
func (c Class) String() string { return classNames[c] }

// MarshalText implements encoding.TextMarshaler.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// ClassByName is the inverse of Class.String.
func ClassByName(name string) (Class, bool) {
	for i, n := range classNames {
		if n == name {
			return Class(i), true
		}
	}
	return 0, false
}

// Resource is one thing a call touches. Resolve fills Kind, Value and Access;
// Abs and Class need the file system and are filled by internal/effects.
type Resource struct {
	Kind      string `json:"kind"` // path, url, host, ref, db
	Value     string `json:"value"`
	Abs       string `json:"abs,omitempty"`
	Access    Access `json:"access"`
	Recursive bool   `json:"recursive,omitempty"`
	Class     Class  `json:"class"`
	Scheme    string `json:"scheme,omitempty"`
	Host      string `json:"host,omitempty"`
	Why       string `json:"why,omitempty"` // "argv[2]", "-o"
}
