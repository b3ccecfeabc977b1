package prime

import "strings"

// Policy is what our own response says of the policy in force.
type Policy struct {
	Digest, Profile string
	Confined        bool
	Hosts, Denied   []string // of network.allow and network.deny
}

// OwnResponse is atip-exec's own answer to prime. It depends on the policy and the session
// only, so that the same policy gives the same bytes.
type OwnResponse struct {
	Version         string         `json:"version"`
	ToolName        string         `json:"toolName"`
	Session         ownSession     `json:"session"`
	UsageDirectives ownDirectives  `json:"usageDirectives"`
	Capabilities    map[string]any `json:"capabilities"`
	Schema          ownSchema      `json:"schema"`
	Examples        []ownExample   `json:"examples"`
}

type ownSession struct {
	SessionID string `json:"sessionId"`
}

type ownDirectives struct {
	PrimaryIntents []string `json:"primaryIntents"`
	Do             []string `json:"do"`
	Dont           []string `json:"dont"`
}

type ownSchema struct {
	Preferred  []string `json:"preferredCommands"`
	Deprecated []string `json:"deprecatedCommands"`
}

type ownExample struct {
	Description string   `json:"description"`
	Sequence    []string `json:"sequence"`
}

// Own makes our own response.
func Own(session string, p Policy) OwnResponse {
	do := []string{
		"Write atip-exec -- in front of a command, or hand a shell string to atip-exec -c.",
		"Use atip-exec explain -- CMD or --dry-run to see what would be decided; both start nothing.",
		"Read error.code on stderr: 77 means that nothing ran, and running the same again changes nothing.",
	}
	dont := []string{
		"Do not expect an answer to a question: E2010 means that the user must approve on their own terminal; go on with something else.",
		"Do not write to .git/hooks, editor settings or the policy: no run may.",
	}
	if p.Confined {
		do = append(do, "Write files in the workspace or in $TMPDIR.")
	}
	if len(p.Hosts) > 0 {
		do = append(do, "Unknown programs may reach: "+strings.Join(p.Hosts, ", ")+".")
	} else {
		dont = append(dont, "Do not expect a network in a program that the policy grants none.")
	}
	if len(p.Denied) > 0 {
		dont = append(dont, "Do not reach "+strings.Join(p.Denied, ", ")+".")
	}
	return OwnResponse{Version: "1.0.0", ToolName: "atip-exec", Session: ownSession{session},
		UsageDirectives: ownDirectives{PrimaryIntents: []string{"run commands inside the limits of their declared effects"}, Do: do, Dont: dont},
		Capabilities:    map[string]any{"dryRun": true, "profile": p.Profile, "policy": p.Digest, "confined": p.Confined},
		Schema:          ownSchema{Preferred: []string{"--", "explain", "--dry-run"}, Deprecated: []string{}},
		Examples:        []ownExample{{"look first, then run", []string{"explain", "--"}}},
	}
}
