package main_test

import (
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// registry is one of packages on the machine's loopback, and notes what it is asked.
type registry struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

// paths are the paths that were asked for since the last call.
func (r *registry) paths() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.asked
	r.asked = nil
	return out
}

// serve starts one that answers by handle.
func serve(t *testing.T, handle func(r *registry, w http.ResponseWriter, q *http.Request)) *registry {
	t.Helper()
	r := &registry{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.asked = append(r.asked, q.URL.Path)
		r.mu.Unlock()
		handle(r, w, q)
	}))
	t.Cleanup(r.Close)
	return r
}

// newRegistry has the npm package two, which runs a script when it is installed, and the module
// example.invalid/dep.
func newRegistry(t *testing.T) *registry {
	t.Helper()
	tarball := tarred(t, "package/", map[string]string{"package.json": `{"name":"two","version":"1.0.0","main":"two.js","scripts":{"postinstall":"node built.js"}}`, "two.js": "module.exports = 2\n",
		"built.js": "const fs = require('fs'), url = process.env.REGISTRY\nfs.writeFileSync('built', String(process.env.INIT_CWD !== undefined))\n" +
			"require('http').get(url + '/from-postinstall', () => { fs.writeFileSync('reached', 'yes'); process.exit() }).on('error', () => {})\n"})
	module := zipped(t, "example.invalid/dep@v1.0.0/", map[string]string{"go.mod": "module example.invalid/dep\n", "dep.go": "package dep\n\n// Two is 2.\nconst Two = 2\n"})
	sum := sha512.Sum512(tarball)
	return serve(t, func(r *registry, w http.ResponseWriter, q *http.Request) {
		switch path := q.URL.Path; {
		case strings.HasSuffix(path, ".tgz"):
			_, _ = w.Write(tarball)
		case path == "/two":
			_ = json.NewEncoder(w).Encode(map[string]any{"name": "two", "dist-tags": map[string]string{"latest": "1.0.0"}, "time": map[string]string{"1.0.0": "2020-01-01T00:00:00Z"}, "versions": map[string]any{
				"1.0.0": map[string]any{"name": "two", "version": "1.0.0", "main": "two.js", "hasInstallScript": true, "scripts": map[string]string{"postinstall": "node built.js"},
					"dist": map[string]string{"tarball": r.URL + "/two/-/two-1.0.0.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}}}})
		case strings.HasSuffix(path, "/@v/list"):
			_, _ = w.Write([]byte("v1.0.0\n"))
		case strings.HasSuffix(path, ".info"), strings.HasSuffix(path, "/@latest"):
			_, _ = w.Write([]byte(`{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`))
		case strings.HasSuffix(path, ".mod"):
			_, _ = w.Write([]byte("module example.invalid/dep\n"))
		case strings.HasSuffix(path, ".zip"):
			_, _ = w.Write(module)
		default:
			http.NotFound(w, q)
		}
	})
}

// fetching is a world with a project for npm whose registry the user's policy lists.
func fetching(t *testing.T) (world, *registry, func(args ...string) (string, error), func(dir string, words ...string) (string, error)) {
	needTier3(t)
	if _, err := os.Stat("/usr/bin/npm"); err != nil {
		t.Skip("npm of the system is not installed")
	}
	w, r := newWorldAtHome(t), newRegistry(t)
	host := strings.TrimPrefix(r.URL, "http://")
	w.policy(`{"version":1,"network":{"allow":["` + host + `"]},"env":{"pass":["REGISTRY"]}}`)
	goroot, _ := toolchain()
	env := []string{"HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin:" + filepath.Join(goroot, "bin") + ":" + bin, "REGISTRY=" + r.URL, "GOPROXY=" + r.URL, "GOSUMDB=off"}
	start := startsIn(env)
	run := func(args ...string) (string, error) { return start(w.command(args...)) }
	plain := func(dir string, words ...string) (string, error) {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		return start(cmd, "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local")
	}
	put(t, w.home, map[string]string{".config/go/telemetry/mode": "off\n"})
	return w, r, run, plain
}

// startsIn returns what starts commands in an environment, with more variables for one of them, and returns all
// that they print.
func startsIn(env []string) func(cmd *exec.Cmd, more ...string) (string, error) {
	return func(cmd *exec.Cmd, more ...string) (string, error) {
		cmd.Env = slices.Concat(env, more)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// fetchRow is a command over one changed declaration, and whether it asks as a whole.
type fetchRow struct {
	name, file, text, cmd string
	asks                  bool
}

// splitOrAsk holds rows in a project that fresh makes as it was. A file without a text is not there.
func splitOrAsk(t *testing.T, dir string, rows []fetchRow, fresh func(), explain func(cmd string) (string, error)) {
	t.Helper()
	for _, row := range rows {
		fresh()
		put(t, dir, map[string]string{row.file: row.text})
		if row.text == "" {
			if err := os.Remove(filepath.Join(dir, row.file)); err != nil {
				t.Fatal(err)
			}
		}
		out, err := explain(row.cmd)
		if asks := strings.HasPrefix(out, "CONFIRM"); asks != row.asks || !asks && !strings.HasPrefix(out, "ALLOW") {
			t.Errorf("%s: %v\n%s", row.name, err, out)
		}
	}
}

// npmProject writes a project that depends on two, with its lock, and nothing in the cache.
func npmProject(t *testing.T, dir string, r *registry, plain func(string, ...string) (string, error)) {
	t.Helper()
	put(t, dir, map[string]string{".npmrc": "registry=" + r.URL + "\n", "package.json": `{"name":"m","version":"1.0.0","dependencies":{"two":"1.0.0"},"scripts":{
"preinstall":"echo pre >>order","postinstall":"echo post >>order","prepare":"echo prepare >>order","test":"node test.js"}}`,
		"test.js": "const http = require('http')\nif (require('two') !== 2) process.exit(3)\nhttp.get(process.env.REGISTRY + '/from-test', () => process.exit(4)).on('error', () => console.log('tested'))\n"})
	if out, err := plain(dir, "npm", "install", "--package-lock-only", "--no-audit", "--no-fund"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, name := range []string{"order", "node_modules"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// tree is what an installation left, without what differs between two of them.
func tree(t *testing.T, dir string) map[string]string {
	out := map[string]string{}
	for path, what := range files(t, dir) {
		rel, _ := filepath.Rel(dir, path)
		mode, _, _ := strings.Cut(what, " ")
		raw, _ := os.ReadFile(path)
		if rel != "." && !strings.HasPrefix(rel, ".git/") && rel != ".git" {
			out[rel] = mode + " " + string(raw)
		}
	}
	return out
}

// TestFetchApartNpm: npm ci && npm test runs without a question. The packages come from the registry
// before anything of the project or of a package runs; then nothing reaches it.
func TestFetchApartNpm(t *testing.T) {
	t.Parallel()
	w, r, run, plain := fetching(t)
	npmProject(t, w.ws, r, plain)
	control := t.TempDir()
	for name, text := range tree(t, w.ws) {
		if _, body, ok := strings.Cut(text, " "); ok && strings.HasPrefix(text, "-") {
			put(t, control, map[string]string{name: body})
		}
	}
	r.paths()
	out, err := run("-c", "npm ci && npm test")
	asked := r.paths()
	if err != nil || !strings.Contains(out, "tested") {
		t.Fatalf("%v %s", err, out)
	}
	if !slices.Contains(asked, "/two/-/two-1.0.0.tgz") || slices.Contains(asked, "/from-postinstall") || slices.Contains(asked, "/from-test") {
		t.Errorf("the registry was asked for %v", asked)
	}
	if out, err := plain(control, "npm", "ci"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	// The same code reaches the registry where nothing confines it.
	if asked := r.paths(); !slices.Contains(asked, "/from-postinstall") {
		t.Errorf("control: the registry was asked for %v", asked)
	}
	if out, err := plain(control, "npm", "test"); err == nil {
		t.Errorf("control: the test reached nothing: %s", out)
	}
	ours, theirs := tree(t, w.ws), tree(t, control)
	delete(theirs, "node_modules/two/reached")
	for name, text := range theirs {
		if ours[name] != text && name != "node_modules/.package-lock.json" {
			t.Errorf("%s: %q, npm ci by itself leaves %q", name, ours[name], text)
		}
		delete(ours, name)
	}
	for name := range ours {
		t.Errorf("%s is not left by npm ci by itself", name)
	}
	var kinds []string
	for _, rec := range w.records() {
		if rec["fetches_for"] != nil {
			kinds = append(kinds, "fetch")
			held, err := json.Marshal(rec["sandbox"])
			if err != nil || strings.Contains(string(held), w.ws) || !strings.Contains(string(held), "/fetch/") {
				t.Errorf("the fetching run has the project: %v %s", err, held)
			}
		} else if rec["kind"] == "run" {
			kinds = append(kinds, "run")
		}
	}
	if !slices.Contains(kinds, "fetch") || !slices.Contains(kinds, "run") {
		t.Errorf("records: %v", kinds)
	}
}

// TestFetchApartTraps: where the fetching call would run code of the project, or another registry
// would answer, the command is not split: it asks. Where it is split, code that the project plants
// beside its declarations is neither started nor seen.
func TestFetchApartTraps(t *testing.T) {
	t.Parallel()
	w, r, run, plain := fetching(t)
	npmProject(t, w.ws, r, plain)
	lock, err := os.ReadFile(w.ws + "/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	npmrc := "registry=" + r.URL + "\n"
	splitOrAsk(t, w.ws, []fetchRow{
		{"as it is", "package-lock.json", string(lock), "npm ci", false},
		{"in a subshell", "package-lock.json", string(lock), "(npm ci) && npm test", false},
		{"a git program", ".npmrc", npmrc + "git=./evil.sh\n", "npm ci", true},
		{"a shell for scripts", ".npmrc", npmrc + "script-shell=./evil.sh\n", "npm ci", true},
		{"options of node", ".npmrc", npmrc + "node-options=--require ./evil.js\n", "npm ci", true},
		{"a registry that no policy lists", ".npmrc", "registry=http://127.0.0.1:1/\n", "npm ci", true},
		{"a registry for a scope", ".npmrc", npmrc + "@evil:registry=https://evil.example/\n", "npm ci", true},
		{"a token", ".npmrc", npmrc + "//registry.npmjs.org/:_authToken=x\n", "npm ci", true},
		{"a git dependency", "package-lock.json", strings.Replace(string(lock), `"resolved": "`+r.URL+`/two/-/two-1.0.0.tgz"`, `"resolved": "git+ssh://git@evil.example/x.git#1"`, 1), "npm ci", true},
		{"a directory", "package-lock.json", strings.Replace(string(lock), `"resolved": "`+r.URL+`/two/-/two-1.0.0.tgz"`, `"resolved": "file:two"`, 1), "npm ci", true},
		{"no lock", "package-lock.json", "", "npm ci", true},
		{"a package in the words", "package-lock.json", string(lock), "npm install two", true},
		{"another prefix", "package-lock.json", string(lock), "npm ci --prefix /tmp/x", true},
		{"a registry in the words", "package-lock.json", string(lock), "npm ci --registry=http://127.0.0.1:1/", true},
		{"a registry in a variable", "package-lock.json", string(lock), "npm_config_registry=http://127.0.0.1:1/ npm ci", true},
		{"a lock that the string writes", "package-lock.json", string(lock), "echo {} >package-lock.json; npm ci", true},
		{"a directory that is not known", "package-lock.json", string(lock), `cd "$X" && npm ci`, true},
		{"a checkout before it", "package-lock.json", string(lock), "git checkout -q HEAD -- . && npm ci", true},
		{"code before it", "package-lock.json", string(lock), "node -e 1 && npm ci", true},
		{"options that change nothing", "package-lock.json", string(lock), "npm ci --no-audit --no-fund --no-progress", false},
		{"a delete before it", "package-lock.json", string(lock), "rm -rf node_modules && npm ci", false},
		{"a network beside it", "package-lock.json", string(lock), "npm ci && curl https://evil.example/", true},
	}, func() {
		put(t, w.ws, map[string]string{".npmrc": npmrc, "package-lock.json": string(lock), "evil.sh": "#!/bin/sh\n>ran\n"})
	}, func(cmd string) (string, error) { return run("explain", "-o", "text", "-c", cmd) })
	// The switch decides, and so does a rule of yours.
	put(t, w.ws, map[string]string{".npmrc": npmrc, "package-lock.json": string(lock)})
	for _, text := range []string{`"switches":{"declared_dependencies":false}`, `"profile":"read-only"`, `"rules":[{"id":"no","decision":"confirm","when":{"tool":"npm","command":["ci"]}}]`} {
		w.policy(`{"version":1,"network":{"allow":["` + strings.TrimPrefix(r.URL, "http://") + `"]},` + text + `}`)
		if out, _ := run("explain", "-o", "text", "--", "npm", "ci"); !strings.HasPrefix(out, "CONFIRM") {
			t.Errorf("%s: %s", text, out)
		}
	}
}

// TestFetchApartGo: modules are fetched without a toolchain, a version control system or anything of
// the project; what uses them has no network.
func TestFetchApartGo(t *testing.T) {
	t.Parallel()
	w, r, run, plain := fetching(t)
	const main = "package main\n\nimport \"example.invalid/dep\"\n\nfunc main() { println(dep.Two) }\n"
	const mod = "module example.invalid/m\n\ngo 1.22\n\nrequire example.invalid/dep v1.0.0\n"
	write := func(dir string) {
		put(t, dir, map[string]string{"go.mod": mod, "main.go": main})
	}
	write(w.ws)
	out, err := run("--", "go", "mod", "download")
	if asked := r.paths(); err != nil || !slices.Contains(asked, "/example.invalid/dep/@v/v1.0.0.zip") {
		t.Fatalf("go mod download: %v %s, asked for %v", err, out, asked)
	}
	put(t, w.ws, map[string]string{"go.mod": "module example.invalid/m\n\ngo 1.22\n"})
	if out, err = run("-c", "go mod tidy && go list -m all"); err != nil || !strings.Contains(out, "example.invalid/dep v1.0.0") {
		t.Errorf("go mod tidy: %v %s", err, out)
	}
	control := t.TempDir()
	put(t, control, map[string]string{"go.mod": "module example.invalid/m\n\ngo 1.22\n", "main.go": main})
	if out, err := plain(control, "go", "mod", "tidy"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		ours, _ := os.ReadFile(filepath.Join(w.ws, name))
		theirs, _ := os.ReadFile(filepath.Join(control, name))
		if !bytes.Equal(ours, theirs) {
			t.Errorf("%s: %q, without the wrapper %q", name, ours, theirs)
		}
	}
	// A build fetches first what it declares, once for each state of that.
	if out, err := exec.Command("sh", "-c", "chmod -R u+w \"$0\"/.cache \"$0\"/go; rm -rf \"$0\"/.cache/atip-exec \"$0\"/go", w.home).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	r.paths()
	out, err = run("-c", "go build -o out . && ./out")
	if asked := r.paths(); err != nil || !slices.Contains(asked, "/example.invalid/dep/@v/v1.0.0.zip") {
		t.Errorf("the first build: %v %s, asked for %v", err, out, asked)
	}
	out, err = run("-c", "go vet ./... && go build -o out .")
	if asked := r.paths(); err != nil || len(asked) > 0 {
		t.Errorf("the second build: %v %s, asked for %v", err, out, asked)
	}
	splitOrAsk(t, w.ws, []fetchRow{
		{"as it is", "go.mod", mod, "go mod download", false},
		{"a local module", "go.mod", mod + "replace example.invalid/dep => ../dep\n", "go mod download", true},
		{"another registry", "go.mod", mod, "GOPROXY=http://127.0.0.1:1 go mod download", true},
		{"a module by name", "go.mod", mod, "go mod download example.invalid/other@latest", true},
		{"get is no download", "go.mod", mod, "go get example.invalid/dep", true},
	}, func() { write(w.ws) }, func(cmd string) (string, error) { return run("explain", "-o", "text", "-c", cmd) })
	// A toolchain line starts a download of another Go where nothing keeps it from that.
	put(t, w.ws, map[string]string{"go.mod": "module example.invalid/m\n\ngo 1.22\n\ntoolchain go1.99.0\n\nrequire example.invalid/dep v1.0.0\n"})
	r.paths()
	if out, err := run("--", "go", "mod", "download"); err != nil || slices.ContainsFunc(r.paths(), func(p string) bool { return strings.Contains(p, "toolchain") }) {
		t.Errorf("a toolchain line: %v %s", err, out)
	}
	cmd := exec.Command("go", "mod", "download")
	cmd.Dir, cmd.Env = w.ws, append(os.Environ(), "GOTOOLCHAIN=auto", "GOPROXY="+r.URL, "GOSUMDB=off", "GOMODCACHE="+t.TempDir(), "GOFLAGS=-modcacherw")
	if out, _ := cmd.CombinedOutput(); !slices.ContainsFunc(r.paths(), func(p string) bool { return strings.Contains(p, "toolchain") }) {
		t.Errorf("control: no toolchain was asked for: %s", out)
	}
}
