package settle

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/request"
)

// Evidence lies in files beside the documents, under the digest of the executable:
//
//	shims/sha256/HEX.json.bundle        signature of the document HEX.json
//	shims/sha256/HEX.tool.bundle        signature of the executable
//	shims/sha256/HEX.tool.intoto.jsonl  provenance of the executable

// evidenceFile reads a file of evidence, nil if there is none. One that is too large, or no
// regular file, is evidence that cannot be read, not none.
func evidenceFile(path string) []byte {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	f, err := openPlain(path, info)
	if err != nil {
		return []byte{0}
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, request.MaxBundle*4+1))
	if err != nil || len(raw) == 0 {
		return []byte{0}
	}
	return raw
}

// PartQuery is the query about one file of a chain, with the evidence that lies in the
// directories of metadata.
func PartQuery(d shims.Dirs, id trust.Identity, i int) Query {
	part := id.Chain[i]
	q := Query{Kind: "tool", Name: filepath.Base(part.Path), SHA256: part.Digest, Path: part.Path}
	if i == 0 {
		q.Name, q.Place = id.Effective, id.Place
	} else {
		q.Place = part.Path
	}
	if part.Digest == "" {
		return q
	}
	for _, dir := range append([]string{d.Data}, d.DataDirs...) {
		if dir == "" {
			continue
		}
		at := dir + "/shims/sha256/" + part.Digest
		if raw := evidenceFile(at + ".tool.bundle"); raw != nil {
			q.Signatures = append(q.Signatures, request.Signature{Format: "auto", Data: raw})
		}
		if raw := evidenceFile(at + ".tool.intoto.jsonl"); raw != nil {
			q.Provenance = append(q.Provenance, request.Signature{Format: "auto", Data: raw})
		}
		if q.Signatures != nil {
			break // the first directory that knows the file decides, as for documents
		}
	}
	return q
}

// ToolClaims is what a document says about the executable that it describes.
func ToolClaims(d *atip.Document) request.Claims {
	c := d.TrustClaims()
	return request.Claims{Checksum: c.Checksum, Type: c.Tool.Type, Provenance: c.Provenance}
}

// DocumentQuery is the query about a document that lies in a file. key is the digest by which
// it was found, "" if it was found by name; bundle is the signature, nil to look beside the
// file.
func DocumentQuery(d *atip.Document, path, sum, key string, bundle []byte) Query {
	c := d.TrustClaims()
	q := Query{Kind: "metadata", Name: d.Name(), SHA256: sum, Path: path, Claims: request.Claims{Type: c.Document.Type, SigConflict: c.Conflict}}
	if d.BinaryHash() != "" && key != "" {
		q.Claims.BinaryHash, q.Claims.LookupKey = d.BinaryHash(), key
	}
	if bundle == nil {
		bundle = evidenceFile(path + ".bundle")
	}
	if bundle != nil {
		sig := request.Signature{Format: "auto", Data: bundle}
		if c.Document.Type == "cosign" {
			sig.Hint = request.Hint{Identity: c.Document.Identity, Issuer: c.Document.Issuer}
		}
		q.Signatures = []request.Signature{sig}
	}
	return q
}

// The package database is slow to ask. An answer holds for a file as it is and for the
// database as it is: both are in the key.

// databases change their time whenever a package is installed or removed.
var databases = [...]string{"/var/lib/dpkg/status", "/var/lib/dpkg/info", "/var/lib/rpm", "/usr/lib/sysimage/rpm", "/lib/apk/db/installed", "/var/lib/pacman/local"}

// asksDistro reports whether the verifier is asked about the package of a file.
func (s *Session) asksDistro(q Query) bool {
	return q.Kind == "tool" && q.Path != "" && (q.Distro || s.Stated.Distro == "db" || s.Stated.Distro == "chain")
}

// distroCached reports whether an answer that a scan stored counts.
func (s *Session) distroCached(q Query) bool {
	if q.Kind != "tool" || q.Path == "" || s.Stated.Distro != "" && s.Stated.Distro != "cached" || s.State == "" || s.Nested {
		return false
	}
	if s.scanned == unknown {
		s.scanned = never
		if _, err := os.Stat(s.distroDir()); err == nil {
			s.scanned = once
		}
	}
	return s.scanned == once
}

// Whether a scan has stored anything: most machines ask for one directory and no more.
const (
	unknown = iota
	never
	once
)

func (s *Session) distroDir() string { return filepath.Join(s.State, "verdict", "distro") }

func (s *Session) distroPath(q Query) string {
	return filepath.Join(s.distroDir(), s.distroKey(q)+".json")
}

func (s *Session) distroKey(q Query) string {
	k := newKey()
	k.add("distro/1", q.Path, q.SHA256)
	printFile(k, q.Path)
	for _, path := range databases {
		if info, err := os.Stat(path); err == nil {
			dev, ino, mtime, ctime := identity(info)
			k.add(path, itoa(int(dev)), itoa(int(ino)), itoa(int(mtime)), itoa(int(ctime)))
		}
	}
	return k.sum()
}

// distro is the stored answer about a file.
func (s *Session) distro(q Query) trust.Distro {
	raw, ok := readOwn(s.distroPath(q))
	if !ok {
		return trust.DistroUnknown
	}
	var r record
	if json.Unmarshal(raw, &r) != nil || r.V != 1 {
		return trust.DistroUnknown
	}
	return r.Settled.Distro
}

// HasDistro reports whether an answer is stored for the file as it is.
func (s *Session) HasDistro(q Query) bool { return s.distro(q) != trust.DistroUnknown }

// KeepDistro stores an answer of the package database for later runs.
func (s *Session) KeepDistro(q Query, answer trust.Settled) {
	if answer.Distro == trust.DistroUnknown || s.State == "" || s.Nested {
		return
	}
	raw, err := json.Marshal(record{V: 1, Settled: trust.Settled{Distro: answer.Distro}})
	if err == nil && private(filepath.Join(s.State, "verdict")) && private(s.distroDir()) {
		_ = shims.WriteFile(s.distroPath(q), raw)
	}
}
