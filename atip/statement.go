package atip

// statement is what one effects object states. An effect may be stated as unknown:
// by a value of the wrong type, or by a "no" beside a key nobody knows.
type statement struct {
	value     [NumEffects]Value
	stated    Set
	lists     bool // creates, modifies or deletes name something
	deletes   bool
	paths     val
	stdin     string
	tty       Value
	prompts   Value
	ttyStated bool
	prStated  bool
	timeout   string
}

// remark receives what is wrong with an effects object: the value, its pointer
// below the object, a code and a text.
type remark func(v val, at, code, msg string)

func (s *statement) set(e Effect, v Value) {
	s.value[e] = v
	s.stated = s.stated.With(e)
}

// readStatement decodes an effects object. With the extension set, the five effects
// that ATIP itself cannot state are known too.
func readStatement(v val, extended bool, note remark) statement {
	var s statement
	if note == nil {
		note = func(val, string, string, string) {}
	}
	poisoned := false
	v.members(func(key string, m val) bool {
		e, ok := effectField(key, extended)
		if ok {
			b, isBool := m.boolean()
			if !isBool {
				note(m, "/"+key, "effect-type", key+" is not true or false")
				s.set(e, Unknown)
				return true
			}
			s.set(e, Of(b))
			return true
		}
		switch key {
		case "filesystem":
			s.readFilesystem(m, note)
		case "creates", "modifies", "deletes":
			list, ok := m.strings()
			if !ok {
				note(m, "/"+key, "effect-type", key+" is not an array of strings")
			}
			if len(list) > 0 || !ok {
				s.lists = true
				s.deletes = s.deletes || key == "deletes"
			}
		case "interactive":
			s.readInteractive(m, note)
		case "cost":
			s.readCost(m, note)
		case "duration":
			s.timeout = m.get("timeout").str()
			if !m.is(KindObject) {
				note(m, "/duration", "effect-type", "duration is not an object")
			}
		default:
			if !isExtensionKey(key) {
				note(m, pointerTo("", key), "effect-key", "unknown effect "+quoteShort(key))
				poisoned = poisoned || !m.is(KindFalse)
			}
		}
		return true
	})
	if poisoned {
		s.poison(0, NumEffects)
	}
	if s.deletes && s.stated.Has(Destructive) && s.value[Destructive] == No && s.stated.Has(Reversible) && s.value[Reversible] == No {
		note(v, "/destructive", "contradiction", "deletes something irreversibly, yet is not destructive")
		s.set(Destructive, Unknown)
	}
	return s
}

// poison makes harmless values unknown.
func (s *statement) poison(from, to int) {
	for e := from; e < to; e++ {
		if s.stated.Has(Effect(e)) && risk(Effect(e), s.value[e]) == 0 {
			s.value[e] = Unknown
		}
	}
}

// effectField finds the effects that stand directly in an effects object.
func effectField(key string, extended bool) (Effect, bool) {
	switch key {
	case "network":
		return Network, true
	case "subprocess":
		return Subprocess, true
	case "destructive":
		return Destructive, true
	case "idempotent":
		return Idempotent, true
	case "reversible":
		return Reversible, true
	}
	if extended {
		switch key {
		case "secretRead":
			return SecretRead, true
		case "privileged":
			return Privileged, true
		case "persistence":
			return Persistence, true
		case "remoteMutation":
			return RemoteMutation, true
		case "execOpaque":
			return ExecOpaque, true
		}
	}
	return 0, false
}

func (s *statement) readFilesystem(v val, note remark) {
	if !v.is(KindObject) {
		note(v, "/filesystem", "effect-type", "filesystem is not an object")
		s.set(Read, Unknown)
		s.set(Write, Unknown)
		s.set(Delete, Unknown)
		return
	}
	poisoned := false
	v.members(func(key string, m val) bool {
		var e Effect
		switch key {
		case "read":
			e = Read
		case "write":
			e = Write
		case "delete":
			e = Delete
		case "paths":
			if _, ok := m.strings(); !ok {
				note(m, "/filesystem/paths", "effect-type", "paths is not an array of strings")
			} else {
				s.paths = m
			}
			return true
		default:
			if !isExtensionKey(key) {
				note(m, pointerTo("/filesystem", key), "effect-key", "unknown effect "+quoteShort("filesystem."+key))
				poisoned = poisoned || !m.is(KindFalse)
			}
			return true
		}
		b, ok := m.boolean()
		if !ok {
			note(m, "/filesystem/"+key, "effect-type", "filesystem."+key+" is not true or false")
			s.set(e, Unknown)
			return true
		}
		s.set(e, Of(b))
		return true
	})
	if poisoned {
		s.poison(int(Read), int(Delete)+1)
	}
}

func (s *statement) readCost(v val, note remark) {
	if !v.is(KindObject) {
		note(v, "/cost", "effect-type", "cost is not an object")
		s.set(Billable, Unknown)
		return
	}
	poisoned := false
	v.members(func(key string, m val) bool {
		switch key {
		case "billable":
			b, ok := m.boolean()
			if !ok {
				note(m, "/cost/billable", "effect-type", "cost.billable is not true or false")
				s.set(Billable, Unknown)
				return true
			}
			s.set(Billable, Of(b))
		case "estimate":
		default:
			if !isExtensionKey(key) {
				note(m, pointerTo("/cost", key), "effect-key", "unknown effect "+quoteShort("cost."+key))
				poisoned = poisoned || !m.is(KindFalse)
			}
		}
		return true
	})
	if poisoned {
		s.poison(int(Billable), int(Billable)+1)
	}
}

func (s *statement) readInteractive(v val, note remark) {
	if !v.is(KindObject) {
		note(v, "/interactive", "effect-type", "interactive is not an object")
		return
	}
	v.members(func(key string, m val) bool {
		switch key {
		case "stdin":
			if stdinOrder(m.str()) == 0 {
				note(m, "/interactive/stdin", "effect-type", "interactive.stdin is not none, optional, required or password")
				return true
			}
			s.stdin = m.str()
		case "prompts", "tty":
			b, ok := m.boolean()
			if !ok {
				note(m, "/interactive/"+key, "effect-type", "interactive."+key+" is not true or false")
				return true
			}
			if key == "tty" {
				s.tty, s.ttyStated = Of(b), true
			} else {
				s.prompts, s.prStated = Of(b), true
			}
		default:
			if !isExtensionKey(key) {
				note(m, pointerTo("/interactive", key), "effect-key", "unknown field "+quoteShort("interactive."+key))
			}
		}
		return true
	})
}

// stdinOrder ranks what a command needs of its standard input; 0 is no such word.
func stdinOrder(s string) int {
	switch s {
	case "none":
		return 1
	case "optional":
		return 2
	case "required":
		return 3
	case "password":
		return 4
	}
	return 0
}
