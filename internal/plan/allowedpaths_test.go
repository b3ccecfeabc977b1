package plan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/corpus"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
	"github.com/atip-dev/atip-exec/sandbox"
)

// everydayPaths are texts that name places outside the workspace, beside the corpus.
func everydayPaths() []string {
	return []string{"ls ~", "ls -la ~", "ls -d ~/*", "ls -R ~", "find ~ -maxdepth 1", "find ~ -name '*.txt'", "du -sh ~", "tree ~", "cd ~ && ls", "ls ..", "ls ../..", "ls /", "ls /home",
		"ls ~/.config", "ls ~/other", "ls ~/other/*", "cat ~/other/*.txt", "cat ~/other/file.txt", "for f in ~/other/*.txt; do cat \"$f\"; done", "echo ~/*", "echo ~/oth*", "cd ~/other && cat *.txt",
		"cat ../lib/readme.txt", "wc -l ../lib/*", "ls -d ~/*/", "head -1 ~/.bashrc", "grep -r x ~/other", "find ~/other -type f | xargs cat", "tar cf x.tar ~/other", "stat ~", "test -d ~/other",
		"cat /etc/hostname", "ls /usr/share/*", "ls /var/log", "cat /tmp/x", "ls /tmp", "cp README.md /tmp/", "cp ~/notes.txt .", "diff ~/notes.txt README.md", "cat < ~/notes.txt"}
}

// uncovered lists what the decision took the call to read, start or write and the profile does not
// grant. It is a pure look at both: nothing runs.
func uncovered(p *Plan) []string {
	var out []string
	seen := func(path string, dir bool, need sandbox.Rights) bool {
		for _, list := range [...][]sandbox.Grant{p.Profile.Read, p.Profile.Write, p.Profile.Exec} {
			for _, g := range list {
				if (g.Path == path || g.Dir && subpath.Within(path, g.Path)) && (g.Rights&need == need || dir && need == sandbox.Read && g.Rights&sandbox.List != 0) {
					return true
				}
			}
		}
		private := p.Setup.Tier() == sandbox.T3 && p.Profile.Tmp == sandbox.TmpKept
		return private && (path == "/" || need&sandbox.Exec == 0 && (subpath.Within(path, "/tmp") || subpath.Within(path, "/var/tmp") || subpath.Within(path, "/dev/shm")))
	}
	check := func(path string, need sandbox.Rights) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return // the command finds nothing there, as outside
		}
		info, err := os.Stat(real)
		if err != nil || info.Mode()&(os.ModeSocket|os.ModeNamedPipe) != 0 {
			return
		}
		told := slices.ContainsFunc(p.Warnings, func(w string) bool { return strings.HasPrefix(w, "sandbox: "+path+" is not granted: ") })
		if !seen(real, info.IsDir(), need) && !told {
			out = append(out, need.String()+" "+path)
		}
		if slices.Contains(p.Profile.Mask, real) {
			out = append(out, "masked "+path)
		}
	}
	for _, s := range p.Steps {
		for _, r := range s.Call.Resources {
			if r.Kind != "path" || r.Abs == "" || strings.HasPrefix(r.Abs, "/proc/") {
				continue
			}
			if r.Access&(atip.AccessRead|atip.AccessSecret) != 0 {
				check(r.Abs, sandbox.Read)
			}
			if r.Access&atip.AccessExec != 0 && !isDirectory(r.Abs) {
				check(r.Abs, sandbox.Read|sandbox.Exec)
			}
			if r.Access&atip.AccessWrite != 0 && p.Decision.Grants.Effects.Has(atip.Write) {
				check(r.Abs, sandbox.Write)
			}
		}
		if s.ID.Canonical != "" && s.Missing == nil {
			check(s.ID.Canonical, sandbox.Read|sandbox.Exec)
		}
	}
	for _, dir := range p.Reading.Patterns {
		check(dir, sandbox.Read)
	}
	return out
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// TestAllowedPathsAreGranted: what a decision allows by reading the words, the kernel does not refuse:
// every path of an allowed row is in the profile that was derived for it, with and without a private root.
// It takes an eighth of the corpus; with CORPUS_ROWS=all every row.
func TestAllowedPathsAreGranted(t *testing.T) {
	rows := readCorpus(t)
	for _, text := range everydayPaths() {
		rows = append(rows, corpus.Row{ID: "everydayPaths", Cmd: &text, Decision: "allow", Acceptable: []string{"allow"}})
	}
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	allowed := 0
	for i := range rows {
		r := &rows[i]
		if r.Decision != "allow" || r.ID != "everydayPaths" && i%8 != 0 && os.Getenv("CORPUS_ROWS") != "all" {
			continue
		}
		undo, err := w.Place(r)
		if err != nil {
			t.Fatal(err)
		}
		var p *Plan
		if len(r.Env)+len(r.Files) == 0 {
			p, err = b.Plan(w.invocation(r))
		} else {
			m := w.machine()
			for name, value := range r.Env {
				m.Environ = append(slices.Clone(m.Environ), name+"="+value)
			}
			p, err = Make(w.invocation(r), m)
		}
		if err != nil {
			undo()
			continue
		}
		if p.Decision.Action == policy.Allow {
			allowed++
			for _, forced := range []bool{false, true} {
				if forced {
					p.Host.Namespaces = false
					if err := p.enclose(); err != nil {
						t.Errorf("%s: %q: without a private root: %v", r.ID, r.Text(), err)
						break
					}
				}
				if lacks := uncovered(p); len(lacks) > 0 {
					t.Errorf("%s: %q is allowed, and at %s the run lacks %s", r.ID, r.Text(), p.Setup.Tier(), strings.Join(lacks, ", "))
				}
			}
		} else if r.ID == "everydayPaths" {
			t.Errorf("%q: %v", r.Text(), p.Decision.Reasons)
		}
		p.Close()
		undo()
	}
	if allowed < 10 {
		t.Errorf("only %d rows were allowed", allowed)
	}
}
