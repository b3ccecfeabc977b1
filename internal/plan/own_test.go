package plan

import (
	"os"
	"slices"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// holdsNothing fails for a text with own steps whose other parts hold a host, a credential or a
// secret, and for an own step that may start anything or that runs code of the project.
func holdsNothing(t *testing.T, name string, p *Plan) {
	t.Helper()
	g := p.Decision.Grants
	if p.Decision.Action != policy.Allow || g.Net > policy.NetLoopback || len(g.Hosts) > 0 || g.Effects.Has(atip.SecretRead) || g.Effects.Has(atip.RemoteMutation) {
		t.Errorf("%s: %v, the text is granted %v %v %v", name, p.Decision.Action, g.Net, g.Hosts, DangersOf(g.Effects))
	}
	if len(p.CredentialFiles) > 0 || len(p.Env.Credentials) > 0 || p.Rights.held || p.Profile.Net.Mode > sandbox.NetLoopback || !p.Profile.Untraced || !p.Gated() {
		t.Errorf("%s: the text has %v %v, network %v, traced %v, gated %v", name, p.CredentialFiles, p.Env.Credentials, p.Profile.Net.Mode, !p.Profile.Untraced, p.Gated())
	}
	for _, o := range p.Own {
		if o.Exec != "closed" && o.Exec != "gated" {
			t.Errorf("%s: %q may start what is %q", name, o.Argv, o.Exec)
		}
		if s := p.Reading.Steps[o.Step]; s.Foreign() || !p.Steps[o.Step].Own || !slices.Equal(s.Argv, o.Argv) {
			t.Errorf("%s: %q is no own step", name, o.Argv)
		}
	}
	if p.Binding()["ownSteps"] == nil || len(p.Document().OwnSteps) != len(p.Own) {
		t.Errorf("%s: own steps are missing in the binding or in the document", name)
	}
}

// TestOwnStepsOfCorpus: whatever row of the corpus has own steps, the rest of it holds none of what
// they hold, also where the caller has credentials for everything; and its plan without them would ask.
func TestOwnStepsOfCorpus(t *testing.T) {
	w := newCorpusWorld(t)
	m := w.machine()
	m.Environ = append(slices.Clone(m.Environ), "GH_TOKEN=x", "NPM_TOKEN=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_ACCESS_KEY_ID=x", "GITLAB_TOKEN=x", "CARGO_REGISTRY_TOKEN=x")
	b := &Batch{Machine: m}
	rows := readCorpusFiles(t, "steps")
	for i, r := range readCorpus(t) {
		if i%9 == 0 || os.Getenv("CORPUS_ROWS") == "all" {
			rows = append(rows, r)
		}
	}
	seen := 0
	for i := range rows {
		r := &rows[i]
		if len(r.Env)+len(r.Files) > 0 {
			continue
		}
		p, err := b.Plan(w.invocation(r))
		if err != nil {
			continue
		}
		if len(p.Own) > 0 {
			seen++
			holdsNothing(t, r.ID, p)
		}
		p.Close()
	}
	if seen < 10 {
		t.Errorf("%d rows have own steps: there is nothing to hold", seen)
	}
}
