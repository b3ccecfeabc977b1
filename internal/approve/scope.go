package approve

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// sessionLife is how long a grant for a session counts.
const sessionLife = 8 * time.Hour

// Scope is what a grant for a session covers: the effects of named commands in one
// session and workspace, not one plan and not a prefix of a text.
type Scope struct {
	UID         int         `json:"uid"`
	Session     string      `json:"session"`
	Agent       string      `json:"agent"`
	Workspace   string      `json:"workspace"`
	Chain       []string    `json:"chain"`
	Credentials []string    `json:"credentials"` // names
	Steps       []ScopeStep `json:"steps"`
}

// ScopeStep is one command with all it may do.
type ScopeStep struct {
	Tool    string   `json:"tool"`
	SHA256  string   `json:"sha256"`
	Command []string `json:"command"`
	Effects []string `json:"effects"` // of write, delete, network, remoteMutation
	Hosts   []string `json:"hosts"`
	Paths   []string `json:"paths"` // and what lies below them
}

// SessionEffects are the dangers that a grant for a session may cover.
func SessionEffects() []string { return []string{"write", "delete", "network", "remoteMutation"} }

// Covers reports whether all that is asked lies within s.
func (s *Scope) Covers(asked *Scope) bool {
	if s == nil || asked == nil || len(asked.Steps) == 0 || s.Session == "" || s.UID != asked.UID || s.Session != asked.Session || s.Agent != asked.Agent || s.Workspace != asked.Workspace ||
		!slices.Equal(s.Chain, asked.Chain) || !subset(asked.Credentials, s.Credentials) {
		return false
	}
	for i := range asked.Steps {
		if !slices.ContainsFunc(s.Steps, func(have ScopeStep) bool { return have.covers(&asked.Steps[i]) }) {
			return false
		}
	}
	return true
}

func (s *ScopeStep) covers(asked *ScopeStep) bool {
	below := func(path string) bool {
		return slices.ContainsFunc(s.Paths, func(have string) bool {
			return path == have || strings.HasPrefix(path, strings.TrimSuffix(have, "/")+"/")
		})
	}
	if slices.ContainsFunc(asked.Paths, func(path string) bool { return !below(path) }) {
		return false
	}
	return s.Tool == asked.Tool && s.SHA256 == asked.SHA256 && slices.Equal(s.Command, asked.Command) && subset(asked.Effects, s.Effects) && subset(asked.Effects, SessionEffects()) && subset(asked.Hosts, s.Hosts)
}

func subset(list, of []string) bool {
	return !slices.ContainsFunc(list, func(w string) bool { return !slices.Contains(of, w) })
}

// Canonical is the scope as part of a bound object.
func (s *Scope) Canonical() map[string]any {
	steps := []any{}
	for _, st := range s.Steps {
		steps = append(steps, map[string]any{"tool": st.Tool, "sha256": st.SHA256, "command": anyList(st.Command), "effects": anyList(st.Effects), "hosts": anyList(st.Hosts), "paths": anyList(st.Paths)})
	}
	return map[string]any{"uid": s.UID, "session": s.Session, "agent": s.Agent, "workspace": s.Workspace, "chain": anyList(s.Chain), "credentials": anyList(s.Credentials), "steps": steps}
}

func anyList(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

// ScopeOf is the scope that a request's plan could be granted for a session; false if
// it can be granted by its digest only.
func ScopeOf(bound map[string]any) (*Scope, bool) {
	m, ok := bound["scope"].(map[string]any)
	if !ok {
		return nil, false
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, false
	}
	var s Scope
	if json.Unmarshal(raw, &s) != nil || len(s.Steps) == 0 {
		return nil, false
	}
	return &s, true
}

// NewSessionGrant prepares a grant for a session, to be signed.
func NewSessionGrant(s *Scope, approver string) Grant {
	now := time.Now().UTC().Truncate(time.Second)
	return Grant{V: 1, ID: newGrantID(), Kind: "session", Scope: s, Created: now, Expires: now.Add(sessionLife), Approver: approver}
}
