package atip

import "regexp"

// tri is the truth of a condition. Maybe, which hangs on how the tool reads a word,
// fires a when and never a narrow.
type tri uint8

const (
	triFalse tri = iota
	triMaybe
	triTrue
)

func triOf(b bool) tri {
	if b {
		return triTrue
	}
	return triFalse
}

const (
	maxRegexp    = 256
	maxCondition = 16 // nesting of all, any and not
)

// condition checks an "if".
func (c *extensionChecker) condition(v val, at string, depth int) {
	if !v.is(KindObject) || v.len() != 1 || depth > maxCondition {
		c.bad(v, at, "a condition is an object with exactly one key")
		return
	}
	v.members(func(key string, m val) bool {
		switch key {
		case "anyOption", "allOptions":
			c.strings(m, at)
			if m.len() == 0 {
				c.bad(m, at, key+" is empty")
			}
		case "optionValue":
			c.withMatch(m, at, true, func(key string, f val) bool {
				if key == "flags" {
					c.strings(f, at)
				}
				return key == "flags"
			})
			if m.get("flags").len() == 0 {
				c.bad(m, at, "optionValue without flags")
			}
		case "anyArg":
			c.withMatch(m, at, true, func(key string, f val) bool {
				if key == "from" || key == "index" {
					c.index(f, at)
				}
				if key == "name" {
					c.want(f, KindString, at, "name is not a string")
				}
				return key == "from" || key == "index" || key == "name"
			})
		case "argCount":
			m.members(func(key string, f val) bool {
				if key != "min" && key != "max" {
					c.bad(f, at, "unknown field "+quoteShort(key))
				}
				c.index(f, at)
				return true
			})
			if m.len() == 0 {
				c.bad(m, at, "argCount without min or max")
			}
		case "keyValue", "env":
			field := "key"
			if key == "env" {
				field = "name"
			}
			c.withMatch(m, at, false, func(key string, f val) bool {
				if key == field {
					c.want(f, KindString, at, field+" is not a string")
				}
				return key == field
			})
			if m.get(field).str() == "" {
				c.bad(m, at, key+" without "+field)
			}
		case "all", "any":
			if m.len() == 0 {
				c.bad(m, at, key+" is empty")
			}
			if !m.is(KindArray) {
				c.bad(m, at, key+" is not an array")
			}
			m.items(func(_ int, item val) { c.condition(item, at, depth+1) })
		case "not":
			c.condition(m, at, depth+1)
		default:
			c.bad(m, at, "unknown condition "+quoteShort(key))
		}
		return true
	})
}

func (c *extensionChecker) withMatch(v val, at string, required bool, field func(string, val) bool) {
	if !v.is(KindObject) {
		c.bad(v, at, "not an object")
		return
	}
	v.members(func(key string, m val) bool {
		if key == "match" {
			c.match(m, at)
		} else if !field(key, m) {
			c.bad(m, at, "unknown field "+quoteShort(key))
		}
		return true
	})
	if required && !v.get("match").ok() {
		c.bad(v, at, "match is missing")
	}
}

func (c *extensionChecker) match(v val, at string) {
	kinds := 0
	v.members(func(key string, m val) bool {
		switch key {
		case "ci":
			if _, ok := m.boolean(); !ok {
				c.bad(m, at, "ci is not true or false")
			}
			return true
		case "equals", "prefix", "suffix", "contains", "glob":
			c.want(m, KindString, at, key+" is not a string")
		case "in":
			c.strings(m, at)
		case "re":
			if !m.is(KindString) || len(m.str()) > maxRegexp {
				c.bad(m, at, "re is not a string of at most 256 bytes")
			} else if c.report != nil {
				// Compiling costs more than the rest of a look-up: while
				// resolving, it waits until there is a word to match.
				if _, err := regexp.Compile(m.str()); err != nil {
					c.bad(m, at, err.Error())
				}
			}
		default:
			c.bad(m, at, "unknown match "+quoteShort(key))
		}
		kinds++
		return true
	})
	if kinds != 1 {
		c.bad(v, at, "a match has exactly one of equals, in, prefix, suffix, contains, glob and re")
	}
}
