package effects

import (
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// pythonModule is the command that `python -m NAME …` runs, where the module is a package
// manager with metadata of its own; nil for any other. What it may do is said there
// better than by "some code".
func pythonModule(s *Step, n atip.Nested) []string {
	if n.Language != "python-module" {
		return nil
	}
	switch n.Text {
	case "pip", "pip3", "pipx", "poetry", "uv", "twine", "ansible", "alembic", "awscli", "flit":
	default:
		return nil
	}
	for i, w := range s.Argv {
		if w == n.Text && i > 0 || w == "-m"+n.Text {
			return append([]string{n.Text}, s.Argv[i+1:]...)
		}
	}
	return nil
}

// fetchedCode reports a program that is named by where it is fetched from.
func fetchedCode(s *Step, n atip.Nested) bool {
	name := n.File
	if name == "" && len(s.Call.Positionals) > 0 {
		switch s.Call.Tool {
		case "deno", "bun", "tsx", "node":
			name = s.Call.Positionals[0].Value
		}
	}
	for _, scheme := range [...]string{"http:", "https:", "npm:", "jsr:", "data:", "git:", "github:"} {
		if strings.HasPrefix(name, scheme) {
			if scheme != "data:" {
				s.Call.Effects[atip.Network] = atip.Fact{Value: atip.Yes, Source: "text", Rank: atip.Vendor}
			}
			return true
		}
	}
	return false
}

// moduleRaises reports a module of Python whose words are program text that raises. Of
// one that serves a directory it adds that directory.
func (c *collector) moduleRaises(s *Step, module string) bool {
	at := slices.IndexFunc(s.Argv, func(w string) bool { return w == module || w == "-m"+module })
	if at < 0 {
		return false
	}
	switch module {
	case "timeit":
		raised := false
		for _, w := range s.Argv[at+1:] {
			c.peekCode(s, w)
			if raises(w) {
				s.showRemoval(w)
				raised = true
			}
		}
		return raised
	case "http.server", "SimpleHTTPServer":
		for i, w := range s.Argv[at+1:] {
			dir, ok := strings.CutPrefix(w, "--directory=")
			if before := s.Argv[at+i]; before == "-d" || before == "--directory" {
				dir, ok = w, true
			}
			if ok {
				r := atip.Resource{Kind: "path", Value: dir, Access: atip.AccessRead, Recursive: true, Why: "--directory"}
				c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir))
				s.raise(r)
				s.Call.Resources = append(s.Call.Resources, r)
				c.below(s)
			}
		}
	}
	return false
}

// onlyHelp reports a curated tool that is asked for its help or version, or for the help
// of one of its commands, and nothing else: that much is common to all of them, whatever
// else they do.
func onlyHelp(s *Step) bool {
	last := len(s.Argv) - 1
	if last < 1 || s.Call.Provenance.Channel != "builtin" || s.Call.Provenance.Rank < atip.Org {
		return false
	}
	switch s.Call.Tool {
	case "echo", "printf", "xargs", "parallel":
		return false // to these it is a word like others
	}
	if last > 1 {
		// Only the words of the command stand before it, and it is none that starts another.
		return s.Argv[last] == "--help" && len(s.Call.Path) == last-1 && len(s.Call.Positionals) == 0 && len(s.Call.Nested) == 0 && len(s.Call.AltPaths) == 0 &&
			!slices.ContainsFunc(s.Argv[1:last], func(w string) bool { return w == "" || w[0] == '-' })
	}
	return s.Argv[1] == "--help" || s.Argv[1] == "--version"
}

// harmlessHelp is the call of a tool that prints its help.
func harmlessHelp(call *atip.Call) {
	for e := range call.Effects {
		call.Effects[e] = harmless(atip.Effect(e), "help")
	}
	call.Effects[atip.Read].Value = atip.Yes
	call.Nested, call.CodeFiles, call.Resources = nil, nil, []atip.Resource{}
	call.Exactness = atip.Exact
}
