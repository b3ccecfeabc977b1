package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/ip"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/settle"
)

// Claimed is evidence that a document names by its address, and does not hold. Whoever wrote the
// document chose the address.
type Claimed struct {
	URL      string
	Digest   string // of the executable
	Ending   string // of the file that keeps it: .json.bundle, .tool.bundle, .tool.intoto.jsonl
	Registry string // that the document came from, "" for none
	Path     string // of the executable, "" if it is not known
	Document *atip.Document
}

// maxProvenance bounds a .jsonl of statements.
const maxProvenance = 4 * request.MaxBundle

// Claims are what the documents at hand name: those that registries or people put there, and what tools
// said of themselves.
func (c *Client) Claims() ([]Claimed, error) {
	var out []Claimed
	for _, in := range [...]struct{ dir, prefix string }{{filepath.Join(c.Dirs.Data, "shims", "sha256"), ""}, {filepath.Join(c.Dirs.Data, "tools"), "sha256-"}} {
		entries, err := os.ReadDir(in.dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, &Error{Code: errcode.RegistryUnavailable, Msg: err.Error(), Err: err}
		}
		for _, e := range entries {
			hex, ok := strings.CutSuffix(strings.TrimPrefix(e.Name(), in.prefix), ".json")
			if !ok || !shims.IsDigest(hex) {
				continue
			}
			path := filepath.Join(in.dir, e.Name())
			raw, err := regular.ReadNoFollow(path, maxShim)
			if err != nil {
				continue // a run says what is wrong with it
			}
			doc, err := shims.Admit(raw, hex, false)
			if err != nil {
				continue
			}
			_, meta, _ := shims.Cached(path)
			out = append(out, ClaimsOf(doc, hex, meta.Registry)...)
		}
	}
	return out, nil
}

// ClaimsOf is what one document names about the executable with the digest. The signature of a document
// that came from a registry comes from there too.
func ClaimsOf(d *atip.Document, digest, registry string) []Claimed {
	if d == nil || digest == "" {
		return nil
	}
	claims := d.TrustClaims()
	var out []Claimed
	for _, c := range [...]struct{ url, ending string }{{claims.DocumentURL, ".json.bundle"}, {claims.ToolURL, ".tool.bundle"}, {claims.ProvenanceURL, ".tool.intoto.jsonl"}} {
		if c.url == "" || c.ending == ".json.bundle" && (registry != "" || d.BinaryHash() == "") {
			continue
		}
		out = append(out, Claimed{URL: c.url, Digest: digest, Ending: c.ending, Registry: registry, Document: d})
	}
	return out
}

// Evidence fetches one piece of evidence once and keeps the bytes as they came, unless the verdict would
// be worse with them than without: what a document names must not take away what was proven.
func (c *Client) Evidence(ctx context.Context, e Claimed) (Outcome, error) {
	if c.Config.Offline {
		return "", &Error{Code: errcode.Offline, Msg: "offline: no evidence can be fetched"}
	}
	if c.Verify == nil {
		return "", &Error{Code: errcode.RegistryAnswer, Msg: "evidence cannot be verified here"}
	}
	limit := int64(request.MaxBundle)
	if e.Ending == ".tool.intoto.jsonl" {
		limit = maxProvenance
	}
	got, err := c.evidence(ctx, e, limit)
	if err != nil {
		var ours *Error
		if errors.As(err, &ours) {
			return "", &Error{Code: ours.Code, Msg: "evidence at " + e.URL + ": " + ours.Msg, Err: ours.Err}
		}
		return "", err
	}
	if got.status != http.StatusOK {
		return Missing, nil
	}
	path := strings.TrimSuffix(c.Dirs.ShimPath(e.Digest), ".json") + e.Ending
	if have, err := regular.ReadNoFollow(path, maxProvenance); err == nil && bytes.Equal(have, got.body) {
		return Fresh, nil
	}
	before, _, err := c.Verify(c.evidenceQuery(e, nil), false)
	if err != nil {
		return "", err
	}
	after, detail, err := c.Verify(c.evidenceQuery(e, got.body), false)
	if err != nil {
		return "", err
	}
	if after.Action == trust.Deny && before.Action != trust.Deny || after.Level.Weaker(before.Level) {
		why := after.Level.String() + " (" + after.Reason + ")"
		if detail != "" {
			why += ": " + detail
		}
		return "", &Error{Code: errcode.RegistryAnswer, Msg: "evidence at " + e.URL + " is not kept: with it the verdict would be " + why}
	}
	return Stored, shims.WriteFile(path, got.body)
}

// evidenceQuery asks about the subject of e with the evidence at hand, and with raw in the place of what it
// would replace.
func (c *Client) evidenceQuery(e Claimed, raw []byte) settle.Query {
	if e.Ending == ".json.bundle" {
		path := c.Dirs.ShimPath(e.Digest)
		text, _ := regular.ReadNoFollow(path, maxShim) // without it nothing verifies
		q := settle.DocumentQuery(e.Document, path, sumOf(text), e.Digest, raw)
		q.Data = text
		return q
	}
	q := settle.PartQuery(c.Dirs, trust.Identity{Effective: e.Document.Name(), Chain: []trust.Part{{Path: e.Path, Digest: e.Digest}}}, 0)
	q.Place, q.Claims = "", settle.ToolClaims(e.Document)
	fetched := []request.Signature{{Format: "auto", Data: raw}}
	switch {
	case raw == nil:
	case e.Ending == ".tool.bundle":
		q.Signatures = fetched
	default:
		q.Provenance = fetched
	}
	return q
}

// evidence asks for what lies below the registry's own address as for its documents. Anything else is
// the choice of a stranger: https, no token, and no address that is not of the public internet, looked
// at after the name was resolved and again for each redirect. A proxy would resolve the name unseen, so
// that none is used.
func (c *Client) evidence(ctx context.Context, e Claimed, limit int64) (answer, error) {
	for i := range c.Config.Registries {
		r := &c.Config.Registries[i]
		if path, ok := strings.CutPrefix(e.URL, r.URL+"/"); ok && e.Registry == r.URL {
			return c.get(ctx, r, "/"+path, limit, nil)
		}
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(e.URL) > 2048 {
		return answer{}, &Error{Code: errcode.RegistryAnswer, Msg: "this is no plain https address"}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return answer{}, &Error{Code: errcode.RegistryAnswer, Msg: err.Error(), Err: err}
	}
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "atip-exec")
	door := transport(false)
	defer door.CloseIdleConnections()
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: -1, Control: c.publicOnly}
	door.Proxy, door.DialContext, door.TLSClientConfig = nil, dialer.DialContext, &tls.Config{RootCAs: c.roots, MinVersion: tls.VersionTLS12}
	follow := func(req *http.Request, via []*http.Request) error {
		switch {
		case req.URL.Scheme != "https" || req.URL.User != nil:
			return &redirectError{"it redirects to what is no plain https address"}
		case len(via) > 3:
			return &redirectError{"it redirects too often"}
		}
		return nil
	}
	return (&Registry{URL: u.Scheme + "://" + u.Host}).take(&http.Client{Transport: door, CheckRedirect: follow}, req, limit)
}

// publicOnly refuses a connection by the address that it would be made to.
func (c *Client) publicOnly(_, address string, _ syscall.RawConn) error {
	special := c.special
	if special == nil {
		special = specialAddress
	}
	if why := special(address); why != "" {
		return &redirectError{fmt.Sprintf("the name leads to %s, which is a %s address", address, why)}
	}
	return nil
}

func specialAddress(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "malformed"
	}
	host, _, _ = strings.Cut(host, "%")
	a, ok := ip.Parse(host)
	if !ok {
		return "malformed"
	}
	return a.Special()
}
