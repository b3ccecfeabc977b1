//go:build !linux

package selftest

import (
	"context"

	"github.com/atip-dev/atip-exec/sandbox"
)

// Verb is the first word that makes our program a part of a self-test.
const Verb = "__selftest"

// Options say what to test.
type Options struct {
	Self   string
	State  string
	Policy sandbox.PolicyProfile
	Names  sandbox.Names
}

// Run has nothing to try: nothing is enforced on this system.
func Run(context.Context, Options) (*Report, error) {
	return nil, sandbox.Unconfined("there is no sandbox on this system")
}

// Main is a process of a self-test.
func Main([]string) int { return 1 }
