package tools

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/sandbox"
)

const quarantineKind = "atip-exec.quarantine/1"

// quarantineVerb lists, shows, restores or drops what runs wrote under protected names.
func quarantineVerb(c *cli.Console, v *cli.Values) (int, error) {
	dirs, err := caller.Here().Dirs()
	if err != nil {
		return 0, err
	}
	all, err := sandbox.Quarantines(dirs.State)
	if err != nil {
		return 0, err
	}
	words := v.Rest[1:]
	if len(words) == 0 || len(words) == 1 && words[0] == "list" {
		if c.Documents() {
			return 0, c.Document(map[string]any{"kind": quarantineKind, "runs": all})
		}
		all, left := answer.Most(v, all)
		return 0, c.Text(quarantineText(all) + answer.LeftOutLine(left))
	}
	const fix, example = "name a run from `atip sandbox quarantine list`", "atip sandbox quarantine list"
	switch words[0] {
	case "show", "restore", "drop":
	default:
		return 0, fault.New(errcode.Arguments, "sandbox quarantine: unknown action "+words[0]).WithFix("one of list, show, restore, drop", example)
	}
	if len(words) == 1 {
		return 0, fault.New(errcode.Arguments, "sandbox quarantine "+words[0]+": no run named").WithFix(fix, example)
	}
	for _, q := range all {
		if q.Run != words[1] {
			continue
		}
		switch words[0] {
		case "show":
			return 0, showQuarantine(c, q)
		case "restore":
			return 0, restoreQuarantine(c, q, words[2:], v.Has("force"))
		}
		if err := q.Drop(); err != nil {
			return 0, fault.New(errcode.StatusWrite, err.Error())
		}
		return 0, c.Text("dropped " + q.Run + "\n")
	}
	return 0, fault.New(errcode.NoInputFile, "sandbox quarantine: no quarantined files of run "+words[1]).WithFix(fix, example)
}

func quarantineText(all []sandbox.Quarantine) string {
	if len(all) == 0 {
		return "nothing is in quarantine\n"
	}
	out := ""
	for _, q := range all {
		out += q.Run + "\n"
		for _, k := range q.Files {
			out += "  " + answer.Visible(k.Path()) + "\n" // a run chose the name
		}
	}
	return out
}

func restoreQuarantine(c *cli.Console, q sandbox.Quarantine, words []string, force bool) error {
	paths := make([]string, len(words))
	for i, word := range words {
		path, err := filepath.Abs(word)
		if err != nil {
			return fault.New(errcode.NoInputFile, err.Error())
		}
		paths[i] = path
	}
	done, err := q.Restore(paths, force)
	if err != nil {
		return err
	}
	text := ""
	for _, path := range done {
		text += "restored " + answer.Visible(path) + "\n"
	}
	return c.Answer(map[string]any{"kind": quarantineKind, "run": q.Run, "restored": done}, text)
}

// keptText is the beginning of a kept file, or the names in a kept directory.
func keptText(path string, most int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		names, err := f.Readdirnames(most / 64)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		slices.Sort(names)
		return fmt.Appendf(nil, "a directory, with %q", names), nil
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if len(data) > most {
		data = append(data[:most:most], "\n[cut]\n"...)
	}
	return data, err
}

// showQuarantine prints what was written. It came from a run that nobody trusts.
func showQuarantine(c *cli.Console, q sandbox.Quarantine) error {
	const most = 64 << 10
	type file struct {
		sandbox.Kept
		Text string `json:"text"`
	}
	files, text := []file{}, ""
	for _, k := range q.Files {
		data, err := keptText(q.Place(k), most)
		if err != nil {
			return fault.New(errcode.NoInputFile, err.Error())
		}
		files = append(files, file{k, string(data)})
		text += "=== " + k.Path() + " (" + k.Mode.String() + ")\n" + string(data)
		if len(data) > 0 && data[len(data)-1] != '\n' {
			text += "\n"
		}
	}
	return c.Answer(map[string]any{"kind": quarantineKind, "run": q.Run, "dir": q.Dir, "files": files}, text)
}
