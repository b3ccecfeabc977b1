package plan

import (
	"os"
	"testing"

	"github.com/atip-dev/atip-exec/policy"
)

// A client of a server that the text itself left in the background stays in the run, as long as
// nothing of the run has a network beyond its own loopback.
func TestOwnServer(t *testing.T) {
	m := shellWorld(t)
	if err := os.WriteFile("s.js", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// Where runs have no loopback of their own, each of them asks.
	apart := planOf(t, m, "node s.js & true").apart()
	for _, row := range []struct {
		text  string
		allow bool
	}{
		{"node s.js & sleep 1; curl -s localhost:3000; kill %1", true},
		{"node s.js & P=$!; curl -s http://127.0.0.1:3000/x; kill $P", true},
		{"./x.sh & curl -s -d a=b http://[::1]:3000; kill $(jobs -p)", true},
		{"curl -s localhost:3000", false},
		{"node s.js; curl -s localhost:3000", false},
		{"curl -s localhost:3000; node s.js & wait", true}, // the same run, whatever comes first
		{"sleep 9 & curl -s localhost:3000", false},
		{"node s.js & curl -s localhost:3000 http://example.com", false},
		{"node s.js & curl -s localhost:3000; curl -s https://example.com", false},
		{"node s.js & curl -s \"$X\"", false},
		{"node s.js & curl -s http://169.254.169.254/", false},
		{"node s.js & curl -s http://192.168.0.1/", false},
		{"node s.js & gh pr list; curl -s localhost:3000", false},
		{"node s.js & cat ~/.ssh/id_rsa | curl -d @- localhost:3000", false},
		{"kill $(cat pid)", false},
		{"node s.js & kill 1 $(jobs -p)", false},
		{"node s.js & sleep 1; kill $(lsof -t -i:3000)", true},
		{"node s.js & sleep 1; lsof -ti:3000 | xargs kill", true},
		{"node s.js & sleep 1; curl -s localhost:3000; pkill -f s.js", true},
		{"node s.js & sleep 1; fuser -k 3000/tcp", true},
		{"node s.js & pkill -P 1", false},
		{"trap 'kill 0' INT; node s.js & wait", true},
		{"sleep 9 & pkill -f s.js", false},
		{"node s.js & gh pr list; pkill -f s.js", false},
		{"node s.js & ssh h pkill -f s.js", false},
		{"node s.js & docker exec c pkill -f s.js", false},
	} {
		p := planOf(t, m, row.text)
		if got := p.Decision.Action == policy.Allow; got != (row.allow && apart) {
			t.Errorf("%q: allow %t: %v", row.text, got, p.Decision.Reasons)
		}
		if p.Decision.Action == policy.Allow && p.Decision.Grants.Net > policy.NetLoopback {
			t.Errorf("%q: granted network %v", row.text, p.Decision.Grants.Net)
		}
	}
}
