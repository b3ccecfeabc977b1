package fault

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestBrief: a refusal fits whatever it names, keeps what a caller acts on and stays one
// JSON line; an error of another kind is written whole.
func TestBrief(t *testing.T) {
	texts := map[string]string{"short": "git push --force", "long": strings.Repeat("word ", 5000), "quotes": strings.Repeat(`"\`, 3000),
		"controls": strings.Repeat("\x01\n", 3000), "not ASCII": strings.Repeat("ä…日", 1000), "not UTF-8": strings.Repeat("\xff", 3000)}
	for name, text := range texts {
		rules := []string{"builtin/destructive", "builtin/remote"}
		f := New("E2010", "approval required: "+text).WithFix("choose "+text, text).
			With("decision", "confirm").With("rules", rules).With("step", text).With("requestId", "r-0123456789abcdef").
			With("steps", []any{map[string]any{"argv": []string{text}}}).With("alternatives", []string{text, text}).With("level", 1)
		line := f.Brief()
		if len(line)+1 > 600 || strings.ContainsAny(string(line), "\n") {
			t.Errorf("%s: %d bytes", name, len(line)+1)
		}
		var doc struct{ Error Fault }
		if err := json.Unmarshal(line, &doc); err != nil {
			t.Fatalf("%s: %v: %s", name, err, line)
		}
		d := doc.Error.Details
		if doc.Error.Code != "E2010" || doc.Error.Message == "" || doc.Error.Suggestion.Fix == "" || d["step"] == nil || d["requestId"] != "r-0123456789abcdef" ||
			d["decision"] != "confirm" || d["rules"] == nil || d["steps"] != nil {
			t.Errorf("%s: %s", name, line)
		}
		if name == "short" && (doc.Error.Message != "approval required: git push --force" || d["step"] != text || d["alternatives"] == nil) {
			t.Errorf("a short one is cut: %s", line)
		}
		if name == "long" && !strings.Contains(doc.Error.Message, " … ") {
			t.Errorf("no mark where it was cut: %s", line)
		}
		if n := len(f.BriefLine()); n > 600 || !strings.Contains(f.BriefLine(), "[E2010]") {
			t.Errorf("%s: a line of %d bytes", name, n)
		}
		if len(f.JSON()) < 600 && name != "short" || !strings.Contains(string(f.JSON()), `"steps"`) {
			t.Errorf("%s: the whole form is not whole", name)
		}
		if other := New("E1004", text).With("steps", text); string(other.Brief()) != string(other.JSON()) {
			t.Errorf("%s: an error that is no refusal is cut", name)
		}
	}
	said := New("E2010", "approval required: make deploy: what it runs cannot be known (a/x, a/y and 5 more); "+strings.Repeat("it goes on ", 40)+"to the end").
		With("rules", []any{"a/x", "a/y", "a/z", "a/w"})
	for _, want := range []string{"make deploy: what it runs cannot be known; it goes", " … ", "on to the end", `"rules":["a/x","a/y","a/z"]`} {
		if line := string(said.Brief()); !strings.Contains(line, want) {
			t.Errorf("%s is not in %s", want, line)
		}
	}
	many := New("E2001", "x").With("rules", strings.Split(strings.Repeat("a-rule ", 200), " "))
	if n := len(many.Brief()) + 1; n > 600 {
		t.Errorf("%d bytes with many rules", n)
	}
}
