package trust

import (
	"os"
	"path/filepath"
	"sort"
	"time"
)

// Bounds of the digest cache: a run adds at most a few records, nobody else
// removes any.
const (
	pruneAge   = 90 * 24 * time.Hour
	pruneCount = 20_000
)

// PruneCache removes digest records older than 90 days and, beyond 20,000, the
// oldest. It belongs to maintenance, never to the path of a command.
func PruneCache(dir string, now time.Time) (removed int, err error) {
	if openCache(dir, true) == nil {
		return 0, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	type record struct {
		name string
		time time.Time
	}
	var keep []record
	remove := func(name string) {
		if os.Remove(filepath.Join(dir, name)) == nil {
			removed++
		}
	}
	for _, e := range entries {
		fi, err := e.Info()
		if err != nil || !fi.Mode().IsRegular() {
			continue
		}
		if now.Sub(fi.ModTime()) > pruneAge {
			remove(e.Name())
			continue
		}
		keep = append(keep, record{e.Name(), fi.ModTime()})
	}
	if over := len(keep) - pruneCount; over > 0 {
		sort.Slice(keep, func(i, j int) bool { return keep[i].time.Before(keep[j].time) })
		for _, r := range keep[:over] {
			remove(r.name)
		}
	}
	return removed, nil
}
