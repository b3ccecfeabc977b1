package atip

import "strings"

// collectNested lists the commands inside the call: what every exec of the chain and
// of the clauses that fired would run.
func (w *weigh) collectNested(fired []firedClause, stated *Set) []Nested {
	var out []Nested
	w.chain(func(l *level) {
		if l.n.ext == nil {
			return
		}
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
