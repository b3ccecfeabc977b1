package signer

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
)

// NodeError is what is wrong with an entry, and where.
type NodeError struct {
	Node *atip.Node
	Key  bool // the member's name is meant
	Msg  string
}

func (e *NodeError) Error() string { return e.Msg }

// Line and column of the error, counted from 1.
func (e *NodeError) Position() (line, col int) {
	if e.Key {
		return e.Node.KeyLine, e.Node.KeyCol
	}
	return e.Node.Line, e.Node.Col
}

// Options say how entries are read.
type Options struct {
	Name      string // where they stand, for reports
	Issuer    string // for entries that are a bare identity, as the RFC has them
	Managed   bool
	Restricts bool // the entries can only remove
}

// reading keeps the first thing that is wrong.
type reading struct{ err *NodeError }

func (r *reading) bad(n *atip.Node, format string, args ...any) {
	if r.err == nil {
		r.err = &NodeError{Node: n, Msg: fmt.Sprintf(format, args...)}
	}
}

func (r *reading) unknown(n *atip.Node, of string) {
	if r.err == nil && !strings.HasPrefix(n.Key, "x-") {
		r.err = &NodeError{Node: n, Key: true, Msg: fmt.Sprintf("unknown key %q in %s", n.Key, of)}
	}
}

func (r *reading) text(n *atip.Node) string {
	if n.Kind != atip.KindString || n.Text == "" {
		r.bad(n, "%s must be a string that is not empty", n.Key)
	}
	return n.Text
}

func (r *reading) boolean(n *atip.Node) bool {
	v, ok := n.Bool()
	if !ok {
		r.bad(n, "%s must be true or false", n.Key)
	}
	return v
}

func (r *reading) oneOf(n *atip.Node, words ...string) string {
	s := r.text(n)
	if !has(words, s) {
		r.bad(n, "%s must be one of %s, not %q", n.Key, strings.Join(words, ", "), s)
	}
	return s
}

func (r *reading) time(n *atip.Node) time.Time {
	t, err := time.Parse(time.RFC3339, r.text(n))
	if err != nil {
		r.bad(n, "%s must be a time such as 2026-01-31T00:00:00Z", n.Key)
	}
	return t
}

func (r *reading) texts(n *atip.Node, words ...string) []string {
	if n.Kind != atip.KindArray || len(n.Items) == 0 {
		r.bad(n, "%s must be a list of strings", n.Key)
	}
	var out []string
	for _, item := range n.Items {
		if item.Kind != atip.KindString || item.Text == "" || len(words) > 0 && !has(words, item.Text) {
			r.bad(item, "%s has an entry that it cannot have", n.Key)
		}
		out = append(out, item.Text)
	}
	return out
}

// done returns nil as an untyped error.
func (r *reading) done() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// Parse reads a list of signers strictly; a single entry stands for a list of one. Warnings
// name entries that match nothing. Errors are *NodeError.
func Parse(n *atip.Node, o Options) (list []Signer, warnings []string, err error) {
	var r reading
	items := []*atip.Node{n}
	if n.Kind == atip.KindArray {
		items = n.Items
	}
	for i, item := range items {
		s := r.one(item, o)
		if s.Name == "" {
			s.Name = o.Name
			if len(items) > 1 {
				s.Name = fmt.Sprintf("%s[%d]", o.Name, i)
			}
		}
		if item.Kind == atip.KindString && s.Issuer == "" && !o.Restricts {
			warnings = append(warnings, fmt.Sprintf("%s: the signer %q has no issuer and matches nothing", s.Name, s.Identity))
		}
		list = append(list, s)
	}
	return list, warnings, r.done()
}

func (r *reading) one(n *atip.Node, o Options) Signer {
	s := Signer{Managed: o.Managed, Restricts: o.Restricts}
	if n.Kind == atip.KindString {
		s.Type, s.Identity, s.Issuer = Cosign, n.Text, o.Issuer
		if n.Text == "" {
			r.bad(n, "a signer must not be empty")
		}
		return s
	}
	if n.Kind != atip.KindObject {
		r.bad(n, "a signer must be an object")
		return s
	}
	read := map[string]func(m *atip.Node){
		"type":     func(m *atip.Node) { s.Type = r.oneOf(m, Cosign, GPG, Minisign) },
		"identity": func(m *atip.Node) { s.Identity = r.text(m) },
		"identityPrefix": func(m *atip.Node) {
			if s.IdentityPrefix = r.text(m); !strings.HasSuffix(s.IdentityPrefix, "@") || len(s.IdentityPrefix) < 2 {
				r.bad(m, "identityPrefix must end in \"@\": what comes before it is compared whole")
			}
		},
		"identityPattern": func(m *atip.Node) {
			s.IdentityPattern = r.text(m)
			if _, err := Anchored(s.IdentityPattern); err != nil {
				r.bad(m, "%s", err)
			}
		},
		"issuer":             func(m *atip.Node) { s.Issuer = r.text(m) },
		"sourceRepository":   func(m *atip.Node) { s.SourceRepository = r.text(m) },
		"sourceRepositoryId": func(m *atip.Node) { s.SourceRepositoryID = r.text(m) },
		"sourceOwnerId":      func(m *atip.Node) { s.SourceOwnerID = r.text(m) },
		"anySource":          func(m *atip.Node) { s.AnySource = r.boolean(m) },
		"root": func(m *atip.Node) {
			if s.Root = r.text(m); !IsName(s.Root) {
				r.bad(m, "root must be the name of a root: letters, digits and . _ -")
			}
		},
		"tools":      func(m *atip.Node) { s.Tools = r.texts(m) },
		"vouchesFor": func(m *atip.Node) { s.VouchesFor = r.texts(m, Binary, Metadata) },
		"notBefore":  func(m *atip.Node) { s.NotBefore = r.time(m) },
		"notAfter":   func(m *atip.Node) { s.NotAfter = r.time(m) },
		"key":        func(m *atip.Node) { s.Key = r.file(m) },
		"keyid":      func(m *atip.Node) { s.KeyID = r.text(m) },
		"log":        func(m *atip.Node) { s.Log = r.oneOf(m, "required", "none") },
		"fingerprint": func(m *atip.Node) {
			s.Fingerprint = strings.ToLower(strings.ReplaceAll(r.text(m), " ", ""))
			if len(s.Fingerprint) != 40 && len(s.Fingerprint) != 64 || strings.Trim(s.Fingerprint, "0123456789abcdef") != "" {
				r.bad(m, "fingerprint must be the whole of it, 40 or 64 hexadecimal digits")
			}
		},
		"keyring": func(m *atip.Node) { s.Keyring = r.file(m) },
		"publicKey": func(m *atip.Node) {
			s.PublicKey = r.text(m)
			if raw, err := base64.StdEncoding.DecodeString(s.PublicKey); err != nil || len(raw) != 42 {
				r.bad(m, "publicKey must be the second line of a minisign public key file")
			}
		},
		"requireComment": func(m *atip.Node) { s.RequireComment = r.boolean(m) },
	}
	for _, m := range n.Items {
		if one, known := read[m.Key]; known {
			one(m)
		} else {
			r.unknown(m, "a signer")
		}
	}
	r.whole(n, &s)
	return s
}

// file accepts a path relative to the trust directory, or an absolute one.
func (r *reading) file(n *atip.Node) string {
	s := r.text(n)
	if strings.Contains("/"+s+"/", "/../") || strings.IndexByte(s, 0) >= 0 {
		r.bad(n, "%s must not lead out of the trust directory", n.Key)
	}
	return s
}

// whole demands what an entry of a type needs, and nothing that another type has.
func (r *reading) whole(n *atip.Node, s *Signer) {
	named := 0
	for _, v := range [...]string{s.Identity, s.IdentityPrefix, s.IdentityPattern} {
		if v != "" {
			named++
		}
	}
	identity := named > 0 || s.Issuer != "" || s.SourceRepository != "" || s.SourceRepositoryID != "" || s.SourceOwnerID != "" || s.AnySource
	if s.Type == "" && identity {
		s.Type = Cosign // as the protocol writes it: {"identity", "issuer"}
	}
	switch s.Type {
	case "":
		r.bad(n, "a signer needs a type: cosign, gpg or minisign")
	case Cosign:
		switch {
		case s.Fingerprint != "" || s.Keyring != "" || s.PublicKey != "" || s.RequireComment:
			r.bad(n, "a cosign signer has an identity or a key, and no fingerprint, keyring or publicKey")
		case s.Key != "" && identity:
			r.bad(n, "a signer has a key or an identity, not both")
		case s.Key != "":
		case s.Log != "" || s.KeyID != "":
			r.bad(n, "log and keyid belong to a key")
		case named != 1:
			r.bad(n, "a cosign signer needs one of identity, identityPrefix, identityPattern and key")
		case s.Issuer == "":
			r.bad(n, "issuer is missing: an identity says nothing without who confirmed it")
		}
	case GPG:
		if s.Fingerprint == "" || s.Keyring == "" || identity || s.Key != "" || s.PublicKey != "" || s.Log != "" || s.KeyID != "" || s.RequireComment || s.Root != "" {
			r.bad(n, "a gpg signer needs a fingerprint and a keyring, and nothing of another type")
		}
	case Minisign:
		if s.PublicKey == "" || identity || s.Key != "" || s.Keyring != "" || s.Fingerprint != "" || s.Log != "" || s.KeyID != "" || s.Root != "" {
			r.bad(n, "a minisign signer needs a publicKey, and nothing of another type")
		}
	}
	if !s.NotBefore.IsZero() && !s.NotAfter.IsZero() && s.NotAfter.Before(s.NotBefore) {
		r.bad(n, "notAfter is before notBefore")
	}
}

// IsName reports a name that can stand in a path: of a root or of a signer's file.
func IsName(s string) bool {
	return s != "" && len(s) <= 64 && s[0] != '.' && s[0] != '-' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// ParseBuilders reads builders strictly: ids, or objects with id, signerIdentity and level.
func ParseBuilders(n *atip.Node) ([]Builder, error) {
	var r reading
	list := entries(&r, n, "builders", "a builder", func(b *Builder) *string { return &b.ID }, func(b *Builder, m *atip.Node) bool {
		switch m.Key {
		case "signerIdentity":
			b.SignerIdentity = r.text(m)
		case "level":
			if m.Kind != atip.KindNumber || len(m.Text) != 1 || m.Text[0] < '0' || m.Text[0] > '3' {
				r.bad(m, "level must be a whole number from 0 to 3")
				return true
			}
			b.Level = int(m.Text[0] - '0')
		default:
			return false
		}
		return true
	})
	return list, r.done()
}

// ParseRevocations reads trust.revoked.signers strictly.
func ParseRevocations(n *atip.Node) ([]Revocation, error) {
	var r reading
	list := entries(&r, n, "revoked.signers", "a revoked signer", func(v *Revocation) *string { return &v.ID }, func(v *Revocation, m *atip.Node) bool {
		if m.Key == "notAfter" {
			v.NotAfter = r.time(m)
		}
		return m.Key == "notAfter"
	})
	return list, r.done()
}

// entries reads a list whose entries are an id, or an object with an id and members that
// read knows, for which it returns true.
func entries[T any](r *reading, n *atip.Node, name, entry string, id func(*T) *string, read func(*T, *atip.Node) bool) []T {
	if n.Kind != atip.KindArray {
		r.bad(n, "%s must be a list", name)
	}
	var list []T
	for _, item := range n.Items {
		var v T
		switch item.Kind {
		case atip.KindString:
			*id(&v) = item.Text
		case atip.KindObject:
			for _, m := range item.Items {
				if m.Key == "id" {
					*id(&v) = r.text(m)
				} else if !read(&v, m) {
					r.unknown(m, entry)
				}
			}
		default:
			r.bad(item, "%s must be a string or an object", entry)
		}
		if *id(&v) == "" {
			r.bad(item, "%s needs an id", entry)
		}
		list = append(list, v)
	}
	return list
}

// Hits reports whether the revocation withdraws a signature of this signer that was made at
// t. The zero time is one without proof.
func (v Revocation) Hits(t time.Time, names ...string) bool {
	return v.ID != "" && has(names, v.ID) && (v.NotAfter.IsZero() || t.IsZero() || t.After(v.NotAfter))
}
