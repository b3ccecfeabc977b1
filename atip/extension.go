package atip

import (
	"slices"
	"strconv"
	"strings"
)

// extension is a well-formed x-atip-effects object, version 1. It refines the
// standard effects, which stay its upper bound. Malformed in any part it is ignored
// whole: half of one could lower without what raises.
type extension struct {
	v           val
	base        val
	when        []clause
	narrow      []clause
	args        val
	exec        val
	env         val
	files       val
	sublanguage val
	parse       val
	unknownAll  bool // unknownOption: "unknown"
	terminators []string
}

// clause is one element of when or narrow.
type clause struct {
	id      string
	cond    val
	body    val
	pointer string
}

// problem receives what is wrong with an extension; nil discards it.
type problem func(v val, pointer, msg string)

// readExtension decodes an extension, nil if it is malformed.
func readExtension(v val, pointer string) *extension {
	x, ok := checkExtension(v, pointer, nil)
	if !ok {
		return nil
	}
	return x
}

const maxClauses = 64

// checkExtension decodes an extension and reports all that is wrong with it.
func checkExtension(v val, pointer string, report problem) (*extension, bool) {
	c := extensionChecker{report: report}
	x := &extension{v: v}
	if !v.is(KindObject) {
		c.bad(v, pointer, "x-atip-effects is not an object")
		return nil, false
	}
	if version, ok := v.get("v").integer(); !ok || version != 1 {
		c.bad(v, pointer, "x-atip-effects has a version other than 1")
		return nil, false
	}
	clauses := 0
	v.members(func(key string, m val) bool {
		at := pointer
		if c.report != nil {
			at = pointerTo(pointer, key)
		}
		switch key {
		case "v":
		case "base":
			x.base = m
			c.effects(m, at)
		case "when":
			x.when = c.clauses(m, at, whenFields)
			clauses += len(x.when)
		case "narrow":
			x.narrow = c.clauses(m, at, narrowFields)
			clauses += len(x.narrow)
		case "args":
			x.args = m
			c.list(m, at, c.arg)
		case "exec":
			x.exec = m
			c.list(m, at, c.exec)
		case "env":
			x.env = m
			c.list(m, at, c.env)
		case "files":
			x.files = m
			c.list(m, at, c.file)
		case "sublanguage":
			x.sublanguage = m
			c.list(m, at, c.sublanguage)
		case "parse":
			x.parse = m
			c.parse(m, at)
		case "unknownOption":
			x.unknownAll = m.str() == "unknown"
			if !x.unknownAll && m.str() != "join" {
				c.bad(m, at, `unknownOption is not "join" or "unknown"`)
			}
		default:
			c.field(key, m, at)
		}
		return true
	})
	if clauses > maxClauses {
		c.bad(v, pointer, "more than 64 clauses")
		return nil, false
	}
	c.ids(x)
	x.terminators = c.terminators
	return x, !c.failed
}

type extensionChecker struct {
	report      problem
	failed      bool
	terminators []string
}

func (c *extensionChecker) bad(v val, pointer, msg string) {
	c.failed = true
	if c.report != nil {
		c.report(v, pointer, msg)
	}
}

// field accepts what is for people or for others; any other unknown name may be a
// misspelt clause, so it is an error.
func (c *extensionChecker) field(key string, m val, pointer string) {
	if key == "because" || key == "description" || isExtensionKey(key) {
		return
	}
	c.bad(m, pointer, "unknown field "+quoteShort(key))
}

func (c *extensionChecker) list(v val, pointer string, each func(val, string)) {
	if !v.is(KindArray) {
		c.bad(v, pointer, "not an array")
		return
	}
	v.items(func(n int, item val) {
		at := pointer
		if c.report != nil {
			at = pointer + "/" + strconv.Itoa(n)
		}
		if !item.is(KindObject) {
			c.bad(item, at, "not an object")
			return
		}
		each(item, at)
	})
}

type clauseFields uint8

const (
	whenFields clauseFields = iota
	narrowFields
)

func (c *extensionChecker) clauses(v val, pointer string, kind clauseFields) []clause {
	list := make([]clause, 0, v.len())
	c.list(v, pointer, func(item val, at string) {
		cl := clause{body: item, pointer: at}
		effects := false
		item.members(func(key string, m val) bool {
			in := at
			if c.report != nil {
				in = pointerTo(at, key)
			}
			switch {
			case key == "id":
				cl.id = m.str()
				if !validID(cl.id) {
					c.bad(m, in, "id is not 1 to 32 of A-Z a-z 0-9 _ -")
				}
			case key == "if":
				cl.cond = m
				c.condition(m, in, 0)
			case kind == whenFields && key == "add", kind == narrowFields && key == "effects":
				effects = true
				c.effects(m, in)
			case kind == whenFields && (key == "addAll" || key == "unknown"), kind == narrowFields && key == "inherit":
				if _, ok := m.boolean(); !ok {
					c.bad(m, in, "not true or false")
				}
			case kind == whenFields && key == "exec":
				c.list(m, in, c.exec)
			case kind == narrowFields && key == "minRank":
				if _, ok := RankByName(m.str()); !ok {
					c.bad(m, in, "not a rank")
				}
			case kind == narrowFields && key == "despite":
				c.strings(m, in)
			default:
				c.field(key, m, in)
			}
			return true
		})
		if cl.id == "" {
			c.bad(item, at, "clause without id")
		}
		if !cl.cond.ok() {
			c.bad(item, at, "clause without if")
		}
		if kind == narrowFields && !effects {
			c.bad(item, at, "narrow without effects")
		}
		list = append(list, cl)
	})
	return list
}

func (c *extensionChecker) ids(x *extension) {
	find := func(list []clause, id string) int {
		n := 0
		for i := range list {
			if list[i].id == id {
				n++
			}
		}
		return n
	}
	for _, list := range [2][]clause{x.when, x.narrow} {
		for i := range list {
			if find(x.when, list[i].id)+find(x.narrow, list[i].id) > 1 {
				c.bad(list[i].body, list[i].pointer, "id "+quoteShort(list[i].id)+" is used twice")
			}
		}
	}
	if c.report == nil {
		return
	}
	for _, n := range x.narrow {
		// A despite may also name a when of a group or the root; validate looks
		// there, so only ids that are narrows themselves are plainly wrong here.
		n.body.get("despite").items(func(_ int, item val) {
			if find(x.narrow, item.str()) > 0 {
				c.bad(item, n.pointer+"/despite", "despite names a narrow")
			}
		})
	}
}

func validID(s string) bool {
	if s == "" || len(s) > 32 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// The checks of the single fields of x-atip-effects.

func (c *extensionChecker) strings(v val, pointer string) {
	if _, ok := v.strings(); !ok {
		c.bad(v, pointer, "not an array of strings")
	}
}

func (c *extensionChecker) want(v val, k Kind, pointer, what string) {
	if !v.is(k) {
		c.bad(v, pointer, what)
	}
}

// oneOf checks a required word.
func (c *extensionChecker) oneOf(v val, pointer string, words ...string) {
	s := v.str()
	if slices.Contains(words, s) {
		return
	}
	c.bad(v, pointer, "not one of the words it may be")
}

// effects checks the effects of a base, an add or a narrow.
func (c *extensionChecker) effects(v val, pointer string) {
	if !v.is(KindObject) {
		c.bad(v, pointer, "effects are not an object")
		return
	}
	readStatement(v, true, func(m val, at, _, msg string) { c.bad(m, pointer+at, msg) })
}

func (c *extensionChecker) index(m val, pointer string) {
	if _, ok := m.integer(); !ok {
		c.bad(m, pointer, "not a whole number")
	}
}

func (c *extensionChecker) access(m val, pointer string) {
	if _, ok := readAccess(m); !ok {
		c.bad(m, pointer, "access is not read, write, delete, exec, secret or none")
	}
}

func (c *extensionChecker) arg(v val, at string) {
	selectors := 0
	v.members(func(key string, m val) bool {
		switch key {
		case "index":
			selectors++
			c.index(m, at)
		case "name", "flag", "key":
			selectors++
			c.want(m, KindString, at, key+" is not a string")
		case "kind":
			c.oneOf(m, at, "path", "url", "host", "ref", "db", "text")
		case "access":
			c.access(m, at)
		case "accessIf":
			c.list(m, at, func(item val, at string) {
				c.condition(item.get("if"), at, 0)
				c.access(item.get("access"), at)
			})
		case "recursiveIf":
			if !m.is(KindArray) {
				c.bad(m, at, "recursiveIf is not an array")
			}
			m.items(func(_ int, item val) { c.condition(item, at, 0) })
		case "default":
			c.want(m, KindString, at, "default is not a string")
		default:
			c.field(key, m, at)
		}
		return true
	})
	if selectors > 1 || selectors == 0 && !v.get("default").ok() {
		c.bad(v, at, "not exactly one of index, name, flag and key")
	}
	if !v.get("kind").ok() || !v.get("access").ok() {
		c.bad(v, at, "kind or access is missing")
	}
}

func (c *extensionChecker) exec(v val, at string) {
	v.members(func(key string, m val) bool {
		switch key {
		case "from":
			c.oneOf(m, at, "optionValue", "arg", "rest", "afterDashDash", "untilTerminator", "env", "file", "stdin")
		case "flags":
			c.strings(m, at)
		case "index", "skip":
			c.index(m, at)
		case "assignments":
			if _, ok := m.boolean(); !ok {
				c.bad(m, at, "assignments is not true or false")
			}
		case "terminator":
			words, ok := m.strings()
			if m.is(KindString) {
				words, ok = []string{m.str()}, true
			}
			if !ok {
				c.bad(m, at, "terminator is not a string or an array of strings")
			}
			c.terminators = append(c.terminators, words...)
		case "kind":
			c.oneOf(m, at, "argv", "shell", "code")
		case "language", "placeholder":
			c.want(m, KindString, at, key+" is not a string")
		default:
			c.field(key, m, at)
		}
		return true
	})
	from := v.get("from").str()
	if from == "" || !v.get("kind").ok() {
		c.bad(v, at, "from or kind is missing")
	}
	if (from == "optionValue" || from == "untilTerminator" || from == "env") && v.get("flags").len() == 0 {
		c.bad(v, at, "from "+from+" without flags")
	}
}

func (c *extensionChecker) env(v val, at string) {
	v.members(func(key string, m val) bool {
		switch key {
		case "name":
			if m.str() == "" || m.str() == "*" {
				c.bad(m, at, "name of a variable is empty")
			}
		case "kind":
			c.oneOf(m, at, "exec", "config", "endpoint", "secret")
		default:
			c.field(key, m, at)
		}
		return true
	})
	if !v.get("name").ok() || !v.get("kind").ok() {
		c.bad(v, at, "name or kind is missing")
	}
}

func (c *extensionChecker) file(v val, at string) {
	v.members(func(key string, m val) bool {
		switch key {
		case "path", "kind", "format":
			if m.str() == "" {
				c.bad(m, at, key+" is not a string")
			}
		case "relativeTo":
			c.oneOf(m, at, "cwd", "repo", "home", "project")
		case "safeKeys":
			c.strings(m, at)
		default:
			c.field(key, m, at)
		}
		return true
	})
	if !v.get("path").ok() || !v.get("relativeTo").ok() {
		c.bad(v, at, "path or relativeTo is missing")
	}
}

func (c *extensionChecker) sublanguage(v val, at string) {
	v.members(func(key string, m val) bool {
		switch key {
		case "from":
			c.oneOf(m, at, "optionValue", "arg", "rest", "file", "stdin")
		case "flags":
			c.strings(m, at)
		case "index":
			c.index(m, at)
		case "language":
			c.oneOf(m, at, "sql")
		default:
			c.field(key, m, at)
		}
		return true
	})
	if !v.get("from").ok() || !v.get("language").ok() {
		c.bad(v, at, "from or language is missing")
	}
}

func (c *extensionChecker) parse(v val, at string) {
	if !v.is(KindObject) {
		c.bad(v, at, "parse is not an object")
		return
	}
	v.members(func(key string, m val) bool {
		switch key {
		case "interspersed", "dashdash", "bundle", "attachedValue", "abbrev", "abbrevCommands", "singleDashLong",
			"negation", "numericOption", "bareCluster", "keyValueArgs":
			if _, ok := m.boolean(); !ok {
				c.bad(m, at, key+" is not true or false")
			}
		case "optionalValue", "chdir":
			c.strings(m, at)
		case "arity":
			if !m.is(KindObject) {
				c.bad(m, at, "arity is not an object")
			}
			m.members(func(flag string, n val) bool {
				if readArity(n) == arityUnknown && n.str() != "unknown" {
					c.bad(n, at, "arity of "+quoteShort(flag)+` is not a number up to 64, "rest", "terminator" or "unknown"`)
				}
				return true
			})
		case "options":
			c.oneOf(m, at, "none")
		case "responseFiles":
			if m.str() == "" {
				c.bad(m, at, "responseFiles is not a prefix")
			}
		default:
			c.field(key, m, at)
		}
		return true
	})
}

// readAccess reads one word, or an array or comma-separated list of them.
func readAccess(v val) (Access, bool) {
	if v.is(KindArray) {
		var all Access
		ok := true
		v.items(func(_ int, item val) {
			a, good := readAccess(item)
			all |= a
			ok = ok && good && !item.is(KindArray)
		})
		return all, ok
	}
	s := v.str()
	if s == "" {
		return 0, false
	}
	var all Access
	for s != "" {
		word := s
		for i := 0; i < len(s); i++ {
			if s[i] == ',' {
				word = s[:i]
				break
			}
		}
		if s = s[len(word):]; s != "" {
			s = s[1:]
		}
		switch word {
		case "read":
			all |= AccessRead
		case "write":
			all |= AccessWrite
		case "delete":
			all |= AccessDelete
		case "exec":
			all |= AccessExec
		case "secret":
			all |= AccessSecret
		case "none":
		default:
			return 0, false
		}
	}
	return all, true
}

// badExec says why an entry of x-atip-execs is not one, "" if it is: a name that is looked
// up in PATH, an absolute path, or an absolute directory followed by "/**".
func badExec(entry string) string {
	dir, below := strings.CutSuffix(entry, "/**")
	switch {
	case entry == "":
		return "is empty"
	case strings.ContainsAny(dir, "*?[\x00"):
		return "has a wildcard other than a last /**"
	case !strings.HasPrefix(entry, "/") && (below || strings.Contains(entry, "/")):
		return "is a relative path"
	case strings.HasPrefix(entry, "/") && (dir == "" || dir == "/"):
		return "names the root directory"
	case entry == "." || entry == "..", strings.Contains(dir+"/", "/../"), strings.Contains(dir+"/", "/./"):
		return "leads through . or .."
	}
	return ""
}

// goodExecs lists the entries that are well-formed.
func goodExecs(v val) []string {
	names, _ := v.strings()
	return slices.DeleteFunc(names, func(name string) bool { return badExec(name) != "" })
}

// execs checks x-atip-execs. Of a list with an entry that is wrong the others count: less is
// started, never more.
func (c *validator) execs(v val, pointer string) {
	if _, ok := v.strings(); !ok {
		c.note(tolerated(), v, pointer, "type", "x-atip-execs is not an array of strings")
		return
	}
	v.items(func(i int, item val) {
		if why := badExec(item.str()); why != "" {
			c.note(tolerated(), item, pointer+"/"+strconv.Itoa(i), "execs", quoteShort(item.str())+" "+why+": write a name, an absolute path or DIR/**")
		}
	})
}

// Fetch is x-atip-fetch of one command: how to fetch what a project declares without running
// any of its code, so that the command itself can run without network afterwards.
type Fetch struct {
	Words    []string    `json:"words,omitempty"`    // of the call that fetches, after the tool's name; ${DIR} is where its files lie
	Hosts    []string    `json:"hosts,omitempty"`    // that this call may reach
	Inputs   []string    `json:"inputs,omitempty"`   // files of the directory that it sees; **/NAME is that name at any depth
	Names    []string    `json:"names,omitempty"`    // files of which it sees that they are there, and no content
	Looks    []string    `json:"looks,omitempty"`    // files that it does not see, held to Refuse as well
	Needs    []string    `json:"needs,omitempty"`    // inputs without which nothing is declared: one of them must be there
	Unless   []string    `json:"unless,omitempty"`   // files beside which nothing is fetched before a command that needs no network
	Declares []string    `json:"declares,omitempty"` // one of the inputs must hold one of these texts, else nothing is fetched before such a command
	Refuse   []string    `json:"refuse,omitempty"`   // one of the needs or looks with one of these texts cannot be fetched this way
	Origins  []string    `json:"origins,omitempty"`  // texts behind which the needs name an address: of Hosts, Known, or listed by the user
	Known    []string    `json:"known,omitempty"`    // what may stand behind such a text besides
	Comment  string      `json:"comment,omitempty"`  // what begins a comment in the inputs, where such texts do not count
	Files    []string    `json:"files,omitempty"`    // options with a file of the directory: an input, and handed to the call; one must be there
	Local    bool        `json:"local,omitempty"`    // only a program of the workspace is split; the machine's installs elsewhere
	Up       bool        `json:"up,omitempty"`       // the project may be a directory above, up to the workspace
	Root     bool        `json:"root,omitempty"`     // the call starts in /, where no file of a project counts
	Starts   []string    `json:"starts,omitempty"`   // what the call may start, besides its own program
	Closed   bool        `json:"-"`                  // Starts is stated
	Require  []string    `json:"require,omitempty"`  // options that the command must have
	Options  []string    `json:"options,omitempty"`  // options that it may have
	Env      [][2]string `json:"env,omitempty"`      // of the call that fetches
	Mirror   string      `json:"mirror,omitempty"`   // the variable that names another registry
	Settings [][2]string `json:"settings,omitempty"` // files of the directory, or of the home, that may name one, and under which key
	Quiet    []string    `json:"quiet,omitempty"`    // what such files of the directory may set besides: it neither leads elsewhere nor starts anything

	OfflineWords []string    `json:"offlineWords,omitempty"` // what says that the command works without network
	OfflineEnv   [][2]string `json:"offlineEnv,omitempty"`   // what makes it do so

	// As is another command of the tool. What that one fetches is fetched once before this one, which
	// needs no network: it builds what is there. Without are options with which it is not.
	As      []string `json:"as,omitempty"`
	Without []string `json:"without,omitempty"`
}

// lists are the members that are arrays of strings.
func (f *Fetch) lists() map[string]*[]string {
	return map[string]*[]string{"words": &f.Words, "hosts": &f.Hosts, "inputs": &f.Inputs, "names": &f.Names, "looks": &f.Looks, "needs": &f.Needs, "unless": &f.Unless,
		"declares": &f.Declares, "refuse": &f.Refuse, "origins": &f.Origins, "known": &f.Known, "files": &f.Files, "starts": &f.Starts, "require": &f.Require, "options": &f.Options,
		"quiet": &f.Quiet, "offlineWords": &f.OfflineWords, "as": &f.As, "without": &f.Without}
}

// readFetch reads x-atip-fetch; bad is told what is wrong. Of a split with an error nothing
// counts: the command then has its whole effects.
func readFetch(v val, bad func(v val, at, msg string)) *Fetch {
	if !v.ok() {
		return nil
	}
	good := true
	wrong := func(v val, at, msg string) {
		good = false
		if bad != nil {
			bad(v, at, msg)
		}
	}
	if !v.is(KindObject) {
		wrong(v, "", "x-atip-fetch is not an object")
		return nil
	}
	f := &Fetch{}
	lists := f.lists()
	texts := map[string]*string{"mirror": &f.Mirror, "comment": &f.Comment}
	flags := map[string]*bool{"local": &f.Local, "up": &f.Up, "root": &f.Root}
	pairs := map[string]*[][2]string{"env": &f.Env, "offlineEnv": &f.OfflineEnv, "settings": &f.Settings}
	v.members(func(name string, m val) bool {
		at := "/" + name
		if to := lists[name]; to != nil {
			list, ok := m.strings()
			if !ok {
				wrong(m, at, name+" is not an array of strings")
			}
			*to = list
			f.Closed = f.Closed || name == "starts"
		} else if to := texts[name]; to != nil {
			if *to = m.str(); *to == "" {
				wrong(m, at, name+" is no text")
			}
		} else if to := flags[name]; to != nil {
			var ok bool
			if *to, ok = m.boolean(); !ok {
				wrong(m, at, name+" is neither true nor false")
			}
		} else if to := pairs[name]; to != nil {
			if !m.is(KindObject) {
				wrong(m, at, name+" is not an object")
			}
			m.members(func(key string, e val) bool {
				if name != "settings" && !isVariable(key) || !e.is(KindString) {
					wrong(e, at+"/"+key, quoteShort(key)+" is not a variable with a text")
				}
				*to = append(*to, [2]string{key, e.str()})
				return true
			})
		} else {
			wrong(m, at, quoteShort(name)+" is no member of x-atip-fetch")
		}
		return true
	})
	if len(f.As) > 0 {
		if len(f.Words)+len(f.Hosts)+len(f.Needs)+len(f.OfflineEnv) > 0 {
			wrong(v, "/as", "as names a command whose x-atip-fetch counts, so that this one has nothing but without")
		}
		if !good {
			return nil
		}
		return f
	}
	for name, list := range map[string][]string{"words": f.Words, "hosts": f.Hosts, "inputs": f.Inputs, "needs": f.Needs} {
		if len(list) == 0 && (len(f.Files) == 0 || name == "words" || name == "hosts") {
			wrong(v, "/"+name, name+" is empty")
		}
	}
	for _, input := range slices.Concat(f.Inputs, f.Names, f.Looks, f.Unless) {
		if why := badInput(input); why != "" {
			wrong(v, "/inputs", quoteShort(input)+" "+why)
		}
	}
	for _, need := range f.Needs {
		if !slices.Contains(f.Inputs, need) {
			wrong(v, "/needs", quoteShort(need)+" is not among the inputs")
		}
	}
	for _, name := range f.Starts {
		if why := badExec(name); why != "" {
			wrong(v, "/starts", quoteShort(name)+" "+why)
		}
	}
	if f.Mirror != "" && !isVariable(f.Mirror) {
		wrong(v.get("mirror"), "/mirror", quoteShort(f.Mirror)+" is not the name of a variable")
	}
	for _, file := range f.Settings {
		if path, home := strings.CutPrefix(file[0], "~/"); badInput(path) != "" || file[1] == "" || !home && f.Mirror == "" {
			wrong(v.get("settings"), "/settings", quoteShort(file[0])+" is no file with a key, or there is no mirror that the call could be given")
		}
	}
	if len(f.OfflineEnv) == 0 {
		wrong(v, "/offlineEnv", "nothing makes the command work without network")
	}
	if !good {
		return nil
	}
	return f
}

// before is the x-atip-fetch of the command that this one names, with the options that keep it from
// being fetched before this one. nil if that command has none.
func (f *Fetch) before(n *node) *Fetch {
	for n.parent != nil {
		n = n.parent
	}
	for _, word := range f.As {
		if n, _ = n.lookup(word); n == nil {
			return nil
		}
	}
	of := readFetch(n.v.get("x-atip-fetch"), nil)
	if of == nil || len(of.As) > 0 {
		return nil
	}
	of.As, of.Without = f.As, f.Without
	return of
}

// badInput says why an entry is no file of the directory, "" if it is one.
func badInput(input string) string {
	name := strings.TrimPrefix(input, "**/")
	switch {
	case name == "" || name == "." || name == "..":
		return "names no file"
	case strings.HasPrefix(name, "/"), strings.Contains("/"+name+"/", "/../"), strings.Contains("/"+name+"/", "/./"):
		return "is not a clean path below the directory"
	case name != input && strings.ContainsRune(name, '/'), strings.ContainsAny(strings.TrimPrefix(name, "*."), "*?[\x00"):
		return "has a pattern other than **/NAME and **/*.ENDING"
	}
	return ""
}

// Splits returns how this call can be split, nil if it cannot: its words are known, it names
// nothing but what the project declares, and has no option of which the document says nothing.
// Files that its options name are inputs, and words of the call that fetches.
func (call *Call) Splits() *Fetch {
	f := call.Fetch
	if f == nil || len(f.As) > 0 || call.Exactness != Exact || call.Readings != 1 || len(call.UnknownOptions) > 0 || len(call.Positionals) > 0 || call.Chdir != "" ||
		slices.ContainsFunc(call.Loose, func(l Loose) bool { return !slices.Contains(f.Files, l.Why) }) {
		return nil
	}
	var words, files []string
	for _, o := range call.Options {
		switch {
		case o.Maybe:
			return nil
		case slices.Contains(f.Files, o.Flag):
			if strings.HasPrefix(o.Value, "**/") || badInput(o.Value) != "" {
				return nil
			}
			words, files = append(words, o.Flag, o.Value), append(files, o.Value)
		case !slices.Contains(f.Options, o.Flag) && !slices.Contains(f.Require, o.Flag):
			return nil
		}
	}
	for _, flag := range f.Require {
		if !slices.ContainsFunc(call.Options, func(o OptionUse) bool { return o.Flag == flag }) {
			return nil
		}
	}
	if len(f.Files) == 0 {
		return f
	}
	if len(files) == 0 {
		return nil
	}
	own := *f
	own.Words, own.Inputs, own.Needs = slices.Concat(f.Words, words), slices.Concat(f.Inputs, files), files
	return &own
}

// Before returns how to fetch what this call builds, nil if its document does not say so, or it has an
// option with which it builds something else.
func (call *Call) Before() *Fetch {
	f := call.Fetch
	if f == nil || len(f.As) == 0 || call.Chdir != "" || call.Readings != 1 ||
		slices.ContainsFunc(call.Options, func(o OptionUse) bool {
			return slices.Contains(f.Without, o.Flag) || slices.Contains(f.Without, o.Flag+"="+o.Value)
		}) {
		return nil
	}
	return f
}

// conventions is how a tool splits its words into options and positionals. Most
// follow getopt_long; x-atip-effects states where one does not.
type conventions struct {
	interspersed   bool // options may follow positionals
	dashdash       bool // "--" ends the options
	bundle         bool // -abc is -a -b -c
	attached       bool // -oVALUE
	abbrev         Value
	abbrevCommands bool
	negation       bool
	numeric        bool // -5
	bareCluster    bool // the first word is a cluster without dash: tar xzf
	keyValue       bool // name=value words: dd, make
	noOptions      bool // echo
	responsePrefix string
	optionalValue  val
	arity          val
	chdir          val
	chdirOf        *node // that states it
	terminators    []string
}

func defaultConventions() conventions {
	return conventions{interspersed: true, dashdash: true, bundle: true, attached: true}
}

// apply lays the conventions an extension states over those inherited.
func (c *conventions) apply(x *extension) {
	c.terminators = append(c.terminators[:len(c.terminators):len(c.terminators)], x.terminators...)
	x.parse.members(func(key string, m val) bool {
		b := m.isTrue()
		switch key {
		case "interspersed":
			c.interspersed = b
		case "dashdash":
			c.dashdash = b
		case "bundle":
			c.bundle = b
		case "attachedValue":
			c.attached = b
		case "abbrev":
			c.abbrev = Of(b)
		case "abbrevCommands":
			c.abbrevCommands = b
		case "singleDashLong": // the flags say it themselves
		case "negation":
			c.negation = b
		case "numericOption":
			c.numeric = b
		case "bareCluster":
			c.bareCluster = b
		case "keyValueArgs":
			c.keyValue = b
		case "options":
			c.noOptions = m.str() == "none"
		case "responseFiles":
			c.responsePrefix = m.str()
		case "optionalValue":
			c.optionalValue = m
		case "arity":
			c.arity = m
		case "chdir":
			c.chdir = m
		}
		return true
	})
}

// setArity decides how many words an option takes.
func (c *conventions) setArity(o *option) {
	switch o.typ {
	case "boolean":
		o.arity = 0
	case "string", "integer", "number", "file", "directory", "url", "enum", "array":
		o.arity = 1
	default:
		o.arity = arityUnknown
	}
	if c.optionalValue.ok() && listHas(c.optionalValue, o.flags) {
		o.arity, o.optional = 0, true
	}
	if !c.arity.ok() {
		return
	}
	for _, f := range o.flags {
		if v := c.arity.get(f); v.ok() {
			o.arity, o.optional = readArity(v), false
		}
	}
}

func readArity(v val) int {
	if n, ok := v.integer(); ok && n >= 0 && n <= 64 {
		return n
	}
	switch v.str() {
	case "rest":
		return arityRest
	case "terminator":
		return arityTerminator
	}
	return arityUnknown
}

// listHas reports whether an array of strings names one of the spellings.
func listHas(list val, spellings []string) bool {
	found := false
	list.items(func(_ int, item val) {
		if found || !item.is(KindString) {
			return
		}
		s := item.str()
		if slices.Contains(spellings, s) {
			found = true
			return
		}
	})
	return found
}

// endsWords reports whether words[i] ends the words of an option such as -exec.
// Without stated terminators these are find's: ";" and "{} +".
func (c *conventions) endsWords(words []string, from, i int) bool {
	if len(c.terminators) > 0 {
		return slices.ContainsFunc(c.terminators, func(t string) bool { return words[i] == t && (t != "+" || i > from && words[i-1] == "{}") })
	}
	return words[i] == ";" || words[i] == "+" && i > from && words[i-1] == "{}"
}
