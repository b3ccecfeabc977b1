package place

// linkedFile cannot be told here.
func linkedFile(string) (id [2]uint64, linked bool) { return id, false }
