package registries

import (
	"fmt"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// LintVerb is `atip lint`.
func LintVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) == 0 {
		return 0, fault.New(errcode.Arguments, "lint needs a file").WithFix("name a document", "atip lint mytool.json")
	}
	type result struct {
		File     string         `json:"file"`
		Findings []atip.Finding `json:"findings"`
		LeftOut  int            `json:"left_out,omitempty"`
	}
	results, status := []result{}, 0
	for _, file := range v.Rest {
		d, err := answer.ReadDocument(file)
		if err != nil {
			return 0, err
		}
		r := result{File: file, Findings: d.Lint()}
		if r.Findings == nil {
			r.Findings = []atip.Finding{}
		}
		if len(r.Findings) > 0 {
			status = 65
		}
		r.Findings, r.LeftOut = answer.Most(v, r.Findings)
		results = append(results, r)
	}
	if c.Documents() {
		return status, c.Document(map[string]any{"kind": "atip-exec.lint/1", "ok": status == 0, "files": results})
	}
	results, left := answer.Most(v, results)
	for _, r := range results {
		for _, f := range r.Findings {
			if err := c.Text(fmt.Sprintf("%s:%d:%d: %s %s (%s)\n", r.File, f.Line, f.Col, f.Code, answer.Plain(f.Message), answer.Plain(f.Pointer))); err != nil {
				return status, err
			}
		}
		end := answer.LeftOutLine(r.LeftOut)
		if len(r.Findings) == 0 {
			end = r.File + ": clean\n"
		}
		if err := c.Text(end); err != nil {
			return status, err
		}
	}
	return status, c.Text(answer.LeftOutLine(left))
}

// DiffVerb compares two documents. Its status says whether a change is of a class
// that --fail-on names.
func DiffVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) != 2 {
		return 0, fault.New(errcode.Arguments, "diff needs two documents").WithFix("name the old one and the new one", "atip diff old.json new.json")
	}
	fail := map[string]bool{}
	for _, list := range v.All("fail-on") {
		for class := range strings.SplitSeq(list, ",") {
			switch class {
			case atip.ChangeDanger, atip.ChangeLoosened, atip.ChangeSurface, atip.ChangeText:
				fail[class] = true
			default:
				return 0, fault.New(errcode.FlagValue, fmt.Sprintf("--fail-on: %q is not danger, loosened, surface or text", class)).WithFix("name classes of changes", "--fail-on danger,loosened")
			}
		}
	}
	from, err := answer.ReadDocument(v.Rest[0])
	if err != nil {
		return 0, err
	}
	to, err := answer.ReadDocument(v.Rest[1])
	if err != nil {
		return 0, err
	}
	changes, status := atip.Diff(from, to), 0
	if changes == nil {
		changes = []atip.Change{}
	}
	for _, x := range changes {
		if fail[x.Class] {
			status = 65
		}
	}
	if c.Documents() {
		return status, c.Document(map[string]any{"kind": "atip-exec.diff/1", "ok": status == 0, "changes": changes})
	}
	changes, left := answer.Most(v, changes)
	for _, x := range changes {
		name := strings.Join(append([]string{to.Name()}, x.Path...), " ")
		if err := c.Text(fmt.Sprintf("%-8s  %s: %s\n", x.Class, answer.Plain(name), answer.Plain(x.Message))); err != nil {
			return status, err
		}
	}
	if len(changes) == 0 {
		return status, c.Text("no difference\n")
	}
	return status, c.Text(answer.LeftOutLine(left))
}
