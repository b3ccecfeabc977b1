package prime

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestSeedSection6 reads the example response of the RFC's section 6.
func TestSeedSection6(t *testing.T) {
	raw, err := os.ReadFile("testdata/section6.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if r.Version != "1.0.0" || !r.ExpiresAt.Equal(time.Date(2026, 1, 25, 12, 0, 0, 0, time.UTC)) || len(r.Do) != 2 || r.IsDeprecated("example-tool", []string{"legacy-run"}) == "" || r.IsDeprecated("example-tool", []string{"execute"}) != "" {
		t.Errorf("%+v", r)
	}
	q := Request{AgentID: "a", SessionID: "s", Capabilities: []byte(`{"supportsStreaming": true}`), Locale: "en-US", UserRole: "end_user"}
	if got := strings.Join(q.Words("tool", false), "|"); got != `tool|prime|--agent-id|a|--session-id|s|--capabilities|{"supportsStreaming": true}|--locale|en-US|--user-role|end_user` {
		t.Error(got)
	}
}

func TestResponsesThatAreNone(t *testing.T) {
	for _, raw := range []string{``, `[]`, `{}`, `{"version":"1","session":{},"usageDirectives":{}}`, `{"version":1,"session":{"sessionId":"s"},"usageDirectives":{}}`,
		`{"version":"1","session":{"sessionId":"s"},"usageDirectives":{},"version":"2"}`, `{"version":"1","session":{"sessionId":"s","x":1},"usageDirectives":{}}`,
		`{"version":"1","session":{"sessionId":"s","expiresAt":"soon"},"usageDirectives":{}}`, `{"version":"1","session":{"sessionId":"s"},"usageDirectives":{"Do":[]}}`,
		`{"version":"1","session":{"sessionId":"s"},"usageDirectives":{},"rateLimits":{"requestsPerMinute":0}}`, `{"version":"1","session":{"sessionId":"s"},"usageDirectives":{},"rateLimits":{"burst":-1}}`,
		`{"version":"1","session":{"sessionId":"s"},"usageDirectives":{},"examples":[{"description":"d"}]}`, `{"version":"1","session":{"sessionId":"s"},"usageDirectives":{}} x`} {
		if _, err := Parse([]byte(raw)); err == nil {
			t.Errorf("%s is read", raw)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		least, have string
		ok          bool
	}{{"", "x", true}, {"1.2", "1.2.0", true}, {"1.10", "1.9", false}, {"1.0.0", "1.0.0-dev", false}, {"1.0.0-a", "1.0.0", true}, {"x", "1", false}, {"1", "x", false}} {
		r := Response{MinAgent: c.least}
		if (r.TooOld(c.have) == "") != c.ok {
			t.Errorf("%q %q: %q", c.least, c.have, r.TooOld(c.have))
		}
	}
}

func TestFloor(t *testing.T) {
	for _, c := range []struct{ asked, floor, want Mode }{{Off, Enforce, Enforce}, {Off, Auto, Auto}, {Enforce, Off, Enforce}, {Auto, Off, Auto}, {Off, Off, Off}} {
		if got := c.asked.AtLeast(c.floor); got != c.want {
			t.Errorf("%v with the floor %v: %v", c.asked, c.floor, got)
		}
	}
}

// FuzzParse: no answer makes the reader panic, what is read is one by the schema, and what is read can be shown on one line.
func FuzzParse(f *testing.F) {
	raw, _ := os.ReadFile("testdata/section6.json")
	f.Add(raw)
	schema := schemaOf(f, "response")
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := Parse(raw)
		if err != nil {
			return
		}
		if !holds(schema, string(raw)) {
			t.Fatalf("the schema refuses %q", raw)
		}
		if said := r.Said(); strings.ContainsAny(said, "\n\x1b") || len(said) > MaxSaid+8 {
			t.Fatalf("%q", said)
		}
		if r.Limited && (r.Capacity() < 1 || r.PerSecond() <= 0) {
			t.Fatalf("%+v", r)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	raw, _ := os.ReadFile("testdata/section6.json")
	for b.Loop() {
		if _, err := Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}
