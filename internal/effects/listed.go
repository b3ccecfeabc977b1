package effects

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// listed are the words that a command reads from others that only print names of files:
// `grep -rl x src | sort | xargs sed -i …`. It is nil if anything else may flow in.
func (l *links) listed(i int) []string {
	if l.script.Commands[i].Mixed {
		return nil
	}
	var out []string
	for _, f := range l.script.Flows {
		if f.To != i || f.Kind != shell.FlowStdin {
			continue
		}
		steps := l.steps(f.From)
		if f.From >= i || len(steps) != 1 || l.script.Commands[f.From].CwdUnknown {
			return nil
		}
		names := l.c.printsNames(steps[0])
		if names == nil && keepsLines(steps[0]) {
			names = l.listed(f.From)
		}
		if names == nil {
			return nil
		}
		out = append(out, names...)
	}
	return out
}

// tracked reports that all that flows into a command are names of files that git tracks.
func (l *links) tracked(i int) bool {
	found := false
	if l.script.Commands[i].Mixed {
		return false
	}
	for _, f := range l.script.Flows {
		if f.To != i || f.Kind != shell.FlowStdin {
			continue
		}
		steps := l.steps(f.From)
		if f.From >= i || len(steps) != 1 || !printsTracked(steps[0]) && !(keepsLines(steps[0]) && l.tracked(f.From)) {
			return false
		}
		found = true
	}
	return found
}

// printsTracked reports a listing of what git tracks: not of what it does not, among which may be
// a directory with a repository of its own.
func printsTracked(s *Step) bool {
	return s.Call.Tool == "git" && len(s.Call.Path) == 1 && (s.Call.Path[0] == "diff" || s.Call.Path[0] == "ls-files") &&
		usesOnlyFlags(s, "-z", "-c", "--cached", "-m", "--modified", "-d", "--deleted", "--deduplicate", "--name-only", "--staged", "--diff-filter")
}

// namedWords appends a command one word of which is what a search prints, and nothing
// else: `sed -i … $(grep -rl x src)`. The names stand for that word, unless the command
// would take a name for a program or a text.
func (l *links) namedWords(sh *Step, i int, via []string) (done bool, err error) {
	cmd := l.script.Commands[i]
	at := cmd.Printed
	if cmd.Kind != shell.External || at < 1 || IsShell(filepath.Base(cmd.Argv[0])) || hasHole(cmd.Argv[:at]) || hasHole(cmd.Argv[at+1:]) {
		return false, nil
	}
	switch filepath.Base(cmd.Argv[0]) {
	case "sed", "awk", "gawk", "mawk", "jq", "yq", "perl":
		// The first word of theirs that is no option is a program.
		if !slices.ContainsFunc(cmd.Argv[1:at], func(w string) bool { return w != "" && w[0] != '-' }) {
			return false, nil
		}
	}
	from := -1
	for _, f := range l.script.Flows {
		if f.To != i || f.Kind == shell.FlowStdin {
			continue
		}
		if f.Kind != shell.FlowWord || from >= 0 || f.From >= i {
			return false, nil
		}
		from = f.From
	}
	if from < 0 || l.script.Commands[from].CwdUnknown {
		return false, nil
	}
	steps := l.steps(from)
	if len(steps) != 1 {
		return false, nil
	}
	names := l.c.printsNames(steps[0])
	if names == nil && keepsLines(steps[0]) {
		names = l.listed(from)
	}
	if names == nil {
		return false, nil
	}
	cmd.Argv = slices.Concat(cmd.Argv[:at], names, cmd.Argv[at+1:])
	c := l.c
	n, edges, files, tracked := len(c.steps), len(c.edges), len(c.fileEdges), c.tracked
	c.tracked = printsTracked(steps[0]) || keepsLines(steps[0]) && l.tracked(from)
	err = c.command(sh, &cmd, via, l.fed(i), nil)
	if c.tracked = tracked; err != nil {
		return false, err
	}
	for _, s := range c.steps[n:] {
		if slices.ContainsFunc(s.Call.Nested, takesName) {
			c.steps, c.edges, c.fileEdges = c.steps[:n], c.edges[:edges], c.fileEdges[:files]
			return false, nil
		}
	}
	return true, nil
}

// everything adds to what a command starts with the words of a whole search, of a home
// or of the system, the place that was searched: `find ~ -type f | xargs rm`.
func (l *links) everything(i int) {
	argv := l.script.Commands[i].Argv
	if len(argv) == 0 || !reader(filepath.Base(argv[0])) {
		return
	}
	for _, f := range l.script.Flows {
		steps := l.steps(f.From)
		if f.To != i || f.Kind != shell.FlowStdin || f.From >= i || len(steps) != 1 || steps[0].Call.Tool != "find" {
			continue
		}
		starts, names, ok := sieve(steps[0].Argv)
		if ok && names != nil {
			continue
		}
		for _, s := range l.c.steps[l.ranges[i].from:l.ranges[i].to] {
			var access atip.Access
			for _, r := range s.Call.Resources {
				if r.Kind == "path" && r.Class == atip.ClassUnknown {
					access |= r.Access & (atip.AccessWrite | atip.AccessDelete)
				}
			}
			for _, start := range starts {
				r := atip.Resource{Kind: "path", Value: start, Access: access, Recursive: true, Why: "searched"}
				if l.c.place(l.c.site.World, &r, steps[0].Cwd); access != 0 && r.Class == atip.ClassRoot && !subpath.Within(r.Abs, l.c.site.Workspace) {
					s.Call.Resources = append(s.Call.Resources, r)
				}
			}
		}
	}
}

// namesFor is what listed says of a command that takes its words from its input; for
// others nobody has to look.
func (l *links) namesFor(i int) []string {
	argv := l.script.Commands[i].Argv
	if len(argv) == 0 || !slices.ContainsFunc(argv, func(w string) bool { return reader(filepath.Base(w)) }) {
		return nil
	}
	return l.listed(i)
}

// keepsLines reports a filter whose lines are lines of its input.
func keepsLines(s *Step) bool {
	if len(s.Call.UnknownOptions) > 0 || hasHole(s.Argv) {
		return false
	}
	for _, r := range s.Call.Resources {
		if r.Why != "redirection" {
			return false // it reads a file, not its input
		}
	}
	options, ok := lineOptions(s.Call.Tool)
	return ok && usesOnly(s, options) && (s.Call.Tool != "grep" || len(s.Call.Positionals) <= 1)
}

// lineOptions are the options with which a filter still prints lines of its input, and no more:
// `tac -s /` takes them apart, `head -v` adds a line.
func lineOptions(tool string) (names []string, ok bool) {
	switch tool {
	case "sort":
		return []string{"ignore-leading-blanks", "dictionary-order", "ignore-case", "general-numeric-sort", "ignore-nonprinting", "month-sort", "human-numeric-sort",
			"numeric-sort", "random-sort", "reverse", "sort", "version-sort", "key", "stable", "buffer-size", "field-separator", "parallel", "unique", "zero-terminated"}, true
	case "head", "tail":
		return []string{"lines", "number", "silent", "zero-terminated"}, true
	case "uniq":
		return []string{"repeated", "skip-fields", "ignore-case", "skip-chars", "unique", "zero-terminated", "check-chars"}, true
	case "tac":
		return nil, true
	case "grep":
		return []string{"extended-regexp", "fixed-strings", "basic-regexp", "perl-regexp", "regexp", "ignore-case", "no-ignore-case", "word-regexp", "line-regexp", "null-data",
			"no-messages", "invert-match", "max-count", "line-buffered", "no-filename", "text", "y"}, true
	}
	return nil, false
}

// matchOptions are the options with which grep -l and rg -l still print names and nothing else.
var matchOptions = []string{"files-with-matches", "files-without-match", "files", "recursive", "dereference-recursive", "include", "exclude", "exclude-dir", "directories",
	"extended-regexp", "fixed-strings", "basic-regexp", "perl-regexp", "pcre2", "regexp", "ignore-case", "no-ignore-case", "smart-case", "case-sensitive", "word-regexp",
	"line-regexp", "invert-match", "max-count", "no-messages", "text", "I", "y", "null", "glob", "iglob", "type", "type-not", "hidden", "no-hidden", "no-ignore", "no-ignore-vcs",
	"unrestricted", "uu", "uuu", "max-depth", "max-filesize", "multiline", "multiline-dotall", "sort", "sortr", "threads", "no-config", "follow", "line-buffered", "no-line-number",
	"no-heading", "with-filename"}

// usesOnly reports that every option of a step is one of these.
func usesOnly(s *Step, names []string) bool {
	return !slices.ContainsFunc(s.Call.Options, func(o atip.OptionUse) bool { return !slices.Contains(names, o.Name) })
}

// printsNames are words that stand for the names a step prints, nil if it may print
// anything else, or names that a word-splitting reader could take for an option.
func (c *collector) printsNames(s *Step) []string {
	if s.Confidence != policy.Exact || s.Call.Exactness != atip.Exact || len(s.Call.UnknownOptions) > 0 || hasHole(s.Argv) {
		return nil
	}
	var roots, names []string
	switch s.Call.Tool {
	case "grep", "rg":
		if !usesOnly(s, matchOptions) || !usesOption(s, "files-with-matches", "files-without-match", "files") {
			return nil
		}
		roots = positionals(s, s.Call.Tool == "rg" && usesOption(s, "files") || usesOption(s, "regexp", "file"))
	case "git":
		switch {
		case len(s.Call.Path) == 1 && s.Call.Path[0] == "ls-files" && !slices.ContainsFunc(s.Argv, func(w string) bool {
			return w == "-s" || w == "--stage" || w == "-t" || w == "-v" || w == "-f" || w == "-u" || strings.HasPrefix(w, "--format") || w == "--debug" || w == "--eol" || w == "--unmerged"
		}):
		case len(s.Call.Path) == 1 && s.Call.Path[0] == "diff" && slices.Contains(s.Argv, "--name-only"):
		case printsHashes(s):
			return []string{"0"}
		default:
			return nil
		}
	case "ls":
		return c.listsNames(s)
	case "gh", "seq":
		if s.Call.Tool == "seq" && shell.PrintsNumber(s.Argv) || shell.PrintsNumbers(s.Argv) {
			return []string{"0"}
		}
		return nil
	case "find":
		var ok bool
		if roots, names, ok = sieve(s.Argv); !ok || names == nil {
			names = []string{SomeName}
		}
		if !ok || slices.ContainsFunc(s.Argv, func(w string) bool {
			return strings.HasPrefix(w, "-printf") || strings.HasPrefix(w, "-fp") || strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "-ok") || w == "-ls" || w == "-fls" || w == "-files0-from"
		}) {
			return nil
		}
	default:
		return nil
	}
	if names == nil {
		names = []string{SomeName}
	}
	cwd := subpath.Join(s.Cwd, s.Call.Chdir)
	if len(roots) == 0 {
		// Names without a directory in front.
		if c.dashes(cwd) || c.spaced(cwd) {
			return nil
		}
		return names
	}
	var out []string
	for _, root := range roots {
		if root == "" || root[0] == '-' || c.spaced(subpath.Join(cwd, root)) {
			return nil
		}
		if info, err := os.Lstat(subpath.Join(cwd, root)); err == nil && info.Mode().IsRegular() {
			root = filepath.Dir(root)
		}
		for _, name := range names {
			out = append(out, foundAs(root, name))
		}
	}
	return append(out, c.foundCredentials(s)...)
}

// printsHashes reports a call of git that prints hashes of commits, or dates, and nothing else. The
// other plain words that git prints are names of branches, which may be those of files.
func printsHashes(s *Step) bool {
	if len(s.Call.Path) != 1 || !shell.PrintsNumber(s.Argv) {
		return false
	}
	switch s.Call.Path[0] {
	case "log", "rev-list", "merge-base":
		return true
	case "rev-parse":
		return !slices.Contains(s.Argv, "--abbrev-ref")
	}
	return false
}

// listsNames are words that stand for the names that ls prints, nil if it may print anything else.
func (c *collector) listsNames(s *Step) []string {
	if !usesOnlyFlags(s, "-1", "-A", "-t", "-r", "-S", "-d", "-X", "-v", "-U", "--almost-all", "--reverse") {
		return nil
	}
	cwd := subpath.Join(s.Cwd, s.Call.Chdir)
	if slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool { return !subpath.Within(r.Abs, c.site.Workspace) }) || !subpath.Within(cwd, c.site.Workspace) {
		return nil
	}
	if len(s.Call.Positionals) == 0 {
		if c.dashes(cwd) || c.spaced(cwd) {
			return nil
		}
		return []string{SomeName}
	}
	var out []string
	for _, p := range s.Call.Positionals {
		root, last := p.Value, filepath.Base(p.Value)
		if root == "" || strings.ContainsAny(root[:1], "-*?[") || strings.Contains(root, "[") {
			return nil
		}
		if at := strings.IndexAny(root, "*?"); at >= 0 {
			if dir := subpath.Join(cwd, filepath.Dir(root[:at]+"x")); c.dashes(dir) || c.spaced(dir) {
				return nil
			}
			out = append(out, strings.NewReplacer("*", SomeName, "?", SomeName).Replace(root))
			if filepath.Ext(last) != "" {
				continue
			}
		} else if info, err := os.Lstat(subpath.Join(cwd, root)); err == nil && info.Mode().IsRegular() {
			out = append(out, root)
			continue
		} else if dir := subpath.Join(cwd, root); c.dashes(dir) || c.spaced(dir) {
			return nil
		}
		out = append(out, SomeName)
	}
	return out
}

func usesOnlyFlags(s *Step, flags ...string) bool {
	return !slices.ContainsFunc(s.Call.Options, func(o atip.OptionUse) bool { return !slices.Contains(flags, o.Flag) })
}

// positionals are the words of a search that name where it looks.
func positionals(s *Step, all bool) []string {
	var out []string
	for i, p := range s.Call.Positionals {
		if all || i > 0 {
			out = append(out, p.Value)
		}
	}
	return out
}

// maxSpaced bounds how many names are looked at: such a command walks the tree itself.
const maxSpaced = 4096

// spaced reports a tree with a name that a reader which splits at white space could
// take for an option, or too large to tell.
func (c *collector) spaced(root string) bool {
	for path := range c.writers {
		if splits(filepath.Base(path)) {
			return true
		}
	}
	seen := 0
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		seen++
		switch {
		case err != nil:
			return nil
		case seen > maxSpaced, splits(d.Name()):
			return fs.ErrInvalid
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		}
		return nil
	})
	return err != nil
}

// splits reports a name of which one part could be an option.
func splits(name string) bool {
	for i := 1; i < len(name); i++ {
		if name[i] == '-' && strings.IndexByte(" \t\n\r\v\f", name[i-1]) >= 0 {
			return true
		}
	}
	return strings.ContainsAny(name, "'\"\\")
}

// findTest reports the words of find that only choose among what is found, and how many words
// each takes.
func findTest(word string) (words int, ok bool) {
	switch word {
	case "-daystart", "-depth", "-d", "-follow", "-nowarn", "-warn", "-mount", "-noleaf", "-xdev", "-ignore_readdir_race", "-noignore_readdir_race",
		"-empty", "-false", "-nouser", "-nogroup", "-readable", "-writable", "-executable", "-true", "-print", "-print0", "-ls", "-prune", "-quit",
		"-a", "-and", "(", ")":
		return 0, true
	case "-amin", "-anewer", "-atime", "-cmin", "-cnewer", "-context", "-ctime", "-fstype", "-gid", "-group", "-ilname", "-inum", "-ipath",
		"-iregex", "-iwholename", "-links", "-lname", "-maxdepth", "-mindepth", "-mmin", "-mtime", "-newer", "-newermt", "-newerct", "-newerat",
		"-path", "-perm", "-printf", "-regex", "-regextype", "-samefile", "-size", "-type", "-uid", "-used", "-user", "-wholename", "-xtype",
		"-fprint", "-fprint0", "-fls":
		return 1, true
	case "-fprintf":
		return 2, true
	}
	return 0, false
}

// sieve reads the expression of find as far as it says what everything that is found
// is called: names stand for that, nil if it may be called anything. Where find would
// also hand over the starting point itself, nothing is said.
func sieve(argv []string) (starts, names []string, ok bool) {
	i := 1
	for ; i < len(argv) && (argv[i] == "-H" || argv[i] == "-L" || argv[i] == "-P"); i++ {
	}
	for ; i < len(argv) && !strings.HasPrefix(argv[i], "-") && argv[i] != "(" && argv[i] != "!"; i++ {
		starts = append(starts, argv[i])
	}
	if len(starts) == 0 {
		starts = []string{"."}
	}
	named := false // in this part, between two -o
	for ; i < len(argv); i++ {
		w := argv[i]
		words, test := findTest(w)
		not := w == "!" || w == "-not"
		if not && i+1 < len(argv) {
			i++
			w = argv[i]
			// The opposite of a group, or of an opposite, may be anything.
			if words, test = findTest(w); w == "(" {
				return starts, nil, true
			}
		}
		switch {
		case w == ",":
			return starts, nil, false
		case test:
			i += words
		case w == "-o" || w == "-or":
			if !named {
				return starts, nil, true
			}
			named = false
		case w == "-name" || w == "-iname":
			if i++; not || i == len(argv) {
				continue
			}
			pattern := argv[i]
			one := strings.NewReplacer("*", SomeName, "?", SomeName).Replace(pattern)
			if strings.ContainsAny(pattern, "[\\/\x00") || one == "" {
				return starts, nil, true
			}
			for _, start := range starts {
				if hit, err := filepath.Match(strings.ToLower(pattern), strings.ToLower(filepath.Base(start))); hit || err != nil {
					return starts, nil, true
				}
			}
			if w == "-iname" && !strings.Contains(one, SomeName) {
				one += SomeName // not this name alone
			}
			named, names = true, append(names, one, SomeName+"/"+one)
		case strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "-ok"):
			if !named {
				return starts, nil, true
			}
			for i++; i < len(argv) && argv[i] != ";" && (argv[i] != "+" || argv[i-1] != "{}"); i++ {
			}
		case w == "-delete":
			if !named {
				return starts, nil, true
			}
		default:
			return starts, nil, true
		}
	}
	if !named {
		return starts, nil, true
	}
	return starts, names, true
}

// foundAs is what find calls a name below one of its starting points.
func foundAs(start, name string) string { return strings.TrimSuffix(start, "/") + "/" + name }

// siftedDeletes lets find -delete take what is called as its tests say, and not the starting
// point with all that lies below.
func (c *collector) siftedDeletes(s *Step) {
	if s.Call.Tool != "find" || hasHole(s.Argv) || !usesOption(s, "delete") {
		return
	}
	starts, names, ok := sieve(s.Argv)
	if !ok || names == nil {
		return
	}
	var found []atip.Resource
	for i := range s.Call.Resources {
		r := &s.Call.Resources[i]
		if r.Kind != "path" || r.Access&atip.AccessDelete == 0 || !slices.Contains(starts, r.Value) {
			continue
		}
		for _, name := range names {
			found = append(found, atip.Resource{Kind: "path", Value: foundAs(r.Value, name), Access: atip.AccessDelete, Why: r.Why})
		}
		r.Access = r.Access&^atip.AccessDelete | atip.AccessRead
	}
	s.Call.Resources = append(s.Call.Resources, found...)
}

// sifted puts what find hands over by name into the command that it starts: neither
// the starting point, for which the metadata takes it, nor anything called otherwise.
func (c *collector) sifted(s *Step, argv []string) []string {
	if s.Call.Tool != "find" || s.Confidence != policy.Exact || hasHole(s.Argv) {
		return argv
	}
	starts, names, ok := sieve(s.Argv)
	if !ok || names == nil {
		return argv
	}
	for i, w := range s.Argv {
		if !strings.HasPrefix(w, "-exec") && !strings.HasPrefix(w, "-ok") || len(s.Argv) < i+1+len(argv) {
			continue
		}
		raw, out, same := s.Argv[i+1:i+1+len(argv)], []string(nil), true
		for k, word := range raw {
			switch {
			case word == "{}" && k > 0:
				for _, start := range starts {
					for _, name := range names {
						out = append(out, foundAs(start, name))
					}
				}
			case strings.Contains(word, "{}"):
				return argv
			default:
				same = same && word == argv[k]
				out = append(out, word)
			}
		}
		if same {
			return out
		}
	}
	return argv
}
