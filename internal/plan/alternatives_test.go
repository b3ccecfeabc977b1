package plan

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/policy"
)

// TestReasonsAreSupported: each reason of a refusal of the corpus is a fact of its step, what is not known is
// said to be unknown, and the refusal fits its bounds and says how to go on. It takes an eighth of the rows;
// with CORPUS_ROWS=all every one.
func TestReasonsAreSupported(t *testing.T) {
	claims := map[string]string{"it may destroy data": "destructive", "it may delete files": "delete", "what it does cannot be undone": "irreversible", "it may change something on a remote service": "remoteMutation",
		"it may change something in a service on this machine": "remoteMutation", "it may cost money": "billable", "it may read stored secrets": "secretRead", "it arranges for something to run by itself later": "persistence"}
	doubts := map[string]string{"destroys data": "destructive", "deletes files": "delete", "can be undone": "irreversible", "changes something on a remote service": "remoteMutation", "costs money": "billable",
		"reads stored secrets": "secretRead", "arranges for something to run by itself later": "persistence"}
	rows := readCorpus(t)
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	seen, unknown := 0, 0
	for i := range rows {
		r := &rows[i]
		if i%8 != 0 && os.Getenv("CORPUS_ROWS") != "all" || len(r.Env)+len(r.Files) > 0 || r.Decision == "allow" && len(r.Acceptable) == 1 {
			continue
		}
		p, err := b.Plan(w.invocation(r))
		if err != nil {
			continue
		}
		for _, why := range p.Decision.Reasons {
			if why.Action == policy.Allow || why.Step >= len(p.Steps) {
				continue
			}
			s := p.Steps[why.Step]
			_, text, _ := strings.Cut(why.Text, ": ")
			text, _, _ = strings.Cut(text, "; an undo")
			doubt, isDoubt := strings.CutPrefix(text, policy.NotKnown)
			effect, want := claims[text], "yes"
			if isDoubt {
				effect, want = doubts[doubt], "unknown"
				unknown++
			}
			if effect == "" {
				continue
			}
			seen++
			at := slices.IndexFunc(DangerKeys(), func(e atip.Effect) bool { return policy.DangerName(e) == effect })
			if got := s.Value(DangerKeys()[at]).String(); got != want && (!isDoubt || got == "no") {
				t.Errorf("%s: %q: %q, and %s is %s", r.ID, r.Text(), why.Text, effect, got)
			}
			if local := strings.HasSuffix(text, "on this machine"); local != (effect == "remoteMutation" && !isDoubt && len(s.Hosts) > 0 && !slices.ContainsFunc(s.Hosts, func(h policy.HostUse) bool { return h.Kind != policy.HostLoopback })) {
				t.Errorf("%s: %q: %q for %v", r.ID, r.Text(), why.Text, s.Hosts)
			}
		}
		var f *fault.Fault
		if errors.As(p.Refusal(), &f) {
			if n := len(f.Brief()); n > 600 {
				t.Errorf("%s: %q: %d bytes", r.ID, r.Text(), n)
			}
			ways, _ := f.Details["alternatives"].([]string)
			for _, way := range ways {
				if strings.HasPrefix(way, "allowed by themselves: ") && strings.Contains(way, quote.Words(p.Invocation.Words())) {
					t.Errorf("%s: %q: the refused command is offered: %q", r.ID, r.Text(), way)
				}
			}
			if len(ways) == 0 || f.Suggestion.Fix == "" {
				t.Errorf("%s: %q: no way to go on: %q, %+v", r.ID, r.Text(), ways, f.Suggestion)
			}
		}
		p.Close()
	}
	if seen < 100 || unknown < 10 {
		t.Errorf("only %d reasons, %d of them about what is not known", seen, unknown)
	}
}
