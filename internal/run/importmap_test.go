package run

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/atip-dev/atip-exec"

// arrows is the import map of the project: package to what it may import of the
// module and of outside modules. A package that is not here fails the test, so
// that a new room is a decision, not an accident.
var arrows = map[string][]string{
	"atip":          {},
	"shims":         {"atip", "shims/builtin", "internal/owner"},
	"shims/builtin": {"atip"},
	"shims/remote":  {"atip", "shims"},
	"trust":         {"internal/owner"},
	"policy":        {"atip", "internal/ip"},
	"sandbox":       {"atip", "github.com/landlock-lsm/go-landlock"},
	"filter":        {},

	"internal/fault":   {},
	"internal/ip":      {},
	"internal/owner":   {},
	"internal/proxy":   {"internal/ip"},
	"internal/tty":     {"github.com/creack/pty"},
	"internal/audit":   {},
	"internal/approve": {},
	"internal/place":   {"atip"},
	"internal/shell":   {"mvdan.cc/sh/v3"},
	"internal/run": {"atip", "shims", "trust", "policy", "sandbox", "filter", "internal/fault", "internal/tty",
		"internal/audit", "internal/approve", "internal/place", "internal/shell", "internal/ip", "internal/proxy", "internal/owner"},
	"internal/corpus":    {"internal/shell"},
	"internal/escape":    {},
	"internal/selftest":  {"sandbox", "internal/escape", "internal/proxy"},
	"internal/scan":      {"atip", "shims", "trust", "sandbox", "internal/owner"},
	"internal/generate":  {"atip"},
	"internal/archive":   {"github.com/klauspost/compress", "github.com/ulikunitz/xz"},
	"internal/crawl":     {"atip", "shims", "shims/remote", "internal/archive", "internal/generate", "go.yaml.in/yaml/v3"},
	"internal/cli":       {"internal/run", "internal/fault", "internal/tty"},
	"internal/cli/tools": {"internal/cli", "internal/run", "internal/fault", "internal/tty", "internal/audit", "internal/approve", "internal/place", "internal/scan", "internal/generate", "internal/crawl", "atip", "shims", "shims/remote", "policy", "sandbox", "filter", "trust", "internal/selftest"},

	"cmd/atip-exec": {"internal/cli", "sandbox"},
	"cmd/atip":      {"internal/cli", "internal/cli/tools", "sandbox"},

	"scripts/arm64init":           {},
	"scripts/docgen":              {"internal/cli"},
	"scripts/filterscan":          {"filter"},
	"scripts/peerbench":           {"internal/corpus"},
	"scripts/startbench":          {},
	"scripts/startbench/goexec":   {},
	"scripts/startbench/composed": {"sandbox"},
	"scripts/rulegen":             {"filter"},
	"scripts/wordgen":             {"filter"},
	"shims/builtin/gen":           {"atip", "shims/builtin"},
}

// standard counts as the standard library: the arrow needs no importer of its own.
const standard = "golang.org/x/sys"

// testOnly may be imported by tests of any package.
var testOnly = []string{"github.com/rogpeppe/go-internal"}

func TestImportArrows(t *testing.T) {
	root := filepath.Join("..", "..")
	importers := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			// A folder with its own go.mod is another module with its own rules.
			if _, err := os.Stat(filepath.Join(path, "go.mod")); (err == nil && path != root) || d.Name() == "testdata" || d.Name() == "vendor" || (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, filepath.Dir(path))
		pkg, isTest := filepath.ToSlash(rel), strings.HasSuffix(path, "_test.go")
		allowed, known := arrows[pkg]
		if !known {
			t.Errorf("%s: package %q is not in the import map", path, pkg)
			return nil
		}
		for _, spec := range f.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			to := strings.TrimPrefix(imported, module+"/")
			outside := to == imported
			if outside && !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") || hasPrefix(imported, standard) {
				continue
			}
			if isTest && (to == pkg || matches(imported, testOnly) || !outside) {
				continue
			}
			if outside {
				if importers[imported] == nil {
					importers[imported] = map[string]bool{}
				}
				importers[imported][pkg] = true
			}
			if !matches(to, allowed) {
				t.Errorf("%s: the arrow %s -> %s is not in the import map", path, pkg, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for outside, pkgs := range importers {
		if len(pkgs) > 1 {
			t.Errorf("%s has more than one importer: %v", outside, pkgs)
		}
	}
}

func hasPrefix(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

func matches(path string, allowed []string) bool {
	for _, a := range allowed {
		if path == a || (strings.Contains(a, ".") && hasPrefix(path, a)) {
			return true
		}
	}
	return false
}

// linked is every outside package linked into cmd/atip-exec; each is paid by
// every command a user ever runs.
var linked = []string{
	"github.com/creack/pty",
	"github.com/landlock-lsm/go-landlock/landlock/syscall",
	"golang.org/x/sys/unix",
	"kernel.org/pub/linux/libs/security/libcap/psx",
	"mvdan.cc/sh/v3/fileutil",
	"mvdan.cc/sh/v3/syntax",
}

// heavy standard packages cost start-up time or bring a network stack.
var heavy = []string{"net", "net/http", "crypto/tls", "crypto/x509", "text/template", "html/template", "log/slog", "testing", "flag"}

func TestLinkedPackages(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Standard}}", module+"/cmd/atip-exec")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		path, std, _ := strings.Cut(line, " ")
		if std == "false" && !hasPrefix(path, module) {
			got = append(got, path)
		}
		if std == "true" && matches(path, heavy) {
			t.Errorf("cmd/atip-exec links %s: every command would pay for it", path)
		}
	}
	sort.Strings(got)
	for _, path := range got {
		if !matches(path, linked) {
			t.Errorf("cmd/atip-exec links %s, which is not in the list", path)
		}
	}
}
