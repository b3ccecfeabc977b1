package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/run"
)

func auditVerb(c *cli.Console, v *cli.Values) (int, error) {
	dirs, err := place.DirsFromEnv(os.Getenv, "")
	if err != nil {
		return 0, fault.New("E1005", err.Error())
	}
	dir := filepath.Join(dirs.State, "audit")
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return 0, fault.New("E1005", "no audit log at "+dir+": nothing has run yet, or it was removed").With("directory", dir).WithFix("run something first", "atip-exec -- true")
	}
	switch {
	case len(v.Rest) == 1 && v.Rest[0] == "show":
		return 0, showAudit(c, dir, v.IntOf("last"))
	case len(v.Rest) == 1 && v.Rest[0] == "verify":
		return verifyAudit(c, dir)
	case len(v.Rest) == 1 && v.Rest[0] == "list":
		return 0, listAudit(c, dir, v.IntOf("last"))
	case len(v.Rest) == 1 && v.Rest[0] == "report":
		return reportAudit(c, dir, v)
	case len(v.Rest) == 2 && v.Rest[0] == "why":
		return 0, whyAudit(c, dir, v.Rest[1])
	}
	return 0, fault.New("E1004", "audit: say list, why ID, show, verify or report").WithFix("say which", "atip audit verify")
}

func showAudit(c *cli.Console, dir string, last int) error {
	var lines [][]byte
	err := audit.Read(dir, func(line []byte) error {
		lines = append(lines, append([]byte{}, line...))
		if last > 0 && len(lines) > last {
			lines = lines[1:]
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, line := range lines {
		if c.Documents() {
			if err := c.Text(string(line) + "\n"); err != nil {
				return err
			}
			continue
		}
		if err := c.Text(auditLine(line)); err != nil {
			return err
		}
	}
	return nil
}

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
	}
	if json.Unmarshal(line, &r) != nil {
		return "?  " + string(line) + "\n"
	}
	outcome := r.Decision.Action
	if r.Exit != nil {
		outcome += fmt.Sprintf(", exit %d", *r.Exit)
	}
	if r.Error != nil {
		outcome += " " + r.Error.Code
	}
	return fmt.Sprintf("%s  %s  %-7s  %s  (%s)  %s\n", r.T, r.ID, r.Kind, run.Quote(r.Argv), outcome, strings.Join(r.Decision.Rules, " "))
}

func verifyAudit(c *cli.Console, dir string) (int, error) {
	sum, err := audit.Verify(dir)
	if err != nil {
		return 0, err
	}
	status := 0
	if !sum.OK() {
		status = 65
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
