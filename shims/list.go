package shims

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/shims/builtin"
)

// Entry is one document that Lookup could find.
type Entry struct {
	Name        string    `json:"name"`
	Names       []string  `json:"names,omitempty"` // other file names it serves
	Version     string    `json:"version,omitempty"`
	Description string    `json:"description,omitempty"`
	Channel     string    `json:"channel"`
	Binding     string    `json:"binding"`
	Hash        string    `json:"hash,omitempty"` // of the executable, if bound by hash
	Rank        atip.Rank `json:"rank"`           // the most it can reach where it stands
	Source      string    `json:"source"`
	HasPatterns bool      `json:"hasPatterns,omitempty"`
	Problem     string    `json:"problem,omitempty"` // why it cannot be used
}

// List returns every document that Lookup could find, in the order of the
// sources. A document that cannot be used is listed with its problem.
func List(d Dirs) ([]Entry, error) {
	var all []Entry
	type place struct {
		dir, channel, binding string
		rank                  atip.Rank
		comments              bool
	}
	places := []place{
		{d.Managed, "override", "hash", atip.Vendor, true},
		{d.Config, "override", "hash", atip.Org, true},
		{d.Data, "native", "hash", atip.Vendor, false},
		{d.Data, "shim", "hash", atip.User, false},
	}
	for _, dir := range d.DataDirs {
		places = append(places, place{dir, "shim", "hash", atip.Org, false})
	}
	places = append(places, place{channel: "builtin"}, place{d.Data, "user", "name", atip.User, true})
	for _, p := range places {
		if p.channel == "builtin" {
			names := builtin.Names()
			for _, e := range builtin.All() {
				all = append(all, listed(e.Raw, Entry{Name: e.Name, Names: names[e.Name], Channel: "builtin", Binding: "name", Rank: atip.Org, Source: "builtin:" + e.Name}, false))
			}
			continue
		}
		if p.dir == "" {
			continue
		}
		dir := p.dir + map[string]string{"override": "/overrides/sha256", "native": "/tools", "shim": "/shims/sha256", "user": "/shims"}[p.channel]
		files, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return all, &Error{Code: errcode.MetadataUnsafe, File: dir, Msg: "cannot be listed", Err: err}
		}
		for _, f := range files {
			base, isDoc := strings.CutSuffix(f.Name(), ".json")
			if !isDoc || f.IsDir() {
				continue
			}
			path := dir + "/" + f.Name()
			e := Entry{Name: base, Channel: p.channel, Binding: p.binding, Rank: p.rank, Source: p.channel + ":" + path}
			if p.binding == "hash" && len(base) >= 64 {
				e.Hash = base[len(base)-64:]
			}
			raw, rootOwned, err := readSafe(path)
			if err != nil {
				e.Problem = err.Error()
				all = append(all, e)
				continue
			}
			switch {
			case p.channel == "native" && (d.CallerSupplied || !(&file{path: path, raw: raw}).meta().intact):
				e.Channel, e.Rank = "user", atip.User
			case p.channel == "shim" && p.rank == atip.Org && !rootOwned:
				e.Rank = atip.User
			}
			all = append(all, listed(raw, e, p.comments))
		}
	}
	return all, nil
}

// listed fills in what the document says about itself.
func listed(raw []byte, e Entry, comments bool) Entry {
	doc, err := atip.Parse(raw, atip.ParseOptions{Comments: comments, MaxBytes: maxFile})
	if err != nil {
		e.Problem = err.Error()
		return e
	}
	e.Version, e.Description = doc.Version(), doc.Description()
	e.HasPatterns = len(doc.Patterns()) > 0
	if n := doc.Name(); n != "" {
		e.Name = n
	}
	if declared, ok := doc.DeclaredSource(); ok {
		e.Rank = min(e.Rank, declared)
	}
	if doc.Inferred() {
		e.Channel, e.Rank = "inferred", atip.Inferred
	}
	return e
}

// Names returns the names of the tools that have metadata and begin as given, as far as no document
// must be opened for them: those that are built in, that are kept under a name, and that a scan found.
func Names(d Dirs, begun string) []string {
	var names []string
	add := func(name string) {
		if strings.HasPrefix(name, begun) {
			names = append(names, name)
		}
	}
	for _, e := range builtin.All() {
		add(e.Name)
	}
	if d.Data != "" {
		if dir, err := os.Open(d.Data + "/shims"); err == nil { // without it there are none
			// In pieces: the sorted list of ten thousand documents costs as much as a start.
			for err == nil {
				var files []os.DirEntry
				files, err = dir.ReadDir(256)
				for _, f := range files {
					if base, isDoc := strings.CutSuffix(f.Name(), ".json"); isDoc && !f.IsDir() {
						add(base)
					}
				}
			}
			dir.Close()
		}
		if index, err := ReadIndex(d); err == nil {
			for name := range index.Tools {
				add(name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
