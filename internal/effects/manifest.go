package effects

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
	"github.com/atip-dev/atip-exec/policy"
)

// maxNames bounds what is read of a directory of the workspace; what lies in a larger one is
// taken to be everything.
const maxNames = 20000

// manifests marks a call with network whose tool reads a file of the project that is a
// program: mix.exs, Podfile, serverless.ts. Which those are its document says (files,
// relativeTo project); for every tool there are the names that frameworks give them after
// the tool. Such a call runs what a build before it may have written.
func (c *collector) manifests(s *step.Step) {
	if s.Call.Effects[atip.Network].Value == atip.No || s.RunsCode != policy.CodeNone && s.Call.Effects[atip.ExecOpaque].Value == atip.Yes {
		return
	}
	var files []atip.CodeFile
	for _, f := range s.Call.CodeFiles {
		if f.RelativeTo == "project" {
			files = append(files, f)
		}
	}
	if strings.IndexByte(s.Call.Chdir, 0) >= 0 {
		return
	}
	dir := filepath.Clean(subpath.Join(s.Cwd, s.Call.Chdir))
	for {
		names, whole := entries(dir)
		for path := range c.writers {
			if filepath.Dir(path) == dir {
				names = append(names, filepath.Base(path)) // by an earlier part of the text
			}
		}
		for _, name := range names {
			if conventional(s.Call.Tool, name) {
				s.RunsFile(name, filepath.Join(dir, name)+" is a program that "+s.Call.Tool+" reads")
				return
			}
		}
		for _, f := range files {
			if path := found(dir, names, whole, f); path != "" {
				s.RunsFile(f.Path, path+" can run code")
				return
			}
		}
		if dir == c.site.Workspace || !subpath.Within(dir, c.site.Workspace) || filepath.Dir(dir) == dir {
			return
		}
		dir = filepath.Dir(dir)
	}
}

func entries(dir string) (names []string, whole bool) {
	d, err := regular.OpenDir(dir)
	if err != nil {
		return nil, os.IsNotExist(err)
	}
	defer d.Close()
	names, _ = d.Readdirnames(maxNames)
	return names, len(names) < maxNames
}

// found is the file of a directory that f speaks of, "" if there is none that can run code.
func found(dir string, names []string, whole bool, f atip.CodeFile) string {
	if !whole {
		return filepath.Join(dir, f.Path)
	}
	first, rest, deep := strings.Cut(f.Path, "/")
	for _, name := range names {
		if ok, _ := filepath.Match(first, name); !ok {
			continue
		}
		path := filepath.Join(dir, name)
		if deep {
			below, whole := entries(path)
			if path = found(path, below, whole, atip.CodeFile{Path: rest, Format: f.Format, SafeKeys: f.SafeKeys}); path != "" {
				return path
			}
			continue
		}
		if f.Format != "ini" || !inertINI(path, f.SafeKeys) {
			return path
		}
	}
	return ""
}

// inertINI reports a file of sections and keys that holds safe keys only, such as "paths.*".
func inertINI(path string, safe []string) bool {
	raw, err := regular.Read(path, maxCodeFile)
	if err != nil {
		return false
	}
	section := ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' {
			continue
		}
		if trimmed[0] == '[' {
			end := strings.LastIndexByte(trimmed, ']')
			if end < 0 {
				return false
			}
			section = strings.Trim(trimmed[1:end], "'\"")
			continue
		}
		key, _, ok := strings.Cut(trimmed, "=")
		name := section + "." + strings.TrimSpace(key)
		if !ok || line[0] == ' ' || line[0] == '\t' && section == "" || !slices.ContainsFunc(safe, func(g string) bool { m, _ := filepath.Match(g, name); return m }) {
			return false
		}
	}
	return true
}

// programs are the endings of files that hold a program.
var programs = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx", ".py", ".rb", ".lua", ".exs", ".php", ".pl", ".clj", ".groovy", ".kts", ".star", ".bzl", ".nix", ".hs", ".swift"}

// conventional reports a file that is called after the tool and is a program: drizzle.config.ts
// of drizzle-kit, .ncurc.cjs, knexfile.js, Podfile.
func conventional(tool, name string) bool {
	if len(tool) < 2 {
		return false
	}
	stems := []string{tool}
	for _, suffix := range [...]string{"-cli", "-kit"} {
		if stem, ok := strings.CutSuffix(tool, suffix); ok {
			stems = append(stems, stem)
		}
	}
	lower := strings.ToLower(name)
	base, program := lower, false
	for _, ending := range programs {
		if b, ok := strings.CutSuffix(lower, ending); ok {
			base, program = b, true
		}
	}
	for _, stem := range stems {
		switch {
		case base == stem+"file" && (program || name != lower): // Podfile; but no "dockerfile", which is data
			return stem != "docker" && stem != "make"
		case program && (base == stem+".config" || base == "."+stem+"rc" || base == "."+stem || base == stem+".conf"):
			return true
		}
	}
	return false
}

// moduleRaises reports a module of Python whose words are program text that raises. Of
// one that serves a directory it adds that directory.
func (c *collector) moduleRaises(s *step.Step, module string) bool {
	at := slices.IndexFunc(s.Argv, func(w string) bool { return w == module || w == "-m"+module })
	if at < 0 {
		return false
	}
	switch module {
	case "timeit":
		raised := false
		for _, w := range s.Argv[at+1:] {
			c.peekCode(s, w)
			if step.Raises(w) {
				s.ShowRemoval(w)
				raised = true
			}
		}
		return raised
	case "http.server", "SimpleHTTPServer":
		for i, w := range s.Argv[at+1:] {
			dir, ok := strings.CutPrefix(w, "--directory=")
			if before := s.Argv[at+i]; before == "-d" || before == "--directory" {
				dir, ok = w, true
			}
			if ok {
				r := atip.Resource{Kind: "path", Value: dir, Access: atip.AccessRead, Recursive: true, Why: "--directory"}
				c.place(c.site.World, &r, subpath.Join(s.Cwd, s.Call.Chdir))
				s.Raise(r)
				s.Call.Resources = append(s.Call.Resources, r)
				c.below(s)
			}
		}
	}
	return false
}
