package wiring

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/jsonedit"
)

// TestRows holds what each row of the table must say.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for _, h := range Hosts() {
		if seen[h.Name] || h.Title == "" || len(h.Programs) == 0 || len(h.Gaps) == 0 || len(h.Steps) == 0 || h.Seen == "" {
			t.Errorf("%s: the row is not whole, or there are two", h.Name)
		}
		seen[h.Name] = true
		for _, mode := range h.Modes() {
			if h.Files[User] == "" || h.Files[Project] == "" {
				t.Errorf("%s: it has no settings file for each scope", h.Name)
			}
			for _, e := range h.Edits(mode) {
				value := e.Fill("/home/a b/data", h.Name, mode)
				if !json.Valid([]byte(value)) || strings.Contains(value, "$HOOK") || strings.Contains(value, "$SHELL") {
					t.Errorf("%s: %s is no JSON", h.Name, value)
				}
				if ours := Ours("/home/a b/data", jsonedit.Compact(value)); ours == slices.ContainsFunc(h.Base, func(b Edit) bool { return slices.Equal(b.Path, e.Path) }) {
					t.Errorf("%s: %s is taken for ours: %t", h.Name, value, ours)
				}
			}
		}
		if a := h.Ask; a != nil {
			c, err := a.Decode(a.Synthetic("echo 'a' \"$INPUT\"", "/d"))
			if err != nil || !c.Shell || c.Command != "echo 'a' \"$INPUT\"" || c.Directory != "/d" {
				t.Errorf("%s: %+v %v", h.Name, c, err)
			}
			for _, answer := range []string{a.Pass, c.Rewritten("x \"y\" $REASON"), a.Denied("no \"way\"")} {
				if answer != "" && !json.Valid([]byte(answer)) {
					t.Errorf("%s: %s is no JSON", h.Name, answer)
				}
			}
			if a.Dies == "" || a.Pass == "" {
				t.Errorf("%s: it does not say what happens without an answer", h.Name)
			}
		}
		if h.Shell != nil && h.Shell.Dies == "" {
			t.Errorf("%s: it does not say what happens without our shell", h.Name)
		}
	}
}

// TestDocumented: each row is in docs/agents.md, with its settings file.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range Hosts() {
		line, _, _ := strings.Cut(string(text[max(0, strings.Index(string(text), "| `"+h.Name+"` ")):]), "\n")
		if !strings.HasPrefix(line, "| `"+h.Name+"` ") || !strings.Contains(line, h.Title) || !strings.Contains(line, h.Files[User]) {
			t.Errorf("docs/agents.md: no row of %s with %s and %s", h.Name, h.Title, h.Files[User])
		}
	}
}

// FuzzDecode: an event is read whole or refused, never by a panic, and what is handed on is
// what it says.
func FuzzDecode(f *testing.F) {
	for _, h := range Hosts() {
		if h.Ask != nil {
			f.Add(h.Ask.Synthetic("ls", "/"))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, h := range Hosts() {
			if h.Ask == nil {
				continue
			}
			c, err := h.Ask.Decode(raw)
			if err != nil || !c.Shell {
				continue
			}
			answer := c.Rewritten("new")
			if answer == "" {
				continue
			}
			if !json.Valid([]byte(answer)) || !strings.Contains(answer, `"new"`) {
				t.Fatalf("%s: %q is answered with %q", h.Name, raw, answer)
			}
		}
	})
}

// TestOwnScript: only the paths of a script may differ, each at its place.
func TestOwnScript(t *testing.T) {
	head := "SNAPSHOT_FILE=/home/u/.claude/shell-snapshots/snapshot-bash-1795409592885-uelgn8.sh\n  source \"/home/u/.bashrc\" < /dev/null\n"
	for _, script := range []string{
		head + "  [[ -x $a ]] || _cc_bin=/home/u/.local/bin/claude\n  cat >> x << 'PATH_END_ab1'\nexport PATH=/home/u/bin:/usr/bin\nPATH_END_ab1\n",
		head + "  cat >> x << 'CLAUDE_CODE_END_ab1'\n  if [[ -x /home/u/.local/bin/claude ]]; then\n    ARGV0=rg /home/u/.local/bin/claude ${1}\n    (exec -a bfs /home/u/.local/bin/claude -S dfs)\nexport PATH=/home/u/bin:/usr/bin\nCLAUDE_CODE_END_ab1\n",
	} {
		plain, ok := withoutPaths(script, "/home/u")
		if !ok {
			t.Fatal("paths stay")
		}
		other, ok := withoutPaths(strings.NewReplacer("/home/u", "/root", "1795409592885-uelgn8", "1-z", "ab1", "zz9", "/usr/bin", "/opt/x:/bin").Replace(script), "/root")
		if !ok || other != plain {
			t.Errorf("%q, want %q", other, plain)
		}
		for _, row := range [][2]string{
			{"/home/u/.claude/shell-snapshots/snapshot-bash", "/home/u/.bashrc #"}, {".bashrc\" <", ".bashrc2\" <"}, {"/usr/bin\n", "/usr/bin;touch x\n"},
			{"/usr/bin\n", "$(touch x)\n"}, {"bin/claude\n", "bin/claude;touch x\n"}, {"bin/claude ", "bin/claude;touch x "}, {"-x /home/u/", "-x $(touch x)/"},
			{"ARGV0=rg /home/u/.local", "ARGV0=rg x;/home/u/.local"}, {"[[", "touch x; [["}, {"SNAPSHOT_FILE=", "x=1; SNAPSHOT_FILE="}, {"/home/u/.local/bin/claude", "PROGRAM"},
		} {
			changed := strings.Replace(script, row[0], row[1], 1)
			if got, ok := withoutPaths(changed, "/home/u"); changed != script && ok && got == plain {
				t.Errorf("%s in place of %s passes", row[1], row[0])
			}
		}
		if OwnScript(script, "/home/u") || OwnScript("", "") {
			t.Error("a script that is not in the table is known")
		}
	}
}
