// Package prime is the Prime Directive: what a tool tells an agent before its first use in
// a session, read strictly, and what follows from it. It neither starts anything nor
// writes; package run does.
package prime

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Limits of an answer.
const (
	MaxResponse = 256 << 10
	MaxSaid     = 2 << 10        // bytes of do and dont that are shown
	MaxAge      = 24 * time.Hour // of an answer, whatever it says itself
)

// Error is a request or a response that is not what the RFC describes.
type Error struct {
	Code string // E1301, E4301, E4303
	Msg  string
	Fix  string
}

// Error implements error.
func (e *Error) Error() string { return e.Msg }

// FaultCode implements fault.Coded.
func (e *Error) FaultCode() string { return e.Code }

// FaultDetails implements fault.Coded.
func (e *Error) FaultDetails() map[string]any { return nil }

// FaultFix implements fault.Fixer.
func (e *Error) FaultFix() (fix, example string) { return e.Fix, "" }

// Mode is what happens where priming fails or a directive is not followed.
type Mode uint8

// Modes from the weakest to the strictest. The zero value primes and warns.
const (
	Auto Mode = iota
	Enforce
	Off
)

// ModeByName reads a mode.
func ModeByName(name string) (Mode, bool) {
	switch name {
	case "", "auto":
		return Auto, true
	case "enforce":
		return Enforce, true
	case "off":
		return Off, true
	}
	return Auto, false
}

// AtLeast is the stricter one of what was asked for and a floor.
func (m Mode) AtLeast(floor Mode) Mode {
	rank := func(m Mode) int { return [...]int{1, 2, 0}[m] }
	if rank(floor) > rank(m) {
		return floor
	}
	return m
}

// Request is a PrimeRequest.
type Request struct {
	AgentID      string          `json:"agentId"`
	SessionID    string          `json:"sessionId"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Locale       string          `json:"locale,omitempty"`
	UserRole     string          `json:"userRole,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
}

// ParseRequest reads the JSON form of a request.
func ParseRequest(raw []byte) (Request, error) {
	r := reader{code: errcode.PrimeRequest, what: "request"}
	var q Request
	root := r.parse(raw)
	r.object(root, "request", []string{"agentId", "sessionId"}, func(key string, n *atip.Node) bool {
		switch key {
		case "agentId":
			q.AgentID = r.text(n, key)
		case "sessionId":
			q.SessionID = r.text(n, key)
		case "capabilities", "metadata":
			if n.Kind != atip.KindObject {
				r.bad(key + " is not an object")
			}
		case "locale":
			q.Locale = r.text(n, key)
		case "userRole":
			q.UserRole = r.text(n, key)
		default:
			return false
		}
		return true
	})
	if r.err != nil {
		return q, r.err
	}
	var objects struct{ Capabilities, Metadata json.RawMessage }
	_ = json.Unmarshal(raw, &objects)
	q.Capabilities, q.Metadata = objects.Capabilities, objects.Metadata
	return q, q.Check()
}

// Check says what is wrong with a request.
func (q *Request) Check() error {
	bad := func(msg string) error { return &Error{Code: errcode.PrimeRequest, Msg: msg} }
	switch {
	case q.AgentID == "":
		return bad("agent-id is empty")
	case q.SessionID == "":
		return bad("session-id is empty")
	case q.UserRole != "" && !slices.Contains(Roles(), q.UserRole):
		return bad("user-role: " + strconv.Quote(q.UserRole) + " is not one of " + strings.Join(Roles(), ", "))
	}
	for name, raw := range map[string]json.RawMessage{"capabilities": q.Capabilities, "metadata": q.Metadata} {
		if raw == nil {
			continue
		}
		if n, err := atip.ParseTree(raw, atip.ParseOptions{MaxBytes: MaxResponse}); err != nil || n.Kind != atip.KindObject {
			return bad(name + ": it is not a JSON object")
		}
	}
	for name, text := range map[string]string{"agent-id": q.AgentID, "session-id": q.SessionID, "locale": q.Locale} {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(text) > 1024 {
			return bad(name + ": it is longer than 1,024 bytes or holds a control character")
		}
	}
	return nil
}

// Roles are the roles of a user.
func Roles() []string { return []string{"end_user", "admin", "system"} }

// Words is the command line of a tool's prime; metadata only where the tool lists it.
func (q *Request) Words(tool string, metadata bool) []string {
	words := []string{tool, "prime", "--agent-id", q.AgentID, "--session-id", q.SessionID}
	for _, f := range [...]struct{ flag, value string }{{"--capabilities", string(q.Capabilities)}, {"--locale", q.Locale}, {"--user-role", q.UserRole}} {
		if f.value != "" {
			words = append(words, f.flag, f.value)
		}
	}
	if metadata && q.Metadata != nil {
		words = append(words, "--metadata", string(q.Metadata))
	}
	return words
}

// Response is what a tool answered.
type Response struct {
	Version, ToolName, SessionID string
	ExpiresAt                    time.Time // zero if it does not say
	Intents, Do, Dont            []string
	Limited                      bool // rateLimits.requestsPerMinute is there
	PerMinute, Burst             float64
	Preferred, Deprecated        []string
	BreakingSince, MinAgent      string
}

// Parse reads an answer strictly: closed objects, no key twice.
func Parse(raw []byte) (*Response, error) {
	r := reader{code: errcode.PrimeAnswer, what: "response"}
	if len(raw) > MaxResponse {
		return nil, &Error{Code: errcode.PrimeAnswer, Msg: "the response is longer than 256 KiB"}
	}
	p := &Response{}
	root := r.parse(raw)
	r.object(root, "response", []string{"version", "session", "usageDirectives"}, func(key string, n *atip.Node) bool {
		switch key {
		case "version":
			p.Version = r.text(n, key)
		case "toolName":
			p.ToolName = r.text(n, key)
		case "session":
			r.object(n, key, []string{"sessionId"}, func(k string, n *atip.Node) bool {
				switch k {
				case "sessionId":
					p.SessionID = r.text(n, "session.sessionId")
				case "expiresAt":
					text := r.text(n, "session.expiresAt")
					at, err := time.Parse(time.RFC3339, text)
					if err != nil {
						r.bad("session.expiresAt: " + strconv.Quote(text) + " is not a time as RFC 3339 writes it")
					}
					p.ExpiresAt = at
				default:
					return false
				}
				return true
			})
		case "usageDirectives":
			r.object(n, key, nil, func(k string, n *atip.Node) bool {
				switch k {
				case "primaryIntents":
					p.Intents = r.texts(n, key+"."+k)
				case "do":
					p.Do = r.texts(n, key+"."+k)
				case "dont":
					p.Dont = r.texts(n, key+"."+k)
				default:
					return false
				}
				return true
			})
		case "capabilities":
			if n.Kind != atip.KindObject {
				r.bad(key + " is not an object")
			}
		case "rateLimits":
			r.object(n, key, nil, func(k string, n *atip.Node) bool {
				switch k {
				case "requestsPerMinute":
					p.Limited, p.PerMinute = true, r.rate(n, key+"."+k)
				case "burst":
					p.Burst = r.rate(n, key+"."+k)
				}
				return true
			})
		case "schema":
			r.object(n, key, nil, func(k string, n *atip.Node) bool {
				switch k {
				case "preferredCommands":
					p.Preferred = r.texts(n, key+"."+k)
				case "deprecatedCommands":
					p.Deprecated = r.texts(n, key+"."+k)
				}
				return true
			})
		case "examples":
			r.list(n, key, func(n *atip.Node) {
				r.object(n, "examples[]", []string{"description", "sequence"}, func(k string, n *atip.Node) bool {
					switch k {
					case "description":
						r.text(n, "examples[].description")
					case "sequence":
						r.texts(n, "examples[].sequence")
					default:
						return false
					}
					return true
				})
			})
		case "breakingChangeSince":
			p.BreakingSince = r.text(n, key)
		case "minAgentVersion":
			p.MinAgent = r.text(n, key)
		default:
			return false
		}
		return true
	})
	if r.err != nil {
		return nil, r.err
	}
	return p, nil
}

// reader keeps the first thing that is wrong.
type reader struct {
	code, what string
	err        error
}

func (r *reader) bad(msg string) {
	if r.err == nil {
		r.err = &Error{Code: r.code, Msg: "the " + r.what + " of prime: " + msg}
	}
}

func (r *reader) parse(raw []byte) *atip.Node {
	n, err := atip.ParseTree(raw, atip.ParseOptions{MaxBytes: MaxResponse})
	if err != nil {
		r.bad(err.Error())
		return &atip.Node{}
	}
	return n
}

func (r *reader) object(n *atip.Node, what string, required []string, member func(key string, n *atip.Node) bool) {
	if r.err != nil {
		return
	}
	if n.Kind != atip.KindObject {
		r.bad(what + " is not an object")
		return
	}
	for _, m := range n.Items {
		if !member(m.Key, m) {
			r.bad(what + " has the key " + strconv.Quote(m.Key) + ", which is not defined")
		}
	}
	for _, key := range required {
		if n.Get(key) == nil {
			r.bad(what + " has no " + key)
		}
	}
}

func (r *reader) text(n *atip.Node, what string) string {
	if n.Kind != atip.KindString {
		r.bad(what + " is not a string")
	}
	return n.Text
}

func (r *reader) list(n *atip.Node, what string, item func(*atip.Node)) {
	if n.Kind != atip.KindArray {
		r.bad(what + " is not an array")
		return
	}
	for _, e := range n.Items {
		item(e)
	}
}

func (r *reader) texts(n *atip.Node, what string) []string {
	out := []string{}
	r.list(n, what, func(e *atip.Node) { out = append(out, r.text(e, what+"[]")) })
	return out
}

func (r *reader) rate(n *atip.Node, what string) float64 {
	v, err := strconv.ParseFloat(n.Text, 64)
	if n.Kind != atip.KindNumber || err != nil || v <= 0 || v > 1e12 {
		r.bad(what + " is not a number above zero")
	}
	return v
}

// Capacity and PerSecond are the token bucket of a limit.
func (p *Response) Capacity() float64 {
	if p.Burst > 0 {
		return max(1, p.Burst)
	}
	return max(1, p.PerMinute)
}

// PerSecond is how fast the bucket fills.
func (p *Response) PerSecond() float64 { return p.PerMinute / 60 }

// IsDeprecated returns the entry that deprecates a command, "" if none does: its words
// begin the path of the command, or it is the name of the command as a function.
func (p *Response) IsDeprecated(tool string, path []string) string {
	flat := strings.Join(append([]string{tool}, path...), "_")
	for _, entry := range p.Deprecated {
		words := strings.Fields(entry)
		if len(words) > 0 && words[0] == tool && len(words) > 1 {
			words = words[1:]
		}
		if len(words) > 0 && len(words) <= len(path) && slices.Equal(words, path[:len(words)]) || entry == flat || entry == strings.Join(path, "_") && len(path) > 0 {
			return entry
		}
	}
	return ""
}

// Said is what a person or an agent is shown of the directives, on one line.
func (p *Response) Said() string {
	var parts []string
	for _, l := range [...]struct {
		word string
		list []string
	}{{"do: ", p.Do}, {"do not: ", p.Dont}} {
		if len(l.list) > 0 {
			parts = append(parts, l.word+strings.Join(l.list, "; "))
		}
	}
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, strings.Join(parts, "; "))
	if len(text) > MaxSaid {
		text = strings.ToValidUTF8(text[:MaxSaid], "") + "…"
	}
	return text
}

// Changed names what differs from an earlier answer that must stay the same within a
// session.
func (p *Response) Changed(old *Response) []string {
	var out []string
	if !slices.Equal(p.Do, old.Do) || !slices.Equal(p.Dont, old.Dont) || !slices.Equal(p.Intents, old.Intents) {
		out = append(out, "usageDirectives")
	}
	if p.PerMinute != old.PerMinute || p.Burst != old.Burst {
		out = append(out, "rateLimits")
	}
	if !slices.Equal(p.Preferred, old.Preferred) || !slices.Equal(p.Deprecated, old.Deprecated) {
		out = append(out, "schema")
	}
	return out
}

// TooOld says why an agent of a version cannot use the tool, "" if it can.
func (p *Response) TooOld(agent string) string {
	if p.MinAgent == "" {
		return ""
	}
	least, ok := parseVersion(p.MinAgent)
	if !ok {
		return fmt.Sprintf("it asks for an agent of version %q, which cannot be compared", p.MinAgent)
	}
	have, ok := parseVersion(agent)
	if !ok {
		return fmt.Sprintf("it asks for an agent of at least version %s, and the version %q cannot be compared", p.MinAgent, agent)
	}
	if have.less(least) {
		return fmt.Sprintf("it asks for an agent of at least version %s, and this one is %s", p.MinAgent, agent)
	}
	return ""
}

// version is dotted numbers; a pre-release is lower than its release.
type version struct {
	numbers []uint64
	pre     string
}

func parseVersion(text string) (version, bool) {
	var v version
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "+")
	text, v.pre, _ = strings.Cut(text, "-")
	for _, part := range strings.Split(text, ".") {
		n, err := strconv.ParseUint(part, 10, 63)
		if err != nil {
			return v, false
		}
		v.numbers = append(v.numbers, n)
	}
	return v, len(v.numbers) <= 8
}

func (v version) less(w version) bool {
	for i := range max(len(v.numbers), len(w.numbers)) {
		var a, b uint64
		if i < len(v.numbers) {
			a = v.numbers[i]
		}
		if i < len(w.numbers) {
			b = w.numbers[i]
		}
		if a != b {
			return a < b
		}
	}
	if v.pre == "" || w.pre == "" {
		return v.pre != "" && w.pre == ""
	}
	return v.pre < w.pre
}
