// Command redactbench scores another detector, gitleaks, on the corpora of testdata/filter
// beside this project's filter, by the same count: a secret is found if none of its bytes
// is left where every value that the detector reports is masked wherever it stands in the
// text. It is a module of its own, so that the detector's dependencies are none of ours.
//
//	cd scripts/redactbench && go run . -corpus ../../testdata/filter
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/redactcorpus"
	"github.com/rs/zerolog"
	"github.com/zricethezav/gitleaks/v8/detect"
)

func main() {
	dir := flag.String("corpus", "../../testdata/filter", "directory of the corpora")
	seed := flag.Uint64("seed", 1, "what the templates are expanded with")
	flag.Parse()
	if err := bench(*dir, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "redactbench:", err)
		os.Exit(70)
	}
}

func bench(dir string, seed uint64) error {
	zerolog.SetGlobalLevel(zerolog.Disabled)
	records, err := redactcorpus.Outputs(dir, seed)
	if err != nil {
		return err
	}
	negatives, err := redactcorpus.Negatives(dir, seed)
	if err != nil {
		return err
	}
	detector, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		return err
	}
	ours, theirs := map[string]*redactcorpus.Score{}, map[string]*redactcorpus.Score{}
	for _, r := range append(records, negatives...) {
		part := r.Part()
		if ours[part] == nil {
			ours[part], theirs[part] = &redactcorpus.Score{}, &redactcorpus.Score{}
		}
		set, err := filter.NewSet(filter.Config{KeepFindings: true}, filter.Known{}, filter.TagKey{})
		if err != nil {
			return err
		}
		if err := ours[part].Add(set, &r); err != nil {
			return err
		}
		theirs[part].Count(&r, gitleaks(detector, r.Text))
	}
	fmt.Printf("%-14s %-10s %8s %7s %7s %9s\n", "part", "detector", "secrets", "recall", "left", "precision")
	for _, part := range [...]string{redactcorpus.Earlier, redactcorpus.Open, redactcorpus.HeldOut, redactcorpus.ThirdOpen, redactcorpus.ThirdHeldOut} {
		for _, row := range [...]struct {
			name  string
			score *redactcorpus.Score
		}{{"gitleaks", theirs[part]}, {"atip-exec", ours[part]}} {
			fmt.Printf("%-14s %-10s %8d %7.3f %6.1f%% %9.3f\n", part, row.name, row.score.Secrets, row.score.Recall(), 100*row.score.LeakedShare(), row.score.Precision())
		}
	}
	return nil
}

// gitleaks masks each reported value wherever it stands, as one would who filters with it.
func gitleaks(d *detect.Detector, text []byte) []redactcorpus.Taken {
	var out []redactcorpus.Taken
	seen := map[string]bool{}
	for _, f := range d.DetectBytes(text) {
		value := []byte(f.Secret)
		if len(value) == 0 || seen[f.Secret] {
			continue
		}
		seen[f.Secret] = true
		for from := 0; ; {
			at := bytes.Index(text[from:], value)
			if at < 0 {
				break
			}
			out = append(out, redactcorpus.Taken{Span: redactcorpus.Span{From: from + at, To: from + at + len(value)}, Rule: f.RuleID})
			from += at + len(value)
		}
	}
	return out
}
