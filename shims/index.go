package shims

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// IndexEntry is one tool of registry.json (ATIP 0.6 section 4.3).
type IndexEntry struct {
	Path         string    `json:"path"`
	Hash         string    `json:"hash"`
	Source       string    `json:"source"` // native, shim
	ShimRegistry string    `json:"shimRegistry,omitempty"`
	LastChecked  time.Time `json:"lastChecked"`
	Also         []string  `json:"x-atip-also,omitempty"` // other files of this name, later in PATH
}

// Index is registry.json, the list of tools that a scan found. It is for people and
// other programs: no command reads it, because the digest of a file is its key.
type Index struct {
	Tools map[string]IndexEntry
	rest  map[string]json.RawMessage // what other programs keep there
}

// maxIndex is far above 10,000 tools.
const maxIndex = 64 << 20

func (d Dirs) indexPath() string { return d.Data + "/registry.json" }

// ReadIndex reads registry.json. A missing file is an empty index.
func ReadIndex(d Dirs) (*Index, error) {
	x := &Index{Tools: map[string]IndexEntry{}, rest: map[string]json.RawMessage{}}
	path := d.indexPath()
	raw, err := readUpTo(path, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return x, nil
	}
	if err != nil {
		return nil, err
	}
	refuse := func(msg string, err error) error {
		return &Error{Code: errcode.MetadataStructure, File: path, Msg: msg, Err: err}
	}
	if err := json.Unmarshal(raw, &x.rest); err != nil {
		return nil, refuse("is no JSON object: "+err.Error(), err)
	}
	var version string
	if json.Unmarshal(x.rest["version"], &version) != nil || version != "2" && version != "1" {
		return nil, refuse("is of version "+string(x.rest["version"])+", this program keeps version 2", nil)
	}
	if tools := x.rest["tools"]; len(tools) > 0 && !bytes.Equal(tools, []byte("null")) {
		if err := json.Unmarshal(tools, &x.Tools); err != nil && version == "2" {
			return nil, refuse("has tools of another form: "+err.Error(), err)
		}
	}
	if version == "1" {
		// Names without digests: the files are looked at again.
		for name, e := range x.Tools {
			if e.Hash == "" {
				delete(x.Tools, name)
			}
		}
	}
	return x, nil
}

// UpdateIndex changes registry.json while no other update of it runs.
func UpdateIndex(d Dirs, agent string, change func(*Index)) error {
	path := d.indexPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return &Error{Code: errcode.MetadataUnsafe, File: path, Msg: "cannot be written: " + err.Error(), Err: err}
	}
	unlock, err := lockFile(path + ".lock")
	if err != nil {
		return &Error{Code: errcode.MetadataUnsafe, File: path + ".lock", Msg: "cannot be locked: " + err.Error(), Err: err}
	}
	defer unlock()
	x, err := ReadIndex(d)
	if err != nil {
		return err
	}
	change(x)
	for key, v := range map[string]any{"version": "2", "updated": time.Now().UTC().Truncate(time.Second), "agent": map[string]string{"name": "atip-exec", "version": agent}, "tools": x.Tools} {
		if x.rest[key], err = json.Marshal(v); err != nil {
			return &Error{Code: errcode.MetadataUnsafe, File: path, Msg: "cannot be written: " + err.Error(), Err: err}
		}
	}
	raw, err := json.MarshalIndent(x.rest, "", "  ")
	if err != nil {
		return &Error{Code: errcode.MetadataUnsafe, File: path, Msg: "cannot be written: " + err.Error(), Err: err}
	}
	return WriteFile(path, append(raw, '\n'))
}

// readUpTo is readSafe for files that may be larger than a document.
func readUpTo(path string, limit int64) ([]byte, error) {
	raw, _, err := readSafeUpTo(path, limit)
	return raw, err
}
