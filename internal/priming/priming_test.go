package priming

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/prime"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/trust"
)

const primedAnswer = `{"version":"1.0.0","session":{"sessionId":"s"},"usageDirectives":{"do":["Look first"],"dont":["Hurry"]},"schema":{"preferredCommands":["work"],"deprecatedCommands":["legacy"]}`

// BenchmarkPrimeCached is a run of a tool that was primed already: what it said is found,
// read and applied.
func BenchmarkPrimeCached(b *testing.B) {
	for name, more := range map[string]string{"directives": "", "rate": `,"rateLimits":{"requestsPerMinute":60000000,"burst":1000000}`} {
		b.Run(name, func(b *testing.B) { benchmarkPrimed(b, more) })
	}
}

func benchmarkPrimed(b *testing.B, more string) {
	dir := b.TempDir()
	p := &plan.Plan{Place: plan.Place{Dirs: place.Dirs{State: dir, Config: dir}}, Machine: caller.Machine{UID: os.Getuid(), Environ: []string{"ATIP_SESSION_ID=s", "ATIP_AGENT_ID=a"}}}
	s := &step.Step{ID: trust.Identity{Digest: "d"}, Primes: &step.Primes{}}
	s.Call = atip.Call{Tool: "t", Path: []string{"work"}}
	p.Steps = []*step.Step{s}
	raw := []byte(primedAnswer + more + "}")
	file := primeFile(p, s, prime.Request{AgentID: p.Agent(), SessionID: p.PrimeSession()})
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		b.Fatal(err)
	}
	e := answeredPrime(time.Now(), raw)
	if e.Code != "" {
		b.Fatal(e.Message)
	}
	if err := writePrime(file, e); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		x := New(p, nil, nil)
		if err := x.Ask(); err != nil {
			b.Fatal(err)
		}
		if len(x.Tools) != 1 || x.Tools[0].Asked {
			b.Fatalf("%+v", x.Tools)
		}
	}
}
