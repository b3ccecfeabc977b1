// Package cli is the command line of both programs: flags, verbs and rendering.
// It is the only package that prints.
package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/spf13/pflag"
)

// Kind is how the value of a flag is read.
type Kind uint8

// Kinds of flag values.
const (
	Bool Kind = iota // takes no value
	Count
	String
	Strings // may be given several times
	Enum
	Int
	Duration
	Path
	Size // bytes: a number, or one with KiB, MiB or GiB
)

// Flag describes one flag; parser, help, completion and --agent read nothing else.
type Flag struct {
	Name    string
	Short   byte
	Kind    Kind
	Value   string   // name of the value in the help
	Enum    []string // allowed values of an Enum
	Words   []string // values that name no file, of a flag that can name one
	Access  Access   // what happens to the file that it names; every flag that names one says so
	Env     string   // variable that gives the value if the flag does not
	Help    string
	Minimum int
	Offer   Offer // what of this machine completes the value
}

// Offer is what of this machine completes a word. `atip __complete` prints it.
type Offer string

// Offers. Without one the name of a word says what completes it.
const (
	OfferFunctions   Offer = "functions"   // of the Runfile that counts here
	OfferParameters  Offer = "parameters"  // values of the next parameter of the function
	OfferTools       Offer = "tools"       // with metadata
	OfferRequests    Offer = "requests"    // for approval that are open
	OfferQuarantines Offer = "quarantines" // runs with files in quarantine
	OfferUndo        Offer = "undo"        // runs and checkpoints of this workspace
	OfferCommand     Offer = "command"     // words of a tool, from its metadata
)

// Access is what this program does itself to a file or directory that its command line names.
type Access uint8

// Kinds of access. Read and Write are judged like redirections.
const (
	NoFile Access = iota
	Read
	Write
	Enter // the call happens there
	Own   // a setting of this program, which nothing shows; or a key, opened on a person's terminal
)

// Acts is how far a verb changes what runs of this account may do. The zero value is the
// strict one.
type Acts uint8

// Kinds of verbs. Typed without a person's terminal, one that widens is refused, and one that
// destroys is judged like a command that deletes.
const (
	Widens Acts = iota
	Destroys
	Writes // its own files, and those that its arguments name, which are judged
	Reads
)

// Wide is a way to call a verb that acts in another way than the rest of it.
type Wide struct {
	Words string // the first words, such as "quarantine restore"
	Flag  string // and a flag that is given; "" for any call
	Acts  Acts
}

// Acting is how this call of a verb acts.
func (s Spec) Acting(v *Values) Acts {
	for _, w := range s.Wider {
		words := strings.Fields(w.Words)
		if len(v.Rest) >= len(words) && slices.Equal(v.Rest[:len(words)], words) && (w.Flag == "" || v.Has(w.Flag)) {
			return w.Acts
		}
	}
	return s.Acts
}

// Arg is one positional argument of a verb.
type Arg struct {
	Name     string
	Access   Access
	Help     string
	Optional bool
	Variadic bool
	Offer    Offer // what of this machine completes it
}

// Effects is what a verb does itself, for --agent. Unset fields are "no".
type Effects struct {
	Read, Write, Network, Subprocess bool
}

// Example is a command line of the documentation; each is run by a test.
type Example struct {
	Line string
	Help string
}

// Group is a heading in the list of verbs.
type Group uint8

// Headings, in the order of the list. A verb has one; the running of a command has none.
const (
	_ Group = iota
	groupRun
	groupDecide
	groupApprove
	groupMetadata
	groupRegistries
	groupMachine
	groupEnd
)

var groupTitles = [groupEnd]string{groupRun: "Run", groupDecide: "Decide and review", groupApprove: "Approve and delegate",
	groupMetadata: "Metadata", groupRegistries: "Registries, signatures and locks", groupMachine: "This machine"}

// Spec describes one verb, or with an empty Verb the running of a command.
type Spec struct {
	Verb     string
	Program  string // atip-exec or atip
	Group    Group  // heading of the verb in the list of verbs
	Summary  string
	Long     string
	Args     []Arg
	Flags    []Flag
	Examples []Example
	Effects  Effects
	Acts     Acts // how far it changes what runs may do; what a row of Wider says comes first
	Wider    []Wide
	Machines string   // the flag with which a verb that widens needs no terminal, outside of runs
	Stops    bool     // the first plain word ends the flags of this verb
	Lists    []string // the calls that print a list, as words ("*" for any more) or as a flag; their verb has listFlags
	Newest   bool     // those lists are in the order of time, and of a long one the end counts
}

var outputFlag = Flag{Name: "output", Short: 'o', Kind: Enum, Value: "MODE", Enum: []string{"auto", "text", "json", "jsonl"}, Env: "ATIP_EXEC_OUTPUT",
	Help: "format of results and errors; json and jsonl also wrap the output of the command"}

var commonFlags = []Flag{
	outputFlag,
	{Name: "quiet", Short: 'q', Kind: Bool, Help: "no warnings and notes; errors and refusals stay"},
	{Name: "verbose", Short: 'v', Kind: Count, Help: "print more on stderr: -v the decision, -vv the sandbox and timings"},
	{Name: "no-color", Kind: Bool, Help: "no colour (also NO_COLOR)"},
	{Name: "help", Short: 'h', Kind: Bool, Help: "print this help"},
}

// listFlags shorten what a verb lists; Lists says which of its calls do.
var listFlags = []Flag{
	{Name: "fields", Kind: Strings, Value: "A,B.C", Help: "of a list: print only these fields, paths into the JSON result such as tools.name; as text, a column each"},
	{Name: "max-items", Kind: Int, Value: "N", Minimum: 1, Help: "of a list: print at most N items, the newest where times order them, and how many more there are"},
}

var planFlags = []Flag{
	{Name: "policy", Access: Own, Kind: Strings, Value: "FILE", Env: "ATIP_EXEC_POLICY", Help: "apply this policy file too; it can only tighten"},
	{Name: "profile", Kind: Strings, Value: "NAME", Help: "apply this profile too: workspace, read-only, ci, ops, or one from a policy; it can only tighten"},
	{Name: "directory", Access: Enter, Short: 'C', Kind: Path, Value: "DIR", Help: "run in DIR"},
	{Name: "command", Short: 'c', Kind: String, Value: "STRING", Help: "judge and run a shell string"},
}

var runFlags = []Flag{
	{Name: "dry-run", Kind: Bool, Help: "print the plan; start nothing"},
	{Name: "timeout", Kind: Duration, Value: "DUR", Help: "end the command and its children after DUR (90, 1.5s, 5m; at most 24h), or `declared`"},
	{Name: "kill-after", Kind: Duration, Value: "DUR", Help: "time between SIGTERM and SIGKILL at a timeout (default 2s)"},
	{Name: "wait", Kind: Duration, Value: "DUR", Help: "wait up to DUR for an approval (at most 10m; never in CI)"},
	{Name: "ci", Kind: Bool, Help: "refuse commands that need approval, unless the signed lock permits them (also with CI set)"},
	{Name: "refresh", Kind: Bool, Help: "ignore cached registry answers (also ATIP_REFRESH=1)"},
	{Name: "max-output", Kind: Size, Value: "SIZE", Help: "show at most SIZE (65536, 64KiB) of each output stream, head and tail; a file keeps the whole output"},
	{Name: "stdin", Access: Read, Kind: String, Value: "MODE", Words: []string{"auto", "inherit", "null"}, Help: "auto, inherit, null, or a file to read"},
	{Name: "tty", Short: 't', Kind: Bool, Help: "give the command a terminal of its own"},
	{Name: "explain-denials", Kind: Bool, Help: "report each file, address and system call that the sandbox refused; slows the command down"},
	{Name: "status-file", Access: Write, Kind: Path, Value: "FILE", Help: "always write the outcome as JSON to FILE"},
	{Name: "status-fd", Kind: Int, Value: "N", Minimum: 3, Help: "write the outcome as one JSON line to descriptor N"},
	{Name: "prime", Kind: Enum, Value: "MODE", Enum: []string{"auto", "enforce", "off"}, Env: "ATIP_EXEC_PRIME", Help: "handling of the Prime Directive: fetch and warn, fetch and refuse, or ignore"},
	{Name: "idempotency-key", Kind: String, Value: "KEY", Help: "run once for KEY within 24h; the same command with the same KEY prints the first result again"},
	{Name: "serve-mcp", Kind: Enum, Value: "HOW", Enum: []string{"stdio", "http"}, Help: "serve the Model Context Protocol, as `atip mcp`"},
	{Name: "port", Kind: Int, Value: "N", Help: "port of --serve-mcp http (default 8080)"},
	{Name: "agent", Kind: Bool, Help: "print the ATIP metadata of atip-exec itself"},
	{Name: "commands", Kind: Strings, Value: "A,B", Help: "of --agent: only these verbs"},
	{Name: "depth", Kind: Int, Value: "N", Minimum: 1, Help: "of --agent: N levels of verbs (there is one)"},
	{Name: "version", Short: 'V', Kind: Bool, Help: "print the version"},
}

var signFlags = []Flag{
	{Name: "key", Access: Own, Kind: Path, Value: "FILE", Help: "sign with this private key: PEM, ECDSA P-256 or RSA"},
	{Name: "bundle", Access: Write, Kind: Path, Value: "FILE", Help: "where to write the bundle (default FILE.bundle)"},
	{Name: "fulcio", Kind: String, Value: "URL", Help: "without a key: URL of the certificate authority"},
	{Name: "identity-token", Access: Own, Kind: Path, Value: "FILE", Help: "without a key: a file that holds an OpenID token"},
	{Name: "rekor", Kind: String, Value: "URL", Help: "record the signature in this log"},
	{Name: "rekor-v2", Kind: Bool, Help: "the log is of version 2, which needs --tsa"},
	{Name: "tsa", Kind: String, Value: "URL", Help: "ask this authority for a timestamp"},
}

var redactFlags = []Flag{
	{Name: "report", Kind: Enum, Value: "FORMAT", Enum: []string{"json"}, Help: "write findings with their offsets in the input to stderr, one JSON line for each input"},
	{Name: "report-file", Access: Write, Kind: Path, Value: "FILE", Help: "write that report to FILE"},
	{Name: "policy", Access: Own, Kind: Strings, Value: "FILE", Env: "ATIP_EXEC_POLICY", Help: "apply this policy file too; it can only tighten"},
	{Name: "no-env", Kind: Bool, Help: "do not look for values of the environment and of credential files"},
	{Name: "env", Kind: Strings, Value: "NAME", Help: "look for the value of this variable too, whatever its name says"},
	{Name: "values", Access: Read, Kind: Path, Value: "FILE", Help: "look for the values in FILE too, one on each line"},
	{Name: "records", Kind: Bool, Help: "judge each line by itself; nothing found in one is looked for in another"},
	{Name: "check", Kind: Bool, Help: "write no output; exit status 1 if something would be redacted"},
	{Name: "binary", Kind: Enum, Value: "MODE", Enum: []string{"pass", "mask-known", "block"}, Help: "what happens to binary stretches; the stricter of this and the policy"},
	{Name: "max-output", Kind: Size, Value: "SIZE", Help: "write at most SIZE of each input, its head and its tail; all of it is kept in a file"},
}

// Root describes the running of a command. It is apart from the verbs because every
// run reads it, and none of them.
func Root() Spec {
	return Spec{Program: "atip-exec", Summary: "identify, judge and run a command within the limits of its declared effects",
		Args:  []Arg{{Name: "CMD", Help: "the command; everything right of it is its own"}, {Name: "ARGS", Optional: true, Variadic: true}},
		Flags: concat(runFlags, planFlags, commonFlags), Stops: true,
		Examples: []Example{
			{"atip-exec -- git status", "runs, confined to the work tree"},
			{"atip-exec --dry-run -- git push --force", "prints the plan, starts nothing"},
			{"atip-exec explain -- gh pr merge 42", "the same, as a report"},
		}}
}

// Specs lists every verb of both programs; the first is the running of a command.
func Specs() []Spec { return append([]Spec{Root()}, verbs()...) }

func verbs() []Spec {
	return []Spec{
		{Verb: "explain", Group: groupDecide, Acts: Reads, Program: "atip-exec", Summary: "print the decision for a command and its reasons; start nothing",
			Args:  []Arg{{Name: "CMD|CODE", Help: "a command, or an error code or exit status to explain"}, {Name: "ARGS", Optional: true, Variadic: true}},
			Flags: concat(planFlags, commonFlags, []Flag{{Name: "batch", Kind: Bool, Help: "read {\"id\",\"cmd\"|\"argv\",\"cwd\"} objects, one a line, from stdin; answer one plan a line"}}), Stops: true, Effects: Effects{Read: true},
			Examples: []Example{{"atip-exec explain -o json -- rm -r build", "the plan document atip-exec.plan/1"}, {"atip-exec explain E2010", "what a code means"}}},
		{Verb: "script", Group: groupRun, Acts: Reads, Program: "atip-exec", Summary: "judge a shell script as a whole, then run it",
			Long: "The file is read once; each command of that text is judged, and that text runs. - reads standard input to its end.\nUnder the name bash, sh, zsh or atip-sh the program takes the command line of a shell and does the same.",
			Args: []Arg{{Name: "FILE", Access: Enter, Help: "the script, or - for standard input"}, {Name: "ARGS", Optional: true, Variadic: true}},
			Flags: concat([]Flag{{Name: "errexit", Short: 'e', Kind: Bool, Help: "end at the first command that fails, as `set -e`"},
				{Name: "nounset", Short: 'u', Kind: Bool, Help: "a variable that is not set is an error, as `set -u`"},
				{Name: "xtrace", Short: 'x', Kind: Bool, Help: "print each command before it runs, as `set -x`"},
				{Name: "noglob", Short: 'f', Kind: Bool, Help: "expand no file names, as `set -f`"},
				{Name: "pipefail", Kind: Bool, Help: "a pipeline fails if any part of it does, as `set -o pipefail`"},
				{Name: "interpreter", Kind: String, Value: "PROGRAM", Help: "the script is code for python3, python, node, ruby, pwsh or a shell, instead of for bash"},
				{Name: "label", Kind: String, Value: "NAME", Help: "the name of the script: its $0, and what errors call it"},
				{Name: "ceiling", Kind: Strings, Value: "LIST", Help: "an enforced ceiling: none, or a list of network, write[:PATH], delete[:PATH], subprocess, destructive, irreversible, billable"},
				{Name: "code-fd", Kind: Int, Value: "N", Minimum: 3, Help: "read the script from descriptor N; all words are its arguments"}}, omit(runFlags, "agent", "commands", "depth", "version", "serve-mcp", "port"), omit(planFlags, "command"), commonFlags), Stops: true,
			Examples: []Example{{"atip-exec script -e build.sh release", ""}, {"atip-exec script --dry-run build.sh", "print the plan, start nothing"}}},
		{Verb: "hook", Group: groupRun, Acts: Reads, Program: "atip-exec", Summary: "answer a coding agent that asks before a command", Args: []Arg{{Name: "AGENT", Help: "the agent, a name of `atip init`"}},
			Long: "The event is read from standard input, and the answer is what that agent understands: the command wrapped, or a refusal with its reason. An event with anything unknown in it is refused. `atip init` writes the file that calls this verb, and that refuses if no whole answer comes in time.\nExit status 2 is a refusal for an agent that reads no answer.",
			Flags: concat([]Flag{{Name: "mode", Kind: Enum, Value: "MODE", Enum: []string{"hook", "shell"}, Help: "hook: wrap commands (default). shell: the agent's shell is atip-exec; deny what is denied, and everything if that is no longer so"},
				{Name: "seal", Kind: String, Value: "WORD", Help: "print WORD and the exit status as the last line, which proves that the answer is whole"}}, commonFlags),
			Effects: Effects{Read: true}, Examples: []Example{{"atip-exec hook claude <event.json", ""}}},
		{Verb: "run", Group: groupRun, Acts: Reads, Lists: []string{"--list"}, Program: "atip", Summary: "run a function of a Runfile, or describe its functions to agents", Args: []Arg{{Name: "FUNCTION", Offer: OfferFunctions, Optional: true, Help: "the function; `run a b` is a:b where that exists"}, {Name: "ARGS", Offer: OfferParameters, Optional: true, Variadic: true, Help: "the arguments of the function, each a word of its own"}},
			Long: "The Runfile is found in this directory or above it; ~/.runfile counts below it. Each function runs through the whole of atip-exec, and what its comments say (@effects, @safe, @timeout) is the most that it may do. Without a function the list is printed. Started as `run` the program is this verb.",
			Flags: concat([]Flag{{Name: "runfile", Access: Read, Kind: Path, Value: "FILE", Help: "this Runfile instead of the one that is found"},
				{Name: "working-dir", Access: Enter, Kind: Path, Value: "DIR", Help: "look for the Runfile from DIR and run there"},
				{Name: "list", Short: 'l', Kind: Bool, Help: "list the functions"},
				{Name: "inspect", Kind: Bool, Help: "describe the functions that have a @desc as tools, in JSON"},
				{Name: "all", Kind: Bool, Help: "--inspect: all functions"},
				{Name: "format", Kind: Enum, Value: "FORM", Enum: []string{"run", "mcp", "openai", "anthropic", "gemini", "atip"}, Help: "--inspect: in whose form (default run)"},
				{Name: "show-script", Kind: Bool, Help: "print the code that would run"},
				{Name: "serve-mcp", Kind: Bool, Help: "serve the functions over the Model Context Protocol; also `--serve-mcp http`"},
				{Name: "port", Kind: Int, Value: "N", Help: "--serve-mcp http: the port, 0 for any (default 8080)"},
				{Name: "readonly", Kind: Bool, Help: "only functions with @safe"},
				{Name: "dry-run", Kind: Bool, Help: "print the plan; start nothing"},
				{Name: "timeout", Kind: Duration, Value: "DUR", Help: "end the function after DUR; @timeout can be less"},
				{Name: "policy", Access: Own, Kind: Strings, Value: "FILE", Env: "ATIP_EXEC_POLICY", Help: "apply this policy file too; it can only tighten"}}, listFlags, commonFlags), Stops: true, Effects: Effects{Read: true, Subprocess: true},
			Examples: []Example{{"atip run --list", ""}, {"atip run --inspect --format openai", ""}, {"atip run deploy staging", ""}}},
		{Verb: "prime", Group: groupRun, Acts: Writes, Program: "atip", Summary: "print the directives of a tool for agents, or those of atip-exec", Args: []Arg{{Name: "TOOL", Offer: OfferTools, Optional: true, Help: "a tool with the Prime Directive"}},
			Long: "The tool is asked once for its file, an agent and a session; the answer is kept and holds for later runs. The session and the agent are those of the environment unless flags name others.",
			Flags: concat([]Flag{{Name: "agent-id", Kind: String, Value: "ID", Help: "the calling agent (default: of the environment, or unknown)"},
				{Name: "session-id", Kind: String, Value: "ID", Help: "the session (default: of the environment)"},
				{Name: "capabilities", Kind: String, Value: "JSON", Help: "what the agent can handle, an object"},
				{Name: "locale", Kind: String, Value: "LOCALE", Help: "such as en-US"},
				{Name: "user-role", Kind: String, Value: "ROLE", Help: "end_user, admin or system"},
				{Name: "metadata", Kind: String, Value: "JSON", Help: "further hints, an object"}}, commonFlags), Effects: Effects{Read: true, Write: true, Subprocess: true},
			Examples: []Example{{"atip prime", "our own directives, from the policy in force"}, {"atip prime mytool --session-id s1", ""}}},
		{Verb: "mcp", Group: groupRun, Acts: Reads, Program: "atip", Summary: "serve exec, explain, prime and chosen tools over the Model Context Protocol",
			Long: "Each call starts one atip-exec, which decides and confines as for any command line. Over HTTP every request carries a token; where it is, is said on stderr.",
			Flags: concat([]Flag{{Name: "transport", Kind: Enum, Value: "HOW", Enum: []string{"stdio", "http"}, Help: "how clients connect (default stdio)"},
				{Name: "port", Kind: Int, Value: "N", Help: "http: the port on 127.0.0.1, 0 for any (default 8080)"},
				{Name: "tools", Kind: Strings, Value: "TOOLS", Help: "also one tool for each command of these, separated by commas"},
				{Name: "runfile", Kind: Bool, Help: "also the functions of the Runfile"},
				{Name: "readonly", Kind: Bool, Help: "only commands that are known to change nothing"},
				{Name: "prime", Kind: Enum, Value: "MODE", Enum: []string{"auto", "enforce", "off"}, Env: "ATIP_EXEC_PRIME", Help: "before the first call: prime for the client, refuse until it does, or nothing"},
				{Name: "policy", Access: Own, Kind: Strings, Value: "FILE", Env: "ATIP_EXEC_POLICY", Help: "apply this policy file too; it can only tighten"},
				{Name: "token-file", Access: Own, Kind: Path, Value: "FILE", Help: "http: the file that holds the token, for you alone"},
				{Name: "no-auth", Kind: Bool, Help: "http: no token; every program of this machine can call"}}, commonFlags), Effects: Effects{Read: true, Network: true, Subprocess: true},
			Examples: []Example{{"atip mcp --tools gh,git", "for a client that starts it"}, {"atip mcp --transport http --port 0", ""}}},
		{Verb: "call", Group: groupRun, Acts: Reads, Program: "atip", Summary: "run the tool calls in a model response and print their results", Args: []Arg{{Name: "TOOL", Offer: OfferTools, Variadic: true, Help: "the tools whose functions the model was given"}},
			Long: "The response is read from stdin. Calls whose effects do not meet run side by side, the others in their order.",
			Flags: concat([]Flag{{Name: "provider", Kind: Enum, Value: "NAME", Enum: []string{"openai", "anthropic", "gemini"}, Help: "whose form the response has"},
				{Name: "parse-only", Kind: Bool, Help: "print the command lines and start nothing"},
				{Name: "timeout", Kind: Duration, Value: "DUR", Help: "end each call after DUR"},
				{Name: "flatten", Kind: Enum, Value: "HOW", Enum: []string{"discrete", "action"}, Help: "how the functions were compiled"},
				{Name: "policy", Access: Own, Kind: Strings, Value: "FILE", Env: "ATIP_EXEC_POLICY", Help: "apply this policy file too; it can only tighten"}}, commonFlags), Effects: Effects{Read: true, Subprocess: true},
			Examples: []Example{{"atip call --provider openai gh git <response.json", ""}, {"atip call --provider anthropic --parse-only gh <response.json", ""}}},
		{Verb: "skill", Group: groupMetadata, Acts: Reads, Program: "atip", Summary: "write a SKILL.md for a tool from its metadata", Args: []Arg{{Name: "TOOL", Offer: OfferTools, Optional: true, Help: "a tool or a document"}},
			Flags: concat([]Flag{{Name: "self", Kind: Bool, Help: "for atip-exec itself"}, {Name: "prime", Kind: Bool, Help: "with what the tool says when it is primed"}}, commonFlags), Effects: Effects{Read: true, Subprocess: true},
			Examples: []Example{{"atip skill gh >SKILL.md", ""}, {"atip skill --self", ""}}},
		{Verb: "man", Group: groupMachine, Acts: Writes, Program: "atip", Summary: "write manual pages of programs and file formats into a directory", Args: []Arg{{Name: "DIR", Access: Write, Help: "such as /usr/local/share/man/man1; man1 and man5 get their section, another directory all pages"}}, Flags: commonFlags, Effects: Effects{Read: true, Write: true},
			Examples: []Example{{"atip man man1", ""}, {"atip man /usr/local/share/man/man5", "then `man 5 atip-policy`"}}},
		{Verb: "version", Group: groupMachine, Acts: Reads, Program: "atip-exec", Summary: "print the version", Flags: commonFlags,
			Examples: []Example{{"atip-exec version -o json", ""}}},
		{Verb: "help", Group: groupMachine, Acts: Reads, Program: "atip-exec", Summary: "print help for a verb or topic: environment, exit-codes, output, files, agents", Args: []Arg{{Name: "TOPIC", Optional: true}}, Flags: commonFlags,
			Examples: []Example{{"atip-exec help exit-codes", ""}}},
		{Verb: "audit", Group: groupDecide, Acts: Reads, Wider: []Wide{{Flag: "report-file", Acts: Writes}}, Lists: []string{"list", "show"}, Newest: true, Program: "atip", Summary: "read the audit records: list, show, why ID, verify, report", Args: []Arg{{Name: "list|why|show|verify|report"}, {Name: "ID", Optional: true}},
			Flags: concat([]Flag{{Name: "last", Short: 'n', Kind: Int, Value: "N", Minimum: 1, Help: "only the last N records"},
				{Name: "since", Kind: Duration, Value: "DUR", Help: "report: only what ran within DUR"},
				{Name: "session", Kind: String, Value: "ID", Help: "report: only what ran in this session"},
				{Name: "format", Kind: Enum, Value: "FORMAT", Enum: []string{"junit", "sarif", "markdown", "html"}, Help: "report: for a CI system (default junit), or html: one page to look at"},
				{Name: "report-file", Access: Write, Kind: Path, Value: "FILE", Help: "report: write it to FILE, whole or not at all"},
				{Name: "fail-on", Kind: Enum, Value: "WHAT", Enum: []string{"refused", "failed"}, Help: "report: exit 65 if a command was refused, or if any failed"}}, listFlags, commonFlags), Effects: Effects{Read: true},
			Examples: []Example{{"atip audit show -n 5", ""}, {"atip audit verify", ""}, {"atip audit report --format sarif --fail-on refused >atip.sarif", "in a pipeline"}, {"atip audit report --format html --since 8h --report-file report.html", "a page for a browser"}}},
		{Verb: "validate", Group: groupMetadata, Acts: Reads, Lists: []string{"*"}, Program: "atip", Summary: "check metadata documents strictly", Args: []Arg{{Name: "FILE", Access: Read, Variadic: true}}, Flags: concat([]Flag{{Name: "lenient", Kind: Bool, Help: "report only what stops a document from loading"}}, listFlags, commonFlags), Effects: Effects{Read: true},
			Examples: []Example{{"atip validate mytool.json", ""}}},
		{Verb: "list", Group: groupMetadata, Acts: Reads, Lists: []string{""}, Program: "atip", Summary: "list the tools that have metadata", Flags: concat([]Flag{{Name: "remote", Kind: Bool, Help: "list what the registries offer instead"}}, listFlags, commonFlags), Effects: Effects{Read: true, Network: true},
			Examples: []Example{{"atip list -o json", ""}}},
		{Verb: "show", Group: groupMetadata, Acts: Reads, Lists: []string{"*"}, Program: "atip", Summary: "show a tool's metadata: commands, effects, and where they come from", Args: []Arg{{Name: "TOOL|DIGEST|FILE", Offer: OfferTools}, {Name: "CMD", Optional: true, Variadic: true}},
			Flags: concat(listFlags, commonFlags), Effects: Effects{Read: true}, Examples: []Example{{"atip show git push", ""}}},
		{Verb: "resolve", Group: groupMetadata, Acts: Reads, Program: "atip", Summary: "print how a document resolves a command line; start nothing", Args: []Arg{{Name: "CMD"}, {Name: "ARGS", Optional: true, Variadic: true}}, Stops: true,
			Flags: concat([]Flag{{Name: "metadata", Access: Read, Kind: Path, Value: "FILE", Help: "use this document instead of the one a run would use"},
				{Name: "rank", Kind: Enum, Value: "RANK", Enum: []string{"inferred", "user", "community", "org", "vendor"}, Help: "believe the document this far (default: as far as it declares)"}}, commonFlags),
			Effects: Effects{Read: true}, Examples: []Example{{"atip resolve --metadata gh.json -- gh -R o/r pr merge 42", ""}}},
		{Verb: "undo", Group: groupRun, Acts: Writes, Wider: []Wide{{Flag: "forget", Acts: Destroys}}, Lists: []string{"--list"}, Newest: true, Program: "atip", Summary: "restore the workspace to its state before a run", Args: []Arg{{Name: "RUN|TIME", Offer: OfferUndo, Optional: true, Help: "the run, a checkpoint by its name, a time (RFC 3339), or how long ago (10m); without it the last run that changed something here"}},
			Long: "A checkpoint of now is made first, so `atip undo` again takes the undo back. What others changed since is left and listed (exit 1).\nThe copies hold everything of the workspace, .env files included; they lie where no confined run can read them.",
			Flags: concat([]Flag{{Name: "list", Short: 'l', Kind: Bool, Help: "list the runs that can be undone here"},
				{Name: "diff", Kind: Bool, Help: "print what changed since, and restore nothing"},
				{Name: "dry-run", Kind: Bool, Help: "print what would be restored, and restore nothing"},
				{Name: "only", Access: Write, Kind: Strings, Value: "PATH", Help: "restore PATH and what lies below it only; may be repeated"},
				{Name: "force", Kind: Bool, Help: "also restore what others changed since"},
				{Name: "forget", Kind: Bool, Help: "remove all copies of this workspace; with a directory, those of that one"},
				{Name: "directory", Access: Enter, Short: 'C', Kind: Path, Value: "DIR", Help: "of the workspace of DIR"}}, listFlags, commonFlags), Effects: Effects{Read: true, Write: true},
			Examples: []Example{{"atip undo --list", ""}, {"atip undo --dry-run", ""}, {"atip undo --only src/main.go", "restore one file"}}},
		{Verb: "checkpoint", Group: groupRun, Acts: Writes, Program: "atip", Summary: "copy the workspace now, for `atip undo NAME`", Args: []Arg{{Name: "NAME", Optional: true}},
			Flags: concat([]Flag{{Name: "directory", Access: Enter, Short: 'C', Kind: Path, Value: "DIR", Help: "of the workspace of DIR"}}, commonFlags), Effects: Effects{Read: true, Write: true},
			Examples: []Example{{"atip checkpoint before-refactoring", ""}}},
		{Verb: "forget", Group: groupMetadata, Acts: Writes, Program: "atip", Summary: "delete fetched and probed metadata of a tool", Args: []Arg{{Name: "TOOL|DIGEST", Offer: OfferTools, Variadic: true}}, Flags: commonFlags, Effects: Effects{Read: true, Write: true},
			Examples: []Example{{"atip forget gh", ""}}},
		{Verb: "scan", Group: groupMetadata, Acts: Writes, Lists: []string{"*"}, Program: "atip", Summary: "find the executables of this machine and their metadata", Args: []Arg{{Name: "NAME|DIR", Optional: true, Variadic: true}},
			Long: "Without arguments the names of scan.allow in config.json, else PATH as far as it leads through the usual directories.\nA tool without metadata is asked for it with --agent: without network, in an empty directory, for two seconds.",
			Flags: concat([]Flag{{Name: "no-probe", Kind: Bool, Help: "start nothing; look only for metadata that is here"},
				{Name: "again", Kind: Bool, Help: "also ask tools that had no answer before"}}, listFlags, commonFlags),
			Effects: Effects{Read: true, Write: true, Subprocess: true}, Examples: []Example{{"atip scan --no-probe", ""}, {"atip scan gh", ""}}},
		{Verb: "sync", Group: groupRegistries, Acts: Writes, Program: "atip", Summary: "update metadata from registries, or fetch it for the named tools", Args: []Arg{{Name: "TOOL", Optional: true, Variadic: true}},
			Flags:   concat([]Flag{{Name: "evidence", Kind: Bool, Help: "fetch only the signatures and provenance that metadata names by address"}}, commonFlags),
			Effects: Effects{Read: true, Write: true, Network: true}, Examples: []Example{{"atip sync", ""}, {"atip sync gh", ""}, {"atip sync --evidence gh", ""}}},
		{Verb: "fetch-shim", Group: groupRegistries, Acts: Writes, Program: "atip", Summary: "fetch the metadata of one digest from the registries", Args: []Arg{{Name: "DIGEST"}},
			Flags: concat([]Flag{{Name: "refresh", Kind: Bool, Env: "ATIP_REFRESH", Help: "ask even if the cached metadata is fresh"},
				{Name: "approved-by", Kind: String, Value: "ID", Help: "ask this registry alone whether it approves the file"}}, commonFlags),
			Effects: Effects{Read: true, Write: true, Network: true}, Examples: []Example{{"atip fetch-shim sha256:2cf2…", ""}}},
		{Verb: "generate", Group: groupMetadata, Acts: Writes, Program: "atip", Summary: "write metadata of a tool from its help, its manual page or its completions", Args: []Arg{{Name: "TOOL"}},
			Long: "The tool and its subcommands run with --help in the sandbox of a probe: three levels, 300 runs, one minute.\nWithout --from the first of help, completion and man that names something counts; with it, those named are joined.\nThe document is marked as inferred: it may say that something is dangerous, never that it is harmless.",
			Flags: concat([]Flag{{Name: "from", Kind: Strings, Value: "SOURCE", Help: "help, man or completion; may be given several times"},
				{Name: "install", Kind: Bool, Help: "keep it for this very file instead of printing it"}}, commonFlags), Effects: Effects{Read: true, Write: true, Subprocess: true},
			Examples: []Example{{"atip generate mytool >mytool.json", ""}}},
		{Verb: "publish", Group: groupRegistries, Acts: Writes, Program: "atip", Summary: "create a registry as a folder for any static web server", Args: []Arg{{Name: "DIR", Access: Write}, {Name: "FILE|DIR", Access: Read, Optional: true, Variadic: true}},
			Flags: concat([]Flag{{Name: "name", Kind: String, Value: "NAME", Help: "name of the registry"}, {Name: "url", Kind: String, Value: "URL", Help: "where it will be served"},
				{Name: "require-signatures", Kind: Bool, Help: "tell clients to refuse unsigned metadata"},
				{Name: "state", Kind: Bool, Help: "also sign a list of the folder, valid for 7 days; clients then detect hidden or old documents"},
				{Name: "key", Access: Own, Kind: Path, Value: "FILE", Help: "sign documents, state and policy with this private key"}}, commonFlags),
			Effects: Effects{Read: true, Write: true}, Examples: []Example{{"atip publish www mytool.json", ""}}},
		{Verb: "crawl", Group: groupRegistries, Acts: Writes, Program: "atip", Summary: "fill a registry from tool manifests, local executables and downloaded packages", Args: []Arg{{Name: "MANIFEST|DIR", Access: Read, Variadic: true}},
			Long: "A manifest is YAML or JSON: name, homepage, description, sources, template (docs/registries.md). No connection is opened, no script of a package is run; without a template an executable for this machine runs with --help in the sandbox of a probe.",
			Flags: concat([]Flag{{Name: "into", Access: Write, Kind: Path, Value: "DIR", Help: "the folder of the registry; documents that are there are kept"}, {Name: "from", Access: Read, Kind: Path, Value: "DIR", Help: "where release files and packages were downloaded to"},
				{Name: "tool", Kind: Strings, Value: "NAME", Help: "only this tool"}, {Name: "check", Kind: Bool, Help: "list new documents; write nothing"},
				{Name: "replace", Kind: Bool, Help: "write documents that are there again"}, {Name: "no-probe", Kind: Bool, Help: "start nothing"}}, commonFlags),
			Effects: Effects{Read: true, Write: true, Subprocess: true}, Examples: []Example{{"atip crawl --into www tools/", ""}, {"atip crawl --into www --from downloads --check tools/", ""}}},
		{Verb: "verify", Group: groupRegistries, Acts: Reads, Wider: []Wide{{Flag: "keep", Acts: Writes}}, Program: "atip", Summary: "verify the signature and provenance of a tool, document or file", Args: []Arg{{Name: "TOOL|FILE", Access: Read, Optional: true, Help: "a command word, or a file, which need not be executable"}},
			Long: "The exit status is 0 for VERIFIED and 77 for any lower level.\nThe permitted signers come from your policy and trust directory, or from the flags, which then replace them. Nothing is fetched. The signature is looked for beside the file (.sigstore.json, .bundle, .minisig, .asc, .sig); a tool's lies under shims/sha256, where --keep puts it.",
			Flags: concat([]Flag{{Name: "bundle", Access: Read, Kind: Path, Value: "FILE", Help: "the signature: a Sigstore bundle or .jsonl, a cosign bundle, OpenPGP, minisign"},
				{Name: "bundle-line", Kind: Int, Value: "N", Minimum: 1, Help: "only line N of a .jsonl"},
				{Name: "sums", Access: Read, Kind: Path, Value: "FILE", Help: "the signature is over this list of SHA-256 sums"},
				{Name: "provenance", Access: Read, Kind: Path, Value: "FILE", Help: "SLSA provenance, as a bundle or .jsonl"},
				{Name: "identity", Kind: String, Value: "ID", Help: "the one signer: subject of the certificate, byte for byte"},
				{Name: "identity-pattern", Kind: String, Value: "RE", Help: "the one signer, by a pattern that begins with https://host/ and matches as a whole"},
				{Name: "issuer", Kind: String, Value: "URL", Help: "issuer of the identity"},
				{Name: "key", Access: Own, Kind: Path, Value: "FILE", Help: "the one signer: a public key in PEM, of minisign, or a keyring with --fingerprint"},
				{Name: "fingerprint", Kind: String, Value: "HEX", Help: "the whole fingerprint of the OpenPGP key"},
				{Name: "source-repository", Kind: String, Value: "URL", Help: "the repository that was built"},
				{Name: "any-source", Kind: Bool, Help: "any repository may have called the workflow"},
				{Name: "predicate-type", Kind: String, Value: "TYPE", Help: "the type that the provenance must have"},
				{Name: "builder", Kind: Strings, Value: "ID", Help: "a builder that is believed; may be given several times"},
				{Name: "minimum-slsa", Kind: Int, Value: "N", Minimum: 1, Help: "the least SLSA level, computed"},
				{Name: "trusted-root", Access: Read, Kind: Path, Value: "FILE", Help: "check against this root instead"},
				{Name: "profile", Kind: Enum, Value: "NAME", Enum: []string{"public-good", "github", "private"}, Help: "--trusted-root: what the deployment proves (default private)"},
				{Name: "digest", Kind: String, Value: "DIGEST", Help: "the file must have this digest, sha256 or sha512"},
				{Name: "metadata", Access: Read, Kind: Path, Value: "FILE", Help: "also hold what this document claims about the file against it"},
				{Name: "keep", Kind: Bool, Help: "keep the evidence of a verified tool where runs find it"},
				{Name: "request", Kind: String, Value: "-", Help: "read verification requests as JSON lines from stdin; the helper of atip-exec"},
				{Name: "decide", Kind: String, Value: "-", Help: "read facts as JSON lines from stdin, answer level, reason and action"}}, commonFlags),
			Effects:  Effects{Read: true, Write: true},
			Examples: []Example{{"atip verify --key release.pub dep.json", "a file with dep.json.bundle beside it"}, {"atip verify gh", "as policy has it"}}},
		{Verb: "sign", Group: groupRegistries, Acts: Writes, Program: "atip", Summary: "sign a file; write a Sigstore bundle of version 0.3", Args: []Arg{{Name: "FILE", Access: Write, Optional: true}},
			Long:    "With a key nothing leaves this machine, and the signer's entry says \"log\": \"none\". Without one the URLs of a Fulcio and of a Rekor or timestamp authority are needed, and a file that holds an identity token.",
			Flags:   concat([]Flag{{Name: "new-key", Access: Write, Kind: Path, Value: "FILE", Help: "make a key pair, FILE and FILE.pub, and sign nothing"}}, signFlags, commonFlags),
			Effects: Effects{Read: true, Write: true, Network: true}, Examples: []Example{{"atip sign --new-key release.key", "once"}, {"atip sign --key release.key dep.json", "writes dep.json.bundle"}}},
		{Verb: "attest", Group: groupRegistries, Acts: Writes, Program: "atip", Summary: "sign a statement about a file, such as SLSA provenance", Args: []Arg{{Name: "FILE", Access: Write}},
			Flags: concat([]Flag{{Name: "type", Kind: String, Value: "TYPE", Help: "type of the predicate, such as https://slsa.dev/provenance/v1"},
				{Name: "predicate", Access: Read, Kind: Path, Value: "FILE", Help: "the predicate, in JSON"}}, signFlags, commonFlags),
			Effects: Effects{Read: true, Write: true, Network: true}, Examples: []Example{{"atip attest --key release.key --type https://slsa.dev/provenance/v1 --predicate build.json dep", ""}}},
		{Verb: "trust", Group: groupRegistries, Acts: Widens, Wider: []Wide{{Words: "list", Acts: Reads}, {Words: "status", Acts: Reads}, {Words: "update", Acts: Writes}}, Lists: []string{"list"}, Program: "atip", Summary: "manage trusted roots and signers: update, status, list, add-signer, forget",
			Args: []Arg{{Name: "update|status|list|add-signer|forget"}, {Name: "NAME", Optional: true}},
			Long: "update fetches the root of Sigstore by TUF and keeps the old one beside it; nothing else opens a connection. add-signer and forget need a terminal.",
			Flags: concat([]Flag{{Name: "system", Kind: Bool, Help: "the administrator's directory instead of your own"},
				{Name: "force", Kind: Bool, Help: "update: take a root that drops an authority which is still valid"},
				{Name: "mirror", Kind: String, Value: "URL", Help: "update: another TUF repository"},
				{Name: "tuf-root", Access: Read, Kind: Path, Value: "FILE", Help: "update: the first root.json of that repository"},
				{Name: "name", Kind: String, Value: "NAME", Help: "update: the name of the root (default sigstore)"},
				{Name: "from-bundle", Access: Read, Kind: Path, Value: "FILE", Help: "add-signer: take the identity out of a bundle, after you have read it"},
				{Name: "identity", Kind: String, Value: "ID", Help: "add-signer"}, {Name: "identity-prefix", Kind: String, Value: "ID@", Help: "add-signer"}, {Name: "identity-pattern", Kind: String, Value: "RE", Help: "add-signer"},
				{Name: "issuer", Kind: String, Value: "URL", Help: "add-signer"}, {Name: "source-repository", Kind: String, Value: "URL", Help: "add-signer"}, {Name: "any-source", Kind: Bool, Help: "add-signer"},
				{Name: "key", Access: Own, Kind: Path, Value: "FILE", Help: "add-signer: a public key, which is copied"}, {Name: "log", Kind: Enum, Value: "HOW", Enum: []string{"required", "none"}, Help: "add-signer: of a key (default required)"},
				{Name: "fingerprint", Kind: String, Value: "HEX", Help: "add-signer: of an OpenPGP key"}, {Name: "public-key", Kind: String, Value: "KEY", Help: "add-signer: of minisign"},
				{Name: "tool", Kind: Strings, Value: "NAME", Help: "add-signer: only this tool, of which a signature is then expected"},
				{Name: "vouches-for", Kind: Strings, Value: "WHAT", Help: "add-signer: binary or metadata; both if not given"}, {Name: "root", Kind: String, Value: "NAME", Help: "add-signer: the root (default sigstore)"}}, listFlags, commonFlags),
			Effects: Effects{Read: true, Write: true, Network: true}, Examples: []Example{{"atip trust status", ""}, {"atip trust list", ""}, {"atip trust update", ""}}},
		{Verb: "lock", Group: groupRegistries, Acts: Writes, Wider: []Wide{{Flag: "check", Acts: Reads}, {Flag: "user", Acts: Widens}}, Program: "atip", Summary: "record the digests of tools, or compare them", Args: []Arg{{Name: "TOOL", Optional: true, Variadic: true}},
			Long:    "A tool that differs from the lock needs approval.\nThe lock of a project, .agent-tools/lock.json, only tightens. Your own, lock.json of the configuration directory, also vouches for what it names.",
			Flags:   concat([]Flag{{Name: "check", Kind: Bool, Help: "compare and write nothing; exit 65 on a difference"}, {Name: "user", Kind: Bool, Help: "your own lock instead of the project's"}}, commonFlags),
			Effects: Effects{Read: true, Write: true}, Examples: []Example{{"atip lock git gh", ""}, {"atip lock --check", ""}}},
		{Verb: "lint", Group: groupMetadata, Acts: Reads, Lists: []string{"*"}, Program: "atip", Summary: "find probable mistakes in valid metadata documents", Args: []Arg{{Name: "FILE", Access: Read, Variadic: true}}, Flags: concat(listFlags, commonFlags), Effects: Effects{Read: true},
			Examples: []Example{{"atip lint mytool.json", ""}}},
		{Verb: "diff", Group: groupMetadata, Acts: Reads, Lists: []string{"*"}, Program: "atip", Summary: "compare two documents of one tool: dangers, loosened rules, surface, text", Args: []Arg{{Name: "OLD", Access: Read}, {Name: "NEW", Access: Read}},
			Flags:   concat([]Flag{{Name: "fail-on", Kind: Strings, Value: "CLASS", Help: "exit 65 on changes of these classes: danger, loosened, surface, text"}}, listFlags, commonFlags),
			Effects: Effects{Read: true}, Examples: []Example{{"atip diff --fail-on danger,loosened old.json new.json", ""}}},
		{Verb: "compile", Group: groupMetadata, Acts: Reads, Program: "atip", Summary: "turn metadata into function declarations of a model provider", Args: []Arg{{Name: "FILE|TOOL", Offer: OfferTools}},
			Flags: concat([]Flag{{Name: "provider", Kind: Enum, Value: "NAME", Enum: []string{"openai", "anthropic", "gemini", "mcp"}, Help: "whose form to write"},
				{Name: "strict", Kind: Bool, Help: "OpenAI: closed objects, optional parameters nullable"},
				{Name: "flatten", Kind: Enum, Value: "HOW", Enum: []string{"discrete", "action"}, Help: "one function per command, or one per group with an action parameter"},
				{Name: "commands", Kind: Strings, Value: "A,B", Help: "only these top-level commands"},
				{Name: "names", Kind: Bool, Help: "print the table of function names and the words they stand for"},
				{Name: "system", Kind: Bool, Help: "print text for the system prompt instead"}}, commonFlags),
			Effects: Effects{Read: true}, Examples: []Example{{"atip compile --provider openai --strict gh.json", ""}}},
		{Verb: "safety-prompt", Group: groupMetadata, Acts: Reads, Program: "atip", Summary: "print safety notes on tools, for the prompt of a model", Args: []Arg{{Name: "FILE|TOOL", Offer: OfferTools, Variadic: true}}, Flags: commonFlags, Effects: Effects{Read: true},
			Examples: []Example{{"atip safety-prompt git gh", ""}}},
		{Verb: "pattern", Group: groupRun, Acts: Reads, Lists: []string{"list *"}, Program: "atip", Summary: "list, show or run command sequences that metadata recommends",
			Args:  []Arg{{Name: "list|show|run"}, {Name: "NAME", Optional: true, Variadic: true}},
			Long:  "pattern list [TOOL…], show [TOOL/]NAME [k=v…], run [TOOL/]NAME k=v…\nThe steps are split into words before the values are put in, so that a value is part of one word whatever it holds.\nEach step runs through the whole of atip-exec; the first that fails ends the run with its status.",
			Flags: concat(listFlags, commonFlags), Effects: Effects{Read: true, Subprocess: true},
			Examples: []Example{{"atip pattern list", ""}, {"atip pattern show gh/review-pr number=42", "the words of each step"}, {"atip pattern run gh/review-pr number=42", ""}}},
		{Verb: "policy", Group: groupDecide, Acts: Widens, Wider: []Wide{{Words: "show", Acts: Reads}, {Words: "check", Acts: Reads}, {Words: "test", Acts: Reads}, {Words: "lint", Acts: Reads}, {Words: "diff", Acts: Reads}, {Words: "simulate", Acts: Reads}, {Words: "lock add", Acts: Writes}, {Words: "init -", Acts: Reads}, {Words: "init", Flag: "project", Acts: Writes}}, Lists: []string{"show", "show effective", "lint *", "diff *", "simulate *"}, Program: "atip", Summary: "write, show, check, test, compare and trust policies", Long: "policy init [FILE], show [builtin|effective], check [FILE…], test [FILE], lint [FILE…], diff OLD NEW, simulate [FILE], trust [DIR], lock add, lock sign",
			Args: []Arg{{Name: "init|show|check|test|lint|diff|simulate|trust|lock"}, {Name: "WHAT", Optional: true, Variadic: true}},
			Flags: concat([]Flag{
				{Name: "project", Kind: Bool, Help: "init: a policy of this project, .agent-tools/policy.json, instead of your own"},
				{Name: "corpus", Access: Read, Kind: Strings, Value: "FILE", Help: "labelled commands, one JSON object a line: {\"cmd\"|\"argv\", \"decision\", \"acceptable\", \"effects\", \"files\", \"cwd\"}"},
				{Name: "from-audit", Kind: Bool, Help: "take the commands that the audit recorded"},
				{Name: "fail-on", Kind: Enum, Value: "WHAT", Enum: []string{"loosened", "any"}, Help: "exit 65 if a decision was loosened, or changed at all"},
				{Name: "strict", Kind: Bool, Help: "lint: warnings count as errors"},
				{Name: "reason", Kind: String, Value: "TEXT", Help: "lock add: why CI may do this"},
				{Name: "days", Kind: Int, Value: "N", Minimum: 1, Help: "lock add: how long (default 90)"},
				{Name: "key", Access: Own, Kind: Path, Value: "FILE", Help: "lock sign: the key to sign with"},
			}, listFlags, commonFlags), Effects: Effects{Read: true, Write: true},
			Examples: []Example{{"atip policy init", ""}, {"atip policy show builtin", ""}, {"atip policy check", ""}, {"atip policy test --corpus commands.jsonl", ""}, {"atip policy diff old.json new.json --from-audit --fail-on loosened", ""}}},
		{Verb: "requests", Group: groupApprove, Acts: Reads, Lists: []string{""}, Newest: true, Program: "atip", Summary: "list open approval requests", Flags: concat(listFlags, commonFlags), Effects: Effects{Read: true},
			Examples: []Example{{"atip requests", ""}}},
		{Verb: "approve", Group: groupApprove, Acts: Widens, Wider: []Wide{{Flag: "propose", Acts: Reads}, {Flag: "deny", Acts: Writes}}, Program: "atip", Summary: "read a request on your own terminal and sign a grant for it", Args: []Arg{{Name: "ID", Offer: OfferRequests, Optional: true}},
			Flags: concat([]Flag{
				{Name: "times", Kind: Int, Value: "N", Minimum: 1, Help: "let a harmless, idempotent command run up to N times (at most 20) within an hour"},
				{Name: "session", Kind: Bool, Help: "let the same commands with the same effects, hosts and paths run in this session and workspace for eight hours"},
				{Name: "propose", Kind: Bool, Help: "permit nothing; print the policy rule that would, with an example"},
				{Name: "deny", Kind: Bool, Help: "deny the request instead"},
				{Name: "init", Kind: Bool, Help: "make a key, or with --key take one, and register it"},
				{Name: "key", Access: Own, Kind: Path, Value: "FILE", Help: "sign with this key: a private key, or the .pub of one in an SSH agent or a security key"},
			}, commonFlags), Effects: Effects{Read: true, Write: true, Subprocess: true},
			Examples: []Example{{"atip approve --init", "once, to make a key"}, {"atip approve r7k2m9qxw3tb", ""}}},
		{Verb: "deny", Group: groupApprove, Acts: Writes, Program: "atip", Summary: "deny a request", Args: []Arg{{Name: "ID", Offer: OfferRequests}}, Flags: commonFlags, Effects: Effects{Read: true, Write: true},
			Examples: []Example{{"atip deny r7k2m9qxw3tb", ""}}},
		{Verb: "delegate", Group: groupApprove, Acts: Writes, Program: "atip", Summary: "print a token that restricts rights, or run a command under it", Args: []Arg{{Name: "CMD", Optional: true}, {Name: "ARGS", Optional: true, Variadic: true}},
			Flags: concat([]Flag{
				{Name: "spec", Access: Read, Kind: Path, Value: "FILE", Help: "a policy document with profile, default, delegation, delegable.maxDepth, hosts, paths"},
				{Name: "policy", Access: Read, Kind: Path, Value: "FILE", Help: "the same as --spec"},
				{Name: "tools", Kind: Strings, Value: "TOOLS", Help: "permit these tools, separated by commas; any other is denied"},
				{Name: "deny-command", Kind: Strings, Value: "COMMAND", Help: "deny a command, such as \"gh repo delete\""},
				{Name: "no-destructive", Kind: Bool, Help: "deny destructive commands"},
				{Name: "ttl", Kind: Duration, Value: "DUR", Help: "lifetime of the token (default 1h)"},
				{Name: "name", Kind: String, Value: "NAME", Help: "label of the recipient, for the audit"},
				{Name: "final", Kind: Bool, Help: "forbid further delegation"},
			}, commonFlags), Effects: Effects{Read: true, Write: true, Subprocess: true},
			Examples: []Example{{"atip delegate --tools git --tools ls --no-destructive -- git status", ""}, {"atip delegate --spec readonly.json --ttl 30m", ""}}},
		{Verb: "doctor", Group: groupMachine, Acts: Reads, Machines: "fix", Wider: []Wide{{Flag: "fix", Acts: Widens}}, Lists: []string{""}, Program: "atip", Summary: "report what this machine enforces and which agents it covers",
			Long:  "A row for each agent and each wrapper says whether it is here, whether its commands go through atip-exec, and whether it fails open or closed. Exit status 69 if a row fails.\n--fix writes again what belongs to an installation and is gone or was changed: the hook file, the shells and the wrappers. It changes no settings, no policy and no key; the other rows name the command with which you decide.",
			Flags: concat([]Flag{{Name: "fix", Kind: Bool, Help: "repair the files of installations first, and list the repairs and the open rows"}}, listFlags, commonFlags), Effects: Effects{Read: true, Write: true},
			Examples: []Example{{"atip doctor", ""}}},
		{Verb: "self-check", Group: groupMachine, Acts: Reads, Program: "atip", Summary: "compare the installed files with the checksums of their release",
			Long:    "The list, atip-exec.sums, lies beside the programs or in ../share/atip-exec; `sha256sum -c` reads it, too. Exit status 65 if a file differs, is missing or is not listed, 66 without a list.\nIf nothing signed the list, that is said: then it shows damage and mixed versions, and no more.",
			Flags:   concat([]Flag{{Name: "sums", Access: Read, Kind: Path, Value: "FILE", Help: "compare the programs with this list, such as one of the release page"}}, commonFlags),
			Effects: Effects{Read: true, Subprocess: true}, Examples: []Example{{"atip self-check", ""}, {"atip self-check --sums atip-exec.sums -o json", ""}}},
		{Verb: "shim", Group: groupMachine, Acts: Widens, Machines: "yes", Wider: []Wide{{Flag: "list", Acts: Reads}, {Flag: "dry-run", Acts: Reads}}, Program: "atip", Summary: "put names of tools into a directory for PATH, so that they start through atip-exec", Args: []Arg{{Name: "TOOL", Optional: true, Variadic: true, Help: "such as gh or git; with --list and --uninstall, none means all"}},
			Long: "For programs that are no agent of `atip init`: the name then starts `atip-exec -- TOOL`. The directory of wrappers is left out when the tool itself is looked for. A file there that shim did not write is not touched. Then each wrapper is tried without starting its tool.\nAbsolute paths bypass a wrapper, and so does a PATH without the directory.",
			Flags: concat([]Flag{{Name: "list", Kind: Bool, Help: "check the wrappers; exit status 69 if one is broken"},
				{Name: "dry-run", Kind: Bool, Help: "print what would change; change nothing"},
				{Name: "uninstall", Kind: Bool, Help: "remove the wrappers"},
				{Name: "yes", Short: 'y', Kind: Bool, Help: "do not ask; needs no terminal"}}, commonFlags),
			Effects: Effects{Read: true, Write: true, Subprocess: true}, Examples: []Example{{"atip shim git --dry-run", ""}, {"atip shim --list", ""}}},
		{Verb: "init", Group: groupMachine, Acts: Widens, Machines: "yes", Wider: []Wide{{Flag: "print", Acts: Reads}, {Flag: "dry-run", Acts: Reads}, {Flag: "status", Acts: Reads}}, Program: "atip", Summary: "make coding agents run their commands through atip-exec, or stop that", Args: []Arg{{Name: "AGENT", Optional: true, Variadic: true, Help: "claude, codex, gemini, qwen, cursor, copilot, windsurf, opencode, pi, aider; without one, those that are installed"}},
			Long: "The settings file of each agent is changed in place: its comments, order and line ends stay, the file as it was is kept, and --uninstall puts it back. Then a made-up event shows that the agent is answered, and what is not covered is printed.\nMode shell: the agent starts atip-exec in place of its shell, so that cd and functions last from command to command. Mode hook: each command is wrapped. The better mode of the agent is the default.",
			Flags: concat([]Flag{{Name: "scope", Kind: Enum, Value: "SCOPE", Enum: []string{"user", "project"}, Help: "your own settings (default), or those of this workspace"},
				{Name: "mode", Kind: Enum, Value: "MODE", Enum: []string{"hook", "shell"}, Help: "how commands reach atip-exec, where the agent leaves a choice"},
				{Name: "print", Kind: Bool, Help: "print what belongs into the settings; change nothing"},
				{Name: "dry-run", Kind: Bool, Help: "print the files that would change; change nothing"},
				{Name: "status", Kind: Bool, Help: "check what is installed; exit status 69 if something is broken"},
				{Name: "uninstall", Kind: Bool, Help: "put the settings back as they were"},
				{Name: "yes", Short: 'y', Kind: Bool, Help: "do not ask; needs no terminal"}}, commonFlags),
			Effects: Effects{Read: true, Write: true, Subprocess: true}, Examples: []Example{{"atip init --dry-run", ""}, {"atip init claude --print", ""}, {"atip init --status", ""}}},
		{Verb: "sandbox", Group: groupMachine, Acts: Widens, Wider: []Wide{{Words: "test", Acts: Reads}, {Words: "quarantine restore", Acts: Widens}, {Words: "quarantine drop", Acts: Destroys}, {Words: "quarantine", Acts: Reads}, {Words: "clean", Flag: "dry-run", Acts: Reads}, {Words: "clean", Acts: Destroys}}, Lists: []string{"quarantine list", "quarantine"}, Program: "atip", Summary: "test the sandbox, manage quarantined files, remove caches of runs",
			Args: []Arg{{Name: "test|quarantine|clean"}, {Name: "list|show|restore|drop", Optional: true}, {Name: "RUN", Offer: OfferQuarantines, Optional: true}, {Name: "PATH", Optional: true, Variadic: true}},
			Long: "sandbox test tries the known ways out of the sandbox. sandbox quarantine list|show|restore|drop [RUN] manages files that runs wrote under protected names. sandbox clean removes caches of runs.\ntest: each probe is tried without a sandbox too, where it must succeed, or it counts as n/a.\nExit status 69 if something got through that the tier promises to refuse.\nclean: what runs keep for each workspace in the cache directory, unless a run uses it. Nothing else removes it.",
			Flags: concat([]Flag{{Name: "tier", Kind: Enum, Value: "TIER", Enum: []string{"T1", "T2", "T3"}, Help: "test: this tier instead of the one that policy leads to"},
				{Name: "force", Kind: Bool, Help: "restore: replace what stands there now"},
				{Name: "dry-run", Kind: Bool, Help: "clean: list what it would remove"},
				{Name: "older-than", Kind: String, Value: "AGE", Help: "clean: only what no run has used for AGE (30d, 12h)"}}, listFlags, commonFlags),
			Effects:  Effects{Read: true, Write: true, Subprocess: true},
			Examples: []Example{{"atip sandbox test", ""}, {"atip sandbox test --tier T3 -o json", ""}, {"atip sandbox quarantine list", ""}, {"atip sandbox clean --older-than 30d --dry-run", ""}}},
		{Verb: "workspace", Group: groupMachine, Acts: Widens, Wider: []Wide{{Words: "list", Acts: Reads}, {Words: "remove", Acts: Writes}}, Lists: []string{"list"}, Program: "atip", Summary: "list, add or remove registered workspaces",
			Args:  []Arg{{Name: "list|add|remove"}, {Name: "DIR", Access: Enter, Optional: true}},
			Long:  "workspace list, add [DIR], remove [DIR]. Adding one needs your terminal.\nA workspace is a git, Mercurial or Jujutsu work tree of yours, or a directory that is registered here. Elsewhere commands read what they may, and write only their private temporary directory. Places of credentials, of files that run by themselves, of the system, of caches and of this program cannot be registered, nor what holds one.",
			Flags: concat(listFlags, commonFlags), Effects: Effects{Read: true, Write: true}, Examples: []Example{{"atip workspace list", ""}}},
		{Verb: "completion", Group: groupMachine, Acts: Reads, Program: "atip", Summary: "print a completion script for both programs", Long: "The wrapped command completes by its metadata, or else as it does without atip-exec.", Args: []Arg{{Name: "bash|zsh|fish|powershell"}}, Flags: commonFlags,
			Examples: []Example{{"atip completion bash >>~/.bash_completion", ""}, {"atip completion fish >~/.config/fish/completions/atip-exec.fish", ""}}},
		{Verb: "redact", Group: groupMachine, Acts: Reads, Wider: []Wide{{Flag: "report-file", Acts: Writes}}, Program: "atip", Summary: "redact secrets in files or stdin", Args: []Arg{{Name: "FILE", Access: Read, Optional: true, Variadic: true}},
			Flags: concat(redactFlags, commonFlags), Effects: Effects{Read: true},
			Examples: []Example{{"atip redact build.log", ""}, {"atip redact --check --no-env build.log", "exit status 1 if a secret is in it"},
				{"atip redact --records --report json <app.jsonl", "each line by itself; findings as JSON on stderr"}}},
	}
}

// SpecOf finds the spec of a verb.
func SpecOf(verb string) (Spec, bool) {
	if verb == "" {
		return Root(), true
	}
	// Asked first: every command would pay for building the descriptions.
	if !step.OwnVerb(verb) {
		return Spec{}, false
	}
	for _, s := range verbs() {
		if s.Verb == verb {
			return s, true
		}
	}
	return Spec{}, false
}

func concat(lists ...[]Flag) []Flag {
	var out []Flag
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// omit is list without the flags of these names.
func omit(list []Flag, names ...string) []Flag {
	return slices.DeleteFunc(slices.Clone(list), func(f Flag) bool { return slices.Contains(names, f.Name) })
}

// maxTimeout is the longest duration a flag accepts.
const maxTimeout = 24 * time.Hour

// Values holds what the flags of one command line said; the last one wins.
type Values struct {
	set  map[string][]string
	Rest []string // the command, or the words of a verb
	Dash bool     // a "--" ended the flags

	newest bool
}

// Newest reports whether the lists of the verb are in the order of time, so that their last
// items are those to keep.
func (v *Values) Newest() bool { return v.newest }

// Has reports whether the flag was given, in the environment too.
func (v *Values) Has(name string) bool { return len(v.set[name]) > 0 }

// Get returns the last value, "" if none.
func (v *Values) Get(name string) string {
	if all := v.set[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// All returns every value of a Strings flag.
func (v *Values) All(name string) []string { return v.set[name] }

// CountOf returns how often a Count flag was given.
func (v *Values) CountOf(name string) int { return len(v.set[name]) }

// DurationOf returns the value of a Duration flag, 0 if none.
func (v *Values) DurationOf(name string) time.Duration {
	d, _ := ParseDuration(v.Get(name))
	return d
}

// SizeOf returns the value of a Size flag in bytes, 0 if none.
func (v *Values) SizeOf(name string) int64 {
	n, _ := ParseSize(v.Get(name))
	return n
}

// IntOf returns the value of an Int flag, 0 if none.
func (v *Values) IntOf(name string) int {
	n, _ := strconv.Atoi(v.Get(name))
	return n
}

// Parse reads args by the flags of spec. Where spec.Stops is set the first word
// that is not a flag ends them; elsewhere flags may stand anywhere. There are no
// abbreviations, so that a new flag never changes what an old line means.
func Parse(spec Spec, args []string, getenv func(string) string) (*Values, error) {
	v, err := parse(spec, args)
	if err == errCommandString {
		// The words right of the string of -c are $0, $1 and so on. pflag does not say where
		// it stopped: the string ends the shortest part of the line that has one.
		n := 1
		for err = nil; err != errCommandString; n++ {
			v, err = parse(spec, args[:n])
		}
		v.Rest, err = args[n-1:], nil
	}
	if err != nil {
		return nil, usageError(spec, err)
	}
	if err := spec.lists(v); err != nil {
		return nil, err
	}
	return v, v.fromEnv(spec, getenv)
}

// lists refuses the flags that shorten a list on a call that prints none.
func (s Spec) lists(v *Values) error {
	v.newest = s.Newest
	if len(s.Lists) == 0 || !v.Has("fields") && !v.Has("max-items") {
		return nil
	}
	flag := "--max-items"
	if v.Has("fields") {
		flag = "--fields"
	}
	for _, call := range s.Lists {
		words := strings.Fields(call)
		switch {
		case strings.HasPrefix(call, "--"):
			if v.Has(call[2:]) {
				return nil
			}
		case len(words) > 0 && words[len(words)-1] == "*":
			if words = words[:len(words)-1]; len(v.Rest) >= len(words) && slices.Equal(v.Rest[:len(words)], words) {
				return nil
			}
		case slices.Equal(v.Rest, words):
			return nil
		}
	}
	var calls []string
	for _, call := range s.Lists {
		calls = append(calls, strings.TrimSpace("atip "+s.Verb+" "+strings.TrimSuffix(call, "*")))
	}
	return fault.New(errcode.FlagValue, flag+" shortens a list, and this call prints none").With("flag", flag).WithFix("lists are printed by "+strings.Join(calls, ", "), calls[0])
}

// errCommandString ends the flags at the string of -c.
var errCommandString = errors.New("a command string ends the flags")

// parse hands args to pflag. With errCommandString it returns what was read so far.
func parse(spec Spec, args []string) (*Values, error) {
	v := &Values{set: map[string][]string{}}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.SetInterspersed(!spec.Stops)
	set.SortFlags = false
	for i := range spec.Flags {
		f := &spec.Flags[i]
		p := &pflag.Flag{Name: f.Name, Value: (*pflagValue)(f)}
		if f.Short != 0 {
			p.Shorthand = string(f.Short)
		}
		if !f.takesValue() {
			p.NoOptDefVal = "true"
		}
		set.AddFlag(p)
	}
	err := set.ParseAll(args, func(p *pflag.Flag, value string) error {
		f := (*Flag)(p.Value.(*pflagValue))
		if err := f.check("--"+f.Name, value); err != nil {
			return err
		}
		v.set[f.Name] = append(v.set[f.Name], value)
		if f.Name == "command" && spec.Stops {
			return errCommandString
		}
		return nil
	})
	if errors.Is(err, errCommandString) {
		return v, errCommandString
	}
	if err != nil {
		return nil, err
	}
	v.Rest, v.Dash = set.Args(), set.ArgsLenAtDash() >= 0
	return v, nil
}

// pflagValue is a flag of ours as pflag takes it. Parse reads the values itself, so
// that the last word about what a value may be is check's.
type pflagValue Flag

func (*pflagValue) String() string   { return "" }
func (*pflagValue) Set(string) error { return nil }
func (*pflagValue) Type() string     { return "" }

// usageError says in our terms what pflag refused.
func usageError(spec Spec, err error) error {
	var invalid *fault.Fault
	if errors.As(err, &invalid) {
		return invalid
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		shown := "--" + missing.GetSpecifiedName()
		if missing.GetSpecifiedShortnames() != "" {
			shown = "-" + missing.GetSpecifiedName()
		}
		return fault.New(errcode.FlagValue, shown+" needs a value").With("flag", shown).WithFix("write "+shown+" "+missing.GetFlag().Value.(*pflagValue).Value, "")
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		shown := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			shown = "-" + unknown.GetSpecifiedName()
		}
		return unknownFlag(spec, shown)
	}
	var syntax *pflag.InvalidSyntaxError
	if errors.As(err, &syntax) {
		return unknownFlag(spec, syntax.GetSpecifiedFlag())
	}
	return fault.New(errcode.Arguments, err.Error())
}

// fromEnv gives flags that were not typed the value of their variable.
func (v *Values) fromEnv(spec Spec, getenv func(string) string) error {
	for _, f := range spec.Flags {
		if f.Env == "" {
			continue
		}
		value := getenv(f.Env)
		if value == "" || (v.Has(f.Name) && f.Kind != Strings) {
			continue
		}
		if err := f.check("$"+f.Env, value); err != nil {
			return err
		}
		v.set[f.Name] = append(v.set[f.Name], value)
	}
	return nil
}

func (f *Flag) takesValue() bool { return f.Kind != Bool && f.Kind != Count }

func (f *Flag) check(shown, value string) error {
	bad := func(what, fix, example string) error {
		return fault.New(errcode.FlagValue, fmt.Sprintf("%s: %q %s", shown, value, what)).With("flag", shown).WithFix(fix, example)
	}
	switch f.Kind {
	case Bool, Count:
		if value != "true" {
			return fault.New(errcode.FlagValue, shown+" takes no value").With("flag", shown)
		}
	case Enum:
		if slices.Contains(f.Enum, value) {
			return nil
		}
		return bad("is not one of "+strings.Join(f.Enum, ", "), "choose one of them", shown+" "+f.Enum[0])
	case Int:
		if n, err := strconv.Atoi(value); err != nil || n < f.Minimum {
			return bad(fmt.Sprintf("is not a number of at least %d", f.Minimum), "write a number", fmt.Sprintf("%s %d", shown, f.Minimum))
		}
	case Duration:
		if value == "declared" && f.Name == "timeout" {
			return nil
		}
		if _, err := ParseDuration(value); err != nil {
			return bad(err.Error(), "write a number and a unit", shown+" 5m")
		}
	case Size:
		if _, err := ParseSize(value); err != nil {
			return bad(err.Error(), "write a number of bytes, or one with KiB, MiB or GiB", shown+" 64KiB")
		}
	case Path:
		if value == "" {
			return bad("is not a path", "name a file or directory", "")
		}
	}
	return nil
}

// ParseDuration reads seconds ("90", "1.5") or a number with ms, s, m or h; more
// than 0 and at most 24 hours.
func ParseDuration(text string) (time.Duration, error) {
	unit, number := time.Second, text
	for _, u := range []struct {
		suffix string
		unit   time.Duration
	}{{"ms", time.Millisecond}, {"s", time.Second}, {"m", time.Minute}, {"h", time.Hour}} {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			unit, number = u.unit, rest
			break
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || strings.ContainsAny(number, "xXeEpPnNiI_") {
		return 0, fmt.Errorf("is not a duration")
	}
	// Compared as float first: a huge number must not wrap around in the conversion.
	if n*float64(unit) > float64(maxTimeout) {
		return 0, fmt.Errorf("is longer than 24h")
	}
	d := time.Duration(n * float64(unit))
	if d <= 0 {
		return 0, fmt.Errorf("is not more than zero")
	}
	return d, nil
}

// ParseSize reads a number of bytes ("65536") or one with KiB, MiB or GiB; more than 0 and
// at most 1024 GiB.
func ParseSize(text string) (int64, error) {
	number, unit := text, int64(1)
	for _, u := range [...]struct {
		suffix string
		unit   int64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}} {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			number, unit = rest, u.unit
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > 1<<40/unit || number[0] == '+' {
		return 0, fmt.Errorf("is not a size")
	}
	return n * unit, nil
}

func unknownFlag(spec Spec, shown string) error {
	f := fault.New(errcode.UnknownFlag, "unknown flag "+shown).With("flag", shown)
	best, bestDistance := "", 3
	for _, known := range spec.Flags {
		if d := distance(strings.TrimLeft(shown, "-"), known.Name); d < bestDistance {
			best, bestDistance = known.Name, d
		}
	}
	if best != "" {
		return f.WithFix("did you mean --"+best+"?", "--"+best)
	}
	return f
}

// distance is the Levenshtein distance of two short words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, cost)
		}
	}
	return row[len(b)]
}
