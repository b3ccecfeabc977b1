package wildcard

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b", true}, {"?", "", false}, {"?", "/", true},
		{"python3*", "python3.12", true}, {"python3*", "python", false}, {"*.so.?", "libc.so.6", true}, {"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-b-b-d", false}, {"**", "x", true}, {"a", "ab", false}, {"ab", "a", false},
		{strings.Repeat("a*", 40) + "b", strings.Repeat("a", 4000), false}, // no pattern takes long
	} {
		if got := Match(tt.pattern, tt.s); got != tt.want {
			t.Errorf("%q, %.20q: %v", tt.pattern, tt.s, got)
		}
	}
}
