package main_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// files are the contents, modes and times of everything below dir.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "work" && strings.Contains(path, "/layers/") {
			return fs.SkipDir // an overlay's own, without any mode
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprint(fi.Mode(), " ", fi.ModTime().UnixNano())
		if fi.Mode().IsRegular() {
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", sha256.Sum256(raw))
		}
		out[path] = line
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// put writes files below dir.
func put(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// zipped is an archive of files whose names begin with prefix.
func zipped(t *testing.T, prefix string, texts map[string]string) []byte {
	t.Helper()
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range texts {
		f, err := z.Create(prefix + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// tarred is the same as a compressed tar archive.
func tarred(t *testing.T, prefix string, texts map[string]string) []byte {
	t.Helper()
	var archive bytes.Buffer
	g := gzip.NewWriter(&archive)
	a := tar.NewWriter(g)
	for name, text := range texts {
		if err := a.WriteHeader(&tar.Header{Name: prefix + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(a.Close(), g.Close()); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// TestWarmCaches: what is in the caches of the host is used without network, and what a
// run puts into them never gets there.
func TestWarmCaches(t *testing.T) {
	t.Parallel()
	w := newWorldAtHome(t)
	w.policy(`{"version":1,"sandbox":{"tier":"T3"}}`)
	// Else go starts a process of its own now and then, which writes whenever it gets to it.
	put(t, w.home, map[string]string{".config/go/telemetry/mode": "off\n"})
	goroot, goCache := toolchain()
	if goroot == "" {
		t.Fatal("Go is not installed")
	}
	path := filepath.Join(goroot, "bin") + ":/usr/local/bin:/usr/bin:/bin"
	outside := func(dir string, env []string, words ...string) {
		t.Helper()
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir, cmd.Env = dir, append([]string{"HOME=" + w.home, "PATH=" + path, "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw", "CGO_ENABLED=0", "GOCACHE=" + goCache}, env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", words, err, out)
		}
	}
	warm := map[string]func(t *testing.T) []string{
		"go":  func(t *testing.T) []string { return w.warmGo(t, outside) },
		"npm": func(t *testing.T) []string { return w.warmNpm(t, outside) },
		"pip": func(t *testing.T) []string { return w.warmPip(t, outside) },
		"cargo": func(t *testing.T) []string {
			commands, dir := w.warmCargo(t, outside)
			path = dir + ":" + path
			return commands
		},
	}
	defer func() {
		// That cache is shared with whatever builds on this machine, so it is asked for one file.
		cmd := w.command("--", "python3", "-c", "open('"+goCache+"/atip-exec-test', 'w').write('x'); print(len(open('"+goCache+"/README').read()) > 0)")
		cmd.Env = append(cmd.Env, "GOCACHE="+goCache)
		out, err := cmd.CombinedOutput()
		if _, serr := os.Stat(filepath.Join(goCache, "atip-exec-test")); err != nil || serr == nil || strings.TrimSpace(string(out)) != "True" {
			t.Errorf("a file of the build cache: %v, %s; on the host: %v", err, out, serr)
		}
		if upper, _ := filepath.Glob(w.home + "/.cache/atip-exec/layers/*/*/go-build/upper/atip-exec-test"); len(upper) != 1 {
			t.Errorf("in the layer: %v", upper)
		}
	}()
	for _, family := range []string{"go", "npm", "pip", "cargo"} {
		t.Run(family, func(t *testing.T) {
			commands := warm[family](t)
			cache := files(t, w.home)
			put(t, w.ws, map[string]string{"start.py": "import subprocess, sys\nsys.exit(subprocess.run(sys.argv[1:]).returncode)\n"})
			for _, line := range commands {
				cmd := w.command(append([]string{"--", "python3", "start.py"}, strings.Fields(line)...)...)
				cmd.Env = []string{"HOME=" + w.home, "PATH=" + path + ":" + bin, "GOTOOLCHAIN=local", "CGO_ENABLED=0", "GOCACHE=" + goCache}
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v: %s", line, err, out)
				}
			}
			w.same(t, cache)
		})
	}
}

// same compares the home directory with what it was, but for our own directories.
func (w world) same(t *testing.T, before map[string]string) {
	t.Helper()
	after := files(t, w.home)
	for path := range after {
		if _, ok := before[path]; !ok {
			before[path] = ""
		}
	}
	for path, was := range before {
		own := path == w.home || path == w.home+"/.cache" || path == w.home+"/.local" || path == w.home+"/.local/share"
		for _, dir := range []string{"/.local/state", "/.local/share/atip-exec", "/.cache/atip-exec"} {
			own = own || strings.HasPrefix(path, w.home+dir)
		}
		if !own && after[path] != was {
			t.Errorf("%s was %q and is %q", path, was, after[path])
		}
	}
}

// warmGo fetches a module from a file proxy and compiles once.
func (w world) warmGo(t *testing.T, outside func(string, []string, ...string)) []string {
	archive := zipped(t, "example.invalid/dep@v1.0.0/", map[string]string{"go.mod": "module example.invalid/dep\n", "dep.go": "package dep\n\n// Two is 2.\nconst Two = 2\n"})
	proxy := t.TempDir()
	put(t, proxy, map[string]string{"example.invalid/dep/@v/list": "v1.0.0\n", "example.invalid/dep/@v/v1.0.0.info": `{"Version":"v1.0.0"}`,
		"example.invalid/dep/@v/v1.0.0.mod": "module example.invalid/dep\n", "example.invalid/dep/@v/v1.0.0.zip": string(archive)})
	put(t, w.ws, map[string]string{"go.mod": "module example.invalid/m\n\ngo 1.22\n\nrequire example.invalid/dep v1.0.0\n",
		"main.go":      "package main\n\nimport \"example.invalid/dep\"\n\nfunc main() { println(dep.Two) }\n",
		"main_test.go": "package main\n\nimport (\n\t\"testing\"\n\n\t\"example.invalid/dep\"\n)\n\nfunc TestTwo(t *testing.T) {\n\tif dep.Two != 2 {\n\t\tt.Fail()\n\t}\n}\n"})
	env := []string{"GOPROXY=file://" + proxy, "GONOSUMDB=*", "GOSUMDB=off"}
	outside(w.ws, env, "go", "mod", "tidy")
	commands := []string{"go build -o out .", "./out", "go list ./..."}
	if !testing.Short() {
		commands = append(commands, "go test -count=1 .")
	}
	return commands
}

// warmNpm installs a package from a registry of its own, which is gone afterwards.
func (w world) warmNpm(t *testing.T, outside func(string, []string, ...string)) []string {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Log("npm is not installed")
		return nil
	}
	archive := tarred(t, "package/", map[string]string{"package.json": `{"name":"two","version":"1.0.0","main":"two.js"}`, "two.js": "module.exports = 2\n"})
	sum := sha512.Sum512(archive)
	integrity := "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			_, _ = out.Write(archive)
			return
		}
		_ = json.NewEncoder(out).Encode(map[string]any{"name": "two", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{
			"1.0.0": map[string]any{"name": "two", "version": "1.0.0", "main": "two.js", "dist": map[string]string{"tarball": server.URL + "/two/-/two-1.0.0.tgz", "integrity": integrity}}}})
	}))
	defer server.Close()
	put(t, w.ws, map[string]string{"package.json": `{"name":"m","version":"1.0.0","dependencies":{"two":"1.0.0"}}`, ".npmrc": "registry=" + server.URL + "\n"})
	outside(w.ws, nil, "npm", "install", "--no-audit", "--no-fund")
	if err := os.RemoveAll(filepath.Join(w.ws, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return []string{"npm ci --offline --no-audit --no-fund", "node -e process.exit(require('two')-2)"}
}

// warmCargo fetches a crate from a repository of its own, which is gone afterwards. It
// returns the directory of the toolchain, which must not depend on the home directory.
func (w world) warmCargo(t *testing.T, outside func(string, []string, ...string)) (commands []string, dir string) {
	sysroot, err := exec.Command("rustc", "--print", "sysroot").Output()
	if err != nil {
		t.Log("cargo is not installed")
		return nil, "/usr/bin"
	}
	dir = filepath.Join(strings.TrimSpace(string(sysroot)), "bin")
	crate := filepath.Join(t.TempDir(), "dep")
	put(t, crate, map[string]string{"Cargo.toml": "[package]\nname = \"dep\"\nversion = \"1.0.0\"\nedition = \"2021\"\n", "src/lib.rs": "pub const TWO: u32 = 2;\n"})
	outside(crate, nil, "git", "init", "-q")
	outside(crate, nil, "git", "add", ".")
	outside(crate, nil, "git", "-c", "user.name=x", "-c", "user.email=x@example.invalid", "commit", "-qm", "x")
	put(t, w.ws, map[string]string{"Cargo.toml": "[package]\nname = \"m\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n[dependencies]\ndep = { git = \"file://" + crate + "\" }\n",
		"src/main.rs": "fn main() { assert_eq!(dep::TWO, 2) }\n"})
	if err := os.MkdirAll(w.home+"/.cargo/registry", 0o755); err != nil {
		t.Fatal(err)
	}
	outside(w.ws, []string{"CARGO_HOME=" + w.home + "/.cargo", "PATH=" + dir + ":/usr/local/bin:/usr/bin:/bin"}, dir+"/cargo", "fetch", "-q")
	if err := os.RemoveAll(crate); err != nil {
		t.Fatal(err)
	}
	return []string{"cargo tree --offline --locked", "cargo metadata --offline --format-version 1"}, dir
}

// TestCargoWithoutNetwork: below a private root, too, the crates of the host are there.
func TestCargoWithoutNetwork(t *testing.T) {
	w := newWorldAtHome(t)
	w.policy(`{"version":1,"sandbox":{"tier":"T2"}}`)
	put(t, w.ws, map[string]string{"Cargo.toml": "[package]\nname = \"m\"\nversion = \"1.0.0\"\n"})
	put(t, w.home, map[string]string{".cargo/registry/cache/crate": "crate", ".cargo/credentials.toml": "synthetic"})
	const text = `import os
home = os.environ['CARGO_HOME']
print(open(home + '/registry/cache/crate').read(), os.path.exists(home + '/credentials.toml'))
open(home + '/.package-cache', 'w')
for name in ('/registry/new', '/registry/cache/crate'):
    try: open(home + name, 'w')
    except OSError as e: print(type(e).__name__)
`
	for range 2 {
		if status, stdout, stderr := w.python(text); status != 0 || stdout != "crate False\nPermissionError\nPermissionError" {
			t.Errorf("status %d, %q; %s", status, stdout, stderr)
		}
		// What a run puts in the place of the links is gone in the next one.
		if status, _, stderr := w.python("import os\nhome = os.environ['CARGO_HOME']\nos.remove(home + '/registry')\nos.makedirs(home + '/registry/cache')\nopen(home + '/registry/cache/crate', 'w').write('poisoned')"); status != 0 {
			t.Errorf("replacing: status %d; %s", status, stderr)
		}
	}
}

// TestPrivateDirectoryLeadsNowhere: what a run leaves in place of what the next start uses
// there, links to somewhere outside, changes nothing outside and stops nothing.
func TestPrivateDirectoryLeadsNowhere(t *testing.T) {
	t.Parallel()
	for _, tier := range []string{"T2", "T3"} {
		w := newWorldAtHome(t)
		w.policy(`{"version":1,"sandbox":{"tier":"` + tier + `"}}`)
		outside := filepath.Join(w.home, "outside")
		put(t, outside, map[string]string{"secret": "kept\n", "registry/file": "kept\n"})
		put(t, w.ws, map[string]string{"go.mod": "module example.invalid/m\n", "Cargo.toml": "[package]\n"})
		put(t, w.home, map[string]string{".cache/go-build/README": "cache", ".cargo/registry/x": "x"})
		if status, _, stderr := w.python("print(1)"); status != 0 {
			t.Fatalf("%s: status %d; %s", tier, status, stderr)
		}
		before := files(t, outside)
		plant := `import os, shutil
w = os.path.dirname(os.environ['XDG_CACHE_HOME'])
for name in ('layers', 'layers/0', 'layers/0/go-build', 'cargo-host', 'tmp', 'xdg', 'go-build'):
    path = w + '/' + name
    if os.path.isdir(os.path.dirname(path)) and not os.path.islink(os.path.dirname(path)):
        try: os.rename(path, path + '.old')
        except OSError: pass
        try: os.symlink('` + outside + `', path)
        except OSError as e: print(name, type(e).__name__)
print(sorted(n for n in os.listdir(w) if os.path.islink(w + '/' + n)))
`
		status, stdout, stderr := w.python(plant)
		if status != 0 || !strings.Contains(stdout, "'cargo-host'") || !strings.Contains(stdout, "'layers'") {
			t.Fatalf("%s: status %d, %q; %s", tier, status, stdout, stderr)
		}
		use := `import os
for name in ('GOCACHE', 'CARGO_HOME', 'TMPDIR'):
    d = os.environ[name]
    try: print(name, os.path.exists(d + '/secret'), open(d + '/planted', 'w').write('x'))
    except OSError as e: print(name, type(e).__name__)
`
		for range 2 {
			status, stdout, stderr = w.python(use)
			if status != 0 || strings.Contains(stdout, "True") && tier == "T3" {
				t.Errorf("%s: status %d, %q; %s", tier, status, stdout, stderr)
			}
		}
		after := files(t, outside)
		if len(after) != len(before) {
			t.Errorf("%s: outside: %v", tier, after)
		}
		for path, was := range before {
			if after[path] != was {
				t.Errorf("%s: %s was %q and is %q", tier, path, was, after[path])
			}
		}
	}
}

// warmPip has a wheel in a directory, as caches of packages that cannot be asked for
// without their index are of no use.
func (w world) warmPip(t *testing.T, outside func(string, []string, ...string)) []string {
	if exec.Command("/usr/bin/python3", "-m", "pip", "--version").Run() != nil {
		t.Log("pip is not installed")
		return nil
	}
	archive := zipped(t, "", map[string]string{"two.py": "two = 2\n", "two-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: two\nVersion: 1.0\n",
		"two-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "two-1.0.dist-info/RECORD": ""})
	put(t, w.ws, map[string]string{"requirements.txt": "two==1.0\n", "wheels/two-1.0-py3-none-any.whl": string(archive)})
	put(t, w.home, map[string]string{".cache/pip/http/a": "cached"})
	return []string{"/usr/bin/python3 -m pip install --no-index --find-links wheels --target lib -r requirements.txt", "/usr/bin/python3 -m pip cache dir"}
}
