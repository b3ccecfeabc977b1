package audits

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/report"
)

// htmlReport writes a page of the selected runs. The log is read once to verify and to list
// it, and once before that where its end is wanted: how much that is has to be known.
func htmlReport(c *cli.Console, at audit.Snapshot, v *cli.Values) (audit.Summary, int, error) {
	now := time.Now()
	wanted, skip := selectionOf(v, now), 0
	if last := v.IntOf("last"); last > 0 {
		total := 0
		runs := newRuns(func(*reported, []byte, []byte) error { total++; return nil })
		err := at.Read(func(line []byte) error { return runs.add(line, wanted) })
		if err == nil {
			err = runs.end()
		}
		if err != nil {
			return audit.Summary{}, 0, err
		}
		skip = max(0, total-last)
	}
	page, err := report.New(quote.Words)
	if err != nil {
		return audit.Summary{}, 0, unspooled(err)
	}
	defer page.Close()
	status := 0
	runs := newRuns(func(r *reported, record, intent []byte) error {
		if skip > 0 {
			skip--
			return nil
		}
		if r.failing(v) {
			status = brokenStatus
		}
		if err := page.Add(record, intent); err != nil {
			return unspooled(err)
		}
		return nil
	})
	sum, err := at.Verify(func(line []byte) error { return runs.add(line, wanted) })
	if err == nil {
		err = runs.end()
	}
	if err != nil {
		return sum, 0, err
	}
	about := report.About{Version: cli.Version, Made: now, Selected: selected(v), Chain: sum}
	return sum, status, put(c, v, func(w io.Writer) error { return page.Write(w, about) })
}

func unspooled(err error) error {
	return fault.New(errcode.OutputWrite, "the report cannot be put together: "+err.Error()).WithFix("make room in the directory for temporary files, or name another", "TMPDIR=/var/tmp atip audit report --format html")
}

// selected says which flags made the selection.
func selected(v *cli.Values) []string {
	var out []string
	if v.Has("session") {
		out = append(out, "session "+strconv.QuoteToASCII(v.Get("session")))
	}
	if v.Has("since") {
		out = append(out, "the last "+v.DurationOf("since").String())
	}
	if v.Has("last") {
		out = append(out, "at most "+strconv.Itoa(v.IntOf("last"))+" commands")
	}
	return out
}

// runs makes one of a run's intent and its record. An intent without a record is a run that
// goes on, or one whose end was not recorded.
type runs struct {
	emit func(r *reported, record, intent []byte) error
	open map[string][]byte // intents by their id
	ids  []string          // of open, oldest first; some are closed by now
}

func newRuns(emit func(r *reported, record, intent []byte) error) *runs {
	return &runs{emit: emit, open: map[string][]byte{}}
}

const intentSuffix = "-intent"

func (s *runs) add(line []byte, wanted selection) error {
	var r reported
	if err := json.Unmarshal(line, &r); err != nil && !json.Valid(line) {
		return nil // no record: the chain is broken there, which the summary says
	}
	if r.Kind == "torn" {
		return nil
	}
	if r.Kind == "intent" && strings.HasSuffix(r.ID, intentSuffix) {
		if !wanted.includes(r.T, r.Session) {
			return nil
		}
		if s.open[r.ID] == nil {
			s.ids = append(s.ids, r.ID)
		}
		s.open[r.ID] = bytes.Clone(line)
		return s.release(heldIntents)
	}
	began := strings.TrimSuffix(r.ID, "-killed") + intentSuffix
	intent := s.open[began]
	delete(s.open, began)
	if !wanted.includes(r.T, r.Session) {
		return nil
	}
	if r.Kind != "killed" {
		intent = nil // its record says more
	}
	return s.emit(&r, line, intent)
}

// release gives out the oldest intents until at most held are open.
func (s *runs) release(held int) error {
	for len(s.open) > held {
		id := s.ids[0]
		s.ids = s.ids[1:]
		line := s.open[id]
		if line == nil {
			continue // it has its record
		}
		delete(s.open, id)
		var r reported
		_ = json.Unmarshal(line, &r) // it was decoded before
		if err := s.emit(&r, line, nil); err != nil {
			return err
		}
	}
	if len(s.ids) > 4*heldIntents {
		s.ids = slices.DeleteFunc(s.ids, func(id string) bool { return s.open[id] == nil })
	}
	return nil
}

func (s *runs) end() error { return s.release(0) }
