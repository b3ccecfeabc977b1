package answer

import (
	"fmt"

	"github.com/atip-dev/atip-exec/internal/undo"
)

// UndoTitle names a run by its name, its command or its id.
func UndoTitle(r undo.Run) string {
	switch {
	case r.Name != "":
		return r.Name
	case r.Cmd != "":
		return r.Cmd
	}
	return r.Run
}

// UndoCounts says how many files were added, changed and removed.
func UndoCounts(n *undo.Counts) string {
	if n == nil {
		return "not known"
	}
	text := fmt.Sprintf("+%d ~%d -%d", n.Added, n.Changed, n.Removed)
	if n.Git > 0 {
		text += ", git"
	}
	return text
}
