package atip

import "strings"

// derive fills the five effects that ATIP 0.6 cannot state, where the extension does
// not state them either.
func (w *weigh) derive(stated Set) {
	n := w.leaf.n
	if !stated.Has(RemoteMutation) {
		v := w.remoteMutation()
		if v == No && w.doubted {
			v = Unknown
		}
		w.result[RemoteMutation] = w.fact(v, n, "derived")
	}
	// An extension that could not be read may have said more.
	rest := No
	if w.doubted || w.anyBadExt() {
		rest = Unknown
	}
	// secretRead and persistence follow from the classes of the resources, which
	// the caller adds; privileged and execOpaque cannot be said, and the sandbox
	// bounds them.
	for _, e := range [...]Effect{SecretRead, Privileged, Persistence, ExecOpaque} {
		if !stated.Has(e) {
			w.result[e] = w.fact(rest, n, "derived")
		}
	}
	if w.rank == Inferred {
		w.dangerOnly()
	}
}

func (w *weigh) remoteMutation() Value {
	network, destructive := w.result[Network].Value, w.result[Destructive].Value
	switch {
	case network == No:
		return No
	case network == Yes && (destructive == Yes || w.changesSomething()):
		return Yes
	}
	return destructive
}

// changesSomething reports a non-empty creates, modifies or deletes.
func (w *weigh) changesSomething() bool {
	lists := func(l *level) bool {
		if l.hasBase {
			return l.base.lists
		}
		return l.effects.lists
	}
	if w.root.n != nil && lists(&w.root) {
		return true
	}
	if lists(&w.leaf) || w.leaf.hasBase {
		return lists(&w.leaf)
	}
	for i := range w.groups {
		if lists(&w.groups[i]) {
			return true
		}
	}
	return false
}

// dangerOnly is all that an inferred document may claim.
func (w *weigh) dangerOnly() {
	for i := range w.result {
		if risk(Effect(i), w.result[i].Value) == 0 {
			w.result[i].Value = Unknown
		}
	}
}

// applyEnv weighs variables that can make the program run code.
func (w *weigh) applyEnv(stated *Set) {
	w.chain(func(l *level) {
		if l.n.ext == nil {
			return
		}
		l.n.ext.env.items(func(_ int, v val) {
			if v.get("kind").str() != "exec" {
				return
			}
			name := v.get("name").str()
			if prefix, ok := strings.CutSuffix(name, "*"); ok {
				set, known := w.envPrefix(prefix)
				if !known {
					w.result[ExecOpaque] = w.atLeastUnknown(ExecOpaque, l.n, stated)
				} else if set {
					w.raise(ExecOpaque, Yes, l.n, "env:"+name, stated)
				}
				return
			}
			if _, set := w.getenv(name); set {
				w.raise(ExecOpaque, Yes, l.n, "env:"+name, stated)
			}
		})
	})
}

func (w *weigh) atLeastUnknown(e Effect, n *node, stated *Set) Fact {
	f := w.result[e]
	if !stated.Has(e) || risk(e, f.Value) == 0 {
		f = w.fact(Unknown, n, "env")
	}
	*stated = stated.With(e)
	return f
}

// applySublanguage reads SQL that stands in the words.
func (w *weigh) applySublanguage(stated *Set) {
	w.chain(func(l *level) {
		if l.n.ext == nil {
			return
		}
		l.n.ext.sublanguage.items(func(_ int, v val) {
			texts, opaque := w.sublanguageTexts(v)
			for _, text := range texts {
				verdict := classifySQL(text)
				opaque = opaque || verdict.opaque
				if verdict.mutates {
					// Without network the database is a file of this machine.
					changed := RemoteMutation
					if w.result[Network].Value == No {
						changed = Write
					}
					w.raise(changed, Yes, l.n, "sql", stated)
				}
				if verdict.destroys {
					w.raise(Destructive, Yes, l.n, "sql", stated)
				}
			}
			if opaque {
				w.joinUpper(stated)
				w.raise(ExecOpaque, Yes, l.n, "sql", stated)
			}
		})
	})
}

// sublanguageTexts collects the texts; opaque means there is one that cannot be seen.
func (w *weigh) sublanguageTexts(v val) (texts []string, opaque bool) {
	switch v.get("from").str() {
	case "optionValue":
		texts = w.valuesOf(v.get("flags"))
	case "arg":
		index, ok := v.get("index").integer()
		if ok && index < 0 {
			index += len(w.words)
		}
		for i := range w.words {
			if !ok || i == index {
				texts = append(texts, w.words[i].text)
			}
		}
	case "rest":
		index, _ := v.get("index").integer()
		for i := max(index, 0); i < len(w.words); i++ {
			texts = append(texts, w.words[i].text)
		}
	case "file":
		opaque = len(w.valuesOf(v.get("flags"))) > 0
		if index, ok := v.get("index").integer(); ok && index < len(w.words) {
			opaque = true
		}
	case "stdin":
		// What arrives is not in the words; a document that lists stdin means
		// that the tool reads statements from it whenever no other text is given.
		opaque = !w.hasStatedText()
	}
	return texts, opaque
}

// hasStatedText reports whether any sublanguage source other than stdin has a text.
func (w *weigh) hasStatedText() bool {
	found := false
	w.chain(func(l *level) {
		if l.n.ext == nil {
			return
		}
		l.n.ext.sublanguage.items(func(_ int, v val) {
			if v.get("from").str() == "stdin" {
				return
			}
			texts, opaque := w.sublanguageTexts(v)
			found = found || len(texts) > 0 || opaque
		})
	})
	return found
}

// valuesOf lists the values of all uses of the options that an array of flags names.
func (r *reading) valuesOf(flags val) []string {
	var out []string
	for i := range r.uses {
		out = append(out, r.valuesOfUse(&r.uses[i], flags)...)
	}
	return out
}
