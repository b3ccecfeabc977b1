package seccomp

import "embed"

// filterFiles holds the programs of this architecture only.
//
//go:embed amd64/*.bpf
var filterFiles embed.FS
