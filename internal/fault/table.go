package fault

import "github.com/atip-dev/atip-exec/internal/errcode"

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
		{errcode.UnknownFlag, 64, false, "unknown flag", Modify, "see `atip-exec --help`; put flags of the command after `--`", maybe},
		{errcode.FlagValue, 64, false, "bad value of a flag", Modify, "correct the value", maybe},
		{errcode.NoCommand, 64, false, "no command given", Modify, "write the command after `--`", holes},
		{errcode.Arguments, 64, false, "wrong arguments", Modify, "see `--help` of this verb", maybe},
		{errcode.NoInputFile, 66, false, "input file or directory missing", Modify, "name an existing, readable file or directory", holes},
		{errcode.HookEvent, 65, false, "event of an agent cannot be read", Abort, "tell the user to update atip-exec and to run `atip init` again", maybe},
		{errcode.AgentSettings, 65, false, "settings of an agent cannot be changed", Modify, "correct the file; `atip init AGENT --print` shows what belongs into it", maybe},
		{errcode.MetadataSyntax, 65, false, "metadata is not strict JSON", Modify, "correct the document at this position or remove the file", maybe},
		{errcode.MetadataLimit, 65, false, "metadata exceeds a limit", Modify, "shorten the document, or remove the file", maybe},
		{errcode.MetadataStructure, 65, false, "metadata has a wrong structure", Modify, "correct the document at this position; `atip validate FILE` lists every finding", maybe},
		{errcode.MetadataVersion, 65, false, "metadata of an unsupported version", Modify, "use a document of ATIP 0.1 to 0.6", maybe},
		{errcode.MetadataBinary, 65, false, "metadata names another binary", Modify, "store the document under the digest it names in binary.hash", maybe},
		{errcode.MetadataUnsafe, 65, false, "metadata file is not safe to read", Modify, "make it a regular file that only its owner can write", maybe},
		{errcode.Archive, 65, false, "package or archive cannot be unpacked", Modify, "name a complete .deb, .zip or .tar archive", maybe},
		{errcode.ParameterMissing, 64, false, "parameter of a function is missing", Modify, "pass the missing parameter", holes},
		{errcode.ArgumentType, 64, false, "argument of a function has the wrong type", Modify, "pass a value of the expected type", holes},
		{errcode.NoFunction, 64, false, "no such function", Modify, "list the functions with `atip run --list`", maybe},
		{errcode.NoRunfile, 66, false, "no Runfile", Modify, "create a Runfile here or in a parent directory, or pass --runfile", maybe},
		{errcode.RunfileSyntax, 65, false, "Runfile cannot be read", Modify, "correct the Runfile at this line", maybe},
		{errcode.RunfileUnsafe, 78, false, "Runfile is not safe to run", Modify, "make it a regular file that you own and only you can write", maybe},
		{errcode.PrimeRequest, 64, false, "bad request to prime", Modify, "correct this flag", maybe},
		{errcode.ToolArguments, 64, false, "bad arguments of an MCP tool", Modify, "send arguments that match the input schema", maybe},
		{errcode.ProviderCall, 64, false, "tool call of a provider cannot be read", Modify, "send the model response unchanged", maybe},
		{errcode.RedactionRule, 78, false, "redaction rule is invalid", Modify, "correct the rule at this position", maybe},
		{errcode.ShellText, 65, false, "shell text or command line cannot be read", Modify, "correct the text at this position", maybe},
		{errcode.Denied, 77, false, "denied by policy", OtherTool, "choose a command without this effect", maybe},
		{errcode.Delegation, 77, false, "delegation token is not valid", Abort, "ask the delegating agent for a new token", maybe},
		{errcode.Budget, 77, false, "budget is spent", Abort, "stop and report the remaining work", maybe},
		{errcode.CredentialWithheld, 77, false, "credential is withheld from this run", OtherTool, "run the command outside the parent run, or tell the user what you need", maybe},
		{errcode.ApprovalRequired, 77, false, "approval required", OtherTool, "choose a command without this effect, or tell the user what you need", maybe},
		{errcode.DecisionChanged, 77, false, "the approved command has changed", Abort, "restore the items in details.changed", maybe},
		{errcode.NoAnswer, 77, false, "no answer in time", Abort, "tell the user what you need", maybe},
		{errcode.Deprecated, 77, false, "command is deprecated by its tool", OtherTool, "use the command that the tool prefers", maybe},
		{errcode.PolicySyntax, 78, false, "policy is malformed", Modify, "correct the policy at this position; nothing runs until it parses", maybe},
		{errcode.PolicyUnsafe, 78, false, "policy file is not safe to read", Modify, "make it a regular file owned by you or root, and writable only by its owner", maybe},
		{errcode.RuleExample, 78, false, "policy rule contradicts its own example", Modify, "correct the rule or the example", maybe},
		{errcode.PolicyLayer, 78, false, "this policy layer must not loosen", Modify, "move the rule to a layer that may loosen", maybe},
		{errcode.ApproverFile, 78, false, "approver or lock file is invalid", Modify, "correct the file", maybe},
		{errcode.NotTrusted, 77, false, "executable or its metadata is not trusted", OtherTool, "use a tool with complete evidence", maybe},
		{errcode.TrustConfig, 78, false, "trust configuration is invalid", Modify, "correct the trust object at this position", maybe},
		{errcode.Placeholder, 77, false, "a redaction placeholder came back as input", Modify, "use the variable name, or edit around the placeholder; the file holds the real value", maybe},
		{errcode.CommandNotFound, 127, false, "command not found", Modify, "install the command or correct its name", maybe},
		{errcode.NotExecutable, 126, false, "command cannot be executed", Modify, "name an executable regular file whose interpreter exists", maybe},
		{errcode.AuditWrite, 73, false, "audit record cannot be written", Abort, "make the audit directory writable and free disk space; commands run only when they can be recorded", maybe},
		{errcode.StatusWrite, 73, false, "status file cannot be written", Modify, "name a writable path outside the workspace of the command", maybe},
		{errcode.UndoStore, 73, false, "checkpoint store cannot be used", Abort, "see details.path; you must own the directory, keep it private, and have free disk space", maybe},
		{errcode.NoCheckpoint, 66, false, "no such checkpoint", Modify, "name a run from `atip undo --list`", maybe},
		{errcode.UndoBusy, 75, true, "repository or checkpoint store is in use", Later, "run the same command again when the other command has ended", exact},
		{errcode.CheckpointFailed, 77, false, "required checkpoint could not be made", Modify, "free disk space, or name fewer files", maybe},
		{errcode.IdempotencyReused, 65, false, "idempotency key was used for another command", Modify, "use a new key for each command", holes},
		{errcode.IdempotencyBusy, 75, true, "the same idempotency key is in use", Later, "run the same command again when the other run has ended", exact},
		{errcode.IdempotencyUnknown, 65, false, "outcome of an earlier run with this key is unknown", Abort, "check the effects of the earlier run before you use a new key", maybe},
		{errcode.RateLimit, 75, true, "rate limit reached", Later, "wait for the time in details.retry_after_ms", exact},
		{errcode.NotPrimed, 75, true, "the session is not primed", Modify, "call the prime tool first, with this session_id", exact},
		{errcode.ExecutableBusy, 75, true, "executable is being written", Later, "run the same command again when the write has finished", exact},
		{errcode.ExecutableChanged, 75, true, "executable changed during the start", Later, "run the same command again", exact},
		{errcode.Timeout, 124, true, "timeout", Modify, "pass a longer --timeout, or split the work", holes},
		{errcode.OutOfResources, 75, true, "out of processes, memory or descriptors", Later, "run the same command again when the machine is less busy", exact},
		{errcode.NoInput, 66, false, "required input is not available", Modify, "pass the input on stdin, or run with `--stdin null`", maybe},
		{errcode.OutputWrite, 73, false, "output cannot be written", Abort, "free disk space where stdout and stderr are written", maybe},
		{errcode.LimitUnenforced, 69, false, "a resource limit cannot be enforced", Abort, "remove the limit from the policy, or run where a cgroup is delegated", maybe},
		{errcode.LostChild, 70, false, "lost track of the child", Abort, "report this as a bug, with the audit record", maybe},
		{errcode.Cancelled, 130, false, "cancelled before the start", Later, "run the same command again", exact},
		{errcode.PathChanged, 75, true, "a path changed after the plan was made", Later, "run the same command again", exact},
		{errcode.GuaranteeMissing, 69, false, "a required guarantee cannot be enforced here", Abort, "see details.gaps; `atip doctor` lists what this machine lacks", maybe},
		{errcode.Confinement, 69, false, "a step of the confinement failed", Abort, "see details.step; `atip doctor` lists what this machine lacks", maybe},
		{errcode.PolicyOwnState, 78, false, "policy grants access to our own state", Modify, "remove this path from the policy", maybe},
		{errcode.TooManyPaths, 78, false, "profile has too many paths", Modify, "name parent directories instead of single paths", maybe},
		{errcode.FileSystem, 69, false, "file system cannot be confined", Abort, "move the workspace to a local file system", maybe},
		{errcode.Unconfined, 69, false, "unconfined execution is not permitted", Abort, "run on Linux with Landlock, or permit it in a policy: `sandbox.confine: \"none\"`", maybe},
		{errcode.TooDeep, 69, false, "nested too deep to confine", Abort, "nest fewer wrappers", maybe},
		{errcode.AccessRefused, 0, false, "the kernel refused an access", OtherTool, "stay inside the workspace, or use $TMPDIR", maybe},
		{errcode.ProtectedRestored, 0, false, "a protected name was changed and put back", OtherTool, "if you want this change, make it yourself, outside atip-exec", maybe},
		{errcode.ProtectedChanged, 0, false, "a protected name was changed and could not be put back", Abort, "check the path yourself before you run anything in this workspace", maybe},
		{errcode.HostRefused, 0, false, "the proxy of the run refused a host", OtherTool, "use a host that was granted to the command", maybe},
		{errcode.NoCompanion, 69, false, "companion program `atip` is missing", Abort, "install `atip` beside `atip-exec`", maybe},
		{errcode.RegistryUnavailable, 69, true, "registry unavailable", Later, "run the same command again when the registry answers", maybe},
		{errcode.Offline, 69, false, "offline", Abort, "unset ATIP_OFFLINE, or use the cached metadata", maybe},
		{errcode.RegistryAnswer, 65, false, "registry answer refused", OtherTool, "report this to the operator of the registry; the answer was discarded", maybe},
		{errcode.RegistryConfig, 78, false, "registry configuration is invalid", Modify, "correct registries.json at this position", maybe},
		{errcode.PrimeAnswer, 65, false, "invalid answer to prime", OtherTool, "report this to the maintainers of the tool; `--prime off` ignores its directives", maybe},
		{errcode.PrimeFailed, 69, false, "prime failed or did not end", Abort, "run `atip prime TOOL` to see why", maybe},
		{errcode.PrimeAgent, 69, false, "the tool asks for a newer agent", Abort, "use a newer agent, or an older version of the tool", maybe},
		{errcode.Internal, 70, false, "internal error", Abort, "report this as a bug; your input is not the cause", maybe},
		{errcode.FilterFailed, 70, false, "output filter failed", Abort, "report this as a bug; the rest of the output was discarded", maybe},
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
	return RowOf(errcode.Internal)
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
