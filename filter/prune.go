package filter

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// What of the saved streams is kept.
const (
	keptFiles = 50
	keptBytes = 256 << 20
	keptFor   = 7 * 24 * time.Hour
)

// prune removes what is too old, too much or too large.
func prune(dir string) {
	now := time.Now()
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var files []os.FileInfo
	for _, d := range list {
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	size := int64(0)
	for i, info := range files {
		size += info.Size()
		if i >= keptFiles-1 || size > keptBytes || now.Sub(info.ModTime()) > keptFor {
			os.Remove(filepath.Join(dir, info.Name()))
		}
	}
}
