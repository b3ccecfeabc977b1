package plan

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// values are the types of the six values of a plan.
var values = []string{"Place", "Rules", "Reading", "Decision", "Confinement", "Env"}

// makers are the functions that put whole values into a plan: the five stages that make them, and
// those that make a plan out of values of another.
var makers = map[string]string{
	"Plan.settle":         "Place Rules",
	"Plan.identify":       "Reading",
	"Plan.decide":         "Decision",
	"Plan.confine":        "Confinement Env",
	"Plan.Below":          "Place Rules",
	"judging.alone":       "Place Rules",
	"Batch.ending":        "Place Rules",
	"Judge.settle":        "Place Rules",
	"NewImagination":      "Place Rules",
	"Imagination.Request": "Place Reading Rules",
}

// TestValuesAreMadeOnce: a value of a plan is assigned whole, where it is made, and no field of it is
// assigned through the plan, so that what an approval binds, the plan document, the record and the
// status all show the same.
func TestValuesAreMadeOnce(t *testing.T) {
	set := token.NewFileSet()
	own, found := writes(t, set, ".", "plan", nil)
	_, outside := writes(t, set, filepath.Join("..", "run"), "run", own)
	maps.Copy(found, outside)
	for name, got := range found {
		slices.Sort(got)
		if is := strings.Join(slices.Compact(got), " "); is != makers[name] {
			t.Errorf("%s assigns %q of a plan, may assign %q", name, is, makers[name])
		}
	}
	for name := range makers {
		if found[name] == nil {
			t.Errorf("%s assigns no value: take it off the list", name)
		}
	}
}

// writes lists by function which values of a plan a package assigns. "Place.Cwd" is an assignment to
// a field.
func writes(t *testing.T, set *token.FileSet, dir, name string, known *types.Package) (*types.Package, map[string][]string) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, path := range names {
		built, err := build.Default.MatchFile(dir, filepath.Base(path))
		if err != nil {
			t.Fatal(err)
		}
		if !built || strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	config := types.Config{Importer: only{known}, Error: func(error) {}} // what other packages hold is not known here, and not needed
	pkg, _ := config.Check(module+"/internal/"+name, set, files, info)
	found := map[string][]string{}
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				var to []ast.Expr
				switch n := n.(type) {
				case *ast.AssignStmt:
					to = n.Lhs
				case *ast.IncDecStmt:
					to = []ast.Expr{n.X}
				case *ast.UnaryExpr:
					if n.Op == token.AND {
						to = []ast.Expr{n.X}
					}
				}
				for _, e := range to {
					if v := written(info, e); v != "" {
						found[function(f)] = append(found[function(f)], v)
					}
				}
				return true
			})
		}
	}
	return pkg, found
}

const module = "github.com/atip-dev/atip-exec"

// only imports one package.
type only struct{ known *types.Package }

func (o only) Import(path string) (*types.Package, error) {
	if o.known != nil && path == o.known.Path() {
		return o.known, nil
	}
	empty := types.NewPackage(path, filepath.Base(path))
	empty.MarkComplete()
	return empty, nil
}

func function(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	return t.(*ast.Ident).Name + "." + f.Name.Name
}

// written is the value of a plan that an assignment to e changes, with a dot behind it if only part
// of it, "" for none.
func written(info *types.Info, e ast.Expr) string {
	part := false
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e, part = x.X, true
		case *ast.SliceExpr:
			e, part = x.X, true
		case *ast.StarExpr:
			e, part = x.X, true
		case *ast.ParenExpr:
			e = x.X
		case *ast.SelectorExpr:
			sel := info.Selections[x]
			if sel == nil { // a type of another package
				e, part = x.X, true
				continue
			}
			inPlan, at := namedType(sel.Recv()) == "Plan", sel.Recv()
			for i, index := range sel.Index() {
				s, ok := underlying(at).(*types.Struct)
				if !ok || sel.Kind() != types.FieldVal {
					break
				}
				field := s.Field(index)
				if inPlan && slices.Contains(values, field.Name()) {
					if part || i < len(sel.Index())-1 {
						return field.Name() + "."
					}
					return field.Name()
				}
				at = field.Type()
				inPlan = namedType(at) == "Plan"
			}
			e, part = x.X, true
		default:
			return ""
		}
	}
}

func underlying(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	return t.Underlying()
}

func namedType(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}
