package undo

import "slices"

// final lists what is done for good: what destroys the past or the copies of it is no slip
// that an undo is for, even where it could be taken back.
var final = map[string][][]string{
	"tmux": {{}}, "ss": {{}}, "journalctl": {{}}, // processes, connections, logs
	"shred": {{}}, "wipe": {{}}, "srm": {{}}, "git-filter-repo": {{}}, "bfg": {{}},
	"git": {{"gc"}, {"prune"}, {"prune-packed"}, {"repack"}, {"maintenance"}, {"reflog", "expire"}, {"reflog", "delete"}, {"filter-branch"}, {"filter-repo"},
		{"lfs", "prune"}, {"push"}, {"send-pack"}},
}

// Final reports whether a command is never called undoable.
func Final(tool string, path []string) bool {
	return slices.ContainsFunc(final[tool], func(words []string) bool { return len(path) >= len(words) && slices.Equal(path[:len(words)], words) })
}
