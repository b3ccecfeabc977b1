package fault

// Row is what one code means. The number never changes its meaning.
type Row struct {
	Code      string
	Exit      int
	Retryable bool
	Title     string
	Action    string // retry_with_modified_input, use_different_tool, abort, retry_later
	Fix       string
	Applies   string // machine_applicable, maybe_incorrect, has_placeholders
}

// Suggested actions, as the Tooli contract names them; RetryLater is ours.
const (
	Modify    = "retry_with_modified_input"
	OtherTool = "use_different_tool"
	Abort     = "abort"
	Later     = "retry_later"
)

const (
	exact = "machine_applicable"
	maybe = "maybe_incorrect"
	holes = "has_placeholders"
)

// Rows is the table, in the order of the codes. It is a function so that a run
// without an error pays nothing for it.
func Rows() []Row {
	return []Row{
		{"E1001", 64, false, "unknown flag", Modify, "see `atip-exec --help`; flags of the command itself go right of `--`", maybe},
		{"E1002", 64, false, "bad value of a flag", Modify, "correct the value", maybe},
		{"E1003", 64, false, "no command given", Modify, "write the command after `--`", holes},
		{"E1004", 64, false, "wrong arguments", Modify, "see the help of this verb", maybe},
		{"E1005", 66, false, "input file or directory missing", Modify, "name a file or directory that exists and is readable", holes},
		{"E1101", 65, false, "metadata is not strict JSON", Modify, "correct the document at this position, or remove the file", maybe},
		{"E1102", 65, false, "metadata exceeds a limit", Modify, "shorten the document, or remove the file", maybe},
		{"E1103", 65, false, "metadata has a wrong structure", Modify, "correct the document at this position; `atip validate FILE` lists every finding", maybe},
		{"E1104", 65, false, "metadata of an unsupported version", Modify, "use a document of ATIP 0.1 to 0.6", maybe},
		{"E1105", 65, false, "metadata names another binary", Modify, "store the document under the digest it names in binary.hash", maybe},
		{"E1106", 65, false, "metadata file is not safe to read", Modify, "make it a regular file that only its owner can write", maybe},
		{"E1107", 65, false, "package or archive cannot be unpacked", Modify, "name a complete .deb, .zip or .tar archive", maybe},
		{"E1501", 78, false, "redaction rule is invalid", Modify, "correct the rule at this position", maybe},
		{"E1601", 65, false, "shell text or command line cannot be read", Modify, "correct the text at this position", maybe},
		{"E2001", 77, false, "denied by policy", OtherTool, "choose a command without this effect", maybe},
		{"E2002", 77, false, "delegation token is not valid", Abort, "ask whoever delegated for a new token", maybe},
		{"E2003", 77, false, "budget is spent", Abort, "stop here and report what is left to do", maybe},
		{"E2004", 77, false, "credential is withheld from this run", OtherTool, "run the command outside of the other run, or report what is needed to a person", maybe},
		{"E2010", 77, false, "needs a person", OtherTool, "choose a command without this effect, or report what is needed to a person", maybe},
		{"E2011", 77, false, "what was decided has changed", Abort, "restore what is named in details.changed", maybe},
		{"E2012", 77, false, "nobody answered in time", Abort, "report what is needed to a person", maybe},
		{"E2040", 78, false, "policy is malformed", Modify, "correct the policy at this position; nothing runs until it parses", maybe},
		{"E2041", 78, false, "policy file is not safe to read", Modify, "make it a regular file, owned by you or root, that nobody else can write", maybe},
		{"E2042", 78, false, "policy rule contradicts its own example", Modify, "correct the rule or the example", maybe},
		{"E2043", 78, false, "policy loosens where its layer may not", Modify, "move the rule to a layer that may loosen", maybe},
		{"E2044", 78, false, "approver or lock file is invalid", Modify, "correct the file", maybe},
		{"E2101", 77, false, "executable or its metadata is not trusted", OtherTool, "use a tool whose evidence is complete", maybe},
		{"E2102", 78, false, "trust configuration is invalid", Modify, "correct the trust object at this position", maybe},
		{"E2201", 77, false, "a redaction placeholder came back as input", Modify, "name the variable or edit around the placeholder; the file holds the real value", maybe},
		{"E3001", 127, false, "command not found", Modify, "install the command or correct its name", maybe},
		{"E3002", 126, false, "command cannot be executed", Modify, "name an executable regular file whose interpreter exists", maybe},
		{"E3003", 73, false, "audit record cannot be written", Abort, "make the audit directory writable and free some space; without a record nothing runs", maybe},
		{"E3004", 73, false, "status file cannot be written", Modify, "name a writable place outside the command's workspace", maybe},
		{"E3201", 75, true, "rate limit reached", Later, "wait for the time in details.retry_after_ms", exact},
		{"E3301", 75, true, "executable is being written", Later, "run the same command again when the writer is done", exact},
		{"E3302", 75, true, "executable changed while it was being started", Later, "run the same command again", exact},
		{"E4001", 124, true, "timeout", Modify, "give a longer --timeout, or make the work smaller", holes},
		{"E4003", 75, true, "out of processes, memory or descriptors", Later, "run the same command again when the machine is less busy", exact},
		{"E4004", 66, false, "required input is not available", Modify, "give the input on stdin, or run with `--stdin null`", maybe},
		{"E4005", 73, false, "output cannot be written", Abort, "free space where stdout and stderr go", maybe},
		{"E4006", 69, false, "a resource limit cannot be enforced", Abort, "remove the limit from the policy, or run where a cgroup is delegated", maybe},
		{"E4008", 70, false, "lost track of the child", Abort, "report this with the audit record", maybe},
		{"E4009", 130, false, "cancelled before the start", Later, "run the same command again", exact},
		{"E4010", 75, true, "a path changed under the plan", Later, "run the same command again", exact},
		{"E4101", 69, false, "a required guarantee cannot be enforced here", Abort, "see details.gaps; `atip doctor` says what this machine lacks", maybe},
		{"E4102", 69, false, "a step of the confinement failed", Abort, "see details.step; `atip doctor` says what this machine lacks", maybe},
		{"E4103", 78, false, "policy grants access to our own state", Modify, "remove this path from the policy", maybe},
		{"E4104", 78, false, "profile has too many paths", Modify, "name common parents instead of single paths", maybe},
		{"E4105", 69, false, "file system cannot be confined", Abort, "move the workspace to a local file system", maybe},
		{"E4106", 69, false, "unconfined execution is not permitted", Abort, "run on Linux with Landlock; a policy can permit `sandbox.confine: \"none\"` in words", maybe},
		{"E4107", 69, false, "nested too deep to confine", Abort, "run with fewer wrappers inside each other", maybe},
		{"E4110", 0, false, "the kernel refused an access", OtherTool, "stay inside the workspace, or use $TMPDIR", maybe},
		{"E4111", 0, false, "a protected name was changed and put back", OtherTool, "change it yourself, outside the wrapper, if it is meant", maybe},
		{"E4112", 0, false, "a protected name was changed and could not be put back", Abort, "look at the path by hand before you run anything in this workspace", maybe},
		{"E4113", 0, false, "the proxy of the run refused a host", OtherTool, "name a host that the command was granted", maybe},
		{"E4201", 69, false, "companion program `atip` is missing", Abort, "install `atip` beside `atip-exec`", maybe},
		{"E4202", 69, true, "registry unavailable", Later, "run the same command again when the registry answers", maybe},
		{"E4203", 69, false, "offline", Abort, "unset ATIP_OFFLINE, or go on with what is cached", maybe},
		{"E4204", 65, false, "answer of a registry refused", OtherTool, "report this to whoever runs the registry; nothing of the answer was kept", maybe},
		{"E4205", 78, false, "registry configuration is invalid", Modify, "correct registries.json at this position", maybe},
		{"E5001", 70, false, "internal error", Abort, "report this; nothing about your input explains it", maybe},
		{"E5002", 70, false, "output filter failed", Abort, "report this; the output was discarded from there on", maybe},
	}
}

// RowOf finds the row of a code. An unknown code is our own bug and reads as E5001.
func RowOf(code string) Row {
	rows := Rows()
	for _, r := range rows {
		if r.Code == code {
			return r
		}
	}
	return RowOf("E5001")
}

// Category is the area of a code: E1 input, E2 auth, E3 state, E4 runtime, E5 internal.
func (r Row) Category() string {
	switch r.Code[1] {
	case '1':
		return "input"
	case '2':
		return "auth"
	case '3':
		return "state"
	case '4':
		return "runtime"
	}
	return "internal"
}
