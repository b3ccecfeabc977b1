package atip

// The checks of the single fields of x-atip-effects.

func (c *extensionChecker) strings(v val, pointer string) {
	if _, ok := v.strings(); !ok {
		c.bad(v, pointer, "not an array of strings")
	}
}

func (c *extensionChecker) want(v val, k Kind, pointer, what string) {
	if !v.is(k) {
		c.bad(v, pointer, what)
	}
}

// oneOf checks a required word.
func (c *extensionChecker) oneOf(v val, pointer string, words ...string) {
	s := v.str()
	for _, w := range words {
		if w == s {
			return
		}
	}
	c.bad(v, pointer, "not one of the words it may be")
}

// effects checks the effects of a base, an add or a narrow.
func (c *extensionChecker) effects(v val, pointer string) {
	if !v.is(KindObject) {
		c.bad(v, pointer, "effects are not an object")
		return
	}
	readStatement(v, true, func(m val, at, _, msg string) { c.bad(m, pointer+at, msg) })
}

func (c *extensionChecker) index(m val, pointer string) {
	if _, ok := m.integer(); !ok {
		c.bad(m, pointer, "not a whole number")
	}
}

func (c *extensionChecker) access(m val, pointer string) {
	if _, ok := readAccess(m); !ok {
		c.bad(m, pointer, "access is not read, write, delete, exec, secret or none")
	}
}

func (c *extensionChecker) arg(v val, at string) {
	selectors := 0
	v.members(func(key string, m val) bool {
		switch key {
		case "index":
			selectors++
			c.index(m, at)
		case "name", "flag", "key":
			selectors++
			c.want(m, KindString, at, key+" is not a string")
		case "kind":
			c.oneOf(m, at, "path", "url", "host", "ref", "db", "text")
		case "access":
			c.access(m, at)
		case "accessIf":
			c.list(m, at, func(item val, at string) {
				c.condition(item.get("if"), at, 0)
				c.access(item.get("access"), at)
			})
		case "recursiveIf":
			if !m.is(KindArray) {
				c.bad(m, at, "recursiveIf is not an array")
			}
			m.items(func(_ int, item val) { c.condition(item, at, 0) })
		case "default":
			c.want(m, KindString, at, "default is not a string")
		default:
			c.field(key, m, at)
		}
		return true
	})
	if selectors > 1 || selectors == 0 && !v.get("default").ok() {
		c.bad(v, at, "not exactly one of index, name, flag and key")
	}
	if !v.get("kind").ok() || !v.get("access").ok() {
		c.bad(v, at, "kind or access is missing")
	}
}

func (c *extensionChecker) exec(v val, at string) {
	v.members(func(key string, m val) bool {
		switch key {
		case "from":
			c.oneOf(m, at, "optionValue", "arg", "rest", "afterDashDash", "untilTerminator", "env", "file", "stdin")
		case "flags":
			c.strings(m, at)
		case "index", "skip":
			c.index(m, at)
		case "assignments":
			if _, ok := m.boolean(); !ok {
				c.bad(m, at, "assignments is not true or false")
			}
		case "terminator":
			words, ok := m.strings()
			if m.is(KindString) {
				words, ok = []string{m.str()}, true
			}
			if !ok {
				c.bad(m, at, "terminator is not a string or an array of strings")
			}
			c.terminators = append(c.terminators, words...)
		case "kind":
			c.oneOf(m, at, "argv", "shell", "code")
		case "language", "placeholder":
			c.want(m, KindString, at, key+" is not a string")
		default:
			c.field(key, m, at)
		}
		return true
	})
	from := v.get("from").str()
	if from == "" || !v.get("kind").ok() {
		c.bad(v, at, "from or kind is missing")
	}
	if (from == "optionValue" || from == "untilTerminator" || from == "env") && v.get("flags").len() == 0 {
		c.bad(v, at, "from "+from+" without flags")
	}
}

func (c *extensionChecker) env(v val, at string) {
	v.members(func(key string, m val) bool {
		switch key {
		case "name":
			if m.str() == "" || m.str() == "*" {
				c.bad(m, at, "name of a variable is empty")
			}
		case "kind":
			c.oneOf(m, at, "exec", "config", "endpoint", "secret")
		default:
			c.field(key, m, at)
		}
		return true
	})
	if !v.get("name").ok() || !v.get("kind").ok() {
		c.bad(v, at, "name or kind is missing")
	}
}

func (c *extensionChecker) file(v val, at string) {
	v.members(func(key string, m val) bool {
		switch key {
		case "path", "kind", "format":
			if m.str() == "" {
				c.bad(m, at, key+" is not a string")
			}
		case "relativeTo":
			c.oneOf(m, at, "cwd", "repo", "home", "project")
		case "safeKeys":
			c.strings(m, at)
		default:
			c.field(key, m, at)
		}
		return true
	})
	if !v.get("path").ok() || !v.get("relativeTo").ok() {
		c.bad(v, at, "path or relativeTo is missing")
	}
}

func (c *extensionChecker) sublanguage(v val, at string) {
	v.members(func(key string, m val) bool {
		switch key {
		case "from":
			c.oneOf(m, at, "optionValue", "arg", "rest", "file", "stdin")
		case "flags":
			c.strings(m, at)
		case "index":
			c.index(m, at)
		case "language":
			c.oneOf(m, at, "sql")
		default:
			c.field(key, m, at)
		}
		return true
	})
	if !v.get("from").ok() || !v.get("language").ok() {
		c.bad(v, at, "from or language is missing")
	}
}

func (c *extensionChecker) parse(v val, at string) {
	if !v.is(KindObject) {
		c.bad(v, at, "parse is not an object")
		return
	}
	v.members(func(key string, m val) bool {
		switch key {
		case "interspersed", "dashdash", "bundle", "attachedValue", "abbrev", "abbrevCommands", "singleDashLong",
			"negation", "numericOption", "bareCluster", "keyValueArgs":
			if _, ok := m.boolean(); !ok {
				c.bad(m, at, key+" is not true or false")
			}
		case "optionalValue", "chdir":
			c.strings(m, at)
		case "arity":
			if !m.is(KindObject) {
				c.bad(m, at, "arity is not an object")
			}
			m.members(func(flag string, n val) bool {
				if readArity(n) == arityUnknown && n.str() != "unknown" {
					c.bad(n, at, "arity of "+quoteShort(flag)+` is not a number up to 64, "rest", "terminator" or "unknown"`)
				}
				return true
			})
		case "options":
			c.oneOf(m, at, "none")
		case "responseFiles":
			if m.str() == "" {
				c.bad(m, at, "responseFiles is not a prefix")
			}
		default:
			c.field(key, m, at)
		}
		return true
	})
}

// readAccess reads one word, or an array or comma-separated list of them.
func readAccess(v val) (Access, bool) {
	if v.is(KindArray) {
		var all Access
		ok := true
		v.items(func(_ int, item val) {
			a, good := readAccess(item)
			all |= a
			ok = ok && good && !item.is(KindArray)
		})
		return all, ok
	}
	s := v.str()
	if s == "" {
		return 0, false
	}
	var all Access
	for s != "" {
		word := s
		for i := 0; i < len(s); i++ {
			if s[i] == ',' {
				word = s[:i]
				break
			}
		}
		if s = s[len(word):]; s != "" {
			s = s[1:]
		}
		switch word {
		case "read":
			all |= AccessRead
		case "write":
			all |= AccessWrite
		case "delete":
			all |= AccessDelete
		case "exec":
			all |= AccessExec
		case "secret":
			all |= AccessSecret
		case "none":
		default:
			return 0, false
		}
	}
	return all, true
}
