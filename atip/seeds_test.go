package atip

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSeedExamples reads every complete example of the protocol texts that belongs in a
// document: whole documents as they are, parts inside the smallest document they fit.
func TestSeedExamples(t *testing.T) {
	const (
		hex   = "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8s9t0u1v2w3x4y5z6a7b8c9d0e1f2" // no hash: the text's own
		valid = "a1b2c3d4e5f60718a1b2c3d4e5f60718a1b2c3d4e5f60718a1b2c3d4e5f60718"
	)
	for _, c := range []struct {
		file, wrap string // wrap: a document with %s for the members of the example
		findings   string // of validate; the texts leave out what they require
	}{
		{"gh-0.1", "", "description"}, {"gh-0.6", "", "description"}, {"curl-legacy-0.6", "", "description"}, {"shim-curl-0.6", "", "description"},
		{"effects-0.1", whole, ""}, {"effects-0.6", whole, ""},
		{"authentication-0.1", wholeGH, ""}, {"authentication-0.6", wholeGH, ""},
		{"patterns-0.1", whole, ""}, {"patterns-0.6", whole, ""},
		{"arguments-0.6", whole, ""}, {"options-0.6", whole, ""},
		{"trust-0.6", whole, ""}, {"trust-native-0.6", whole, ""},
		{"version-0.6", `{%s,"name":"t","version":"1","description":"A tool"}`, ""},
	} {
		raw, err := os.ReadFile(filepath.Join("..", "testdata", "seeds", c.file+".json"))
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if c.wrap != "" {
			members := strings.TrimSpace(text)
			text = strings.Replace(c.wrap, "%s", members[1:len(members)-1], 1)
		}
		if strings.Contains(text, hex) {
			if _, err := Parse([]byte(text), ParseOptions{Comments: true}); err == nil {
				t.Errorf("%s: a hash with letters beyond f is taken", c.file)
			}
			text = strings.ReplaceAll(text, hex, valid)
		}
		d, err := Parse([]byte(text), ParseOptions{Comments: true})
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		stripped, err := StripComments([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range Validate(stripped, "") {
			if f.Severity == SeverityError && f.Code != c.findings {
				t.Errorf("%s: %s %s: %s", c.file, f.Pointer, f.Code, f.Message)
			}
		}
		if c.findings != "" && !strings.Contains(codes(Validate(stripped, "")), c.findings) {
			t.Errorf("%s: validate finds %q, want %q", c.file, codes(Validate(stripped, "")), c.findings)
		}
		d.Resolve([]string{d.Name(), "pr", "merge", "42"}, at(Vendor))
		// Every one of them can be indexed, and read by its index.
		if index, err := Index([]byte(text), ParseOptions{Comments: true}); err != nil {
			t.Errorf("%s: %v", c.file, err)
		} else if x, err := ParseIndexed([]byte(text), index); err != nil || x.Name() != d.Name() {
			t.Errorf("%s by its index: %v", c.file, err)
		}
	}

	// What the parts say arrives.
	part := func(file string) *Document {
		raw, err := os.ReadFile(filepath.Join("..", "testdata", "seeds", file+".json"))
		if err != nil {
			t.Fatal(err)
		}
		members := strings.TrimSpace(string(raw))
		return parse(t, strings.Replace(whole, "%s", members[1:len(members)-1], 1))
	}
	c := resolve(part("effects-0.6"), Vendor, "t")
	if got, want := effectsOf(c, "read=yes write=yes delete=no network=yes subprocess=no idempotent=yes reversible=no destructive=no billable=no"), "read=yes write=yes delete=no network=yes subprocess=no idempotent=yes reversible=no destructive=unknown billable=no"; got != want {
		// It deletes, irreversibly, and says that it is not destructive.
		t.Errorf("%s, want %s", got, want)
	}
	if c.Timeout.Seconds() != 60 || c.Interactive.Stdin != "none" || strings.Join(c.Paths, " ") != "./ ~/.config/mytool/" {
		t.Errorf("%v %+v %v", c.Timeout, c.Interactive, c.Paths)
	}
	if got := part("authentication-0.6").Credentials(); strings.Join(got, " ") != "GITHUB_TOKEN" {
		t.Errorf("%v", got)
	}
	steps, err := part("patterns-0.6").Patterns()[0].Bind(map[string]string{"branch": "topic"})
	if err != nil || len(steps) != 2 || strings.Join(steps[0], " ") != "git checkout -b topic" {
		t.Errorf("%q %v", steps, err)
	}
	if c := resolve(part("options-0.6"), Vendor, "t --output json"); c.Exactness != Exact || c.Options[0].Value != "json" {
		t.Errorf("%+v", c)
	}
	if c := resolve(part("arguments-0.6"), Vendor, "t a.txt"); c.Positionals[0].Name != "file" || c.Exactness != Exact {
		t.Errorf("%+v", c)
	}
}

const (
	whole   = `{"atip":{"version":"0.6"},"name":"t","version":"1","description":"A tool",%s}`
	wholeGH = `{"atip":{"version":"0.6"},"name":"gh","version":"1","description":"A tool",%s}`
)
