// Crossvet runs the analyzers of `go vet` on packages of this module for systems whose programs
// are not needed: `go vet` would compile what they depend on, the standard library included.
//
//	crossvet GOOS/GOARCH… -- PACKAGE…
//
// What they depend on is read as source. Of what is not ours only declarations are, once for
// all systems that share the file; whether its functions are well typed is not ours to say.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

func main() {
	at := slices.Index(os.Args, "--")
	if at < 2 {
		fmt.Fprintln(os.Stderr, "usage: crossvet GOOS/GOARCH… -- PACKAGE…")
		os.Exit(64)
	}
	r := reader{fset: token.NewFileSet(), files: map[string]*file{}}
	for _, target := range os.Args[1:at] {
		fmt.Println(target)
		if err := r.vet(target, os.Args[at+1:]); err != nil {
			fmt.Fprintln(os.Stderr, "crossvet:", target+":", err)
			os.Exit(1)
		}
	}
}

// reader keeps what was read of the files, for all systems.
type reader struct {
	fset  *token.FileSet
	mu    sync.Mutex
	files map[string]*file
}

type file struct {
	once sync.Once
	ast  *ast.File
	err  error
}

func (r *reader) read(name string) (*ast.File, error) {
	r.mu.Lock()
	f := r.files[name]
	if f == nil {
		f = &file{}
		r.files[name] = f
	}
	r.mu.Unlock()
	f.once.Do(func() {
		f.ast, f.err = parser.ParseFile(r.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	})
	return f.ast, f.err
}

func (r *reader) vet(target string, patterns []string) error {
	goos, goarch, _ := strings.Cut(target, "/")
	pkgs, err := packages.Load(&packages.Config{
		Mode:  packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypesSizes | packages.NeedModule,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		Tests: true,
	}, patterns...)
	if err != nil {
		return err
	}
	var order []*packages.Package
	packages.Visit(pkgs, nil, func(p *packages.Package) { order = append(order, p) })
	done := make(map[*packages.Package]chan struct{}, len(order))
	for _, p := range order {
		done[p] = make(chan struct{})
	}
	var group errgroup.Group
	group.SetLimit(2 * runtime.GOMAXPROCS(0))
	for _, p := range order { // imports stand before what imports them, so that none waits for a place
		group.Go(func() error {
			defer close(done[p])
			for _, dep := range p.Imports {
				<-done[dep]
			}
			return r.check(p)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, p := range order { // nothing is looked for in what is not ours
		for path, dep := range p.Imports {
			if !ours(dep) {
				delete(p.Imports, path)
			}
		}
	}
	graph, err := checker.Analyze(vet.Suite, slices.DeleteFunc(pkgs, func(p *packages.Package) bool { return !ours(p) }), nil)
	if err != nil {
		return err
	}
	return found(graph)
}

// ours reports a package of this module.
func ours(p *packages.Package) bool { return p.Module != nil && p.Module.Main && len(p.Syntax) > 0 }

func (r *reader) check(p *packages.Package) error {
	for _, e := range p.Errors {
		return e
	}
	p.Fset = r.fset
	if p.PkgPath == "unsafe" {
		p.Types = types.Unsafe
		return nil
	}
	for _, name := range p.CompiledGoFiles {
		f, err := r.read(name)
		if err != nil {
			return err
		}
		p.Syntax = append(p.Syntax, f)
	}
	if ours(p) {
		p.TypesInfo = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{},
			Instances: map[*ast.Ident]types.Instance{}, Scopes: map[ast.Node]*types.Scope{}, Selections: map[*ast.SelectorExpr]*types.Selection{}, FileVersions: map[*ast.File]string{}}
	}
	c := types.Config{IgnoreFuncBodies: !ours(p), Sizes: p.TypesSizes, Importer: importer(p.Imports)}
	if p.Module != nil && p.Module.GoVersion != "" {
		c.GoVersion = "go" + p.Module.GoVersion
	}
	p.Types = types.NewPackage(p.PkgPath, p.Name)
	return types.NewChecker(&c, r.fset, p.Types, p.TypesInfo).Files(p.Syntax)
}

// importer finds what a package imports among what is checked already.
type importer map[string]*packages.Package

func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if p := i[path]; p != nil && p.Types != nil {
		return p.Types, nil
	}
	return nil, errors.New("no package " + path)
}

// found prints what was found, and is an error if that is anything.
func found(graph *checker.Graph) error {
	var err error
	for _, action := range graph.Roots {
		if action.Err != nil {
			err = action.Err
		}
		for _, d := range action.Diagnostics {
			fmt.Println(action.Package.Fset.Position(d.Pos).String() + ": " + d.Message)
			err = errors.New("something was found")
		}
	}
	return err
}
