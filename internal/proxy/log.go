package proxy

import (
	"cmp"
	"strings"
	"time"
)

// Entry is one request that the proxy was asked for.
type Entry struct {
	Time     string `json:"t"`
	Via      string `json:"via"` // http, connect, socks, direct, forward
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Addr     string `json:"addr,omitempty"`
	Decision string `json:"decision"`         // allow, deny
	Rule     string `json:"rule,omitempty"`   // the entry of a list that decided
	Reason   string `json:"reason,omitempty"` // why it was refused or failed
	Up       int64  `json:"up"`
	Down     int64  `json:"down"`
	MS       int64  `json:"ms"`
}

// Report is what became of all requests of a run.
type Report struct {
	Requests int     `json:"requests"`
	Denied   int     `json:"denied"`
	Log      []Entry `json:"log"`
	// More is how many requests are only counted.
	More int `json:"more,omitempty"`
}

// maxEntries bounds the log of one run.
const maxEntries = 256

// Explain says for a person why the request was refused.
func (e Entry) Explain() string {
	return cmp.Or(map[string]string{
		"malformed":     "the request or the name in it is malformed",
		"not-listed":    "it is not on the list of hosts of this run",
		"not-delegated": "it was not delegated",
		"denied":        "the policy denies it (network.deny)",
		"rebinding":     "the name leads to an address that is not on the public internet; network.private of a policy can permit the range",
		"sni":           "the TLS handshake names another host, or is none",
		"host":          "the request in the tunnel names another host, or is none",
		"method":        "SOCKS BIND and UDP are not offered",
		"interfaces":    "the addresses of this machine cannot be listed, so none can be told from others",
		"unresolved":    "its name is not known here",
		"refused":       "connection refused: nothing listens on that port",
		"unreachable":   "it does not answer",
		"upstream":      "the proxy of this machine refuses it (network.upstream)",
		"busy":          "too many connections at a time",
	}[e.Reason], e.Reason)
}

// printable makes what a client sent fit for a log.
func printable(s string) string {
	if len(s) > 253 {
		s = s[:253]
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, s)
}

// open begins an entry. It is filled in until the connection ends.
func (s *Server) open(via string) *Entry {
	return &Entry{Time: time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), Via: via}
}

// note counts a decided request and keeps its entry while there is room.
func (s *Server) note(e *Entry, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Decision, e.Reason = "allow", reason
	s.requests++
	if reason != "" {
		e.Decision = "deny"
		s.denied++
	}
	if len(s.log) < maxEntries {
		s.log = append(s.log, e)
	}
}

// amend changes an entry after its decision.
func (s *Server) amend(e *Entry, change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := e.Decision
	change()
	if was != "deny" && e.Decision == "deny" {
		s.denied++
	}
}

func (s *Server) report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Report{Requests: s.requests, Denied: s.denied, Log: []Entry{}, More: s.requests - len(s.log)}
	for _, e := range s.log {
		r.Log = append(r.Log, *e)
	}
	return r
}
