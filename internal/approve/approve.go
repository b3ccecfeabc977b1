// Package approve keeps the requests that wait for a person, and checks what a
// person signed.
package approve

import "time"

// Request asks a person to permit one plan. It is found again by its digest: the
// same plan asked for twice is one request.
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

// Display is what the person is shown. It is not bound: whoever shows it must
// render Bound as well, and escape both.
type Display struct {
	Argv      []string `json:"argv"`
	Message   string   `json:"message"`
	Effects   []string `json:"effects"`
	Resources []string `json:"resources"`
	Rules     []string `json:"rules"`
	Tool      string   `json:"tool"`
	Trust     string   `json:"trust"`
	// Subjects are what the authors of commits wrote about them, by object id.
	Subjects map[string]string `json:"subjects,omitempty"`
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

// Error says why a request could not be stored or read. It has no code of its
// own: the run is refused with E2010 either way, then without a request id.
type Error struct {
	Op   string
	Path string
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return "request: " + e.Op + " " + e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
