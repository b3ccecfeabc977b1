package run

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/sandbox"
)

// record writes the audit record of a run, refused or not.
func (x *execution) record(r *Result) error {
	kind := "run"
	if r.Status.State == "refused" {
		kind = "refused"
	}
	if err := x.openLog(); err != nil {
		if r.Fault != nil {
			// Nothing ran, and why is on its way to the caller already.
			return nil
		}
		return err
	}
	defer x.log.Close()
	x.recordInner()
	var static []byte
	if x.described != nil {
		static = <-x.described
	} else {
		static = x.static(kind)
	}
	rec := map[string]any{"exit": r.ExitCode, "state": r.Status.State, "timing": r.Status.Timing, "tree": r.Status.Tree, "filter": x.filterRecord(),
		"started_by": x.status.Tool.HowStarted(), "exec_checked": x.status.Tool.HowChecked()}
	if r.Status.Child != nil {
		rec["child"] = r.Status.Child
		rec["protected"] = x.protected.Receipt()
		if len(x.denied) > 0 {
			rec["denials"] = x.denied
		}
	}
	if x.atExec != nil {
		rec["starts"] = x.atExec.record()
	}
	if x.byParent != "" {
		rec["started_by_parent"] = x.byParent
	}
	if u := x.plan.undoRecord(); u != nil {
		rec["undo"] = u
	}
	if x.proxy != nil {
		rec["network"] = x.network
	}
	if g := x.grantRecord(); g != nil {
		rec["grant"] = g
	}
	if r.Fault != nil {
		rec["error"] = map[string]any{"code": r.Fault.Code, "message": x.clean(r.Fault.Message)}
	}
	id, err := x.log.Append(audit.Encoded{ID: x.plan.Run, Object: x.merge(static, rec)})
	if err != nil && r.Status.Child == nil && r.Fault != nil {
		return nil
	}
	r.Status.Audit = id
	if err == nil {
		x.mark.End()
	}
	return err
}

// static encodes what is known of a record before the child ends.
func (x *execution) static(kind string) []byte {
	raw, err := marshal.JSON(x.describe(kind))
	if err != nil {
		raw, _ = json.Marshal(map[string]any{"kind": kind, "undescribed": err.Error()})
	}
	return x.redacted(raw)
}

// redacted takes secrets out of an encoded object: the arguments are not the only place of
// a record where a word of the command line stands.
func (x *execution) redacted(object []byte) []byte {
	if x.redaction() != nil || x.redact == nil {
		return object
	}
	// In an encoded text a value with an escaped character is not seen.
	if bytes.IndexByte(object, '\\') < 0 {
		if text := string(object); x.clean(text) == text {
			return object
		}
	}
	out, err := json.Marshal(redactEncoded(object, x.clean))
	if err != nil {
		out, _ = json.Marshal(map[string]any{"undescribed": err.Error()})
	}
	return out
}

// merge adds the fields of rec to an encoded object.
func (x *execution) merge(object []byte, rec map[string]any) []byte {
	more, err := marshal.JSON(rec)
	if err != nil {
		return object
	}
	more = x.redacted(more)
	return append(append(object[:len(object)-1:len(object)-1], ','), more[1:]...)
}

func (x *execution) describe(kind string) map[string]any {
	p := x.plan
	rec := map[string]any{"kind": kind, "argv": x.cleanAll(p.inv.words()), "cwd": p.Cwd, "uid": p.machine.UID,
		"session": p.session(), "agent": p.agent()}
	if chain := p.chainNames(); chain != nil {
		rec["chain"] = chain
	}
	if len(p.steps) > 0 {
		main := p.steps[0]
		rec["tool"] = map[string]any{"path": main.ID.Canonical, "place": main.ID.Place, "sha256": main.ID.Digest, "trust": main.Verdict, "metadata": main.Call.Provenance}
	}
	if len(p.Decision.Steps) > 0 {
		rec["decision"] = x.decisionRecord()
		rec["sandbox"] = p.granted()
		env := map[string]any{"passed": p.env.passed, "dropped": p.env.dropped, "credentials": p.env.credentials}
		if len(p.handedDown) > 0 {
			env["handed_down"] = p.handedDown
		}
		rec["env"] = env
	}
	if b := p.inv.behalf; b != nil {
		rec["asked_by"] = b.Run
	}
	return rec
}

// granted is the receipt without what every run may read.
func (p *Plan) granted() sandbox.Receipt {
	r := p.receipt()
	r.Read = slices.DeleteFunc(slices.Clone(r.Read), func(g sandbox.Grant) bool { return g.Why == "default" })
	return r
}

func (x *execution) decisionRecord() map[string]any {
	p := x.plan
	var steps []map[string]any
	for i, s := range p.steps {
		step := map[string]any{"argv": x.cleanAll(s.Argv), "via": s.Via, "tool": s.Call.Tool, "sha256": s.ID.Digest, "path": s.Call.Path, "exact": s.Call.Exactness, "effects": provenanceOf(s), "resources": s.Call.Resources}
		if s.AtExec {
			step["decided"] = s.DecidedAt()
		}
		if i < len(p.Decision.Steps) {
			step["rules"], step["lifted"] = p.Decision.Steps[i].Rules, p.Decision.Steps[i].Lifted
		}
		steps = append(steps, step)
	}
	rec := map[string]any{"action": p.Decision.Action, "rules": p.rules(), "steps": steps, "policy": p.policies.Sources(), "profile": p.policies.Profile(), "switches": p.policies.Switches(),
		"enforce": map[string]bool{"files": p.canEnforce.Files, "net": p.canEnforce.Net, "secrets": p.canEnforce.Secrets, "delete": p.canEnforce.DeleteStrict}, "us": p.took.Microseconds()}
	var edges []map[string]any
	for _, e := range p.edges {
		edges = append(edges, map[string]any{"from": e.From, "to": e.To, "kind": e.Kind})
	}
	if edges != nil {
		rec["edges"] = edges
	}
	if x.budget != nil {
		rec["budget"] = x.budget
	}
	return rec
}

func (x *execution) filterRecord() map[string]any {
	rec := map[string]any{"known": map[string]any{"loaded": x.known.Loaded, "skipped": len(x.known.Skipped), "dropped": x.known.Dropped, "unreadable": x.known.Unreadable}}
	for i, report := range x.reports {
		rec[[...]string{"stdout", "stderr"}[i&1]] = report
	}
	if x.redactionOff {
		rec["redaction"] = "off"
	}
	if len(x.bounds) > 0 {
		rec["bounded"] = x.bounds
	}
	return rec
}

// clean redacts one of our own texts. Without a set, which is the case when the
// run failed before there was one, nothing of the child's words is kept.
func (x *execution) clean(text string) string {
	if err := x.redaction(); err != nil || x.redact == nil {
		return "[not recorded: no redaction]"
	}
	out, _ := x.redact.String(text)
	return out
}

func (x *execution) cleanAll(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = x.clean(w)
	}
	return out
}

// refuse completes the error of a run that must not start: words are redacted,
// and a request is left where a person can find it.
func (x *execution) refuse(err error) error {
	f := fault.From(err)
	if len(x.plan.Warnings) > 0 {
		f.With("warnings", x.plan.Warnings)
	}
	f.Redact(x.clean)
	if f.Code != errcode.ApprovalRequired && f.Code != errcode.DecisionChanged {
		return f
	}
	return x.ask(f)
}

func (x *execution) warn(text string) {
	if x.out.Warn != nil {
		x.out.Warn(text)
	}
}

func (x *execution) display(message string) approve.Display {
	p := x.plan
	d := approve.Display{Argv: x.cleanAll(p.inv.words()), Message: message, Rules: p.rules(), Trust: p.steps[0].Verdict.Level.String(), Tool: p.steps[0].Call.Tool, Subjects: p.subjects()}
	for _, s := range p.steps {
		for _, e := range dangerKeys() {
			if v := s.Value(e); v != atip.No {
				d.Effects = append(d.Effects, dangerName(e)+": "+v.String())
			}
		}
		for _, r := range s.Call.Resources {
			d.Resources = append(d.Resources, r.Access.String()+" "+r.Value)
		}
	}
	return d
}

func (p *Plan) requester() approve.Requester {
	r := approve.Requester{UID: p.machine.UID, PID: processID(), SID: sessionID(), Session: p.session(), Agent: p.agent(), Chain: p.chainNames()}
	for i, a := range approve.Ancestry(r.PID) {
		if i == 0 {
			r.Start, r.TTY = a.Start, a.Terminal()
		}
		r.Ancestry = append(r.Ancestry, a.Key())
	}
	return r
}

func resourceList(rs []atip.Resource) []any {
	out := []any{}
	for _, r := range rs {
		out = append(out, strings.Join([]string{r.Kind, r.Value, r.Abs, r.Access.String(), r.Class.String(), r.Host}, " "))
	}
	return out
}

func anys(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}
