package atip

// extension is a well-formed x-atip-effects object, version 1. It refines the
// standard effects, which stay its upper bound. Malformed in any part it is ignored
// whole: half of one could lower without what raises.
type extension struct {
	v           val
	pointer     string
	base        val
	when        []clause
	narrow      []clause
	args        val
	exec        val
	env         val
	files       val
	sublanguage val
	parse       val
	unknownAll  bool // unknownOption: "unknown"
	terminators []string
}

// clause is one element of when or narrow.
type clause struct {
	id      string
	cond    val
	body    val
	pointer string
}

// problem receives what is wrong with an extension; nil discards it.
type problem func(v val, pointer, msg string)

// readExtension decodes an extension, nil if it is malformed.
func readExtension(v val, pointer string) *extension {
	x, ok := checkExtension(v, pointer, nil)
	if !ok {
		return nil
	}
	return x
}

const maxClauses = 64

// checkExtension decodes an extension and reports all that is wrong with it.
func checkExtension(v val, pointer string, report problem) (*extension, bool) {
	c := extensionChecker{report: report}
	x := &extension{v: v, pointer: pointer}
	if !v.is(KindObject) {
		c.bad(v, pointer, "x-atip-effects is not an object")
		return nil, false
	}
	if version, ok := v.get("v").integer(); !ok || version != 1 {
		c.bad(v, pointer, "x-atip-effects has a version other than 1")
		return nil, false
	}
	clauses := 0
	v.members(func(key string, m val) bool {
		at := pointer
		if c.report != nil {
			at = pointerTo(pointer, key)
		}
		switch key {
		case "v":
		case "base":
			x.base = m
			c.effects(m, at)
		case "when":
			x.when = c.clauses(m, at, whenFields)
			clauses += len(x.when)
		case "narrow":
			x.narrow = c.clauses(m, at, narrowFields)
			clauses += len(x.narrow)
		case "args":
			x.args = m
			c.list(m, at, c.arg)
		case "exec":
			x.exec = m
			c.list(m, at, c.exec)
		case "env":
			x.env = m
			c.list(m, at, c.env)
		case "files":
			x.files = m
			c.list(m, at, c.file)
		case "sublanguage":
			x.sublanguage = m
			c.list(m, at, c.sublanguage)
		case "parse":
			x.parse = m
			c.parse(m, at)
		case "unknownOption":
			x.unknownAll = m.str() == "unknown"
			if !x.unknownAll && m.str() != "join" {
				c.bad(m, at, `unknownOption is not "join" or "unknown"`)
			}
		default:
			c.field(key, m, at)
		}
		return true
	})
	if clauses > maxClauses {
		c.bad(v, pointer, "more than 64 clauses")
		return nil, false
	}
	c.ids(x)
	x.terminators = c.terminators
	return x, !c.failed
}

type extensionChecker struct {
	report      problem
	failed      bool
	terminators []string
}

func (c *extensionChecker) bad(v val, pointer, msg string) {
	c.failed = true
	if c.report != nil {
		c.report(v, pointer, msg)
	}
}

// field accepts what is for people or for others; any other unknown name may be a
// misspelt clause, so it is an error.
func (c *extensionChecker) field(key string, m val, pointer string) {
	if key == "because" || key == "description" || isExtensionKey(key) {
		return
	}
	c.bad(m, pointer, "unknown field "+quoteShort(key))
}

func (c *extensionChecker) list(v val, pointer string, each func(val, string)) {
	if !v.is(KindArray) {
		c.bad(v, pointer, "not an array")
		return
	}
	v.items(func(n int, item val) {
		at := pointer
		if c.report != nil {
			at = pointer + "/" + itoa(n)
		}
		if !item.is(KindObject) {
			c.bad(item, at, "not an object")
			return
		}
		each(item, at)
	})
}

type clauseFields uint8

const (
	whenFields clauseFields = iota
	narrowFields
)

func (c *extensionChecker) clauses(v val, pointer string, kind clauseFields) []clause {
	list := make([]clause, 0, v.len())
	c.list(v, pointer, func(item val, at string) {
		cl := clause{body: item, pointer: at}
		effects := false
		item.members(func(key string, m val) bool {
			in := at
			if c.report != nil {
				in = pointerTo(at, key)
			}
			switch {
			case key == "id":
				cl.id = m.str()
				if !validID(cl.id) {
					c.bad(m, in, "id is not 1 to 32 of A-Z a-z 0-9 _ -")
				}
			case key == "if":
				cl.cond = m
				c.condition(m, in, 0)
			case kind == whenFields && key == "add", kind == narrowFields && key == "effects":
				effects = true
				c.effects(m, in)
			case kind == whenFields && (key == "addAll" || key == "unknown"), kind == narrowFields && key == "inherit":
				if _, ok := m.boolean(); !ok {
					c.bad(m, in, "not true or false")
				}
			case kind == whenFields && key == "exec":
				c.list(m, in, c.exec)
			case kind == narrowFields && key == "minRank":
				if _, ok := RankByName(m.str()); !ok {
					c.bad(m, in, "not a rank")
				}
			case kind == narrowFields && key == "despite":
				c.strings(m, in)
			default:
				c.field(key, m, in)
			}
			return true
		})
		if cl.id == "" {
			c.bad(item, at, "clause without id")
		}
		if !cl.cond.ok() {
			c.bad(item, at, "clause without if")
		}
		if kind == narrowFields && !effects {
			c.bad(item, at, "narrow without effects")
		}
		list = append(list, cl)
	})
	return list
}

func (c *extensionChecker) ids(x *extension) {
	find := func(list []clause, id string) int {
		n := 0
		for i := range list {
			if list[i].id == id {
				n++
			}
		}
		return n
	}
	for _, list := range [2][]clause{x.when, x.narrow} {
		for i := range list {
			if find(x.when, list[i].id)+find(x.narrow, list[i].id) > 1 {
				c.bad(list[i].body, list[i].pointer, "id "+quoteShort(list[i].id)+" is used twice")
			}
		}
	}
	if c.report == nil {
		return
	}
	for _, n := range x.narrow {
		// A despite may also name a when of a group or the root; validate looks
		// there, so only ids that are narrows themselves are plainly wrong here.
		n.body.get("despite").items(func(_ int, item val) {
			if find(x.narrow, item.str()) > 0 {
				c.bad(item, n.pointer+"/despite", "despite names a narrow")
			}
		})
	}
}

func validID(s string) bool {
	if s == "" || len(s) > 32 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}
