package plan

import "github.com/atip-dev/atip-exec/internal/caller"

// here is this process on a machine whose administrator lets HOME and the XDG variables name
// any directory: each test has a home of its own.
func here() caller.Machine {
	m := caller.Here()
	m.Homes = []string{"/"}
	return m
}
