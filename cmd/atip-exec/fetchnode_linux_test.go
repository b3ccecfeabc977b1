package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// nodeTool is a package manager for Node and what it takes to lead it elsewhere.
type nodeTool struct {
	program         string // below the directory of such tools
	lock            string // the command that writes the lock
	install, offers string // the command that installs it, and one that adds a package
	file            string // of the lock
	settings        map[string]string
	trap            map[string]string // code of the project that it runs when it installs
	asks            []nodeTrap
}

type nodeTrap struct{ name, file, old, new, cmd string }

// nodeTools are the tools by their name and version, for a registry.
func nodeTools(url string) map[string]nodeTool {
	const evil = "require('child_process').spawnSync('curl', ['-s', '-m', '2', process.env.REGISTRY + '/from-evil'])\n"
	npmrc := map[string]string{".npmrc": "registry=" + url + "/\n"}
	tarball := url + "/two/-/two-1.0.0.tgz"
	return map[string]nodeTool{
		"pnpm": {program: "pnpm/bin/pnpm.cjs", lock: "pnpm install --lockfile-only", install: "pnpm install --frozen-lockfile", offers: "pnpm add two", file: "pnpm-lock.yaml", settings: npmrc,
			trap: map[string]string{".pnpmfile.cjs": evil},
			asks: []nodeTrap{
				{"a git dependency", "pnpm-lock.yaml", "resolution: {", "resolution: {type: git, repo: https://evil.example/x, commit: a, ", ""},
				{"another host", "pnpm-lock.yaml", "resolution: {", "resolution: {tarball: https://evil.example/x.tgz, ", ""},
				{"dependencies of the settings", "pnpm-workspace.yaml", "", "configDependencies:\n  two: 1.0.0\n", ""},
				{"a registry for a scope", ".npmrc", "", "@evil:registry=https://evil.example/\n", ""},
				{"a pnpmfile elsewhere", ".npmrc", "", "global-pnpmfile=./evil.cjs\n", ""}}},
		"yarn1": {program: "yarn1/bin/yarn.js", lock: "yarn install --ignore-scripts", install: "yarn install --frozen-lockfile", offers: "yarn add two", file: "yarn.lock", settings: map[string]string{".yarnrc": "registry \"" + url + "/\"\n"},
			trap: map[string]string{".yarnrc.yml": "yarnPath: ./evil.cjs\n", "evil.cjs": evil},
			asks: []nodeTrap{
				{"a git dependency", "yarn.lock", tarball, "git+ssh://evil.example/x#0", ""},
				{"another host", "yarn.lock", tarball, "https://evil.example/x.tgz", ""},
				{"a yarn of the project", ".yarnrc", "", "yarn-path \"./evil.cjs\"\n", ""}}},
		"yarn4": {program: "yarn4/bin/yarn.js", lock: "yarn install --mode=update-lockfile", install: "yarn install --immutable", offers: "yarn add two", file: "yarn.lock",
			settings: map[string]string{".yarnrc.yml": "npmRegistryServer: \"" + url + "\"\nunsafeHttpWhitelist:\n  - 127.0.0.1\nnodeLinker: node-modules\nenableScripts: true\nenableTelemetry: false\n"},
			trap:     map[string]string{".yarnrc.yml": "yarnPath: ./evil.cjs\nnpmRegistryServer: \"" + url + "\"\nunsafeHttpWhitelist:\n  - 127.0.0.1\n", "evil.cjs": evil},
			asks: []nodeTrap{
				{"a git dependency", "yarn.lock", "two@npm:1.0.0", "two@git@evil.example:x", ""},
				{"a generator", "yarn.lock", "two@npm:1.0.0", "two@exec:./evil.cjs", ""},
				{"a plugin", ".yarnrc.yml", "", "plugins:\n  - ./evil.cjs\n", ""},
				{"a token", ".yarnrc.yml", "", "npmAuthToken: x\n", ""}}},
		"bun": {program: "bun/bin/bun.exe", lock: "bun install --lockfile-only", install: "bun install --frozen-lockfile", offers: "bun add two", file: "bun.lock", settings: npmrc,
			asks: []nodeTrap{
				{"a git dependency", "bun.lock", "two@1.0.0", "two@github:evil/x#0", ""},
				{"another host", "bun.lock", tarball, "https://evil.example/x.tgz", ""},
				{"a registry of the settings", "bunfig.toml", "", "[install]\nregistry = \"https://evil.example/\"\n", ""}}},
	}
}

// TestFetchApartNode: pnpm, yarn of both kinds and bun install what a lock declares without a question. The
// packages come from the registry before code of the project or of a package runs; then nothing reaches it.
func TestFetchApartNode(t *testing.T) {
	t.Parallel()
	tools := os.Getenv("ATIP_TEST_NODE_TOOLS")
	if tools == "" {
		t.Skip("ATIP_TEST_NODE_TOOLS names no directory with pnpm, yarn and bun: scripts/nodetools makes one")
	}
	for name := range nodeTools("") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fetchesApart(t, name, tools)
		})
	}
}

func fetchesApart(t *testing.T, name, tools string) {
	needTier3(t)
	w, r := newWorldAtHome(t), newRegistry(t)
	tool := nodeTools(r.URL)[name]
	program := filepath.Join(tools, "node_modules", tool.program)
	if _, err := os.Stat(program); err != nil {
		t.Fatal(err)
	}
	word, _, _ := strings.Cut(tool.install, " ")
	if err := os.MkdirAll(w.home+"/programs", 0o755); err != nil {
		t.Fatal(err)
	}
	place := os.Symlink
	if word == "bun" && os.Getuid() != 0 {
		place = os.Link // a program of this user is believed in the home directory of the run only
	}
	if err := place(program, w.home+"/programs/"+word); err != nil {
		t.Fatal(err)
	}
	w.policy(`{"version":1,"network":{"allow":["` + strings.TrimPrefix(r.URL, "http://") + `"]},"env":{"pass":["REGISTRY","YARN_UNSAFE_HTTP_WHITELIST"]}}`)
	env := []string{"HOME=" + w.home, "PATH=" + w.home + "/programs:/usr/local/bin:/usr/bin:/bin:" + bin, "REGISTRY=" + r.URL, "YARN_UNSAFE_HTTP_WHITELIST=127.0.0.1"}
	start := startsIn(env)
	plain := func(dir, text string) (string, error) {
		cmd := exec.Command("/bin/sh", "-c", text)
		if cmd.Dir, cmd.Env = dir, slices.Clone(env); name == "yarn1" {
			cmd.Env = append(cmd.Env, "YARN_CACHE_FOLDER="+w.home+"/.cache/yarn") // that of root is the machine's
		}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	project := map[string]string{"package.json": `{"name":"m","version":"1.0.0","license":"MIT","private":true,"dependencies":{"two":"1.0.0"},"scripts":{"postinstall":"echo post >>order; curl -s -m 2 $REGISTRY/from-root || true","test":"node test.js"},
"pnpm":{"onlyBuiltDependencies":["two"]},"trustedDependencies":["two"],"dependenciesMeta":{"two":{"built":true}}}`,
		"test.js": "const http = require('http')\nif (require('two') !== 2) process.exit(3)\nhttp.get(process.env.REGISTRY + '/from-test', () => process.exit(4)).on('error', () => console.log('tested'))\n"}
	control := filepath.Join(filepath.Dir(w.ws), "control")
	for _, dir := range []string{w.ws, control} {
		put(t, dir, project)
		put(t, dir, tool.settings)
		put(t, dir, map[string]string{tool.file: ""})
	}
	if err := os.Remove(filepath.Join(control, tool.file)); err != nil && word != "yarn" {
		t.Fatal(err)
	}
	if out, err := plain(control, tool.lock); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	raw, err := os.ReadFile(filepath.Join(control, tool.file))
	if err != nil {
		t.Fatal(err)
	}
	lock := string(raw)
	cold := func(dir string) {
		t.Helper()
		for _, path := range []string{dir + "/node_modules", dir + "/order", dir + "/.yarn", w.home + "/.cache", w.home + "/.local/share/pnpm", w.home + "/.bun", w.home + "/.yarn"} {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
		for name := range tool.trap {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		put(t, dir, project)
		put(t, dir, tool.settings)
		put(t, dir, map[string]string{tool.file: lock})
		r.paths()
	}
	const tarball = "/two/-/two-1.0.0.tgz"
	leaks := func(asked []string) bool {
		return slices.ContainsFunc(asked, func(p string) bool { return strings.HasPrefix(p, "/from-") })
	}
	cold(w.ws)
	out, err := start(w.command("-c", tool.install+" && "+word+" run test"))
	if asked := r.paths(); err != nil || !strings.Contains(out, "tested") || !slices.Contains(asked, tarball) || leaks(asked) {
		t.Fatalf("%v, asked for %v\n%s", err, asked, out)
	}
	ours := tree(t, w.ws)
	cold(control)
	if out, err := plain(control, tool.install); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	// The same code reaches the registry where nothing confines it.
	if asked := r.paths(); !slices.Contains(asked, "/from-postinstall") || !slices.Contains(asked, "/from-root") {
		t.Errorf("control: the registry was asked for %v", asked)
	}
	theirs := tree(t, control)
	for name, text := range theirs {
		switch base := filepath.Base(name); {
		case base == "reached", base == ".modules.yaml", base == ".yarn-state.yml", base == ".yarn-integrity", base == "install-state.gz", strings.HasPrefix(base, ".pnpm-workspace-state"):
		case ours[name] != text:
			t.Errorf("%s: %q, %s by itself leaves %q", name, ours[name], tool.install, text)
		}
		delete(ours, name)
	}
	for name := range ours {
		t.Errorf("%s is not left by %s by itself", name, tool.install)
	}
	if tool.trap != nil {
		cold(w.ws)
		put(t, w.ws, tool.trap)
		out, err := start(w.command("-c", tool.install))
		if asked := r.paths(); !slices.Contains(asked, tarball) || leaks(asked) {
			t.Errorf("with code of the project: %v, asked for %v\n%s", err, asked, out)
		}
		cold(control)
		put(t, control, tool.trap)
		if out, err := plain(control, tool.install); !slices.Contains(r.paths(), "/from-evil") {
			t.Errorf("control of code of the project: %v\n%s", err, out)
		}
	}
	rows := append(slices.Clone(tool.asks), nodeTrap{"no lock", tool.file, "", "", ""}, nodeTrap{"a package in the words", "", "", "", tool.offers}, nodeTrap{"a registry in the words", "", "", "", tool.install + " --registry=http://127.0.0.1:1/"},
		nodeTrap{"a lock that the string writes", "", "", "", "echo >" + tool.file + "; " + tool.install}, nodeTrap{"code before it", "", "", "", "node -e 1 && " + tool.install})
	for _, row := range rows {
		cold(w.ws)
		path := filepath.Join(w.ws, row.file)
		switch have, err := os.ReadFile(path); {
		case row.file == "":
		case row.new == "":
			err = os.Remove(path)
			if err != nil {
				t.Fatal(err)
			}
		case row.old == "":
			put(t, w.ws, map[string]string{row.file: string(have) + row.new})
		case err != nil || !strings.Contains(string(have), row.old):
			t.Fatalf("%s: %v %s", row.name, err, have)
		default:
			put(t, w.ws, map[string]string{row.file: strings.ReplaceAll(string(have), row.old, row.new)})
		}
		cmd := row.cmd
		if cmd == "" {
			cmd = tool.install
		}
		if out, err := start(w.command("explain", "-o", "text", "-c", cmd)); !strings.HasPrefix(out, "CONFIRM") {
			t.Errorf("%s: %v\n%s", row.name, err, out)
		}
		if row.file != "" {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}
