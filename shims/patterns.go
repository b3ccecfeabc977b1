package shims

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
)

// PatternFile is a file of patterns that belong to no tool.
type PatternFile struct {
	Path     string
	Rank     atip.Rank // how far its place allows to believe it
	Patterns []atip.Pattern
}

// PatternFiles reads the patterns directories: the administrator's, the user's
// configuration and data, and those of the system. What somebody could have fetched or
// dropped into the data directory is of rank user, and so is advice only.
func PatternFiles(d Dirs) ([]PatternFile, error) {
	var all []PatternFile
	type place struct {
		dir  string
		rank atip.Rank
		root bool // its rank only if nobody but root can write there
	}
	places := []place{{d.Managed, atip.Vendor, true}, {d.Config, atip.Org, false}, {d.Data, atip.User, false}}
	for _, dir := range d.DataDirs {
		places = append(places, place{dir, atip.Org, true})
	}
	for _, p := range places {
		if p.dir == "" {
			continue
		}
		dir := p.dir + "/patterns"
		files, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, &Error{Code: errcode.MetadataUnsafe, File: dir, Msg: "cannot be listed: " + err.Error(), Err: err}
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), ".json") || f.IsDir() {
				continue
			}
			path := dir + "/" + f.Name()
			raw, rootOwned, err := readSafe(path)
			if err != nil {
				return nil, asError(path, err)
			}
			list, err := atip.ParsePatterns(raw)
			if err != nil {
				return nil, inFile(path, err)
			}
			rank := p.rank
			if p.root && !rootOwned {
				rank = atip.User
			}
			all = append(all, PatternFile{Path: path, Rank: rank, Patterns: list})
		}
	}
	return all, nil
}
