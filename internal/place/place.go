// Package place says what a path is on this machine: which class it belongs to,
// where the workspace is and which directories are ours.
package place

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// World is what must be known to classify paths. All paths are absolute; call
// Resolved once so that they can be compared with resolved paths.
type World struct {
	Workspace string // "" if there is none
	Home      string
	OtherHome string // what HOME says, if it is another directory
	Cwd       string
	Config    string // our own directories
	Data      string
	State     string
	Runtime   string
	Managed   string
	Programs  []string // the executables of this project
	TmpDirs   []string // besides /tmp, /var/tmp and /dev/shm
	GitDirs   []string // as FindWorkspace returned them
	// Detail asks for workspace-regenerable and workspace-tracked, which need
	// ignore files and the index; without it both are "workspace".
	Detail bool
	CI     bool // what a CI service runs is protected, too
}

// Resolved returns w with the links of all its paths resolved.
func (w World) Resolved() World {
	home, realHome, seen := w.Home, "", make(walk, 32)
	if home != "" {
		realHome = seen.resolve(home, "")
	}
	one := func(p string) string { return seen.below(p, home, realHome) }
	for _, p := range []*string{&w.Workspace, &w.OtherHome, &w.Cwd, &w.Config, &w.Data, &w.State, &w.Runtime, &w.Managed} {
		if *p != "" {
			*p = one(*p)
		}
	}
	for _, list := range []*[]string{&w.Programs, &w.TmpDirs, &w.GitDirs} {
		out := make([]string, 0, len(*list))
		for _, p := range *list {
			if p != "" {
				out = append(out, one(p))
			}
		}
		*list = out
	}
	w.Home = realHome
	return w
}

// Fill sets Abs and Class of a path resource. A relative value counts from
// chdir, itself relative to w.Cwd. A glob that names no file stands for its
// directory and everything below; a leading "~" counts as the home directory,
// because the program may expand what the shell did not.
func (w World) Fill(r *atip.Resource, chdir string) {
	if r.Kind != "path" || r.Value == "" || strings.IndexByte(r.Value, 0) >= 0 {
		return
	}
	base := w.Cwd
	if chdir != "" {
		base = w.from(base, chdir)
	}
	p := w.from(base, r.Value)
	if !filepath.IsAbs(p) {
		return
	}
	if parent, glob := globParent(p); glob {
		if _, err := os.Lstat(p); err != nil {
			p, r.Recursive = parent, true
		}
	}
	r.Abs = resolve(p, w.Cwd)
	r.Class = w.Classify(r.Abs, r.Access, r.Recursive)
}

// from joins without cleaning: in "link/.." the dots count from the link's target.
func (w World) from(base, value string) string {
	if strings.HasPrefix(value, "~") {
		if home, ok := w.tilde(value); ok {
			return home
		}
	}
	if rest, ok := ownDirectory(value); ok {
		return base + rest
	}
	if filepath.IsAbs(value) {
		return value
	}
	return base + string(filepath.Separator) + value
}

// ownDirectory is what follows the name by which each process finds its own directory:
// it leads where the command runs, not where this program does.
func ownDirectory(value string) (rest string, ok bool) {
	if !strings.HasPrefix(value, "/proc/") {
		return "", false
	}
	clean := value
	if !strings.Contains(value, "..") {
		clean = filepath.Clean(value) // dots count from where the link leads
	}
	for _, link := range [...]string{"/proc/self/cwd", "/proc/thread-self/cwd"} {
		if rest, ok = strings.CutPrefix(clean, link); ok && (rest == "" || rest[0] == filepath.Separator) {
			return rest, true
		}
	}
	return "", false
}

// tilde expands "~", "~/x" and "~user/x".
func (w World) tilde(value string) (string, bool) {
	name, rest, _ := strings.Cut(value[1:], "/")
	home := w.Home
	if name != "" {
		home = homeOf(func(user, _ string) bool { return user == name })
	}
	if home == "" {
		return "", false
	}
	return home + string(filepath.Separator) + rest, true
}

// globParent returns the directory that holds everything a glob can match.
func globParent(p string) (parent string, glob bool) {
	i := strings.IndexAny(p, "*?[")
	if i < 0 {
		return "", false
	}
	slash := strings.LastIndexByte(p[:i], filepath.Separator)
	if slash <= 0 {
		return string(filepath.Separator), true
	}
	return p[:slash], true
}

// Resolve returns p with the links of its longest existing prefix resolved, in
// the way the kernel walks it.
func Resolve(p string) string { return resolve(p, "") }

func resolve(p, known string) string { return walk(nil).resolve(p, known) }

// walk remembers what names are while many paths are resolved that begin alike, so that
// each is looked at once. The nil walk remembers nothing.
type walk map[string]look

type look struct{ link, missing bool }

func (w walk) lookAt(p string) (link, missing bool) {
	if l, ok := w[p]; ok {
		return l.link, l.missing
	}
	link, missing = lookAt(p)
	if w != nil {
		w[p] = look{link, missing}
	}
	return link, missing
}

// below is resolve for a path that probably lies below home: what is known of that,
// realHome, is not walked again.
func (w walk) below(p, home, realHome string) string {
	if realHome != "" && p != home && subpath.Within(p, home) {
		return w.resolve(join(realHome, rel(p, home)), realHome)
	}
	return w.resolve(p, "")
}

// resolve may start at known, a path without links, if p begins with it.
func (w walk) resolve(p, known string) string {
	const maxLinks = 40 // the kernel's MAXSYMLINKS
	if special, ok := standardStream(p); ok {
		return special
	}
	volume := filepath.VolumeName(p)
	cur, rest := volume+string(filepath.Separator), p[len(volume):]
	if len(known) > 1 && subpath.Within(p, known) {
		cur, rest = known, p[len(known):]
	}
	missing := false
	for links := 0; rest != ""; {
		var name string
		name, rest = cutComponent(rest)
		switch name {
		case "", ".":
			continue
		case "..":
			cur = filepath.Dir(cur)
			continue
		}
		next := join(cur, name)
		if missing {
			cur = next
			continue
		}
		if name == "exe" && ownProcess(cur) {
			cur = next // the executable of the process that opens it, which is not this one
			continue
		}
		link, gone := w.lookAt(next)
		switch {
		case gone:
			missing = true
		case link && links < maxLinks:
			if target, err := os.Readlink(next); err == nil {
				links++
				if filepath.IsAbs(target) {
					volume = filepath.VolumeName(target)
					cur, target = volume+string(filepath.Separator), target[len(volume):]
				}
				rest = target + string(filepath.Separator) + rest
				continue
			}
		}
		cur = next
	}
	return cur
}

// ownProcess reports whether dir is where /proc/self or /proc/thread-self leads in this process.
func ownProcess(dir string) bool {
	rest, ok := strings.CutPrefix(dir, "/proc/"+strconv.Itoa(os.Getpid()))
	if !ok {
		return false
	}
	if task, isTask := strings.CutPrefix(rest, "/task/"); isTask {
		return task != "" && strings.Trim(task, "0123456789") == ""
	}
	return rest == ""
}

func cutComponent(p string) (name, rest string) {
	for i := range len(p) {
		if os.IsPathSeparator(p[i]) {
			return p[:i], p[i+1:]
		}
	}
	return p, ""
}

func join(dir, name string) string {
	if os.IsPathSeparator(dir[len(dir)-1]) {
		return dir + name
	}
	return dir + string(filepath.Separator) + name
}

// standardStream keeps the names of the child's own descriptors: followed here,
// they would lead to ours.
func standardStream(p string) (string, bool) {
	switch p {
	case "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty":
		return p, true
	}
	for _, dir := range [...]string{"/dev/fd/", "/proc/self/fd/"} {
		if n, ok := strings.CutPrefix(p, dir); ok && n != "" && strings.Trim(n, "0123456789") == "" {
			return "/dev/fd/" + n, true
		}
	}
	return "", false
}

// rel returns p relative to dir, which holds it; "" for dir itself.
func rel(p, dir string) string {
	return strings.TrimLeft(p[len(dir):], string(filepath.Separator))
}
