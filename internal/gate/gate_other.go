//go:build !linux

package gate

// Supported reports whether the kernel knows what the gate needs.
func Supported() bool { return false }
