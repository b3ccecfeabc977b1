// Command readers says how many rows of the corpus each reader of internal/effects and internal/step buys: it leaves
// one function after the other empty and counts the rows that are then decided otherwise than
// their label accepts. With names as arguments it tries only those.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/corpus"
	"github.com/atip-dev/atip-exec/internal/plan"
)

var read = [...]string{"internal/effects", "internal/step"}

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == "-decisions" {
		err = decisions(os.Stdout)
	} else {
		err = ablate(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// decisions prints each row with what is decided on it, and whether its label accepts that.
func decisions(out *os.File) error {
	rows, err := corpus.Read(filepath.Join("testdata", "commands"), "*")
	if err != nil {
		return err
	}
	w, err := corpus.NewWorld()
	if err != nil {
		return err
	}
	defer w.Remove()
	m := caller.Here()
	m.Homes, m.Environ = []string{"/"}, w.Environ()
	judge := plan.NewJudge(m, nil)
	b := bufio.NewWriter(out)
	defer b.Flush()
	for i := range rows {
		r := &rows[i]
		q := plan.Question{Argv: r.Argv, Cwd: filepath.Join(w.Dir, r.Cwd), Env: r.Env}
		if r.Cmd != nil {
			q.Cmd = *r.Cmd
		}
		by := judge
		if len(r.Files) > 0 {
			undo, err := w.Place(r)
			if err != nil {
				return err
			}
			by = plan.NewJudge(m, nil)
			fmt.Fprintln(b, answer(r, by.Decide(q)))
			undo()
			continue
		}
		fmt.Fprintln(b, answer(r, by.Decide(q)))
	}
	return nil
}

func answer(r *corpus.Row, v plan.Verdict) string {
	decision := "deny"
	if v.Err == nil {
		decision = v.Action.String()
	}
	return fmt.Sprint(r.ID, " ", decision, " ", decision == r.Decision || slices.Contains(r.Acceptable, decision), " ", r.Decision)
}

// reader is a function that looks at a step.
type reader struct {
	name, file string
	lines      int
	text       []byte // the file with the function left empty
}

// readers are the methods and functions that are given a step and answer with nothing, or with
// what their zero value says: nothing was found.
func readers(only []string) ([]reader, error) {
	var files []string
	for _, dir := range read {
		in, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return nil, err
		}
		files = append(files, in...)
	}
	var out []reader
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, raw, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || len(only) > 0 && !slices.Contains(only, fn.Name.Name) {
				continue
			}
			text := func(n ast.Node) string {
				return string(raw[fset.Position(n.Pos()).Offset:fset.Position(n.End()).Offset])
			}
			signature := text(fn.Type)
			if !strings.Contains(signature, "*Step") && !strings.Contains(signature, "*step.Step") && (fn.Recv == nil || !strings.Contains(text(fn.Recv), "links")) {
				continue
			}
			body, zero := "", []string{}
			if fn.Type.Results != nil {
				n := 0
				for _, r := range fn.Type.Results.List {
					for range max(1, len(r.Names)) {
						body += fmt.Sprintf("var zero%d %s; ", n, text(r.Type))
						zero = append(zero, fmt.Sprint("zero", n))
						n++
					}
				}
			}
			from, to := fset.Position(fn.Body.Lbrace).Offset, fset.Position(fn.Body.Lbrace).Offset+1
			empty := slices.Concat(raw[:from], []byte("{ if len(\"x\") == 1 { "+body+"return "+strings.Join(zero, ", ")+" }\n"), raw[to:])
			if empty, err = format.Source(empty); err != nil {
				return nil, fmt.Errorf("%s: %w", fn.Name.Name, err)
			}
			out = append(out, reader{name: fn.Name.Name, file: file, lines: fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1, text: empty})
		}
	}
	return out, nil
}

func ablate(only []string) error {
	list, err := readers(only)
	if err != nil {
		return err
	}
	whole, err := decide("")
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "readers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	fmt.Println("  buys  allows  asks  costs  lines  reader")
	for _, r := range list {
		replaced, overlay := filepath.Join(scratch, "file.go"), filepath.Join(scratch, "overlay.json")
		abs, err := filepath.Abs(r.file)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(map[string]any{"Replace": map[string]string{abs: replaced}})
		if err != nil {
			return err
		}
		if err := os.WriteFile(replaced, r.text, 0o600); err != nil {
			return err
		}
		if err := os.WriteFile(overlay, raw, 0o600); err != nil {
			return err
		}
		without, err := decide(overlay)
		if err != nil {
			fmt.Printf("%6s %7s %5s %6s %6d  %s (%s): %v\n", "-", "-", "-", "-", r.lines, r.name, filepath.Base(r.file), err)
			continue
		}
		buys, allows, asks, costs := 0, 0, 0, 0
		for _, id := range slices.Sorted(maps.Keys(whole)) {
			with, then := whole[id], without[id]
			switch {
			case with.right && !then.right:
				buys++
				if then.decision == "allow" {
					allows++ // something dangerous would run
				} else {
					asks++
				}
			case !with.right && then.right:
				costs++
			}
		}
		fmt.Printf("%6d %7d %5d %6d %6d  %s (%s)\n", buys, allows, asks, costs, r.lines, r.name, filepath.Base(r.file))
	}
	return nil
}

type decided struct {
	decision string
	right    bool
}

// decide runs this program's other half, with some files replaced.
func decide(overlay string) (map[string]decided, error) {
	words := []string{"run"}
	if overlay != "" {
		words = append(words, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(words, "./scripts/readers", "-decisions")...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		first, _, _ := strings.Cut(problems.String(), "\n")
		return nil, fmt.Errorf("%w: %s", err, first)
	}
	all := map[string]decided{}
	for line := range strings.Lines(out.String()) {
		f := strings.Fields(line)
		if len(f) == 4 {
			all[f[0]] = decided{f[1], f[2] == "true"}
		}
	}
	return all, nil
}
