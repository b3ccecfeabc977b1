package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	im, err := NewImagination(Here().Self)
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

// TestExamplesAreRemembered: the second load of a document runs none of its examples.
func TestExamplesAreRemembered(t *testing.T) {
	doc, err := policy.Parse(policy.Source{File: "x.json", Raw: []byte(developer), Layer: policy.LayerUser})
	if err != nil {
		t.Fatal(err)
	}
	first := exampleCheck{dir: filepath.Join(t.TempDir(), "verdict", "policy")}
	if err := first.check(doc); err != nil {
		t.Fatal(err)
	}
	if marks, err := os.ReadDir(first.dir); err != nil || len(marks) != 1 {
		t.Errorf("%v %v", marks, err)
	}
	second := exampleCheck{dir: first.dir}
	if err := second.check(doc); err != nil || second.im != nil {
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
	e := exampleCheck{dir: b.TempDir()}
	if err := e.check(doc); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := e.check(doc); err != nil {
			b.Fatal(err)
		}
	}
}
