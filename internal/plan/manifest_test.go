package plan

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/atip-dev/atip-exec/policy"
)

// TestManifestsAreCode: a tool with network that reads a program of the project is not allowed to
// have it without a question, wherever below the workspace it is started; without that file, and
// for tools that read none, nothing changes.
func TestManifestsAreCode(t *testing.T) {
	w := newCorpusWorld(t)
	decide := func(dir string, argv ...string) policy.Action {
		t.Helper()
		b := &Batch{Machine: w.machine()}
		p, err := b.Plan(Invocation{Argv: argv, Directory: dir})
		if err != nil {
			t.Fatalf("%q: %v", argv, err)
		}
		defer p.Close()
		return p.Decision.Action
	}
	for _, row := range []struct {
		file, text string
		argv       []string
		after      policy.Action
	}{
		{"mix.exs", "System.cmd(\"id\", [])", []string{"mix", "hex.outdated"}, policy.Confirm},
		{"config/x.exs", "", []string{"mix", "hex.outdated"}, policy.Confirm},
		{"Podfile", "", []string{"pod", "outdated"}, policy.Confirm},
		{"serverless.ts", "", []string{"serverless", "info"}, policy.Confirm},
		{"serverless.yml", "plugins: [x]", []string{"serverless", "info"}, policy.Confirm},
		{"prisma.config.ts", "", []string{"prisma", "migrate", "status"}, policy.Confirm},
		{".hg/hgrc", "[hooks]\npreoutgoing = ./x\n", []string{"hg", "incoming"}, policy.Confirm},
		{".hg/hgrc", "[ui]\nssh = ./x\n", []string{"hg", "incoming"}, policy.Confirm},
		{".hg/hgrc", "%include x\n", []string{"hg", "incoming"}, policy.Confirm},
		{".hg/hgrc", "# a comment\n[paths]\ndefault = https://example.com/r\n[ui]\nusername = A\n", []string{"hg", "incoming"}, policy.Allow},
		{".ncurc.cjs", "", []string{"npm-check-updates"}, policy.Confirm},
		{"Tiltfile", "", []string{"tilt", "get", "x"}, policy.Confirm},
		// By convention: no document says so.
		{"stripe.config.js", "", []string{"stripe", "customers", "list"}, policy.Confirm},
		{"wrangler.config.ts", "", []string{"wrangler", "deployments", "list"}, policy.Confirm},
		{".snykrc.js", "", []string{"snyk", "test"}, policy.Confirm},
		{"Trivyfile", "", []string{"trivy", "image", "x"}, policy.Confirm},
		{"Dockerfile", "FROM x", []string{"docker", "ps"}, policy.Allow},
		{"stripe.config.json", "{}", []string{"stripe", "customers", "list"}, policy.Allow},
		{"Gemfile", "", []string{"gh", "pr", "list"}, policy.Allow},
		{"mix.exs", "", []string{"npm", "outdated"}, policy.Allow},
		{"package.json", "{}", []string{"npm", "outdated"}, policy.Allow},
		{"gh.py", "", []string{"gh", "pr", "list"}, policy.Allow},
	} {
		dir := filepath.Join(w.Dir, "manifest")
		below := filepath.Join(dir, "a", "b")
		if err := os.MkdirAll(below, 0o755); err != nil {
			t.Fatal(err)
		}
		if got := decide(below, row.argv...); got != policy.Allow {
			t.Errorf("control: %q without %s: %v", row.argv, row.file, got)
		}
		path := filepath.Join(dir, row.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(row.text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{dir, below} {
			if got := decide(at, row.argv...); got != row.after {
				t.Errorf("%q with %s: %v, want %v", row.argv, row.file, got, row.after)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	b := &Batch{Machine: w.machine()}
	p, err := b.Plan(Invocation{Shell: "echo x > mix.exs; mix hex.outdated", IsShell: true, Directory: w.Dir})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Decision.Action == policy.Allow {
		t.Error("a manifest that the text itself writes is not seen")
	}
}
