package tools

import (
	"encoding/json"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/prime"
	"github.com/atip-dev/atip-exec/internal/priming"
)

// primeVerb prints the response of a tool, or our own. It is a foreign format: nothing is
// added to it.
func primeVerb(c *cli.Console, v *cli.Values) (int, error) {
	q := prime.Request{AgentID: v.Get("agent-id"), SessionID: v.Get("session-id"), Locale: v.Get("locale"), UserRole: v.Get("user-role")}
	agent, session := plan.Identity(caller.Here())
	if !v.Has("agent-id") {
		q.AgentID = agent
	}
	if !v.Has("session-id") {
		q.SessionID = session
	}
	if v.Has("capabilities") {
		q.Capabilities = json.RawMessage(v.Get("capabilities"))
	}
	if v.Has("metadata") {
		q.Metadata = json.RawMessage(v.Get("metadata"))
	}
	if err := q.Check(); err != nil {
		return 0, err
	}
	if len(v.Rest) > 1 {
		return 0, fault.New(errcode.Arguments, "prime takes one tool").WithFix("name one tool", "atip prime mytool")
	}
	if len(v.Rest) == 0 {
		own, err := ownPrime(q.SessionID)
		if err != nil {
			return 0, err
		}
		return 0, c.Document(own)
	}
	raw, err := priming.Of(v.Rest[0], q, caller.Here())
	if err != nil {
		return 0, err
	}
	return 0, c.Document(raw)
}

// ownPrime is our own response, from the policy in force.
func ownPrime(session string) (prime.OwnResponse, error) {
	set, err := plan.Policies(caller.Here())
	if err != nil {
		return prime.OwnResponse{}, err
	}
	network := set.Network()
	return prime.Own(session, prime.Policy{Digest: set.Digest(), Profile: set.Profile(), Confined: set.Sandbox().Confine != "none", Hosts: network.Allow, Denied: network.Deny}), nil
}
