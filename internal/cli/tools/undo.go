package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/filter"
	"github.com/atip-dev/atip-exec/internal/audit"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/undo"
)

const undoKind = "atip-exec.undo/1"

// undoPlace is the workspace that a verb is about. A confined run reaches no copy.
func undoPlace(v *cli.Values) (undo.Place, error) {
	m := caller.Here()
	if m.Getenv("ATIP_EXEC_SANDBOX") != "" {
		return undo.Place{}, fault.New(errcode.UndoStore, "the copies cannot be reached from inside a run: start `atip undo` outside of it").WithFix("ask the person at the terminal to run it there", "")
	}
	return plan.UndoPlace(m, v.Get("directory"))
}

// undoVerb lists what can be undone, shows it or does it.
func undoVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) > 1 {
		return 0, fault.New(errcode.Arguments, "undo: more than one run is named").WithFix("undo the earliest: what came later goes with it", "atip undo --list")
	}
	if v.Has("forget") {
		return 0, undoForget(c, v)
	}
	at, err := undoPlace(v)
	if err != nil {
		return 0, err
	}
	s, err := undo.Open(at, false)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	if v.Has("list") {
		return 0, undoList(c, v, s)
	}
	q := undo.Request{Force: v.Has("force"), DryRun: v.Has("dry-run") || v.Has("diff"), Diff: v.Has("diff"), ID: audit.NewID(), Cmd: strings.Join(append([]string{"atip", "undo"}, v.Rest...), " ")}
	if len(v.Rest) == 1 {
		q.Run = v.Rest[0]
	}
	q.Cwd, _ = os.Getwd()
	for _, p := range v.All("only") {
		abs, err := filepath.Abs(p)
		if err != nil {
			return 0, fault.New(errcode.NoInputFile, err.Error())
		}
		// The name itself may be a link, its directories are looked through.
		if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
			abs = filepath.Join(dir, filepath.Base(abs))
		}
		q.Only = append(q.Only, abs)
	}
	res, err := s.Undo(q)
	if err != nil {
		return 0, err
	}
	status := 0
	if len(res.Conflicts) > 0 || len(res.Left) > 0 {
		status = 1
	}
	if c.Documents() {
		return status, c.Document(map[string]any{"kind": undoKind, "dry_run": q.DryRun, "id": q.ID, "result": res})
	}
	if q.Diff {
		return 0, c.Text(filter.StripControl(res.Diff))
	}
	return status, c.Text(undoText(res, q, at.Root))
}

func undoText(res *undo.Result, q undo.Request, root string) string {
	var out strings.Builder
	line := func(c undo.Change) {
		rel := c.Path
		if r, err := filepath.Rel(root, c.Path); err == nil && !strings.HasPrefix(r, "..") {
			rel = r
		}
		fmt.Fprintf(&out, "  %-7s %s\n", c.Op, answer.Plain(rel))
	}
	did := "restored"
	if q.DryRun {
		did = "would restore"
	}
	fmt.Fprintf(&out, "%s the state before %s %s: %s\n", did, res.Run.Time.Local().Format(time.DateTime), answer.Plain(answer.UndoTitle(res.Run)), answer.UndoCounts(&res.Files))
	for _, l := range res.Later {
		if l.Kind != "checkpoint" {
			fmt.Fprintf(&out, "  taken back with it: %s %s\n", l.Run, answer.Plain(answer.UndoTitle(l)))
		}
	}
	const most = 40
	shown := 0
	for _, c := range res.Changes {
		if strings.Contains(c.Path, "/.git/") || c.Op == "mode" && !q.DryRun {
			continue
		}
		if shown++; shown > most {
			continue
		}
		line(c)
	}
	if shown > most {
		fmt.Fprintf(&out, "  and %d more\n", shown-most)
	}
	for _, list := range [][]undo.Change{res.Conflicts, res.Left} {
		for i, c := range list {
			if i == most {
				fmt.Fprintf(&out, "  and %d more\n", len(list)-most)
				break
			}
			line(undo.Change{Path: c.Path, Op: "left"})
			fmt.Fprintf(&out, "          %s\n", answer.Plain(c.Op))
		}
	}
	if len(res.Conflicts) > 0 {
		out.WriteString("files that others changed since are unchanged; --force restores them too\n")
	}
	return out.String()
}

func undoList(c *cli.Console, v *cli.Values, s *undo.Store) error {
	runs := s.Runs()
	if c.Documents() {
		if runs == nil {
			runs = []undo.Run{}
		}
		return c.Document(map[string]any{"kind": undoKind, "runs": runs})
	}
	if len(runs) == 0 {
		return c.Text("no run changed anything here\n")
	}
	runs, left := answer.Most(v, runs)
	var out strings.Builder
	for _, r := range runs {
		what := answer.UndoCounts(r.Counts)
		if r.Kind == "checkpoint" {
			what = "checkpoint"
		}
		lost := ""
		if r.Lost > 0 {
			lost = fmt.Sprintf("  (%d not covered)", r.Lost)
		}
		fmt.Fprintf(&out, "%s  %s  %-16s %s%s\n", r.Run, r.Time.Local().Format(time.DateTime), what, answer.Plain(answer.UndoTitle(r)), lost)
	}
	return c.Text(out.String() + answer.LeftOutLine(left))
}

// undoForget removes the copies of one workspace.
func undoForget(c *cli.Console, v *cli.Values) error {
	dir := v.Get("directory")
	if len(v.Rest) == 1 {
		dir = v.Rest[0]
	}
	m := caller.Here()
	dirs, err := m.Dirs()
	if err != nil {
		return err
	}
	root := ""
	if at, err := plan.UndoPlace(m, dir); err == nil {
		root = at.Root
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fault.New(errcode.NoInputFile, err.Error())
	}
	removed := []string{}
	for _, w := range undo.Places(dirs.Undo()) {
		if w.Root != root && w.Root != abs {
			continue // a workspace that is gone is known by its path
		}
		if err := undo.Forget(dirs.Undo(), w.Name, m.UID); err != nil {
			return err
		}
		removed = append(removed, w.Root)
	}
	text := "removed all copies of " + answer.Plain(strings.Join(removed, ", ")) + "\n"
	if len(removed) == 0 {
		text = "nothing is kept of " + answer.Plain(abs) + "\n"
	}
	return c.Answer(map[string]any{"kind": undoKind, "forgotten": removed}, text)
}

// checkpointVerb copies the workspace by hand.
func checkpointVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) > 1 {
		return 0, fault.New(errcode.Arguments, "checkpoint takes one name").WithFix("quote a name with spaces", "atip checkpoint 'before the merge'")
	}
	at, err := undoPlace(v)
	if err != nil {
		return 0, err
	}
	s, err := undo.Open(at, true)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	r := undo.Run{Run: audit.NewID(), Kind: "checkpoint", Name: strings.Join(v.Rest, "")}
	made, err := s.Before(r, false)
	if err != nil {
		return 0, err
	}
	if c.Documents() {
		return 0, c.Document(map[string]any{"kind": "atip-exec.checkpoint/1", "id": r.Run, "name": r.Name, "workspace": at.Root, "not_covered": made.Losses})
	}
	text := "checkpoint " + r.Run + " of " + answer.Plain(at.Root) + "\n"
	for i, l := range made.Losses {
		if i == 20 {
			text += fmt.Sprintf("  and %d more\n", len(made.Losses)-i)
			break
		}
		text += "  not covered: " + answer.Plain(l.Path) + ": " + l.Why.String() + "\n"
	}
	return 0, c.Text(text)
}
