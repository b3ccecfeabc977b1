package trust

import (
	"path/filepath"
	"strings"
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
