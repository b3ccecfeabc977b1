package seccomp

import "embed"

// filterFiles holds the programs of this architecture only.
//
//go:embed arm64/*.bpf
var filterFiles embed.FS
