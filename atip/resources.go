package atip

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// resources lists what the words of one reading name: the args of x-atip-effects, and
// every other value of a declared file, directory or url.
func (w *weigh) resources() ([]Resource, []Loose) {
	c := resourceCollector{w: w, words: make([]string, len(w.words)), uses: make([]string, len(w.uses)), selectors: make([]selector, 0, 16)}
	w.extended(func(l *level) { l.n.ext.args.items(func(_ int, v val) { c.fromArg(l.n, v) }) })
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

func (c *resourceCollector) fromArg(level *node, v val) {
	index, hasIndex := v.get("index").integer()
	name, flag, key := v.get("name").str(), v.get("flag").str(), v.get("key").str()
	selector := selector{index, name, flag, key}
	if !hasIndex && name == "" && flag == "" && key == "" {
		selector.key = "\x00" + v.get("default").str() // what the command uses whatever its words are
	}
	if slices.Contains(c.selectors, selector) {
		return
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
				add(w.words[i].text, "argv["+strconv.Itoa(w.words[i].at)+"]")
			}
		}
	case flag != "":
		m := w.named(flag)
		for i := range w.uses {
			u := &w.uses[i]
			if !u.names(&m) || u.negated || !level.means(flag, u.opt) {
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
			c.typed(w.typeOf(w.words[i].name), w.words[i].text, "argv["+strconv.Itoa(w.words[i].at)+"]")
		}
	}
	for i := range w.uses {
		u := &w.uses[i]
		if c.uses[i] != "" || u.opt == nil || u.negated {
			continue
		}
		if w.chdirs(u) {
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
		if key, _, ok := strings.Cut(w.words[i].text, "="); ok && slices.Contains(c.pairs, key) {
			continue
		}
		add(c.words[i], w.typeOf(w.words[i].name), w.words[i].name, w.words[i].text, "argv["+strconv.Itoa(w.words[i].at)+"]")
	}
	for _, kv := range w.pairs {
		if key, _, _ := strings.Cut(kv.text, "="); w.n.conv.keyValue && !slices.Contains(c.pairs, key) {
			add("", "", "", kv.text, "argv["+strconv.Itoa(kv.at)+"]")
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
	a = cmp.Or(a, AccessRead)
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

// chdirs reports a use of an option by which the tool goes to another directory.
func (r *reading) chdirs(u *use) bool {
	found := false
	r.n.conv.chdir.items(func(_ int, f val) {
		found = found || u.namedBy(f.str()) && r.n.conv.chdirOf.means(f.str(), u.opt)
	})
	return found
}

// chdirTo joins the directories that options such as git -C name, in order.
func (r *reading) chdirTo() string {
	if !r.n.conv.chdir.ok() {
		return ""
	}
	dir := ""
	for i := range r.uses {
		u := &r.uses[i]
		if !r.chdirs(u) || !u.hasValue || u.value == "" {
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
	w.extended(func(l *level) {
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
	w.extended(func(l *level) {
		l.n.ext.sublanguage.items(func(_ int, v val) {
			texts, opaque := w.sublanguageTexts(v)
			for _, text := range texts {
				verdict := classifySQL(text)
				opaque = opaque || verdict.opaque || verdict.calls && w.result[Network].Value != No
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
	w.extended(func(l *level) {
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

// Access is what a call does to a resource; a set of bits.
type Access uint8

// Access bits.
const (
	AccessRead Access = 1 << iota
	AccessWrite
	AccessDelete
	AccessExec
	AccessSecret
)

// String lists the bits, comma-separated, "none" for zero.
func (a Access) String() string {
	out := ""
	for i, name := range [...]string{"read", "write", "delete", "exec", "secret"} {
		if a&(1<<i) != 0 {
			if out != "" {
				out += ","
			}
			out += name
		}
	}
	return cmp.Or(out, "none")
}

// MarshalText implements encoding.TextMarshaler.
func (a Access) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Class groups paths by what harm touching them does. The zero value is the
// unclassified path, which policies treat as ClassOutside.
type Class uint8

// Path classes, in the order in which the first match wins.
const (
	ClassUnknown Class = iota
	ClassPolicySelf
	ClassDevice
	ClassSecret
	ClassStartup
	ClassRoot
	ClassWorkspaceVCS
	ClassWorkspaceRegenerable
	ClassWorkspaceTracked
	ClassWorkspace
	ClassTmp
	ClassSystem
	ClassOutside
)

var classNames = [...]string{"unknown", "policy-self", "device", "secret", "startup", "root", "workspace-vcs",
	"workspace-regenerable", "workspace-tracked", "workspace", "tmp", "system", "outside"}

// String returns the name used in policies and plans.
func (c Class) String() string { return classNames[c] }

// MarshalText implements encoding.TextMarshaler.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// ClassByName is the inverse of Class.String.
func ClassByName(name string) (Class, bool) {
	for i, n := range classNames {
		if n == name {
			return Class(i), true
		}
	}
	return 0, false
}

// Resource is one thing a call touches. Resolve fills Kind, Value and Access;
// Abs and Class need the file system and are filled by internal/effects.
type Resource struct {
	Kind      string `json:"kind"` // path, url, host, ref, db
	Value     string `json:"value"`
	Abs       string `json:"abs,omitempty"`
	Access    Access `json:"access"`
	Recursive bool   `json:"recursive,omitempty"`
	Class     Class  `json:"class"`
	Scheme    string `json:"scheme,omitempty"`
	Host      string `json:"host,omitempty"`
	Why       string `json:"why,omitempty"` // "argv[2]", "-o"
}
