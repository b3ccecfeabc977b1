package effects

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/codefile"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/shell"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// given looks at the words of tools that hand files over or take them in and whose
// metadata does not say which of their words are local files: naming a secret gives
// it out, naming a file that runs by itself replaces it. A word can only raise.
func (c *collector) given(s *step.Step) {
	if s.Call.Tool == "socat" && step.Bridges(s.Argv) {
		c.edge(c.index(s), c.index(s), policy.SocketShell)
	}
	if s.Call.Tool == "find" {
		// To list where the secrets of a home lie is to ask for them.
		if _, path := c.sought(s); path != "" {
			r := atip.Resource{Kind: "path", Value: path, Access: atip.AccessRead, Why: "-name"}
			if c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir)); !subpath.Within(r.Abs, c.site.Workspace) {
				s.Call.Resources = append(s.Call.Resources, r)
			}
		}
		for _, path := range c.foundCredentials(s) {
			if base := filepath.Base(path); slices.Contains(s.Argv, base) {
				r := atip.Resource{Kind: "path", Value: path, Access: atip.AccessRead, Why: "-name"}
				c.place(c.site.World, &r, s.Cwd)
				s.Call.Resources = append(s.Call.Resources, r)
			}
		}
	}
	switch s.Call.Tool {
	case "mv":
		if slices.Contains(s.Argv[1:], "/dev/null") {
			for _, e := range [...]atip.Effect{atip.Delete, atip.Destructive} {
				s.Call.Effects[e] = atip.Fact{Value: atip.Yes, Source: "path /dev/null", Rank: atip.Vendor}
			}
			s.Call.Resources = append(s.Call.Resources, atip.Resource{Kind: "path", Value: "/dev/null", Abs: "/dev/null", Class: atip.ClassSystem, Access: atip.AccessWrite, Why: "replaced"})
		}
	case "grep", "rg", "ag":
		c.includedSecrets(s)
	case "locate":
		for _, p := range s.Call.Positionals {
			r := atip.Resource{Kind: "path", Value: filepath.Join(c.site.Dirs.Home, strings.Trim(p.Value, "*/")), Access: atip.AccessRead, Why: p.Value}
			if c.place(c.site.World, &r, s.Cwd); r.Class == atip.ClassSecret {
				s.Call.Resources = append(s.Call.Resources, r)
			}
		}
	case "sed":
		c.sedFiles(s)
	case "awk":
		c.awkFiles(s)
	case "cpio":
		if c.ctx != nil && c.ctx.stdin != nil && step.HasOption(s, "create", "pass-through") {
			for _, name := range step.Words(*c.ctx.stdin) {
				if r, ok := c.guarded(s, name); ok {
					s.Takes(r)
				}
			}
		}
	case "yq", "jq":
		c.namedInText(s)
	case "git":
		c.gitObjects(s)
	}
	kind := step.Handing(s)
	if kind == step.HandsNothing || len(s.Argv) < 2 {
		return
	}
	for i, w := range s.Argv[1:] {
		before := s.Argv[i]
		path, ok := step.Handed(kind, w, before)
		if !ok || path == "" || strings.IndexByte(path, 0) >= 0 {
			continue
		}
		if s.Call.Tool == "openssl" && strings.HasSuffix(before, "out") && strings.HasPrefix(before, "-") {
			r := atip.Resource{Kind: "path", Value: path, Access: atip.AccessWrite, Why: before}
			c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir))
			c.ownFile(s, &r, nil)
			s.Takes(r)
			c.wrote(s, r.Abs, nil)
			continue
		}
		r := atip.Resource{Kind: "path", Value: path, Access: atip.AccessRead, Why: "named"}
		c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir))
		c.ownFile(s, &r, nil)
		switch r.Class {
		case atip.ClassSecret:
			s.Takes(r)
			if kind != step.HandsLocally && s.Call.Effects[atip.Network].Value != atip.No {
				// The tool may use its credentials, not give them away.
				at := c.index(s)
				c.edge(at, at, policy.SecretToNetwork)
			}
		case atip.ClassStartup, atip.ClassPolicySelf:
			if s.Call.Provenance.Channel == "none" || s.Call.Effects[atip.Write].Value == atip.No || w != s.Argv[len(s.Argv)-1] {
				continue
			}
			r.Access |= atip.AccessWrite
			s.Takes(r)
		}
	}
}

// includedSecrets adds the secrets that a search takes up by a pattern: `grep -r . --include=.env`.
func (c *collector) includedSecrets(s *step.Step) {
	for i, w := range s.Argv[1:] {
		pattern, ok := strings.CutPrefix(w, "--include=")
		if before := s.Argv[i]; !ok && (before == "--include" || s.Call.Tool == "rg" && (before == "-g" || before == "--glob" || before == "--iglob")) {
			pattern, ok = w, true
		}
		if rest, attached := strings.CutPrefix(w, "--glob="); !ok && attached {
			pattern, ok = rest, true
		}
		if !ok || strings.HasPrefix(pattern, "!") || strings.IndexByte(pattern, 0) >= 0 {
			continue
		}
		name := strings.NewReplacer("*", "x", "?", "x").Replace(filepath.Base(pattern))
		if strings.HasPrefix(filepath.Base(pattern), ".env") {
			name = strings.Trim(filepath.Base(pattern), "*")
		}
		r := atip.Resource{Kind: "path", Value: name, Access: atip.AccessRead, Why: w}
		if c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class == atip.ClassSecret {
			s.Takes(r)
		}
	}
}

// namedInText adds the secrets that an expression names between quotes: `load_str(…)`.
func (c *collector) namedInText(s *step.Step) {
	for _, w := range s.Argv[1:] {
		for _, lit := range step.Literals(w) {
			if r, ok := c.guarded(s, lit); ok && strings.Contains(w, "load") {
				s.Takes(r)
			}
		}
	}
}

// gitObjects adds the secrets that are named as files of a revision: `git show HEAD:.env`.
func (c *collector) gitObjects(s *step.Step) {
	if len(s.Call.Path) == 0 {
		return
	}
	printed := false // what is in the files that are named
	switch s.Call.Path[0] {
	case "show", "diff", "blame", "annotate", "difftool":
		printed = true
	case "log":
		printed = slices.ContainsFunc(s.Argv, func(w string) bool {
			return w == "-p" || w == "-u" || w == "--patch" || strings.HasPrefix(w, "-L") || w == "-c" || w == "--cc"
		})
	case "cat-file", "archive", "restore", "checkout", "grep", "diff-tree":
	default:
		return
	}
	for _, w := range s.Argv[1:] {
		_, path, ok := strings.Cut(w, ":")
		if !ok && printed && !strings.HasPrefix(w, "-") {
			path, ok = w, true
		}
		if !ok || path == "" || strings.HasPrefix(w, "-") || strings.HasPrefix(path, "/") || strings.IndexByte(path, 0) >= 0 {
			continue
		}
		r := atip.Resource{Kind: "path", Value: path, Access: atip.AccessRead, Why: w}
		if c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class == atip.ClassSecret {
			s.Takes(r)
		}
	}
}

// prefixed adds the files that stand behind the name of a format or protocol, where the
// metadata says that the word is a file: `convert text:/etc/hosts x.png`, `ffmpeg -i file:/a`.
func (c *collector) prefixed(s *step.Step) {
	if step.Handing(s) == step.HandsWords {
		return // another machine's path
	}
	for _, r := range slices.Clone(s.Call.Resources) {
		prefix, rest, ok := strings.Cut(r.Value, ":")
		if r.Kind != "path" || !ok || prefix == "" || strings.ContainsRune(prefix, '/') || !strings.HasPrefix(rest, "/") && !strings.HasPrefix(rest, "~") || strings.HasPrefix(rest, "//") {
			continue
		}
		r.Value, r.Abs = rest, ""
		c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir))
		s.Takes(r)
	}
}

// sedFiles adds the paths that a sed script writes with its w command and those of secrets
// that it reads with r. A script is not read as one: whatever stands behind the letter
// and is such a path counts.
func (c *collector) sedFiles(s *step.Step) {
	for _, word := range s.Argv[1:] {
		if strings.HasPrefix(word, "/") && !strings.Contains(word, " ") || strings.IndexByte(word, 0) >= 0 {
			continue
		}
		for line := range strings.SplitSeq(word, "\n") {
			for i := range len(line) {
				switch path := strings.TrimLeft(line[i+1:], " \t"); line[i] {
				case 'w', 'W': // a command or a flag: not that of "new", nor the end of s/a/w/g
					if s.Call.Effects[atip.Write].Value != atip.No && (i == 0 || !strings.ContainsRune("abcdefhjklnoqrstuvwxyz", rune(line[i-1]))) && strings.Trim(path, "/gpiIMm0123456789") != "" {
						c.writesInText(s, path, "w")
					}
				case 'r', 'R':
					if r, ok := c.guarded(s, path); ok && !strings.HasPrefix(path, "~") {
						s.Takes(r)
					}
				}
			}
		}
	}
}

// writesInText adds a path that the text of a program writes, unless it is a common file.
func (c *collector) writesInText(s *step.Step, path, why string) {
	if path == "" || strings.HasPrefix(path, "~") || step.HarmlessFile(path) || len(path) > 4096 {
		return
	}
	r := atip.Resource{Kind: "path", Value: path, Access: atip.AccessWrite, Why: why}
	switch c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class {
	case atip.ClassStartup, atip.ClassDevice, atip.ClassPolicySelf, atip.ClassSecret, atip.ClassOutside, atip.ClassSystem, atip.ClassRoot:
		s.Takes(r)
	}
}

// awkFiles adds what an awk program names that runs by itself or is no common file, if
// it writes: which of its texts is the file is not read.
func (c *collector) awkFiles(s *step.Step) {
	for _, w := range s.Argv[1:] {
		for _, lit := range step.Literals(w) {
			if r, ok := c.guarded(s, lit); ok && r.Class == atip.ClassSecret && strings.IndexByte(w, 0) < 0 {
				s.Takes(r)
			}
		}
		if !strings.Contains(w, ">") || strings.IndexByte(w, 0) >= 0 {
			continue
		}
		for rest := w; ; {
			_, after, ok := strings.Cut(rest, ">")
			if !ok {
				break
			}
			rest = after
			if lit, closed := strings.CutPrefix(strings.TrimLeft(after, "> \t"), "\""); closed {
				lit, _, _ = strings.Cut(lit, "\"")
				c.writesInText(s, lit, "print >")
			}
		}
		for _, lit := range step.Literals(w) {
			r := atip.Resource{Kind: "path", Value: lit, Access: atip.AccessWrite, Why: "print >"}
			if step.HarmlessFile(lit) {
				continue
			}
			if strings.HasPrefix(lit, "/") && strings.Contains(w, "ENVIRON") {
				r.Value = c.site.Dirs.Home + lit // where nearly all of the variables with a path lead
			}
			if c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir)); r.Class == atip.ClassStartup || r.Class == atip.ClassDevice || r.Class == atip.ClassPolicySelf || r.Class == atip.ClassSecret {
				s.Takes(r)
			}
		}
	}
}

// maxMeant bounds how many names are looked at: such a command walks the tree itself.
const maxMeant = 20_000

// repositoryNames are a name of each kind in a repository of git, for one that was not walked and
// for its objects, of which there may be a hundred thousand.
var repositoryNames = []string{"", "HEAD", "config", "index", "packed-refs", "refs/heads/main", "hooks/pre-commit", "objects/00",
	"objects/00/00000000000000000000000000000000000000", "objects/info/packs", "objects/pack/pack-0000000000000000000000000000000000000000.pack",
	"objects/pack/pack-0000000000000000000000000000000000000000.idx", "objects/pack/pack-0000000000000000000000000000000000000000.rev"}

// meant adds to a step that removes what only the run will name the worst that is there under
// such a name: `find . -name HEAD -delete` takes the HEAD of the repository, and `*.pyc` nothing
// that a person would miss. What may not be written is for the kernel, by whatever name.
func (c *collector) meant(s *step.Step) {
	for _, r := range s.Call.Resources {
		if r.Kind != "path" || r.Access&atip.AccessDelete == 0 || !strings.Contains(r.Abs, step.SomeName) || !subpath.Within(r.Abs, c.site.Workspace) {
			continue
		}
		// git never lists what lies in a repository, and rm takes no directory unless it is told to.
		tracked := c.tracked && s.Call.Tool == "rm" && !r.Recursive && r.Value == step.SomeName
		if worst := c.worst(r, tracked); worst.Class != atip.ClassUnknown {
			s.Takes(worst)
		}
	}
}

// worst is the file with the worst class for which r may stand, with no class if all of them
// are ordinary files of the workspace. Of a tree that is too large it is the directory itself.
func (c *collector) worst(r atip.Resource, tracked bool) atip.Resource {
	worst := atip.Resource{Kind: "path", Access: r.Access, Recursive: r.Recursive, Why: "may be named"}
	means, top := step.Means(r.Abs), step.KnownDir(r.Abs)
	look := func(path string) {
		if !means(path) || tracked && repository(path) {
			return
		}
		class := c.site.World.Classify(path, r.Access, r.Recursive)
		if class == atip.ClassPolicySelf || class == atip.ClassStartup { // the kernel holds what is protected
			if class = atip.ClassUnknown; repository(path) {
				class = atip.ClassWorkspaceVCS
			}
		}
		if class == atip.ClassUnknown || class > atip.ClassWorkspaceVCS || worst.Class != atip.ClassUnknown && class >= worst.Class {
			return
		}
		worst.Abs, worst.Value, worst.Class = path, path, class
		if rel, err := filepath.Rel(c.site.Cwd, path); err == nil {
			worst.Value = rel
		}
	}
	seen := 0
	_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxMeant {
			for _, name := range repositoryNames {
				look(filepath.Join(top, "x", ".git", name))
			}
			return fs.SkipAll
		}
		if err != nil {
			return nil // nor does the run come there
		}
		look(path)
		switch {
		case !d.IsDir():
		case d.Name() == "node_modules":
			return fs.SkipDir
		case d.Name() == "objects" && filepath.Base(filepath.Dir(path)) == ".git":
			for _, name := range repositoryNames {
				look(filepath.Join(filepath.Dir(path), name))
			}
			return fs.SkipDir
		}
		return nil
	})
	return worst
}

// repository reports a path in a repository of git.
func repository(path string) bool {
	return strings.Contains(path+"/", "/.git/")
}

// knownPath reports whether a text that sets PATH to value still tells what runs: each directory
// exists and is the system's, one of programs that the user installed and no run writes, or lies below
// the workspace, where a name leads to code of the workspace. The workspace itself and directories for temporary files are neither: a file
// that merely lies there is not meant to be a command. Of one beside them that only the run knows
// (`$(go env GOPATH)/bin`) code of the workspace could start everything as well, so what is found there counts as such code.
func (c *collector) knownPath(value, cwd string) bool {
	known := false
	for _, dir := range filepath.SplitList(value) {
		abs := dir
		if strings.IndexByte(dir, 0) >= 0 {
			if !place.ProgramDir(dir) {
				return false
			}
			c.programDirs(filepath.Base(dir))
			continue
		}
		known = true
		if !filepath.IsAbs(dir) {
			if dir == "" || cwd == "" {
				return false
			}
			abs = subpath.Join(cwd, dir)
		}
		if slices.Contains(c.path, dir) && filepath.IsAbs(dir) {
			continue // as it was
		}
		abs = filepath.Clean(abs)
		if !isDir(abs) && !c.writesBelow(abs) && !c.site.World.Ignored(abs) {
			return false // not even one that a build makes
		}
		real := place.Resolve(abs)
		if subpath.Within(real, c.site.Workspace) {
			if real == c.site.Workspace || slices.ContainsFunc(c.site.GitDirs, func(d string) bool { return subpath.Within(real, d) }) {
				return false
			}
			continue
		}
		switch {
		case c.writableByRuns(real):
			return false
		case c.site.World.Classify(real, atip.AccessWrite, false) == atip.ClassSystem:
		case place.ProgramDir(abs) && c.site.Opener.OwnDirectory(real):
			if !slices.Contains(c.out.PathDirs, abs) {
				c.out.PathDirs = append(c.out.PathDirs, abs)
			}
		default:
			return false
		}
	}
	return known
}

// programDirs lets a run start what you installed below the home directory in a directory of this name.
func (c *collector) programDirs(name string) {
	if c.site.Dirs.Home == "" {
		return
	}
	found, _ := filepath.Glob(filepath.Join(c.site.Dirs.Home, "*", name))
	for _, abs := range found[:min(len(found), MaxMatches)] {
		if real := place.Resolve(abs); isDir(real) && !c.writableByRuns(real) && c.site.Opener.OwnDirectory(real) && !slices.Contains(c.out.PathDirs, abs) {
			c.out.PathDirs = append(c.out.PathDirs, abs)
		}
	}
}

// writesBelow reports whether an earlier part of the text makes files in a directory of the
// workspace.
func (c *collector) writesBelow(dir string) bool {
	return slices.ContainsFunc(c.steps, func(s *step.Step) bool {
		return slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
			return r.Access&atip.AccessWrite != 0 && r.Abs != dir && subpath.Within(r.Abs, dir)
		})
	})
}

// lookedUpIn runs f for each value that PATH may have at a command.
func (c *collector) lookedUpIn(values []string, f func() error) error {
	path, moved := c.path, c.moved
	defer func() { c.path, c.moved = path, moved }()
	for _, value := range values {
		if list := filepath.SplitList(value); slices.ContainsFunc(list, func(dir string) bool { return strings.IndexByte(dir, 0) < 0 }) {
			c.path, c.moved = list, value
		}
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// foundByMovedPath reports a command that a PATH of the text's own looks up in a directory of the
// workspace, or in one that is not known, before it comes to where the command lies now.
func (c *collector) foundByMovedPath(s *step.Step) bool {
	if c.moved == "" || strings.ContainsRune(s.Argv[0], '/') {
		return false
	}
	path := c.path
	if s.Missing == nil {
		if at := slices.Index(path, filepath.Dir(s.ID.Place)); at >= 0 {
			path = path[:at]
		}
	}
	return c.mayLeadInside(path)
}

// movesPath reports a text that changes PATH, or reads commands from a file that is not there yet
// and may do so, as the activate script of a new virtual environment does. The shell then forgets
// the files it was told of.
func movesPath(script *shell.Script) bool {
	return slices.ContainsFunc(script.Commands, func(cmd shell.Command) bool { return len(cmd.Path) > 0 || cmd.CodeFile != "" })
}

// maxMadeLinks bounds how many links of one text are followed.
const maxMadeLinks = 16

// madeLink is a name that an earlier part of the text gave to what lies, or lay, elsewhere.
type madeLink struct {
	at, to string
	moved  bool // by mv: what is deleted there was not made there
}

// linked remembers what calls of ln and mv make, so that a later part of the text is
// judged by what it reaches through the new name: `mv src dist && rm -rf dist` does not
// delete what can be built again.
func (c *collector) linked(s *step.Step) {
	moves := s.Call.Tool == "mv" || s.Call.Tool == "git" && len(s.Call.Path) == 1 && s.Call.Path[0] == "mv"
	if !moves && s.Call.Tool != "ln" || c.ctx == nil || c.ctx.cwdUnknown || len(c.made) >= maxMadeLinks {
		return
	}
	dir := subpath.Join(s.Cwd, s.Call.Chdir)
	var words []string
	for _, p := range s.Call.Positionals {
		words = append(words, p.Value)
	}
	into := ""
	if named := step.OptionValues(s, "target-directory"); len(named) > 0 {
		into = named[0]
	} else if len(words) > 1 {
		into, words = words[len(words)-1], words[:len(words)-1]
	} else {
		into = "."
	}
	into = c.absolutePath(into, dir)
	aside := step.UsesOption(s, "no-target-directory", "no-dereference")
	for _, target := range words {
		if step.HasHole([]string{target, into}) || strings.Contains(target, "…") {
			continue
		}
		at := into
		if info, err := os.Stat(into); err == nil && info.IsDir() && !aside {
			at = filepath.Join(into, filepath.Base(target))
		}
		from := dir
		if step.UsesOption(s, "symbolic") {
			from = filepath.Dir(at)
		}
		c.made = append(c.made, madeLink{at, c.throughLinks(c.absolutePath(target, from)), moves})
	}
}

func (c *collector) absolutePath(path, dir string) string {
	return filepath.Clean(c.site.absolute(dir, path))
}

// throughLinks is where a path leads by the links that the text made itself; the
// latest counts.
func (c *collector) throughLinks(abs string) string {
	for range c.made {
		moved := false
		for i := len(c.made) - 1; i >= 0 && !moved; i-- {
			if l := c.made[i]; subpath.Within(abs, l.at) && !subpath.Within(l.to, l.at) {
				abs, moved = filepath.Join(l.to, strings.TrimPrefix(abs, l.at)), true
			}
		}
		if !moved {
			break
		}
	}
	return abs
}

// follow judges a path by where a link leads that the text made before.
func (c *collector) follow(fill func(*atip.Resource, string), r *atip.Resource, cwd string) {
	if len(c.made) == 0 || r.Value == "" {
		return
	}
	named := c.absolutePath(r.Value, cwd)
	refill := func(to string) {
		value := r.Value
		r.Value = to
		fill(r, cwd)
		r.Value = value
	}
	if r.Access&atip.AccessDelete != 0 {
		for _, l := range c.made {
			if l.moved && l.at != named && subpath.Within(l.at, named) && !subpath.Within(l.to, named) {
				refill(l.to)
				return
			}
		}
	}
	if r.Access&atip.AccessDelete != 0 && !r.Recursive && !strings.HasSuffix(r.Value, "/") {
		for _, l := range c.made {
			if l.at == named && !l.moved {
				return // the link itself goes
			}
		}
	}
	if to := c.throughLinks(named); to != named {
		refill(to)
	}
}

// manifests marks a call with network whose tool reads a file of the project that is a
// program: mix.exs, Podfile, serverless.ts. Which those are its document says (files,
// relativeTo project); for every tool there are the names that frameworks give them after
// the tool. Such a call runs what a build before it may have written.
func (c *collector) manifests(s *step.Step) {
	if s.Call.Effects[atip.Network].Value == atip.No || s.RunsCode != policy.CodeNone && s.Call.Effects[atip.ExecOpaque].Value == atip.Yes {
		return
	}
	var files []atip.CodeFile
	for _, f := range s.Call.CodeFiles {
		if f.RelativeTo == "project" {
			files = append(files, f)
		}
	}
	if strings.IndexByte(s.Call.Chdir, 0) >= 0 {
		return
	}
	dir := filepath.Clean(subpath.Join(s.Cwd, s.Call.Chdir))
	for {
		names, whole := codefile.Names(dir)
		for path := range c.writers {
			if filepath.Dir(path) == dir {
				names = append(names, filepath.Base(path)) // by an earlier part of the text
			}
		}
		for _, name := range names {
			if codefile.Conventional(s.Call.Tool, name) {
				s.RunsFile(name, filepath.Join(dir, name)+" is a program that "+s.Call.Tool+" reads")
				return
			}
		}
		for _, f := range files {
			if path := codefile.Find(dir, names, whole, f); path != "" {
				s.RunsFile(f.Path, path+" can run code")
				return
			}
		}
		if dir == c.site.Workspace || !subpath.Within(dir, c.site.Workspace) || filepath.Dir(dir) == dir {
			return
		}
		dir = filepath.Dir(dir)
	}
}
