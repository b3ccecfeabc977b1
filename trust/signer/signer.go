// Package signer says who may sign: the entries of local policy and how the identity of a
// certificate, which a verifier has proven, is held against them. It does no I/O and no
// cryptography. trust.md section 4.
package signer

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"
)

// Kinds of signers.
const (
	Cosign   = "cosign" // a Fulcio identity or a key, as Sigstore bundles have them
	GPG      = "gpg"
	Minisign = "minisign"
)

// DefaultRoot is the root that a signer without one is checked against.
const DefaultRoot = "sigstore"

// UpdateRoot is the command that renews the root of this name. Any but the default one comes from a
// repository that only its user knows.
func UpdateRoot(name string) string {
	if name == DefaultRoot || name == "" {
		return "atip trust update"
	}
	return "atip trust update --name " + name + " --mirror URL --tuf-root FILE"
}

// What a signer may vouch for.
const (
	Binary   = "binary"
	Metadata = "metadata"
)

// Signer is one entry: a key or an identity, what it may sign, and when. The zero value
// matches nothing.
type Signer struct {
	// Name is what reports call it: the file or the position it comes from.
	Name string `json:"name,omitempty"`
	Type string `json:"type"`

	Identity           string `json:"identity,omitempty"` // byte for byte, as all that follow
	IdentityPrefix     string `json:"identityPrefix,omitempty"`
	IdentityPattern    string `json:"identityPattern,omitempty"`
	Issuer             string `json:"issuer,omitempty"`
	SourceRepository   string `json:"sourceRepository,omitempty"`
	SourceRepositoryID string `json:"sourceRepositoryId,omitempty"`
	SourceOwnerID      string `json:"sourceOwnerId,omitempty"`
	AnySource          bool   `json:"anySource,omitempty"`

	Key   string `json:"key,omitempty"` // file of a public key, relative to the trust directory
	KeyID string `json:"keyid,omitempty"`
	Log   string `json:"log,omitempty"` // of a key: "required" or "none"

	Fingerprint    string `json:"fingerprint,omitempty"`
	Keyring        string `json:"keyring,omitempty"`
	PublicKey      string `json:"publicKey,omitempty"`
	RequireComment bool   `json:"requireComment,omitempty"`

	Root       string    `json:"root,omitempty"`
	Tools      []string  `json:"tools,omitempty"`
	VouchesFor []string  `json:"vouchesFor,omitempty"`
	NotBefore  time.Time `json:"notBefore,omitzero"`
	NotAfter   time.Time `json:"notAfter,omitzero"`

	// Managed marks an entry of the administrator: it sees the administrator's and the
	// embedded roots only.
	Managed bool `json:"managed,omitempty"`
	// Material is what the key or keyring file holds.
	Material []byte `json:"material,omitempty"`

	// Restricts marks an entry that can only remove, such as one of a project: an issuer that
	// it does not name is not compared.
	Restricts bool `json:"restricts,omitempty"`
}

// Builder is a build service that is believed, at the level given.
type Builder struct {
	ID             string `json:"id"`
	SignerIdentity string `json:"signerIdentity,omitempty"`
	Level          int    `json:"level,omitempty"` // 0: as computed
}

// Revocation withdraws a signer: what it signed after NotAfter, or all of it.
type Revocation struct {
	ID       string    `json:"id"` // identity, keyid, fingerprint, or the name of a signer file
	NotAfter time.Time `json:"notAfter,omitzero"`
}

// Certificate is what a proven certificate says about the signer. The numbers are below the
// arc 1.3.6.1.4.1.57264.1.
type Certificate struct {
	SAN                string // subject alternative name
	Issuer             string // .8, or .1
	SourceRepository   string // .12
	SourceRepositoryID string // .15
	SourceOwnerID      string // .17
	RunnerEnvironment  string // .11
	BuildConfig        string // .18
}

// Source is how the repository of a certificate fits a signer. The zero value refuses.
type Source uint8

// Source answers.
const (
	SourceNotPinned Source = iota // a workflow that any repository can call, and no source is demanded
	SourceOther                   // another repository than the entry names
	SourceOK
)

// Keyless reports whether the entry names an identity, not a key.
func (s *Signer) Keyless() bool { return s.Type == Cosign && s.Key == "" && len(s.Material) == 0 }

// RootName is the root that the entry is checked against.
func (s *Signer) RootName() string {
	if s.Root == "" {
		return DefaultRoot
	}
	return s.Root
}

// Logged reports whether a key's signature must be in a transparency log.
func (s *Signer) Logged() bool { return s.Log != "none" }

// For reports whether the entry may sign a subject of this kind, Binary or Metadata, for
// this tool.
func (s *Signer) For(kind, tool string) bool {
	return (len(s.VouchesFor) == 0 || has(s.VouchesFor, kind)) && (len(s.Tools) == 0 || has(s.Tools, tool))
}

// Implies reports whether the entry says that this tool is signed: a signer with tools is
// an expectation.
func (s *Signer) Implies(kind, tool string) bool {
	return len(s.Tools) > 0 && !s.Restricts && s.For(kind, tool)
}

// During reports whether the entry counts at the time of a signature; without a proven
// time that is now.
func (s *Signer) During(t time.Time) bool {
	return (s.NotBefore.IsZero() || !t.Before(s.NotBefore)) && (s.NotAfter.IsZero() || !t.After(s.NotAfter))
}

// Is compares identity and issuer, byte for byte. An entry that names neither fully is
// nobody.
func (s *Signer) Is(c Certificate) bool {
	if s.Type != Cosign || c.SAN == "" || c.Issuer == "" || s.Issuer == "" && !s.Restricts || s.Issuer != "" && s.Issuer != c.Issuer {
		return false
	}
	switch {
	case s.Identity != "":
		return s.Identity == c.SAN
	case s.IdentityPrefix != "":
		return strings.HasPrefix(c.SAN, s.IdentityPrefix)
	case s.IdentityPattern != "":
		re, err := Anchored(s.IdentityPattern)
		return err == nil && re.MatchString(c.SAN)
	}
	return false
}

// Source holds the certificate's repository against the entry. demanded is a repository
// that the provenance has to name; "" for none.
//
// A workflow that lives in another repository than the one it was run for can be called by
// any repository: the identity alone does not say whose program was built.
func (s *Signer) Source(c Certificate, demanded string) Source {
	for _, p := range [...][2]string{{s.SourceRepository, c.SourceRepository}, {s.SourceRepositoryID, c.SourceRepositoryID}, {s.SourceOwnerID, c.SourceOwnerID}} {
		if p[0] != "" && p[0] != p[1] {
			return SourceOther
		}
	}
	if demanded != "" && c.SourceRepository != "" && Repository(demanded) != Repository(c.SourceRepository) {
		return SourceOther
	}
	pinned := s.SourceRepository != "" || s.SourceRepositoryID != "" || s.SourceOwnerID != "" || demanded != ""
	if of := workflowRepository(c.SAN); of != "" && of != c.SourceRepository && !pinned && !s.AnySource && !s.Restricts {
		return SourceNotPinned
	}
	return SourceOK
}

// workflowRepository is the repository of the workflow that a SAN names, "" if it names
// none. GitHub writes https://host/owner/repo/.github/…, GitLab https://host/group/repo//….
func workflowRepository(san string) string {
	if i := strings.Index(san, "/.github/"); i > 0 {
		return san[:i]
	}
	if scheme, rest, ok := strings.Cut(san, "://"); ok {
		if i := strings.Index(rest, "//"); i > 0 {
			return scheme + "://" + rest[:i]
		}
	}
	return ""
}

// Repository is the plain form of the address of a source repository, in which two of them
// are compared: without "git+", a "@ref" and ".git".
func Repository(uri string) string {
	uri = strings.TrimPrefix(uri, "git+")
	if i := strings.LastIndexByte(uri, '@'); i > strings.LastIndexByte(uri, '/') || i > 0 && strings.HasPrefix(uri[i:], "@refs/") {
		uri = uri[:i]
	}
	return strings.TrimSuffix(uri, ".git")
}

// Anchored compiles an identity pattern so that it must match as a whole, which the
// verifying library does not do.
func Anchored(pattern string) (*regexp.Regexp, error) {
	if why := badPattern(pattern); why != "" {
		return nil, &PatternError{Pattern: pattern, Why: why}
	}
	return regexp.Compile(`^(?:` + pattern + `)$`)
}

// PatternError says why a pattern of identities is not used.
type PatternError struct{ Pattern, Why string }

func (e *PatternError) Error() string {
	return "identityPattern " + quote(e.Pattern) + " " + e.Why
}

// badPattern demands that the pattern begins with a host in plain letters: anything else
// could be registered by others. The text up to the first "/" behind the host is compared
// with what its parse tree starts with, so that no alternative, class or flag hides in it.
func badPattern(pattern string) string {
	const begin = "must begin with https://host/, with the dots of the host escaped"
	p := strings.TrimPrefix(pattern, "^")
	rest, ok := strings.CutPrefix(p, "https://")
	if !ok {
		return begin
	}
	host, _, ok := strings.Cut(rest, "/")
	plain := strings.ReplaceAll(host, `\.`, "")
	if !ok || plain == "" || strings.Trim(plain, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-:") != "" {
		return begin
	}
	tree, err := syntax.Parse(`^(?:`+pattern+`)$`, syntax.Perl)
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	if alternates(tree) {
		return "has an alternative that begins with something else than https://" + strings.ReplaceAll(host, `\.`, ".") + "/"
	}
	return ""
}

// alternates reports an alternation at the top of a pattern, whose other branches would
// need no host.
func alternates(re *syntax.Regexp) bool {
	for re != nil {
		switch re.Op {
		case syntax.OpAlternate:
			return true
		case syntax.OpConcat:
			var next *syntax.Regexp
			for _, sub := range re.Sub {
				if sub.Op == syntax.OpBeginText || sub.Op == syntax.OpEmptyMatch {
					continue
				}
				next = sub
				break
			}
			re = next
		case syntax.OpCapture:
			re = re.Sub[0]
		case syntax.OpLiteral:
			// The parser factors common prefixes out of alternatives, so the literal holds
			// for every branch.
			return !strings.HasPrefix(string(re.Rune), "https://") || re.Flags&syntax.FoldCase != 0
		default:
			return true
		}
	}
	return true
}

func has(list []string, s string) bool {
	return slices.Contains(list, s)
}

func quote(s string) string { return `"` + s + `"` }

// Permitted reports whether each list of a layer that only tightens has an entry that fits.
func Permitted(filters [][]Signer, fits func(*Signer) bool) bool {
	for _, list := range filters {
		ok := false
		for i := range list {
			ok = ok || fits(&list[i])
		}
		if !ok {
			return false
		}
	}
	return true
}
