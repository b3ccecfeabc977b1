package gitrepo

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/internal/regular"
)

// Bounds of the refs of a repository.
const (
	maxPacked = 64 << 20
	maxLoose  = 1 << 15
)

// Refs are the references of a repository as they were at one moment.
type Refs struct {
	own    map[string]string // HEAD and others of the work tree, as they stand in their files
	all    map[string]string // full name → object id, or "ref: " and a name
	tables map[string]string // of a reftable, whose names are not read: file → digest
}

// Named reports whether the references are known by their names.
func (f *Refs) Named() bool { return f.tables == nil }

// pseudo are the names of single refs beside HEAD that a work tree has of its own.
var pseudo = [...]string{"HEAD", "FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "BISECT_HEAD"}

// ObjectID reports the whole name of an object.
func ObjectID(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}

// Refs reads all references. An error means that git may see others.
func (r Repository) Refs() (*Refs, error) {
	f := &Refs{own: map[string]string{}, all: map[string]string{}}
	for _, dir := range []string{r.Common, r.Dir} {
		list, ok := names(filepath.Join(dir, "reftable"))
		if !ok {
			return nil, fmt.Errorf("%s has more refs than are read", dir)
		}
		for _, name := range list {
			path := filepath.Join(dir, "reftable", name)
			raw, err := regular.ReadNoFollow(path, maxPacked)
			if err != nil {
				return nil, err
			}
			if f.tables == nil {
				f.tables = map[string]string{}
			}
			f.tables[path] = fmt.Sprintf("sha256:%x", sha256.Sum256(raw))
		}
	}
	raw, err := Read(filepath.Join(r.Common, "packed-refs"), maxPacked)
	if err != nil && !missing(err) {
		return nil, err
	}
	for line := range strings.Lines(string(raw)) {
		id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if line[0] != '#' && line[0] != '^' && ok && ObjectID(id) {
			f.all[name] = id
		}
	}
	dirs := []string{r.Common}
	if r.Dir != r.Common {
		dirs = append(dirs, r.Dir) // a work tree has refs of its own, as those of a bisection
	}
	left := maxLoose
	for _, dir := range dirs {
		if err := f.loose(dir, "refs", &left); err != nil {
			return nil, err
		}
	}
	for _, name := range pseudo {
		raw, err := regular.ReadNoFollow(filepath.Join(r.Dir, name), maxConfig)
		if err == nil {
			f.own[name] = string(raw)
		} else if !missing(err) {
			return nil, err
		}
	}
	return f, nil
}

// loose reads the refs that are files of their own.
func (f *Refs) loose(dir, name string, left *int) error {
	d, err := regular.OpenDir(filepath.Join(dir, name))
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	entries, err := d.ReadDir(*left + 1)
	d.Close()
	if *left -= len(entries); *left < 0 {
		return fmt.Errorf("%s has more refs than are read", dir)
	}
	if err != nil && len(entries) > 0 {
		return err
	}
	for _, e := range entries {
		sub := name + "/" + e.Name()
		switch {
		case e.IsDir():
			if err := f.loose(dir, sub, left); err != nil {
				return err
			}
		case strings.HasSuffix(sub, ".lock"):
		default:
			// A link, which git follows, is an error: what it leads to may be no ref.
			raw, err := regular.ReadNoFollow(filepath.Join(dir, sub), maxPointer)
			if missing(err) {
				continue
			}
			if err != nil {
				return err
			}
			f.all[sub] = strings.TrimRight(string(raw), " \t\r\n")
		}
	}
	return nil
}

// resolved follows symbolic refs from a name. names are those on the way, with what each
// holds; the last one has the object.
func (f *Refs) resolved(name string, into map[string]string) bool {
	for range 5 {
		value, ok := f.own[name]
		if ok {
			value, _, _ = strings.Cut(strings.TrimRight(value, "\r\n"), "\t")
			value, _, _ = strings.Cut(value, "\n")
		} else if value, ok = f.all[name]; !ok {
			return false
		}
		target, symbolic := strings.CutPrefix(value, "ref:")
		if !symbolic && !ObjectID(value) {
			return false // git calls it broken
		}
		into[name] = value
		if !symbolic {
			return true
		}
		name = strings.TrimLeft(target, " \t")
	}
	return false
}

// named adds each ref that a short name can mean (gitrevisions(7)).
func (f *Refs) named(name string, into map[string]string) (found bool) {
	for _, full := range []string{name, "refs/" + name, "refs/tags/" + name, "refs/heads/" + name, "refs/remotes/" + name, "refs/remotes/" + name + "/HEAD"} {
		if full == name && f.own[full] == "" && !strings.HasPrefix(full, "refs/") {
			continue
		}
		found = f.resolved(full, into) || found
	}
	return found
}

// matching adds the refs whose full name begins with before and ends with after.
func (f *Refs) matching(before, after string, into map[string]string) {
	for name := range f.all {
		if strings.HasPrefix(name, before) && strings.HasSuffix(name, after) && len(name) >= len(before)+len(after) {
			f.resolved(name, into)
		}
	}
}

// ErrRevision says that a word of a push names what only git can find.
var ErrRevision = errors.New("only git finds out what it names; name a branch, a tag or the whole id of a commit")

// Push is what a push was told to send.
type Push struct {
	Specs        []string // its refspecs
	All, Mirror  bool
	Tags, Follow bool // --tags and --follow-tags
	Delete       bool
}

// Sent adds what a push sends: the refs and what each holds. A word that names none holds "".
func (f *Refs) Sent(p Push, into map[string]string) error {
	maps.Copy(into, f.tables)
	if !f.Named() {
		return nil // all of them count
	}
	if p.All {
		f.matching("refs/heads/", "", into)
	}
	if p.Mirror {
		f.matching("refs/", "", into)
	}
	if p.Tags || p.Follow {
		f.matching("refs/tags/", "", into)
	}
	if p.Delete {
		return nil // its words name what is at the other side
	}
	for i, spec := range p.Specs {
		if spec == "tag" && i+1 < len(p.Specs) {
			continue
		}
		if i > 0 && p.Specs[i-1] == "tag" {
			spec = "refs/tags/" + spec
		}
		if err := f.source(spec, into); err != nil {
			return fmt.Errorf("%s: %w", spec, err)
		}
	}
	return nil
}

func (f *Refs) source(spec string, into map[string]string) error {
	if strings.HasPrefix(spec, "^") {
		return nil // leaves refs out
	}
	source := strings.TrimPrefix(spec, "+")
	switch i := strings.LastIndexByte(source, ':'); { // the last one (refspec.c, parse_refspec)
	case source == ":":
		f.matching("refs/heads/", "", into) // those that both sides have
		return nil
	case i == 0:
		return nil // removes one at the other side
	case i > 0:
		source = source[:i]
	}
	if source == "@" {
		source = "HEAD"
	}
	if before, after, ok := strings.Cut(source, "*"); ok {
		f.matching(before, after, into)
		return nil
	}
	base := source
	if i := strings.IndexAny(source, "~^"); i > 0 {
		base = source[:i]
		f.matching("refs/replace/", "", into) // which decide on parents, too
	}
	switch {
	case strings.Contains(source, "@{"), strings.ContainsAny(source, ":\x00"):
		return ErrRevision
	case f.named(base, into):
	case ObjectID(base):
		into[base] = base
	case abbreviated(base):
		return ErrRevision
	default:
		into[base] = "" // git says that there is none
	}
	return nil
}

// abbreviated reports a word that git takes for the beginning of an object id, or for the output of
// git describe.
func abbreviated(word string) bool {
	if i := strings.LastIndex(word, "-g"); i >= 0 {
		word = word[i+2:]
	}
	return len(word) >= 4 && len(word) <= 64 && strings.Trim(word, "0123456789abcdefABCDEF") == ""
}

// packed writes the refs as git packs them; links are those that have no place there.
func (f *Refs) packed() (text string, links map[string]string) {
	names := make([]string, 0, len(f.all))
	links = map[string]string{}
	for name, value := range f.all {
		if ObjectID(value) {
			names = append(names, name)
		} else if strings.HasPrefix(value, "ref:") && filepath.IsLocal(name) {
			links[name] = value
		}
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("# pack-refs with: sorted \n")
	for _, name := range names {
		b.WriteString(f.all[name] + " " + name + "\n")
	}
	return b.String(), links
}

// freeze makes dir a git directory with these refs.
func (f *Refs) freeze(dir string, r Repository) error {
	text, links := f.packed()
	files := map[string]string{"packed-refs": text}
	maps.Copy(files, f.own)
	for name, value := range links {
		files[name] = value + "\n"
	}
	for name, value := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
			return err
		}
	}
	for _, sub := range []string{"refs", "logs/refs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	// Nothing of these is sent: --force-if-includes looks at the log of a branch, and a
	// `git status` beside the push at the rest.
	links = map[string]string{"logs/refs/heads": filepath.Join(r.Common, "logs/refs/heads")}
	for _, name := range []string{"logs/HEAD", "index", "rebase-merge", "rebase-apply", "sequencer", "MERGE_MSG", "BISECT_LOG"} {
		links[name] = filepath.Join(r.Dir, name)
	}
	for name, target := range links {
		if _, err := os.Lstat(target); err == nil {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Subject is the first line of the message of a commit or tag that is an object of its own, ""
// for others and for one that is not what its id says.
func (r Repository) Subject(id string) string {
	if !ObjectID(id) {
		return ""
	}
	raw, err := Read(filepath.Join(r.Common, "objects", id[:2], id[2:]), maxConfig)
	if err != nil {
		return ""
	}
	in, err := zlib.NewReader(bytes.NewReader(raw))
	if err != nil {
		return ""
	}
	object, err := io.ReadAll(io.LimitReader(in, maxConfig))
	sum := fmt.Sprintf("%x", sha1.Sum(object))
	if len(id) == 64 {
		sum = fmt.Sprintf("%x", sha256.Sum256(object))
	}
	if err != nil || sum != id || !bytes.HasPrefix(object, []byte("commit ")) && !bytes.HasPrefix(object, []byte("tag ")) {
		return ""
	}
	_, message, _ := strings.Cut(string(object), "\n\n")
	subject, _, _ := strings.Cut(message, "\n")
	return subject
}
