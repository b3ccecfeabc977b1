package atip

import (
	"slices"
	"strings"
)

// addReading adds what one reading names and runs.
func (call *Call) addReading(w *weigh) {
	resources, loose := w.resources()
	for _, x := range resources {
		call.addResource(x)
	}
	for _, x := range loose {
		if !slices.Contains(call.Loose, x) {
			call.Loose = append(call.Loose, x)
		}
	}
	call.Nested = append(call.Nested, w.nested...)
}

// addUnresolved adds the words of a reading that names no known command.
func (call *Call) addUnresolved(r *reading) {
	for i := range r.words {
		call.Loose = append(call.Loose, Loose{Value: r.words[i].text, Why: "argv[" + itoa(r.words[i].at) + "]"})
	}
	for i := range r.uses {
		for _, value := range r.uses[i].all() {
			call.Loose = append(call.Loose, Loose{Name: strings.TrimLeft(r.uses[i].flag, "-"), Value: value, Why: r.uses[i].flag})
		}
	}
}

func (call *Call) addResource(x Resource) {
	for i := range call.Resources {
		have := &call.Resources[i]
		if have.Kind == x.Kind && have.Value == x.Value && have.Why == x.Why {
			have.Access |= x.Access
			have.Recursive = have.Recursive || x.Recursive
			return
		}
	}
	call.Resources = append(call.Resources, x)
}

// addOptions lists the options of the best reading, then those only others see.
func (call *Call) addOptions(best *reading, done []*reading) {
	for i := range best.uses {
		u := best.uses[i].public()
		for _, x := range done {
			u.Maybe = u.Maybe || !x.hasUse(u)
		}
		call.Options = append(call.Options, u)
	}
	for _, x := range done {
		if x == best {
			continue
		}
		for i := range x.uses {
			u := x.uses[i].public()
			if !call.hasOption(u) {
				u.Maybe = true
				call.Options = append(call.Options, u)
			}
		}
	}
}

func (u *use) public() OptionUse {
	out := OptionUse{Flag: u.flag, Value: u.value, Maybe: u.maybe}
	switch {
	case u.negated:
		out.Name = u.flag[len("--"):] // no rule on --x may meet --no-x
	case u.opt != nil:
		out.Name, out.Spellings = u.opt.name, u.opt.flags
	}
	return out
}

func (r *reading) hasUse(u OptionUse) bool {
	for i := range r.uses {
		if r.uses[i].flag == u.Flag && r.uses[i].value == u.Value {
			return true
		}
	}
	return false
}

func (call *Call) hasOption(u OptionUse) bool {
	for _, have := range call.Options {
		if have.Flag == u.Flag && have.Value == u.Value {
			return true
		}
	}
	return false
}

// addFields fills what is not weighed effect by effect.
func (r *resolver) addFields(call *Call, best *reading) {
	w := best.weigh()
	call.Chdir = best.chdirTo()
	call.Interactive = w.interactive()
	w.chain(func(l *level) {
		if call.Timeout == 0 {
			call.Timeout = declaredTimeout(l.effects.timeout)
		}
		if l.n.ext != nil {
			r.addFiles(call, l.n.ext)
		}
	})
	if r.rank > Inferred {
		for _, p := range w.paths() {
			call.Paths = appendOnce(call.Paths, p)
		}
	}
	// Otherwise any tool could name AWS_SECRET_ACCESS_KEY and be given it.
	if r.rank >= Org {
		r.addSecrets(call, w)
		// Lists are united down the path, as a command starts what its tool always starts.
		w.chain(func(l *level) {
			if list := l.n.v.get("x-atip-execs"); list.ok() {
				call.ExecsKnown = true
				for _, name := range goodExecs(list) {
					call.Execs = appendOnce(call.Execs, name)
				}
			}
		})
		call.Fetch = readFetch(w.leaf.n.v.get("x-atip-fetch"), nil)
		// The nearest list counts; without one nobody knows whom the tool talks to.
		w.chain(func(l *level) {
			if len(call.Hosts) == 0 {
				call.Hosts, _ = l.n.v.get("x-atip-hosts").strings()
			}
			if len(call.Service) == 0 {
				call.Service, _ = l.n.v.get("x-atip-service").strings()
			}
		})
	}
}

func (r *resolver) addFiles(call *Call, x *extension) {
	x.files.items(func(_ int, v val) {
		f := CodeFile{
			Path: v.get("path").str(), RelativeTo: v.get("relativeTo").str(),
			Kind: v.get("kind").str(), Format: v.get("format").str(),
		}
		f.SafeKeys, _ = v.get("safeKeys").strings()
		call.CodeFiles = append(call.CodeFiles, f)
	})
}

func (r *resolver) addSecrets(call *Call, w *weigh) {
	methods := func(n *node) {
		n.v.get("authentication").get("methods").items(func(_ int, m val) {
			if name := m.get("envVar").str(); isVariable(name) {
				call.Secrets = appendOnce(call.Secrets, name)
			}
		})
	}
	w.chain(func(l *level) {
		methods(l.n)
		if l.n.ext == nil {
			return
		}
		l.n.ext.env.items(func(_ int, v val) {
			switch name := v.get("name").str(); v.get("kind").str() {
			case "secret":
				if isVariable(name) {
					call.Secrets = appendOnce(call.Secrets, name)
				}
			case "endpoint":
				call.Endpoints = appendOnce(call.Endpoints, name)
			case "config":
				call.Configs = appendOnce(call.Configs, name)
			}
		})
	})
}

// paths is filesystem.paths: the command's, else its nearest group's, and the root's.
func (w *weigh) paths() []string {
	list, _ := w.leaf.effects.paths.strings()
	for i := range w.groups {
		if len(list) == 0 {
			list, _ = w.groups[i].effects.paths.strings()
		}
	}
	if w.root.n != nil {
		more, _ := w.root.effects.paths.strings()
		list = append(list, more...)
	}
	return list
}

// interactive merges key by key as effects do; the most demanding stdin of command
// and root wins.
func (w *weigh) interactive() Interactive {
	var out Interactive
	near := append([]level{w.leaf}, w.groups...)
	var tty, prompts bool
	for i := range near {
		st := &near[i].effects
		if out.Stdin == "" {
			out.Stdin = st.stdin
		}
		if !tty && st.ttyStated {
			out.TTY, tty = st.tty, true
		}
		if !prompts && st.prStated {
			out.Prompts, prompts = st.prompts, true
		}
	}
	if w.root.n == nil {
		return out
	}
	root := &w.root.effects
	if stdinOrder(root.stdin) > stdinOrder(out.Stdin) {
		out.Stdin = root.stdin
	}
	if root.ttyStated && (!tty || root.tty == Yes) {
		out.TTY = root.tty
	}
	if root.prStated && (!prompts || root.prompts == Yes) {
		out.Prompts = root.prompts
	}
	return out
}
