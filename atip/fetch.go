package atip

import (
	"slices"
	"strings"
)

// Fetch is x-atip-fetch of one command: how to fetch what a project declares without running
// any of its code, so that the command itself can run without network afterwards.
type Fetch struct {
	Words   []string    `json:"words"`             // of the call that fetches, after the tool's name
	Hosts   []string    `json:"hosts"`             // that this call may reach
	Inputs  []string    `json:"inputs"`            // files of the directory that it sees; **/NAME is that name at any depth
	Names   []string    `json:"names,omitempty"`   // files of which it sees that they are there, and no content
	Needs   []string    `json:"needs,omitempty"`   // inputs without which nothing is declared: one of them must be there
	Refuse  []string    `json:"refuse,omitempty"`  // an input with one of these texts cannot be fetched this way
	Require []string    `json:"require,omitempty"` // options that the command must have
	Options []string    `json:"options,omitempty"` // options that it may have
	Env     [][2]string `json:"env,omitempty"`     // of the call that fetches
	Mirror  string      `json:"mirror,omitempty"`  // the variable that names another registry
	File    string      `json:"file,omitempty"`    // the file of the directory that may name one, as Mirror= or as Key
	Key     string      `json:"key,omitempty"`

	OfflineWords []string    `json:"offlineWords,omitempty"` // what says that the command works without network
	OfflineEnv   [][2]string `json:"offlineEnv,omitempty"`   // what makes it do so
}

// fetchLists are the members that are arrays of strings.
var fetchLists = [...]string{"words", "hosts", "inputs", "names", "needs", "refuse", "require", "options", "offlineWords"}

// readFetch reads x-atip-fetch; bad is told what is wrong. Of a split with an error nothing
// counts: the command then has its whole effects.
func readFetch(v val, bad func(v val, at, msg string)) *Fetch {
	if !v.ok() {
		return nil
	}
	good := true
	wrong := func(v val, at, msg string) {
		good = false
		if bad != nil {
			bad(v, at, msg)
		}
	}
	if !v.is(KindObject) {
		wrong(v, "", "x-atip-fetch is not an object")
		return nil
	}
	f := &Fetch{Mirror: v.get("mirror").str(), File: v.get("file").str(), Key: v.get("key").str()}
	lists := [...]*[]string{&f.Words, &f.Hosts, &f.Inputs, &f.Names, &f.Needs, &f.Refuse, &f.Require, &f.Options, &f.OfflineWords}
	for i, name := range fetchLists {
		m := v.get(name)
		if !m.ok() {
			continue
		}
		list, ok := m.strings()
		if !ok {
			wrong(m, "/"+name, name+" is not an array of strings")
			continue
		}
		*lists[i] = list
	}
	for i, name := range [...]string{"env", "offlineEnv"} {
		m, pairs := v.get(name), [...]*[][2]string{&f.Env, &f.OfflineEnv}[i]
		if m.ok() && !m.is(KindObject) {
			wrong(m, "/"+name, name+" is not an object")
		}
		m.members(func(key string, e val) bool {
			if !isVariable(key) || !e.is(KindString) {
				wrong(e, "/"+name+"/"+key, quoteShort(key)+" is not a variable with a text")
			}
			*pairs = append(*pairs, [2]string{key, e.str()})
			return true
		})
	}
	for name, list := range map[string][]string{"words": f.Words, "hosts": f.Hosts, "inputs": f.Inputs, "needs": f.Needs} {
		if len(list) == 0 {
			wrong(v, "/"+name, name+" is empty")
		}
	}
	for _, input := range slices.Concat(f.Inputs, f.Names) {
		if why := badInput(input); why != "" {
			wrong(v, "/inputs", quoteShort(input)+" "+why)
		}
	}
	for _, need := range f.Needs {
		if !slices.Contains(f.Inputs, need) {
			wrong(v, "/needs", quoteShort(need)+" is not among the inputs")
		}
	}
	if f.Mirror != "" && !isVariable(f.Mirror) {
		wrong(v.get("mirror"), "/mirror", quoteShort(f.Mirror)+" is not the name of a variable")
	}
	if (f.File == "") != (f.Key == "") || f.File != "" && (f.Mirror == "" || badInput(f.File) != "") {
		wrong(v.get("file"), "/file", "file, key and mirror belong together")
	}
	if len(f.OfflineEnv) == 0 {
		wrong(v, "/offlineEnv", "nothing makes the command work without network")
	}
	if !good {
		return nil
	}
	return f
}

// badInput says why an entry is no file of the directory, "" if it is one.
func badInput(input string) string {
	name := strings.TrimPrefix(input, "**/")
	switch {
	case name == "" || name == "." || name == "..":
		return "names no file"
	case strings.HasPrefix(name, "/"), strings.Contains("/"+name+"/", "/../"), strings.Contains("/"+name+"/", "/./"):
		return "is not a clean path below the directory"
	case name != input && strings.ContainsRune(name, '/'), strings.ContainsAny(strings.TrimPrefix(name, "*."), "*?[\x00"):
		return "has a pattern other than **/NAME and **/*.ENDING"
	}
	return ""
}

// Splits returns how this call can be split, nil if it cannot: its words are known, it names
// nothing but what the project declares, and has no option of which the document says nothing.
func (call *Call) Splits() *Fetch {
	f := call.Fetch
	if f == nil || call.Exactness != Exact || call.Readings != 1 || len(call.UnknownOptions) > 0 || len(call.Positionals) > 0 || len(call.Loose) > 0 || call.Chdir != "" {
		return nil
	}
	for _, o := range call.Options {
		if o.Maybe || !slices.Contains(f.Options, o.Flag) && !slices.Contains(f.Require, o.Flag) {
			return nil
		}
	}
	for _, flag := range f.Require {
		if !slices.ContainsFunc(call.Options, func(o OptionUse) bool { return o.Flag == flag }) {
			return nil
		}
	}
	return f
}

// conventions is how a tool splits its words into options and positionals. Most
// follow getopt_long; x-atip-effects states where one does not.
type conventions struct {
	interspersed   bool // options may follow positionals
	dashdash       bool // "--" ends the options
	bundle         bool // -abc is -a -b -c
	attached       bool // -oVALUE
	abbrev         Value
	abbrevCommands bool
	singleDashLong bool
	negation       bool
	numeric        bool // -5
	bareCluster    bool // the first word is a cluster without dash: tar xzf
	keyValue       bool // name=value words: dd, make
	noOptions      bool // echo
	responsePrefix string
	optionalValue  val
	arity          val
	chdir          val
	terminators    []string
}

func defaultConventions() conventions {
	return conventions{interspersed: true, dashdash: true, bundle: true, attached: true}
}

// apply lays the conventions an extension states over those inherited.
func (c *conventions) apply(x *extension) {
	c.terminators = append(c.terminators[:len(c.terminators):len(c.terminators)], x.terminators...)
	x.parse.members(func(key string, m val) bool {
		b := m.isTrue()
		switch key {
		case "interspersed":
			c.interspersed = b
		case "dashdash":
			c.dashdash = b
		case "bundle":
			c.bundle = b
		case "attachedValue":
			c.attached = b
		case "abbrev":
			c.abbrev = Of(b)
		case "abbrevCommands":
			c.abbrevCommands = b
		case "singleDashLong":
			c.singleDashLong = b
		case "negation":
			c.negation = b
		case "numericOption":
			c.numeric = b
		case "bareCluster":
			c.bareCluster = b
		case "keyValueArgs":
			c.keyValue = b
		case "options":
			c.noOptions = m.str() == "none"
		case "responseFiles":
			c.responsePrefix = m.str()
		case "optionalValue":
			c.optionalValue = m
		case "arity":
			c.arity = m
		case "chdir":
			c.chdir = m
		}
		return true
	})
}

// setArity decides how many words an option takes.
func (c *conventions) setArity(o *option) {
	switch o.typ {
	case "boolean":
		o.arity = 0
	case "string", "integer", "number", "file", "directory", "url", "enum", "array":
		o.arity = 1
	default:
		o.arity = arityUnknown
	}
	if c.optionalValue.ok() && listHas(c.optionalValue, o.flags) {
		o.arity, o.optional = 0, true
	}
	if !c.arity.ok() {
		return
	}
	for _, f := range o.flags {
		if v := c.arity.get(f); v.ok() {
			o.arity, o.optional = readArity(v), false
		}
	}
}

func readArity(v val) int {
	if n, ok := v.integer(); ok && n >= 0 && n <= 64 {
		return n
	}
	switch v.str() {
	case "rest":
		return arityRest
	case "terminator":
		return arityTerminator
	}
	return arityUnknown
}

// listHas reports whether an array of strings names one of the spellings.
func listHas(list val, spellings []string) bool {
	found := false
	list.items(func(_ int, item val) {
		if found || !item.is(KindString) {
			return
		}
		s := item.str()
		for _, f := range spellings {
			if f == s {
				found = true
				return
			}
		}
	})
	return found
}

// endsWords reports whether words[i] ends the words of an option such as -exec.
// Without stated terminators these are find's: ";" and "{} +".
func (c *conventions) endsWords(words []string, from, i int) bool {
	if len(c.terminators) > 0 {
		return slices.ContainsFunc(c.terminators, func(t string) bool { return words[i] == t && (t != "+" || i > from && words[i-1] == "{}") })
	}
	return words[i] == ";" || words[i] == "+" && i > from && words[i-1] == "{}"
}
