package generate

import (
	"bytes"
	"compress/gzip"
	"io"
	"path/filepath"
	"sort"
	"strings"

	"github.com/atip-dev/atip-exec/internal/regular"
)

// maxPages bounds how many pages of one tool are read.
const maxPages = 300

// ManDirs are the directories where the pages of a program may lie: beside it, and
// where the system keeps them.
func ManDirs(programs ...string) []string {
	var out []string
	for _, p := range append(programs, "/usr/bin/x", "/usr/local/bin/x") {
		dir := filepath.Join(filepath.Dir(filepath.Dir(p)), "share", "man")
		if p != "" && !contains(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// Man reads the manual page of a tool, and the pages NAME-WORD that describe its
// commands. Nothing is started. ok is false if there is no page.
func Man(name string, dirs []string) (root Node, ok bool) {
	for _, dir := range dirs {
		for _, section := range [...]string{"1", "8"} {
			at := filepath.Join(dir, "man"+section)
			text, found := readPage(filepath.Join(at, name+"."+section))
			if !found {
				continue
			}
			page := readMan(text)
			root = Node{Help: page.help}
			root.Help.Framework = ""
			addPages(&root, name, at, section)
			return root, true
		}
	}
	return root, false
}

// addPages adds the commands that have a page of their own. A page belongs to a command
// if its synopsis says so: gcc-ar is a program, git-push is "git push".
func addPages(root *Node, name, dir, section string) {
	pages, _ := filepath.Glob(filepath.Join(dir, name+"-*."+section+"*"))
	sort.Strings(pages)
	for _, path := range pages[:min(len(pages), maxPages)] {
		base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".gz"), "."+section)
		text, found := readPage(filepath.Join(dir, base+"."+section))
		if !found {
			continue
		}
		page := readMan(text)
		words := commandWords(name, strings.TrimPrefix(base, name+"-"), page.synopsis)
		if len(words) == 0 || len(words) > maxLevels {
			continue
		}
		n := root
		for _, w := range words {
			n = n.kid(w)
		}
		n.Description, n.Help = page.help.Summary, page.help
	}
	root.Kids = sortedKids(root.Kids)
}

// kid finds or adds the command of that name.
func (n *Node) kid(name string) *Node {
	for i := range n.Kids {
		if n.Kids[i].Name == name {
			return &n.Kids[i]
		}
	}
	c := Command{Name: name}
	for _, have := range n.Help.Commands {
		if have.Name == name {
			c = have
		}
	}
	n.Kids = append(n.Kids, Node{Command: c})
	return &n.Kids[len(n.Kids)-1]
}

func sortedKids(kids []Node) []Node {
	sort.Slice(kids, func(i, j int) bool { return kids[i].Name < kids[j].Name })
	for i := range kids {
		kids[i].Kids = sortedKids(kids[i].Kids)
	}
	return kids
}

// commandWords splits the end of a page's name into the words under which the synopsis
// calls the command.
func commandWords(name, rest, synopsis string) []string {
	synopsis = " " + strings.Join(strings.Fields(synopsis), " ") + " "
	dashes := strings.Count(rest, "-")
	if dashes > 4 {
		return nil
	}
	for set := range 1 << dashes {
		b, n := []byte(rest), 0
		for i := range b {
			if b[i] == '-' {
				if set>>n&1 == 1 {
					b[i] = ' '
				}
				n++
			}
		}
		words := strings.Fields(string(b))
		good := len(words) > 0
		for _, w := range words {
			good = good && commandName(w)
		}
		if good && strings.Contains(synopsis, " "+name+" "+string(b)+" ") {
			return words
		}
	}
	return nil
}

// readPage reads a page, compressed or not, that is no more than a help may be.
func readPage(path string) (string, bool) {
	for _, file := range [...]string{path, path + ".gz"} {
		raw, err := regular.Read(file, maxText)
		if err != nil {
			continue
		}
		if strings.HasSuffix(file, ".gz") {
			z, err := gzip.NewReader(bytes.NewReader(raw))
			if err != nil {
				continue
			}
			if raw, err = io.ReadAll(io.LimitReader(z, maxText)); err != nil {
				continue
			}
		}
		if next, ok := strings.CutPrefix(string(raw), ".so "); ok {
			// An alias page; the other one lies in the same tree.
			next, _, _ = strings.Cut(next, "\n")
			next = filepath.Join(filepath.Dir(filepath.Dir(path)), filepath.Clean("/"+strings.TrimSpace(next)))
			if next != path && strings.Count(string(raw), ".so ") == 1 {
				if text, ok := readPage(next); ok && !strings.HasPrefix(text, ".so ") {
					return text, true
				}
			}
			continue
		}
		return string(raw), true
	}
	return "", false
}
