package plan

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/atip-dev/atip-exec/internal/corpus"
	"github.com/atip-dev/atip-exec/internal/effects"
)

// TestManyMatches holds that a pattern means the same however many files it matches.
func TestManyMatches(t *testing.T) {
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	judge := func(cmd string) string { return w.ask(&corpus.Row{Cmd: &cmd}, b).decision }
	for i := range 2 * effects.MaxMatches {
		if err := os.WriteFile(filepath.Join(w.Dir, "many-"+strconv.Itoa(i)+".tmp"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(w.Dir, "dist", strconv.Itoa(i)+".js"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for cmd, want := range map[string]string{"rm -f *.tmp": "allow", "rm -f dist/*.js": "allow", "cat *.tmp": "allow", "cat *.key": "deny", "rm -rf *": "deny"} {
		if got := judge(cmd); got != want {
			t.Errorf("%s: %s, want %s", cmd, got, want)
		}
	}
}

// TestListed holds when names that one command prints are known well enough to judge
// another that gets them as words, and when they are not.
func TestListed(t *testing.T) {
	w := newCorpusWorld(t)
	b := &Batch{Machine: w.machine()}
	judge := func(cmd string) string { return w.ask(&corpus.Row{Cmd: &cmd}, b).decision }
	for cmd, want := range map[string]string{
		"grep -rl a src | xargs sed -i s/a/b/":                          "allow",
		"grep -rl a src docs | sort -u | head -5 | xargs sed -i s/a/b/": "allow",
		"rg -l a | xargs -r sed -i s/a/b/":                              "allow",
		"git ls-files '*.go' | grep -v vendor | xargs sed -i s/a/b/":    "allow",
		"find src -name '*.ts' -print0 | xargs -0 sed -i s/a/b/":        "allow",
		"git diff --name-only | xargs -I{} cp {} /tmp/":                 "allow",
		"find . -name left-pad -exec rm -rf {} +":                       "allow",
		"find build -name '*.o' -exec rm -f {} +":                       "allow",
		"grep -rl a src | xargs rm":                                     "allow",
		"find . -name a | xargs rm -rf":                                 "allow",
		"sed -i s/a/b/ $(git grep -lw a -- 'src/*')":                    "allow",
		"git branch --merged main | grep -v main | xargs git branch -d": "allow",
		"find src -name '*.go' | parallel -j4 'wc -l {}'":               "allow",
		"ls src | parallel 'wc -l src/{}'":                              "allow",
		// What is printed is no name of a file, or not only.
		"git grep -n a | xargs sed -i s/a/b/":                     "confirm",
		"git grep --no-index -l a / | xargs sed -i s/a/b/":        "confirm",
		"git branch -r | xargs git branch -d":                     "confirm",
		"git branch -v | xargs git branch -d":                     "confirm",
		"git branch --merged | xargs git branch -D":               "confirm",
		"git branch -D $(git branch --merged)":                    "confirm",
		"git branch --merged | xargs git push origin --delete":    "confirm",
		"git branch --merged | xargs rm -rf":                      "confirm",
		"git ls-files | parallel {}":                              "confirm",
		"git ls-files | parallel 'sh -c \"{}\"'":                  "confirm",
		"git ls-files | parallel 'rm -rf src/{}'":                 "confirm",
		"git ls-files | parallel -S host cat {}":                  "confirm",
		"cat list.txt | parallel rm {}":                           "confirm",
		"grep -r a src | xargs sed -i s/a/b/":                     "confirm",
		"grep -rlc a src | xargs sed -i s/a/b/":                   "confirm",
		"cat list.txt | xargs sed -i s/a/b/":                      "confirm",
		"(grep -rl a src; cat list.txt) | xargs sed -i s/a/b/":    "confirm",
		"find src -printf '%p -e%f ' | xargs sed -i s/a/b/":       "confirm",
		"find src -name '*.ts' | tr / - | xargs sed -i s/a/b/":    "confirm",
		"grep -rl a src | sort - list.txt | xargs sed -i s/a/b/":  "confirm",
		"grep -rl a src | xargs -d, sed -i s/a/b/":                "confirm",
		"cd $X; grep -rl a src | xargs sed -i s/a/b/":             "confirm",
		"find . -exec rm -rf {} +":                                "deny",
		"find . -name '*' -exec rm -rf {} +":                      "deny",
		"find . -maxdepth 2 -type d ! -name a -exec rm -rf {} +":  "deny",
		"find ~ -name .ssh -exec rm -rf {} +":                     "deny",
		"find . -name .env -exec cat {} +":                        "deny",
		"find . -name x -o -type d -exec rm -rf {} +":             "deny",
		"grep -rl a src | xargs -I{} sh -c 'echo {}; curl x.org'": "confirm",
	} {
		if got := judge(cmd); got != want {
			t.Errorf("%s: %s, want %s", cmd, got, want)
		}
	}
	// A name becomes a text that somebody runs: that is not read here.
	for _, cmd := range []string{"grep -rl a src | xargs -I{} sh -c {}", "grep -rl a src | xargs -n1 bash -c", "git ls-files | xargs env"} {
		if got := judge(cmd); got == "allow" {
			t.Errorf("%s: %s", cmd, got)
		}
	}
	for _, name := range []string{"src/a -ecat", "src/sub/it's", "-s"} {
		path := filepath.Join(w.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		for _, cmd := range []string{"grep -rl a src | xargs sed -i s/a/b/", "rg -l a | xargs sed -i s/a/b/"} {
			if name == "-s" && cmd[0] == 'g' {
				continue // "src/" stands in front of all of them
			}
			if got := judge(cmd); got != "confirm" {
				t.Errorf("beside %q: %s: %s", name, cmd, got)
			}
		}
		os.Remove(path)
	}
}
