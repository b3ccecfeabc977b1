//go:build unix

package day

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// described are the files of testdata/world.txtar: those of each project and those of the home, by path.
func described() (projects map[string]map[string]string, home map[string]string, err error) {
	archive, err := txtar.ParseFile("testdata/world.txtar")
	if err != nil {
		return nil, nil, err
	}
	projects = map[string]map[string]string{}
	for _, f := range archive.Files {
		of, name, _ := strings.Cut(f.Name, "/")
		if projects[of] == nil {
			projects[of] = map[string]string{}
		}
		projects[of][name] = string(f.Data)
	}
	home = projects["home"]
	delete(projects, "home")
	if len(projects) == 0 || len(home) == 0 {
		return nil, nil, errors.New("testdata/world.txtar lacks projects or a home")
	}
	return projects, home, nil
}

// World is a home of its own with the projects in it. Rows are never run anywhere else.
type World struct {
	Home string
	kept string // the projects as each run finds them
	path string
	home map[string]string // files around the projects
}

// NewWorlds makes n worlds below dir, which must not be a directory for temporary files, under
// the default policy or the one in the text.
func NewWorlds(dir string, n int, policy string) ([]*World, error) {
	var worlds []*World
	for i := range n {
		w, err := NewWorld(dir, policy)
		if err == nil && i == 0 {
			err = w.warm()
		} else if err == nil {
			err = exec.Command("cp", "-a", filepath.Join(worlds[0].Home, ".cache"), w.Home).Run()
		}
		if err != nil {
			for _, w := range worlds {
				w.Remove()
			}
			return nil, err
		}
		worlds = append(worlds, w)
	}
	return worlds, nil
}

// NewWorld makes one world, without a build cache.
func NewWorld(dir, policy string) (*World, error) {
	projects, home, err := described()
	if err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp(dir, "atip-exec-day-")
	if err != nil {
		return nil, err
	}
	w := &World{Home: filepath.Join(root, "home"), kept: filepath.Join(root, "kept"), path: "/usr/bin:/bin:/usr/sbin:/sbin", home: home}
	if path, err := exec.LookPath("go"); err == nil {
		w.path = filepath.Dir(path) + ":" + w.path
	}
	if policy != "" {
		err = write(w.Home, map[string]string{".config/agent-tools/policy.json": policy})
	}
	if err == nil {
		err = w.fill(projects)
	}
	if err != nil {
		w.Remove()
		return nil, err
	}
	return w, nil
}

// Remove deletes the world. Go's module cache is read-only.
func (w *World) Remove() error {
	root := filepath.Dir(w.Home)
	if err := exec.Command("chmod", "-R", "u+w", root).Run(); err != nil {
		return err
	}
	return os.RemoveAll(root)
}

// Environ is the environment of the world.
func (w *World) Environ() []string {
	return []string{"HOME=" + w.Home, "PATH=" + w.path, "USER=agent", "LANG=C.UTF-8", "TERM=dumb"}
}

// Dir is where a project lies.
func (w *World) Dir(project string) string { return filepath.Join(w.Home, "work", project) }

// fill makes the home and the projects, with what a day finds there: history, a branch, what
// was installed, and a warm build cache.
func (w *World) fill(projects map[string]map[string]string) error {
	if err := os.MkdirAll(w.kept, 0o755); err != nil {
		return err
	}
	if err := write(w.Home, w.home); err != nil {
		return err
	}
	prepare := map[string]string{
		"web":  "npm install --offline --no-audit --no-fund --silent",
		"tool": "python3 -m venv --without-pip .venv",
	}
	for _, project := range slices.Sorted(maps.Keys(projects)) {
		if err := write(w.Dir(project), projects[project]); err != nil {
			return err
		}
		script := "set -e\n" + prepare[project] + `
git init -q -b main
git remote add origin https://git.example.invalid/acme/` + project + `.git
git add README.md && git commit -qm 'the first page'
git add -A && git commit -qm 'all of it'
git checkout -q -b feature
echo feature > FEATURE.md && git add FEATURE.md && git commit -qm 'a feature'
git checkout -q main
echo 'The end.' >> README.md && git commit -qam 'docs: the end'
`
		cmd := w.command(project, "bash", "-c", script)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("preparing %s: %v: %s", project, err, out)
		}
		if err := os.Rename(w.Dir(project), filepath.Join(w.kept, project)); err != nil {
			return err
		}
	}
	return w.Fresh()
}

// warm fills the build cache, so that no row pays for the standard library.
func (w *World) warm() error {
	if err := w.Fresh(); err != nil {
		return err
	}
	if out, err := w.command("api", "bash", "-c", "go vet ./... && go test ./... && go run . 1").CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %s", err, out)
	}
	return nil
}

// Fresh puts the home's files and these projects back as they were, all of them without a name.
func (w *World) Fresh(projects ...string) error {
	if len(projects) == 0 {
		kept, err := os.ReadDir(w.kept)
		if err != nil {
			return err
		}
		for _, e := range kept {
			projects = append(projects, e.Name())
		}
	}
	for _, project := range projects {
		if err := os.RemoveAll(w.Dir(project)); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(w.Dir(project)), 0o755); err != nil {
			return err
		}
		if out, err := exec.Command("cp", "-a", filepath.Join(w.kept, project), w.Dir(project)).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %s", err, out)
		}
	}
	return write(w.Home, w.home)
}

func (w *World) command(project string, argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = w.Dir(project), w.Environ()
	return cmd
}

// outside is what a row could have changed beside the projects: all that lies in the home and
// is no cache or state of ours.
func (w *World) outside() (string, error) {
	var out strings.Builder
	err := filepath.WalkDir(w.Home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name, _ := filepath.Rel(w.Home, path); name {
		case "work", ".cache", ".local", "go", ".npm", ".config/go", ".config/agent-tools":
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&out, path, info.Mode())
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out.Write(data)
		}
		return nil
	})
	return out.String(), err
}

// write writes files below dir; what begins as a script can be started.
func write(dir string, files map[string]string) error {
	for name, text := range files {
		path, mode := filepath.Join(dir, name), os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if strings.HasPrefix(name, ".ssh/") {
			mode = 0o600
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			return err
		}
	}
	return nil
}
