// Command filterscore scores the output filter on the corpora of testdata/filter: recall,
// leaked and over-redacted bytes, precision. With -misses it prints what it got wrong; the
// records that are kept apart count for the last line only and are shown with -unseen.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/redactcorpus"
)

func main() {
	dir := flag.String("corpus", "testdata/filter", "directory of the corpora")
	misses := flag.Bool("misses", false, "print what is missed and what is taken too much")
	unseen := flag.Bool("unseen", false, "score the records that are kept apart")
	seeds := flag.Uint64("seeds", 3, "how often each template is expanded")
	flag.Parse()
	if err := score(*dir, *misses, *unseen, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, "filterscore:", err)
		os.Exit(70)
	}
}

func score(dir string, misses, unseen bool, seeds uint64) error {
	fmt.Printf("%-22s %7s %7s %7s %7s %8s %9s\n", "corpus", "records", "secrets", "recall", "leaked", "over", "precision")
	all := map[bool]*redactcorpus.Score{false: {}, true: {}}
	for _, c := range []struct {
		name string
		read func(string, uint64) ([]redactcorpus.Record, error)
	}{{"outputs", redactcorpus.Outputs}, {"negatives", redactcorpus.Negatives}} {
		part := map[bool]*redactcorpus.Score{false: {}, true: {}}
		for seed := range seeds {
			records, err := c.read(dir, seed)
			if err != nil {
				return err
			}
			for i := range records {
				r := &records[i]
				if r.Unseen && !unseen {
					continue
				}
				// A set for each: what one output teaches is no help with another.
				set, err := filter.NewSet(filter.Config{KeepFindings: true}, filter.Known{}, filter.TagKey{})
				if err != nil {
					return err
				}
				for _, s := range [...]*redactcorpus.Score{part[r.Unseen], all[r.Unseen]} {
					if err := s.Add(set, r); err != nil {
						return err
					}
				}
			}
		}
		print(c.name+", worked with", part[false])
		if unseen {
			print(c.name+", unseen", part[true])
		}
		if misses {
			for _, s := range part {
				for _, m := range s.Missed {
					fmt.Println("  missed", m)
				}
				for _, m := range s.Excess {
					fmt.Println("  excess", m)
				}
			}
		}
	}
	print("all, worked with", all[false])
	if unseen {
		print("all, unseen", all[true])
	}
	return nil
}

func print(name string, s *redactcorpus.Score) {
	fmt.Printf("%-22s %7d %7d %7.4f %6.2f%% %7dB %9.4f\n", name, s.Records, s.Secrets, s.Recall(), 100*s.LeakedShare(), s.Over, s.Precision())
}
