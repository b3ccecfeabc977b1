package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/run"
	"github.com/atip-dev/atip-exec/internal/status"
)

// maxCaptured is how much of each stream an envelope holds, as head and tail.
const maxCaptured = 1 << 20

// run carries out a command and prints what the output mode asks for.
func (c *Console) run(inv plan.Invocation) int {
	c.Out, c.Err = unbroken(c.Out), unbroken(c.Err)
	switch c.Mode {
	case JSON:
		return c.runEnvelope(inv)
	case JSONL:
		return c.runEvents(inv)
	}
	var l lines
	stdout, stderr := c.Out, l.theirs(c.Err)
	if oneStream() {
		stdout = l.theirs(stdout)
	}
	c.Err = l.ours(c.Err)
	r := run.Run(inv, caller.Here(), run.Output{Stdout: stdout, Stderr: stderr, Warn: c.Warn, Note: c.noteLine})
	if r.Fault != nil {
		return c.Fail(r.Fault)
	}
	c.verdictLine(r)
	return r.ExitCode
}

// noteLine says on stderr what the caller would else wonder about.
func (c *Console) noteLine(n status.Note) {
	if f, ok := n.Value.(*fault.Fault); ok {
		c.Fail(f) // a start that was refused while the run goes on
		return
	}
	if n.Code == "denied" {
		// The one thing a reader of a failed command cannot guess.
		c.Note(fmt.Sprint(n.Value))
		return
	}
	if n.Code == "leftovers" {
		// The command said that it started something, and ended with 0.
		c.Note(fmt.Sprint("processes that the command left in the background were ended with it: ", n.Value))
		return
	}
	if c.Verbose == 0 {
		return
	}
	value, _ := json.Marshal(n.Value)
	c.Note(n.Code + " " + string(value))
}

func (c *Console) verdictLine(r *run.Result) {
	if c.Verbose == 0 || r.Plan == nil {
		return
	}
	c.Note(r.Plan.Decision.Action.String() + ", sandbox " + r.Plan.Setup.Tier().String() + ", exit " + itoa(r.ExitCode))
	if c.Verbose > 1 {
		t := r.Status.Timing
		c.Note("plan " + itoa(int(t.PlanUS)) + " µs, start " + itoa(int(t.StartUS)) + " µs, run " + itoa(int(t.RunMS)) + " ms, audit " + r.Status.Audit)
	}
}

// capture keeps the head and the tail of a stream, for an envelope.
type capture struct {
	head, tail []byte
	total      int
}

func (b *capture) Write(p []byte) (int, error) {
	n := len(p)
	b.total += n
	if room := maxCaptured/5 - len(b.head); room > 0 && len(b.tail) == 0 {
		take := min(room, len(p))
		b.head, p = append(b.head, p[:take]...), p[take:]
	}
	b.tail = append(b.tail, p...)
	if limit := maxCaptured - maxCaptured/5; len(b.tail) > 2*limit {
		b.tail = append(b.tail[:0], b.tail[len(b.tail)-limit:]...)
	}
	return n, nil
}

func (b *capture) bytes() (data []byte, truncated bool) {
	tail := b.tail
	if limit := maxCaptured - maxCaptured/5; len(tail) > limit {
		tail = tail[len(tail)-limit:]
	}
	truncated = b.total > len(b.head)+len(tail)
	data = append([]byte{}, b.head...)
	if truncated {
		data = append(data, "\n[atip-exec: "+itoa(b.total-len(b.head)-len(tail))+" bytes omitted]\n"...)
	}
	return append(data, tail...), truncated
}

// put stores a stream under name, or name_b64 if it is not UTF-8.
func (b *capture) put(into map[string]any, truncated map[string]bool, name string) {
	data, cut := b.bytes()
	truncated[name] = cut
	if utf8.Valid(data) {
		into[name] = string(data)
	} else {
		into[name+"_b64"] = data
	}
}

func (c *Console) runEnvelope(inv plan.Invocation) int {
	inv.OutputMode = "json"
	var stdout, stderr capture
	var warnings []string
	r := run.Run(inv, caller.Here(), run.Output{Stdout: &stdout, Stderr: &stderr, Warn: func(w string) { warnings = append(warnings, w) }})
	result, truncated := map[string]any{"exit_code": r.ExitCode, "signal": nil}, map[string]bool{}
	if child := r.Status.Child; child != nil && child.Signal != "" {
		result["signal"] = child.Signal
	}
	stdout.put(result, truncated, "stdout")
	stderr.put(result, truncated, "stderr")
	result["truncated"] = truncated
	result["redactions"] = redactions(r)
	if len(r.Bounds) > 0 {
		result["output"] = r.Bounds
	}
	doc := map[string]any{"ok": r.Fault == nil && r.ExitCode == 0, "result": result, "meta": meta(r, warnings)}
	if r.Fault != nil {
		doc["error"] = r.Fault
		c.Fail(r.Fault)
	}
	if err := c.Document(doc); err != nil {
		return c.Fail(err)
	}
	return r.ExitCode
}

func meta(r *run.Result, warnings []string) map[string]any {
	m := map[string]any{"version": Version, "duration_ms": r.Duration.Milliseconds(), "dry_run": false, "decision": nil, "tool": nil, "warnings": append([]string{}, warnings...), "audit_id": r.Status.Audit}
	if r.Plan != nil {
		if tool := r.Plan.Tool(); tool != "" {
			m["tool"] = tool
			m["decision"] = r.Plan.Decision.Action.String()
			m["effects"] = r.Plan.Granted()
		}
	}
	return m
}

func redactions(r *run.Result) []any {
	out := []any{}
	for _, report := range r.Reports {
		for _, found := range report.Redactions {
			out = append(out, found)
		}
	}
	return out
}

// events writes one JSON object a line, whole lines only.
type events struct {
	mu  sync.Mutex
	out io.Writer
	seq int
	err error
}

func (e *events) emit(kind string, fields any) {
	raw, err := json.Marshal(fields)
	if err != nil {
		return
	}
	line := append([]byte(`{"type":"`+kind+`"`), ',')
	line = append(line, raw[1:]...)
	if len(raw) == 2 {
		line = append(line[:len(line)-2], '}')
	}
	if _, err := e.out.Write(append(line, '\n')); err != nil && e.err == nil {
		e.err = err
	}
}

// eventStream turns the writes of one stream into events, cut at line ends or at
// 64 KiB, never inside a rune.
type eventStream struct {
	*events
	name string
	rest []byte
}

func (s *eventStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, p...)
	for {
		n := cut(s.rest)
		if n == 0 {
			return len(p), s.err
		}
		s.data(s.rest[:n])
		s.rest = append(s.rest[:0], s.rest[n:]...)
	}
}

// cut returns the length of the next event, 0 to wait for more.
func cut(p []byte) int {
	for i, b := range p {
		if b == '\n' || i == 64<<10-1 {
			n := i + 1
			for back := 0; b != '\n' && back < 3 && n > 1 && !utf8.RuneStart(p[n-1]); back++ {
				n--
			}
			if b != '\n' && n > 1 && p[n-1] >= utf8.RuneSelf && n <= i {
				n--
			}
			return n
		}
	}
	return 0
}

func (s *eventStream) data(p []byte) {
	fields := map[string]any{"seq": s.seq}
	s.seq++
	if utf8.Valid(p) {
		fields["data"] = string(p)
	} else {
		fields["data_b64"] = append([]byte{}, p...)
	}
	s.emit(s.name, fields)
}

func (s *eventStream) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) > 0 {
		s.data(s.rest)
		s.rest = nil
	}
}

func (c *Console) runEvents(inv plan.Invocation) int {
	inv.OutputMode = "jsonl"
	e := &events{out: c.Out}
	stdout, stderr := &eventStream{events: e, name: "stdout"}, &eventStream{events: e, name: "stderr"}
	var warnings []string
	r := run.Run(inv, caller.Here(), run.Output{Stdout: stdout, Stderr: stderr,
		Start: func(s run.Started) { e.locked("start", s) }, Note: func(n status.Note) { e.locked("note", n) }, Warn: func(w string) { warnings = append(warnings, w) }})
	stdout.flush()
	stderr.flush()
	if r.Fault != nil {
		e.locked("error", map[string]any{"exit_code": r.ExitCode, "error": r.Fault, "child": r.Status.Child, "meta": meta(r, warnings)})
		c.Fail(r.Fault)
		return r.ExitCode
	}
	last := map[string]any{"exit_code": r.ExitCode, "signal": nil, "duration_ms": r.Duration.Milliseconds(), "redactions": redactions(r), "meta": meta(r, warnings)}
	if len(r.Bounds) > 0 {
		last["output"] = r.Bounds
	}
	if child := r.Status.Child; child != nil {
		if child.Signal != "" {
			last["signal"] = child.Signal
		}
		last["core"] = child.Core
		last["user_ms"], last["sys_ms"], last["max_rss_kb"] = r.Status.Timing.UserMS, r.Status.Timing.SysMS, r.Status.Timing.MaxRSSKB
	}
	e.locked("exit", last)
	if e.err != nil {
		return c.Fail(fault.New(errcode.OutputWrite, "stdout: "+e.err.Error()))
	}
	return r.ExitCode
}

func (e *events) locked(kind string, fields any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.emit(kind, fields)
}
