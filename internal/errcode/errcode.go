// Package errcode names the error codes of the table in internal/fault. A code never changes
// its meaning; it is written once, here, so that a slip of the pen does not compile. What a
// code means for the caller (exit status, next step) is in the table, of which TestTable of
// internal/fault says that it has a row for each name.
package errcode

// Input (E1).
const (
	UnknownFlag       = "E1001" // unknown flag
	FlagValue         = "E1002" // bad value of a flag
	NoCommand         = "E1003" // no command given
	Arguments         = "E1004" // wrong arguments
	NoInputFile       = "E1005" // input file or directory missing
	HookEvent         = "E1006" // event of an agent cannot be read
	AgentSettings     = "E1007" // settings of an agent cannot be changed
	MetadataSyntax    = "E1101" // metadata is not strict JSON
	MetadataLimit     = "E1102" // metadata exceeds a limit
	MetadataStructure = "E1103" // metadata has a wrong structure
	MetadataVersion   = "E1104" // metadata of an unsupported version
	MetadataBinary    = "E1105" // metadata names another binary
	MetadataUnsafe    = "E1106" // metadata file is not safe to read
	Archive           = "E1107" // package or archive cannot be unpacked
	ParameterMissing  = "E1201" // parameter of a function is missing
	ArgumentType      = "E1202" // argument of a function has the wrong type
	NoFunction        = "E1203" // no such function
	NoRunfile         = "E1204" // no Runfile
	RunfileSyntax     = "E1205" // Runfile cannot be read
	RunfileUnsafe     = "E1206" // Runfile is not safe to run
	PrimeRequest      = "E1301" // bad request to prime
	ToolArguments     = "E1401" // bad arguments of an MCP tool
	ProviderCall      = "E1402" // tool call of a provider cannot be read
	RedactionRule     = "E1501" // redaction rule is invalid
	ShellText         = "E1601" // shell text or command line cannot be read
)

// Authorisation (E2).
const (
	Denied             = "E2001" // denied by policy
	Delegation         = "E2002" // delegation token is not valid
	Budget             = "E2003" // budget is spent
	CredentialWithheld = "E2004" // credential is withheld from this run
	ApprovalRequired   = "E2010" // approval required
	DecisionChanged    = "E2011" // the approved command has changed
	NoAnswer           = "E2012" // no answer in time
	Deprecated         = "E2030" // command is deprecated by its tool
	PolicySyntax       = "E2040" // policy is malformed
	PolicyUnsafe       = "E2041" // policy file is not safe to read
	RuleExample        = "E2042" // policy rule contradicts its own example
	PolicyLayer        = "E2043" // this policy layer must not loosen
	ApproverFile       = "E2044" // approver or lock file is invalid
	NotTrusted         = "E2101" // executable or its metadata is not trusted
	TrustConfig        = "E2102" // trust configuration is invalid
	Placeholder        = "E2201" // a redaction placeholder came back as input
)

// State (E3).
const (
	CommandNotFound    = "E3001" // command not found
	NotExecutable      = "E3002" // command cannot be executed
	AuditWrite         = "E3003" // audit record cannot be written
	StatusWrite        = "E3004" // status file cannot be written
	UndoStore          = "E3011" // checkpoint store cannot be used
	NoCheckpoint       = "E3012" // no such checkpoint
	UndoBusy           = "E3013" // repository or checkpoint store is in use
	CheckpointFailed   = "E3014" // required checkpoint could not be made
	IdempotencyReused  = "E3101" // idempotency key was used for another command
	IdempotencyBusy    = "E3102" // the same idempotency key is in use
	IdempotencyUnknown = "E3103" // outcome of an earlier run with this key is unknown
	RateLimit          = "E3201" // rate limit reached
	NotPrimed          = "E3202" // the session is not primed
	ExecutableBusy     = "E3301" // executable is being written
	ExecutableChanged  = "E3302" // executable changed during the start
)

// Runtime (E4).
const (
	Timeout             = "E4001" // timeout
	OutOfResources      = "E4003" // out of processes, memory or descriptors
	NoInput             = "E4004" // required input is not available
	OutputWrite         = "E4005" // output cannot be written
	LimitUnenforced     = "E4006" // a resource limit cannot be enforced
	LostChild           = "E4008" // lost track of the child
	Cancelled           = "E4009" // cancelled before the start
	PathChanged         = "E4010" // a path changed after the plan was made
	GuaranteeMissing    = "E4101" // a required guarantee cannot be enforced here
	Confinement         = "E4102" // a step of the confinement failed
	PolicyOwnState      = "E4103" // policy grants access to our own state
	TooManyPaths        = "E4104" // profile has too many paths
	FileSystem          = "E4105" // file system cannot be confined
	Unconfined          = "E4106" // unconfined execution is not permitted
	TooDeep             = "E4107" // nested too deep to confine
	AccessRefused       = "E4110" // the kernel refused an access
	ProtectedRestored   = "E4111" // a protected name was changed and put back
	ProtectedChanged    = "E4112" // a protected name was changed and could not be put back
	HostRefused         = "E4113" // the proxy of the run refused a host
	NoCompanion         = "E4201" // companion program `atip` is missing
	RegistryUnavailable = "E4202" // registry unavailable
	Offline             = "E4203" // offline
	RegistryAnswer      = "E4204" // registry answer refused
	RegistryConfig      = "E4205" // registry configuration is invalid
	PrimeAnswer         = "E4301" // invalid answer to prime
	PrimeFailed         = "E4302" // prime failed or did not end
	PrimeAgent          = "E4303" // the tool asks for a newer agent
)

// Internal (E5).
const (
	Internal     = "E5001" // internal error
	FilterFailed = "E5002" // output filter failed
)
