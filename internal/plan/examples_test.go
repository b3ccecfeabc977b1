package plan

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/layers"
	"github.com/atip-dev/atip-exec/policy"
)

const developer = `{"version":1, "switches":{"tracked_delete":true}, "network":{"allow":["docs.rs","*.python.org"]}, "rules":[
 {"id":"open-pr","decision":"allow","when":{"tool":"gh","command":["pr create","pr comment"]},"grants":["network","remoteMutation"],
  "match":["gh pr create --fill","gh -R o/r pr comment 1 -b x"],"notMatch":["gh pr merge 1","gh api -X POST repos/o/r/pulls"]},
 {"id":"prod-reads","decision":"deny","when":{"tool":"kubectl","option":{"context":"prod*"}},"unless":[{"command":["get","describe","logs"]}],
  "reason":"production is read-only for agents","suggest":"use --context staging",
  "match":["kubectl --context=prod-eu delete pod x"],"notMatch":["kubectl --context prod-eu get pods"]}]}`

const organisation = `{"version":1, "rules":[{"id":"no-force","decision":"deny","floor":"confirm","when":{"tool":"git","command":["push"],"effects":{"destructive":true}},
  "reason":"history is shared","match":["git push -f","git push origin +main","cd sub && git push --force", {"argv":["git","push","-f","origin","a b"]}],"notMatch":["git push"]}]}`

func TestExamplesAtLoad(t *testing.T) {
	im, err := NewImagination(caller.Here().Self)
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ text, want string }{
		"developer":    {developer, ""},
		"organisation": {organisation, ""},
		"match fails":  {strings.Replace(developer, `"match":["gh pr create --fill"`, `"match":["gh pr merge 1"`, 1), `x.json:3:12: rule open-pr: example "gh pr merge 1" of match: the rule does not apply to it`},
		"notMatch":     {strings.Replace(developer, `"notMatch":["gh pr merge 1"`, `"notMatch":["gh pr create"`, 1), "the rule applies to it"},
		"unreadable":   {strings.Replace(developer, `gh pr create --fill`, `gh pr create '`, 1), "x.json:3:12"},
	} {
		doc, err := policy.Parse(policy.Source{File: "x.json", Raw: []byte(row.text), Layer: policy.LayerUser})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err = doc.CheckExamples(im.Request)
		if row.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var coded interface{ FaultCode() string }
		if err == nil || !strings.Contains(err.Error(), row.want) || !errors.As(err, &coded) || coded.FaultCode() != "E2042" {
			t.Errorf("%s: %v, want E2042 %s", name, err, row.want)
		}
	}
}

// TestExamplesSayWhatTheyMean: an example says where its command runs, and what metadata of
// which rank says of it.
func TestExamplesSayWhatTheyMean(t *testing.T) {
	im, err := NewImagination(caller.Here().Self)
	if err != nil {
		t.Fatal(err)
	}
	const deploy = `"id":"d","decision":"allow","when":{"tool":"deploy","command":["preview"]},"grants":["network","remoteMutation"]`
	quiet := `"write":false,"delete":false,"destructive":false,"reversible":true,"billable":false,"secretRead":false,"privileged":false,"persistence":false,"execOpaque":false`
	for _, row := range []struct{ name, rule, want string }{
		{"a directory", `"id":"here","decision":"deny","when":{"tool":"npm","cwd":"**/vendor/*"},"match":[{"argv":["npm","test"],"cwd":"vendor/x"}],"notMatch":["npm test",{"argv":["npm","test"],"cwd":"src"}]`, ""},
		{"a directory that is another", `"id":"here","decision":"deny","when":{"tool":"npm","cwd":"**/vendor/*"},"match":[{"argv":["npm","test"],"cwd":"src"}]`, "does not apply"},
		{"a path from there", `"id":"keep","decision":"deny","when":{"path":{"glob":"**/db/**","access":"write"}},"match":[{"argv":["touch","x"],"cwd":"db/a"}],"notMatch":["touch x"]`, ""},
		{"an unknown tool", deploy + `,"notMatch":[{"argv":["deploy","preview"]}]`, ""},
		{"as its metadata would say", deploy + `,"match":[{"argv":["deploy","preview","--fast"],"effects":{"network":true,"remoteMutation":true,` + quiet + `}}],
			"notMatch":[{"argv":["deploy","production"],"effects":{"network":true,` + quiet + `}},{"argv":["deploy","preview"],"effects":{"network":true}}]`, ""},
		{"of too low a rank", deploy + `,"match":[{"argv":["deploy","preview"],"effects":{"network":true,"remoteMutation":true,` + quiet + `},"rank":"user"}]`, "does not apply"},
		{"a tool that gains an effect", `"id":"pr","decision":"allow","when":{"tool":"gh","command":["pr create"]},"grants":["network","remoteMutation"],"match":["gh pr create --fill"],
			"notMatch":[{"argv":["gh","pr","create","--fill"],"effects":{"destructive":true}},{"argv":["gh","pr","create","--fill"],"effects":{"irreversible":true}}]`, ""},
		{"a rank", `"id":"low","decision":"confirm","when":{"tool":"gh","rank":{"below":"org"}},"match":[{"argv":["gh","pr","list"],"rank":"user"}],"notMatch":["gh pr list",{"argv":["gh","pr","list"],"rank":"org"}]`, ""},
		{"what is not known", `"id":"m","decision":"deny","onUnknown":"deny","when":{"tool":"ls","effects":{"network":true}},"match":[{"argv":["ls"],"effects":{"network":true}}],"notMatch":["ls",{"argv":["ls"],"effects":{"network":false}}]`, ""},
	} {
		doc, err := policy.Parse(policy.Source{File: "x.json", Raw: []byte(`{"version":1,"rules":[{` + row.rule + `}]}`), Layer: policy.LayerUser})
		if err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if err = doc.CheckExamples(im.Request); row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
	// The profile that another document defines is no matter of the examples.
	doc, err := policy.Parse(policy.Source{File: "x.json", Raw: []byte(strings.Replace(developer, `"version":1`, `"version":1,"profile":"of-another"`, 1)), Layer: policy.LayerUser})
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.CheckExamples(im.Request); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{`{"argv":["x"],"effects":{"network":"yes"}}`, `{"argv":["x"],"effects":{"nothing":true}}`, `{"argv":["x"],"effects":{"network":true},"rank":"king"}`, `{"cwd":"x"}`, `{"argv":["x"],"env":{}}`} {
		if _, err := policy.Parse(policy.Source{File: "x.json", Raw: []byte(`{"version":1,"rules":[{"id":"a","decision":"deny","when":{},"match":[` + bad + `]}]}`), Layer: policy.LayerUser}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// TestExamplesAreRemembered: the second load of a document runs none of its examples.
func TestExamplesAreRemembered(t *testing.T) {
	doc, err := policy.Parse(policy.Source{File: "x.json", Raw: []byte(developer), Layer: policy.LayerUser})
	if err != nil {
		t.Fatal(err)
	}
	first := layers.Examples{Dir: filepath.Join(t.TempDir(), "verdict", "policy"), Judge: imagine}
	if err := first.Check(doc); err != nil {
		t.Fatal(err)
	}
	if marks, err := os.ReadDir(first.Dir); err != nil || len(marks) != 1 {
		t.Errorf("%v %v", marks, err)
	}
	second := layers.Examples{Dir: first.Dir} // it has nothing to run them by
	if err := second.Check(doc); err != nil {
		t.Errorf("the examples ran again: %v", err)
	}
	if _, err := os.Stat(imaginedHome); err == nil {
		t.Error("the imaginary home was made")
	}
}

func BenchmarkExampleRemembered(b *testing.B) {
	doc, err := policy.Parse(policy.Source{File: "x.json", Raw: []byte(developer), Layer: policy.LayerUser})
	if err != nil {
		b.Fatal(err)
	}
	e := layers.Examples{Dir: b.TempDir(), Judge: imagine}
	if err := e.Check(doc); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := e.Check(doc); err != nil {
			b.Fatal(err)
		}
	}
}
