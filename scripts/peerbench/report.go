package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/corpus"
)

// report is the table. Its JSON is for scripts; the numbers are those of the gate.
type report struct {
	Kind     string `json:"kind"`
	Date     string `json:"date"`
	Rows     int    `json:"rows"`
	Evasions int    `json:"evasions"`
	Lines    []line `json:"lines"`
}

type line struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Measured   bool     `json:"measured"`
	Why        string   `json:"why,omitempty"` // it was not
	Figures    *figures `json:"figures,omitempty"`
	ownProgram bool
}

type figures struct {
	UnsafeAllow     corpus.Ratio              `json:"unsafeAllow"`
	AllowOnDeny     corpus.Ratio              `json:"allowOnDenyRows"`
	FrictionClear   corpus.Ratio              `json:"frictionClearAllow"`
	FrictionAll     corpus.Ratio              `json:"frictionAllAllow"`
	EvasionsAllowed corpus.Ratio              `json:"evasionsAllowed"`
	Matrix          map[string]map[string]int `json:"matrix"`     // label, answer
	Unsafe          []string                  `json:"unsafeRows"` // what unsafeAllow counts
}

func newReport(rows []corpus.Row) *report {
	r := &report{Kind: "atip-exec.peers/1", Date: time.Now().UTC().Format(time.DateOnly), Rows: len(rows)}
	for i := range rows {
		if rows[i].Tagged("evasion") && rows[i].Decision != "allow" {
			r.Evasions++
		}
	}
	return r
}

// add writes a line; err is why there are no figures.
func (r *report) add(name, version string, s *tally, err error) {
	l := line{Name: name, Version: version, Measured: err == nil, ownProgram: name == "atip-exec"}
	if err != nil {
		l.Why = err.Error()
	} else {
		l.Figures = &figures{UnsafeAllow: s.Unsafe, AllowOnDeny: s.AllowOnDeny, FrictionClear: s.Clear, FrictionAll: s.Friction, EvasionsAllowed: s.Evasions, Matrix: s.Matrix, Unsafe: s.unsafe}
	}
	r.Lines = append(r.Lines, l)
}

// measured counts the peers that have figures.
func (r *report) measured() (n int) {
	for _, l := range r.Lines {
		if l.Measured && !l.ownProgram {
			n++
		}
	}
	return n
}

// write prints a table in the form that the documentation takes.
func (r *report) write(out io.Writer) error {
	var b strings.Builder
	b.WriteString("| | unsafe allow | allow on deny rows | friction, clear allow | friction, all allow | evasions allowed |\n|---|---|---|---|---|---|\n")
	for _, l := range r.Lines {
		if f := l.Figures; f != nil {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", l.Name, percent(f.UnsafeAllow), percent(f.AllowOnDeny), percent(f.FrictionClear), percent(f.FrictionAll), percent(f.EvasionsAllowed))
		}
	}
	fmt.Fprintf(&b, "\n%s, %d rows, %d of them evasions", r.Date, r.Rows, r.Evasions)
	for _, l := range r.Lines {
		if f := l.Figures; f != nil {
			fmt.Fprintf(&b, "; each share is of %d, %d, %d, %d and %d rows", f.UnsafeAllow.Of, f.AllowOnDeny.Of, f.FrictionClear.Of, f.FrictionAll.Of, f.EvasionsAllowed.Of)
			break
		}
	}
	b.WriteString("\n")
	for _, l := range r.Lines {
		state := "measured"
		if !l.Measured {
			state = "not measured: " + l.Why
		}
		fmt.Fprintf(&b, "%s (%s): %s\n", l.Name, l.Version, state)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// percent has two digits where there is something to tell apart. A share of nothing is not 0.
func percent(r corpus.Ratio) string {
	switch p := 100 * r.Share(); {
	case r.Of == 0:
		return "–"
	case r.Hit == 0:
		return "0"
	case p < .05:
		return "<0.1 %"
	case p < 10:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}
