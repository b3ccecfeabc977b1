package install

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atip-dev/atip-exec/internal/wiring"
)

// TestRefused: a settings file that is not this user's own, plain and writable is not changed.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	foreign := "/etc/passwd" // root's
	if os.Geteuid() == 0 {
		foreign = filepath.Join(dir, "foreign")
		if err := os.WriteFile(foreign, []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{foreign: "another user", filepath.Join(dir, "d"): "not a regular file"} {
		if _, _, err := settings(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// TestJournal: an installation whose memory is damaged is said, and nothing is changed by guess.
func TestJournal(t *testing.T) {
	for _, text := range []string{"", "{", `{"v":2}`, `{"v":1,"wired":[{"agent":"claude","edits":[{"Path":["a"]}],"old":[],"had":[0]}]}`} {
		data := t.TempDir()
		if err := os.WriteFile(filepath.Join(data, "wiring.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(data, "/p", false); err == nil || !strings.Contains(err.Error(), "wiring.json: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestAllAgents: for each agent and mode, in an empty file and in one with settings, what is
// put in is taken out again, also after the user wrote into it, and nothing of ours is left.
func TestAllAgents(t *testing.T) {
	const before = "{\n  // mine\n  \"env\": {\"A\": \"1\"},\n  \"shell\": \"/bin/zsh\",\n  \"hooks\": {\"PreToolUse\": [{\"matcher\": \"X\"}]}\n}\n"
	for _, h := range wiring.Hosts() {
		for _, mode := range h.Modes() {
			for name, text := range map[string]string{"none": "", "some": before} {
				home := t.TempDir()
				data, file := filepath.Join(home, "data", "agent-tools"), filepath.Join(home, h.Files[wiring.User])
				if text != "" {
					if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				for _, edited := range []bool{false, true} {
					wire(t, data, h, mode, file)
					now, err := os.ReadFile(file)
					if err != nil || !strings.Contains(string(now), data) {
						t.Fatalf("%s %s %s: %v\n%s", h.Name, mode, name, err, now)
					}
					if edited {
						now = []byte(strings.Replace(string(now), "{", "{\n  \"later\": 1,", 1))
						if err := os.WriteFile(file, now, 0o600); err != nil {
							t.Fatal(err)
						}
					}
					s, err := Open(data, "/p", true)
					if err != nil {
						t.Fatal(err)
					}
					for _, w := range s.Wired() {
						if err := s.Remove(w); err != nil {
							t.Fatal(err)
						}
					}
					s.Close()
					after, _ := os.ReadFile(file)
					want := text
					if edited {
						want = strings.Replace(text, "{", "{\n  \"later\": 1,", 1)
					}
					if name == "some" && string(after) != want || strings.Contains(string(after), data) || !edited && name == "none" && after != nil {
						t.Errorf("%s %s %s, edited %t:\n%s\nwant\n%s", h.Name, mode, name, edited, after, want)
					}
					if edited && name == "none" && !json.Valid(after) {
						t.Errorf("%s %s: %s", h.Name, mode, after)
					}
					if _, err := os.Stat(data); err == nil {
						t.Errorf("%s %s: %s is left", h.Name, mode, data)
					}
				}
			}
		}
	}
}

// TestAtOnce: of installations that begin together each may have made a directory that another
// uses first. All of them go with what was installed.
func TestAtOnce(t *testing.T) {
	h := wiring.Hosts()[0]
	mode := h.Modes()[0]
	for range 50 {
		home := t.TempDir()
		data, file := filepath.Join(home, "a", "b", "c", "agent-tools"), filepath.Join(home, "settings.json")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				s, err := Open(data, "/p", true)
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				c, err := s.Plan(h, wiring.User, mode, file)
				if err == nil {
					err = s.Apply(c)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		s, err := Open(data, "/p", true)
		if err != nil || len(s.Wired()) != 1 {
			t.Fatalf("%v, %v", s, err)
		}
		if err := s.Remove(s.Wired()[0]); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if left, _ := filepath.Glob(filepath.Join(home, "*")); len(left) > 0 {
			t.Fatalf("left: %q", left)
		}
	}
}

func wire(t *testing.T, data string, h wiring.Host, mode wiring.Mode, file string) {
	t.Helper()
	s, err := Open(data, "/p", true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, first := range []bool{true, false} {
		c, err := s.Plan(h, wiring.User, mode, file)
		if err != nil || c.Changed != first {
			t.Fatalf("%s %s: changed %t, %v", h.Name, mode, c.Changed, err)
		}
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
}
