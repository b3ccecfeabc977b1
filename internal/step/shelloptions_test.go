package step

import (
	"slices"
	"strings"
	"testing"
)

func TestShellWords(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"bash -c x", "bash -c x"},
		{"bash -ec x a", "bash -e -c x a"},
		{"bash +x -c x", "bash -c x"},
		{"bash +c x", "bash -c x"},
		{"bash -c +x x", "bash -c x"},
		{"bash -oc errexit x", "bash -o errexit -c x"},
		{"bash -oOc errexit extglob x", "bash -o errexit -O extglob -c x"},
		{"bash -c -- x", "bash -c -- x"},
		{"bash -- -c x", "bash -- -c x"},
		{"bash +o errexit -c x", "bash -c x"},
		{"bash +O extglob -c x", "bash -c x"},
		{"bash -nx file", "bash -x -n file"},
		{"bash -n -x +n file", "bash -x file"},
		{"bash -n +o noexec file", "bash file"},
		// Under these words mean something else.
		{"bash +B -c x", "bash -T -c x"},
		{"bash +o braceexpand -c x", "bash -T -c x"},
		// Long options come first, with one dash too.
		{"bash --norc -norc +e -c x", "bash --norc -norc -c x"},
		{"bash --rcfile f -c x", "bash --rcfile f -c x"},
		{"bash -x --norc -c x", "bash -x --norc -c x"},
		{"bash file -c x", "bash file -c x"},
		{"bash +x file", "bash file"},
		{"bash -o", "bash -o"},
		{"dash -", "dash -"},
	} {
		in := strings.Fields(row.in)
		kept := slices.Clone(in)
		if got := strings.Join(ShellWords(in), " "); got != row.want {
			t.Errorf("%s: read as %q, want %q", row.in, got, row.want)
		}
		if !slices.Equal(in, kept) {
			t.Errorf("%s: the words themselves were changed to %q", row.in, in)
		}
	}
}

func TestEnvWords(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"env - a", "env -i a"},
		{"env A=1 - a", "env A=1 -i a"},
		{"env -u X - a", "env -u X -i a"},
		{"env a -", "env a -"},
		{"env", "env"},
	} {
		if got := strings.Join(EnvWords(strings.Fields(row.in)), " "); got != row.want {
			t.Errorf("%s: read as %q, want %q", row.in, got, row.want)
		}
	}
}

// TestEnvSplits: what env -S takes apart and what follows it are one command.
func TestEnvSplits(t *testing.T) {
	for _, row := range []struct{ in, out []string }{
		{[]string{"env", "-", "ls"}, []string{"env", "-i", "ls"}},
		{[]string{"env", "-S", "rm -rf", "~"}, []string{"env", "rm", "-rf", "~"}},
		{[]string{"env", "-S", "sh -c", "rm -rf ~"}, []string{"env", "sh", "-c", "rm -rf ~"}},
		{[]string{"env", "-Ssh -c", "ls"}, []string{"env", "sh", "-c", "ls"}},
		{[]string{"env", "-ivSsh  -c", "ls"}, []string{"env", "-iv", "sh", "-c", "ls"}},
		{[]string{"env", "-iS", "A=b 'x y' \"z\"q", "ls"}, []string{"env", "-i", "A=b", "x y", "zq", "ls"}},
		{[]string{"env", "--split-string=sh -c", "ls"}, []string{"env", "sh", "-c", "ls"}},
		{[]string{"env", "--split-s", "sh -c", "ls"}, []string{"env", "sh", "-c", "ls"}},
		{[]string{"env", "-u", "-S", "A=b", "-S", "sh -S", "x"}, []string{"env", "-u", "-S", "A=b", "sh", "-S", "x"}},
		{[]string{"env", "-S", "-S sh", "-c", "x"}, []string{"env", "sh", "-c", "x"}},
		{[]string{"env", "-S", "a\\_b", "x"}, []string{"env", "\x00", "x"}},
		{[]string{"env", "-S", "${A}", "x"}, []string{"env", "\x00", "x"}},
		{[]string{"env", "-S", "'a", "x"}, []string{"env", "\x00", "x"}},
		{[]string{"env", "-S", "a b"}, []string{"env", "-S", "a b"}},
		{[]string{"env", "ls", "-S", "a b", "c"}, []string{"env", "ls", "-S", "a b", "c"}},
		{[]string{"env", "-S"}, []string{"env", "-S"}},
	} {
		if got := EnvWords(row.in); !slices.Equal(got, row.out) {
			t.Errorf("%q: %q, want %q", row.in, got, row.out)
		}
	}
}
