package sandbox

import "embed"

// filterFiles holds the programs of this architecture only.
//
//go:embed seccomp/arm64/*.bpf
var filterFiles embed.FS
