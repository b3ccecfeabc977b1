package step

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/trust"
)

// PackageNames lists the scripts a call runs, the one it names first, and the words
// that are appended to that one.
func PackageNames(s *Step) (names, args []string) {
	var words []string
	for _, p := range s.Call.Positionals {
		words = append(words, p.Value)
	}
	verb := ""
	if len(s.Call.Path) > 0 {
		verb = s.Call.Path[0]
	}
	switch verb {
	case "run":
	case "test", "start", "stop", "restart":
		words = append([]string{verb}, words...)
	case "install", "ci", "add":
		return []string{"install", "preinstall", "postinstall", "preprepare", "prepare", "postprepare", "prepublish"}, nil
	case "publish", "pack":
		return []string{"prepack", "prepare", "prepublishOnly", "postpack", "publish", "postpublish"}, nil
	case "":
		if s.Call.Tool == "npm" {
			return nil, nil // of the others `yarn build` is `yarn run build`
		}
	default:
		return nil, nil
	}
	if len(words) == 0 || strings.IndexByte(words[0], 0) >= 0 {
		return nil, nil
	}
	for _, w := range words[1:] {
		if strings.IndexByte(w, 0) < 0 {
			args = append(args, w)
		}
	}
	return []string{words[0], "pre" + words[0], "post" + words[0]}, args
}

// RunsModule reports "go run MODULE@VERSION": what is run is not in the workspace.
func RunsModule(s *Step) bool {
	return s.Call.Tool == "go" && len(s.Call.Path) == 1 && s.Call.Path[0] == "run" && len(s.Call.Positionals) > 0 && strings.Contains(s.Call.Positionals[0].Value, "@")
}

// ScriptArgs are the words that a script gets: those behind its name.
func ScriptArgs(s *Step, path string) (args []string, unknown bool) {
	at := -1
	for i, w := range s.Argv {
		if i == 0 && s.ID.Canonical == path || filepath.Clean(subpath.Join(subpath.Join(s.Cwd, s.Call.Chdir), w)) == path {
			at = i
			break
		}
	}
	if at < 0 || HasHole(s.Argv[at+1:]) {
		return nil, true
	}
	return s.Argv[at+1:], false
}

// PythonModule is the command that `python -m NAME …` runs, where the module is a package
// manager with metadata of its own; nil for any other. What it may do is said there
// better than by "some code".
func PythonModule(s *Step, n atip.Nested) []string {
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

// FetchedCode reports a program that is named by where it is fetched from.
func FetchedCode(s *Step, n atip.Nested) bool {
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

// LimitOf says why a signature of the step's program says nothing of what it runs, "" if its words
// name no code: that of a project is weighed by itself.
func LimitOf(s *Step) string {
	for _, n := range s.Call.Nested {
		switch {
		case FetchedCode(s, n):
			return trust.CapFetchesCode
		case n.Kind == "code" && n.Language != "project" && (n.Text != "" || n.File != ""):
			return trust.CapCodeArgument
		}
	}
	switch s.Call.Tool {
	case "npx", "bunx", "uvx", "pipx":
		if s.Call.Effects[atip.ExecOpaque].Value == atip.Yes {
			return trust.CapFetchesCode
		}
	}
	return ""
}

// OnlyHelp reports a curated tool that is asked for its help or version, or for the help
// of one of its commands, and nothing else: that much is common to all of them, whatever
// else they do.
func OnlyHelp(s *Step) bool {
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

// HarmlessHelp is the call of a tool that prints its help.
func HarmlessHelp(call *atip.Call) {
	for e := range call.Effects {
		call.Effects[e] = Harmless(atip.Effect(e), "help")
	}
	call.Effects[atip.Read].Value = atip.Yes
	call.Nested, call.CodeFiles, call.Resources = nil, nil, []atip.Resource{}
	call.Exactness = atip.Exact
}
