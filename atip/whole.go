package atip

// omittedEffects is what a partial document lets one assume of a command it does not
// list.
func (r *resolver) omittedEffects() Effects {
	root := r.d.rootNode()
	out := r.nothing(root)
	fact := func(v Value) Fact {
		return Fact{Value: v, Source: r.source, Pointer: "/omitted/safetyAssumption", Rank: r.rank}
	}
	switch r.d.root().get("omitted").get("safetyAssumption").str() {
	case "known-unsafe":
		out[Destructive] = fact(Yes)
	case "known-safe":
		if r.rank > Inferred {
			out[Destructive] = fact(No)
		}
	case "same-as-included":
		if joined, ok := r.join(root); ok {
			return joined
		}
	}
	return out
}

// join is the worst of all commands of the document, each at its upper bound.
func (r *resolver) join(root *node) (out Effects, ok bool) {
	if r.d.index != nil {
		return r.d.index.worst(r)
	}
	root.each(func(n *node) {
		if n.hasKids() || n.bare() != nil {
			return
		}
		x := &reading{resolver: r, n: n, afterDash: -1, unresolved: n.broken}
		w := x.weigh()
		if n.broken {
			w.result = r.nothing(n)
		} else {
			w.upper()
		}
		if !ok {
			out, ok = w.result, true
			return
		}
		out = JoinEffects(out, w.result)
	})
	return out, ok
}

// upper weighs a command whatever its words: effects, base and every when.
func (w *weigh) upper() {
	stated := w.declared()
	w.joinUpper(&stated)
	w.extended(func(l *level) {
		for i := range l.n.ext.when {
			if c := &l.n.ext.when[i]; c.body.get("unknown").isTrue() {
				w.doubt(l.n, c.id)
			}
		}
		if l.n.ext.runsWords() {
			// Which words it runs is known for a call only.
			w.result[ExecOpaque] = w.atLeastUnknown(ExecOpaque, l.n, &stated)
		}
	})
	w.derive(stated)
}

// runsWords reports whether words of a call may be run as code.
func (x *extension) runsWords() bool {
	if x.exec.len() > 0 || x.sublanguage.len() > 0 {
		return true
	}
	for i := range x.when {
		if x.when[i].body.get("exec").len() > 0 {
			return true
		}
	}
	return false
}

// anyCommand is the call of a program under a name its document does not list: it may
// do what any of its commands may.
func (r *resolver) anyCommand(call *Call) {
	joined, ok := r.join(r.d.rootNode())
	if !ok {
		joined = r.nothing(r.d.rootNode())
	}
	call.Effects = JoinEffects(call.Effects, joined)
	if call.Exactness == Exact {
		call.Exactness = Bounded
	}
	// A rule that allows one command must not meet a program that may run another.
	if len(call.Path) > 0 {
		path := call.Path
		call.Path = []string{}
		addPath(call, path)
	}
	call.Warnings = append(call.Warnings, "invoked as "+quoteShort(call.InvokedAs)+", a name its document does not list: all its commands are assumed")
}
