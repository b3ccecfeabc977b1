package shims

import (
	"errors"
	"io/fs"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/shims/builtin"
)

// maxFile is the most that is read of a local document; a larger one is refused
// before any of it is read.
const maxFile = 4 << 20

// Lookup asks the sources in order. An error means that a file which a person
// wrote is broken or unsafe, and that the command must not run. A broken document
// that was fetched or probed makes the tool unknown instead, with a warning.
//
// No directory is listed and at most twelve files are opened, so the time does
// not depend on how many documents are installed.
func Lookup(q Query, d Dirs) (Found, error) {
	l := lookup{q: q, d: d}
	l.found.name = q.Effective
	l.found.Provenance = atip.Provenance{Channel: "none", Binding: "none", Source: "none"}
	if q.Digest != "" && !q.NameOnly && isDigest(q.Digest) {
		for _, tier := range [...]func(*lookup) (bool, error){(*lookup).overrides, (*lookup).native, (*lookup).byHash} {
			if done, err := tier(&l); err != nil {
				return Found{}, err
			} else if done {
				if e, ok := builtin.Find(q.Effective); ok {
					l.found.Lost = append(l.found.Lost, l.ofBuiltin(e))
				}
				l.last()
				return l.found, nil
			}
		}
	}
	// A registry is asked here once it exists: its answers are stored under
	// shims/sha256 and found by byHash, so this function opens no connection.
	if err := l.byName(); err != nil {
		return Found{}, err
	}
	l.last()
	return l.found, nil
}

type lookup struct {
	q     Query
	d     Dirs
	found Found
	// planted is a native document without our side file: it counts as written
	// by the user, below the builtin table.
	planted     *atip.Document
	plantedFrom atip.Provenance
	// inferred is a generated document about these bytes. It knows danger by words
	// only, so that every other source goes first (tier 9).
	inferred     *atip.Document
	inferredFrom atip.Provenance
}

// setAside keeps an inferred document for the end.
func (l *lookup) setAside(doc *atip.Document, from atip.Provenance) bool {
	if !doc.Inferred() {
		return false
	}
	if l.inferred == nil {
		l.inferred, l.inferredFrom = doc, from
	}
	return true
}

// last takes the inferred document if there is no other.
func (l *lookup) last() {
	switch {
	case l.inferred == nil:
	case l.found.Document == nil && l.found.Warnings == nil:
		l.found.Document, l.found.Provenance = l.inferred, l.inferredFrom
	default:
		l.found.Lost = append(l.found.Lost, l.inferredFrom)
	}
}

// overrides asks the administrator's and then the user's override (tiers 1, 2).
func (l *lookup) overrides() (bool, error) {
	for _, t := range [...]struct {
		dir string
		cap atip.Rank
	}{{l.d.Managed, atip.Vendor}, {l.d.Config, atip.Org}} {
		if t.dir == "" {
			continue
		}
		f := file{here: true, path: t.dir + "/overrides/sha256/" + l.q.Digest + ".json", comments: true, hash: l.q.Digest}
		if done, err := l.take(f, "override", "hash", t.cap); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// native asks for the tool's own answer to --agent (tier 3).
func (l *lookup) native() (bool, error) {
	if l.d.Data == "" {
		return false, nil
	}
	top := atip.User
	switch {
	case l.d.CallerSupplied:
	case l.q.Verified:
		top = atip.Vendor
	case l.q.Believed:
		top = atip.Org
	}
	paths := []string{l.d.Data + "/tools/sha256-" + l.q.Digest + ".json"}
	if isName(l.q.Effective) {
		paths = append(paths, l.d.Data+"/tools/"+l.q.Effective+"-"+l.q.Digest+".json")
	}
	for _, path := range paths {
		f := file{here: true, path: path, hash: l.q.Digest}
		err := f.read(l.d.Index)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		meta := f.meta()
		if err != nil {
			return l.broken(f.path, err, meta.exists)
		}
		doc, err := f.parse()
		if err != nil {
			return l.broken(f.path, err, meta.exists)
		}
		p := provenance(doc, &f, "native", "hash", top)
		p.Stale = meta.stale
		if l.setAside(doc, p) {
			continue
		}
		if !meta.intact {
			p.Channel, p.Rank = "user", min(p.Rank, atip.User)
			l.planted, l.plantedFrom = doc, p
			return false, nil
		}
		l.found.Document, l.found.Provenance = doc, p
		return true, l.raiseNative()
	}
	return false, nil
}

// raiseNative joins in the administrator's shim for the same digest: a native
// document is the tool speaking about itself.
func (l *lookup) raiseNative() error {
	native := l.found
	done, err := l.byHash()
	raise := l.found
	l.found = native
	if err != nil || !done {
		return err
	}
	if raise.Document != nil && raise.Provenance.Rank >= atip.Org {
		l.found.Raise, l.found.raiseFrom = raise.Document, raise.Provenance
	}
	l.found.Lost = append(l.found.Lost, raise.Provenance)
	return nil
}

// byHash asks for a shim of exactly this file (tier 4). A signature beside it
// would raise its rank; unsigned it is the user's, or the administrator's if
// nobody but root can write it.
func (l *lookup) byHash() (bool, error) {
	name := "/shims/sha256/" + l.q.Digest + ".json"
	dirs := make([]string, 0, 1+maxDataDirs)
	if l.d.Data != "" {
		dirs = append(dirs, l.d.Data)
	}
	dirs = append(dirs, l.d.DataDirs[:min(len(l.d.DataDirs), maxDataDirs)]...)
	for i, dir := range dirs {
		f := file{here: true, path: dir + name, hash: l.q.Digest, hashNeeded: true}
		err := f.read(l.d.Index)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		meta := f.meta()
		if err != nil {
			return l.broken(f.path, err, meta.exists)
		}
		doc, err := f.parse()
		if err != nil {
			return l.broken(f.path, err, meta.exists)
		}
		top, own := atip.User, i == 0 && l.d.Data != ""
		if !own && f.rootOwned && !l.d.CallerSupplied {
			top = atip.Org
		}
		p := provenance(doc, &f, "shim", "hash", top)
		p.Stale = meta.stale
		if l.setAside(doc, p) {
			continue
		}
		l.found.Document, l.found.Provenance = doc, p
		return true, nil
	}
	return false, nil
}

// byName asks the embedded table and the user's documents by name (tiers 6, 7).
func (l *lookup) byName() error {
	if err := l.builtin(); err != nil {
		return err
	}
	user, from := l.planted, l.plantedFrom
	if l.d.Data != "" && isName(l.found.name) {
		for _, f := range [...]file{
			{here: true, path: l.d.Data + "/shims/" + l.found.name + ".json", comments: true, byName: true, hash: l.q.Digest},
			{here: true, path: l.d.Data + "/tools/" + l.found.name + ".json", byName: true, hash: l.q.Digest},
		} {
			err := f.read(l.d.Index)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			var doc *atip.Document
			if err == nil {
				doc, err = f.parse()
			}
			if errors.Is(err, errOtherHash) {
				continue
			}
			if err != nil {
				return asError(f.path, err)
			}
			user, from = doc, provenance(doc, &f, "user", "name", atip.User)
			break
		}
	}
	switch {
	case user == nil:
	case l.found.Document == nil:
		l.found.Document, l.found.Provenance = user, from
	default:
		l.found.Raise, l.found.raiseFrom = user, from
		l.found.Lost = append(l.found.Lost, from)
	}
	return nil
}

// builtin asks the embedded table. A file whose own name is unknown there may be
// one program with many names, or be reached by a link that the administrator made.
func (l *lookup) builtin() error {
	name := l.q.Effective
	if l.q.Invoked != name && applet(name, l.q.Invoked) {
		if _, ok := builtin.Find(l.q.Invoked); ok {
			name = l.q.Invoked
		}
	}
	e, ok := builtin.Find(name)
	if !ok && l.q.Borrow != "" && l.q.Borrow != name {
		if e, ok = builtin.Find(l.q.Borrow); ok {
			name = l.q.Borrow
		}
	}
	if !ok {
		return nil
	}
	l.found.name = name
	doc, err := e.Parse()
	if err != nil {
		return inFile("builtin:"+e.Name, err)
	}
	l.found.Document, l.found.Provenance = doc, l.ofBuiltin(e)
	return nil
}

// ofBuiltin believes a curated document about a program only as far as the file is
// believed to be that program.
func (l *lookup) ofBuiltin(e builtin.Entry) atip.Provenance {
	rank := atip.User
	if l.q.Verified || l.q.Believed {
		rank = atip.Org
	}
	return atip.Provenance{Channel: "builtin", Rank: rank, Binding: "name", Source: "builtin:" + e.Name, Digest: e.Digest}
}

// take reads f as the deciding source if it exists. Its author is a person, so a
// broken file is an error.
func (l *lookup) take(f file, channel, binding string, top atip.Rank) (bool, error) {
	err := f.read(l.d.Index)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var doc *atip.Document
	if err == nil {
		doc, err = f.parse()
	}
	if err != nil {
		return false, asError(f.path, err)
	}
	p := provenance(doc, &f, channel, binding, top)
	if l.setAside(doc, p) {
		return false, nil
	}
	l.found.Document, l.found.Provenance = doc, p
	return true, nil
}

// broken ends the search: no lower source is asked about a tool whose document
// exists. A person's mistake is an error; a fetched document is nobody's, so the
// tool becomes unknown.
func (l *lookup) broken(path string, err error, fetched bool) (bool, error) {
	if !fetched {
		return false, asError(path, err)
	}
	w := asError(path, err).Error()
	l.found.Document = nil
	l.found.Provenance = atip.Provenance{Channel: "none", Binding: "none", Source: "none", Warnings: []string{w}}
	l.found.Warnings = append(l.found.Warnings, w)
	return true, nil
}

func asError(path string, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return inFile(path, err)
}

// provenance bounds what a document declares about itself by what its place allows.
func provenance(doc *atip.Document, f *file, channel, binding string, top atip.Rank) atip.Provenance {
	rank := top
	if declared, ok := doc.DeclaredSource(); ok {
		rank = min(rank, declared)
	}
	if doc.Inferred() {
		channel, rank = "inferred", atip.Inferred
	}
	return atip.Provenance{Channel: channel, Rank: rank, Binding: binding, Source: channel + ":" + f.path, Digest: f.sum()}
}
