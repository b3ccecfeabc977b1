package atip

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
		for _, t := range c.terminators {
			if words[i] == t && (t != "+" || i > from && words[i-1] == "{}") {
				return true
			}
		}
		return false
	}
	return words[i] == ";" || words[i] == "+" && i > from && words[i-1] == "{}"
}
