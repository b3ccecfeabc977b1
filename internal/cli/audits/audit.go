// Package audits holds `atip audit`: the records, why one was decided so, and the report as a page.
package audits

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/undo"
)

// Verb is `atip audit`.
func Verb(c *cli.Console, v *cli.Values) (int, error) {
	dirs, err := caller.Here().Dirs()
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(dirs.State, "audit")
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return 0, fault.New(errcode.NoInputFile, "no audit log at "+dir+": nothing has run yet, or it was removed").With("directory", dir).WithFix("run something first", "atip-exec -- true")
	}
	switch {
	case len(v.Rest) == 1 && v.Rest[0] == "show":
		return 0, showAudit(c, v, dir)
	case len(v.Rest) == 1 && v.Rest[0] == "verify":
		return verifyAudit(c, dir)
	case len(v.Rest) == 1 && v.Rest[0] == "list":
		return 0, listAudit(c, v, dir)
	case len(v.Rest) == 1 && v.Rest[0] == "report":
		return reportAudit(c, dir, v)
	case len(v.Rest) == 2 && v.Rest[0] == "why":
		return 0, whyAudit(c, dir, v.Rest[1])
	}
	return 0, fault.New(errcode.Arguments, "audit: say list, why ID, show, verify or report").WithFix("say which", "atip audit verify")
}

// showAudit prints the end of the log: as it is for machines, and for people without the
// intents of runs whose own record is there.
func showAudit(c *cli.Console, v *cli.Values, dir string) error {
	last := v.IntOf("last")
	type entry struct {
		ID, Kind string
		line     []byte
	}
	var list []*entry
	open := map[string]*entry{} // intents without a record
	err := audit.Read(dir, func(line []byte) error {
		e := &entry{line: append([]byte{}, line...)}
		if !c.Documents() {
			_ = json.Unmarshal(line, e) // what is no record is shown as it is
			if began := open[strings.TrimSuffix(e.ID, "-killed")+"-intent"]; began != nil {
				began.line = nil
				delete(open, began.ID)
			}
			if e.Kind == "intent" {
				open[e.ID] = e
			}
		}
		if list = append(list, e); last > 0 && len(list) > last+heldIntents {
			list = list[1:]
		}
		return nil
	})
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(e *entry) bool { return e.line == nil })
	if last > 0 && len(list) > last {
		list = list[len(list)-last:]
	}
	list, left := answer.Most(v, list)
	l := answer.ListingOf(c, v)
	if l != nil && len(l.Fields) > 0 {
		var lines [][]byte
		for _, e := range list {
			lines = append(lines, e.line)
		}
		return l.Records(lines, left, auditEntry{})
	}
	for _, e := range list {
		text := string(e.line) + "\n"
		if !c.Documents() {
			text = auditLine(e.line)
		}
		if err := c.Text(text); err != nil {
			return err
		}
	}
	if l != nil {
		return l.Rest(left)
	}
	return nil
}

// heldIntents is how many lines are kept beyond those to be shown, for the intents among them.
const heldIntents = 1024

// auditLine renders one record for people; a line that is not a record is shown
// as it is, because hiding it would hide damage.
func auditLine(line []byte) string {
	var r struct {
		ID, Kind, T string
		Argv        []string
		Cwd         string
		Exit        *int
		Decision    struct {
			Action string
			Rules  []string
		}
		Error *struct{ Code string }
		Undo  struct{ Changed *undo.Counts }
	}
	if json.Unmarshal(line, &r) != nil {
		return "?  " + string(line) + "\n"
	}
	var outcome []string
	if r.Decision.Action != "" {
		outcome = append(outcome, r.Decision.Action)
	}
	if r.Exit != nil {
		outcome = append(outcome, fmt.Sprintf("exit %d", *r.Exit))
	}
	if r.Error != nil {
		outcome = append(outcome, r.Error.Code)
	}
	if r.Undo.Changed != nil {
		outcome = append(outcome, "changed "+answer.UndoCounts(r.Undo.Changed))
	}
	text := fmt.Sprintf("%s  %s  %-7s  %s", r.T, r.ID, r.Kind, quote.Words(r.Argv))
	if len(outcome) > 0 {
		text += "  (" + strings.Join(outcome, ", ") + ")"
	}
	if len(r.Decision.Rules) > 0 {
		text += "  " + strings.Join(r.Decision.Rules, " ")
	}
	return text + "\n"
}

// brokenStatus is the status of a verdict: the chain is broken, or a run was refused or
// failed where that was to be told.
const brokenStatus = 65

func verifyAudit(c *cli.Console, dir string) (int, error) {
	sum, err := audit.Verify(dir)
	if err != nil {
		return 0, err
	}
	status := 0
	if !sum.OK() {
		status = brokenStatus
	}
	if c.Documents() {
		return status, c.Document(map[string]any{"kind": "atip-exec.audit/1", "ok": sum.OK(), "summary": sum})
	}
	if sum.OK() {
		return 0, c.Text(fmt.Sprintf("the chain holds: %d records in %d files, %d torn lines acknowledged\n", sum.Records, sum.Files, sum.Torn))
	}
	for _, b := range sum.Broken {
		if err := c.Text(fmt.Sprintf("%s:%d: %s\n", b.File, b.Line, b.Why)); err != nil {
			return status, err
		}
	}
	return status, nil
}
