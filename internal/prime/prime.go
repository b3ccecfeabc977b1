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
	r.object(root, "request", []string{"agentId", "sessionId"}, members{
		"agentId": r.text(&q.AgentID), "sessionId": r.text(&q.SessionID), "locale": r.text(&q.Locale), "userRole": r.text(&q.UserRole),
		"capabilities": r.isObject, "metadata": r.isObject,
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
	bad := func(msg string) error { return &errcode.Error{Code: errcode.PrimeRequest, Msg: msg} }
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
		return nil, &errcode.Error{Code: errcode.PrimeAnswer, Msg: "the response is longer than 256 KiB"}
	}
	p := &Response{}
	root := r.parse(raw)
	var ignored string
	var steps []string
	r.object(root, "response", []string{"version", "session", "usageDirectives"}, members{
		"version":  r.text(&p.Version),
		"toolName": r.text(&p.ToolName),
		"session": r.members([]string{"sessionId"}, members{"sessionId": r.text(&p.SessionID), "expiresAt": func(n *atip.Node, what string) {
			var text string
			r.text(&text)(n, what)
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				r.bad(what + ": " + strconv.Quote(text) + " is not a time as RFC 3339 writes it")
			}
			p.ExpiresAt = at
		}}),
		"usageDirectives": r.members(nil, members{"primaryIntents": r.texts(&p.Intents), "do": r.texts(&p.Do), "dont": r.texts(&p.Dont)}),
		"capabilities":    r.isObject,
		"rateLimits": r.members(nil, members{"burst": r.rate(&p.Burst), "requestsPerMinute": func(n *atip.Node, what string) {
			p.Limited = true
			r.rate(&p.PerMinute)(n, what)
		}, others: nil}),
		"schema": r.members(nil, members{"preferredCommands": r.texts(&p.Preferred), "deprecatedCommands": r.texts(&p.Deprecated), others: nil}),
		"examples": func(n *atip.Node, what string) {
			r.list(n, what, r.members([]string{"description", "sequence"}, members{"description": r.text(&ignored), "sequence": r.texts(&steps)}))
		},
		"breakingChangeSince": r.text(&p.BreakingSince),
		"minAgentVersion":     r.text(&p.MinAgent),
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
		r.err = &errcode.Error{Code: r.code, Msg: "the " + r.what + " of prime: " + msg}
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

// members says what reads the value of each key of an object, given what the value is called.
type members map[string]func(n *atip.Node, what string)

// others stands among members for every key that is not there.
const others = ""

func (r *reader) object(n *atip.Node, what string, required []string, read members) {
	if r.err != nil {
		return
	}
	if r.isObject(n, what); r.err != nil {
		return
	}
	_, open := read[others]
	for _, m := range n.Items {
		if one := read[m.Key]; one != nil {
			one(m, strings.TrimPrefix(what+"."+m.Key, r.what+"."))
		} else if !open {
			r.bad(what + " has the key " + strconv.Quote(m.Key) + ", which is not defined")
		}
	}
	for _, key := range required {
		if n.Get(key) == nil {
			r.bad(what + " has no " + key)
		}
	}
}

func (r *reader) members(required []string, read members) func(*atip.Node, string) {
	return func(n *atip.Node, what string) { r.object(n, what, required, read) }
}

func (r *reader) isObject(n *atip.Node, what string) {
	if n.Kind != atip.KindObject {
		r.bad(what + " is not an object")
	}
}

func (r *reader) text(to *string) func(*atip.Node, string) {
	return func(n *atip.Node, what string) {
		if n.Kind != atip.KindString {
			r.bad(what + " is not a string")
		}
		*to = n.Text
	}
}

func (r *reader) list(n *atip.Node, what string, item func(n *atip.Node, what string)) {
	if n.Kind != atip.KindArray {
		r.bad(what + " is not an array")
		return
	}
	for _, e := range n.Items {
		item(e, what+"[]")
	}
}

func (r *reader) texts(to *[]string) func(*atip.Node, string) {
	return func(n *atip.Node, what string) {
		*to = []string{}
		r.list(n, what, func(e *atip.Node, what string) {
			var text string
			r.text(&text)(e, what)
			*to = append(*to, text)
		})
	}
}

func (r *reader) rate(to *float64) func(*atip.Node, string) {
	return func(n *atip.Node, what string) {
		v, err := strconv.ParseFloat(n.Text, 64)
		if n.Kind != atip.KindNumber || err != nil || v <= 0 || v > 1e12 {
			r.bad(what + " is not a number above zero")
		}
		*to = v
	}
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
