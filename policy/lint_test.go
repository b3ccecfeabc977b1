package policy

import (
	"strings"
	"testing"
	"time"
)

func TestLint(t *testing.T) {
	const good = `{"id":"a","decision":"allow","when":{"tool":"gh","command":["pr create"]},"grants":["network"],"match":["gh pr create"]}`
	for _, row := range []struct{ rules, severity, want string }{
		{good, "", ""},
		{`{"id":"a","decision":"allow","when":{"tool":"gh"},"grants":["network"]}`, "warning", "has no match"},
		{`{"id":"a","decision":"allow","when":{"tool":"python3"},"grants":["write"],"match":["python3 x.py"]}`, "warning", "runs whatever"},
		{`{"id":"a","decision":"allow","when":{"tool":"g*"},"grants":["write"],"match":["gh x"]}`, "warning", "also one that is installed later"},
		{`{"id":"a","decision":"allow","when":{"effects":{"write":true}},"grants":["write"],"match":["x"]}`, "warning", "names no tool"},
		{`{"id":"a","decision":"allow","when":{"tool":"curl","host":["*.com"]},"grants":["network"],"match":["x"]}`, "warning", "strangers"},
		{`{"id":"a","decision":"deny","when":{"tool":"gh"}}`, "warning", "has no notMatch"},
		{`{"id":"a","decision":"deny","when":{"path":{"glob":"/srv/prod/**"}},"notMatch":["ls"]}`, "warning", "paths.protected"},
		{`{"id":"a","decision":"deny","when":{"path":{"class":"root"}},"notMatch":["ls"]}`, "", ""},
		{`{"id":"a","decision":"deny","when":{"host":["evil.example"]},"notMatch":["ls"]}`, "warning", "network.deny"},
		{`{"id":"a","decision":"deny","when":{"host":["metadata"]},"notMatch":["ls"]}`, "", ""},
		{`{"id":"a","decision":"confirm","when":{"tool":"gh"}}`, "", ""},
		{`{"id":"a","decision":"confirm","when":{"tool":"gh"},"suggest":"run atip approve"}`, "error", "how permission is given"},
		{`{"id":"a","decision":"allow","when":{"tool":"gh"},"grants":[],"match":["gh"],"expires":"2026-01-01T00:00:00Z"}`, "error", "expired"},
		{good + `,` + strings.Replace(good, `"a"`, `"b"`, 1), "error", "a says the same"},
		{good + `,` + strings.Replace(strings.Replace(good, `"a"`, `"b"`, 1), `["network"]`, `["network","write"]`, 1), "", ""},
	} {
		doc, err := Parse(Source{File: "x.json", Raw: []byte(`{"version":1,"rules":[` + row.rules + `]}`), Layer: LayerUser})
		if err != nil {
			t.Fatalf("%s: %v", row.rules, err)
		}
		found := doc.Lint(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
		if row.want == "" {
			if len(found) != 0 {
				t.Errorf("%s: %+v", row.rules, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Severity != row.severity || !strings.Contains(found[0].Text, row.want) || found[0].Line != 1 {
			t.Errorf("%s: %+v, want %s", row.rules, found, row.want)
		}
	}
}
