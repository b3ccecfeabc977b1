package effects

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/internal/subpath"
)

// maxMadeLinks bounds how many links of one text are followed.
const maxMadeLinks = 16

// madeLink is a name that an earlier part of the text gave to what lies, or lay, elsewhere.
type madeLink struct {
	at, to string
	moved  bool // by mv: what is deleted there was not made there
}

// linked remembers what calls of ln and mv make, so that a later part of the text is
// judged by what it reaches through the new name: `mv src dist && rm -rf dist` does not
// delete what can be built again.
func (c *collector) linked(s *step.Step) {
	moves := s.Call.Tool == "mv" || s.Call.Tool == "git" && len(s.Call.Path) == 1 && s.Call.Path[0] == "mv"
	if !moves && s.Call.Tool != "ln" || c.ctx == nil || c.ctx.cwdUnknown || len(c.made) >= maxMadeLinks {
		return
	}
	dir := subpath.Join(s.Cwd, s.Call.Chdir)
	var words []string
	for _, p := range s.Call.Positionals {
		words = append(words, p.Value)
	}
	into := ""
	if named := step.OptionValues(s, "target-directory"); len(named) > 0 {
		into = named[0]
	} else if len(words) > 1 {
		into, words = words[len(words)-1], words[:len(words)-1]
	} else {
		into = "."
	}
	into = c.absolutePath(into, dir)
	aside := step.UsesOption(s, "no-target-directory", "no-dereference")
	for _, target := range words {
		if step.HasHole([]string{target, into}) || strings.Contains(target, "…") {
			continue
		}
		at := into
		if info, err := os.Stat(into); err == nil && info.IsDir() && !aside {
			at = filepath.Join(into, filepath.Base(target))
		}
		from := dir
		if step.UsesOption(s, "symbolic") {
			from = filepath.Dir(at)
		}
		c.made = append(c.made, madeLink{at, c.throughLinks(c.absolutePath(target, from)), moves})
	}
}

func (c *collector) absolutePath(path, dir string) string {
	return filepath.Clean(c.site.absolute(dir, path))
}

// throughLinks is where a path leads by the links that the text made itself; the
// latest counts.
func (c *collector) throughLinks(abs string) string {
	for range c.made {
		moved := false
		for i := len(c.made) - 1; i >= 0 && !moved; i-- {
			if l := c.made[i]; subpath.Within(abs, l.at) && !subpath.Within(l.to, l.at) {
				abs, moved = filepath.Join(l.to, strings.TrimPrefix(abs, l.at)), true
			}
		}
		if !moved {
			break
		}
	}
	return abs
}

// follow judges a path by where a link leads that the text made before.
func (c *collector) follow(fill func(*atip.Resource, string), r *atip.Resource, cwd string) {
	if len(c.made) == 0 || r.Value == "" {
		return
	}
	named := c.absolutePath(r.Value, cwd)
	refill := func(to string) {
		value := r.Value
		r.Value = to
		fill(r, cwd)
		r.Value = value
	}
	if r.Access&atip.AccessDelete != 0 {
		for _, l := range c.made {
			if l.moved && l.at != named && subpath.Within(l.at, named) && !subpath.Within(l.to, named) {
				refill(l.to)
				return
			}
		}
	}
	if r.Access&atip.AccessDelete != 0 && !r.Recursive && !strings.HasSuffix(r.Value, "/") {
		for _, l := range c.made {
			if l.at == named && !l.moved {
				return // the link itself goes
			}
		}
	}
	if to := c.throughLinks(named); to != named {
		refill(to)
	}
}
