package run

import (
	"io/fs"
	"os"
)

func openNonblock(path string) (*os.File, error) { return os.Open(path) }

// foreignWriter cannot tell here: access control lists are not modes.
func foreignWriter(string, fs.FileInfo, int) string { return "" }
