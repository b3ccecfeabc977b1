//go:build unix

package day

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Label is what a row deserves, fixed before its first run.
type Label string

const (
	Same Label = "same" // must run as without the wrapper
	Ask  Label = "ask"  // deserves a question or a denial
)

// Row is one command string as an agent would type it.
type Row struct {
	About   string // what rows near it are about
	Project string
	Label   Label
	Text    string
}

// theDay is all rows.
func theDay(t *testing.T) []Row {
	t.Helper()
	f, err := os.Open("testdata/rows.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []Row
	for d := json.NewDecoder(f); d.More(); {
		var r Row
		if err := d.Decode(&r); err != nil || r.Label != Same && r.Label != Ask {
			t.Fatalf("row %d: %v, label %q", len(rows)+1, err, r.Label)
		}
		rows = append(rows, r)
	}
	return rows
}

// Outcome is what became of a wrapped row.
type Outcome string

const (
	RanSame Outcome = "same"   // as without the wrapper
	Asked   Outcome = "asked"  // a person would have been asked
	Denied  Outcome = "denied" // refused without a question
	Broken  Outcome = "broken" // ran, with another result
	Held    Outcome = "held"   // deserves a question, got none, and failed: the sandbox kept it from what it was about
	Ran     Outcome = "ran"    // deserves a question and got none
)

// Result is a row and what became of it.
type Result struct {
	Row
	Outcome Outcome
	Why     string // of a question, a denial or a difference
}

// Good reports whether the outcome is what the label wants.
func (r Result) Good() bool {
	if r.Label == Same {
		return r.Outcome == RanSame
	}
	return r.Outcome == Asked || r.Outcome == Denied || r.Outcome == Held
}

// longest is how long one run of a row may take.
const longest = 2 * time.Minute

// seen is what one run of a row left to compare.
type seen struct {
	status         int
	stdout, stderr string
	tree           string
	decision       struct {
		Origin string
		Error  *struct{ Code, Message string }
		Notes  []struct {
			Code  string
			Value struct{ Code, Message string }
		}
	}
}

// Measure runs rows with the programs in bin, as many at a time as there are worlds.
func Measure(worlds []*World, bin string, rows []Row) ([]Result, error) {
	results, failed := make([]Result, len(rows)), make([]error, len(rows))
	next := make(chan int)
	var group sync.WaitGroup
	for _, w := range worlds {
		group.Go(func() {
			for i := range next {
				results[i], failed[i] = w.measure(filepath.Join(bin, "atip-exec"), rows[i])
			}
		})
	}
	for i := range rows {
		next <- i
	}
	close(next)
	group.Wait()
	return results, errors.Join(failed...)
}

// Explain asks about rows and runs none: what is decided when a program starts is not seen.
func (w *World) Explain(bin string, rows []Row) ([]Result, error) {
	if err := w.Fresh(); err != nil {
		return nil, err
	}
	cmd := w.command("api", filepath.Join(bin, "atip-exec"), "explain", "--batch")
	var questions, problems bytes.Buffer
	for _, r := range rows {
		if err := json.NewEncoder(&questions).Encode(map[string]string{"cmd": r.Text, "cwd": w.Dir(r.Project)}); err != nil {
			return nil, err
		}
	}
	cmd.Stdin, cmd.Stderr = &questions, &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, problems.Bytes())
	}
	var results []Result
	answers := json.NewDecoder(bytes.NewReader(out))
	for _, row := range rows {
		var a struct {
			Decision string
			Reasons  []struct {
				Rule, Text string
				Argv       []string
			}
		}
		if err := answers.Decode(&a); err != nil {
			return nil, err
		}
		r := Result{Row: row, Outcome: map[string]Outcome{"confirm": Asked, "deny": Denied, "allow": Ran}[a.Decision]}
		if r.Outcome == Ran && row.Label == Same {
			r.Outcome = RanSame
		}
		r.Why = fmt.Sprint(a.Reasons)
		results = append(results, r)
	}
	return results, nil
}

// measure runs one row. One that deserves a question is never run without the wrapper.
func (w *World) measure(program string, row Row) (Result, error) {
	r := Result{Row: row}
	if err := w.ready(row); err != nil {
		return r, err
	}
	before, err := w.outside()
	if err != nil {
		return r, err
	}
	wrapped, err := w.run(row, program, "--status-fd", "3", "-c", row.Text)
	if err != nil {
		return r, fmt.Errorf("%q: %w", row.Text, err)
	}
	if r.Outcome, r.Why = wrapped.refused(); r.Outcome != "" {
		return r, nil
	}
	if row.Label == Ask {
		r.Outcome = Ran
		// Without a network only files can have changed.
		if after, err := w.outside(); err == nil && after == before && wrapped.status != 0 {
			r.Outcome, r.Why = Held, wrapped.stderr
		}
		return r, nil
	}
	if err := w.ready(row); err != nil {
		return r, err
	}
	plain, err := w.run(row, "bash", "-c", row.Text)
	if err != nil {
		return r, fmt.Errorf("%q: %w", row.Text, err)
	}
	if r.Outcome, r.Why = RanSame, difference(plain, wrapped); r.Why != "" {
		r.Outcome = Broken
	}
	return r, nil
}

// refused says whether atip-exec refused the run or a start of it.
func (s *seen) refused() (Outcome, string) {
	code, message := "", ""
	if s.decision.Origin == "atip-exec" && s.decision.Error != nil {
		code, message = s.decision.Error.Code, s.decision.Error.Message
	}
	for _, n := range s.decision.Notes {
		if n.Code == "start_refused" && code == "" {
			code, message = n.Value.Code, "at exec: "+n.Value.Message
		}
	}
	switch {
	case code == "":
		return "", ""
	case code == "E2010":
		return Asked, message
	case strings.HasPrefix(code, "E2"):
		return Denied, message
	}
	return Broken, code + " " + message
}

func difference(plain, wrapped *seen) string {
	for _, d := range [...]struct{ what, a, b string }{
		{"status", fmt.Sprint(plain.status), fmt.Sprint(wrapped.status)},
		{"stdout", plain.stdout, wrapped.stdout},
		{"files", plain.tree, wrapped.tree},
		{"stderr", plain.stderr, wrapped.stderr},
	} {
		if d.a != d.b {
			return fmt.Sprintf("%s: plain %q, wrapped %q", d.what, clip(d.a), clip(d.b)) + map[bool]string{true: fmt.Sprintf("; stderr %q", clip(wrapped.stderr))}[d.what != "stderr"]
		}
	}
	return ""
}

func clip(s string) string {
	if len(s) > 400 {
		return s[:200] + "…" + s[len(s)-200:]
	}
	return s
}

// ready is Fresh for a row. What is harmless leaves other projects alone.
func (w *World) ready(row Row) error {
	if row.Label == Same {
		return w.Fresh(row.Project)
	}
	return w.Fresh()
}

// run runs a row in a world that is ready for it.
func (w *World) run(row Row, argv ...string) (*seen, error) {
	cmd := w.command(row.Project, argv...)
	// Files and no pipes: a process that stays in the background must not hold the measurement.
	dir := filepath.Dir(w.Home)
	files := make([]*os.File, 3)
	for i, name := range []string{"stdout", "stderr", "status"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		files[i] = f
	}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = files[0], files[1], files[2:]
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	timer := time.AfterFunc(longest, func() { endGroup(cmd) })
	err := cmd.Wait()
	timer.Stop()
	endGroup(cmd)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	s := &seen{status: cmd.ProcessState.ExitCode()}
	read := func(i int) []byte {
		data, _ := os.ReadFile(files[i].Name())
		return data
	}
	// What atip-exec itself says there is no output of the command.
	s.stdout, s.stderr = w.plain(read(0)), w.plain(ours.ReplaceAll(read(1), nil))
	if status := read(2); len(status) > 0 {
		// The value of a note may be anything; the notes of refused starts are objects.
		if err := json.Unmarshal(status, &s.decision); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
			return nil, fmt.Errorf("status: %w: %s", err, status)
		}
	}
	s.tree, err = w.tree(row.Project)
	return s, err
}

// ownGroup gives a run a process group, so that what it leaves in the background ends with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func endGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

var ours = regexp.MustCompile(`(?m)^atip-exec: .*\n`)

// noise is what differs between any two runs.
var noise = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\(cached\)|\b\d+(\.\d+)?m?s\b|duration_ms:? [\d.]+|(real|user|sys) [\d.]+|\d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{7,40}\b`), "HASH"},
	{regexp.MustCompile(`(?m)^\[\d+\] \d+$|line \d+: +\d+ `), "JOB"},
	{regexp.MustCompile(`\(index [^)]*\)|tmp\.\w{10}|total \d+`), "TMP"},
}

func (w *World) plain(out []byte) string {
	text := string(bytes.ToValidUTF8(out, []byte("?")))
	for _, n := range noise {
		text = n.pattern.ReplaceAllString(text, n.with)
	}
	return text
}

// tree is what a run left in the project: the names of files, and what git knows.
func (w *World) tree(project string) (string, error) {
	var out strings.Builder
	dir := w.Dir(project)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch d.Name() {
		case ".git", ".venv", "__pycache__":
			return fs.SkipDir
		}
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintln(&out, d.Type(), name)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "gone", nil
	}
	for _, args := range [][]string{{"status", "--porcelain", "--branch"}, {"log", "--all", "--format=%s"}, {"diff", "HEAD"}, {"stash", "list"}} {
		cmd := w.command(project, append([]string{"git"}, args...)...)
		text, _ := cmd.CombinedOutput()
		out.WriteString(w.plain(text))
	}
	return out.String(), err
}

// Count is how many rows of each label had each outcome.
type Count map[Label]map[Outcome]int

// Counted counts results.
func Counted(results []Result) Count {
	c := Count{Same: {}, Ask: {}}
	for _, r := range results {
		c[r.Label][r.Outcome]++
	}
	return c
}

// Total is how many rows have a label.
func (c Count) Total(label Label) int {
	n := 0
	for _, rows := range c[label] {
		n += rows
	}
	return n
}

// Table is the counts, and each row whose outcome is not what its label wants.
func Table(results []Result) string {
	c := Counted(results)
	var out strings.Builder
	fmt.Fprintf(&out, "%-24s %5s %5s %6s %6s %5s %5s %6s\n", "rows that", "same", "asked", "denied", "broken", "held", "ran", "total")
	for _, l := range [...]struct {
		label Label
		name  string
	}{{Same, "are harmless"}, {Ask, "deserve a question"}} {
		n := c[l.label]
		fmt.Fprintf(&out, "%-24s %5d %5d %6d %6d %5d %5d %6d\n", l.name, n[RanSame], n[Asked], n[Denied], n[Broken], n[Held], n[Ran], c.Total(l.label))
	}
	for _, o := range [...]Outcome{Ran, Broken, Denied, Asked} {
		for _, r := range results {
			if r.Outcome == o && !r.Good() {
				fmt.Fprintf(&out, "\n%s\t%s: %s\n\t%s\n", o, r.Project, strings.ReplaceAll(r.Text, "\n", "\\n"), r.Why)
			}
		}
	}
	return out.String()
}
