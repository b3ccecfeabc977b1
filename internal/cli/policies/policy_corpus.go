package policies

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/cli/approvals"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
)

// corpusRow is one labelled command of a corpus.
type corpusRow struct {
	ID         any               `json:"id,omitempty"`
	Cmd        string            `json:"cmd,omitempty"`
	Argv       []string          `json:"argv,omitempty"`
	Cwd        string            `json:"cwd,omitempty"`
	Files      map[string]string `json:"files,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Decision   string            `json:"decision,omitempty"`
	Acceptable []string          `json:"acceptable,omitempty"`
	Effects    map[string]string `json:"effects,omitempty"`
	Opaque     *bool             `json:"opaque,omitempty"`
	Tags       []string          `json:"tags,omitempty"`
	Note       string            `json:"note,omitempty"`
	line       int
	recorded   string // what was decided when it ran, for rows of the audit
}

func (r corpusRow) question() plan.Question {
	return plan.Question{Cmd: r.Cmd, Argv: r.Argv, Cwd: r.Cwd, Env: r.Env}
}

const maxCorpus = 64 << 20

// readCorpus reads a corpus, one JSON object a line. A word that is not known is an
// error: a mistyped label would pass every command.
func readCorpus(file string) ([]corpusRow, error) {
	raw, err := answer.ReadFile(file, maxCorpus)
	if err != nil {
		return nil, err
	}
	bad := func(line int, why string) error {
		return fault.New(errcode.MetadataStructure, fmt.Sprintf("%s:%d: %s", file, line, why)).With("file", file).With("line", line).WithFix("write one object a line: {\"cmd\": …, \"decision\": \"allow|confirm|deny\"}", "")
	}
	var rows []corpusRow
	for n, line := range bytes.Split(raw, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		row := corpusRow{line: n + 1}
		if err := d.Decode(&row); err != nil {
			return nil, bad(n+1, err.Error())
		}
		if row.Cmd == "" && len(row.Argv) == 0 {
			return nil, bad(n+1, "neither cmd nor argv")
		}
		for _, word := range append([]string{row.Decision}, row.Acceptable...) {
			if word != "allow" && word != "confirm" && word != "deny" && word != "" {
				return nil, bad(n+1, fmt.Sprintf("%q is not a decision", word))
			}
		}
		for _, value := range row.Effects {
			if value != "yes" && value != "no" && value != "unknown" {
				return nil, bad(n+1, fmt.Sprintf("%q is not the value of an effect", value))
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// auditRows lists what was run or refused before, each command once. Words that were
// redacted in the record are judged as they stand there.
func auditRows() ([]corpusRow, error) {
	a, err := approvals.Open()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(a.Dirs.State, "audit")
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return nil, fault.New(errcode.NoInputFile, "no audit log at "+dir).With("directory", dir).WithFix("run something first, or name a corpus", "atip policy test --corpus FILE")
	}
	seen := map[string]bool{}
	var rows []corpusRow
	err = audit.Read(dir, func(line []byte) error {
		var rec struct {
			Kind     string
			Argv     []string
			Cwd      string
			Decision struct{ Action string }
		}
		if json.Unmarshal(line, &rec) != nil || (rec.Kind != "run" && rec.Kind != "refused") || len(rec.Argv) == 0 || rec.Decision.Action == "" {
			return nil
		}
		key := rec.Cwd + "\x00" + strings.Join(rec.Argv, "\x00")
		if seen[key] {
			return nil
		}
		seen[key] = true
		row := corpusRow{Argv: rec.Argv, Cwd: rec.Cwd, recorded: rec.Decision.Action}
		if rec.Argv[0] == "-c" && len(rec.Argv) > 1 {
			row.Argv, row.Cmd = nil, rec.Argv[1]
		}
		if info, err := os.Stat(row.Cwd); err != nil || !info.IsDir() {
			row.Cwd = ""
		}
		rows = append(rows, row)
		return nil
	})
	return rows, err
}

// scratch makes an empty git work tree with the files of a row.
func scratch(files map[string]string) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "atip-policy-test-"); err != nil {
		return "", fault.New(errcode.OutputWrite, err.Error())
	}
	write := func(name, text string) error {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(text), 0o644)
	}
	for _, d := range []string{".git/objects", ".git/refs/heads"} {
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, d), 0o755)
		}
	}
	if err == nil {
		err = write(".git/HEAD", "ref: refs/heads/main\n")
	}
	if err == nil {
		err = write(".git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
	}
	for name, text := range files {
		if err == nil && !filepath.IsLocal(name) {
			err = fmt.Errorf("%s is not a path below the workspace", name)
		}
		if err == nil {
			err = write(name, text)
		}
	}
	if err != nil {
		os.RemoveAll(dir)
		return "", fault.New(errcode.MetadataStructure, "files: "+err.Error())
	}
	return dir, nil
}

// decide judges a row, in a workspace of its own if it names files.
func (r corpusRow) decide(j *plan.Judge) (plan.Verdict, error) {
	q := r.question()
	if len(r.Files) == 0 {
		return j.Decide(q), nil
	}
	dir, err := scratch(r.Files)
	if err != nil {
		return plan.Verdict{}, err
	}
	defer os.RemoveAll(dir)
	q.Cwd = filepath.Join(dir, q.Cwd)
	return j.Decide(q), nil
}

// wrong says what of a verdict differs from the labels, "" if nothing.
func (r corpusRow) wrong(v plan.Verdict) string {
	accepted := r.Acceptable
	if len(accepted) == 0 && r.Decision != "" {
		accepted = []string{r.Decision}
	}
	if len(accepted) > 0 && !slices.Contains(accepted, v.Action.String()) {
		return "is " + v.Action.String() + ", not " + strings.Join(accepted, " or ")
	}
	for _, name := range sortedNames(r.Effects) {
		got := v.Effects[name]
		got = cmp.Or(got, "no")
		if got != r.Effects[name] {
			return name + " is " + got + ", not " + r.Effects[name]
		}
	}
	if r.Opaque != nil && *r.Opaque != v.Opaque {
		return fmt.Sprintf("opaque is %v", v.Opaque)
	}
	return ""
}

func sortedNames(m map[string]string) []string {
	any := make(map[string]any, len(m))
	for k := range m {
		any[k] = nil
	}
	return slices.Sorted(maps.Keys(any))
}
