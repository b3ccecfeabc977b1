package filter

// Sources is where known values are looked for. Collect reads them before the
// child starts: a value echoed before it is known is the classic leak.
type Sources struct {
	Env        []string            // the wrapper's environment before scrubbing
	ChildEnv   []string            // the child's
	Argv       []string            // the child's
	Home       string              // "" skips the credential files
	Getenv     func(string) string // for KUBECONFIG, XDG_CONFIG_HOME and their like; nil: none set
	AuthVars   []string            // authentication.methods[].envVar of the tool's metadata
	ExtraFiles []string            // files that policy names
	ExtraEnv   []string            // globs of variable names that policy names
}

// Skip is a variable whose value is not treated as a secret, and why.
type Skip struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Known is what Collect found. The values themselves are not exported: nothing
// but the Set may see them.
type Known struct {
	Loaded     int      `json:"loaded"`
	Skipped    []Skip   `json:"skipped,omitempty"`
	Dropped    int      `json:"dropped,omitempty"`    // over a limit
	Unreadable []string `json:"unreadable,omitempty"` // files that exist and could not be read
	values     []knownValue
}

type knownValue struct {
	name  string // env.NAME, file.netrc, argv.--token
	value string
}

// Collect gathers known values. A file that cannot be read is not an error: it is
// listed in Known.Unreadable and the run goes on.
func Collect(src Sources) (Known, error) {
	return Known{}, &Error{Code: "E5002", Reason: "no collector in this build"}
}
