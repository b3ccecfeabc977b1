package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Stated lists the files of a folder that speak for the whole registry and are signed as such:
// its state and its policy, as far as they are there.
func Stated(dir string) []string {
	var out []string
	for _, path := range [...]string{statePath, "/policy.json"} {
		file := filepath.Join(dir, filepath.FromSlash(path))
		if _, err := os.Stat(file); err == nil {
			out = append(out, file)
		}
	}
	return out
}

// stated reports whether a folder has a state: one that is no longer renewed would make
// every client refuse what is new.
func stated(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(statePath)))
	return err == nil
}

// writeState states what the folder holds: the lists first, then the file that names
// them, so that who reads in between finds the old state or a list that does not fit.
func writeState(dir, url string, now time.Time) error {
	r := &Registry{}
	if why := r.setURL(url); why != "" {
		return errcode.InFile(errcode.MetadataStructure, dir, "a state names the address of its registry: "+why)
	}
	path := filepath.Join(dir, filepath.FromSlash(statePath))
	doc := map[string]any{}
	version := int64(0)
	if raw, err := os.ReadFile(path); err == nil {
		old, err := parseState(r, raw, now)
		if err == nil {
			version = old.version
			err = json.Unmarshal(raw, &doc)
		}
		if err != nil {
			return errcode.InFile(errcode.MetadataStructure, path, err.Error())
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lists, err := shardLists(dir)
	if err != nil {
		return err
	}
	shards := map[string]string{}
	for prefix, text := range lists {
		if err := putFile(filepath.Join(documentDir(dir), prefix+".list"), []byte(text)); err != nil {
			return err
		}
		shards[prefix] = sumOf([]byte(text))
	}
	if doc["revoked"] == nil {
		doc["revoked"] = map[string]any{"sha256": []string{}, "signers": []string{}}
	}
	now = now.UTC().Truncate(time.Second)
	doc["kind"], doc["registry"], doc["version"], doc["shards"] = stateKind, r.URL, version+1, shards
	doc["issued"], doc["expires"] = now.Format(time.RFC3339), now.Add(longest).Format(time.RFC3339)
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return putFile(path, append(raw, '\n'))
}

// shardLists has a line for each document, in lists by the first two digits.
func shardLists(dir string) (map[string]string, error) {
	list, err := Documents(dir)
	if err != nil {
		return nil, err
	}
	lists := map[string]string{}
	for _, stored := range list {
		raw, err := os.ReadFile(stored.Path)
		if err != nil {
			return nil, err
		}
		lists[stored.Digest[:2]] += fmt.Sprintf("%s %s 1\n", stored.Digest, sumOf(raw))
	}
	return lists, nil
}
