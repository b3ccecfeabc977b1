package plan

import (
	"os"
	"testing"

	"github.com/atip-dev/atip-exec/policy"
)

// A command that removes what only the run will name is judged by the worst that is there under
// such a name: the same words are allowed where nothing of the kind lies.
func TestRemovedUnderSomeName(t *testing.T) {
	m := shellWorld(t)
	for _, dir := range []string{"inner/.git/objects/pack", "docs"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"inner/.git/HEAD", "docs/x.md", "docs/.env", "src/a.pyc"} {
		if err := os.WriteFile(name, []byte("x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for text, allowed := range map[string]bool{
		"find . -name '*.pyc' -delete":                                  true,
		"find . -name '*.pyc' -exec rm {} +":                            true,
		"find . -name '*.pyc' -print0 | xargs -0 rm -f":                 true,
		"find . -type f -name '*.pyc' -mtime +3 -print -delete":         true,
		"find src docs -name '*.md' -delete":                            true,
		"find src -type f | xargs rm":                                   true,
		`find . \( -name '*.orig' -o -name '*.rej' \) -delete`:          true,
		"grep -rl x src | xargs rm":                                     true,
		"find . -type f | xargs rm":                                     false,
		"find docs -type f | xargs rm":                                  false, // .env
		"find docs -name '.e*' -delete":                                 false,
		"find . -name HEAD -delete":                                     false,
		"find . -name HEAD -exec rm {} +":                               false,
		"find inner -name 'HE*' | xargs rm":                             false,
		"find . -name '*.pack' -delete":                                 false,
		"find . -iname .GIT -exec rm -rf {} +":                          false,
		"find . -name '.g*' -exec rm -rf {} +":                          false,
		"find . -name '*' -exec rm -rf {} +":                            false,
		`find . ! \( -name a \) -exec rm -rf {} +`:                      false,
		`find . ! ! \( -name a -o -true \) -exec rm -rf {} +`:           false,
		"find . -not -path -name -exec rm -rf {} +":                     false,
		"find . -newer -name -exec rm -rf {} +":                         false,
		"find . -delete -name '*.pyc'":                                  false,
		"find . -name '*.pyc' -o -delete":                               false,
		"find . -type f -delete -o -name '*.pyc'":                       false,
		"find . -name '*.pyc' -exec echo + -o -exec rm -rf .git {} \\;": true,
		"find . -name '*.pyc' -unheard-of -delete":                      false,
		"grep -rl x . | xargs rm":                                       false,
		"git ls-files | xargs rm":                                       false,
		// A word of a loop is what was printed only as long as nothing changes it.
		`for f in $(find src -name '*.pyc'); do rm "$f"; done`:                      true,
		`find . -name '*.pyc' | while IFS= read -r f; do rm "$f"; done`:             true,
		`find . -name '*.pyc' -print0 | while read -r -d '' f; do rm "$f"; done`:    true,
		`x=$(find . -name '*.pyc'); rm -f $x`:                                       true,
		`find . -name HEAD | while read -r f; do rm "$f"; done`:                     false,
		`for f in $(find . -name '*.pyc'); do rm -rf ${f%/*}; done`:                 false,
		`for f in $(find src -name '*.pyc'); do rm -rf "${f/src/}"; done`:           false,
		`for f in $(find src -name '*.pyc'); do rm -rf ${f:0:1}; done`:              false,
		`for f in $(find src -name '*.pyc'); do g=${f%/*}; rm -rf $g; done`:         false,
		`x=$(find src -name '*.pyc'); set -- ${x%/*}; rm -rf "$1"`:                  false,
		`find . -name '*.pyc' | while read -r a b; do rm -rf "$b"; done`:            false,
		`find . -name '*.pyc' | while IFS=/ read -r f; do rm -rf "$f"; done`:        false,
		`find . -name '*.pyc' | while read -r -d / f; do rm -rf "$f"; done`:         false,
		`find . -name '*.pyc' | while read -n 1 f; do rm -rf "$f"; done`:            false,
		`IFS=/; for f in $(find . -name '*.pyc'); do rm -rf $f; done`:               false,
		`{ find . -name '*.pyc'; echo .git; } | while read f; do rm -rf "$f"; done`: false,
		`rm -rf $(find . -name '*.pyc'; echo .git)`:                                 false,
		`rm -rf $(printf %s "$(find . -name '*.pyc')" | cut -c1)`:                   false,
		`x=$(find . -name '*.pyc'); rm -rf $(printf %s "${x%/*}")`:                  false,
		"find . -name '*.pyc' | grep -v x | sort -u | head -n 5 | xargs rm":         true,
		"find . -name '*.pyc' | tac -s / | xargs rm -rf":                            false,
		"find . -name '*.pyc' | head -v | xargs rm -rf":                             false,
		"find . -name '*.pyc' | tail -c 3 | xargs rm -rf":                           false,
		"find . -name '*.pyc' | grep -o . | xargs rm -rf":                           false,
		"find . -name '*.pyc' | sort --debug | xargs rm -rf":                        false,
		"find -files0-from list -name '*.pyc' | xargs rm":                           false,
	} {
		if got := planOf(t, m, text).Decision.Action; (got == policy.Allow) != allowed {
			t.Errorf("%s: %s", text, got)
		}
	}
}
