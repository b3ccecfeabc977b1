package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

type coded struct{ code string }

func (e coded) Error() string                { return "what happened" }
func (e coded) FaultCode() string            { return e.code }
func (e coded) FaultDetails() map[string]any { return map[string]any{"a": 1} }

func TestEveryRowIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rows() {
		if seen[r.Code] {
			t.Errorf("%s stands twice", r.Code)
		}
		seen[r.Code] = true
		if r.Title == "" || r.Fix == "" || r.Action == "" || r.Applies == "" {
			t.Errorf("%s: the row is not complete", r.Code)
		}
		if r.Exit == 1 || r.Exit == 2 {
			t.Errorf("%s: exit %d is never ours", r.Code, r.Exit)
		}
		if f := New(r.Code, "x"); f.Exit != r.Exit || f.Category == "" {
			t.Errorf("%s: %+v", r.Code, f)
		}
	}
}

func TestFrom(t *testing.T) {
	f := From(fmt.Errorf("outer: %w", coded{"E2040"}))
	if f.Code != "E2040" || f.Exit != 78 || f.Message != "outer: what happened" || f.Details["a"] != 1 {
		t.Errorf("%+v", f)
	}
	if f := From(errors.New("plain")); f.Code != "E5001" || f.Exit != 70 {
		t.Errorf("an error without a code: %+v", f)
	}
	if f := From(coded{"E9999"}); f.Code != "E5001" {
		t.Errorf("an unknown code: %+v", f)
	}
	if From(nil) != nil {
		t.Error("nil is no fault")
	}
}

func TestJSONIsOneLine(t *testing.T) {
	f := New("E2001", "a\nb <c>").With("list", []string{"x"})
	line := f.JSON()
	if strings.Contains(string(line), "\n") || !strings.Contains(string(line), "<c>") {
		t.Errorf("%s", line)
	}
	var back struct{ Error Fault }
	if err := json.Unmarshal(line, &back); err != nil || back.Error.Message != "a\nb <c>" {
		t.Errorf("%v %+v", err, back)
	}
	if bad := New("E2001", "x").With("f", func() {}); !json.Valid(bad.JSON()) {
		t.Errorf("%s", bad.JSON())
	}
}

func TestRedactReachesEveryText(t *testing.T) {
	f := New("E2001", "rm hunter2").With("steps", []any{map[string]any{"argv": []string{"rm", "hunter2"}}})
	f.Redact(func(s string) string { return strings.ReplaceAll(s, "hunter2", "X") })
	if out := string(f.JSON()); strings.Contains(out, "hunter2") || strings.Count(out, "X") < 3 {
		t.Errorf("%s", out)
	}
}

func TestLongMessageLosesItsMiddle(t *testing.T) {
	f := New("E2010", "head"+strings.Repeat("ü", 5000)+"tail")
	for _, text := range []string{f.Line(), string(f.JSON())} {
		if len(text) > 3*maxMessage || !strings.Contains(text, "head") || !strings.Contains(text, "tail") || !strings.Contains(text, "…") || !utf8.ValidString(text) {
			t.Errorf("%d bytes: %.80q", len(text), text)
		}
	}
	if len(f.Message) < 10000 {
		t.Error("the message itself was cut")
	}
}
