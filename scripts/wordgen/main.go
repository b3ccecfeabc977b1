// Command wordgen lists the words that occur most often in the comments of the Go
// files below a directory, one a line, sorted. filter/words.txt was made from the
// Go distribution's own source: the words that names and prose in build logs use.
package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const keep = 5000

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: wordgen DIR")
		os.Exit(64)
	}
	count := map[string]int{}
	err := filepath.WalkDir(os.Args[1], func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for line := range strings.Lines(string(data)) {
			_, comment, ok := strings.Cut(line, "//")
			if !ok {
				continue
			}
			for _, w := range strings.FieldsFunc(strings.ToLower(comment), func(r rune) bool { return r < 'a' || r > 'z' }) {
				if len(w) >= 3 && len(w) <= 14 {
					seen[w] = true
				}
			}
		}
		for w := range seen { // once per file: a table of names is not prose
			count[w]++
		}
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "wordgen:", err)
		os.Exit(70)
	}
	words := slices.Collect(maps.Keys(count))
	slices.SortFunc(words, func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	words = words[:min(keep, len(words))]
	slices.Sort(words)
	for _, w := range words {
		fmt.Println(w)
	}
}
