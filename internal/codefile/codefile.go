// Package codefile finds the files of a project that its tools read as programs: mix.exs, Podfile, drizzle.config.ts.
package codefile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/regular"
)

const (
	maxNames = 20000 // of a directory; what lies in a larger one is taken to be everything
	maxFile  = 256 << 10
)

// Names are the names in a directory, and whether that is all of them. One that is not there has none.
func Names(dir string) (names []string, whole bool) {
	d, err := regular.OpenDir(dir)
	if err != nil {
		return nil, os.IsNotExist(err)
	}
	defer d.Close()
	names, _ = d.Readdirnames(maxNames)
	return names, len(names) < maxNames
}

// Find is the file of a directory with these names that f speaks of, "" if there is none that can run code.
func Find(dir string, names []string, whole bool, f atip.CodeFile) string {
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
			below, whole := Names(path)
			if path = Find(path, below, whole, atip.CodeFile{Path: rest, Format: f.Format, SafeKeys: f.SafeKeys}); path != "" {
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
	raw, err := regular.Read(path, maxFile)
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

// compiled are those of files that a build or a shell takes in.
var compiled = []string{".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".java", ".kt", ".cs", ".ex", ".sh", ".mk", ".cmake", ".gradle"}

// Conventional reports a file that is called after the tool and is a program: drizzle.config.ts
// of drizzle-kit, .ncurc.cjs, knexfile.js, Podfile.
func Conventional(tool, name string) bool {
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

// IsSource reports a file whose name ends as that of a program or of what a build or a shell takes in.
func IsSource(name string) bool {
	ending := filepath.Ext(name)
	return slices.Contains(programs, ending) || slices.Contains(compiled, ending)
}
