package prints

import (
	"os/exec"
	"strings"
	"testing"
)

// TestSplitPath holds what this package takes dirname and basename to print against the programs.
func TestSplitPath(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", "/", "//", "///", ".", "..", "a", "a/", "a//", "/a", "//a", "/a/", "a/b", "a//b", "a/b//", "./a", "./a/b", "a/.", "a/..", "a/../b", "a/../b/c", "/..", "a b/c d", "a\\b/c", "…/é"} {
		for program, words := range map[string][][]string{"basename": {{p}, {p, "b"}, {p, ""}, {p, "/"}, {p, "a"}}, "dirname": {{p}}} {
			for _, args := range words {
				argv := append([]string{program}, args...)
				said, known := Shape(argv)
				out, err := exec.Command(argv[0], argv[1:]...).Output()
				if printed := strings.TrimRight(string(out), "\n"); err != nil || !known || said != printed {
					t.Errorf("%q prints %q, taken for %q (%t): %v", argv, printed, said, known, err)
				}
			}
		}
	}
	for _, argv := range [][]string{{"basename", "-a"}, {"basename", "--"}, {"basename", "-z", "x"}, {"dirname", "-z"}, {"dirname", "--"}, {"basename"}, {"dirname", "a", "b"}} {
		if said, known := Shape(argv); known {
			t.Errorf("%q is taken for %q", argv, said)
		}
	}
}
