package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// banned are phrasings that hide who acts, or say in other terms what the field has a noun for.
var banned = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\b(nobody|no one)\b`), "name the actor, or use the passive"},
	{regexp.MustCompile(`(?i)\b(somebody|someone|anybody|anyone)\b`), "name the actor: you, the user, the agent, another user"},
	{regexp.MustCompile(`(?i)\b(everybody|everyone)\b`), "name the actors"},
	{regexp.MustCompile(`(?i)\bwhoever\b`), "name the actor"},
	{regexp.MustCompile(`(?i)\b(a|no) person\b`), "you, the user, an approver; or: approval"},
	{regexp.MustCompile(`(?i)\bthe (run outside|outer run)\b`), "the parent run"},
	{regexp.MustCompile(`(?i)\ba wish\b`), "an allow rule"},
	{regexp.MustCompile(`(?i)\band nothing else\b`), "only"},
	{regexp.MustCompile(`(?i)\bwhat is left\b`), "the rest"},
	{regexp.MustCompile(`(?i)\bas good as (none|nothing)\b`), "say what is lost"},
	{regexp.MustCompile(`\b(is|are) none of\b`), "is not of"},
	{regexp.MustCompile(`\bin words\b`), "explicitly"},
	{regexp.MustCompile(`(?m)(^|[.] )(\*\*)?(What|Who) (is|was|are|were|may|can|cannot|has|could) `), "a noun as the subject"},
	{regexp.MustCompile(`\bsay(s)? (yes|no) to\b`), "approve or deny"},
}

// userFacing are the packages and files whose strings users read.
var userFacing = []string{"internal/cli", "internal/aftermath", "internal/record", "internal/stdio", "internal/staging", "internal/starts", "internal/permit", "internal/priming", "internal/authority", "internal/caller", "internal/fault", "internal/plan", "internal/run", "internal/effects", "internal/step", "internal/recipe", "internal/mcp", "internal/prime", "internal/approve",
	"policy", "sandbox", "shims", "trust", "cmd"}

// TestPlainWords holds what users read, which is strings of the program and documents, to the
// English of CONTRIBUTING.md.
func TestPlainWords(t *testing.T) {
	const root = "../.."
	for _, dir := range userFacing {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			for place, text := range literals(t, path) {
				plain(t, place, text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	docs, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"} {
		docs = append(docs, filepath.Join(root, name))
	}
	for _, name := range docs {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			plain(t, name+":"+strconv.Itoa(i+1), line)
		}
	}
}

func plain(t *testing.T, place, text string) {
	t.Helper()
	for _, b := range banned {
		if found := b.pattern.FindString(text); found != "" {
			t.Errorf("%s: %q in %.160q; write instead: %s", strings.TrimPrefix(place, "../../"), found, text, b.instead)
		}
	}
}

// literals are the strings of a Go file by their places.
func literals(t *testing.T, path string) map[string]string {
	t.Helper()
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(tree, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			out[files.Position(lit.Pos()).String()] = text
		}
		return true
	})
	return out
}
