package trust

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// installed lists the directories under versions that v may mean: itself, then
// the latest release that v is a prefix of ("3.11" for 3.11.7), which is what the
// managers of the rbenv family accept.
func installed(versions, v string) []string {
	for _, exact := range []string{v, strings.TrimPrefix(v, "python-"), strings.TrimPrefix(v, "v")} {
		if dir := joinDir(versions, exact); isDir(dir) {
			return []string{dir}
		}
	}
	entries, err := os.ReadDir(versions)
	if err != nil {
		return nil
	}
	best := ""
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), v+".") && (best == "" || versionLess(best, e.Name())) {
			best = e.Name()
		}
	}
	if best == "" {
		return nil
	}
	return []string{joinDir(versions, best)}
}

// versionLess compares dotted versions number by number.
func versionLess(a, b string) bool {
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if x == y {
			continue
		}
		nx, errX := strconv.Atoi(x)
		ny, errY := strconv.Atoi(y)
		if errX == nil && errY == nil {
			return nx < ny
		}
		return x < y
	}
	return false
}

func isDir(p string) bool {
	fi, err := os.Stat(p)
	return err == nil && fi.IsDir()
}

// rustupTarget follows rustup: +toolchain, RUSTUP_TOOLCHAIN, directory override,
// toolchain file, default.
func (b *builder) rustupTarget(name string) string {
	home := b.o.getenv("RUSTUP_HOME")
	if home == "" {
		if b.o.Home == "" {
			return ""
		}
		home = joinDir(b.o.Home, ".rustup")
	}
	settings := readSmall(joinDir(home, "settings.toml"))
	toolchain := ""
	if len(b.o.Args) > 0 && strings.HasPrefix(b.o.Args[0], "+") {
		toolchain = b.o.Args[0][1:]
	}
	if toolchain == "" {
		toolchain = b.o.getenv("RUSTUP_TOOLCHAIN")
	}
	if toolchain == "" {
		toolchain = b.rustupDirectory(settings)
	}
	if toolchain == "" {
		toolchain = tomlString(settings, "", "default_toolchain")
	}
	if filepath.IsAbs(toolchain) {
		return filepath.Join(toolchain, "bin", name)
	}
	if !plainVersion(toolchain) {
		return ""
	}
	toolchains := joinDir(home, "toolchains")
	full := toolchain
	if !isDir(joinDir(toolchains, full)) {
		if full = toolchain + "-" + tomlString(settings, "", "default_host_triple"); !isDir(joinDir(toolchains, full)) {
			full = onlyWithPrefix(toolchains, toolchain+"-")
		}
	}
	if full == "" {
		return ""
	}
	return filepath.Join(toolchains, full, "bin", name)
}

// rustupDirectory walks upward: in each directory an override of settings.toml
// comes before a toolchain file.
func (b *builder) rustupDirectory(settings string) (toolchain string) {
	eachUp(b.cwd, func(dir string) bool {
		if toolchain = tomlString(settings, "overrides", dir); toolchain != "" {
			return true
		}
		if text := readSmall(joinDir(dir, "rust-toolchain")); text != "" {
			if toolchain = toolchainFile(text); toolchain == "" && !strings.Contains(text, "[") {
				toolchain = strings.TrimSpace(text)
			}
		} else {
			toolchain = toolchainFile(readSmall(joinDir(dir, "rust-toolchain.toml")))
		}
		return toolchain != ""
	})
	return toolchain
}

func toolchainFile(text string) string {
	if path := tomlString(text, "toolchain", "path"); filepath.IsAbs(path) {
		return path
	}
	return tomlString(text, "toolchain", "channel")
}

// onlyWithPrefix returns the single directory that begins with prefix.
func onlyWithPrefix(dir, prefix string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	found := ""
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			if found != "" {
				return ""
			}
			found = e.Name()
		}
	}
	return found
}

// tomlString reads key = "value" of one table. It knows the lines rustup writes
// and people write for it; anything else reads as absent.
func tomlString(text, table, key string) string {
	current := ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			name, _, _ := strings.Cut(line[1:], "]")
			current = strings.TrimSpace(name)
			continue
		}
		if current != table {
			continue
		}
		k, rest, ok := tomlWord(line)
		if !ok || k != key {
			continue
		}
		rest, ok = strings.CutPrefix(strings.TrimSpace(rest), "=")
		if !ok {
			continue
		}
		if v, _, ok := tomlWord(strings.TrimSpace(rest)); ok {
			return v
		}
	}
	return ""
}

// tomlWord takes a bare or quoted word from the start of s.
func tomlWord(s string) (word, rest string, ok bool) {
	if s == "" || s[0] == '#' {
		return "", "", false
	}
	if s[0] == '"' {
		end := 1
		for end < len(s) && s[end] != '"' {
			if s[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(s) {
			return "", "", false
		}
		word, err := strconv.Unquote(s[:end+1])
		return word, s[end+1:], err == nil
	}
	if s[0] == '\'' {
		word, rest, ok = strings.Cut(s[1:], "'")
		return word, rest, ok
	}
	i := strings.IndexAny(s, " \t=")
	if i < 0 {
		return s, "", true
	}
	return s[:i], s[i:], true
}
