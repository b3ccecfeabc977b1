package trust

import "testing"

func TestWithEnvironment(t *testing.T) {
	node := Identity{Chain: []Part{{Path: "/usr/bin/tool"}, {Path: "/usr/bin/node"}}}
	for _, row := range []struct {
		env  string
		want bool
	}{
		{"NODE_OPTIONS=-r x", true}, {"LD_PRELOAD=x", true}, {"PYTHONPATH=x", false}, {"PATH=/bin", false}, {"GLIBC_TUNABLES", true},
	} {
		if got := node.WithEnvironment([]string{"A=b", row.env}).HasCap(CapLoaderEnvironment); got != row.want {
			t.Errorf("%s: %v", row.env, got)
		}
	}
	if len(node.Caps) != 0 {
		t.Error("the identity was changed in place")
	}
}
