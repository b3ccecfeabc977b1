package run

import (
	"io"
	"path/filepath"

	"github.com/atip-dev/atip-exec/filter"
)

// bounded shows head and tail of a stream that is longer than policy or caller want to see,
// nil for no bound. What is left out is kept, redacted, where the notice says. A terminal is
// not bounded: what it asks would not be seen.
func (x *execution) bounded(name string, to io.Writer, kind filter.Stream) *filter.Bound {
	limit := int64(0)
	for _, most := range [...]int64{x.plan.policies.Output().MaxBytes, x.outputMost, x.plan.inv.MaxOutput} {
		if most > 0 && (limit == 0 || most < limit) {
			limit = most
		}
	}
	if limit == 0 || kind == filter.PTY {
		return nil
	}
	return filter.NewBound(to, filter.Limits{Max: limit}, filter.Save{Dir: filepath.Join(x.plan.dirs.Cache, "output"), Name: x.plan.Run + "." + name})
}

// boundReports are those of the streams that were bounded, by their names.
func (x *execution) boundReports() map[string]filter.BoundReport {
	out := map[string]filter.BoundReport{}
	for _, s := range x.streams {
		if s.Bound != nil && s.To != nil {
			out[s.Name] = s.Bound.Report()
		}
	}
	return out
}
