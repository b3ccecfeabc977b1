//go:build !linux

package sandbox

// Enclose confines this process, which only Linux can.
func Enclose([]string) error { return stateError("this system cannot confine a process") }
