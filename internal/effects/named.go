package effects

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
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
					s.Raise(r)
					s.Call.Resources = append(s.Call.Resources, r)
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
			s.Raise(r)
			s.Call.Resources = append(s.Call.Resources, r)
			continue
		}
		r := atip.Resource{Kind: "path", Value: path, Access: atip.AccessRead, Why: "named"}
		c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir))
		switch r.Class {
		case atip.ClassSecret:
			s.Raise(r)
			s.Call.Resources = append(s.Call.Resources, r)
			if kind != step.HandsLocally && s.Call.Effects[atip.Network].Value != atip.No {
				// The tool may use its credentials, not give them away.
				at := c.index(s)
				c.edge(at, at, policy.SecretToNetwork)
			}
		case atip.ClassStartup, atip.ClassPolicySelf:
			if s.Call.Provenance.Channel == "none" {
				continue
			}
			if s.Call.Effects[atip.Write].Value == atip.No || w != s.Argv[len(s.Argv)-1] {
				continue
			}
			r.Access |= atip.AccessWrite
			s.Raise(r)
			s.Call.Resources = append(s.Call.Resources, r)
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
			s.Raise(r)
			s.Call.Resources = append(s.Call.Resources, r)
		}
	}
}

// namedInText adds the secrets that an expression names between quotes: `load_str(…)`.
func (c *collector) namedInText(s *step.Step) {
	for _, w := range s.Argv[1:] {
		for _, lit := range step.Literals(w) {
			if r, ok := c.guarded(s, lit); ok && strings.Contains(w, "load") {
				s.Raise(r)
				s.Call.Resources = append(s.Call.Resources, r)
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
			s.Raise(r)
			s.Call.Resources = append(s.Call.Resources, r)
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
		s.Raise(r)
		s.Call.Resources = append(s.Call.Resources, r)
	}
}

// sedFiles adds the paths that a sed script writes with its w command and those of secrets
// that it reads with r. A script is not read as one: whatever stands behind the letter
// and is such a path counts.
func (c *collector) sedFiles(s *step.Step) {
	for _, word := range s.Argv[1:] {
		if strings.HasPrefix(word, "/") || strings.IndexByte(word, 0) >= 0 {
			continue
		}
		for line := range strings.SplitSeq(word, "\n") {
			for i := range len(line) {
				switch path := strings.TrimLeft(line[i+1:], " \t"); line[i] {
				case 'w', 'W':
					if s.Call.Effects[atip.Write].Value != atip.No {
						c.writesInText(s, path, "w")
					}
				case 'r', 'R':
					if r, ok := c.guarded(s, path); ok && !strings.HasPrefix(path, "~") {
						s.Raise(r)
						s.Call.Resources = append(s.Call.Resources, r)
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
		s.Raise(r)
		s.Call.Resources = append(s.Call.Resources, r)
	}
}

// awkFiles adds what an awk program names that runs by itself or is no common file, if
// it writes: which of its texts is the file is not read.
func (c *collector) awkFiles(s *step.Step) {
	for _, w := range s.Argv[1:] {
		for _, lit := range step.Literals(w) {
			if r, ok := c.guarded(s, lit); ok && r.Class == atip.ClassSecret && strings.IndexByte(w, 0) < 0 {
				s.Raise(r)
				s.Call.Resources = append(s.Call.Resources, r)
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
				s.Raise(r)
				s.Call.Resources = append(s.Call.Resources, r)
			}
		}
	}
}
