package tools

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/scan"
	"github.com/atip-dev/atip-exec/sandbox"
	"github.com/atip-dev/atip-exec/trust"
)

// cleaned is atip-exec.sandbox-clean/1.
type cleaned struct {
	Kind    string               `json:"kind"`
	DryRun  bool                 `json:"dryRun"`
	Removed []sandbox.PrivateDir `json:"removed"`
	Kept    []sandbox.PrivateDir `json:"kept"`
	Bytes   int64                `json:"bytes"`
	Digests int                  `json:"digests"` // remembered digests of executables that nothing has asked for in 90 days
}

// cleanVerb removes the temporary files and caches that runs keep for each workspace.
func cleanVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) > 1 {
		return 0, fault.New(errcode.Arguments, "sandbox clean takes no argument").WithFix("name nothing after it", "atip sandbox clean --dry-run")
	}
	dirs, err := caller.Here().Dirs()
	if err != nil {
		return 0, err
	}
	line := answer.NewProgress(c)
	o := sandbox.CleanOptions{Cache: dirs.Cache, DryRun: v.Has("dry-run"), Progress: line.Show}
	if v.Has("older-than") {
		age, err := scan.Days(v.Get("older-than"))
		if err != nil || age <= 0 {
			return 0, fault.New(errcode.FlagValue, fmt.Sprintf("--older-than: %q is not an age", v.Get("older-than"))).WithFix("give a number with d, h or m", "atip sandbox clean --older-than 30d")
		}
		o.Before = time.Now().Add(-age)
	}
	removed, kept, err := sandbox.Clean(o)
	line.Clear()
	if err != nil {
		return 0, fault.New(errcode.StatusWrite, err.Error())
	}
	doc := cleaned{Kind: "atip-exec.sandbox-clean/1", DryRun: o.DryRun, Removed: append([]sandbox.PrivateDir{}, removed...), Kept: append([]sandbox.PrivateDir{}, kept...)}
	for _, d := range removed {
		doc.Bytes += d.Bytes
	}
	if !o.DryRun {
		if doc.Digests, err = trust.PruneCache(filepath.Join(dirs.State, "digest"), time.Now()); err != nil {
			return 0, fault.New(errcode.StatusWrite, err.Error())
		}
	}
	if c.Documents() {
		return 0, c.Document(doc)
	}
	did := "removed"
	if o.DryRun {
		did = "would remove"
	}
	text := ""
	for _, d := range removed {
		text += fmt.Sprintf("%s %s: %d files, %s, last used %s\n", did, d.Path, d.Files, size(d.Bytes), d.Used.Format(time.DateOnly))
	}
	for _, d := range kept {
		text += "kept " + d.Path + ": " + d.Why + "\n"
	}
	return 0, c.Text(text + fmt.Sprintf("%s %d directories, %s\n", did, len(removed), size(doc.Bytes)))
}

// size is a number of bytes for a person.
func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
