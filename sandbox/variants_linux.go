package sandbox

import (
	"cmp"
	"io/fs"
	"os"
	"strings"

	"github.com/atip-dev/atip-exec/internal/regular"
)

// maxListed bounds how many names of one directory are compared.
const maxListed = 4096

// variants are the names that are there and differ from a protected one by case alone. On
// the disk of a colleague, or of a container's host, they are the same name.
func (g *protection) variants() []string {
	listed, out := map[string]map[string][]string{}, []string(nil)
	for _, name := range g.Names {
		clean := strings.TrimSuffix(name, "/")
		root, rel, ok := g.locate(clean)
		if !ok {
			continue
		}
		found := []string{""}
		for part := range strings.SplitSeq(rel, "/") {
			folded, next := fold(part), []string(nil)
			for _, above := range found {
				for _, n := range g.folded(listed, root, above)[folded] {
					next = append(next, strings.TrimPrefix(above+"/"+n, "/"))
				}
			}
			found = next
		}
		for _, other := range found {
			if other != rel && !g.oneFile(root, rel, other) {
				out = append(out, g.Roots[root]+"/"+other+name[len(clean):])
			}
		}
	}
	return out
}

// fold makes names equal that a file system which ignores case takes for one.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// folded are the names in a directory by how they fold.
func (g *protection) folded(listed map[string]map[string][]string, root int, rel string) map[string][]string {
	key := g.Roots[root] + "/" + rel
	if names, ok := listed[key]; ok {
		return names
	}
	names := map[string][]string{}
	listed[key] = names
	at := rel
	at = cmp.Or(at, ".")
	if fi, err := g.roots[root].Lstat(at); err != nil || !fi.IsDir() {
		return names
	}
	f, err := regular.OpenDirIn(g.roots[root], at)
	if err != nil {
		return names
	}
	defer f.Close()
	list, _ := f.Readdirnames(maxListed)
	g.cut = g.cut || len(list) == maxListed
	for _, n := range list {
		names[fold(n)] = append(names[fold(n)], n)
	}
	return names
}

// oneFile reports whether two names lead to one file, as they do where case is ignored.
func (g *protection) oneFile(root int, a, b string) bool {
	one, err := g.roots[root].Lstat(a)
	if err != nil {
		return false
	}
	two, err := g.roots[root].Lstat(b)
	return err == nil && one.Mode()&fs.ModeSymlink == 0 && os.SameFile(one, two)
}
