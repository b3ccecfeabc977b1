package policy

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/ip"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/internal/wildcard"
)

// A condition is judged in one of two moods. In a rule that restricts, what may be
// true counts and one matching path or host is enough. In a rule that loosens, and
// in an exception to one that restricts, everything must be proven and every path
// and host must match.

// static judges the conditions that do not depend on what is granted.
func (f *facts) static(w *when, proven bool) truth {
	t := isYes
	if w.tool != nil {
		if t = min(t, f.toolIs(w.tool, proven)); t == isNo {
			return t
		}
	}
	if w.toolNotIn != nil {
		t = min(t, f.toolOutside(w.toolNotIn))
	}
	if w.command != nil {
		t = min(t, f.commandIs(w.command, proven))
	}
	if t == isNo {
		return t
	}
	for i := range w.option {
		t = min(t, f.optionIs(&w.option[i], proven))
	}
	if !proven {
		if w.path != nil {
			t = min(t, f.somePath(w.path))
		}
		if w.host != nil {
			t = min(t, f.someHost(w.host))
		}
	}
	return min(t, f.run(w, proven))
}

// run judges the conditions about the executable and the run.
func (f *facts) run(w *when, proven bool) truth {
	st := f.step
	switch {
	case w.level != nil && !levelIs(w.level, st.Trust.Level, proven),
		w.reason != nil && !anyGlob(w.reason, st.Trust.Reason),
		w.rankBelow != nil && st.Call.Provenance.Rank >= *w.rankBelow,
		w.rankAtLeast != nil && st.Call.Provenance.Rank < *w.rankAtLeast,
		w.metadata != nil && !slices.Contains(w.metadata, f.channel),
		w.confidence != nil && !f.confidenceIs(w.confidence, proven),
		w.unknownOptions != nil && *w.unknownOptions != (len(st.Call.UnknownOptions) > 0),
		w.ci != nil && *w.ci != f.req.CI,
		w.delegated != nil && *w.delegated != (f.req.Delegated || len(f.req.Chain) > 0),
		w.agent != nil && !anyGlob(w.agent, f.req.Agent),
		w.code != nil && !slices.Contains(w.code, st.RunsCode),
		w.known != nil && *w.known != f.known,
		w.confined != nil && *w.confined != f.req.Enforce.Full(),
		w.trackedClean != nil && *w.trackedClean != st.TrackedClean,
		w.declared != nil && *w.declared != st.Declared,
		w.undo != nil && !undoIs(*w.undo, st.Undo, proven):
		return isNo
	}
	if w.cwd != nil {
		cwd := st.Cwd
		if cwd == "" {
			cwd = f.req.Cwd
		}
		if slices.ContainsFunc(w.cwd, func(g string) bool { return pathGlob(g, cwd) }) {
			return isYes
		}
		return isNo
	}
	return isYes
}

// A lower level or confidence must never satisfy a loosening condition better, nor
// escape a restricting one; so the lists are read as bounds.
func levelIs(levels []string, level string, proven bool) bool {
	low, high := 4, 0
	for _, l := range levels {
		low, high = min(low, levelRank(l)), max(high, levelRank(l))
	}
	if proven {
		return levelRank(level) >= low
	}
	return levelRank(level) <= high
}

func (f *facts) confidenceIs(list []Confidence, proven bool) bool {
	low, high := Exact, Opaque
	for _, c := range list {
		low, high = min(low, c), max(high, c)
	}
	if proven {
		return f.confidence >= low
	}
	return f.confidence <= high
}

func (f *facts) toolIs(tools []string, proven bool) truth {
	st := f.step
	for _, t := range tools {
		switch {
		case strings.HasPrefix(t, "sha256:"):
			if st.File.Digest != "" && st.File.Digest == t[7:] {
				return isYes
			}
		case t[0] == '/':
			if st.File.Canonical == t || !proven && (st.File.Place == t || slices.Contains(st.File.Names, t)) {
				return isYes
			}
		case proven:
			// A name speaks for a file only where the workspace cannot choose it.
			if !st.File.InWorkspace && wildcard.Match(t, st.Call.Tool) {
				return isYes
			}
		default:
			if f.anyName(t) {
				return isYes
			}
		}
	}
	return isNo
}

// anyName tries every name the executable could go by.
func (f *facts) anyName(t string) bool {
	st := f.step
	return wildcard.Match(t, st.Call.Tool) || wildcard.Match(t, baseName(st.Call.InvokedAs)) ||
		len(st.Call.Argv) > 0 && wildcard.Match(t, baseName(st.Call.Argv[0])) ||
		st.File.Canonical != "" && wildcard.Match(t, baseName(st.File.Canonical)) ||
		st.File.Place != "" && wildcard.Match(t, baseName(st.File.Place)) ||
		anyOf(t, st.File.Names) || anyOf(t, st.NestedTools)
}

func anyOf(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return wildcard.Match(pattern, baseName(n)) })
}

// toolOutside judges delegation.allowedTools: the tool, what wraps it and what is
// nested in it must all be listed. Wrappers that only start another program, we among
// them, and builtins of the shell without effects on files need not be.
func (f *facts) toolOutside(allowed []string) truth {
	st := f.step
	if !exemptTool(st.Call.Tool) && f.toolIs(allowed, true) != isYes {
		return isYes
	}
	for _, list := range [...][]string{st.Via, st.NestedTools} {
		for _, name := range list {
			if b := baseName(name); !exemptTool(b) && b != "atip-exec" && b != "atip-sh" && !anyGlob(allowed, b) {
				return isYes
			}
		}
	}
	return isNo
}

func exemptTool(name string) bool {
	switch name {
	case "env", "nice", "nohup", "timeout", "time", "stdbuf", "setsid", "ionice",
		":", "[", "break", "cd", "continue", "echo", "exit", "export", "false", "let", "local",
		"printf", "pwd", "read", "return", "set", "shift", "test", "true", "unset", "wait":
		return true
	}
	return false
}

func (f *facts) commandIs(patterns [][]string, proven bool) truth {
	if f.paths == nil {
		if proven {
			return isNo
		}
		if slices.ContainsFunc(patterns, func(p []string) bool { return subsequence(p, f.step.Call.Argv) }) {
			return isYes
		}
		return isNo
	}
	for _, path := range f.paths {
		hit := false
		for _, p := range patterns {
			hit = hit || pathHas(path, p)
		}
		if hit != proven {
			return truthOf(!proven)
		}
	}
	return truthOf(proven)
}

// pathHas reports whether the command path begins with these words; no words mean
// the tool itself without a command.
func pathHas(path, words []string) bool {
	if len(words) == 0 {
		return len(path) == 0
	}
	if len(path) < len(words) {
		return false
	}
	for i, w := range words {
		if path[i] != w {
			return false
		}
	}
	return true
}

// subsequence finds the words in an argv that no metadata explains: options and
// their values may stand between them.
func subsequence(words, argv []string) bool {
	i := 0
	for j := 1; j < len(argv) && i < len(words); j++ {
		if argv[j] == words[i] {
			i++
		}
	}
	return i == len(words)
}

// optionIs judges an option. Where it restricts, one use that matches is enough. Where it
// loosens every use must match and none may be taken back, since which of several wins is the
// tool's secret: "--context dev --context prod".
func (f *facts) optionIs(o *optionCond, proven bool) truth {
	c := &f.step.Call
	t, every := isNo, !f.unresolved()
	for i := range c.Options {
		u := &c.Options[i]
		if u.Name != o.name && !spelled(u, o.name) {
			every = every && !opposes(u, o.name)
			continue
		}
		match := o.any || wildcard.Match(o.value, u.Value)
		every = every && match && !u.Maybe && !(o.any && atip.Denial(u.Value))
		switch {
		case match && !u.Maybe:
			t = isYes
		case match:
			t = max(t, isMaybe)
		}
	}
	if proven {
		return truthOf(t == isYes && every)
	}
	for _, list := range [...][]string{c.UnknownOptions, unresolvedWords(f)} {
		for _, w := range list {
			if name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "="); w != name && name == o.name {
				t = max(t, isMaybe)
			}
		}
	}
	return t
}

// opposes reports a use of --no-NAME, or of --x where the name is no-x.
func opposes(u *atip.OptionUse, name string) bool {
	flag := strings.TrimLeft(u.Flag, "-")
	return flag == "no-"+name || "no-"+flag == name
}

// spelled reports whether a name without dashes is one of the spellings of an option.
func spelled(u *atip.OptionUse, name string) bool {
	return strings.TrimLeft(u.Flag, "-") == name ||
		slices.ContainsFunc(u.Spellings, func(flag string) bool { return strings.TrimLeft(flag, "-") == name })
}

func unresolvedWords(f *facts) []string {
	if f.unresolved() {
		return f.step.Call.Argv
	}
	return nil
}

// holds judges a whole exception: in proven mood everything it says must be so,
// and a path or host it speaks of must be there.
func (f *facts) holds(w *when, v *values, proven bool) truth {
	t := min(f.static(w, proven), effectsAre(w, v, proven))
	if !proven || t == isNo {
		return t
	}
	if w.path != nil {
		p := *w.path
		p.named = true
		if p.access == 0 {
			p.access = atip.AccessRead | atip.AccessWrite | atip.AccessDelete | atip.AccessExec | atip.AccessSecret
		}
		if !f.everyPath(&p, v) {
			return isNo
		}
	}
	if w.host != nil && !f.everyHost(w.host) {
		return isNo
	}
	return t
}

// effectsAre judges the effect conditions under the given values.
func effectsAre(w *when, v *values, proven bool) truth {
	t := isYes
	for _, c := range w.effects {
		t = min(t, effectIs(c, v, proven))
		if t == isNo {
			return t
		}
	}
	if w.anyEffect != 0 {
		some := isNo
		for e := range v {
			effect := atip.Effect(e)
			if !w.anyEffect.Has(effect) {
				continue
			}
			switch {
			case v[e] == atip.Yes:
				some = isYes
			case v[e] == atip.Unknown && effect != atip.Reversible:
				some = max(some, isMaybe)
			}
		}
		t = min(t, some)
	}
	return t
}

// effectIs judges one effect. Where a dangerous value loosens it is an upper
// bound, so that a call with less danger is covered as well; unknown never is.
func effectIs(c effectCond, v *values, proven bool) truth {
	is := v[c.effect]
	if is == atip.Unknown {
		if proven {
			return isNo
		}
		return isMaybe
	}
	if c.dangerous() {
		return truthOf(is == atip.Yes || proven)
	}
	return truthOf(is == atip.No)
}

// somePath judges a path condition of a restrictive rule.
func (f *facts) somePath(p *pathCond) truth {
	t := isNo
	for i := range f.step.Call.Resources {
		r := &f.step.Call.Resources[i]
		if r.Kind != "path" || p.access != 0 && r.Access&p.access == 0 || p.recursive && !r.Recursive {
			continue
		}
		t = max(t, f.pathIs(p, i, r))
	}
	// Without confinement, an unknown program may touch any path.
	if t == isNo && f.unresolved() && !f.req.Enforce.Files {
		t = isMaybe
	}
	return t
}

// pathIs judges class, pattern and place of one path, leaving access aside.
func (f *facts) pathIs(p *pathCond, i int, r *atip.Resource) truth {
	t := isYes
	if p.class != 0 && !p.class.has(f.classes[i]) {
		if f.classes[i] != atip.ClassUnknown {
			return isNo
		}
		t = isMaybe
	}
	if len(p.glob) > 0 {
		hit := false
		for _, g := range p.glob {
			hit = hit || r.Abs != "" && pathGlob(g, r.Abs)
		}
		switch {
		case hit:
		case r.Abs == "", r.Recursive && globBelow(p.glob, r.Abs):
			t = isMaybe
		default:
			return isNo
		}
	}
	in := subpath.Within(r.Abs, f.req.Workspace)
	if p.in != "" && !in || p.notIn != "" && in {
		return isNo
	}
	return t
}

// LetsWrite reports whether an allow rule of a policy lets some call write at an absolute path outside
// of the workspace, or change a directory above it. Built-in rules let none.
func (s *Set) LetsWrite(path string) bool {
	return slices.ContainsFunc(s.allow, func(r *rule) bool {
		p := r.when.path
		if r.layer == LayerBuiltin || p == nil || p.in != "" || p.access != 0 && p.access&aModify == 0 || p.class != 0 && !p.class.has(atip.ClassOutside) {
			return false
		}
		for at := path; ; at = filepath.Dir(at) {
			if len(p.glob) == 0 || slices.ContainsFunc(p.glob, func(g string) bool { return pathGlob(g, at) }) {
				return true
			}
			if at == filepath.Dir(at) {
				return false
			}
		}
	})
}

// globBelow reports whether a pattern could match something beneath dir: an act on
// the whole directory touches it.
func globBelow(globs []string, dir string) bool {
	for _, g := range globs {
		fixed, _, _ := strings.Cut(g, "*")
		fixed, _, _ = strings.Cut(fixed, "?")
		if subpath.Within(fixed, dir) || subpath.Within(dir, strings.TrimSuffix(fixed, "/")) {
			return true
		}
	}
	return false
}

func (f *facts) someHost(list []hostPattern) truth {
	for _, u := range f.hosts {
		for i := range list {
			if list[i].match(u) {
				return isYes
			}
		}
	}
	// A tool that names no host talks to its own service, if it is one that says so.
	if len(f.hosts) == 0 && f.base[atip.Network] != atip.No && f.service() {
		for i := range list {
			if list[i].isKind && list[i].kind == HostService {
				return isYes
			}
		}
	}
	return isNo
}

func (f *facts) service() bool { return f.step.Call.Provenance.Rank >= atip.Org }

// scope judges paths and hosts of a loosening condition: each path that is
// written, deleted or executed, and each host, must be covered.
func (f *facts) scope(w *when, v *values) bool {
	return f.everyPath(w.path, v) && (v[atip.Network] == atip.No || f.everyHost(w.host))
}

func (f *facts) everyPath(p *pathCond, v *values) bool {
	dflt := pathCond{class: scratchClasses}
	care := atip.AccessWrite | atip.AccessDelete | atip.AccessExec
	if p == nil {
		p = &dflt
	} else {
		care |= p.access
	}
	touch := care
	// Where an effect is excluded, the words of the call touch nothing that way.
	if v[atip.Write] == atip.No {
		care &^= atip.AccessWrite
	}
	if v[atip.Delete] == atip.No {
		care &^= atip.AccessDelete
	}
	named := false
	for i := range f.step.Call.Resources {
		r := &f.step.Call.Resources[i]
		if r.Kind != "path" {
			continue
		}
		ok := f.pathIs(p, i, r) == isYes && (!p.recursive || r.Recursive)
		if !ok && r.Access&care != 0 {
			return false
		}
		named = named || ok && r.Access&touch != 0
	}
	return named || !p.named
}

func (f *facts) everyHost(list []hostPattern) bool {
	if len(f.hosts) == 0 {
		if f.service() {
			return generic(list)
		}
		// Whom a tool of low rank talks to is anyone's guess.
		return slices.ContainsFunc(list, func(h hostPattern) bool { return h.isKind && h.kind == HostPublic && h.port == 0 })
	}
	for _, u := range f.hosts {
		ok := list == nil && u.Kind == HostService
		for i := range list {
			ok = ok || list[i].match(u)
		}
		// network.allow extends what a rule covers when it names no particular host.
		if !ok && generic(list) && u.Kind != HostMetadata {
			for i := range f.set.listed {
				ok = ok || f.set.listed[i].listed(u)
			}
		}
		if !ok {
			return false
		}
	}
	return true
}

// generic reports whether a host list names kinds that include the tool's own
// service, or nothing at all.
func generic(list []hostPattern) bool {
	if list == nil {
		return true
	}
	for i := range list {
		if list[i].isKind && list[i].kind == HostService {
			return true
		}
	}
	return false
}

// pathGlob matches component by component: * and ? stay within one, ** stands for
// any number of components, none included.
func pathGlob(p, s string) bool {
	pi, si, star, mark := 0, 0, -1, 0
	for si <= len(s) {
		if pi <= len(p) {
			pc, pn := component(p, pi)
			if pc == "**" {
				pi = pn
				star, mark = pi, si
				continue
			}
			if sc, sn := component(s, si); wildcard.Match(pc, sc) {
				pi, si = pn, sn
				continue
			}
		}
		if star < 0 {
			return false
		}
		_, mark = component(s, mark)
		pi, si = star, mark
	}
	for pi <= len(p) {
		c, next := component(p, pi)
		if c != "**" {
			return false
		}
		pi = next
	}
	return true
}

// component returns the path component at i and where the next one starts, which
// is len(s)+1 after the last.
func component(s string, i int) (string, int) {
	for j := i; j < len(s); j++ {
		if s[j] == '/' {
			return s[i:j], j + 1
		}
	}
	return s[i:], len(s) + 1
}

func anyGlob(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return wildcard.Match(p, s) })
}

func baseName(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

// Matches reports whether the rule, one of paths.secret or paths.protected, names this
// absolute path or a directory above.
func (r PathRule) Matches(abs, workspace string) bool { return matchPath(r.Path, abs, workspace) }

// matchPath matches a pattern that is absolute, relative to the workspace, or a bare name
// anywhere.
func matchPath(pattern, abs, workspace string) bool {
	switch {
	case abs == "":
		return false
	case pattern[0] == '/':
		return pathGlob(pattern, abs) || pathGlob(pattern+"/**", abs)
	case strings.HasPrefix(pattern, "~/"):
		return pathGlob("**/"+pattern[2:], abs)
	case strings.IndexByte(pattern, '/') < 0:
		return pathGlob("**/"+pattern, abs) || pathGlob("**/"+pattern+"/**", abs)
	}
	return workspace != "" && (pathGlob(workspace+"/"+pattern, abs) || pathGlob(workspace+"/"+pattern+"/**", abs))
}

// HostUseOf classifies a host as it stands in a URL or an argument. Addresses are
// normalised first, in every spelling inet_aton takes (decimal, octal,
// hexadecimal, shortened) and unwrapped when IPv4 travels inside IPv6.
func HostUseOf(host string, port int) HostUse {
	h := strings.ToLower(strings.TrimRight(strings.TrimLeft(host, "["), "]."))
	if a, ok := ip.Parse(h); ok {
		return HostUse{Host: a.String(), Port: port, Kind: addressKind(a)}
	}
	use := HostUse{Host: h, Port: port}
	switch {
	case h == "metadata.google.internal" || h == "metadata.goog" || h == "metadata":
		use.Kind = HostMetadata
	case h == "localhost" || strings.HasSuffix(h, ".localhost") || h == "ip6-localhost" || h == "localhost.localdomain":
		use.Kind = HostLoopback
	}
	return use
}

// hostPattern is one entry of a host list: a kind, a name, "*.suffix" or a CIDR,
// with or without a port.
type hostPattern struct {
	text   string
	kind   HostKind
	isKind bool
	name   string // exact, lower case
	suffix string // with the leading dot
	prefix ip.CIDR
	ranged bool
	port   int
}

func parseHostPattern(text string) (hostPattern, bool) {
	h := hostPattern{text: text}
	s := strings.ToLower(text)
	if s == "" {
		return h, false
	}
	if i := strings.LastIndexByte(s, ':'); i >= 0 && (strings.Count(s, ":") == 1 || s[0] == '[' && s[i-1] == ']') {
		port, err := strconv.ParseUint(s[i+1:], 10, 16)
		if err != nil || port == 0 {
			return h, false
		}
		h.port, s = int(port), s[:i]
	}
	for k := HostPublic; k <= HostMetadata; k++ {
		if s == k.String() {
			h.kind, h.isKind = k, true
			return h, true
		}
	}
	s = strings.Trim(s, "[]")
	switch {
	case strings.IndexByte(s, '/') >= 0:
		h.prefix, h.ranged = ip.ParseCIDR(s)
		return h, h.ranged
	case strings.HasPrefix(s, "*."):
		h.suffix = s[1:]
		return h, len(s) > 2 && validName(s[2:])
	default:
		if a, ok := ip.Parse(s); ok {
			h.name = a.String()
			return h, true
		}
		h.name = s
		return h, validName(s)
	}
}

func validName(s string) bool {
	if s == "" || len(s) > 253 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_') {
			return false
		}
	}
	return true
}

// match reports whether the pattern covers the use. A pattern without a port
// covers every port: for a rule that denies this is the strict reading; allow
// lists add their own port test.
func (h hostPattern) match(u HostUse) bool {
	if h.port != 0 && h.port != u.Port {
		return false
	}
	switch {
	case h.isKind:
		return u.Kind == h.kind
	case h.ranged:
		a, ok := ip.Parse(u.Host)
		return ok && h.prefix.Contains(a)
	case h.suffix != "":
		return strings.HasSuffix(u.Host, h.suffix) && len(u.Host) > len(h.suffix)
	}
	return u.Host == h.name
}

// listed is match for an allow list: a host alone means its port 443, and an
// unstated port of the use counts as 443 too.
func (h hostPattern) listed(u HostUse) bool {
	if h.isKind {
		return h.match(u)
	}
	h.port = cmp.Or(h.port, 443)
	u.Port = cmp.Or(u.Port, 443)
	return h.match(u) && u.Kind != HostMetadata
}

// addressKind says what connecting to an address means.
func addressKind(a ip.Addr) HostKind {
	if a.Metadata() {
		return HostMetadata
	}
	if a.Is4() {
		b := a[12:]
		switch {
		case b[0] == 127, b[0] == 0:
			return HostLoopback
		case b[0] == 10, b[0] == 172 && b[1]&0xf0 == 16, b[0] == 192 && b[1] == 168, b[0] == 169 && b[1] == 254,
			b[0] == 100 && b[1]&0xc0 == 64, b[0] >= 224:
			return HostPrivate // RFC 1918, link local, RFC 6598, multicast and reserved
		}
		return HostPublic
	}
	switch {
	case [15]byte(a[:15]) == [15]byte{} && a[15] <= 1:
		return HostLoopback // :: connects to this machine too
	case a[0]&0xfe == 0xfc, a[0] == 0xfe && a[1]&0x80 != 0, a[0] == 0xff:
		return HostPrivate // unique local, link and site local, multicast
	}
	return HostPublic
}
