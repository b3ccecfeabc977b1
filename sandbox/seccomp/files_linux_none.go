//go:build linux && !amd64 && !arm64

package seccomp

import "embed"

// No program has been generated and tried for this architecture, so there is
// nothing to load: see noFilter.
var (
	filterFiles embed.FS
	filterIndex [0]filterEntry
)
