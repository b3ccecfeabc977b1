package layers

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/policy"
)

const empty = `{"version":1}`

// world is a user with a project; put writes one of its files.
func world(t *testing.T) (s Source, put func(path, text string)) {
	t.Helper()
	top := t.TempDir()
	s = Source{Dirs: place.Dirs{Home: top, Config: top + "/config", Data: top + "/data", State: top + "/state"}, Workspace: top + "/project", Cwd: top + "/project/a/b", UID: os.Getuid(),
		Check: func(*policy.Document) error { return nil }}
	return s, func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryLayer: all that is there is read, in the order of the layers, and the project's from
// its root down to where the run is.
func TestEveryLayer(t *testing.T) {
	s, put := world(t)
	own := func(dir, name string) string { return filepath.Join(dir, place.OwnDir, name) }
	user, org, flag := s.Dirs.Config+"/policy.json", s.Dirs.Data+"/registries/x/policy.json", s.Dirs.Home+"/flag.json"
	project := []string{own(s.Workspace, "policy.json"), own(s.Workspace, "policy/1.json"), own(s.Workspace, "policy/2.json"), own(s.Workspace+"/a", "policy.json")}
	for _, path := range append([]string{user, org, flag, own(s.Workspace+"/other", "policy.json"), own(s.Workspace, "policy/.hidden.json")}, project...) {
		put(path, empty)
	}
	s.Files, s.Profiles = []string{flag}, []string{"readonly"}
	var checked []string
	s.Check = func(d *policy.Document) error { checked = append(checked, d.File()); return nil }
	docs, err := s.Documents()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range docs[1 : len(docs)-1] {
		if !strings.HasPrefix(d.File(), place.Managed) { // of the machine that tests run on
			got = append(got, d.File())
		}
	}
	want := append([]string{org, user}, append(project, flag)...)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, path := range want {
		if !slices.Contains(checked, path) {
			t.Errorf("the examples of %s were not checked", path)
		}
	}
}

// TestUnusablePolicyIsAnError: a policy that is there and cannot be used stops the run.
func TestUnusablePolicyIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(file string) error
		code  string
	}{
		"written by others":        {func(f string) error { return os.Chmod(f, 0o666) }, errcode.PolicyUnsafe},
		"directory of others":      {func(f string) error { return os.Chmod(filepath.Dir(f), 0o777) }, errcode.PolicyUnsafe},
		"a link to nothing":        {func(f string) error { return errors.Join(os.Remove(f), os.Symlink("nothing", f)) }, errcode.PolicyUnsafe},
		"a directory":              {func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o755)) }, errcode.PolicyUnsafe},
		"larger than is read":      {func(f string) error { return os.Truncate(f, maxPolicyBytes+1) }, errcode.PolicySyntax},
		"not the text of a policy": {func(f string) error { return os.WriteFile(f, []byte("{"), 0o644) }, errcode.PolicySyntax},
	} {
		s, put := world(t)
		file := s.Dirs.Config + "/policy.json"
		put(file, empty)
		if _, err := s.Documents(); err != nil || Unsafe(file, s.UID) != "" {
			t.Fatalf("%s: before: %v", name, err)
		}
		if err := c.spoil(file); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Documents(); err == nil || fault.From(err).Code != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, _ := world(t)
	s.Files = []string{s.Dirs.Home + "/missing.json"}
	if _, err := s.Documents(); err == nil || fault.From(err).Code != errcode.PolicyUnsafe {
		t.Errorf("a file that is named and not there: %v", err)
	}
	refused := errors.New("an example does not hold")
	s.Files, s.Check = nil, func(*policy.Document) error { return refused }
	s2, put := world(t)
	put(s2.Dirs.Config+"/policy.json", empty)
	s2.Check = s.Check
	if _, err := s2.Documents(); !errors.Is(err, refused) {
		t.Errorf("an example that does not hold: %v", err)
	}
}

// TestTrustIsOfTheseTexts: a project is trusted as it was read, and no longer when a file of it
// is another one, is new or is gone.
func TestTrustIsOfTheseTexts(t *testing.T) {
	s, put := world(t)
	root, sub := filepath.Join(s.Workspace, place.OwnDir, "policy.json"), filepath.Join(s.Workspace, "a", place.OwnDir, "policy.json")
	put(root, empty)
	put(sub, empty)
	is := func() bool {
		files, err := projectFiles(projectDirs(s.Workspace, s.Cwd), s.UID)
		if err != nil {
			t.Fatal(err)
		}
		return trusted(s.Dirs, s.Workspace, files, s.UID)
	}
	if is() {
		t.Error("trusted before it was read")
	}
	texts, err := ReadProject(s.Workspace, s.UID)
	if err != nil || len(texts) != 2 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	if err := TrustProject(s.Dirs, s.Workspace, texts); err != nil {
		t.Fatal(err)
	}
	if !is() {
		t.Error("not trusted after it was")
	}
	if s.Cwd = s.Workspace; !is() {
		t.Error("not trusted where only a part of it counts")
	}
	put(sub, empty+"\n")
	if is() {
		t.Error("trusted although a file below is another one")
	}
	put(sub, empty)
	if !is() {
		t.Error("not trusted although it is as it was")
	}
	if err := os.Remove(sub); err != nil {
		t.Fatal(err)
	}
	if is() {
		t.Error("trusted although a file is gone")
	}
	put(sub, empty)
	put(filepath.Join(s.Workspace, place.OwnDir, "policy", "new.json"), empty)
	if is() {
		t.Error("trusted although a file is new")
	}
}
