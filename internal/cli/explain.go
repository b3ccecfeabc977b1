package cli

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/batch"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/marshal"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/run"
	"github.com/atip-dev/atip-exec/trust"
)

// explain prints the plan of a command, or what a code means. It starts nothing
// and its exit status does not depend on the decision.
func (c *Console) explain(v *Values) int {
	if v.Has("batch") {
		return c.batch(v)
	}
	if len(v.Rest) == 1 && !v.Dash && !v.Has("command") {
		if text, ok := explainCode(v.Rest[0]); ok {
			return c.done(c.Text(text))
		}
	}
	inv, err := invocation(v)
	if err == nil && len(inv.Argv) == 0 && !inv.IsShell {
		err = fault.New(errcode.NoCommand, "explain needs a command or a code").WithFix("write the command after `--`", "atip-exec explain -- gh pr merge 42")
	}
	if err != nil {
		return c.Fail(err)
	}
	p, err := plan.Make(inv, caller.Here())
	if err != nil {
		return c.Fail(err)
	}
	defer p.Close()
	return c.done(c.printPlan(p))
}

// dryRun is explain with the exit status that the run would be refused with.
func (c *Console) dryRun(inv plan.Invocation) int {
	p, err := plan.Make(inv, caller.Here())
	if err != nil {
		return c.Fail(err)
	}
	defer p.Close()
	refusal := p.Refusal()
	if refusal != nil {
		refusal = fault.From(refusal).Redact(run.Redactor(p))
	}
	if c.Mode == JSON || c.Mode == JSONL {
		m := meta(&run.Result{Plan: p}, p.Warnings)
		m["dry_run"] = true
		doc := map[string]any{"ok": refusal == nil, "result": map[string]any{"plan": marshal.Clean(p.Document(), run.Redactor(p))}, "meta": m}
		if refusal != nil {
			doc["error"] = fault.From(refusal)
		}
		if err := c.Document(doc); err != nil {
			return c.Fail(err)
		}
	} else if err := c.printPlan(p); err != nil {
		return c.Fail(err)
	}
	if refusal != nil {
		return c.Fail(refusal)
	}
	return 0
}

func (c *Console) printPlan(p *plan.Plan) error {
	if c.Documents() {
		return c.Document(marshal.Clean(p.Document(), run.Redactor(p)))
	}
	d := p.Document()
	text := PlanText(d)
	if c.OutTTY {
		text += howToAllow(d)
	}
	return c.Text(run.Redactor(p)(text))
}

// howToAllow is for a person at a terminal: what rule would let a command run that asks now.
// An agent, which reads a pipe, is not told.
func howToAllow(d plan.Document) string {
	if d.Decision.String() != "confirm" {
		return ""
	}
	var b strings.Builder
	for _, s := range d.Steps {
		if s.Action.String() != "confirm" || s.Tool == ":" {
			continue
		}
		when := fmt.Sprintf("%q: %q", "tool", s.Tool)
		if len(s.Command) > 0 {
			when += fmt.Sprintf(", %q: [%q]", "command", strings.Join(s.Command, " "))
		}
		var grants []string
		for _, g := range d.Grants {
			if s.Effects[g] != "no" {
				grants = append(grants, strconv.Quote(g))
			}
		}
		fmt.Fprintf(&b, "to allow it  an allow rule of your policy with when {%s} and grants [%s]\n", when, strings.Join(grants, ", "))
		if s.Trust.Action.String() == "confirm" {
			fmt.Fprintf(&b, "             that names the file itself: \"tool\": \"sha256:%s\"\n", s.Executable.Digest)
		}
	}
	return b.String()
}

// PlanText renders a plan for people.
func PlanText(d plan.Document) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s  %s", strings.ToUpper(d.Decision.String()), quote.Words(d.Argv))
	line("  in %s%s", d.Cwd, workspaceNote(d))
	for i, s := range d.Steps {
		if s.Tool == ":" {
			// The shell of -c: what it is told to do are the steps below.
			line("shell   %s  sha256 %s", s.Executable.Canonical, s.Executable.Digest)
			continue
		}
		if len(d.Steps) > 1 {
			line("step %d  %s%s", i+1, quote.Words(s.Argv), via(s.Via))
		}
		if s.Installed {
			line("  executable  %s", s.Executable.Canonical)
			line("              sha256 %s (%s)", s.Executable.Digest, cacheNote(s.Executable.CacheHit))
			line("  trust       %s, %s: %s", s.Trust.Level, s.Trust.Reason, s.Trust.Action)
			evidenceText(line, s.Trust, s.Executable.Canonical)
		} else {
			line("  executable  not installed")
		}
		line("  metadata    %s, rank %s, bound by %s", s.Metadata.Source, s.Metadata.Rank, s.Metadata.Binding)
		if s.MetadataTrust != nil {
			line("              %s, %s: %s", s.MetadataTrust.Level, s.MetadataTrust.Reason, s.MetadataTrust.Action)
			evidenceText(line, *s.MetadataTrust, "the document")
		}
		line("  command     %s (%s)", strings.Join(append([]string{s.Tool}, s.Command...), " "), s.Confidence)
		line("  effects     %s", effectsLine(s))
		for _, key := range []string{"destructive", "reversible", "remoteMutation", "network", "write", "delete", "secretRead", "privileged", "execOpaque"} {
			if f, ok := s.Provenance[key]; ok && f.Value.String() == dangerValue(key) {
				line("              %s: %s by %s%s%s (rank %s)", key, f.Value, f.Source, f.Pointer, clause(f.Clause), f.Rank)
			}
		}
		for _, r := range s.Resources {
			target := r.Value
			if r.Abs != "" {
				target = r.Abs
			}
			line("  touches     %s %s (%s)", r.Access, target, r.Class)
		}
		for _, w := range s.Why {
			line("  because     %s", w)
		}
	}
	for _, r := range d.Reasons {
		where := ""
		if r.Line > 0 {
			where = fmt.Sprintf("  %s:%d:%d", r.File, r.Line, r.Col)
		}
		line("rule  %s -> %s%s", r.Rule, r.Action, where)
	}
	for _, l := range d.Lifted {
		line("lifted  %s by %s", l.Rule, l.By)
	}
	if len(d.Grants) > 0 {
		word := "granted"
		if d.Decision.String() != "allow" {
			word = "would be granted"
		}
		line("%s  %s", word, strings.Join(d.Grants, ", "))
	}
	for _, a := range d.Alternatives {
		line("instead  %s", a)
	}
	if d.Profile != "workspace" {
		line("profile  %s", d.Profile)
	}
	for _, block := range d.Delegation {
		line("delegated  %s", block)
	}
	sandboxText(&b, d)
	if len(d.Environment.Dropped) > 0 {
		line("environment  without %s", strings.Join(d.Environment.Dropped, " "))
	}
	if len(d.Environment.Credentials) > 0 {
		line("             with credentials %s", strings.Join(d.Environment.Credentials, " "))
	}
	for _, w := range d.Warnings {
		line("warning  %s", w)
	}
	return b.String()
}

// evidenceText says what was proven, and what would raise the verdict.
func evidenceText(line func(string, ...any), v trust.Verdict, file string) {
	if e := v.Evidence; e != nil && e.Signer != "" {
		line("              signed by %s (%s)", e.Identity, e.Signer)
		if e.SourceRepository != "" {
			line("              built from %s", e.SourceRepository)
		}
		if e.Builder != "" {
			line("              built by %s, SLSA level %d", e.Builder, e.SLSALevel)
		}
		if !e.SignedAt.IsZero() {
			line("              signed at %s (%s)", e.SignedAt.Format(time.RFC3339), e.TimeSource)
		}
	}
	if v.Action != trust.Allow {
		if next := v.NextStep(file); next != "" {
			line("              to raise it: %s", next)
		}
	}
}

func dangerValue(key string) string {
	if key == "reversible" {
		return "no"
	}
	return "yes"
}

func clause(id string) string {
	if id == "" {
		return ""
	}
	return " clause " + id
}

func effectsLine(s plan.StepDocument) string {
	var yes, unknown []string
	for _, key := range []string{"write", "delete", "network", "destructive", "irreversible", "billable", "secretRead", "privileged", "persistence", "remoteMutation", "execOpaque", "subprocess"} {
		switch s.Effects[key] {
		case "yes":
			yes = append(yes, key)
		case "unknown":
			unknown = append(unknown, key)
		}
	}
	out := "none"
	if len(yes) > 0 {
		out = strings.Join(yes, ", ")
	}
	if len(unknown) > 0 {
		out += "; unknown: " + strings.Join(unknown, ", ")
	}
	return out
}

func workspaceNote(d plan.Document) string {
	if d.Workspace == "" {
		return ", no workspace: " + d.NoWorkspace
	}
	return ", workspace " + d.Workspace
}

func via(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return "  (inside " + strings.Join(words, ", ") + ")"
}

func cacheNote(hit bool) string {
	if hit {
		return "from the cache"
	}
	return "hashed now"
}

// explainCode answers `explain E2010` and `explain 77`.
func explainCode(word string) (string, bool) {
	var b strings.Builder
	exit, err := strconv.Atoi(word)
	for _, r := range fault.Rows() {
		if r.Code == word || (err == nil && r.Exit == exit && exit != 0) {
			fmt.Fprintf(&b, "%s  exit %d  %s\n  category %s, retry %t\n  next: %s\n", r.Code, r.Exit, r.Title, r.Category(), r.Retryable, r.Fix)
		}
	}
	if b.Len() == 0 && err == nil && exit > 128 && exit < 193 {
		fmt.Fprintf(&b, "%d  the command was ended by signal %d\n", exit, exit-128)
	}
	return b.String(), b.Len() > 0
}

func sandboxText(b *strings.Builder, d plan.Document) {
	receipt := d.Sandbox
	for _, o := range d.OwnSteps {
		fmt.Fprintf(b, "own step %d  %s\n  in a run of its own, network %s, may start what is %s\n", o.Step+1, quote.Words(o.Argv), o.Net, o.Exec)
		for _, host := range o.Hosts {
			fmt.Fprintf(b, "  it alone may reach  %s\n", host)
		}
		for _, name := range slices.Concat(o.Credentials, o.Files) {
			fmt.Fprintf(b, "  it alone has        %s\n", name)
		}
	}
	for _, w := range d.Fetches {
		fmt.Fprintf(b, "fetches first  %s\n  in a run of its own, from %s, without the project\n", quote.Words(w.Argv), strings.Join(w.Hosts, " "))
	}
	fmt.Fprintf(b, "sandbox  tier %s, network %s\n", receipt.Tier, receipt.Net.Mode)
	fmt.Fprintf(b, "  this tier  %s\n", receipt.Why)
	switch receipt.Exec.String() {
	case "none":
		fmt.Fprintln(b, "  may start  no other program")
	case "closed":
		fmt.Fprintln(b, "  may start  known programs only (closed)")
	case "gated":
		fmt.Fprintln(b, "  may start  what the policy allows at that moment (gated)")
	}
	for _, host := range receipt.Net.Allow {
		fmt.Fprintf(b, "  may reach  %s\n", host)
	}
	for _, port := range receipt.Net.Forward {
		fmt.Fprintf(b, "  may reach  this machine's service behind port %d\n", port)
	}
	for _, g := range receipt.Write {
		if g.Why == "default" {
			continue // device nodes such as /dev/null
		}
		fmt.Fprintf(b, "  may write  %s (%s)\n", g.Path, g.Why)
	}
	for _, g := range receipt.Gaps {
		fmt.Fprintf(b, "  gap        %s: %s\n", g.Guarantee, g.Why)
	}
	if d.Decision.String() == "allow" && len(receipt.Write) == 0 {
		fmt.Fprintln(b, "  may write  nothing but its private directory")
	}
}

func (c *Console) batch(v *Values) int {
	// What lives on between two answers is small, so that the heap would be collected for
	// every few dozen of them.
	debug.SetGCPercent(400)
	b := &batch.Batch{Policies: v.All("policy"), Profiles: v.All("profile"), Directory: v.Get("directory"), Machine: caller.Here(), Redactor: run.Redactor}
	if err := b.Answer(os.Stdin, c.Out); err != nil {
		return c.Fail(err)
	}
	return 0
}
