// Package fault is the one table of error codes: for each code its exit status,
// category, what the caller can do, and how to say it.
package fault

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/marshal"
)

// Coded is implemented by the errors of every package that names a code of the
// table. Packages return their own error types; only this package maps them.
type Coded interface {
	error
	// FaultCode is the stable code, such as "E2001".
	FaultCode() string
	// FaultDetails is the object printed under "details"; nil for none.
	FaultDetails() map[string]any
}

// Fixer is implemented by errors that know a better next step than their row.
type Fixer interface {
	FaultFix() (fix, example string)
}

// Suggestion is the next step of a Fault.
type Suggestion struct {
	Action        string `json:"action"`
	Fix           string `json:"fix"`
	Example       string `json:"example,omitempty"`
	Applicability string `json:"applicability"`
}

// Fault is an error as the outside sees it.
type Fault struct {
	Code       string         `json:"code"`
	Category   string         `json:"category"`
	Message    string         `json:"message"`
	Suggestion Suggestion     `json:"suggestion"`
	Retryable  bool           `json:"is_retryable"`
	Details    map[string]any `json:"details,omitempty"`
	Origin     string         `json:"origin"`
	Rendered   string         `json:"rendered"`
	Exit       int            `json:"-"`
	err        error
}

// New makes an error with a code of the table.
func New(code, message string) *Fault {
	r := RowOf(code)
	f := &Fault{Code: r.Code, Category: r.Category(), Message: message, Retryable: r.Retryable, Origin: "atip-exec", Exit: r.Exit,
		Suggestion: Suggestion{Action: r.Action, Fix: r.Fix, Applicability: r.Applies}}
	return f.render()
}

// WithFix replaces the next step.
func (f *Fault) WithFix(fix, example string) *Fault {
	f.Suggestion.Fix, f.Suggestion.Example = fix, example
	return f.render()
}

// With adds one entry to the details.
func (f *Fault) With(key string, value any) *Fault {
	if f.Details == nil {
		f.Details = map[string]any{}
	}
	f.Details[key] = value
	return f
}

// From turns any error into a Fault. An error without a code is our own bug.
func From(err error) *Fault {
	if err == nil {
		return nil
	}
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	var coded Coded
	if !errors.As(err, &coded) {
		f = New(errcode.Internal, err.Error())
		f.err = err
		return f
	}
	f = New(coded.FaultCode(), err.Error())
	f.err, f.Details = err, coded.FaultDetails()
	var fixer Fixer
	if errors.As(err, &fixer) {
		if fix, example := fixer.FaultFix(); fix != "" {
			f.WithFix(fix, example)
		}
	}
	return f
}

// Error implements error.
func (f *Fault) Error() string { return f.Message }

// Unwrap returns the error that From was given.
func (f *Fault) Unwrap() error { return f.err }

// FaultCode implements Coded.
func (f *Fault) FaultCode() string { return f.Code }

// FaultDetails implements Coded.
func (f *Fault) FaultDetails() map[string]any { return f.Details }

// Line is the one-line form for people, without a final newline.
func (f *Fault) Line() string {
	line := "atip-exec: " + short(f.Message) + " [" + f.Code + "]"
	if f.Suggestion.Fix != "" {
		line += "; " + f.Suggestion.Fix
	}
	return strings.ReplaceAll(line, "\n", " ")
}

// JSON is the one-line form for machines, without a final newline.
func (f *Fault) JSON() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if m := short(f.Message); m != f.Message {
		brief := *f
		brief.Message = m
		f = brief.render()
	}
	if err := enc.Encode(map[string]*Fault{"error": f}); err != nil {
		// Details came from a package that put something unencodable there.
		bare := *f
		bare.Details = nil
		return bare.JSON()
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// maxMessage bounds a message where it is written: a command line can have two
// megabytes, and who reads an error wants its end as well.
const maxMessage = 2000

// short takes the middle out of a long message. It is for the writers only: a secret
// that is cut in two is no longer found, so texts are redacted whole.
func short(s string) string { return middle(s, maxMessage) }

func (f *Fault) render() *Fault {
	lines := []string{"atip-exec: " + f.Message + " [" + f.Code + "]"}
	if f.Suggestion.Fix != "" {
		lines = append(lines, "  fix: "+f.Suggestion.Fix)
	}
	if f.Suggestion.Example != "" {
		lines = append(lines, "  example: "+f.Suggestion.Example)
	}
	f.Rendered = strings.Join(lines, "\n")
	return f
}

// Redact runs every text of the fault through clean.
func (f *Fault) Redact(clean func(string) string) *Fault {
	f.Message = clean(f.Message)
	if f.Details != nil {
		raw, err := json.Marshal(f.Details)
		var plain map[string]any
		if err != nil || json.Unmarshal(raw, &plain) != nil {
			f.Details = nil
		} else {
			f.Details, _ = marshal.CleanStrings(plain, clean).(map[string]any)
		}
	}
	return f.render()
}
