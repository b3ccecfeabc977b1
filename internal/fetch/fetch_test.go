package fetch

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/shims/builtin"
)

// TestRequirements: requirements that lead elsewhere than to wheels of the index keep pip from being
// split, in each spelling that pip itself takes.
func TestRequirements(t *testing.T) {
	t.Parallel()
	entry, ok := builtin.Find("pip")
	if !ok {
		t.Fatal("there is no document of pip")
	}
	doc, err := entry.Parse()
	if err != nil {
		t.Fatal(err)
	}
	call := doc.Resolve([]string{"pip", "install", "-q", "-r", "requirements.txt", "--constraint=limits.txt"}, atip.ResolveOptions{Provenance: atip.Provenance{Rank: atip.Org}})
	f := call.Splits()
	if f == nil {
		t.Fatal("pip install -r is not split")
	}
	none := func(string) string { return "" }
	for text, splits := range map[string]bool{
		"two\n": true, "two==1.0.0": true, "two[extra]>=1,<2 ; python_version > '3'\n": true, "# via -r x.in https://x.example\ntwo # -e .\n": true, "two==1 \\\n    --hash=sha256:00\n": true, "\n\n  two  \r\nthree\r\n": true, "two#no-comment\n": true,
		"./evil\n": false, "evil/\n": false, "/x\n": false, "-e evil\n": false, "two\n  -eevil\n": false, "--editable evil\n": false, "two @ http://x.example/two.tar.gz\n": false, "git+ssh://x.example/x\n": false,
		"--index-url http://x.example\ntwo\n": false, "two # x\x0c--no-binary :all:\n": false, "two # x\u2028--no-binary :all:\n": false, "two # x\x1e-e evil\n": false, "two # x\r--no-binary :all:\n": false, "two \\\n--extra-index-url http://x.example\n": false,
		"-f links\ntwo\n": false, "-r more.txt\n": false, "-c more.txt\n": false, "two${HOME}\n": false, "two#x\n-e evil": false, "a#b #\n-e evil": false, "two \\\n#x\n-e evil\n": false,
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"requirements.txt": text, "limits.txt": "two<2\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w, why := Find(f, "pip", Place{Dir: dir, Top: dir, Getenv: none, Listed: func(string) bool { return false }})
		if (w != nil) != splits {
			t.Errorf("%q: %v %s", text, w, why)
		}
		if splits && strings.Join(w.Argv, " ") != "pip download --only-binary :all: --no-input -r requirements.txt --constraint limits.txt" {
			t.Errorf("%q: %v", text, w.Argv)
		}
	}
	// A link is no file of the project.
	dir := t.TempDir()
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "requirements.txt")); err != nil {
		t.Fatal(err)
	}
	if w, _ := Find(f, "pip", Place{Dir: dir, Top: dir, Getenv: none, Listed: func(string) bool { return false }}); w != nil {
		t.Error("a link is followed")
	}
}

// TestLocks: a lock or a setting that leads elsewhere than to the registry keeps a tool from being
// split, one that names hosts which the user lists does not.
func TestLocks(t *testing.T) {
	t.Parallel()
	const crates = "[[package]]\nname = \"two\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\n"
	const npm, yarn, bun = "packages:\n  two@1.0.0:\n    resolution: {integrity: sha512-x}\n", "two@1.0.0:\n  resolved \"https://registry.yarnpkg.com/two/-/two-1.0.0.tgz#0\"\n", `"two": ["two@1.0.0", "", {}, "sha512-x"],` + "\n"
	for _, row := range []struct {
		tool, cmd, lock, text string
		file, more            string // one more file
		splits                bool
		hosts                 string // that are added
	}{
		{"cargo", "fetch", "Cargo.lock", crates, "", "", true, ""},
		{"cargo", "fetch", "Cargo.lock", crates + "source = \"sparse+https://listed.example/index/\"\n", "", "", true, "listed.example:443"},
		{"cargo", "fetch", "Cargo.lock", crates + "source = \"sparse+https://other.example/index/\"\n", "", "", false, ""},
		{"cargo", "fetch", "Cargo.lock", crates + "source = \"sparse+https://x:y@listed.example/\"\n", "", "", false, ""},
		{"cargo", "fetch", "Cargo.lock", crates + "source = \"git+https://listed.example/x#0\"\n", "", "", false, ""},
		{"cargo", "fetch", "Cargo.lock", crates + "source = \"registry+https://github.com/rust-lang/crates.io-index/../x\"\n", "", "", false, ""},
		{"cargo", "fetch", "Cargo.lock", crates, ".cargo/config.toml", "source.crates-io.replace-with = 'x'\n", false, ""},
		{"cargo", "fetch", "Cargo.lock", crates, ".cargo/config.toml", "[alias]\nb = \"build\"\n", true, ""},
		{"pnpm", "install", "pnpm-lock.yaml", npm, "", "", true, ""},
		{"pnpm", "install", "pnpm-lock.yaml", npm + "    resolution: {tarball: https://other.example/x.tgz}\n", "", "", false, ""},
		{"pnpm", "install", "pnpm-lock.yaml", npm + "    resolution: {tarball: 'https://listed.example/x.tgz'}\n", "", "", false, ""}, // not as pnpm writes it
		{"pnpm", "install", "pnpm-lock.yaml", npm + "    resolution: {tarball: https://listed.example/x.tgz}\n", "", "", true, "listed.example:443"},
		{"pnpm", "install", "pnpm-lock.yaml", npm + "    resolution: {directory: ../x, type: directory}\n", "", "", false, ""},
		{"pnpm", "install", "pnpm-lock.yaml", npm, ".npmrc", "shamefully-hoist=true\n# x\nregistry = https://listed.example/\n", true, "listed.example:443"},
		{"pnpm", "install", "pnpm-lock.yaml", npm, ".npmrc", " node-options = --require ./x\n", false, ""},
		{"pnpm", "install", "pnpm-lock.yaml", npm, ".npmrc", "//registry.npmjs.org/:_authToken=x\n", false, ""},
		{"pnpm", "install", "pnpm-lock.yaml", npm, ".npmrc", "registry=https://listed.example/\nregistry=https://other.example/\n", true, "listed.example:443"},
		{"pnpm", "install", "pnpm-lock.yaml", npm, "pnpm-workspace.yaml", "packages:\n  - a\nregistry: https://other.example/\n", false, ""},
		{"yarn", "install", "yarn.lock", yarn, "", "", true, ""},
		{"yarn", "install", "yarn.lock", yarn + "  resolved \"http://registry.yarnpkg.com/x.tgz\"\n", "", "", false, ""},
		{"yarn", "install", "yarn.lock", yarn + "\"x@patch:two@npm%3A1.0.0#./x.patch\":\n", "", "", true, ""},
		{"yarn", "install", "yarn.lock", yarn + "  resolution: \"x@https://other.example/x.tgz\"\n", "", "", false, ""},
		{"yarn", "install", "yarn.lock", yarn, ".yarnrc.yml", "yarnPath: .yarn/releases/yarn-4.0.0.cjs\nsupportedArchitectures:\n  os:\n    - current\n", true, ""},
		{"yarn", "install", "yarn.lock", yarn, ".yarnrc.yml", "npmScopes:\n  evil:\n    npmRegistryServer: https://other.example\n", false, ""},
		{"yarn", "install", "yarn.lock", yarn, ".yarnrc.yml", "plugins:\n  - ./x.cjs\n", false, ""},
		{"yarn", "install", "yarn.lock", yarn, ".yarnrc", "yarn-path \"./x.cjs\"\n", false, ""},
		{"bun", "install", "bun.lock", bun, "", "", true, ""},
		{"bun", "install", "bun.lock", bun + `"x": ["x@1.0.0", "https://other.example/x.tgz", {}, ""],`, "", "", false, ""},
		{"bun", "install", "bun.lock", bun + `"x": ["x@git+ssh://other.example/x#0", {}, ""],`, "", "", false, ""},
		{"bun", "install", "bun.lock", bun, "bunfig.toml", "[install]\nregistry = { url = \"https://other.example/\" }\n", false, ""},
	} {
		entry, _ := builtin.Find(row.tool)
		doc, err := entry.Parse()
		if err != nil {
			t.Fatal(err)
		}
		call := doc.Resolve([]string{row.tool, row.cmd}, atip.ResolveOptions{Provenance: atip.Provenance{Rank: atip.Org}})
		f := call.Splits()
		if f == nil {
			t.Fatalf("%s %s is not split", row.tool, row.cmd)
		}
		dir := t.TempDir()
		for name, text := range map[string]string{row.lock: row.text, cmp.Or(row.file, row.lock): cmp.Or(row.more, row.text)} {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		w, why := Find(f, row.tool, Place{Dir: dir, Top: dir, Home: t.TempDir(), Getenv: func(string) string { return "" }, Listed: func(host string) bool { return host == "listed.example:443" }})
		if (w != nil) != row.splits || w != nil && row.hosts != "" && !slices.Contains(w.Hosts, row.hosts) || w != nil && slices.ContainsFunc(w.Hosts, func(h string) bool { return strings.Contains(h, "other") }) {
			t.Errorf("%s, %q, %s %q: %v %s", row.tool, row.text, row.file, row.more, w, why)
		}
	}
}

// TestOnce: what was fetched before a build is noted below the private directory and nowhere else.
func TestOnce(t *testing.T) {
	t.Parallel()
	private, outside := t.TempDir(), t.TempDir()
	if Note(private, "x", true); !Done(private, "x") || Done(private, "y") {
		t.Error("what was noted is not known")
	}
	if Note(private, "x", false); !Done(private, "x") {
		t.Error("a failure is tried again at once")
	}
	past := time.Now().Add(-2 * again)
	if err := os.Chtimes(private+"/fetched/x", past, past); err != nil || Done(private, "x") {
		t.Errorf("a failure is never tried again: %v", err)
	}
	// A run that writes there leads to nothing outside.
	if err := errors.Join(os.RemoveAll(private+"/fetched"), os.Symlink(outside, private+"/fetched"), os.WriteFile(outside+"/x", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	Note(private, "z", true)
	if _, err := os.Lstat(outside + "/z"); err == nil || Done(private, "x") {
		t.Error("a link is followed")
	}
}
