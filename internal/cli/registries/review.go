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
	return review(c, v, "lint", "clean", func(r *reviewed) (bool, error) {
		d, err := answer.ReadDocument(r.File)
		if err != nil {
			return false, err
		}
		r.Findings = d.Lint()
		return len(r.Findings) == 0, nil
	}, func(f atip.Finding) string {
		return fmt.Sprintf("%s %s (%s)\n", f.Code, answer.Plain(f.Message), answer.Plain(f.Pointer))
	})
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
	end := ""
	if len(changes) == 0 {
		end = "no difference\n"
	}
	return status, answer.List(c, v, map[string]any{"kind": "atip-exec.diff/1", "ok": status == 0, "changes": changes}, changes, func(x atip.Change) string {
		name := strings.Join(append([]string{to.Name()}, x.Path...), " ")
		return fmt.Sprintf("%-8s  %s: %s\n", x.Class, answer.Plain(name), answer.Plain(x.Message))
	}, end)
}
