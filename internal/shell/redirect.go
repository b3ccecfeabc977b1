package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// streams is what redirections make of a command's descriptors.
type streams struct {
	files []Redirect
	flows []Flow // from substitutions in the names
	in    *source
	out   *sink
	moved bool  // out replaces the shell's
	file  *sink // what goes to the file on descriptor 1, nil if that is no file
	opens map[int]*sink
}

// redirect expands redirections. group: the body is walked later, so that what it
// writes is collected.
func (w *walker) redirect(list []*syntax.Redirect, st *state, group bool) streams {
	io := streams{out: st.out, in: st.in}
	for _, r := range list {
		fd := 1
		switch r.Op {
		case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			fd = 0
		}
		if r.N != nil {
			if n, err := strconv.Atoi(r.N.Value); err == nil {
				fd = n
			} else {
				fd = 10 // {name}>file: some descriptor, which the variable names
				if n := strings.Trim(r.N.Value, "{}"); name(n) {
					w.assignValue(st, n, number())
				} else {
					w.opaque(st, "a descriptor in a variable whose name is not known", nil, nil)
				}
			}
		}
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			if fd == 0 {
				io.in = w.document(r, st)
			} else {
				w.document(r, st)
			}
		case syntax.WordHdoc:
			v := w.scalar(r.Word, st)
			in := &source{from: v.sources(), mixed: v.mixed()}
			if s, ok := v.one(); ok {
				in.s, in.known = s+"\n", true
			}
			if fd == 0 {
				io.in = in
			}
		case syntax.DplIn, syntax.DplOut:
			w.duplicate(r, fd, st, &io)
		case syntax.RdrAll, syntax.AppAll, syntax.RdrAllClob, syntax.AppAllClob:
			w.open(r.Word, Redirect{Write: true}, 1, st, &io)
		case syntax.RdrIn:
			w.open(r.Word, Redirect{Read: true, Whole: fd == 0}, fd, st, &io)
		case syntax.RdrInOut:
			w.open(r.Word, Redirect{Read: true, Write: true}, fd, st, &io)
		default:
			w.open(r.Word, Redirect{Write: true, Whole: fd == 1 && r.Op != syntax.AppOut}, fd, st, &io)
		}
	}
	return io
}

// document is what a here-document gives.
func (w *walker) document(r *syntax.Redirect, st *state) *source {
	if r.Hdoc == nil {
		return &source{known: true}
	}
	quoted := false
	for _, p := range r.Word.Parts {
		l, ok := p.(*syntax.Lit)
		quoted = quoted || !ok || strings.IndexByte(l.Value, '\\') >= 0
	}
	var v value
	if quoted {
		var b strings.Builder
		for _, p := range r.Hdoc.Parts {
			if l, ok := p.(*syntax.Lit); ok {
				b.WriteString(l.Value)
			}
		}
		v = constant(b.String())
	} else {
		v = w.inDocument(r.Hdoc.Parts, st)
	}
	in := &source{from: v.sources(), mixed: v.mixed()}
	if s, ok := v.one(); ok {
		if r.Op == syntax.DashHdoc {
			lines := strings.Split(s, "\n")
			for i := range lines {
				lines[i] = strings.TrimLeft(lines[i], "\t")
			}
			s = strings.Join(lines, "\n")
		}
		in.s, in.known = s, true
	}
	return in
}

func (w *walker) duplicate(r *syntax.Redirect, fd int, st *state, io *streams) {
	v := w.scalar(r.Word, st)
	s, ok := v.one()
	s = strings.TrimSuffix(s, "-")
	n, err := strconv.Atoi(s)
	switch {
	case ok && s == "":
		if fd == 1 {
			io.out, io.moved, io.file = nil, true, nil
		}
	case ok && err == nil:
		switch {
		case fd == 1 && n == 2:
			io.out, io.moved, io.file = nil, true, nil
		case fd == 1 && n > 2:
			io.out, io.moved, io.file = st.fds[n], true, nil
		case fd == 0 && n > 2:
			io.in = &source{}
		}
	case r.N == nil && r.Op == syntax.DplOut:
		w.open(r.Word, Redirect{Write: true}, 1, st, io)
	case !ok:
		// A number that is not known, or a file.
		w.openValue(v, Redirect{Write: r.Op == syntax.DplOut, Read: r.Op == syntax.DplIn}, fd, st, io)
	}
}

func (w *walker) open(word *syntax.Word, r Redirect, fd int, st *state, io *streams) {
	w.openValue(w.scalar(word, st), r, fd, st, io)
}

func (w *walker) openValue(v value, r Redirect, fd int, st *state, io *streams) {
	for _, i := range v.sources() {
		io.flows = append(io.flows, Flow{From: i, Kind: FlowWord})
	}
	for _, t := range v {
		r.Path = t.s
		io.files = append(io.files, r)
		if r.Read && r.Write && network(t.s) {
			io.flows = append(io.flows, Flow{From: -2, Kind: FlowSocket})
		}
	}
	switch {
	case r.Read && fd == 0:
		io.in = &source{}
		if in := w.pipes[v[0].s]; in != nil && len(v) == 1 {
			io.in = in
		}
	case r.Write && fd == 1:
		k := &sink{}
		io.out, io.moved, io.file = k, true, k
		if v.known() && len(v) == 1 && v[0].s == "/dev/null" {
			io.file = nil
		}
	case r.Write && fd > 2:
		if io.opens == nil {
			io.opens = map[int]*sink{}
		}
		io.opens[fd] = &sink{}
	}
}

// network reports whether bash opens a connection for this name.
func network(path string) bool {
	return strings.HasPrefix(path, "/dev/tcp/") || strings.HasPrefix(path, "/dev/udp/")
}
