//go:build !linux

package sandbox

// lockUnused finds every directory unused: without a sandbox, none is made.
func lockUnused(string) (unlock func(), free bool) { return func() {}, true }
