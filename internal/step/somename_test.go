package step

import "testing"

func TestMeans(t *testing.T) {
	for _, c := range []struct {
		path, name string
		want       bool
	}{
		{"/w/….c", "/w/a.c", true},
		{"/w/….c", "/w/sub/a.c", true},
		{"/w/….c", "/w/a.cc", false},
		{"/w/…/HEAD", "/w/.git/HEAD", true},
		{"/w/…/HEAD", "/w/HEAD", false},
		{"/w/.GIT…", "/w/.git", true},
		{"/w/a.c…", "/w/axc", false},
		{"/w/\n…", "/w/\na\nb", true},
		// Nothing is ruled out by a name that cannot be read.
		{"/w/\xff/….c", "/w/x", true},
	} {
		if got := Means(c.path)(c.name); got != c.want {
			t.Errorf("%q for %q: %v", c.path, c.name, got)
		}
	}
	if got := KnownDir("/w/sub/….c"); got != "/w/sub" {
		t.Errorf("%q", got)
	}
	if got := KnownDir("/w/…/x"); got != "/w" {
		t.Errorf("%q", got)
	}
}
