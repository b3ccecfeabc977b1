package atip

import (
	"slices"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/wildcard"
)

// ResolveOptions is what Resolve must know beside the words.
type ResolveOptions struct {
	Provenance Provenance
	// InvokedAs is the base name the program is called by ("" for argv[0]);
	// Effective is the base name of the resolved file ("" for InvokedAs).
	InvokedAs, Effective string
	// Env looks up a variable as the child will see it; nil means none is set.
	Env func(name string) (string, bool)
	// EnvNames lists the variables the child will see, for rules such as GIT_*.
	// If nil while Env is not, such rules cannot be answered and count as unknown.
	EnvNames []string
	// Offline are the variables that x-atip-fetch sets for a call that works without network. They answer
	// conditions and are nothing that the caller has set.
	Offline [][2]string
}

// resolver is one call of Resolve.
type resolver struct {
	d           *Document
	argv        []string
	start       int // first word after the tool
	env         func(string) (string, bool)
	envNames    []string
	offline     [][2]string
	partial     bool
	filterDepth int
	rank        Rank
	source      string
	regexps     regexpCache

	work     []*reading
	readings int
	spent    int
}

// spend counts steps, so that no document makes a call take longer than a bound,
// whatever the product of its clauses and the words. false: there are none left.
func (r *resolver) spend(steps int) bool {
	r.spent += steps
	return r.spent <= maxWork
}

// later queues another reading of the words.
func (r *resolver) later(x *reading) {
	r.readings++
	if r.readings <= maxReadings {
		r.work = append(r.work, x)
	}
}

// Resolve turns an argv into a Call. It never fails: at worst all is unknown.
func (d *Document) Resolve(argv []string, o ResolveOptions) Call {
	call := newCall(argv, o.InvokedAs)
	call.Provenance = o.Provenance
	if name := d.Name(); name != "" {
		call.Tool = name
	} else if o.Effective != "" {
		call.Tool = o.Effective
	}
	r := &resolver{
		d: d, argv: argv, start: 1, env: o.Env, envNames: o.EnvNames, offline: o.Offline,
		partial: d.partial(), rank: o.Provenance.Rank, source: o.Provenance.Source,
	}
	if d.Inferred() {
		r.rank = Inferred
		call.Provenance.Rank = Inferred
	}
	r.filterDepth, _ = d.root().get("filter").get("depth").integer()
	for e := range call.Effects {
		call.Effects[e] = Fact{Source: r.source, Rank: r.rank}
	}
	nothing := call
	if tooLong(argv) {
		call.Warnings = append(call.Warnings, "more than 4096 words or 1 MiB: not resolved")
		return call
	}
	start, known := d.startNode(call.InvokedAs, o.Effective)
	done := r.readAll(start)
	if r.readings > maxReadings {
		call.Readings = r.readings
		call.UnknownOptions = append(call.UnknownOptions, done[0].unknown...)
		call.AltPaths = append(call.AltPaths, done[0].n.path())
		call.Warnings = append(call.Warnings, "more than 16 ways to read the words: not resolved")
		return call
	}
	r.fill(&call, done)
	if !known {
		r.anyCommand(&call)
	}
	if r.spent > maxWork {
		nothing.AltPaths = append([][]string{call.Path}, call.AltPaths...)
		nothing.UnknownOptions = call.UnknownOptions
		nothing.Warnings = append(nothing.Warnings, "words and document together are too large: not resolved")
		return nothing
	}
	return call
}

func tooLong(argv []string) bool {
	total := 0
	for _, w := range argv {
		total += len(w)
	}
	return len(argv) > maxWords || total > maxWordBytes
}

// startNode is where reading starts. known is false if the program was called by a
// name its document does not list: programs look at argv[0], so it could do anything
// the document speaks of.
func (d *Document) startNode(invoked, effective string) (start *node, known bool) {
	root := d.rootNode()
	name := d.Name()
	if invoked == "" || invoked == name || name == "" && invoked == effective {
		return root, true
	}
	names := d.root().get("x-atip-names")
	listed := false
	names.items(func(_ int, item val) { listed = listed || item.is(KindString) && wildcard.Match(item.str(), invoked) })
	if d.Multicall() {
		word := invoked
		if rest, ok := strings.CutPrefix(invoked, name+"-"); ok && name != "" {
			word = rest
		}
		if child, abbreviated := root.lookup(word); child != nil && !abbreviated {
			return child, true
		}
	}
	return root, listed
}

// readAll takes every reading to its end.
func (r *resolver) readAll(start *node) []*reading {
	first := &reading{resolver: r, n: start, at: min(r.start, len(r.argv)), afterDash: -1}
	r.readings = 1
	r.work = append(r.work, first)
	var done []*reading
	for len(r.work) > 0 {
		x := r.work[len(r.work)-1]
		r.work = r.work[:len(r.work)-1]
		x.read()
		x.finish()
		done = append(done, x)
		if r.readings > maxReadings {
			break
		}
	}
	return done
}

// fill joins all readings into the call.
func (r *resolver) fill(call *Call, done []*reading) {
	call.Readings = len(done)
	call.Exactness = Exact
	best := done[0]
	for _, x := range done[1:] {
		if best.unresolved && !x.unresolved || best.unresolved == x.unresolved && x.n.depth > best.n.depth {
			best = x
		}
	}
	call.Path = best.n.path()
	for i, x := range done {
		if x.unresolved {
			call.Exactness = Unresolved
			addPath(call, x.n.path())
			addPath(call, x.guess())
		} else {
			if x.bounded && call.Exactness == Exact {
				call.Exactness = Bounded
			}
			addPath(call, x.n.path())
		}
		w := r.settle(x)
		if i == 0 {
			call.Effects = w.result
		} else {
			call.Effects = JoinEffects(call.Effects, w.result)
		}
		if x.unresolved {
			call.addUnresolved(x)
		} else {
			call.addReading(w)
		}
		for _, f := range x.unknown {
			call.UnknownOptions = appendOnce(call.UnknownOptions, f)
		}
	}
	if len(done) > 1 && call.Exactness == Exact {
		call.Exactness = Bounded
	}
	for i := range best.words {
		call.Positionals = append(call.Positionals, Positional{Name: best.words[i].name, Value: best.words[i].text})
	}
	call.addOptions(best, done)
	r.addFields(call, best)
}

// settle weighs one reading, resolved or not.
func (r *resolver) settle(x *reading) *weigh {
	w := x.weigh()
	switch {
	case !x.unresolved:
		if r.readings > 1 {
			// Which words are values hangs on a fork: no narrow may count.
			x.bounded = true
		}
		w.all()
	case x.omitted:
		w.result = r.omittedEffects()
		w.joinRoot()
	default:
		w.result = r.nothing(x.n)
		w.joinRoot()
	}
	return w
}

func (r *resolver) nothing(n *node) (out Effects) {
	for e := range out {
		out[e] = Fact{Source: r.source, Pointer: n.pointer, Rank: r.rank}
	}
	return out
}

// joinRoot adds the danger that the root states of the whole program.
func (w *weigh) joinRoot() {
	root := &w.root
	if root.n == nil {
		root = &w.leaf
	}
	for i := range w.result {
		e := Effect(i)
		if root.effects.stated.Has(e) && risk(e, root.effects.value[e]) > risk(e, w.result[e].Value) {
			w.result[e] = w.fact(root.effects.value[e], root.n, "")
		}
	}
}

// guess is the command that an unresolved reading seems to name, so that a rule which
// denies it still meets it.
func (r *reading) guess() []string {
	path := r.n.path()
	if r.unmatched == "" {
		return path
	}
	from := -1
	for i := range r.words {
		if r.words[i].text == r.unmatched {
			from = i
			break
		}
	}
	if from < 0 {
		return path
	}
	for _, w := range r.words[from:] {
		if strings.HasPrefix(w.text, "-") || len(path) >= maxCommandDepth {
			break
		}
		path = append(path, w.text)
	}
	return path
}

func addPath(call *Call, path []string) {
	same := func(p []string) bool {
		if len(p) != len(path) {
			return false
		}
		for i := range p {
			if p[i] != path[i] {
				return false
			}
		}
		return true
	}
	if same(call.Path) || slices.ContainsFunc(call.AltPaths, same) {
		return
	}
	call.AltPaths = append(call.AltPaths, path)
}

func appendOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// UnknownCall is the Call of a tool without a document: every effect unknown. The
// words that may name a command are kept as an alternative path, which a rule that
// denies meets and a rule that allows does not.
func UnknownCall(argv []string, invokedAs string) Call {
	call := newCall(argv, invokedAs)
	var path []string
	for i := 1; i < len(argv) && len(path) < maxCommandDepth; i++ {
		if w := argv[i]; w != "" && w[0] != '-' {
			path = append(path, w)
		}
	}
	if len(path) > 0 {
		call.AltPaths = [][]string{path}
	}
	return call
}

func newCall(argv []string, invokedAs string) Call {
	if invokedAs == "" && len(argv) > 0 {
		invokedAs = argv[0]
	}
	invokedAs = baseName(invokedAs)
	return Call{
		Tool: invokedAs, InvokedAs: invokedAs, Argv: argv, Path: []string{}, Readings: 1,
		Options: []OptionUse{}, UnknownOptions: []string{}, Positionals: []Positional{},
		Resources: []Resource{}, Nested: []Nested{}, Secrets: []string{},
		Provenance: Provenance{Channel: "none", Binding: "none"},
	}
}

func baseName(path string) string {
	return path[strings.LastIndexByte(path, '/')+1:]
}

// declaredTimeout reads a duration such as 60s, 5m or 1h; 0 for anything else. The
// standard gives typical durations as ranges (1-5s), a timeout as one value.
func declaredTimeout(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0
	}
	return d
}

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
