package main

import (
	"fmt"
	"strings"
)

// Count is how many rows of each label had each outcome.
type Count map[Label]map[Outcome]int

// Counted counts results.
func Counted(results []Result) Count {
	c := Count{Same: {}, Ask: {}}
	for _, r := range results {
		c[r.Label][r.Outcome]++
	}
	return c
}

// Total is how many rows have a label.
func (c Count) Total(label Label) int {
	n := 0
	for _, rows := range c[label] {
		n += rows
	}
	return n
}

// Table is the counts, and each row whose outcome is not what its label wants.
func Table(results []Result) string {
	c := Counted(results)
	var out strings.Builder
	fmt.Fprintf(&out, "%-24s %5s %5s %6s %6s %5s %5s %6s\n", "rows that", "same", "asked", "denied", "broken", "held", "ran", "total")
	for _, l := range [...]struct {
		label Label
		name  string
	}{{Same, "are harmless"}, {Ask, "deserve a question"}} {
		n := c[l.label]
		fmt.Fprintf(&out, "%-24s %5d %5d %6d %6d %5d %5d %6d\n", l.name, n[RanSame], n[Asked], n[Denied], n[Broken], n[Held], n[Ran], c.Total(l.label))
	}
	for _, o := range [...]Outcome{Ran, Broken, Denied, Asked} {
		for _, r := range results {
			if r.Outcome == o && !r.Good() {
				fmt.Fprintf(&out, "\n%s\t%s: %s\n\t%s\n", o, r.Project, strings.ReplaceAll(r.Text, "\n", "\\n"), r.Why)
			}
		}
	}
	return out.String()
}
