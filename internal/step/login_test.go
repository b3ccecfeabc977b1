package step

import "testing"

func TestLoginText(t *testing.T) {
	for _, row := range []struct {
		argv []string
		at   int
	}{
		{[]string{"bash", "-lc", "x"}, 2}, {[]string{"/bin/sh", "-c", "-l", "x", "y"}, 3}, {[]string{"bash", "--login", "-c", "x"}, 3}, {[]string{"bash", "-l", "-o", "errexit", "-c", "x"}, 5},
		{[]string{"bash", "-loc", "errexit", "x"}, 3}, {[]string{"zsh", "-cl", "--", "x"}, 3}, {[]string{"bash", "--rcfile", "-l", "-lc", "x"}, 4},
		{[]string{"bash", "-c", "x"}, -1}, {[]string{"bash", "-l", "x.sh"}, -1}, {[]string{"bash", "-lc"}, -1}, {[]string{"fish", "-lc", "x"}, -1}, {[]string{"bash", "-c", "x", "-l"}, -1}, {[]string{"ls", "-lc", "x"}, -1}, {nil, -1},
	} {
		if at := loginText(row.argv); at != row.at {
			t.Errorf("%q: %d, want %d", row.argv, at, row.at)
		}
	}
	got := LoginArgv([]string{"bash", "-lc", "go version"}, []string{"A=b", "PATH=/a b:/c"})
	if got[2] != "PATH='/a b:/c'; go version" {
		t.Errorf("%q", got)
	}
}
