package effects

import "os"

// ownedBy cannot be told here.
func ownedBy(os.FileInfo, int) bool { return false }
