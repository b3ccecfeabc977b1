// Command filterscore scores the output filter on the corpora of testdata/filter: recall,
// leaked and over-redacted bytes, precision, for the open records and for those held out.
// With -families it prints a line for each kind of output, with -v what is missed and taken
// too much in the open records; -unseen shows these of the held-out ones instead, which is
// for the one who keeps the corpora, not for the one who changes the filter.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/redactcorpus"
)

func main() {
	dir := flag.String("corpus", "testdata/filter", "directory of the corpora")
	verbose := flag.Bool("v", false, "print what is missed and what is taken too much in the open records")
	unseen := flag.Bool("unseen", false, "with -v and -families: the held-out records in place of the open ones")
	families := flag.Bool("families", false, "print a line for each kind of output")
	file := flag.String("file", "", "score the records of this one file")
	seeds := flag.Uint64("seeds", 3, "how often each template is expanded")
	flag.Parse()
	if err := score(*dir, *file, *verbose, *unseen, *families, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, "filterscore:", err)
		os.Exit(70)
	}
}

func score(dir, file string, verbose, unseen, families bool, seeds uint64) error {
	fmt.Printf("%-40s %7s %7s %7s %7s %8s %6s %9s\n", "corpus", "records", "secrets", "recall", "leaked", "over", "false", "precision")
	all := map[bool]*redactcorpus.Score{false: {}, true: {}}
	for _, c := range []struct {
		name string
		read func(string, uint64) ([]redactcorpus.Record, error)
	}{{"outputs", redactcorpus.Outputs}, {"negatives", redactcorpus.Negatives}} {
		part := map[bool]*redactcorpus.Score{false: {}, true: {}}
		family := map[string]*redactcorpus.Score{}
		var order []string
		for seed := range seeds {
			records, err := c.read(dir, seed)
			if err != nil {
				return err
			}
			for i := range records {
				r := &records[i]
				if file != "" && r.File != file {
					continue
				}
				if family[r.Family] == nil {
					family[r.Family] = &redactcorpus.Score{}
					order = append(order, r.Family)
				}
				scores := []*redactcorpus.Score{part[r.Unseen], all[r.Unseen]}
				if r.Unseen == unseen {
					scores = append(scores, family[r.Family])
				}
				// A set for each: what one output teaches is no help with another.
				set, err := filter.NewSet(filter.Config{KeepFindings: true}, filter.Known{}, filter.TagKey{})
				if err != nil {
					return err
				}
				for _, s := range scores {
					if err := s.Add(set, r); err != nil {
						return err
					}
				}
			}
		}
		if families {
			slices.Sort(order)
			for _, name := range order {
				if family[name].Records > 0 {
					row("  "+name, family[name])
				}
			}
		}
		row(c.name+", open", part[false])
		row(c.name+", held out", part[true])
		if verbose {
			for _, m := range part[unseen].Missed {
				fmt.Println("  missed", m)
			}
			for _, m := range part[unseen].Excess {
				fmt.Println("  excess", m)
			}
		}
	}
	row("all, open", all[false])
	row("all, held out", all[true])
	return nil
}

func row(name string, s *redactcorpus.Score) {
	recall, leaked, precision := "-", "-", "-"
	if s.Secrets > 0 {
		recall, leaked = fmt.Sprintf("%.4f", s.Recall()), fmt.Sprintf("%.2f%%", 100*s.LeakedShare())
		precision = fmt.Sprintf("%.4f", s.Precision())
	}
	fmt.Printf("%-40s %7d %7d %7s %7s %7dB %6d %9s\n", name, s.Records, s.Secrets, recall, leaked, s.Over, s.FalseFindings, precision)
}
