package cli

import (
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/run"
)

// onBehalf runs a command for a run inside of another. What went wrong goes to the one
// who asked, which prints it.
func (c *Console) onBehalf() int {
	c.Out, c.Err = unbroken(c.Out), unbroken(c.Err)
	if f := run.Behalf(caller.Here(), run.Output{Stdout: c.Out, Stderr: c.Err, Warn: c.Warn, Note: c.noteLine}); f != nil {
		return c.Fail(f)
	}
	return 0
}
