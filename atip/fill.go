package atip

import (
	"slices"
	"strconv"
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
		call.Loose = append(call.Loose, Loose{Value: r.words[i].text, Why: "argv[" + strconv.Itoa(r.words[i].at) + "]"})
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
	return slices.ContainsFunc(call.Options, func(have OptionUse) bool { return have.Flag == u.Flag && have.Value == u.Value })
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
		if call.Fetch = readFetch(w.leaf.n.v.get("x-atip-fetch"), nil); call.Fetch != nil && len(call.Fetch.As) > 0 {
			call.Fetch = call.Fetch.before(w.leaf.n)
		}
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

// collectNested lists the commands inside the call: what every exec of the chain and
// of the clauses that fired would run.
func (w *weigh) collectNested(fired []firedClause, stated *Set) []Nested {
	var out []Nested
	w.extended(func(l *level) {
		l.n.ext.exec.items(func(_ int, v val) { out = w.nestedIn(out, v, l.n, "", stated) })
	})
	for _, f := range fired {
		f.c.body.get("exec").items(func(_ int, v val) { out = w.nestedIn(out, v, f.n, f.c.id, stated) })
	}
	return out
}

func (w *weigh) nestedIn(out []Nested, v val, n *node, clause string, stated *Set) []Nested {
	if !w.spend(len(w.words) + 1) {
		return out
	}
	from := v.get("from").str()
	base := Nested{Kind: v.get("kind").str(), Language: v.get("language").str(), From: clause}
	if clause == "" {
		base.From = from
	}
	add := func(words []string) {
		words = w.dropAssignments(v, words, n, stated)
		if len(words) == 0 {
			return
		}
		x := base
		if x.Kind == "argv" {
			x.Argv = words
			x.Placeholder = v.get("placeholder").str()
		} else {
			x.Text = strings.Join(words, " ")
		}
		out = append(out, x)
	}
	file := func(name string) {
		x := base
		x.File = name
		out = append(out, x)
	}
	index, hasIndex := v.get("index").integer()
	if index < 0 {
		index = max(index+len(w.words), 0)
	}
	switch from {
	case "optionValue":
		for i := range w.uses {
			if vals := w.valuesOfUse(&w.uses[i], v.get("flags")); len(vals) > 0 {
				add(vals)
			}
		}
	case "arg":
		if index < len(w.words) {
			add([]string{w.words[index].text})
		}
	case "rest":
		add(w.restWords(v, index))
	case "afterDashDash":
		if w.afterDash >= 0 {
			add(w.restWords(v, w.afterDash))
		}
	case "untilTerminator":
		for i := range w.uses {
			if vals := w.valuesOfUse(&w.uses[i], v.get("flags")); len(vals) > 0 {
				for _, argv := range w.substituted(vals, v.get("placeholder").str()) {
					x := base
					x.Argv = argv
					if x.Kind != "argv" {
						x.Argv, x.Text = nil, strings.Join(argv, " ")
					}
					out = append(out, x)
				}
			}
		}
	case "env":
		v.get("flags").items(func(_ int, name val) {
			if text, ok := w.getenv(name.str()); ok && text != "" {
				add([]string{text})
			}
		})
	case "file":
		for _, name := range w.valuesOf(v.get("flags")) {
			file(name)
		}
		if hasIndex && index < len(w.words) {
			file(w.words[index].text)
		}
		if !hasIndex && !v.get("flags").ok() {
			// Code that no word names: a build runs what its project says.
			file("")
		}
	case "stdin":
		file("-")
	}
	return out
}

func (r *reading) valuesOfUse(u *use, flags val) []string {
	named := false
	if !r.spend(flags.len() + 1) {
		return nil
	}
	flags.items(func(_ int, f val) { named = named || u.namedBy(f.str()) })
	if !named || u.negated {
		return nil
	}
	return u.all()
}

// restWords are the positionals from index, after those to skip and up to a
// terminator.
func (w *weigh) restWords(v val, index int) []string {
	skip, _ := v.get("skip").integer()
	terminator := v.get("terminator")
	var out []string
	for i := index + max(skip, 0); i < len(w.words); i++ {
		text := w.words[i].text
		if terminator.is(KindString) && terminator.str() == text || terminator.is(KindArray) && listHas(terminator, []string{text}) {
			break
		}
		out = append(out, text)
	}
	return out
}

// substituted puts what the tool will put in place of the placeholder: find's
// starting points stand for every file below them.
func (w *weigh) substituted(words []string, placeholder string) [][]string {
	if placeholder == "" {
		return [][]string{words}
	}
	has := false
	for _, s := range words {
		has = has || strings.Contains(s, placeholder)
	}
	if !has {
		return [][]string{words}
	}
	starts := []string{"."}
	if len(w.words) > 0 {
		starts = starts[:0]
		for i := range w.words {
			starts = append(starts, w.words[i].text)
		}
	}
	if len(starts)*len(words) > maxWords || !w.spend(len(starts)*len(words)) {
		return [][]string{words}
	}
	var out [][]string
	for _, start := range starts {
		argv := make([]string, len(words))
		for i, s := range words {
			argv[i] = strings.ReplaceAll(s, placeholder, start)
		}
		out = append(out, argv)
	}
	return out
}

// dropAssignments removes leading NAME=VALUE words. Some of them decide what code the
// command runs, whatever its own words say.
func (w *weigh) dropAssignments(v val, words []string, n *node, stated *Set) []string {
	if !v.get("assignments").isTrue() {
		return words
	}
	for len(words) > 0 {
		name, _, ok := strings.Cut(words[0], "=")
		if !ok || !isVariable(name) {
			break
		}
		if steersCode(name) {
			w.raise(ExecOpaque, Yes, n, "assignment:"+name, stated)
		}
		words = words[1:]
	}
	return words
}

func isVariable(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

// steersCode reports variables that loaders, interpreters and common tools take code
// or the name of a program from.
func steersCode(name string) bool {
	switch name {
	case "NODE_ENV", "NODE_NO_WARNINGS", "NODE_DEBUG", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONHASHSEED", "PYTHONUTF8", "PYTHONFAULTHANDLER",
		"PYTHONDEVMODE", "PYTHONOPTIMIZE", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME",
		"GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE", "CARGO_TERM_COLOR", "CARGO_INCREMENTAL", "CARGO_NET_OFFLINE", "DOCKER_BUILDKIT", "DOCKER_CLI_HINTS":
		return false
	}
	for _, prefix := range [...]string{"LD_", "DYLD_", "GIT_", "PYTHON", "PERL5", "RUBY", "NODE_", "BASH_FUNC_", "JAVA_", "npm_config_", "CARGO_", "DOCKER_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "PATH", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "IFS", "PS4", "PROMPT_COMMAND", "EDITOR", "VISUAL", "PAGER",
		"MANPAGER", "BROWSER", "SHELL", "LESSOPEN", "LESSCLOSE", "TAR_OPTIONS", "RSYNC_RSH", "CDPATH", "HOME", "GCONV_PATH",
		"JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "RUSTC", "RUSTC_WRAPPER", "GOFLAGS", "MAKEFLAGS", "CC", "CXX", "LUA_INIT":
		return true
	}
	return false
}
