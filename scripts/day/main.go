// Command day measures how far an ordinary working day is the same behind atip-exec: it runs
// command strings plain and wrapped in fresh copies of small projects, in a home of its own, and
// prints what was the same, asked, denied and broken.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"

	"github.com/atip-dev/atip-exec/internal/built"
)

func main() {
	bin := flag.String("bin", "", "directory of programs for which HOME counts; built if empty")
	only := flag.String("run", "", "only rows that match this regular expression")
	policy := flag.String("policy", "", "text of a user's policy; the default without one")
	explain := flag.Bool("explain", false, "only ask, and run nothing")
	flag.Parse()
	if err := measure(*bin, *only, *policy, *explain); err != nil {
		fmt.Fprintln(os.Stderr, "day:", err)
		os.Exit(1)
	}
}

func measure(bin, only, policy string, explain bool) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	var rows []Row
	for _, r := range Rows {
		if pattern.MatchString(r.Text) {
			rows = append(rows, r)
		}
	}
	if bin == "" {
		dir, err := os.MkdirTemp("", "atip-exec-day-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if bin, err = built.Programs(dir, "atip-exec", "atip"); err != nil {
			return err
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	if explain {
		w, err := NewWorld(cache, policy)
		if err != nil {
			return err
		}
		defer w.Remove()
		results, err := w.Explain(bin, rows)
		if err != nil {
			return err
		}
		fmt.Print(Table(results))
		return nil
	}
	worlds, err := NewWorlds(cache, min(runtime.NumCPU(), len(rows)), policy)
	if err != nil {
		return err
	}
	defer func() {
		for _, w := range worlds {
			w.Remove()
		}
	}()
	results, err := Measure(worlds, bin, rows)
	if err != nil {
		return err
	}
	fmt.Print(Table(results))
	return nil
}
