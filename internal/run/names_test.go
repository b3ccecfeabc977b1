package run

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/wiring"
)

// spelled are the files that spell names of the table, which names, and why. A directory ends in
// a slash. Everything else takes the names from package place, as values.
var spelled = []struct{ file, names, why string }{
	{"internal/place/names.go", "*", "the table"},
	{"internal/corpus/", "*", "the world of tests"},
	{"internal/escape/", "*", "a world that attacks are tried in"},
	{"internal/wiring/", "*", "where the settings are that init writes for each agent; each is looked up in the table by a test"},
	{"internal/cli/help.go", ".agent-tools", "prose"},
	{"internal/cli/spec.go", ".agent-tools .config/fish", "prose"},
	{"internal/prime/own.go", ".git/hooks", "prose"},
	{"internal/cli/approvals/approve_key.go", "id_ed25519", "our own key"},
	{"internal/cli/policies/policy_corpus.go", ".git/config", "a repository that is made for a judgement"},
	{"internal/effects/listed.go", ".npmrc", "that of a project, for the servers it names"},
	{"internal/sshconfig/sshconfig.go", ".ssh", "where ssh reads its settings"},
	{"internal/step/step.go", "authorized_keys", "a secret of a home, which lets others in as well"},
	{"internal/effects/targets.go", ".ssh", "what a search of a home comes upon, for one"},
	{"internal/gitrepo/config.go", ".gitconfig", "where git reads its settings"},
	{"internal/undo/diff.go", ".git/config .git/hooks", "how changes of git's own files are counted"},
	{"sandbox/root_linux.go", ".profile /etc/profile", "what a private root has of a login shell"},
	{"sandbox/derive_paths.go", ".gitconfig .config/git/config", "granted for reading"},
	{"shims/builtin/gen/lint.go", ".git/config", "a path in documents"},
	{"trust/sigstore/statement.go", ".github/workflows", "part of an identity in certificates"},
}

// TestNamesStandInOneTable: the name of a secret, a startup file or a setting of an agent is
// written once. Two lists of the same thing disagree, and a user finds out which one won.
func TestNamesStandInOneTable(t *testing.T) {
	var names []string
	for _, n := range place.Names() {
		switch path := strings.TrimSuffix(n.Path, "/"); {
		case n.Where == place.GitDir:
			names = append(names, ".git/"+path)
		case !strings.Contains(path, "*"):
			names = append(names, path)
		}
	}
	used := map[int]bool{}
	sources(t, func(name string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				return true
			}
			for _, name := range names {
				if !spells(text, name) {
					continue
				}
				at, known := strings.TrimPrefix(set.Position(lit.Pos()).Filename, filepath.Join("..", "..")+"/"), false
				for i, e := range spelled {
					if (e.file == at || strings.HasSuffix(e.file, "/") && strings.HasPrefix(at, e.file)) && (e.names == "*" || slices.Contains(strings.Fields(e.names), name)) {
						known, used[i] = true, true
					}
				}
				if !known {
					t.Errorf("%s: %q is a row of the table in internal/place/names.go", set.Position(lit.Pos()), name)
				}
			}
			return true
		})
	})
	for i, e := range spelled {
		if !used[i] {
			t.Errorf("%s spells no name any more", e.file)
		}
	}
}

// spells reports whether a text has a name as a path of its own.
func spells(text, name string) bool {
	for rest := text; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return false
		}
		before, after := rest[:i], rest[i+len(name):]
		if (before == "" || strings.ContainsAny(before[len(before)-1:], "/ \"'=(")) && (after == "" || strings.ContainsAny(after[:1], "/ \"')|,")) {
			return true
		}
		rest = after
	}
}

// TestAgentSettingsAreNames: the files by which init leads an agent to us are rows of the table, so
// that no command changes them.
func TestAgentSettingsAreNames(t *testing.T) {
	w := place.World{Workspace: "/home/u/p", Home: "/home/u"}
	for _, host := range wiring.Hosts() {
		for scope, file := range host.Files {
			dir := w.Workspace
			if scope == wiring.User {
				dir = w.Home
			}
			if got := w.Classify(filepath.Join(dir, file), atip.AccessWrite, false); got != atip.ClassPolicySelf {
				t.Errorf("%s: %s is %v", host.Name, file, got)
			}
		}
	}
}
