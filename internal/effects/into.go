package effects

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// maxInto bounds the names that are tried in a directory that a command writes into.
const maxInto = 256

// into adds the protected names that a command changes by writing into a directory: "cp
// /x/.mise.toml ." writes ./.mise.toml, and "cp -r skel/. ." what lies in skel.
func (c *collector) into(s *step.Step) {
	base := subpath.Join(s.Cwd, s.Call.Chdir)
	for _, r := range slices.Clone(s.Call.Resources) {
		if r.Kind != "path" || r.Abs == "" || r.Recursive || r.Access&atip.AccessWrite == 0 {
			continue
		}
		if info, err := os.Stat(r.Abs); err != nil || !info.IsDir() {
			// A directory that is copied or renamed brings all of its names.
			c.protected(s, atip.Resource{Kind: "path", Value: r.Value, Access: r.Access, Recursive: c.bringsTree(s, r.Abs), Why: r.Why}, base)
			continue
		}
		list, all := c.brought(s, r.Abs, base)
		if !all {
			c.protected(s, atip.Resource{Kind: "path", Value: r.Value, Access: r.Access, Recursive: true, Why: r.Why}, base)
		}
		for _, path := range list {
			info, err := os.Stat(path)
			c.protected(s, atip.Resource{Kind: "path", Value: filepath.Join(r.Value, filepath.Base(path)), Access: r.Access, Recursive: err == nil && info.IsDir(), Why: r.Why}, base)
		}
	}
}

// protected adds a resource if it is a protected name.
func (c *collector) protected(s *step.Step, r atip.Resource, base string) {
	if c.place(c.site.World, &r, base); r.Class == atip.ClassStartup || r.Class == atip.ClassPolicySelf {
		if !slices.ContainsFunc(s.Call.Resources, func(have atip.Resource) bool {
			return have.Abs == r.Abs && have.Class == r.Class && have.Access == r.Access
		}) {
			s.Raise(r)
			s.Call.Resources = append(s.Call.Resources, r)
		}
	}
}

// bringsTree reports whether the command takes a directory to a path that is not there.
func (c *collector) bringsTree(s *step.Step, to string) bool {
	return slices.ContainsFunc(s.Call.Resources, func(r atip.Resource) bool {
		if r.Kind != "path" || r.Abs == to || r.Access&(atip.AccessRead|atip.AccessDelete) == 0 || r.Access&atip.AccessDelete == 0 && !r.Recursive {
			return false
		}
		info, err := os.Stat(r.Abs)
		return err == nil && info.IsDir()
	})
}

// brought are the paths that a command may put into the directory to: its words, and what lies
// in a directory whose content it takes. all is false if such a directory is not there yet.
func (c *collector) brought(s *step.Step, to, base string) (out []string, all bool) {
	all = true
	for _, w := range s.Argv[1:] {
		path := filepath.Clean(c.site.absolute(base, w))
		if strings.HasPrefix(w, "-") || strings.IndexByte(w, 0) >= 0 || path == to || len(out) >= maxInto {
			continue
		}
		last := filepath.Base(w)
		if strings.ContainsAny(w, "*?[") {
			found, _ := filepath.Glob(path)
			for _, name := range found[:min(len(found), maxInto)] {
				if strings.HasPrefix(last, ".") || !strings.HasPrefix(filepath.Base(name), ".") {
					out = append(out, name)
				}
			}
		}
		if last != "." && last != ".." && last != "/" {
			out = append(out, path)
			if !strings.HasSuffix(w, "/") {
				continue
			}
		}
		f, err := regular.OpenDir(path)
		if err != nil {
			all = false
			continue
		}
		names, _ := f.Readdirnames(maxInto)
		f.Close()
		for _, name := range names {
			out = append(out, filepath.Join(path, name))
		}
	}
	return out, all
}
