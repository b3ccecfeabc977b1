package atip

import "time"

// Exactness says how sure a resolution is. The zero value, Unresolved, has every
// effect unknown.
type Exactness uint8

// Degrees of certainty in ascending order.
const (
	Unresolved Exactness = iota
	Bounded              // effects are an upper bound: unknown option, several readings, abbreviation
	Exact
)

// String returns the JSON name.
func (e Exactness) String() string { return [...]string{"unresolved", "bounded", "exact"}[e] }

// MarshalText implements encoding.TextMarshaler.
func (e Exactness) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Provenance says which document answered and how it was bound to the executable.
type Provenance struct {
	Channel  string   `json:"channel"` // override, native, shim, registry, builtin, user, probe, inferred, none
	Rank     Rank     `json:"rank"`
	Binding  string   `json:"binding"`          // hash, name, none
	Source   string   `json:"source"`           // "builtin:git", "user:/home/u/.local/share/agent-tools/shims/x.json"
	Digest   string   `json:"digest,omitempty"` // sha256 hex of the document's raw bytes
	Stale    bool     `json:"stale,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// OptionUse is one option as it stands in an argv.
type OptionUse struct {
	Name  string `json:"name"` // canonical: the longest spelling without dashes
	Flag  string `json:"flag"` // as typed, without an attached value
	Value string `json:"value,omitempty"`
	Maybe bool   `json:"maybe,omitempty"` // only on some readings

	Spellings []string `json:"-"` // all flags that mean it, with their dashes
}

// Loose is a word that the document calls neither text nor a host. In a call with network it may
// name one, also in place of a path.
type Loose struct {
	Name  string // of the argument or option whose value it is, without dashes; "" if it has none
	Value string
	Why   string // "argv[2]", "-o"
}

// Positional is a positional argument with the name its document gives it.
type Positional struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value"`
}

// Nested is a command inside a call: what env, xargs, sh -c or find -exec run.
type Nested struct {
	Kind     string   `json:"kind"` // argv, shell, code
	Argv     []string `json:"argv,omitempty"`
	Text     string   `json:"text,omitempty"`
	Language string   `json:"language,omitempty"`
	From     string   `json:"from"`           // clause id or source of the words
	File     string   `json:"file,omitempty"` // the text stands in this file, "-" for standard input
	// Placeholder in a word of Argv stands for words that come from elsewhere, as
	// xargs reads them from standard input; such words may also be appended.
	Placeholder string `json:"placeholder,omitempty"`
}

// CodeFile names a file whose content can run code, such as .git/config.
type CodeFile struct {
	Path       string   `json:"path"`
	RelativeTo string   `json:"relativeTo"` // cwd, repo, home; project: the directory at hand and those above it, up to the workspace
	Kind       string   `json:"kind"`
	Format     string   `json:"format,omitempty"`
	SafeKeys   []string `json:"safeKeys,omitempty"`
}

// Interactive is what a command needs of stdin and the terminal (ATIP 0.6 section 3.6).
type Interactive struct {
	Stdin   string `json:"stdin,omitempty"` // none, optional, required, password; "" unknown
	TTY     Value  `json:"tty"`
	Prompts Value  `json:"prompts"`
}

// Call is what one argv of one tool will do, as far as its metadata tells.
type Call struct {
	Tool           string        `json:"tool"`
	InvokedAs      string        `json:"invokedAs"`
	Argv           []string      `json:"argv"`
	Path           []string      `json:"path"` // canonical command names; empty for the tool itself
	AltPaths       [][]string    `json:"altPaths,omitempty"`
	Exactness      Exactness     `json:"exactness"`
	Readings       int           `json:"readings"`
	Options        []OptionUse   `json:"options"`
	UnknownOptions []string      `json:"unknownOptions"`
	Positionals    []Positional  `json:"positionals"`
	Effects        Effects       `json:"-"`
	Resources      []Resource    `json:"resources"`
	Loose          []Loose       `json:"-"` // words whose meaning no document states
	Nested         []Nested      `json:"nested"`
	CodeFiles      []CodeFile    `json:"codeFiles,omitempty"`
	Secrets        []string      `json:"secrets"`              // credential variables the tool may ask for
	Endpoints      []string      `json:"-"`                    // variables that say which host the tool talks to; "*" at the end
	Configs        []string      `json:"-"`                    // variables that say where its configuration lies; "*" at the end
	Hosts          []string      `json:"hosts,omitempty"`      // x-atip-hosts: those of the tool's own service
	Service        []string      `json:"-"`                    // x-atip-service: hosts that are its own service where words name them
	Execs          []string      `json:"execs,omitempty"`      // x-atip-execs: what the tool starts; see ExecsKnown
	ExecsKnown     bool          `json:"execsKnown,omitempty"` // it is listed, so that an empty list means nothing
	Fetch          *Fetch        `json:"-"`                    // x-atip-fetch; see Splits
	Paths          []string      `json:"paths,omitempty"`
	Interactive    Interactive   `json:"interactive"`
	Timeout        time.Duration `json:"-"` // declared duration.timeout, 0 if none
	Chdir          string        `json:"chdir,omitempty"`
	Provenance     Provenance    `json:"metadata"`
	Warnings       []string      `json:"warnings,omitempty"`
}
