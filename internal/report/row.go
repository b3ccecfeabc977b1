package report

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Outcome is what was decided of a run, as far as its record shows it.
type Outcome string

// The outcomes, in the order of the page. Other is the strict reading of a record that
// does not say.
const (
	Allowed  Outcome = "allow"
	Approved Outcome = "approved" // an approval was required and there was one
	Asked    Outcome = "ask"      // an approval was required and there was none
	Denied   Outcome = "deny"
	Other    Outcome = "other" // no decision, or its end is unknown
)

// Outcomes lists them in the order of the page.
var Outcomes = []Outcome{Allowed, Approved, Asked, Denied, Other}

// Limits of a row. The record that the row opens has everything.
const (
	commandLimit = 300
	wordLimit    = 160
	listLimit    = 8
)

// row is what the list shows and searches. The names are short: there may be 100,000.
type row struct {
	ID         string   `json:"id"`
	Time       string   `json:"t"`
	Kind       string   `json:"k"`
	Command    string   `json:"c"`
	Outcome    Outcome  `json:"d"`
	Exit       *int     `json:"x,omitempty"`
	Code       string   `json:"e,omitempty"`
	Message    string   `json:"m,omitempty"`
	Effects    []string `json:"f,omitempty"` // with ? where unknown
	Hosts      []named  `json:"h,omitempty"`
	Files      []named  `json:"w,omitempty"`
	Changed    *changed `json:"u,omitempty"`
	Refused    int      `json:"rs,omitempty"`
	Deferred   int      `json:"ds,omitempty"`
	Redactions int64    `json:"rd,omitempty"`
	Denials    int      `json:"dn,omitempty"`
	Session    string   `json:"s,omitempty"`
	Agent      string   `json:"a,omitempty"`
	Cwd        string   `json:"p,omitempty"`
	Rules      []string `json:"r,omitempty"`
	MS         int64    `json:"ms,omitempty"`
}

// named is a host or file and what was, or would have been, done with it.
type named struct {
	Name string `json:"n"`
	How  string `json:"h"`
}

// changed counts files of the workspace.
type changed struct {
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

// recorded is what a row takes from a record.
type recorded struct {
	ID       string   `json:"id"`
	T        string   `json:"t"`
	Kind     string   `json:"kind"`
	Argv     []string `json:"argv"`
	Cwd      string   `json:"cwd"`
	Session  string   `json:"session"`
	Agent    string   `json:"agent"`
	Exit     *int     `json:"exit"`
	State    string   `json:"state"`
	Decision *struct {
		Action string   `json:"action"`
		Rules  []string `json:"rules"`
		Steps  []struct {
			Decided string `json:"decided"`
			Effects map[string]struct {
				Value string `json:"value"`
			} `json:"effects"`
			Resources []struct {
				Kind   string `json:"kind"`
				Value  string `json:"value"`
				Abs    string `json:"abs"`
				Access string `json:"access"`
				Host   string `json:"host"`
			} `json:"resources"`
		} `json:"steps"`
	} `json:"decision"`
	Starts struct {
		Decided int `json:"decided"`
		Refused int `json:"refused"`
	} `json:"starts"`
	Denials   []json.RawMessage `json:"denials"`
	Protected struct {
		Changed []string `json:"changed"`
	} `json:"protected"`
	Undo struct {
		Changed *changed `json:"changed"`
	} `json:"undo"`
	Network *struct {
		Log []struct {
			Host     string `json:"host"`
			Port     int    `json:"port"`
			Decision string `json:"decision"`
		} `json:"log"`
	} `json:"network"`
	Filter struct {
		Stdout filtered `json:"stdout"`
		Stderr filtered `json:"stderr"`
	} `json:"filter"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Timing struct {
		RunMS int64 `json:"run_ms"`
	} `json:"timing"`
}

type filtered struct {
	Redactions []struct {
		Count int64 `json:"count"`
	} `json:"redactions"`
}

// effectNames is the order of the effects in a row. An effect that is "no" is left out,
// but for reversible, which matters then.
var effectNames = []string{"read", "write", "delete", "network", "subprocess", "destructive", "remoteMutation", "billable", "persistence", "privileged", "secretRead", "execOpaque"}

func (p *Page) rowOf(record, intent []byte) (row, error) {
	var r recorded
	odd := json.Unmarshal(record, &r)
	if !json.Valid(record) {
		return row{}, odd
	}
	if r.Decision == nil && intent != nil {
		var began recorded
		if err := json.Unmarshal(intent, &began); err == nil {
			r.Decision = began.Decision
		}
	}
	out := row{ID: cut(r.ID, wordLimit), Time: cut(r.T, wordLimit), Kind: cut(r.Kind, wordLimit), Command: cut(p.quote(r.Argv), commandLimit), Outcome: r.outcome(), Exit: r.Exit,
		Session: cut(r.Session, wordLimit), Agent: cut(r.Agent, wordLimit), Cwd: cut(r.Cwd, wordLimit), MS: r.Timing.RunMS,
		Refused: r.Starts.Refused, Deferred: r.Starts.Decided, Denials: len(r.Denials), Changed: r.Undo.Changed}
	if r.Error != nil {
		out.Code, out.Message = cut(r.Error.Code, wordLimit), cut(r.Error.Message, commandLimit)
	}
	for _, one := range append(r.Filter.Stdout.Redactions, r.Filter.Stderr.Redactions...) {
		out.Redactions += one.Count
	}
	if r.Decision != nil {
		out.Rules = words(r.Decision.Rules)
		out.Effects = r.effects()
	}
	if odd != nil {
		// What could be read is shown, and nothing is concluded from it.
		out.Outcome, out.Message = Other, cut("a field of this record has another form: "+odd.Error(), commandLimit)
	}
	out.Hosts, out.Files = bounded(r.hosts()), bounded(r.files())
	return out, nil
}

// outcome tells what was decided. A run that asked and ran had its approval: nothing else
// lets it start.
func (r *recorded) outcome() Outcome {
	action := ""
	if r.Decision != nil {
		action = r.Decision.Action
	}
	ran := r.State != "refused" && r.Exit != nil
	switch {
	case r.Kind == "killed" || r.Kind == "intent":
		return Other
	case action == "deny":
		return Denied
	case action == "confirm" && ran:
		return Approved
	case action == "confirm":
		return Asked
	case action == "allow" && r.State != "refused":
		return Allowed
	case action == "allow" && r.Exit != nil && *r.Exit == 77:
		return Denied // by a budget, a ceiling or a delegation
	}
	return Other
}

func (r *recorded) effects() []string {
	var out []string
	worst := func(name, bad string) string {
		found := ""
		for _, s := range r.Decision.Steps {
			switch v := s.Effects[name].Value; {
			case v == bad:
				return bad
			case v == "unknown":
				found = v
			}
		}
		return found
	}
	say := func(name, shown, bad string) {
		switch worst(name, bad) {
		case bad:
			out = append(out, shown)
		case "unknown":
			out = append(out, shown+"?")
		}
	}
	for _, name := range effectNames {
		say(name, name, "yes")
	}
	say("reversible", "irreversible", "no")
	return out
}

// appendNamed adds a name that is not in the list yet.
func appendNamed(list []named, name, how string) []named {
	if name == "" || slices.Contains(list, named{name, how}) {
		return list
	}
	return append(list, named{cut(name, wordLimit), how})
}

// hosts lists what was reached or refused, or, where the run had no proxy to note it,
// what the plan names.
func (r *recorded) hosts() []named {
	var out []named
	add := func(name, how string) { out = appendNamed(out, name, how) }
	if r.Network != nil {
		for _, e := range r.Network.Log {
			name, how := e.Host, "reached"
			if e.Port != 0 {
				name += ":" + strconv.Itoa(e.Port)
			}
			if e.Decision != "allow" {
				how = "refused"
			}
			add(name, how)
		}
	}
	if len(out) == 0 && r.Decision != nil {
		for _, s := range r.Decision.Steps {
			for _, res := range s.Resources {
				add(res.Host, "named")
			}
		}
	}
	return out
}

// files lists what the plan names to be changed, and protected names that were.
func (r *recorded) files() []named {
	var out []named
	add := func(name, how string) { out = appendNamed(out, name, how) }
	for _, name := range r.Protected.Changed {
		add(name, "protected")
	}
	if r.Decision == nil {
		return out
	}
	for _, s := range r.Decision.Steps {
		for _, res := range s.Resources {
			if res.Kind != "path" {
				continue
			}
			name := res.Abs
			name = cmp.Or(name, res.Value)
			switch {
			case strings.Contains(res.Access, "delete"):
				add(name, "delete")
			case strings.Contains(res.Access, "write"):
				add(name, "write")
			}
		}
	}
	return out
}

func bounded(list []named) []named {
	if more := len(list) - listLimit; more > 0 {
		return append(list[:listLimit:listLimit], named{strconv.Itoa(more) + " more", "more"})
	}
	return list
}

func words(list []string) []string {
	out := make([]string, 0, min(len(list), listLimit+1))
	for i, w := range list {
		if i == listLimit {
			return append(out, strconv.Itoa(len(list)-i)+" more")
		}
		out = append(out, cut(w, wordLimit))
	}
	return out
}

// cut shortens s to at most limit bytes and says so.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
