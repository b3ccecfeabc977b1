package tools

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/run"
)

// reported is what a report says of one run.
type reported struct {
	auditEntry
	Timing struct {
		RunMS int64 `json:"run_ms"`
	} `json:"timing"`
}

func (r *reported) code() string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// refused reports that nothing ran because a decision said so.
func (r *reported) refused() bool {
	return r.State == "refused" || r.Exit != nil && r.code() != "" && *r.Exit == 77
}

// failed reports a run that did not end well, whoever's fault it was.
func (r *reported) failed() bool { return r.code() != "" || r.Exit != nil && *r.Exit != 0 }

func (r *reported) command() string { return run.Quote(r.Argv) }

func (r *reported) message() string {
	switch {
	case r.Error != nil:
		return r.Error.Message
	case r.Exit != nil:
		return fmt.Sprintf("exit status %d", *r.Exit)
	}
	return ""
}

// reportAudit writes the runs of a job in a form that CI systems show.
func reportAudit(c *cli.Console, dir string, v *cli.Values) (int, error) {
	var all []reported
	since := time.Time{}
	if d := v.DurationOf("since"); d > 0 {
		since = time.Now().Add(-d)
	}
	last := v.IntOf("last")
	err := audit.Read(dir, func(line []byte) error {
		var r reported
		if json.Unmarshal(line, &r) != nil || r.Kind != "run" && r.Kind != "refused" && r.Kind != "nested" {
			return nil
		}
		if at, err := time.Parse(time.RFC3339Nano, r.T); err != nil || at.Before(since) {
			return nil
		}
		all = append(all, r)
		if last > 0 && len(all) > last {
			all = all[1:]
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	var out string
	switch v.Get("format") {
	case "sarif":
		out, err = sarifReport(all)
	case "markdown":
		out = markdownReport(all)
	default:
		out, err = junitReport(all)
	}
	if err != nil {
		return 0, fault.New(errcode.Internal, "report: "+err.Error())
	}
	status := 0
	for i := range all {
		if all[i].refused() && v.Has("fail-on") || all[i].failed() && v.Get("fail-on") == "failed" {
			status = 65
		}
	}
	return status, c.Text(out)
}

type junitSuites struct {
	XMLName xml.Name   `xml:"testsuites"`
	Suite   junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitTrouble `xml:"failure,omitempty"`
	Error   *junitTrouble `xml:"error,omitempty"`
}

type junitTrouble struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junitReport makes a test case of each run: a refusal and a failed command are
// failures, a failure of our own is an error.
func junitReport(all []reported) (string, error) {
	s := junitSuite{Name: "atip-exec", Tests: len(all), Cases: []junitCase{}}
	var total int64
	for i := range all {
		r := &all[i]
		total += r.Timing.RunMS
		one := junitCase{Class: "atip-exec." + r.Decision.Action, Name: r.command(), Time: seconds(r.Timing.RunMS)}
		trouble := &junitTrouble{Type: r.code(), Message: r.message(), Text: "rules: " + strings.Join(r.Decision.Rules, ", ") + "\nin " + r.Cwd + "\naudit " + r.ID}
		switch {
		case r.refused():
			one.Failure, s.Failures = trouble, s.Failures+1
		case r.Error != nil:
			one.Error, s.Errors = trouble, s.Errors+1
		case r.failed():
			trouble.Type = "exit"
			one.Failure, s.Failures = trouble, s.Failures+1
		}
		s.Cases = append(s.Cases, one)
	}
	s.Time = seconds(total)
	out, err := xml.MarshalIndent(junitSuites{Suite: s}, "", " ")
	return xml.Header + string(out) + "\n", err
}

func seconds(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }

// sarifReport makes a result of each refusal, under the rule that was decisive (SARIF
// 2.1.0). The format has no place for a command, so it is a logical location; the
// directory stands where a reader expects a file.
func sarifReport(all []reported) (string, error) {
	results, rules, seen := []any{}, []any{}, map[string]bool{}
	for i := range all {
		r := &all[i]
		if !r.refused() {
			continue
		}
		id := r.code()
		if len(r.Decision.Rules) > 0 {
			id = r.Decision.Rules[0]
		}
		if !seen[id] {
			seen[id] = true
			rules = append(rules, map[string]any{"id": id, "name": id, "shortDescription": map[string]any{"text": "refused by " + id}})
		}
		level := "error"
		if r.Decision.Action == "confirm" {
			level = "warning"
		}
		results = append(results, map[string]any{"ruleId": id, "level": level, "kind": "fail", "message": map[string]any{"text": r.message()},
			"locations": []any{map[string]any{
				"physicalLocation": map[string]any{"artifactLocation": map[string]any{"uri": "file://" + filepath.ToSlash(uriPath(r.Cwd))}},
				"logicalLocations": []any{map[string]any{"name": r.command(), "kind": "command"}}}},
			"partialFingerprints": map[string]any{"command/v1": id + " " + r.command()},
			"properties":          map[string]any{"audit": r.ID, "code": r.code(), "rules": r.Decision.Rules}})
	}
	doc := map[string]any{"version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "runs": []any{map[string]any{
		"tool":    map[string]any{"driver": map[string]any{"name": "atip-exec", "version": cli.Version, "informationUri": "https://github.com/atip-dev/atip-exec", "rules": rules}},
		"results": results}}}
	out, err := json.MarshalIndent(doc, "", " ")
	return string(out) + "\n", err
}

// uriPath escapes what a URI must not hold.
func uriPath(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if c := path[i]; c == '/' || c == '-' || c == '.' || c == '_' || c == '~' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// markdownReport is a table for the summary of a job.
func markdownReport(all []reported) string {
	var b strings.Builder
	refused, failed := 0, 0
	cell := strings.NewReplacer("|", "\\|", "`", "'", "\n", " ", "\r", " ")
	var rows strings.Builder
	for i := range all {
		r := &all[i]
		switch {
		case r.refused():
			refused++
			fmt.Fprintf(&rows, "| refused | `%s` | %s | %s |\n", cell.Replace(r.command()), r.code(), cell.Replace(strings.Join(r.Decision.Rules, " ")))
		case r.failed():
			failed++
			fmt.Fprintf(&rows, "| failed | `%s` | %s | |\n", cell.Replace(r.command()), cell.Replace(r.message()))
		}
	}
	fmt.Fprintf(&b, "**atip-exec**: %d commands, %d refused, %d failed\n", len(all), refused, failed)
	if rows.Len() > 0 {
		b.WriteString("\n| | command | why | rules |\n|---|---|---|---|\n" + rows.String())
	}
	return b.String()
}
