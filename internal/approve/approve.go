// Package approve keeps the requests that wait for a person, and checks what a
// person signed.
package approve

import (
	"errors"
	"time"
)

// Request asks a person to permit one plan.
type Request struct {
	V         int            `json:"v"`
	ID        string         `json:"id"`
	Created   time.Time      `json:"created"`
	Expires   time.Time      `json:"expires"`
	Digest    string         `json:"digest"` // of Bound: "sha256:..."
	Bound     map[string]any `json:"bound"`
	Display   Display        `json:"display"`
	Requester Requester      `json:"requester"`
}

// Display is what the person is shown.
type Display struct {
	Argv      []string `json:"argv"`
	Message   string   `json:"message"`
	Effects   []string `json:"effects"`
	Resources []string `json:"resources"`
	Rules     []string `json:"rules"`
	Tool      string   `json:"tool"`
	Trust     string   `json:"trust"`
}

// Requester says who asks.
type Requester struct {
	UID      int      `json:"uid"`
	PID      int      `json:"pid"`
	Start    string   `json:"start,omitempty"`
	SID      int      `json:"sid"`
	TTY      string   `json:"tty,omitempty"`
	Ancestry []string `json:"ancestry,omitempty"`
	Session  string   `json:"session,omitempty"`
	Agent    string   `json:"agent,omitempty"`
	Chain    []string `json:"chain,omitempty"`
}

// Digest is the digest a grant binds: sha256 over the canonical JSON of bound
// (sorted keys, no floats).
func Digest(bound map[string]any) (string, error) {
	return "", errors.New("requests cannot be made by this build")
}

// WriteRequest stores r in dir and returns its id. An open request with the same
// digest is reused. ID, Created, Expires and Digest are filled in.
func WriteRequest(dir string, r Request) (id string, err error) {
	return "", errors.New("requests cannot be made by this build")
}

// List returns the open requests of dir, oldest first.
func List(dir string) ([]Request, error) {
	return nil, errors.New("requests cannot be read by this build")
}
