package audits

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/quote"
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

func (r *reported) command() string { return quote.Words(r.Argv) }

func (r *reported) message() string {
	switch {
	case r.Error != nil:
		return r.Error.Message
	case r.Exit != nil:
		return fmt.Sprintf("exit status %d", *r.Exit)
	}
	return ""
}

// reportAudit writes the runs of a job in a form that CI systems show, or as a page for
// people. A report of a broken chain says so, and its status is that of `audit verify`.
func reportAudit(c *cli.Console, dir string, v *cli.Values) (int, error) {
	at, err := audit.Take(dir)
	if err != nil {
		return 0, err
	}
	var sum audit.Summary
	status := 0
	if v.Get("format") == "html" {
		sum, status, err = htmlReport(c, at, v)
	} else {
		sum, status, err = textReport(c, at, v)
	}
	if err != nil {
		return 0, err
	}
	if !sum.OK() {
		c.Warn("the chain of audit records is broken at " + sum.Broken[0].File + ":" + strconv.Itoa(sum.Broken[0].Line) + ": do not rely on this report; `atip audit verify` lists the places")
		return brokenStatus, nil
	}
	return status, nil
}

// selection is which runs a report is about.
type selection struct {
	since   time.Time
	session string
	has     bool // a session was given
}

func selectionOf(v *cli.Values, now time.Time) selection {
	s := selection{session: v.Get("session"), has: v.Has("session")}
	if d := v.DurationOf("since"); d > 0 {
		s.since = now.Add(-d)
	}
	return s
}

func (s selection) includes(at, session string) bool {
	t, err := time.Parse(time.RFC3339Nano, at)
	return err == nil && !t.Before(s.since) && (!s.has || session == s.session)
}

// failing reports a run for which --fail-on ends with a status of its own.
func (r *reported) failing(v *cli.Values) bool {
	return r.refused() && v.Has("fail-on") || r.failed() && v.Get("fail-on") == "failed"
}

func textReport(c *cli.Console, at audit.Snapshot, v *cli.Values) (audit.Summary, int, error) {
	var all []reported
	wanted, last := selectionOf(v, time.Now()), v.IntOf("last")
	sum, err := at.Verify(func(line []byte) error {
		var r reported
		if json.Unmarshal(line, &r) != nil || r.Kind != "run" && r.Kind != "refused" && r.Kind != "nested" || !wanted.includes(r.T, r.Session) {
			return nil
		}
		all = append(all, r)
		if last > 0 && len(all) > last {
			all = all[1:]
		}
		return nil
	})
	if err != nil {
		return sum, 0, err
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
		return sum, 0, fault.New(errcode.Internal, "report: "+err.Error())
	}
	status := 0
	for i := range all {
		if all[i].failing(v) {
			status = brokenStatus
		}
	}
	return sum, status, put(c, v, func(w io.Writer) error {
		_, err := io.WriteString(w, cli.Printable(out))
		return err
	})
}

// put writes a report to standard output, or to the file that was named, whole or not at all.
func put(c *cli.Console, v *cli.Values, write func(io.Writer) error) error {
	name := v.Get("report-file")
	if name == "" {
		out := bufio.NewWriter(c.Out)
		if err := errors.Join(write(out), out.Flush()); err != nil {
			return fault.New(errcode.OutputWrite, "stdout: "+err.Error())
		}
		return nil
	}
	failed := func(err error) error {
		return fault.New(errcode.OutputWrite, "the report cannot be written: "+err.Error()).With("file", name).WithFix("name a file in a directory that you can write, with room for it", "atip audit report --format html --report-file report.html")
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return failed(&fs.PathError{Op: "write", Path: name, Err: errors.New("not a regular file")})
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".atip-report-*") // 0600
	if err != nil {
		return failed(err)
	}
	out := bufio.NewWriter(f)
	err = errors.Join(write(out), out.Flush(), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
		return failed(err)
	}
	return nil
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
