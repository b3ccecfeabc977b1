// Package cli is the command line of both programs: flags, verbs and rendering.
// It is the only package that prints.
package cli

import (
	"slices"

	"github.com/atip-dev/atip-exec/internal/run"
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
	Env     string   // variable that gives the value if the flag does not
	Help    string
	Minimum int
}

// Arg is one positional argument of a verb.
type Arg struct {
	Name     string
	Help     string
	Optional bool
	Variadic bool
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

// Spec describes one verb, or with an empty Verb the running of a command.
type Spec struct {
	Verb     string
	Program  string // atip-exec or atip
	Summary  string
	Long     string
	Args     []Arg
	Flags    []Flag
	Examples []Example
	Effects  Effects
	Stops    bool // the first plain word ends the flags of this verb
	Kind     string
}

var outputFlag = Flag{Name: "output", Short: 'o', Kind: Enum, Value: "MODE", Enum: []string{"auto", "text", "json", "jsonl"}, Env: "ATIP_EXEC_OUTPUT",
	Help: "how results and errors are written; json and jsonl wrap the output of the command too"}

var commonFlags = []Flag{
	outputFlag,
	{Name: "quiet", Short: 'q', Kind: Bool, Help: "no warnings and notes; errors and refusals stay"},
	{Name: "verbose", Short: 'v', Kind: Count, Help: "say more on stderr: -v the decision, -vv the sandbox and timings"},
	{Name: "no-color", Kind: Bool, Help: "no colour (also NO_COLOR)"},
	{Name: "help", Short: 'h', Kind: Bool, Help: "print this help"},
}

var planFlags = []Flag{
	{Name: "policy", Kind: Strings, Value: "FILE", Env: "ATIP_EXEC_POLICY", Help: "tighten with this policy file as well; it can never loosen"},
	{Name: "profile", Kind: Strings, Value: "NAME", Help: "narrow to this profile as well: workspace, read-only, ci, ops, or one that a policy defines; it can never loosen"},
	{Name: "directory", Short: 'C', Kind: Path, Value: "DIR", Help: "run in DIR"},
	{Name: "command", Short: 'c', Kind: String, Value: "STRING", Help: "judge and run a shell string instead of an argv"},
}

var runFlags = []Flag{
	{Name: "dry-run", Kind: Bool, Help: "print the plan and start nothing"},
	{Name: "timeout", Kind: Duration, Value: "DUR", Help: "end the command and all it started after DUR (90, 1.5s, 5m; at most 24h), or `declared`"},
	{Name: "kill-after", Kind: Duration, Value: "DUR", Help: "time between SIGTERM and SIGKILL at a timeout (default 2s)"},
	{Name: "wait", Kind: Duration, Value: "DUR", Help: "wait up to DUR for a person where one is needed (at most 10m; never in CI)"},
	{Name: "ci", Kind: Bool, Help: "nobody is here to be asked: what needs a person is refused unless the signed lock permits it (also with CI set)"},
	{Name: "refresh", Kind: Bool, Help: "ask the registries again about what they said before (also ATIP_REFRESH=1)"},
	{Name: "max-output", Kind: Size, Value: "SIZE", Help: "show at most SIZE (65536, 64KiB) of each output stream, its head and its tail; all of it is kept in a file"},
	{Name: "stdin", Kind: String, Value: "MODE", Help: "auto, inherit, null, or a file to read"},
	{Name: "tty", Short: 't', Kind: Bool, Help: "give the command a terminal of its own"},
	{Name: "explain-denials", Kind: Bool, Help: "say each file, address and system call that the sandbox refused; slows the command down"},
	{Name: "status-file", Kind: Path, Value: "FILE", Help: "write the outcome as JSON to FILE, whatever happens"},
	{Name: "status-fd", Kind: Int, Value: "N", Minimum: 3, Help: "write the outcome as one JSON line to descriptor N"},
	{Name: "agent", Kind: Bool, Help: "print the ATIP metadata of atip-exec itself"},
	{Name: "version", Short: 'V', Kind: Bool, Help: "print the version"},
}

// Root describes the running of a command. It is apart from the verbs because every
// run reads it, and none of them.
func Root() Spec {
	return Spec{Program: "atip-exec", Summary: "identify, judge and run a command inside the limits of its declared effects",
		Args:  []Arg{{Name: "CMD", Help: "the command; everything right of it is its own"}, {Name: "ARGS", Optional: true, Variadic: true}},
		Flags: concat(runFlags, planFlags, commonFlags), Stops: true, Kind: "atip-exec.run/1",
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
		{Verb: "explain", Program: "atip-exec", Summary: "print what would happen and why; start nothing",
			Args:  []Arg{{Name: "CMD|CODE", Help: "a command, or an error code or exit status to explain"}, {Name: "ARGS", Optional: true, Variadic: true}},
			Flags: concat(planFlags, commonFlags, []Flag{{Name: "batch", Kind: Bool, Help: "read {\"id\",\"cmd\"|\"argv\",\"cwd\"} objects, one a line, from stdin; answer one plan a line"}}), Stops: true, Effects: Effects{Read: true}, Kind: "atip-exec.plan/1",
			Examples: []Example{{"atip-exec explain -o json -- rm -r build", "the plan document atip-exec.plan/1"}, {"atip-exec explain E2010", "what a code means"}}},
		{Verb: "script", Program: "atip-exec", Summary: "judge a shell script as a whole, then run it",
			Long: "The file is read once: what was read is judged, command by command, and is what runs. - reads standard input to its end.\nThe same happens when the program is started under the name bash, sh, zsh or atip-sh, with the command line of a shell.",
			Args: []Arg{{Name: "FILE", Help: "the script, or - for standard input"}, {Name: "ARGS", Optional: true, Variadic: true}},
			Flags: concat([]Flag{{Name: "errexit", Short: 'e', Kind: Bool, Help: "end at the first command that fails, as `set -e`"},
				{Name: "nounset", Short: 'u', Kind: Bool, Help: "a variable that is not set is an error, as `set -u`"},
				{Name: "xtrace", Short: 'x', Kind: Bool, Help: "print each command before it runs, as `set -x`"},
				{Name: "noglob", Short: 'f', Kind: Bool, Help: "expand no file names, as `set -f`"},
				{Name: "pipefail", Kind: Bool, Help: "a pipeline fails if any part of it does, as `set -o pipefail`"}}, omit(runFlags, "agent", "version"), omit(planFlags, "command"), commonFlags), Stops: true, Kind: "atip-exec.run/1",
			Examples: []Example{{"atip-exec script -e build.sh release", ""}, {"atip-exec script --dry-run build.sh", "print the plan, start nothing"}}},
		{Verb: "version", Program: "atip-exec", Summary: "print the version", Flags: commonFlags, Kind: "atip-exec.version/1",
			Examples: []Example{{"atip-exec version -o json", ""}}},
		{Verb: "help", Program: "atip-exec", Summary: "help on a verb or a topic: environment, exit-codes, output, files, agents", Args: []Arg{{Name: "TOPIC", Optional: true}}, Flags: commonFlags,
			Examples: []Example{{"atip-exec help exit-codes", ""}}},
		{Verb: "audit", Program: "atip", Summary: "read the audit records: `audit list`, `audit why ID`, `audit show`, `audit verify`, `audit report`", Args: []Arg{{Name: "list|why|show|verify|report"}, {Name: "ID", Optional: true}},
			Flags: concat([]Flag{{Name: "last", Short: 'n', Kind: Int, Value: "N", Minimum: 1, Help: "only the last N records"},
				{Name: "since", Kind: Duration, Value: "DUR", Help: "report: only what ran within DUR"},
				{Name: "format", Kind: Enum, Value: "FORMAT", Enum: []string{"junit", "sarif", "markdown"}, Help: "report: for a CI system (default junit)"},
				{Name: "fail-on", Kind: Enum, Value: "WHAT", Enum: []string{"refused", "failed"}, Help: "report: exit 65 if a command was refused, or if any failed"}}, commonFlags), Effects: Effects{Read: true}, Kind: "atip-exec.audit/1",
			Examples: []Example{{"atip audit show -n 5", ""}, {"atip audit verify", ""}, {"atip audit report --format sarif --fail-on refused >atip.sarif", "in a pipeline"}}},
		{Verb: "validate", Program: "atip", Summary: "check metadata documents strictly", Args: []Arg{{Name: "FILE", Variadic: true}}, Flags: concat([]Flag{{Name: "lenient", Kind: Bool, Help: "report only what stops a document from loading"}}, commonFlags), Effects: Effects{Read: true}, Kind: "atip-exec.validate/1",
			Examples: []Example{{"atip validate mytool.json", ""}}},
		{Verb: "list", Program: "atip", Summary: "list the tools that have metadata", Flags: concat([]Flag{{Name: "remote", Kind: Bool, Help: "list what the registries offer instead"}}, commonFlags), Effects: Effects{Read: true, Network: true}, Kind: "atip-exec.list/1",
			Examples: []Example{{"atip list -o json", ""}}},
		{Verb: "show", Program: "atip", Summary: "show a tool's metadata: commands, effects, and where they come from", Args: []Arg{{Name: "TOOL|DIGEST|FILE"}, {Name: "CMD", Optional: true, Variadic: true}},
			Flags: commonFlags, Effects: Effects{Read: true}, Kind: "atip-exec.show/1", Examples: []Example{{"atip show git push", ""}}},
		{Verb: "resolve", Program: "atip", Summary: "say what a document makes of a command line; start nothing", Args: []Arg{{Name: "CMD"}, {Name: "ARGS", Optional: true, Variadic: true}}, Stops: true,
			Flags: concat([]Flag{{Name: "metadata", Kind: Path, Value: "FILE", Help: "use this document instead of the one a run would use"},
				{Name: "rank", Kind: Enum, Value: "RANK", Enum: []string{"inferred", "user", "community", "org", "vendor"}, Help: "believe the document this far (default: as far as it declares)"}}, commonFlags),
			Effects: Effects{Read: true}, Kind: "atip-exec.resolve/1", Examples: []Example{{"atip resolve --metadata gh.json -- gh -R o/r pr merge 42", ""}}},
		{Verb: "forget", Program: "atip", Summary: "drop what was fetched or probed for a tool", Args: []Arg{{Name: "TOOL|DIGEST", Variadic: true}}, Flags: commonFlags, Effects: Effects{Read: true, Write: true}, Kind: "atip-exec.forget/1",
			Examples: []Example{{"atip forget gh", ""}}},
		{Verb: "scan", Program: "atip", Summary: "find the executables of this machine and their metadata", Args: []Arg{{Name: "NAME|DIR", Optional: true, Variadic: true}},
			Long: "Without arguments the names of scan.allow in config.json, else PATH as far as it leads through the usual directories.\nA tool without metadata is asked for it with --agent: without network, in an empty directory, for two seconds.",
			Flags: concat([]Flag{{Name: "no-probe", Kind: Bool, Help: "start nothing; look only for metadata that is here"},
				{Name: "again", Kind: Bool, Help: "also ask tools that had no answer before"}}, commonFlags),
			Effects: Effects{Read: true, Write: true, Subprocess: true}, Kind: "atip-exec.scan/1", Examples: []Example{{"atip scan --no-probe", ""}, {"atip scan gh", ""}}},
		{Verb: "sync", Program: "atip", Summary: "renew metadata from registries, and fetch it for the tools named", Args: []Arg{{Name: "TOOL", Optional: true, Variadic: true}}, Flags: commonFlags,
			Effects: Effects{Read: true, Write: true, Network: true}, Kind: "atip-exec.sync/1", Examples: []Example{{"atip sync", ""}, {"atip sync gh", ""}}},
		{Verb: "fetch-shim", Program: "atip", Summary: "ask the registries for the metadata of one digest", Args: []Arg{{Name: "DIGEST"}},
			Flags: concat([]Flag{{Name: "refresh", Kind: Bool, Env: "ATIP_REFRESH", Help: "ask even if what is here is fresh"},
				{Name: "approved-by", Kind: String, Value: "ID", Help: "ask this registry alone whether it approves the file"}}, commonFlags),
			Effects: Effects{Read: true, Write: true, Network: true}, Kind: "atip-exec.fetch-shim/1", Examples: []Example{{"atip fetch-shim sha256:2cf2…", ""}}},
		{Verb: "generate", Program: "atip", Summary: "write metadata of a tool from its help, its manual page or its completions", Args: []Arg{{Name: "TOOL"}},
			Long: "The tool and its subcommands run with --help in the sandbox of a probe: three levels, 300 runs, one minute.\nWithout --from the first of help, completion and man that names something counts; with it, those named are joined.\nWhat is written is inferred: it may say that something is dangerous, never that it is harmless.",
			Flags: concat([]Flag{{Name: "from", Kind: Strings, Value: "SOURCE", Help: "help, man or completion; may be given several times"},
				{Name: "install", Kind: Bool, Help: "keep it for this very file instead of printing it"}}, commonFlags), Effects: Effects{Read: true, Write: true, Subprocess: true},
			Kind: "atip-exec.generate/1", Examples: []Example{{"atip generate mytool >mytool.json", ""}}},
		{Verb: "publish", Program: "atip", Summary: "lay out a registry in a folder that any static server can serve", Args: []Arg{{Name: "DIR"}, {Name: "FILE|DIR", Optional: true, Variadic: true}},
			Flags: concat([]Flag{{Name: "name", Kind: String, Value: "NAME", Help: "name of the registry"}, {Name: "url", Kind: String, Value: "URL", Help: "where it will be served"},
				{Name: "require-signatures", Kind: Bool, Help: "tell clients to refuse what is not signed"},
				{Name: "state", Kind: Bool, Help: "also state what the folder holds, for 7 days: clients then notice what is hidden or old"}}, commonFlags),
			Effects: Effects{Read: true, Write: true}, Kind: "atip-exec.publish/1", Examples: []Example{{"atip publish www mytool.json", ""}}},
		{Verb: "crawl", Program: "atip", Summary: "fill a registry from tool manifests: executables of this machine and of packages that were downloaded", Args: []Arg{{Name: "MANIFEST|DIR", Variadic: true}},
			Long: "A manifest is YAML or JSON: name, homepage, description, sources, template (docs/registries.md). No connection is opened, no script of a\npackage is run; without a template an executable for this machine runs with --help in the sandbox of a probe.",
			Flags: concat([]Flag{{Name: "into", Kind: Path, Value: "DIR", Help: "the folder of the registry; documents that are there are kept"}, {Name: "from", Kind: Path, Value: "DIR", Help: "where release files and packages were downloaded to"},
				{Name: "tool", Kind: Strings, Value: "NAME", Help: "only this tool"}, {Name: "check", Kind: Bool, Help: "say what is new and write nothing"},
				{Name: "replace", Kind: Bool, Help: "write documents that are there again"}, {Name: "no-probe", Kind: Bool, Help: "start nothing"}}, commonFlags),
			Effects: Effects{Read: true, Write: true, Subprocess: true}, Kind: "atip-exec.crawl/1", Examples: []Example{{"atip crawl --into www tools/", ""}, {"atip crawl --into www --from downloads --check tools/", ""}}},
		{Verb: "lock", Program: "atip", Summary: "write down which files tools are, or compare; a difference is asked about before it runs", Args: []Arg{{Name: "TOOL", Optional: true, Variadic: true}},
			Long:    "The lock of a project, .agent-tools/lock.json, only tightens. Your own, lock.json of the configuration directory, also vouches for what it names.",
			Flags:   concat([]Flag{{Name: "check", Kind: Bool, Help: "compare and write nothing; exit 65 on a difference"}, {Name: "user", Kind: Bool, Help: "your own lock instead of the project's"}}, commonFlags),
			Effects: Effects{Read: true, Write: true}, Kind: "atip-exec.lock/1", Examples: []Example{{"atip lock git gh", ""}, {"atip lock --check", ""}}},
		{Verb: "lint", Program: "atip", Summary: "find what a valid document probably does not mean", Args: []Arg{{Name: "FILE", Variadic: true}}, Flags: commonFlags, Effects: Effects{Read: true}, Kind: "atip-exec.lint/1",
			Examples: []Example{{"atip lint mytool.json", ""}}},
		{Verb: "diff", Program: "atip", Summary: "compare two documents of one tool: dangers, loosened rules, surface, text", Args: []Arg{{Name: "OLD"}, {Name: "NEW"}},
			Flags:   concat([]Flag{{Name: "fail-on", Kind: Strings, Value: "CLASS", Help: "exit 65 on changes of these classes: danger, loosened, surface, text"}}, commonFlags),
			Effects: Effects{Read: true}, Kind: "atip-exec.diff/1", Examples: []Example{{"atip diff --fail-on danger,loosened old.json new.json", ""}}},
		{Verb: "compile", Program: "atip", Summary: "turn metadata into function declarations of a model provider", Args: []Arg{{Name: "FILE|TOOL"}},
			Flags: concat([]Flag{{Name: "provider", Kind: Enum, Value: "NAME", Enum: []string{"openai", "anthropic", "gemini"}, Help: "whose form to write"},
				{Name: "strict", Kind: Bool, Help: "OpenAI: closed objects, optional parameters nullable"},
				{Name: "flatten", Kind: Enum, Value: "HOW", Enum: []string{"discrete", "action"}, Help: "one function per command, or one per group with an action parameter"},
				{Name: "commands", Kind: Strings, Value: "A,B", Help: "only these top-level commands"},
				{Name: "names", Kind: Bool, Help: "print the table of function names and the words they stand for"},
				{Name: "system", Kind: Bool, Help: "print text for the system prompt instead"}}, commonFlags),
			Effects: Effects{Read: true}, Examples: []Example{{"atip compile --provider openai --strict gh.json", ""}}},
		{Verb: "safety-prompt", Program: "atip", Summary: "print what a model should know before it uses these tools", Args: []Arg{{Name: "FILE|TOOL", Variadic: true}}, Flags: commonFlags, Effects: Effects{Read: true},
			Examples: []Example{{"atip safety-prompt git gh", ""}}},
		{Verb: "pattern", Program: "atip", Summary: "`pattern list [TOOL…]`, `show [TOOL/]NAME [k=v…]`, `run [TOOL/]NAME k=v…`: command sequences that metadata recommends",
			Args:  []Arg{{Name: "list|show|run"}, {Name: "NAME", Optional: true, Variadic: true}},
			Long:  "The steps are split into words before the values are put in, so that a value is part of one word whatever it holds.\nEach step runs through the whole of atip-exec; the first that fails ends the run with its status.",
			Flags: commonFlags, Effects: Effects{Read: true, Subprocess: true}, Kind: "atip-exec.pattern/1",
			Examples: []Example{{"atip pattern list", ""}, {"atip pattern show gh/review-pr number=42", "the words of each step"}, {"atip pattern run gh/review-pr number=42", ""}}},
		{Verb: "policy", Program: "atip", Summary: "`policy init [FILE]`, `show [builtin|effective]`, `check [FILE…]`, `test [FILE]`, `lint [FILE…]`, `diff OLD NEW`, `simulate [FILE]`, `trust [DIR]`, `lock add|sign`",
			Args: []Arg{{Name: "init|show|check|test|lint|diff|simulate|trust|lock"}, {Name: "WHAT", Optional: true, Variadic: true}},
			Flags: concat([]Flag{
				{Name: "project", Kind: Bool, Help: "init: a policy of this project, .agent-tools/policy.json, instead of your own"},
				{Name: "corpus", Kind: Strings, Value: "FILE", Help: "labelled commands, one JSON object a line: {\"cmd\"|\"argv\", \"decision\", \"acceptable\", \"effects\", \"files\", \"cwd\"}"},
				{Name: "from-audit", Kind: Bool, Help: "take the commands that the audit recorded"},
				{Name: "fail-on", Kind: Enum, Value: "WHAT", Enum: []string{"loosened", "any"}, Help: "exit 65 if a decision was loosened, or changed at all"},
				{Name: "strict", Kind: Bool, Help: "lint: warnings count as errors"},
				{Name: "reason", Kind: String, Value: "TEXT", Help: "lock add: why CI may do this"},
				{Name: "days", Kind: Int, Value: "N", Minimum: 1, Help: "lock add: how long (default 90)"},
				{Name: "key", Kind: Path, Value: "FILE", Help: "lock sign: the key to sign with"},
			}, commonFlags), Effects: Effects{Read: true, Write: true}, Kind: "atip-exec.policy/1",
			Examples: []Example{{"atip policy init", ""}, {"atip policy show builtin", ""}, {"atip policy check", ""}, {"atip policy test --corpus commands.jsonl", ""}, {"atip policy diff old.json new.json --from-audit --fail-on loosened", ""}}},
		{Verb: "requests", Program: "atip", Summary: "list what waits for a person", Flags: commonFlags, Effects: Effects{Read: true}, Kind: "atip-exec.requests/1",
			Examples: []Example{{"atip requests", ""}}},
		{Verb: "approve", Program: "atip", Summary: "read one request on your own terminal and sign a permission for it", Args: []Arg{{Name: "ID", Optional: true}},
			Flags: concat([]Flag{
				{Name: "times", Kind: Int, Value: "N", Minimum: 1, Help: "let a harmless, idempotent command run up to N times (at most 20) within an hour"},
				{Name: "session", Kind: Bool, Help: "let the same commands with the same effects, hosts and paths run in this session and workspace for eight hours"},
				{Name: "propose", Kind: Bool, Help: "permit nothing; print the policy rule that would, with an example"},
				{Name: "deny", Kind: Bool, Help: "say no instead"},
				{Name: "init", Kind: Bool, Help: "make a key, or with --key take one, and register it"},
				{Name: "key", Kind: Path, Value: "FILE", Help: "sign with this key: a private key, or the .pub of one in an SSH agent or a security key"},
			}, commonFlags), Effects: Effects{Read: true, Write: true, Subprocess: true},
			Examples: []Example{{"atip approve --init", "once, to make a key"}, {"atip approve r7k2m9qxw3tb", ""}}},
		{Verb: "deny", Program: "atip", Summary: "say no to a request", Args: []Arg{{Name: "ID"}}, Flags: commonFlags, Effects: Effects{Read: true, Write: true}, Kind: "atip-exec.answer/1",
			Examples: []Example{{"atip deny r7k2m9qxw3tb", ""}}},
		{Verb: "delegate", Program: "atip", Summary: "print a token that takes rights away, or run a command under it", Args: []Arg{{Name: "CMD", Optional: true}, {Name: "ARGS", Optional: true, Variadic: true}},
			Flags: concat([]Flag{
				{Name: "spec", Kind: Path, Value: "FILE", Help: "a policy document with profile, default, delegation, delegable.maxDepth, hosts, paths"},
				{Name: "policy", Kind: Path, Value: "FILE", Help: "the same as --spec"},
				{Name: "tools", Kind: Strings, Value: "TOOLS", Help: "permit these tools, separated by commas; any other is denied"},
				{Name: "deny-command", Kind: Strings, Value: "COMMAND", Help: "deny a command, such as \"gh repo delete\""},
				{Name: "no-destructive", Kind: Bool, Help: "deny what destroys"},
				{Name: "ttl", Kind: Duration, Value: "DUR", Help: "how long it lives (default 1h)"},
				{Name: "name", Kind: String, Value: "NAME", Help: "a label of whom it is for, for the audit"},
				{Name: "final", Kind: Bool, Help: "it cannot be delegated further"},
			}, commonFlags), Effects: Effects{Read: true, Write: true, Subprocess: true}, Kind: "atip-exec.delegation/1",
			Examples: []Example{{"atip delegate --tools git --tools ls --no-destructive -- git status", ""}, {"atip delegate --spec readonly.json --ttl 30m", ""}}},
		{Verb: "doctor", Program: "atip", Summary: "say what this machine can enforce and what is missing", Flags: commonFlags, Effects: Effects{Read: true}, Kind: "atip-exec.doctor/1",
			Examples: []Example{{"atip doctor", ""}}},
		{Verb: "sandbox", Program: "atip", Summary: "`sandbox test`: try the known ways out of the sandbox; `sandbox quarantine list|show|restore|drop [RUN]`: what runs wrote under protected names; `sandbox clean`: remove caches of runs",
			Args: []Arg{{Name: "test|quarantine|clean"}, {Name: "list|show|restore|drop", Optional: true}, {Name: "RUN", Optional: true}, {Name: "PATH", Optional: true, Variadic: true}},
			Long: "test: each probe is tried without a sandbox too, where it must succeed, or it counts as n/a.\nExit status 69 if something got through that the tier promises to refuse.\nclean: what runs keep for each workspace in the cache directory, unless a run uses it. Nothing else removes it.",
			Flags: concat([]Flag{{Name: "tier", Kind: Enum, Value: "TIER", Enum: []string{"T1", "T2", "T3"}, Help: "test: this tier instead of the one that policy leads to"},
				{Name: "force", Kind: Bool, Help: "restore: replace what stands there now"},
				{Name: "dry-run", Kind: Bool, Help: "clean: say what would be removed"},
				{Name: "older-than", Kind: String, Value: "AGE", Help: "clean: only what no run has used for AGE (30d, 12h)"}}, commonFlags),
			Effects: Effects{Read: true, Write: true, Subprocess: true}, Kind: "atip-exec.sandbox-test/1",
			Examples: []Example{{"atip sandbox test", ""}, {"atip sandbox test --tier T3 -o json", ""}, {"atip sandbox quarantine list", ""}, {"atip sandbox clean --older-than 30d --dry-run", ""}}},
		{Verb: "completion", Program: "atip", Summary: "print what a shell needs to complete both command lines; the wrapped command is completed as the shell would without us", Args: []Arg{{Name: "bash|zsh|fish"}}, Flags: commonFlags,
			Examples: []Example{{"atip completion bash >>~/.bash_completion", ""}, {"atip completion fish >~/.config/fish/completions/atip-exec.fish", ""}}},
		{Verb: "redact", Program: "atip", Summary: "redact secrets in files or stdin", Args: []Arg{{Name: "FILE", Optional: true, Variadic: true}}, Flags: commonFlags, Effects: Effects{Read: true},
			Examples: []Example{{"atip redact build.log", ""}}},
	}
}

// SpecOf finds the spec of a verb.
func SpecOf(verb string) (Spec, bool) {
	if verb == "" {
		return Root(), true
	}
	// Asked first: every command would pay for building the descriptions.
	if !run.OwnVerb(verb) {
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
