package trust

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/internal/regular"
)

// The shims of a version manager have equal bytes for every tool, so their digest
// says nothing about the tool. Which program they will start is told here from
// the same files the manager reads, without running it.

// maxConfig bounds every file of a version manager that is read.
const maxConfig = 64 << 10

// xenv describes a manager of the rbenv family.
type xenv struct{ name, env, file string }

func xenvByName(name string) (xenv, bool) {
	switch name {
	case "pyenv":
		return xenv{name, "PYENV", ".python-version"}, true
	case "rbenv":
		return xenv{name, "RBENV", ".ruby-version"}, true
	case "nodenv":
		return xenv{name, "NODENV", ".node-version"}, true
	case "goenv":
		return xenv{name, "GOENV", ".go-version"}, true
	}
	return xenv{}, false
}

func (o Opener) getenv(name string) string {
	if o.Getenv == nil {
		return ""
	}
	return o.Getenv(name)
}

// resolveManager tells whether first is a shim and adds what it will start.
func (b *builder) resolveManager(first *held) error {
	name := filepath.Base(b.word)
	manager, target := "", ""
	if first.form == FormScript {
		manager, target = b.scriptShim(first, name)
	} else {
		manager, target = b.binaryShim(first, name)
	}
	if manager == "" {
		return nil
	}
	b.manager = manager
	b.cap(CapManagerShim)
	if target == "" || candidate(target) != nil {
		return nil
	}
	h, err := b.add(target, RoleTarget)
	if err != nil {
		return err
	}
	b.target = h.found
	return nil
}

// scriptShim knows the shims that are shell scripts.
func (b *builder) scriptShim(h *held, name string) (manager, target string) {
	// The text of a shim is copied easily; only in a directory of shims does it
	// mean that a manager wrote it.
	if dir := filepath.Dir(h.path); filepath.Base(dir) == "shims" {
		home := filepath.Dir(dir)
		text := h.text(maxConfig)
		if x, root, ok := xenvShim(text); ok && realDir(root) == home {
			return x.name, b.xenvTarget(x, root, name)
		}
		if plugin, ok := asdfShim(text); ok {
			return "asdf", b.asdfTarget(plugin, home, name)
		}
	}
	if strings.Contains(filepath.ToSlash(h.path), "/corepack/") {
		return "corepack", ""
	}
	return "", ""
}

// binaryShim knows the managers that are one binary under many names.
func (b *builder) binaryShim(h *held, name string) (manager, target string) {
	base := filepath.Base(h.path)
	dir := filepath.Dir(h.path)
	switch base {
	case "rustup":
		if name == "rustup" || name == "rustup-init" {
			return "", ""
		}
		return "rustup", b.rustupTarget(name)
	case "mise":
		if name == "mise" {
			return "", ""
		}
		return "mise", ""
	case "volta-shim":
		return "volta", ""
	case "proto-shim":
		return "proto", ""
	case "aqua-proxy":
		return "aqua", ""
	}
	if filepath.Base(dir) == "shims" && filepath.Base(filepath.Dir(dir)) == ".proto" {
		return "proto", ""
	}
	// rustup installs its proxies as hard links where it cannot make symlinks.
	if rustupProxy(base) {
		if st, err := statPath(joinDir(dir, "rustup")); err == nil && st.same(h.st) {
			return "rustup", b.rustupTarget(name)
		}
	}
	return "", ""
}

// rustupProxy knows the names rustup stands in for.
func rustupProxy(name string) bool {
	switch name {
	case "cargo", "rustc", "rustdoc", "rustfmt", "cargo-fmt", "cargo-clippy", "clippy-driver", "cargo-miri", "rls", "rust-analyzer",
		"rust-gdb", "rust-lldb", "rust-gdbgui":
		return true
	}
	return false
}

// xenvShim recognises `exec "ROOT/libexec/pyenv" exec "$program" "$@"`.
func xenvShim(text string) (x xenv, root string, ok bool) {
	const mark = `" exec "$program"`
	i := strings.Index(text, mark)
	if i < 0 {
		return x, "", false
	}
	start := strings.LastIndexByte(text[:i], '"') + 1
	bin := text[start:i]
	if x, ok = xenvByName(filepath.Base(bin)); !ok {
		return x, "", false
	}
	root = filepath.Dir(filepath.Dir(bin))
	export := "export " + x.env + `_ROOT="`
	if j := strings.Index(text, export); j >= 0 {
		if value, _, closed := strings.Cut(text[j+len(export):], `"`); closed {
			root = value
		}
	}
	return x, root, filepath.IsAbs(root)
}

// xenvTarget follows the order of the family: variable, version file from the
// current directory upward, global version file.
func (b *builder) xenvTarget(x xenv, root, name string) string {
	versions := strings.FieldsFunc(b.o.getenv(x.env+"_VERSION"), func(r rune) bool { return r == ':' })
	if len(versions) == 0 {
		start := b.o.getenv(x.env + "_DIR")
		if !filepath.IsAbs(start) {
			start = b.cwd
		}
		versions = versionWords(upward(start, x.file))
	}
	if len(versions) == 0 {
		versions = versionWords(readSmall(joinDir(root, "version")))
	}
	for _, v := range versions {
		v = strings.TrimSpace(v)
		if v == "system" || v == "" {
			if p := b.outside(name, joinDir(root, "shims")); p != "" {
				return p
			}
			continue
		}
		if !plainVersion(v) {
			continue
		}
		for _, dir := range installed(joinDir(root, "versions"), v) {
			if p := filepath.Join(dir, "bin", name); candidate(p) == nil {
				return p
			}
		}
	}
	if len(versions) == 0 {
		return b.outside(name, joinDir(root, "shims"))
	}
	return ""
}

// outside looks name up as the manager does for the version "system".
func (b *builder) outside(name, shims string) string {
	var rest []string
	for _, dir := range b.path {
		if filepath.Clean(dir) != filepath.Clean(shims) {
			rest = append(rest, dir)
		}
	}
	p, _, err := lookup(name, rest, b.cwd, func(p string) error {
		if err := candidate(p); err != nil {
			return candidateError(name, p, err)
		}
		return nil
	})
	if err != nil {
		return ""
	}
	return p
}

func realDir(p string) string {
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return ""
	}
	return real
}

// asdfShim recognises the comment asdf writes into its shims.
func asdfShim(text string) (plugin string, ok bool) {
	const mark = "\n# asdf-plugin: "
	i := strings.Index(text, mark)
	if i < 0 {
		return "", false
	}
	line, _, _ := strings.Cut(text[i+len(mark):], "\n")
	words := strings.Fields(line)
	if len(words) == 0 || !plainVersion(words[0]) {
		return "", false
	}
	return words[0], true
}

func (b *builder) asdfTarget(plugin, root, name string) string {
	variable := "ASDF_" + strings.ToUpper(strings.ReplaceAll(plugin, "-", "_")) + "_VERSION"
	versions := strings.Fields(b.o.getenv(variable))
	if len(versions) == 0 {
		versions = upwardTool(b.cwd, plugin)
	}
	if len(versions) == 0 && b.o.Home != "" {
		versions = toolVersions(readSmall(joinDir(b.o.Home, ".tool-versions")), plugin)
	}
	for _, v := range versions {
		if v == "system" {
			if p := b.outside(name, joinDir(root, "shims")); p != "" {
				return p
			}
			continue
		}
		v = strings.TrimPrefix(v, "ref:")
		if !plainVersion(v) {
			continue
		}
		if p := filepath.Join(root, "installs", plugin, v, "bin", name); candidate(p) == nil {
			return p
		}
	}
	return ""
}

// toolVersions finds the versions of plugin in a .tool-versions file.
func toolVersions(text, plugin string) []string {
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 1 && words[0] == plugin {
			return words[1:]
		}
	}
	return nil
}

func upwardTool(dir, plugin string) (versions []string) {
	eachUp(dir, func(d string) bool {
		versions = toolVersions(readSmall(joinDir(d, ".tool-versions")), plugin)
		return len(versions) > 0
	})
	return versions
}

// upward returns the first non-empty file of this name from dir to the root.
func upward(dir, file string) (text string) {
	eachUp(dir, func(d string) bool {
		text = readSmall(joinDir(d, file))
		return text != ""
	})
	return text
}

func eachUp(dir string, found func(dir string) bool) {
	if !filepath.IsAbs(dir) {
		return
	}
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if found(d) || d == filepath.Dir(d) {
			return
		}
	}
}

func versionWords(text string) (words []string) {
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words = append(words, strings.Fields(line)...)
	}
	return words
}

// plainVersion refuses what would leave the directory of versions.
func plainVersion(v string) bool {
	return v != "" && v[0] != '.' && !strings.ContainsAny(v, "/\\\x00")
}

// text returns up to limit bytes of a held file.
func (h *held) text(limit int) string {
	buf := make([]byte, min(int64(limit), max(h.st.size, 0)))
	n := h.readAt(buf)
	return string(buf[:n])
}

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

// readSmall returns the text of a small regular file, "" for anything else: the
// files of version managers lie in work trees, where a FIFO may wait.
func readSmall(p string) string {
	data, err := regular.Read(p, maxConfig)
	if err != nil {
		return ""
	}
	return string(data)
}
