package shell

import (
	"strings"
	"testing"
)

// TestCostOfLongLists: twice as long a list costs twice as many allocations, not four times. How the left
// side of each && ends is kept, not asked again from the beginning of the list.
func TestCostOfLongLists(t *testing.T) {
	for _, part := range []string{"[ a = a ] && ", "[ a = b ] || ", "[[ $HOME == /home/* ]] && ", "{ [ a = a ]; } && ", "x=a && [ $x = a ] && ", "true && "} {
		cost := func(n int) float64 {
			text := strings.Repeat(part, n) + "true"
			return testing.AllocsPerRun(1, func() {
				if _, err := Read(text, Options{Cwd: "/ws", Home: "/home/u", Getenv: noVariables}); err != nil {
					t.Fatal(err)
				}
			})
		}
		if short, long := cost(100), cost(200); long > 2.5*short {
			t.Errorf("%q: %.0f allocations for 100 parts, %.0f for 200", part, short, long)
		}
	}
}
