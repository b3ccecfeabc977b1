package audits

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/quote"
)

// auditEntry is what of a record says how it was decided.
type auditEntry struct {
	ID       string   `json:"id"`
	T        string   `json:"t"`
	Kind     string   `json:"kind"`
	Argv     []string `json:"argv"`
	Cwd      string   `json:"cwd"`
	Session  string   `json:"session,omitempty"`
	Agent    string   `json:"agent,omitempty"`
	Exit     *int     `json:"exit,omitempty"`
	State    string   `json:"state,omitempty"`
	Decision struct {
		Action string   `json:"action"`
		Rules  []string `json:"rules"`
		Steps  []struct {
			Argv      []string                   `json:"argv"`
			Via       []string                   `json:"via,omitempty"`
			SHA256    string                     `json:"sha256"`
			Effects   map[string]json.RawMessage `json:"effects"`
			Resources []json.RawMessage          `json:"resources,omitempty"`
			Rules     []string                   `json:"rules"`
			Lifted    []struct {
				Rule string `json:"rule"`
				By   string `json:"by"`
			} `json:"lifted,omitempty"`
		} `json:"steps"`
		Policy   []json.RawMessage `json:"policy"`
		Profile  string            `json:"profile"`
		Switches []string          `json:"switches"`
	} `json:"decision"`
	Grant map[string]any `json:"grant,omitempty"`
	// Of a run inside another: the parent run, which cannot vouch for what it was told.
	Parent     string   `json:"parent,omitempty"`
	Unverified bool     `json:"unverified,omitempty"`
	Chain      []string `json:"chain,omitempty"`
	Error      *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// listAudit prints one short line for each run.
func listAudit(c *cli.Console, v *cli.Values, dir string) error {
	last := v.IntOf("last")
	var entries []auditEntry
	err := audit.Read(dir, func(line []byte) error {
		var e auditEntry
		if json.Unmarshal(line, &e) != nil || e.Kind == "intent" {
			return nil
		}
		entries = append(entries, e)
		if last > 0 && len(entries) > last {
			entries = entries[1:]
		}
		return nil
	})
	if err != nil {
		return err
	}
	short := []map[string]any{}
	for _, e := range entries {
		m := map[string]any{"id": e.ID, "t": e.T, "kind": e.Kind, "argv": e.Argv, "cwd": e.Cwd, "decision": e.Decision.Action, "rules": e.Decision.Rules}
		if e.Exit != nil {
			m["exit"] = *e.Exit
		}
		if e.Error != nil {
			m["code"] = e.Error.Code
		}
		short = append(short, m)
	}
	return answer.List(c, v, map[string]any{"kind": "atip-exec.audit-list/1", "runs": short}, entries, auditEntry.line, "")
}

func (e auditEntry) line() string {
	outcome := e.Decision.Action
	if e.Error != nil {
		outcome += " " + e.Error.Code
	}
	if e.Kind == "nested" {
		outcome = "nested: " + outcome
	}
	if e.Kind == "killed" {
		outcome = "killed with the wrapper; how it ended is unknown"
	}
	exit := ""
	if e.Exit != nil {
		exit = fmt.Sprintf(" exit %d", *e.Exit)
	}
	return fmt.Sprintf("%.19s  %s  %s%s  %s\n", e.T, e.ID, outcome, exit, answer.Visible(quote.Words(e.Argv)))
}

// whyAudit explains one run from its record alone: what the policies say today may
// be something else.
func whyAudit(c *cli.Console, dir, id string) error {
	var found *auditEntry
	var raw json.RawMessage
	err := audit.Read(dir, func(line []byte) error {
		var e auditEntry
		if json.Unmarshal(line, &e) == nil && e.ID == id {
			found, raw = &e, append(json.RawMessage{}, line...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if found == nil {
		return fault.New(errcode.NoInputFile, "no record "+answer.Visible(id)).WithFix("`atip audit list` has the ids", "atip audit list -n 20")
	}
	return c.Answer(map[string]any{"kind": "atip-exec.audit-why/1", "record": raw}, found.why())
}

func (e auditEntry) why() string {
	var b strings.Builder
	b.WriteString(e.line())
	if e.Error != nil {
		fmt.Fprintf(&b, "  %s\n", answer.Visible(e.Error.Message))
	}
	fmt.Fprintf(&b, "  in %s\n", answer.Visible(e.Cwd))
	for i, s := range e.Decision.Steps {
		fmt.Fprintf(&b, "  step %d  %s\n", i+1, answer.Visible(quote.Words(s.Argv)))
		if len(s.Via) > 0 {
			fmt.Fprintf(&b, "    inside   %s\n", answer.Visible(strings.Join(s.Via, ", ")))
		}
		any := map[string]any{}
		for k := range s.Effects {
			any[k] = nil
		}
		for _, k := range slices.Sorted(maps.Keys(any)) {
			var f struct{ Value, Source string }
			if json.Unmarshal(s.Effects[k], &f) == nil && f.Value != "no" {
				fmt.Fprintf(&b, "    %-16s %s (%s)\n", k, f.Value, answer.Visible(f.Source))
			}
		}
		for _, r := range s.Rules {
			fmt.Fprintf(&b, "    rule     %s\n", r)
		}
		for _, l := range s.Lifted {
			fmt.Fprintf(&b, "    lifted   %s by %s\n", l.Rule, l.By)
		}
	}
	if by, _ := e.Grant["approver"].(string); by != "" {
		fmt.Fprintf(&b, "  permitted by %s, grant %v\n", answer.Visible(by), e.Grant["id"])
	}
	fmt.Fprintf(&b, "  profile %s, switches %s\n", e.Decision.Profile, strings.Join(e.Decision.Switches, " "))
	for _, p := range e.Decision.Policy {
		var s struct{ Layer, File, SHA256 string }
		if json.Unmarshal(p, &s) == nil {
			fmt.Fprintf(&b, "  policy %s %s %.12s\n", s.Layer, answer.Visible(s.File), s.SHA256)
		}
	}
	return b.String()
}
