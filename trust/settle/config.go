// Package settle says what is known of a subject's evidence before anything is decided: from
// the verdict cache, or by asking the verifier, which is a program of its own. It links no
// cryptography beyond digests, so that a command on its way pays for none. trust.md
// sections 3, 4 and 7.
package settle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// Dirs are the trust directories: of the administrator and of the user. Key paths in signers
// are relative to the one that names them.
type Dirs struct {
	Managed string
	User    string
}

// Stated is what the policies say of evidence, merged.
type Stated struct {
	Signers          []signer.Signer
	Filters          [][]signer.Signer
	Builders         []signer.Builder
	Revoked          []signer.Revocation
	MinimumSLSALevel int
	MaxRootAge       time.Duration
	Distro           string // off, cached, db, chain; "" is cached
	Recheck          string
	ExpectationsOff  bool
}

// Config is the trust configuration of this machine, read: keys are in it, not their paths.
type Config struct {
	Signers []signer.Signer
	Filters [][]signer.Signer
	Roots   []request.Root
	// Warnings name entries that match nothing.
	Warnings []string
	// Files lists what was read, signers and roots, for people.
	Files []File
}

// File is one file of a trust directory.
type File struct {
	Kind    string `json:"kind"` // signer, root
	Name    string `json:"name"`
	Layer   string `json:"layer"` // managed, user
	Path    string `json:"path"`
	SHA256  string `json:"sha256"`
	Profile string `json:"profile,omitempty"`

	Fetched time.Time       `json:"fetched,omitzero"`
	Signers []signer.Signer `json:"signers,omitempty"`
}

// Limits of trust files.
const (
	maxSigners = 256 << 10
	maxKey     = 1 << 20
	maxFiles   = 256
)

// Load reads the trust directories and the keys that policies name. Errors are *shims.SettingsError: nothing is believed
// on account of such a file, and nothing runs until it is corrected.
func Load(d Dirs, stated Stated) (*Config, error) {
	c := &Config{}
	for i, dir := range [...]string{d.Managed, d.User} {
		if dir == "" {
			continue
		}
		if err := c.signers(dir, i == 0); err != nil {
			return nil, err
		}
		if err := c.roots(dir, i == 0); err != nil {
			return nil, err
		}
	}
	embedded := request.Root{Name: signer.DefaultRoot, Managed: true}
	for _, r := range c.Roots {
		embedded.Shadowed = embedded.Shadowed || r.Name == embedded.Name
	}
	c.Roots = append(c.Roots, embedded)
	c.Signers = append(c.Signers, stated.Signers...)
	c.Filters = append(c.Filters, stated.Filters...)
	if err := c.keys(d, c.Signers); err != nil {
		return nil, err
	}
	for _, list := range c.Filters {
		if err := c.keys(d, list); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Extra reads the keys of more signers, as a registry's entry has them.
func (c *Config) Extra(d Dirs, list []signer.Signer) ([]signer.Signer, error) {
	out := append([]signer.Signer{}, list...)
	return out, c.keys(d, out)
}

// names lists the NAME.json of a directory, without those of the form NAME.meta.json.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &shims.SettingsError{Code: errcode.TrustConfig, File: dir, Msg: err.Error()}
	}
	var out []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || strings.HasSuffix(name, ".meta") || !signer.IsName(name) {
			continue
		}
		if len(out) == maxFiles {
			return nil, &shims.SettingsError{Code: errcode.TrustConfig, File: dir, Msg: "has more than 256 files"}
		}
		out = append(out, name)
	}
	return out, nil
}

// read reads a file that only this user and root can have written.
func read(file string, limit int64) ([]byte, error) {
	raw, err := shims.ReadOwned(file, limit)
	if err == nil {
		return raw, nil
	}
	msg := err.Error()
	var unsafe *shims.Error
	if errors.As(err, &unsafe) {
		msg = unsafe.Msg
	}
	if errors.Is(err, fs.ErrNotExist) {
		msg = "is not there"
	}
	return nil, &shims.SettingsError{Code: errcode.TrustConfig, File: file, Msg: msg}
}

func layer(managed bool) string {
	if managed {
		return "managed"
	}
	return "user"
}

func (c *Config) signers(dir string, managed bool) error {
	list, err := names(filepath.Join(dir, "signers"))
	if err != nil {
		return err
	}
	for _, name := range list {
		file := filepath.Join(dir, "signers", name+".json")
		raw, err := read(file, maxSigners)
		if err != nil {
			return err
		}
		signers, warnings, err := ParseSigners(file, raw, name, managed)
		if err != nil {
			return err
		}
		c.Signers = append(c.Signers, signers...)
		c.Warnings = append(c.Warnings, warnings...)
		c.Files = append(c.Files, File{Kind: "signer", Name: name, Layer: layer(managed), Path: file, SHA256: sum(raw), Signers: signers})
	}
	return nil
}

// ParseSigners reads one file of signers: an entry, or a list of them.
func ParseSigners(file string, raw []byte, name string, managed bool) ([]signer.Signer, []string, error) {
	root, err := atip.ParseTree(raw, atip.ParseOptions{Comments: true, MaxBytes: maxSigners})
	if err != nil {
		e := &shims.SettingsError{Code: errcode.TrustConfig, File: file, Msg: err.Error()}
		var doc *atip.DocError
		if errors.As(err, &doc) {
			e.Line, e.Col, e.Msg = doc.Line, doc.Col, doc.Msg
		}
		return nil, nil, e
	}
	signers, warnings, err := signer.Parse(root, signer.Options{Name: name, Managed: managed})
	if err != nil {
		e := &shims.SettingsError{Code: errcode.TrustConfig, File: file, Msg: err.Error()}
		var at *signer.NodeError
		if errors.As(err, &at) {
			e.Line, e.Col = at.Position()
		}
		return nil, nil, e
	}
	return signers, warnings, nil
}

func (c *Config) roots(dir string, managed bool) error {
	list, err := names(filepath.Join(dir, "roots"))
	if err != nil {
		return err
	}
	for _, name := range list {
		file := filepath.Join(dir, "roots", name+".json")
		raw, err := read(file, request.MaxRoot)
		if err != nil {
			return err
		}
		r := request.Root{Name: name, Data: raw, Managed: managed}
		side := filepath.Join(dir, "roots", name+".meta.json")
		if _, err := os.Lstat(side); err == nil {
			text, err := read(side, 64<<10)
			if err != nil {
				return err
			}
			var m struct {
				Fetched time.Time `json:"fetched"`
				SHA256  string    `json:"sha256"`
				Profile string    `json:"profile"`
			}
			if err := json.Unmarshal(text, &m); err != nil {
				return &shims.SettingsError{Code: errcode.TrustConfig, File: side, Msg: err.Error()}
			}
			if m.SHA256 != "" && m.SHA256 != sum(raw) {
				return &shims.SettingsError{Code: errcode.TrustConfig, File: side, Msg: "sha256 is not that of " + file}
			}
			r.Fetched, r.Profile = m.Fetched, m.Profile
		}
		for i := range c.Roots {
			// The administrator's wins over the user's of the same name.
			r.Shadowed = r.Shadowed || c.Roots[i].Name == name
		}
		c.Roots = append(c.Roots, r)
		c.Files = append(c.Files, File{Kind: "root", Name: name, Layer: layer(managed), Path: file, SHA256: sum(raw), Profile: r.Profile, Fetched: r.Fetched})
	}
	return nil
}

func (c *Config) keys(d Dirs, list []signer.Signer) error {
	for i := range list {
		s := &list[i]
		path := s.Key + s.Keyring // an entry has one of them
		if path == "" || s.Material != nil {
			continue
		}
		if !filepath.IsAbs(path) {
			dir := d.User
			if s.Managed {
				dir = d.Managed
			}
			path = filepath.Join(dir, filepath.FromSlash(path))
		}
		raw, err := read(path, maxKey)
		if err != nil {
			e := err.(*shims.SettingsError)
			e.Msg += ", which the signer " + s.Name + " names"
			return e
		}
		s.Material = raw
	}
	return nil
}

func sum(raw []byte) string {
	h := sha256.Sum256(raw)
	return hex.EncodeToString(h[:])
}
