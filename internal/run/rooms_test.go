package run

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/fault"
)

// rooms are the calls that have a place, and the files that may use them, each with its reason. A
// name that ends in a slash stands for a directory. Elsewhere the caller hands in what it
// needs: an environment that was judged, a moment, a stream that is redacted.
var rooms = map[string]map[string]string{
	"os.Getenv os.LookupEnv os.Environ os.Setenv os.Unsetenv": {
		"internal/caller/caller.go":          "Machine: the environment of the caller, which every decision takes from here",
		"internal/delegation/delegation.go":  "a token that came as a descriptor is read before the environment is taken",
		"internal/place/workspace.go":        "TMPDIR only excludes a workspace",
		"internal/scan/probe.go":             "a process of ours, with the environment that its parent made",
		"internal/corpus/":                   "tests",
		"internal/require/":                  "tests",
		"internal/built/":                    "tests",
		"internal/cli/main.go":               "atip instead of this process",
		"internal/standin/standin_linux.go":  "whom to ask, before there is a caller; nothing is believed because of it",
		"internal/cli/prove/trust.go":        "ATIP_EXEC_SANDBOX and ATIP_OFFLINE only refuse",
		"internal/cli/approvals/approve.go":  "variables of CI and of sandboxes only refuse",
		"internal/cli/tools/main.go":         "variables of sandboxes only refuse",
		"internal/cli/approvals/delegate.go": "atip-exec instead of this process",
		"internal/cli/tools/mcp.go":          "the environment of the calls, which atip-exec judges",
		"internal/cli/registries/resolve.go": "what is shown, not used",
		"internal/cli/answer/loadrunfile.go": "RUN_NO_GLOBAL_MERGE of a Runfile that atip-exec judges",
		"internal/cli/tools/run.go":          "RUN_SHELL of a Runfile that atip-exec judges",
		"internal/cli/tools/run_unix.go":     "atip-exec instead of this process",
		"internal/cli/tools/shim.go":         "PATH as the user has it: whether the wrappers stand first",
	},
	"os.Create":                                  {}, // it follows links and empties what is there
	"fmt.Print fmt.Printf fmt.Println":           {},
	"http.Get http.Post http.Head http.PostForm": {},
	"os.Exit": {
		"cmd/":                              "the ends of the programs",
		"internal/cli/process_windows.go":   "the other program has run",
		"internal/drive/signals_windows.go": "as a signal would end this process",
		"internal/standin/standin_linux.go": "as the command that it stands for",
		"sandbox/stage_linux.go":            "the process between this one and the command, and process 1 of a private root",
		"shims/builtin/gen/":                "a generator",
	},
	"panic": {
		"internal/run/planning.go": "a panic of another goroutine goes on in this one",
		"internal/batch/answer.go": "the same",
	},
}

// pure are the packages that decide from what they are handed: no clock.
var pure = []string{"atip", "internal/effects", "internal/step", "internal/recipe", "policy", "internal/shell", "internal/prime", "internal/hostword", "internal/gitrepo", "internal/runfile", "internal/fault", "internal/ip", "trust/signer"}

// sources hands the parsed files of the programs to f, without tests and scripts.
func sources(t *testing.T, f func(name string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if name == "scripts" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err == nil {
			f(filepath.ToSlash(name), set, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// called is what a call names: "os.Getenv", or "panic".
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if pkg, ok := f.X.(*ast.Ident); ok {
			return pkg.Name + "." + f.Sel.Name
		}
	}
	return ""
}

// TestRooms: what is global is used in its place only.
func TestRooms(t *testing.T) {
	used := map[string]bool{}
	sources(t, func(name string, set *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			what := called(call)
			if what == "time.Now" && slices.Contains(pure, filepath.Dir(name)) {
				t.Errorf("%s: time.Now in a package that is handed the time", set.Position(call.Pos()))
			}
			for calls, files := range rooms {
				if !slices.Contains(strings.Fields(calls), what) {
					continue
				}
				known := false
				for room := range files {
					if room == name || strings.HasSuffix(room, "/") && strings.HasPrefix(name, room) {
						known, used[calls+" "+room] = true, true
					}
				}
				if !known {
					t.Errorf("%s: %s has no place here", set.Position(call.Pos()), what)
				}
			}
			return true
		})
	})
	for calls, files := range rooms {
		for room := range files {
			if !used[calls+" "+room] {
				t.Errorf("%s does not use %s any more", room, calls)
			}
		}
	}
}

// TestCodesAreNamed: an error code is written once, in internal/errcode, so that a slip of the
// pen does not compile.
func TestCodesAreNamed(t *testing.T) {
	code := regexp.MustCompile(`^E[0-9]{4}$`)
	sources(t, func(name string, set *token.FileSet, file *ast.File) {
		if name == "internal/errcode/errcode.go" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && code.MatchString(text) {
					t.Errorf("%s: %s has a name in internal/errcode", set.Position(lit.Pos()), text)
				}
			}
			return true
		})
	})
}

// TestCodesHaveRows: each name of internal/errcode has a row in the table of internal/fault, and
// no number has two names.
func TestCodesHaveRows(t *testing.T) {
	path := filepath.Join("..", "errcode", "errcode.go")
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	sources(t, func(name string, _ *token.FileSet, file *ast.File) {
		if name != "internal/errcode/errcode.go" {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				text, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if named[text] {
					t.Errorf("%s has two names", text)
				}
				named[text] = true
			}
			return true
		})
	})
	for _, row := range fault.Rows() {
		if !named[row.Code] {
			t.Errorf("%s has no name", row.Code)
		}
		delete(named, row.Code)
	}
	for code := range named {
		t.Errorf("%s has no row", code)
	}
}
