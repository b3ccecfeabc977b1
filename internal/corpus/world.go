package corpus

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/subpath"
)

// World is the place that the rows of the corpus speak of: a home with
// secrets and startup files, and in it a git work tree with a remote, ignored
// build directories and a little of every language. testdata/commands/README.md
// describes it.
type World struct {
	Home string
	Dir  string // the work tree
	root string
}

// Path is the PATH of the world: the tools that a small system has, one
// that nobody knows, and nothing of what else is installed here, so that a row means
// the same on every machine. What is missing is judged by its metadata.
func (w World) Path() string {
	return "/usr/bin:/bin:/usr/sbin:/sbin:" + filepath.Join(w.Home, ".local/bin")
}

// Environ is the environment of the world.
func (w World) Environ() []string {
	return []string{"HOME=" + w.Home, "PATH=" + w.Path(), "USER=agent", "LANG=C.UTF-8", "OSTYPE=linux-gnu"}
}

// NewWorld makes the world; Remove takes it away. It must not lie in a directory for
// temporary files: there everything may be written and deleted.
func NewWorld() (World, error) {
	var tried []string
	cache, _ := os.UserCacheDir()
	here, _ := os.Getwd()
	for _, parent := range []string{cache, here} {
		if parent == "" || underTmp(parent) || os.MkdirAll(parent, 0o755) != nil {
			tried = append(tried, parent)
			continue
		}
		root, err := os.MkdirTemp(parent, "atip-exec-corpus-")
		if err != nil {
			tried = append(tried, err.Error())
			continue
		}
		w := World{Home: filepath.Join(root, "home"), root: root}
		w.Dir = filepath.Join(w.Home, "work", "app")
		if err := w.fill(); err != nil {
			w.Remove()
			return World{}, err
		}
		return w, nil
	}
	return World{}, fmt.Errorf("no directory for the world of the corpus outside of those for temporary files: tried %s", strings.Join(tried, ", "))
}

// Remove deletes the world.
func (w World) Remove() error { return os.RemoveAll(w.root) }

func underTmp(dir string) bool {
	return slices.ContainsFunc([]string{"/tmp", "/var/tmp", "/dev/shm", os.TempDir()}, func(tmp string) bool { return subpath.Within(dir, tmp) })
}

func (w World) fill() error {
	for path, text := range files() {
		name := filepath.Join(w.Home, path)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), fileMode(text)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"config", "user.email", "a@example.com"},
		{"config", "user.name", "A"},
		{"remote", "add", "origin", "https://github.com/acme/app.git"},
		{"add", "."},
		{"commit", "-q", "-m", "start"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = w.Dir
		cmd.Env = []string{"HOME=" + w.Home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %v: %v: %s", args, err, out)
		}
	}
	return nil
}

// fileMode lets what begins as a script be started.
func fileMode(text string) os.FileMode {
	if strings.HasPrefix(text, "#!") {
		return 0o755
	}
	return 0o644
}

// files are the files of the world, relative to the home directory.
func files() map[string]string {
	files := map[string]string{
		".bashrc": "# rc\n", ".profile": "# profile\n", ".zshrc": "# zsh\n", "notes.txt": "note\n", "other/file.txt": "x\n", "work/lib/readme.txt": "lib\n",
		"work/lib/tool.sh": "#!/bin/sh\necho tool\n", ".local/bin/deployctl": "#!/bin/sh\necho deploy\n", "Desktop/todo.txt": "x\n",
		".claude/settings.json": "{}\n", ".config/agent-tools/notes": "",
	}
	for _, name := range []string{".ssh/id_rsa", ".ssh/id_ed25519", ".ssh/config", ".aws/credentials", ".aws/config", ".netrc", ".npmrc", ".pypirc", ".git-credentials",
		".vault-token", ".docker/config.json", ".kube/config", ".config/gh/hosts.yml", ".config/gcloud/credentials.db", ".azure/accessTokens.json", ".gnupg/secring.gpg"} {
		files[name] = "not a real secret\n"
	}
	app := map[string]string{
		"README.md": "# app\nhello\n", "LICENSE": "free\n", "go.mod": "module example.com/app\n\ngo 1.22\n", "main.go": "package main\n\nfunc main() {}\n", "internal/a.go": "package internal\n",
		"internal/keys.go": "package internal\n", "src/a": "a\n", "src/main.c": "int main(void){return 0;}\n", "src/main.cc": "int main(){return 0;}\n", "src/a.rs": "fn main(){}\n",
		"src/index.ts": "export const x = 1\n", "src/environment.ts": "export {}\n", "src/secrets.ts": "export {}\n", "src/token.ts": "export {}\n", "docs/guide.md": "# guide\n",
		"docs/env.md": "env\n", "docs/credentials.md": "names only\n", "id_rsa.pub.md": "how to\n", "tests/test_a.py": "def test_a(): pass\n", "tests/fixtures/pem.txt": "text\n",
		"data.csv": "a,b\n1,2\n", "data.json": `{"url":"x"}` + "\n", "config.yml": "a: 1\n", "list.txt": "README.md\nmain.go\n", "script.py": "print(1)\n", "app.py": "print(1)\n", "script.rb": "puts 1\n",
		"script.pl": "print 1;\n", "script.php": "<?php echo 1;\n", "script.lua": "print(1)\n", "index.js": "console.log(1)\n", "x.sh": "#!/bin/sh\necho x\n", "env.sh": "V=1\n",
		"Makefile": "all:\n\t@echo all\ntest:\n\t@echo test\nclean:\n\trm -rf build\n", "justfile": "build:\n\techo build\n", "Dockerfile": "FROM scratch\n", "docker-compose.yml": "services: {}\n",
		"package.json": `{"name":"app","version":"1.0.0","scripts":{"test":"node index.js","build":"tsc -p .","lint":"eslint src","clean":"rm -rf dist"}}` + "\n", "schema.sql": "drop table users;\n",
		"Cargo.toml": "[package]\nname=\"app\"\nversion=\"0.1.0\"\n", "main.tf": "# tf\n", "fix.patch": "", "app.db": "", "notes.md": "n\n", ".env.example": "A=b\n",
		"src/rm.c": "x\n", "rm.md": "x\n", "sub/f": "x\n", "k8s/deploy.yml": "kind: x\n", "blank.img": "x",
		".gitignore": "node_modules/\ndist/\nbuild/\ntarget/\nout/\n.env\n*.key\n*.pem\n", ".env": "A=b\n", "server.key": "no key\n", "certs/server.pem": "no key\n",
		"dist/bundle.js": "x\n", "dist/old/x": "x\n", "build/out.o": "x\n", "build/cache/x": "x\n", "build/obj/x": "x\n", "node_modules/left-pad/index.js": "x\n", "node_modules/rm/index.js": "x\n",
		"node_modules/.cache/x": "x\n", "target/x": "x\n", "out/a": "#!/bin/sh\necho a\n",
	}
	for name, text := range app {
		files["work/app/"+name] = text
	}
	return files
}

// Place puts the files of a row into the world and returns what takes them away.
func (w World) Place(r *Row) (func(), error) {
	var made []string
	undo := func() {
		for i := len(made) - 1; i >= 0; i-- {
			os.Remove(made[i])
		}
	}
	for name, text := range r.Files {
		path := filepath.Join(w.Dir, name)
		if !subpath.Within(path, w.Home) {
			return undo, fmt.Errorf("%s: file %s lies outside of the world", r.ID, name)
		}
		for dir := filepath.Dir(path); dir != w.Home; dir = filepath.Dir(dir) {
			if _, err := os.Lstat(dir); err == nil {
				break
			}
			defer func(dir string) { made = append([]string{dir}, made...) }(dir)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return undo, err
		}
		if _, err := os.Lstat(path); err == nil {
			return undo, fmt.Errorf("%s: file %s is there already", r.ID, name)
		}
		if err := os.WriteFile(path, []byte(text), fileMode(text)); err != nil {
			return undo, err
		}
		made = append(made, path)
	}
	return undo, nil
}
