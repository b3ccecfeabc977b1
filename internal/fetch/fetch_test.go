package fetch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/shims/builtin"
)

// TestRequirements: requirements that lead elsewhere than to wheels of the index keep pip from being
// split, in each spelling that pip itself takes.
func TestRequirements(t *testing.T) {
	t.Parallel()
	entry, ok := builtin.Find("pip")
	if !ok {
		t.Fatal("there is no document of pip")
	}
	doc, err := entry.Parse()
	if err != nil {
		t.Fatal(err)
	}
	call := doc.Resolve([]string{"pip", "install", "-q", "-r", "requirements.txt", "--constraint=limits.txt"}, atip.ResolveOptions{Provenance: atip.Provenance{Rank: atip.Org}})
	f := call.Splits()
	if f == nil {
		t.Fatal("pip install -r is not split")
	}
	none := func(string) string { return "" }
	for text, splits := range map[string]bool{
		"two\n": true, "two==1.0.0": true, "two[extra]>=1,<2 ; python_version > '3'\n": true, "# via -r x.in https://x.example\ntwo # -e .\n": true, "two==1 \\\n    --hash=sha256:00\n": true, "\n\n  two  \r\nthree\r\n": true, "two#no-comment\n": true,
		"./evil\n": false, "evil/\n": false, "/x\n": false, "-e evil\n": false, "two\n  -eevil\n": false, "--editable evil\n": false, "two @ http://x.example/two.tar.gz\n": false, "git+ssh://x.example/x\n": false,
		"--index-url http://x.example\ntwo\n": false, "two # x\x0c--no-binary :all:\n": false, "two # x\u2028--no-binary :all:\n": false, "two # x\x1e-e evil\n": false, "two # x\r--no-binary :all:\n": false, "two \\\n--extra-index-url http://x.example\n": false,
		"-f links\ntwo\n": false, "-r more.txt\n": false, "-c more.txt\n": false, "two${HOME}\n": false, "two#x\n-e evil": false, "a#b #\n-e evil": false, "two \\\n#x\n-e evil\n": false,
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"requirements.txt": text, "limits.txt": "two<2\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w, why := Find(f, "pip", Place{Dir: dir, Top: dir, Getenv: none, Listed: func(string) bool { return false }})
		if (w != nil) != splits {
			t.Errorf("%q: %v %s", text, w, why)
		}
		if splits && strings.Join(w.Argv, " ") != "pip download --only-binary :all: --no-input -r requirements.txt --constraint limits.txt" {
			t.Errorf("%q: %v", text, w.Argv)
		}
	}
	// A link is no file of the project.
	dir := t.TempDir()
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "requirements.txt")); err != nil {
		t.Fatal(err)
	}
	if w, _ := Find(f, "pip", Place{Dir: dir, Top: dir, Getenv: none, Listed: func(string) bool { return false }}); w != nil {
		t.Error("a link is followed")
	}
}
