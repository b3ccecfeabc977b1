//go:build !linux

package owner

// IsRoot reports whether uid, the owner of the file at path, is root.
func IsRoot(uid uint32, path string) bool { return uid == 0 }
