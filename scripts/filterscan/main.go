// Command filterscan sends files through the output filter and reports speed and
// findings with their surroundings. It is for logs without secrets: every finding
// it prints is one to look at.
package main

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/atip-dev/atip-exec/filter"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: filterscan FILE…")
		os.Exit(64)
	}
	for _, name := range os.Args[1:] {
		if err := scan(name); err != nil {
			fmt.Fprintln(os.Stderr, "filterscan:", err)
			os.Exit(70)
		}
	}
}

func scan(name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	set, err := filter.NewSet(filter.Config{KeepFindings: true}, filter.Known{}, filter.TagKey{})
	if err != nil {
		return err
	}
	w := set.Writer(io.Discard, filter.Stdout)
	before := cpu()
	for rest := data; len(rest) > 0; {
		n := min(len(rest), 64<<10)
		if _, err := w.Write(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		return err
	}
	spent := cpu() - before
	r := w.Report()
	fmt.Printf("%s: %d bytes, %.0f MB/s of CPU time, binary %v, %d findings\n", name, len(data),
		float64(len(data))/1e6/spent, r.Binary, len(r.Findings))
	seen := map[string]bool{}
	for _, f := range r.Findings {
		value := string(data[f.Start:f.End])
		if seen[f.Rule+value] {
			continue
		}
		seen[f.Rule+value] = true
		left, right := max(0, f.Start-40), min(int64(len(data)), f.End+20)
		fmt.Printf("  line %d %s/%s: %q [%.80q] %q\n", f.Line, f.Layer, f.Rule, data[left:f.Start], value, data[f.End:right])
	}
	return nil
}

// cpu is the processor time of this process in seconds: on a shared machine the
// wall clock says nothing.
func cpu() float64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}
