package policy

import (
	"os"
	"strings"
	"testing"
)

// documented returns the examples of docs/policy.md; the word after the fence's
// language is the layer.
func documented(t *testing.T) []*Document {
	t.Helper()
	raw, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	var docs []*Document
	for i, part := range strings.Split(string(raw), "```jsonc ")[1:] {
		layer, text, _ := strings.Cut(part, "\n")
		text, _, _ = strings.Cut(text, "```")
		l := LayerUser
		for k := LayerManaged; k <= LayerDelegated; k++ {
			if k.String() == layer {
				l = k
			}
		}
		d, err := Parse(Source{File: "policy.md example " + layer, Raw: []byte(text), Layer: l})
		if err != nil {
			t.Errorf("example %d: %v", i+1, err)
			continue
		}
		docs = append(docs, d)
	}
	return docs
}

func TestDocumentedExamples(t *testing.T) {
	docs := documented(t)
	if len(docs) < 5 {
		t.Fatalf("%d examples", len(docs))
	}
	for _, d := range docs {
		if s := mustCompile(t, d); len(s.Warnings()) != 0 {
			t.Errorf("%s: %v", d.File(), s.Warnings())
		}
	}
}

// examplesOf resolves the commands of the documented examples by hand, as the
// curated metadata would.
func examplesOf(cmd, _ string) (Request, error) {
	var st Step
	switch {
	case strings.Contains(cmd, "pr comment"):
		st = tool("gh pr comment", "network", "remoteMutation")
	case strings.Contains(cmd, "kubectl"):
		st = tool("kubectl get pods", "network")
		if strings.Contains(cmd, "delete") {
			st = tool("kubectl delete pod", "network", "remoteMutation", "destructive")
		}
		st.Call.Options = append(st.Call.Options, optionUse("context", "prod-eu"))
	case strings.HasPrefix(cmd, "gh pr create"), strings.HasPrefix(cmd, "gh release create"):
		st = tool(strings.Join(strings.Fields(cmd)[:3], " "), "network", "remoteMutation")
	case strings.HasPrefix(cmd, "gh"):
		st = tool(strings.Join(strings.Fields(cmd)[:3], " "), "network", "remoteMutation", "destructive")
	case strings.Contains(cmd, "-f"), strings.Contains(cmd, "+"):
		st = tool("git push", "network", "remoteMutation", "destructive")
	default:
		st = tool(cmd, "network", "remoteMutation")
	}
	return requestOf(st), nil
}

func TestDocumentedMatches(t *testing.T) {
	for _, d := range documented(t) {
		if err := d.CheckExamples(examplesOf); err != nil {
			t.Errorf("%s: %v", d.File(), err)
		}
	}
}

func TestCheckExamplesRefuses(t *testing.T) {
	for _, text := range []string{
		`{"version":1,"rules":[{"id":"a","decision":"allow","when":{"tool":"gh","command":["pr create"]},"grants":["network"],"match":["gh pr create"]}]}`,
		`{"version":1,"rules":[{"id":"a","decision":"deny","when":{"tool":"git"},"notMatch":["git push"]}]}`,
	} {
		err := mustParse(t, LayerUser, text).CheckExamples(examplesOf)
		pe, ok := err.(*ParseError)
		if !ok || pe.Code != "E2042" || pe.Line != 1 || pe.Col == 0 {
			t.Errorf("%v", err)
		}
	}
}
