package atip

import "strings"

// resources lists what the words of one reading name: the args of x-atip-effects, and
// every other value of a declared file, directory or url.
func (w *weigh) resources() ([]Resource, []Loose) {
	c := resourceCollector{w: w, words: make([]string, len(w.words)), uses: make([]string, len(w.uses)), selectors: make([]selector, 0, 16)}
	w.chain(func(l *level) {
		if l.n.ext != nil {
			l.n.ext.args.items(func(_ int, v val) { c.fromArg(v) })
		}
	})
	c.fromTypes()
	c.addLoose()
	return c.out, c.loose
}

type resourceCollector struct {
	w         *weigh
	words     []string // the kind that an args entry states, "" without one
	uses      []string
	pairs     []string   // keys that an args entry speaks of
	selectors []selector // of entries seen: the command's own come first and win
	out       []Resource
	loose     []Loose
}

// selector says which words an args entry speaks of.
type selector struct {
	index           int
	name, flag, key string
}

func (c *resourceCollector) fromArg(v val) {
	index, hasIndex := v.get("index").integer()
	name, flag, key := v.get("name").str(), v.get("flag").str(), v.get("key").str()
	selector := selector{index, name, flag, key}
	if !hasIndex && name == "" && flag == "" && key == "" {
		selector.key = "\x00" + v.get("default").str() // what the command uses whatever its words are
	}
	for _, s := range c.selectors {
		if s == selector {
			return
		}
	}
	c.selectors = append(c.selectors, selector)
	w := c.w
	if !w.spend(len(w.words) + len(w.uses) + len(c.selectors)) {
		return
	}
	if flag != "" && name == "" && !hasIndex && w.spelled()&spelling(flag) == 0 && !v.get("default").ok() {
		return // most options of a tool do not stand in a call
	}
	access, _ := readAccess(v.get("access"))
	v.get("accessIf").items(func(_ int, item val) {
		if w.eval(item.get("if")) != triFalse {
			more, _ := readAccess(item.get("access"))
			access |= more
		}
	})
	recursive := false
	v.get("recursiveIf").items(func(_ int, cond val) { recursive = recursive || w.eval(cond) != triFalse })
	kind := v.get("kind").str()
	found := false
	add := func(value, why string) {
		found = true
		c.add(kind, value, access, recursive, why)
	}
	switch {
	case hasIndex || name != "":
		if index < 0 {
			index += len(w.words)
		}
		for i := range w.words {
			if hasIndex && i == index || name != "" && w.words[i].name == name {
				c.words[i] = kind
				add(w.words[i].text, "argv["+itoa(w.words[i].at)+"]")
			}
		}
	case flag != "":
		m := w.named(flag)
		for i := range w.uses {
			u := &w.uses[i]
			if !u.names(&m) || u.negated {
				continue
			}
			c.uses[i] = kind
			if u.opt != nil && u.opt.optional && !u.hasValue {
				continue
			}
			for _, value := range u.all() {
				add(value, u.flag)
			}
		}
	case key != "":
		c.pairs = append(c.pairs, key)
		for _, kv := range w.pairs {
			if k, value, _ := strings.Cut(kv.text, "="); k == key {
				add(value, key+"=")
			}
		}
	}
	if def := v.get("default"); def.ok() && !found {
		add(def.str(), "default")
	}
}

// all lists the values of a use.
func (u *use) all() []string {
	if len(u.values) > 0 {
		return u.values
	}
	if u.hasValue {
		return []string{u.value}
	}
	return nil
}

func (c *resourceCollector) fromTypes() {
	w := c.w
	for i := range w.words {
		if c.words[i] == "" && w.words[i].name != "" {
			c.typed(w.typeOf(w.words[i].name), w.words[i].text, "argv["+itoa(w.words[i].at)+"]")
		}
	}
	for i := range w.uses {
		u := &w.uses[i]
		if c.uses[i] != "" || u.opt == nil || u.negated {
			continue
		}
		if listHas(w.n.conv.chdir, u.opt.flags) {
			// The directory the tool goes to is read, whatever is done in it.
			c.add("path", u.value, AccessRead, false, u.flag)
			continue
		}
		for _, value := range u.all() {
			c.typed(u.opt.typ, value, u.flag)
		}
	}
}

// typeOf is the type of a declared argument, "" if there is none of that name.
func (w *weigh) typeOf(name string) string {
	for i := range w.n.arguments {
		if w.n.arguments[i].name == name {
			return w.n.arguments[i].typ
		}
	}
	return ""
}

// addLoose lists the words that may name a host: those that no args entry calls text, a host or a
// URL. Words that are said to be paths are there too, as many tools take a URL for a file.
func (c *resourceCollector) addLoose() {
	w := c.w
	add := func(kind, typ, name, value, why string) {
		switch {
		case kind == "text", kind == "url", kind == "host", kind == "" && typ == "url":
		default:
			c.loose = append(c.loose, Loose{Name: name, Value: value, Why: why})
		}
	}
	for i := range w.words {
		if key, _, ok := strings.Cut(w.words[i].text, "="); ok && contains(c.pairs, key) {
			continue
		}
		add(c.words[i], w.typeOf(w.words[i].name), w.words[i].name, w.words[i].text, "argv["+itoa(w.words[i].at)+"]")
	}
	for _, kv := range w.pairs {
		if key, _, _ := strings.Cut(kv.text, "="); w.n.conv.keyValue && !contains(c.pairs, key) {
			add("", "", "", kv.text, "argv["+itoa(kv.at)+"]")
		}
	}
	for i := range w.uses {
		u := &w.uses[i]
		if u.fromEnv || u.negated {
			continue
		}
		name, typ := strings.TrimLeft(u.flag, "-"), ""
		if u.opt != nil {
			typ = u.opt.typ
			name = u.opt.spelledOut(name)
		}
		for _, value := range u.all() {
			add(c.uses[i], typ, name, value, u.flag)
		}
	}
}

func (c *resourceCollector) typed(typ, value, why string) {
	switch typ {
	case "file", "directory":
		c.add("path", value, c.w.fileAccess(), typ == "directory", why)
	case "url":
		access := AccessRead
		if c.w.result[RemoteMutation].Value != No {
			access |= AccessWrite
		}
		c.add("url", value, access, false, why)
	}
}

// fileAccess is what may be done to a file when no args entry says it: read if write
// and delete are "no", else all that is not excluded.
func (w *weigh) fileAccess() Access {
	var a Access
	for _, p := range [...]struct {
		e Effect
		a Access
	}{{Read, AccessRead}, {Write, AccessWrite}, {Delete, AccessDelete}} {
		if w.result[p.e].Value != No {
			a |= p.a
		}
	}
	if a == 0 {
		a = AccessRead
	}
	return a
}

func (c *resourceCollector) add(kind, value string, access Access, recursive bool, why string) {
	r := Resource{Kind: kind, Value: value, Access: access, Recursive: recursive, Why: why}
	switch kind {
	case "text":
		return
	case "path":
		// "-" is standard input or output everywhere it is read as a file at all.
		if access == 0 || value == "-" || value == "" {
			return
		}
	case "url":
		r.Scheme, r.Host = splitURL(value)
		if r.Scheme == "file" {
			c.out = append(c.out, Resource{Kind: "path", Value: value[strings.Index(value, "://")+len("://"):], Access: AccessRead, Recursive: recursive, Why: why})
		}
	case "host":
		r.Host = hostOf(value)
	}
	c.out = append(c.out, r)
}

// splitURL finds scheme and host of a URL, of a host without scheme, and of scp's
// user@host:path. It is lenient: what it returns is a claim about the words, the
// network rules of the sandbox see the real address.
func splitURL(s string) (scheme, host string) {
	i := strings.Index(s, "://")
	if i <= 0 {
		return "", hostOf(s)
	}
	return strings.ToLower(s[:i]), hostOf(s[i+len("://"):])
}

func hostOf(s string) string {
	if i := strings.IndexAny(s, "/?#\\"); i >= 0 {
		s = s[:i]
	}
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		s = s[i+1:]
	}
	if strings.HasPrefix(s, "[") {
		if i := strings.IndexByte(s, ']'); i > 0 {
			return strings.ToLower(s[1:i])
		}
	}
	if i := strings.IndexByte(s, ':'); i >= 0 {
		s = s[:i]
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}

// chdirTo joins the directories that options such as git -C name, in order.
func (r *reading) chdirTo() string {
	list := r.n.conv.chdir
	if !list.ok() {
		return ""
	}
	dir := ""
	for i := range r.uses {
		u := &r.uses[i]
		named := false
		list.items(func(_ int, f val) { named = named || u.namedBy(f.str()) })
		if !named || !u.hasValue || u.value == "" {
			continue
		}
		switch {
		case u.value[0] == '/' || dir == "":
			dir = u.value
		default:
			dir += "/" + u.value
		}
	}
	return dir
}
