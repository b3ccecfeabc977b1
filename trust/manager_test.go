package trust

import (
	"path/filepath"
	"testing"
)

// fakeTool is an executable whose bytes name it.
func fakeTool(t testing.TB, parts ...string) string {
	p := filepath.Join(parts...)
	return write(t, p, "#!/bin/sh\n# "+p+"\n", 0o755)
}

func pyenvShim(root string) string {
	return "#!/usr/bin/env bash\nset -e\nprogram=\"${0##*/}\"\nexport PYENV_ROOT=\"" + root + "\"\nexec \"" + root + "/libexec/pyenv\" exec \"$program\" \"$@\"\n"
}

func TestXenvShims(t *testing.T) {
	home := t.TempDir()
	root := filepath.Join(home, ".pyenv")
	shims := filepath.Join(root, "shims")
	for _, name := range []string{"python3", "pip", "black"} {
		write(t, filepath.Join(shims, name), pyenvShim(root), 0o755)
	}
	fakeTool(t, root, "versions", "3.11.7", "bin", "python3")
	fakeTool(t, root, "versions", "3.11.7", "bin", "pip")
	fakeTool(t, root, "versions", "3.11.10", "bin", "python3")
	fakeTool(t, root, "versions", "3.12.1", "bin", "python3")
	fakeTool(t, root, "versions", "3.12.1", "bin", "black")
	fakeTool(t, home, "sys", "python3")
	write(t, filepath.Join(root, "version"), "3.11.7\n3.12.1\n", 0o644)
	project := filepath.Join(home, "project")
	write(t, filepath.Join(project, ".python-version"), "# comment\n3.12.1\n", 0o644)
	write(t, filepath.Join(home, "prefix", ".python-version"), "3.11\n", 0o644)
	write(t, filepath.Join(home, "evil", ".python-version"), "../../../../../bin\n", 0o644)
	write(t, filepath.Join(home, "system", ".python-version"), "system\n", 0o644)
	path := append([]string{shims, filepath.Join(home, "sys")}, systemPath()...)
	v := func(version, name string) string { return filepath.Join(root, "versions", version, "bin", name) }
	for _, row := range []struct {
		name, word, cwd, env, want string
	}{
		{"global", "python3", home, "", v("3.11.7", "python3")},
		{"second global version has it", "black", home, "", v("3.12.1", "black")},
		{"local", "python3", filepath.Join(project), "", v("3.12.1", "python3")},
		{"local, upward", "python3", filepath.Join(project, "a", "b"), "", v("3.12.1", "python3")},
		{"variable first", "python3", project, "3.11.7", v("3.11.7", "python3")},
		{"variable, a list", "black", project, "3.11.7:3.12.1", v("3.12.1", "black")},
		{"prefix", "python3", filepath.Join(home, "prefix"), "", v("3.11.10", "python3")},
		{"not in that version", "pip", project, "", ""},
		{"leaving the directory", "python3", filepath.Join(home, "evil"), "", ""},
		{"not installed", "python3", home, "9.9", ""},
		{"system", "python3", filepath.Join(home, "system"), "", filepath.Join(home, "sys", "python3")},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := Opener{Home: home, Getenv: func(n string) string {
				if n == "PYENV_VERSION" {
					return row.env
				}
				return ""
			}}
			f := open(t, o, row.word, path, row.cwd)
			id := f.Identity()
			// The shim finds its root and the tool by its own name, whatever the tool is.
			if start, byDescriptor, _ := f.Start(); byDescriptor || start != id.Found {
				t.Errorf("started by %s, by descriptor %v", start, byDescriptor)
			}
			if id.Manager != "pyenv" || !id.HasCap(CapManagerShim) || id.ManagerTarget != row.want {
				t.Errorf("%q %q caps %q, want %q", id.Manager, id.ManagerTarget, id.Caps, row.want)
			}
			if part, ok := id.Target(); ok != (row.want != "") || (ok && part.Digest != fileDigest(t, row.want)) {
				t.Errorf("target part %+v", part)
			}
		})
	}
	// The same text elsewhere is a script like any other.
	write(t, filepath.Join(project, "shims", "python3"), pyenvShim(root), 0o755)
	write(t, filepath.Join(project, "python3"), pyenvShim(root), 0o755)
	for _, word := range []string{"./python3", "./shims/python3"} {
		if id := open(t, Opener{}, word, path, project).Identity(); id.Manager != "" || id.ManagerTarget != "" {
			t.Errorf("%s counts as a shim: %q", word, id.ManagerTarget)
		}
	}
	// Equal bytes, different tools.
	a := open(t, Opener{}, "python3", path, project).Identity()
	b := open(t, Opener{}, "black", path, project).Identity()
	if a.Digest != b.Digest || a.ManagerTarget == b.ManagerTarget || a.Invoked == b.Invoked {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func TestAsdfShims(t *testing.T) {
	home := t.TempDir()
	root := filepath.Join(home, ".asdf")
	shims := filepath.Join(root, "shims")
	write(t, filepath.Join(shims, "node"), "#!/usr/bin/env bash\n# asdf-plugin: nodejs 18.0.0\n# asdf-plugin: nodejs 20.1.0\nexec asdf exec \"node\" \"$@\"\n", 0o755)
	node18 := fakeTool(t, root, "installs", "nodejs", "18.0.0", "bin", "node")
	node20 := fakeTool(t, root, "installs", "nodejs", "20.1.0", "bin", "node")
	write(t, filepath.Join(home, ".tool-versions"), "golang 1.2\nnodejs 18.0.0 # lts\n", 0o644)
	write(t, filepath.Join(home, "p", ".tool-versions"), "nodejs 9.9.9 20.1.0\n", 0o644)
	path := append([]string{shims}, systemPath()...)
	for _, row := range []struct{ name, cwd, env, want string }{
		{"home", "/", "", node18},
		{"project, first installed", filepath.Join(home, "p", "sub"), "", node20},
		{"variable", filepath.Join(home, "p"), "18.0.0", node18},
		{"variable leaving the directory", "/", "../x", ""},
	} {
		o := Opener{Home: home, Getenv: func(n string) string {
			if n == "ASDF_NODEJS_VERSION" {
				return row.env
			}
			return ""
		}}
		id := open(t, o, "node", path, row.cwd).Identity()
		if id.Manager != "asdf" || id.ManagerTarget != row.want {
			t.Errorf("%s: %q %q, want %q", row.name, id.Manager, id.ManagerTarget, row.want)
		}
	}
}

func TestRustup(t *testing.T) {
	home := t.TempDir()
	bin := filepath.Join(home, ".cargo", "bin")
	rustup := copyBinary(t, "true", filepath.Join(bin, "rustup"))
	link(t, "rustup", filepath.Join(bin, "cargo"))
	hardLink(t, rustup, filepath.Join(bin, "rustc"))
	up := filepath.Join(home, ".rustup")
	const host = "x86_64-unknown-linux-gnu"
	tool := func(toolchain, name string) string { return fakeTool(t, up, "toolchains", toolchain, "bin", name) }
	stable, nightly := tool("stable-"+host, "cargo"), tool("nightly-"+host, "cargo")
	stableC := tool("stable-"+host, "rustc")
	pinned := tool("1.80.0-"+host, "cargo")
	write(t, filepath.Join(up, "settings.toml"), "version = \"12\"\ndefault_toolchain = \"stable-"+host+"\"\ndefault_host_triple = \""+host+
		"\"\n\n[overrides]\n\""+filepath.Join(home, "over")+"\" = \"nightly-"+host+"\"\n", 0o644)
	write(t, filepath.Join(home, "toml", "rust-toolchain.toml"), "[toolchain]\nchannel = \"1.80.0\" # pinned\n", 0o644)
	write(t, filepath.Join(home, "plain", "rust-toolchain"), "nightly\n", 0o644)
	write(t, filepath.Join(home, "evil", "rust-toolchain"), "../../x\n", 0o644)
	for _, row := range []struct {
		name, word, cwd, env string
		args                 []string
		want                 string
	}{
		{"default", "cargo", "/", "", nil, stable},
		{"hard link", "rustc", "/", "", nil, stableC},
		{"plus", "cargo", "/", "1.80.0", []string{"+nightly", "build"}, nightly},
		{"variable", "cargo", filepath.Join(home, "over"), "1.80.0", []string{"build"}, pinned},
		{"override", "cargo", filepath.Join(home, "over", "sub"), "", nil, nightly},
		{"toolchain file", "cargo", filepath.Join(home, "toml"), "", nil, pinned},
		{"old toolchain file", "cargo", filepath.Join(home, "plain"), "", nil, nightly},
		{"leaving the directory", "cargo", filepath.Join(home, "evil"), "", nil, ""},
		{"not installed", "cargo", "/", "beta", nil, ""},
	} {
		o := Opener{Home: home, Args: row.args, Getenv: func(n string) string {
			if n == "RUSTUP_TOOLCHAIN" {
				return row.env
			}
			return ""
		}}
		id := open(t, o, row.word, []string{bin}, row.cwd).Identity()
		if id.Manager != "rustup" || id.ManagerTarget != row.want {
			t.Errorf("%s: %q %q, want %q", row.name, id.Manager, id.ManagerTarget, row.want)
		}
	}
	if id := open(t, Opener{Home: home}, "rustup", []string{bin}, "/").Identity(); id.Manager != "" {
		t.Errorf("rustup itself is a shim of %q", id.Manager)
	}
}

func TestTomlString(t *testing.T) {
	const text = "a = \"x\"\n# c = \"no\"\n[t]\na='y'\n\"k e\\ny\" = \"z\"\nb = 3\nopen = \"never closed\n[t.u]\na = \"w\"\n"
	for _, row := range [][3]string{
		{"", "a", "x"}, {"t", "a", "y"}, {"t", "k e\ny", "z"}, {"t.u", "a", "w"}, {"", "c", ""}, {"t", "open", ""}, {"none", "a", ""},
	} {
		if got := tomlString(text, row[0], row[1]); got != row[2] {
			t.Errorf("%s.%s = %q, want %q", row[0], row[1], got, row[2])
		}
	}
}
