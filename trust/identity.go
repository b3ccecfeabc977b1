package trust

// Form is what the kernel will do with a file, told from its first bytes.
type Form uint8

// Forms of executables. The zero value is a file nobody has looked at.
const (
	FormUnknown Form = iota
	FormELF
	FormMachO
	FormPE
	FormAppImage
	FormScript     // "#!"
	FormForeign    // no magic we know, but binfmt_misc runs it
	FormUnreadable // execute permission only
	formCount
)

// String returns the name used in plans and records.
func (f Form) String() string {
	if f >= formCount {
		f = FormUnknown
	}
	return [...]string{"unknown", "elf", "mach-o", "pe", "appimage", "script", "foreign", "unreadable"}[f]
}

// MarshalText implements encoding.TextMarshaler.
func (f Form) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Class says what keeps the content of a file from changing between hashing and
// starting it. The zero value is the file nothing holds.
type Class uint8

// Classes in ascending order of safety.
const (
	ClassLoose  Class = iota // other owner, or a file system without leases: hashed every time
	ClassLeased              // we hold a read lease: a writer waits or gets EAGAIN
	ClassFixed               // only root can write, and we are not root
)

// String returns the name used in plans and records.
func (c Class) String() string {
	switch c {
	case ClassLeased:
		return "leased"
	case ClassFixed:
		return "fixed"
	}
	return "loose"
}

// MarshalText implements encoding.TextMarshaler.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Roles of the parts of a chain.
const (
	RoleFile        = "file"
	RoleScript      = "script"
	RoleInterpreter = "interpreter"
	RoleProgram     = "program"  // what "env NAME" in a "#!" line finds in PATH
	RoleTarget      = "target"   // what a version-manager shim will start
	RoleArgument    = "argument" // a file that an interpreter was told to run
)

// Caps: reasons why an executable can never count as verified, whatever
// signature it carries.
const (
	CapMutableFile       = "mutable_file"
	CapMutablePath       = "mutable_path"
	CapCodeArgument      = "executes_code_argument"
	CapIndirectStart     = "indirect_start"
	CapFetchesCode       = "fetches_code"
	CapManagerShim       = "version_manager_shim"
	CapLauncherImage     = "launcher_image"
	CapForeignFormat     = "foreign_format"
	CapLoaderEnvironment = "loader_environment"
	CapUnresolvedProgram = "unresolved_program" // "#!/usr/bin/env NAME" with no NAME in PATH
)

// Part is one file of the chain that will run.
type Part struct {
	Role       string `json:"role"`
	Path       string `json:"path"`             // canonical
	Digest     string `json:"sha256,omitempty"` // hex; empty if it could not be read
	Form       Form   `json:"form"`
	Class      Class  `json:"class"`
	SystemPath bool   `json:"system_path,omitempty"`
	OwnPath    bool   `json:"own_path,omitempty"` // no run writes there, and only root and this user can
	Swappable  bool   `json:"swappable,omitempty"`
}

// Identity is what an executable file is. All of it was read from one open
// descriptor, never by name twice.
type Identity struct {
	Word      string `json:"word"`
	Argv0     string `json:"argv0"`
	Found     string `json:"found"`            // the path the word led to, links unresolved
	Canonical string `json:"canonical"`        // the path of the descriptor, all links resolved
	Place     string `json:"place"`            // resolved directory and the name as found: stable over versioned link targets
	Digest    string `json:"sha256,omitempty"` // hex; empty for an unreadable file
	Size      int64  `json:"size"`
	Dev       uint64 `json:"dev"`
	Ino       uint64 `json:"ino"`
	Form      Form   `json:"form"`
	Class     Class  `json:"class"`
	// Chain has the file first, then what its "#!" line starts.
	Chain      []Part   `json:"chain"`
	Caps       []string `json:"caps,omitempty"`
	Swappable  bool     `json:"swappable,omitempty"`
	SystemPath bool     `json:"system_path,omitempty"`
	// Effective is the base name of the canonical path, Invoked that of the word.
	Effective string `json:"effective"`
	Invoked   string `json:"invoked"`
	// Manager is the version manager whose shim this is, ManagerTarget the
	// program the shim will start, if that could be told without running it.
	Manager       string `json:"manager,omitempty"`
	ManagerTarget string `json:"manager_target,omitempty"`
	// SkippedPath lists PATH entries that were passed over because they are
	// empty or relative: they mean another directory for every cwd.
	SkippedPath []string `json:"skipped_path,omitempty"`
	CacheHit    bool     `json:"cache_hit"` // every digest of the chain came from the cache
}

// HasCap reports whether the identity carries the cap.
func (id Identity) HasCap(name string) bool {
	for _, c := range id.Caps {
		if c == name {
			return true
		}
	}
	return false
}

// Target returns the part a version-manager shim will start.
func (id Identity) Target() (Part, bool) {
	for _, p := range id.Chain {
		if p.Role == RoleTarget {
			return p, true
		}
	}
	return Part{}, false
}
