package step

import (
	"reflect"
	"testing"
)

// TestSieve holds what is known of the names that find hands over.
func TestSieve(t *testing.T) {
	for _, c := range []struct {
		argv          []string
		starts, names []string
		ok            bool
	}{
		{[]string{"find", ".", "-name", "*.pyc", "-exec", "rm", "{}", "+"}, []string{"."}, []string{"….pyc", "…/….pyc"}, true},
		{[]string{"find", "src", "docs", "-type", "f", "-name", "a"}, []string{"src", "docs"}, []string{"a", "…/a"}, true},
		{[]string{"find", "-name", "a"}, []string{"."}, []string{"a", "…/a"}, true},
		{[]string{"find", ".", "(", "-name", "a", "-o", "-name", "b", ")", "-exec", "rm", "{}", ";"}, []string{"."}, []string{"a", "…/a", "b", "…/b"}, true},
		// The starting point itself, or anything else, is handed over too.
		{[]string{"find", ".", "-exec", "rm", "{}", "+"}, []string{"."}, nil, true},
		{[]string{"find", ".", "-name", "*", "-exec", "rm", "{}", "+"}, []string{"."}, nil, true},
		{[]string{"find", ".", "-name", ".*", "-exec", "rm", "{}", "+"}, []string{"."}, nil, true},
		{[]string{"find", "src", "-name", "SRC", "-exec", "rm", "{}", "+"}, []string{"src"}, nil, true},
		{[]string{"find", ".", "!", "-name", "a", "-exec", "rm", "{}", "+"}, []string{"."}, nil, true},
		{[]string{"find", ".", "-not", "-iname", "a", "-exec", "rm", "{}", "+"}, []string{"."}, nil, true},
		{[]string{"find", ".", "-name", "a", "-o", "-exec", "rm", "{}", "+"}, []string{"."}, nil, true},
		{[]string{"find", ".", "-type", "f", "-o", "-name", "a", "-exec", "rm", "{}", "+"}, []string{"."}, nil, true},
		{[]string{"find", ".", "-name", "[a-z]*"}, []string{"."}, nil, true},
		{[]string{"find", ".", "-exec", "rm", "{}", "+", "-name", "a"}, []string{"."}, nil, true},
		// A word that takes words is known, or nothing is said.
		{[]string{"find", ".", "-not", "-path", "-name", "-exec", "rm", "{}", "+"}, []string{"."}, nil, true},
		{[]string{"find", ".", "-path", "-name", "-delete"}, []string{"."}, nil, true},
		{[]string{"find", ".", "-unheard-of", "-name", "a"}, []string{"."}, nil, true},
		{[]string{"find", ".", "!", "(", "-name", "a", ")", "-delete"}, []string{"."}, nil, true},
		{[]string{"find", ".", "-iname", "A", "-mtime", "+3", "-delete"}, []string{"."}, []string{"A…", "…/A…"}, true},
		{[]string{"find", ".", "-name", "a", ",", "-exec", "rm", "{}", "+"}, []string{"."}, nil, false},
	} {
		starts, names, ok := Sieve(c.argv)
		if !reflect.DeepEqual(starts, c.starts) || !reflect.DeepEqual(names, c.names) || ok != c.ok {
			t.Errorf("%q: %q %q %v", c.argv, starts, names, ok)
		}
	}
}
