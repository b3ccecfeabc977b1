package subpath

import "testing"

func TestWithin(t *testing.T) {
	for _, row := range []struct {
		path, dir string
		want      bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/a/b/c", "/a", true}, {"/a/b", "/a/", true}, {"/a", "/", true}, {"/", "/", true},
		{"/ab", "/a", false}, {"/a", "/a/b", false}, {"/b/a", "/a", false}, {"/A/b", "/a", false}, {"/a.b", "/a", false},
		{"/a", "", false}, {"", "", false}, {"", "/a", false}, {"a/b", "/a", false},
	} {
		if got := Within(row.path, row.dir); got != row.want {
			t.Errorf("Within(%q, %q): %v", row.path, row.dir, got)
		}
	}
}
