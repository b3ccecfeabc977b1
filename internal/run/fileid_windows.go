package run

// fileID has no inode to tell here; the path alone names the directory.
func fileID(string) (dev, ino uint64) { return 0, 0 }
