package atip

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// CompileOptions chooses the form of function declarations.
type CompileOptions struct {
	Provider string // openai, anthropic, gemini
	Strict   bool   // OpenAI: closed objects, optional parameters nullable
	// Action makes one function per group with an "action" parameter instead of one
	// per command.
	Action   bool
	Commands []string // only these top-level commands; nil: all
}

// Compiled is a document as function declarations of one provider.
type Compiled struct {
	Functions []any // in the provider's form; each marshals to JSON
	// Names maps the name of a function back to the words of its command, the tool
	// first. Names are never split: "a_b c" and "a b_c" both become a_b_c.
	Names    map[string][]string
	Warnings []string

	document   *Document
	provenance Provenance
	functions  []function
}

// Bounds of what providers accept.
const (
	maxFunctionName = 64
	maxDescription  = 1024 // UTF-16 units, enforced by OpenAI
	maxFunctions    = 128
)

// Compile turns the commands of a document into function declarations. No provider
// knows effects, so they are told in the description (ATIP 0.6 section 8.2).
func (d *Document) Compile(p Provenance, o CompileOptions) (Compiled, error) {
	switch o.Provider {
	case "openai", "anthropic", "gemini", "mcp":
	default:
		return Compiled{}, &errcode.Error{Code: errcode.FlagValue, Msg: "provider " + quoteShort(o.Provider) + " is not openai, anthropic, gemini or mcp"}
	}
	functions, missing := d.functions(d.Commands(p), o)
	if len(missing) > 0 {
		return Compiled{}, &errcode.Error{Code: errcode.FlagValue, Msg: "no command " + quoteShort(missing[0]) + " in the document"}
	}
	out := Compiled{Functions: []any{}, Names: map[string][]string{}}
	nameFunctions(functions)
	for i := range functions {
		f := &functions[i]
		out.Functions = append(out.Functions, f.declare(o))
		out.Names[f.name] = f.words
	}
	out.document, out.provenance, out.functions = d, p, functions
	if d.partial() {
		out.Warnings = append(out.Warnings, "the document lists only a part of the tool's commands")
	}
	if n := len(functions); n > maxFunctions {
		out.Warnings = append(out.Warnings, strconv.Itoa(n)+" functions; providers accept "+strconv.Itoa(maxFunctions)+": choose some with --commands")
	}
	if o.Strict && o.Provider != "openai" {
		out.Warnings = append(out.Warnings, "only OpenAI has a strict mode")
	}
	return out, nil
}

// function is one declaration before it takes a provider's form.
type function struct {
	name       string
	words      []string // the tool and its command words
	text       string
	effects    Effects
	parameters []parameter
	actions    []string // of a function for a group, nil for one command
}

func (d *Document) functions(commands []Command, o CompileOptions) (out []function, missing []string) {
	tool := d.Name()
	seen := map[string]bool{}
	for i := range commands {
		c := &commands[i]
		if len(o.Commands) > 0 {
			if len(c.Path) == 0 || !slices.Contains(o.Commands, c.Path[0]) {
				continue
			}
			seen[c.Path[0]] = true
		}
		if !c.Leaf() {
			continue
		}
		f := function{words: append([]string{tool}, c.Path...), text: c.Description, effects: c.Effects, parameters: c.parameters()}
		if f.text == "" {
			f.text = strings.Join(f.words, " ")
		}
		out = append(out, f)
	}
	for _, name := range o.Commands {
		if !seen[name] {
			missing = append(missing, name)
		}
	}
	if o.Action {
		out = byAction(out)
	}
	return out, missing
}

// nameFunctions gives each function a name that no other has.
func nameFunctions(functions []function) {
	uses := map[string]int{}
	for i := range functions {
		functions[i].name = functionName(functions[i].words)
		uses[functions[i].name]++
	}
	for i := range functions {
		f := &functions[i]
		if uses[f.name] > 1 || len(f.name) > maxFunctionName {
			sum := sha256.Sum256([]byte(strings.Join(f.words, "\x00")))
			f.name = f.name[:min(len(f.name), maxFunctionName-7)] + "_" + hex.EncodeToString(sum[:3])
		}
	}
}

func functionName(words []string) string {
	name := []byte(strings.Join(words, "_"))
	for i, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			name[i] = '_'
		}
	}
	return string(name)
}

// SafetyFlags are the flags of ATIP 0.6 section 8.2 for stated effects. What is unknown
// shows no flag.
func SafetyFlags(e Effects) []string {
	var out []string
	for _, f := range [...]struct {
		on   bool
		text string
	}{
		{e[Destructive].Value == Yes, "⚠️ DESTRUCTIVE"},
		{e[Reversible].Value == No, "⚠️ NOT REVERSIBLE"},
		{e[Idempotent].Value == No, "⚠️ NOT IDEMPOTENT"},
		{e[Billable].Value == Yes, "💰 BILLABLE"},
		{e[Write].Value == No && e[Network].Value == No && e[Delete].Value != Yes && e[Destructive].Value != Yes, "🔒 READ-ONLY"},
	} {
		if f.on {
			out = append(out, f.text)
		}
	}
	return out
}

// describe joins text and flags. Where the provider has a limit, the text is cut and
// never the flags.
func describe(text string, flags []string, limit int) string {
	suffix := ""
	if len(flags) > 0 {
		suffix = " [" + strings.Join(flags, " | ") + "]"
	}
	if limit > 0 && utf16Len(text)+utf16Len(suffix) > limit {
		text = cutUTF16(text, limit-utf16Len(suffix)-3) + "..."
	}
	return text + suffix
}

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// cutUTF16 keeps at most n UTF-16 units of s, whole characters only.
func cutUTF16(s string, n int) string {
	for i, r := range s {
		if n -= max(utf16.RuneLen(r), 1); n < 0 {
			return s[:i]
		}
	}
	return s
}

func (f *function) declare(o CompileOptions) object {
	switch o.Provider {
	case "openai":
		body := object{{"name", f.name}, {"description", describe(f.text, SafetyFlags(f.effects), maxDescription)}, {"strict", o.Strict}, {"parameters", f.schema(o)}}
		return object{{"type", "function"}, {"function", body}}
	case "mcp":
		h := HintsOf(f.effects)
		return object{{"name", f.name}, {"description", describe(f.text, SafetyFlags(f.effects), maxDescription)}, {"inputSchema", f.schema(o)},
			{"annotations", object{{"readOnlyHint", h.ReadOnly}, {"destructiveHint", h.Destructive}, {"idempotentHint", h.Idempotent}, {"openWorldHint", h.OpenWorld}}}}
	case "anthropic":
		return object{{"name", f.name}, {"description", describe(f.text, SafetyFlags(f.effects), 0)}, {"input_schema", f.schema(o)}}
	}
	return object{{"name", f.name}, {"description", describe(f.text, SafetyFlags(f.effects), 0)}, {"parameters", f.schema(o)}}
}
