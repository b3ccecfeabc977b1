package remote

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/newfile"
	"github.com/atip-dev/atip-exec/shims"
)

// PublishOptions is what the manifest of a new registry says.
type PublishOptions struct {
	Name, URL         string
	RequireSignatures bool
	State             bool // also state what the folder holds, for 7 days
	Now               time.Time
}

// Upload is one document to publish.
type Upload struct {
	File   string
	Raw    []byte
	Bundle []byte // its signature, nil if there is none
}

// Published is what lies in the folder afterwards.
type Published struct {
	Dir    string   `json:"directory"`
	Added  []string `json:"added"`
	Total  int      `json:"total"`
	Tools  int      `json:"tools"`
	Signed int      `json:"signed"`
}

// Publish lays out a registry in a folder that any static server can serve: the
// documents byte for byte under their digests, a manifest, and a catalog of all that
// lies there. Nothing is written unless every document can be published.
func Publish(dir string, uploads []Upload, o PublishOptions) (Published, error) {
	p := Published{Dir: dir, Added: []string{}}
	targets := make([]string, len(uploads))
	for i, u := range uploads {
		target, err := acceptable(dir, u)
		if err != nil {
			return p, err
		}
		targets[i] = target
	}
	for i, u := range uploads {
		if err := putFile(targets[i], u.Raw); err != nil {
			return p, err
		}
		if u.Bundle != nil {
			if err := putFile(targets[i]+".bundle", u.Bundle); err != nil {
				return p, err
			}
		} else if err := os.Remove(targets[i] + ".bundle"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p, err
		}
		p.Added = append(p.Added, strings.TrimSuffix(filepath.Base(targets[i]), ".json"))
	}
	if err := p.catalog(dir, o.Now); err != nil {
		return p, err
	}
	url, err := writeManifest(dir, o)
	if err != nil {
		return p, err
	}
	if !o.State && !stated(dir) {
		return p, nil
	}
	return p, writeState(dir, url, o.Now)
}

// Acceptable says why a document cannot be published in a folder, nil if it can.
func Acceptable(dir string, u Upload) error {
	_, err := acceptable(dir, u)
	return err
}

func acceptable(dir string, u Upload) (target string, err error) {
	hex, err := publishable(u)
	if err != nil {
		return "", err
	}
	target = filepath.Join(documentDir(dir), hex+".json")
	if old, err := os.ReadFile(target); err == nil && !sameBinary(old, u.Raw) {
		return "", errcode.InFile(errcode.MetadataStructure, u.File, "the folder has a document of another program or version for the same file; binary.* never changes")
	}
	return target, nil
}

// publishable checks a document as a client will.
func publishable(u Upload) (hex string, err error) {
	for _, f := range atip.Validate(u.Raw, "") {
		if f.Severity == atip.SeverityError {
			return "", errcode.InFile(errcode.MetadataStructure, u.File, f.Message+" (at "+f.Pointer+")")
		}
	}
	d, err := atip.Parse(u.Raw, atip.ParseOptions{MaxBytes: maxShim})
	if err != nil {
		return "", errcode.InFile(errcode.MetadataStructure, u.File, err.Error())
	}
	hex, ok := Digest(d.BinaryHash())
	if !ok {
		return "", errcode.InFile(errcode.MetadataStructure, u.File, "binary.hash does not say which file it is for")
	}
	if _, err := shims.Admit(u.Raw, hex, true); err != nil {
		return "", errcode.InFile(errcode.MetadataStructure, u.File, err.Error())
	}
	if d.Name() == "" || d.Version() == "" {
		return "", errcode.InFile(errcode.MetadataStructure, u.File, "binary.name and binary.version are needed for the catalog")
	}
	return hex, nil
}

type catalogTool struct {
	Description string                       `json:"description,omitempty"`
	Homepage    string                       `json:"homepage,omitempty"`
	Versions    map[string]map[string]string `json:"versions"`
}

// catalog reads the folder, so that it lists what is there and not what was meant.
func (p *Published) catalog(dir string, now time.Time) error {
	list, err := Documents(dir)
	if err != nil {
		return err
	}
	tools := map[string]*catalogTool{}
	for _, stored := range list {
		hex, path := stored.Digest, stored.Path
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := shims.Admit(raw, hex, true); err != nil {
			return errcode.InFile(errcode.MetadataStructure, path, err.Error())
		}
		var doc struct {
			Description, Homepage, Name, Version string
			Binary                               struct{ Name, Version, Platform string }
		}
		if err := json.Unmarshal(raw, &doc); err != nil {
			return errcode.InFile(errcode.MetadataStructure, path, err.Error())
		}
		name, version, platform := cmp.Or(doc.Binary.Name, doc.Name), cmp.Or(doc.Binary.Version, doc.Version), cmp.Or(doc.Binary.Platform, "any")
		t := tools[name]
		if t == nil {
			t = &catalogTool{Versions: map[string]map[string]string{}}
			tools[name] = t
		}
		t.Description, t.Homepage = cmp.Or(doc.Description, t.Description), cmp.Or(doc.Homepage, t.Homepage)
		if t.Versions[version] == nil {
			t.Versions[version] = map[string]string{}
		}
		// Two builds of one version for one platform: the catalog can name one of them.
		if old := t.Versions[version][platform]; old == "" || old > "sha256:"+hex {
			t.Versions[version][platform] = "sha256:" + hex
		}
		p.Total++
		if _, err := os.Stat(path + ".bundle"); err == nil {
			p.Signed++
		}
	}
	p.Tools = len(tools)
	raw, err := json.MarshalIndent(map[string]any{"version": "1", "updated": now.UTC().Truncate(time.Second), "tools": tools, "totalShims": p.Total}, "", "  ")
	if err != nil {
		return err
	}
	return putFile(filepath.Join(dir, "shims", "index.json"), append(raw, '\n'))
}

// writeManifest keeps what a person added to a manifest that is there.
func writeManifest(dir string, o PublishOptions) (url string, err error) {
	path := filepath.Join(dir, filepath.FromSlash(manifestPath))
	doc := map[string]any{}
	if raw, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(raw, &doc); err != nil {
			return "", errcode.InFile(errcode.MetadataStructure, path, "is not JSON: "+err.Error())
		}
	}
	m := defaultManifest()
	doc["atip"] = map[string]any{"version": "0.6"}
	doc["endpoints"] = map[string]any{"shims": m.shims, "signatures": m.signatures, "catalog": m.catalog}
	registry, _ := doc["registry"].(map[string]any)
	if registry == nil {
		registry = map[string]any{}
	}
	registry["type"], registry["version"] = "static", o.Now.UTC().Format("2006.01.02")
	for key, value := range map[string]string{"name": o.Name, "url": o.URL} {
		if value != "" {
			registry[key] = value
		}
	}
	doc["registry"] = registry
	trust, _ := doc["trust"].(map[string]any)
	if trust == nil {
		trust = map[string]any{"requireSignatures": false}
	}
	if o.RequireSignatures {
		trust["requireSignatures"] = true
	}
	doc["trust"] = trust
	raw, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return "", err
	}
	url, _ = registry["url"].(string)
	return url, putFile(path, append(raw, '\n'))
}

// putFile replaces a file in one step, readable by whoever serves it.
func putFile(path string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return newfile.Replace(path, raw, 0o644)
}

// Uploads finds the documents below the files and directories named, with the
// signatures that lie beside them.
func Uploads(paths []string) ([]Upload, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".json") && e.Type().IsRegular() {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
	}
	sort.Strings(files)
	var out []Upload
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Size() > maxShim {
			return nil, errcode.InFile(errcode.MetadataStructure, file, "is not a regular file of at most 1 MiB")
		}
		u := Upload{File: file}
		if u.Raw, err = os.ReadFile(file); err != nil {
			return nil, err
		}
		if u.Bundle, err = os.ReadFile(file + ".bundle"); errors.Is(err, fs.ErrNotExist) {
			u.Bundle = nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}
