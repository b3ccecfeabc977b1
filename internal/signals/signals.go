// Package signals lists the signals that a run passes on.
package signals

import (
	"os"
	"slices"
)

// Ends reports whether a signal that arrives before the start cancels the run.
func Ends(sig os.Signal) bool { return slices.Contains(Endings(), sig) }
