package shell

import "mvdan.cc/sh/v3/syntax"

// loop walks a body until what it changes is settled, else gives up on what it
// changes.
func (w *walker) loop(st *state, body func(*state)) {
	w.repeat++
	defer func() { w.repeat-- }()
	out := st.out
	for pass := 0; ; pass++ {
		before := st.clone()
		before.in, before.out = st.in, st.out
		if out != nil {
			st.out = &sink{}
		}
		body(st)
		if st.ended {
			// break, or exit on every path: what follows is as if it had not been.
			st.ended = false
		}
		if out != nil {
			// How often it wrote is not known.
			mixed := out.mixed || st.out.mixed
			if st.out.s != "" && pass == 0 {
				out.write(text{s: Hole})
			}
			out.mixed = mixed
			out.from = union(out.from, st.out.from)
			st.out = out
		}
		w.join(st, before)
		st.in = before.in
		if w.stopped || w.settled(before, st) {
			return
		}
		switch {
		case pass == maxPasses-1:
			w.widen(st, before)
		case pass > maxPasses:
			return
		}
	}
}

func (w *walker) forClause(c *syntax.ForClause, st *state) {
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		items, sure := st.params, !st.paramsOpen
		if l.InPos.IsValid() {
			items, sure = w.items(l.Items, st)
		}
		if c.Select {
			w.assignValue(st, "REPLY", unknown(nil))
		}
		v := unknown(nil)
		if len(items) > 0 {
			v = items[0]
			for _, i := range items[1:] {
				v = v.or(i)
			}
		}
		if !sure && v.known() {
			v = v.or(unknown(v.sources()))
		}
		if sure && len(items) == 0 {
			return
		}
		if len(items) > min(maxAlternatives, w.o.Limits.Unrolled) {
			w.unroll(l.Name.Value, items, c.Do, st)
			return
		}
		w.loop(st, func(st *state) {
			w.assignValue(st, l.Name.Value, v)
			w.stmts(c.Do, st)
		})
	case *syntax.CStyleLoop:
		w.arithm(l.Init, st)
		w.loop(st, func(st *state) {
			w.arithm(l.Cond, st)
			w.stmts(c.Do, st)
			w.arithm(l.Post, st)
		})
	default:
		w.opaque(st, "a loop that is not known", nil, nil)
	}
}

// unroll walks a body in portions of the words it is for.
func (w *walker) unroll(name string, items []value, body []*syntax.Stmt, st *state) {
	for done := 0; len(items) > 0 && !w.stopped; done += maxAlternatives {
		n := min(len(items), maxAlternatives, w.o.Limits.Unrolled)
		v := items[0]
		for _, i := range items[1:n] {
			v = v.or(i)
		}
		if items = items[n:]; done >= w.o.Limits.Unrolled {
			v, items = unknown(nil), nil
		}
		w.loop(st, func(st *state) {
			w.assignValue(st, name, v)
			w.stmts(body, st)
		})
	}
}

// items expands the words of a for loop. sure is false if there may be others.
func (w *walker) items(words []*syntax.Word, st *state) (items []value, sure bool) {
	sure = true
	for _, word := range words {
		for _, alt := range w.fields(word, st) {
			for _, f := range alt {
				items = append(items, value{f})
				sure = sure && f.known()
			}
		}
	}
	return items, sure
}
