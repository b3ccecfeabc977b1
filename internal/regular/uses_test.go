package regular_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// readers are the packages that read what is in a workspace or what a caller names, all of
// them while the wrapper itself is confined by nothing.
var readers = []string{"internal/aftermath", "internal/cleaning", "internal/record", "internal/stdio", "internal/staging", "internal/starts", "internal/permit", "internal/priming", "internal/plan", "internal/run", "internal/status", "internal/nest", "internal/layers", "internal/redact", "internal/toollock", "internal/delegation", "internal/ledger", "internal/idempotency", "internal/gitrepo", "internal/place", "internal/runfile", "internal/script", "policy", "sandbox", "trust"}

// own are the places where one of them opens a file by itself, each with what makes sure that
// it neither waits nor grows.
var own = map[string]string{
	"internal/ledger/ledger.go with os.OpenFile":           "our own lock, in our state directory",
	"internal/ledger/ledger.go Draw os.OpenFile":           "our own lock and 16 bytes, in our state directory; opened for reading and writing, which waits for nothing",
	"internal/idempotency/idempotency.go Take os.OpenFile": "our own lock, in our state directory",
	"internal/priming/priming.go primed os.OpenFile":       "our own lock, in our state directory",
	"internal/nest/nest.go Inside os.OpenFile":             "our own lock, opened for reading and writing, which waits for nothing; it is not read",
	"internal/nest/own_linux.go standOf os.ReadFile":       "below /proc",
	"internal/nest/own_linux.go umaskOf os.ReadFile":       "below /proc",
	"internal/staging/staging.go makeTmpNames os.OpenFile": "O_EXCL: the file is made here",
	"internal/ledger/once.go FirstTime os.OpenFile":        "O_EXCL: the file is made here",
	"sandbox/tree_linux.go findCgroup os.ReadFile":         "below /sys/fs/cgroup",
	"sandbox/tree_linux.go makeCgroup os.OpenFile":         "below /sys/fs/cgroup",
	"sandbox/tree_linux.go outOfMemory os.ReadFile":        "below /sys/fs/cgroup",
	"sandbox/tree_linux.go writeExisting os.OpenFile":      "below /sys/fs/cgroup",
	"sandbox/settle_linux.go remember os.OpenFile":         "O_EXCL: the file is made here",
	"sandbox/settle_linux.go lockRecord os.OpenFile":       "our own record, in our state directory; opened for reading and writing, which waits for nothing",
	"sandbox/launch_linux.go identityMap os.ReadFile":      "a map of ids below /proc",
	"sandbox/clean_linux.go lockUnused os.Open":            "the directory of private directories, where no run can write",
	"sandbox/clean_linux.go awaitClean os.Open":            "the same",
	"sandbox/root_linux.go takeLayers os.OpenFile":         "our own lock, beside the layers, where no run can write",
	"sandbox/probe_linux.go touch unix.Open":               "the confined probe opens what it is told to; it reads nothing",
	"sandbox/root_linux.go hosts os.ReadFile":              "/etc/hosts below the base of the private root",
	"sandbox/root_linux.go loginPath os.ReadFile":          "/etc/profile below the base of the private root",
	"sandbox/probe_linux.go takeScratch os.OpenFile":       "a directory of ours, not through a link",
	"sandbox/settle_linux.go copyOut os.OpenFile":          "made in the quarantine, to be written",
	"trust/binfmt_linux.go binfmtRuns os.ReadFile":         "below /proc/sys/fs/binfmt_misc",
	"trust/hold_linux.go openRetry unix.Open":              "each caller says that it must not wait; what was opened is looked at before it is read",
}

// kernel reports a path that the kernel serves, or that only root can change.
func kernel(e ast.Expr) bool {
	for {
		b, ok := e.(*ast.BinaryExpr)
		if !ok {
			break
		}
		e = b.X
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		for _, top := range []string{`"/proc`, `"/sys/`, `"/etc/`} {
			if strings.HasPrefix(e.Value, top) {
				return true
			}
		}
	case *ast.SelectorExpr:
		return e.Sel.Name == "DevNull"
	}
	return false
}

// opens says how a call opens or reads a file in a way that can wait or grow, "" if it does not.
func opens(call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := sel.X.(*ast.Ident)
	if !ok || len(call.Args) == 0 {
		return ""
	}
	name := pkg.Name + "." + sel.Sel.Name
	switch name {
	case "os.ReadFile", "os.Open", "os.OpenFile", "os.OpenInRoot", "os.DirFS", "ioutil.ReadFile", "ioutil.ReadAll":
		if kernel(call.Args[0]) {
			return ""
		}
		return name
	case "unix.Open", "syscall.Open":
		harmless := kernel(call.Args[0])
		ast.Inspect(call.Args[1], func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				switch s.Sel.Name {
				case "O_PATH", "O_NONBLOCK", "O_DIRECTORY", "O_EXCL":
					harmless = true
				}
			}
			return true
		})
		if harmless {
			return ""
		}
		return name
	case "io.ReadAll":
		if inner, ok := call.Args[0].(*ast.CallExpr); ok {
			if s, ok := inner.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "LimitReader" {
				return ""
			}
		}
		return name
	}
	return ""
}

// TestOneReader: nothing but this package opens a file that somebody else may have put there.
// A reader of its own would have to know again that a FIFO waits, that a device does not end
// and that a file can be larger than memory.
func TestOneReader(t *testing.T) {
	used := map[string]bool{}
	for _, pkg := range readers {
		dir := filepath.Join("..", "..", pkg)
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			name := e.Name()
			// What is built for other systems runs unconfined there, and there are no such files.
			if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_windows.go") || strings.HasSuffix(name, "_other.go") {
				continue
			}
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, filepath.Join(dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				in := "var"
				if fn, ok := d.(*ast.FuncDecl); ok {
					in = fn.Name.Name
				}
				ast.Inspect(d, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					if how := opens(call); how != "" {
						key := pkg + "/" + name + " " + in + " " + how
						if used[key] = true; own[key] == "" {
							t.Errorf("%s:\n\t%q: %q,", set.Position(call.Pos()), key, "")
						}
					}
					return true
				})
			}
		}
	}
	for key := range own {
		if !used[key] {
			t.Errorf("%s: is not there any more", key)
		}
	}
}

// TestOneReaderSees: the search finds what it is meant to forbid, and lets pass what it should.
func TestOneReaderSees(t *testing.T) {
	for source, want := range map[string]bool{
		`os.ReadFile(path)`: true, `os.Open(dir + "/x")`: true, `os.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK, 0)`: true, `io.ReadAll(f)`: true,
		`unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)`: true, `os.ReadFile("x/proc/")`: true, `os.DirFS(dir)`: true,
		`os.ReadFile("/proc/" + pid + "/stat")`: false, `os.Open(os.DevNull)`: false, `io.ReadAll(io.LimitReader(f, 3))`: false,
		`unix.Open(path, unix.O_PATH, 0)`: false, `regular.Open(path)`: false,
	} {
		e, err := parser.ParseExpr(source)
		if err != nil {
			t.Fatal(err)
		}
		if got := opens(e.(*ast.CallExpr)) != ""; got != want {
			t.Errorf("%s: %v", source, got)
		}
	}
}
