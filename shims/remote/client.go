package remote

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/shims"
)

// Client asks registries and stores what they answer.
type Client struct {
	Config  Config
	Dirs    shims.Dirs
	State   string // directory of our own state; the newest state of each registry is kept below it
	Getenv  func(string) string
	Now     func() time.Time
	Refresh bool // ask again, whatever is fresh
	// Patience is how long one answer may take to come whole; a large one has more.
	Patience time.Duration

	// CheckPolicy says whether a policy can be put in force; one that cannot would stop
	// every command.
	CheckPolicy func(file string, raw []byte) error

	// Verify judges signatures; nil verifies none, and where one is required nothing passes.
	Verify Verifier

	once  sync.Once
	https *http.Transport
	http  *http.Transport

	special func(address string) string // why evidence is not fetched from an address; nil: as the registries of addresses say
	roots   *x509.CertPool              // nil: those of the system
}

// How long negative answers are kept.
const (
	missAll  = 24 * time.Hour  // every registry said that it has nothing
	missFail = 5 * time.Minute // one could not say
)

// emptyFile is the digest of no bytes at all, which no executable has.
const emptyFile = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// New returns a client for the configured registries.
func New(c Config, d shims.Dirs, getenv func(string) string) *Client {
	return &Client{Config: c, Dirs: d, Getenv: getenv, Now: time.Now, Patience: 30 * time.Second}
}

func (c *Client) transport(plain bool) *http.Transport {
	c.once.Do(func() { c.https, c.http = transport(false), transport(true) })
	if plain {
		return c.http
	}
	return c.https
}

// Close ends idle connections.
func (c *Client) Close() {
	c.transport(false).CloseIdleConnections()
	c.transport(true).CloseIdleConnections()
}

// Outcome is what became of one look-up.
type Outcome string

// Outcomes of Fetch.
const (
	Stored  Outcome = "stored"  // a document came
	Renewed Outcome = "renewed" // the one at hand is still right
	Fresh   Outcome = "fresh"   // the one at hand is not old enough to ask
	Missing Outcome = "missing" // no registry has one
	Stale   Outcome = "stale"   // nobody could be asked; the one at hand is old
)

// Result is the answer of Fetch.
type Result struct {
	Outcome  Outcome `json:"outcome"`
	Registry string  `json:"registry,omitempty"`
	Path     string  `json:"path,omitempty"` // of the document
	Note     string  `json:"note,omitempty"`
}

// Digest accepts what a person or a document calls the digest of a file.
func Digest(s string) (string, bool) {
	hex := strings.TrimPrefix(strings.ToLower(s), "sha256:")
	return hex, shims.IsDigest(hex) && hex != emptyFile
}

// Fetch finds the document of a file. Registries are asked in order; only "not found"
// leads to the next, so that an outage or a forged answer of one never makes another,
// less trusted one decide. Nothing answers past a registry that approves files.
func (c *Client) Fetch(ctx context.Context, digest string) (Result, error) {
	hex, ok := Digest(digest)
	if !ok {
		return Result{}, &Error{Code: errcode.RegistryAnswer, Msg: "that is no digest of an executable"}
	}
	return c.ask(ctx, question{hex: hex, path: c.Dirs.ShimPath(hex), of: c.order(), none: "no registry has metadata for it"})
}

// question is what is asked of which registries, and where the answer is kept.
type question struct {
	hex, path string
	of        []*Registry
	none      string // what it means that nobody has a document
	strict    bool   // a document that is gone is not used any longer
}

func (c *Client) ask(ctx context.Context, q question) (Result, error) {
	raw, meta, cached := shims.Cached(q.path)
	cached = cached && meta.Registry != ""
	if cached && c.fresh(meta, q.of) {
		return Result{Outcome: Fresh, Registry: meta.Registry, Path: q.path}, nil
	}
	if m, ok := shims.Missed(q.path, c.Now()); ok && !c.Refresh {
		if m.Kind == shims.Refused {
			return Result{}, &Error{Code: errcode.RegistryAnswer, Msg: m.Why}
		}
		return c.without(cached, meta, q.path, m.Why), nil
	}
	if len(q.of) == 0 {
		return c.without(cached, meta, q.path, "no registry is configured"), nil
	}
	if c.Config.Offline {
		if cached {
			return c.without(cached, meta, q.path, "offline"), nil
		}
		return Result{}, &Error{Code: errcode.Offline, Msg: "offline, and nothing is cached for " + q.hex}
	}
	var asked []string
	for _, r := range q.of {
		a := attempt{c: c, r: r, hex: q.hex, path: q.path}
		if cached && meta.Registry == r.URL {
			a.raw, a.meta = raw, meta
		}
		result, err := a.run(ctx, asked)
		if err != nil {
			return c.failed(err, cached, meta, q.path)
		}
		if result.Outcome != Missing {
			return result, nil
		}
		asked = append(asked, r.URL)
		if c.approves(r) {
			break
		}
	}
	if q.strict && cached {
		if _, err := shims.Drop(q.path); err != nil {
			return Result{}, err
		}
		cached = false
	}
	if err := shims.StoreMiss(q.path, shims.Absent, q.none, c.Now(), missAll); err != nil {
		return Result{}, err
	}
	return c.without(cached, meta, q.path, q.none), nil
}

// without is the answer where nobody has, or could be asked for, another.
func (c *Client) without(cached bool, meta shims.Meta, path, why string) Result {
	if cached {
		return Result{Outcome: Stale, Registry: meta.Registry, Path: path, Note: why}
	}
	return Result{Outcome: Missing, Note: why}
}

// failed remembers a failure for a short while, and falls back on what is at hand
// unless the registry answered and was not believed.
func (c *Client) failed(err error, cached bool, meta shims.Meta, path string) (Result, error) {
	var e *Error
	if !errors.As(err, &e) {
		return Result{}, err
	}
	if e.withdraws && cached && meta.Registry == e.Registry {
		if _, failed := shims.Drop(path); failed != nil {
			return Result{}, failed
		}
	}
	kind, why := shims.Refused, e.Error()
	switch e.Code {
	case errcode.RegistryUnavailable:
		kind, why = shims.Unavailable, "registry_unavailable: "+why
	case errcode.RegistryAnswer:
	default:
		return Result{}, err
	}
	if failed := shims.StoreMiss(path, kind, why, c.Now(), missFail); failed != nil {
		return Result{}, failed
	}
	if kind == shims.Unavailable && cached {
		return c.without(cached, meta, path, e.Error()), nil
	}
	return Result{}, err
}

// fresh reports whether a document at hand needs no question: it is young, its registry
// is still among those to ask, and no registry that would be asked before it is new.
func (c *Client) fresh(m shims.Meta, of []*Registry) bool {
	now := c.Now()
	if c.Refresh || !now.Before(m.Expires) || m.FetchedAt.After(now.Add(time.Minute)) {
		return false
	}
	for _, r := range of {
		if r.URL == m.Registry {
			return true
		}
		if !slices.Contains(m.AskedBefore, r.URL) {
			return false
		}
	}
	return false
}

// attempt is one registry asked for one document.
type attempt struct {
	c         *Client
	r         *Registry
	hex, path string
	raw       []byte // at hand from this very registry, and intact
	meta      shims.Meta
}

func (a *attempt) run(ctx context.Context, asked []string) (Result, error) {
	c, r := a.c, a.r
	m, err := c.manifest(ctx, r)
	if err != nil {
		return Result{}, err
	}
	if (r.RequireSignatures || m.requireSignatures) && c.Verify == nil {
		// Before anything is asked for: no answer could be believed.
		return Result{}, r.withdrawn(unverified)
	}
	e, err := c.entry(ctx, r, a.hex, false)
	if err != nil {
		return Result{}, err
	}
	if e.stated && !e.listed {
		return Result{Outcome: Missing}, nil
	}
	conditions := map[string]string{}
	if a.raw != nil && e.matches(a.raw) {
		if a.meta.ETag != "" {
			conditions["If-None-Match"] = a.meta.ETag
		}
		if a.meta.LastModified != "" {
			conditions["If-Modified-Since"] = a.meta.LastModified
		}
	}
	where := strings.Replace(m.shims, "{hash}", a.hex, 1)
	got, err := c.get(ctx, r, where, maxShim, conditions)
	if err != nil {
		return Result{}, err
	}
	now := c.Now().UTC()
	meta := shims.Meta{Registry: r.URL, URL: r.URL + where, FetchedAt: now, Expires: now.Add(lifetime(got.header, r)), AskedBefore: asked,
		ETag: header(got.header, "ETag"), LastModified: header(got.header, "Last-Modified")}
	switch got.status {
	case 404:
		if e.listed {
			return Result{}, r.refused("says that it has no document which its state lists")
		}
		return Result{Outcome: Missing}, nil
	case 304:
		if err := a.still(m); err != nil {
			return Result{}, err
		}
		if meta.ETag == "" {
			meta.ETag = a.meta.ETag
		}
		if meta.LastModified == "" {
			meta.LastModified = a.meta.LastModified
		}
		return Result{Outcome: Renewed, Registry: r.URL, Path: a.path}, shims.StoreMeta(a.path, a.raw, meta)
	}
	if !e.matches(got.body) {
		// The registry may have been renewed since its state was fetched.
		if e, err = c.entry(ctx, r, a.hex, true); err != nil {
			return Result{}, err
		}
		if !e.matches(got.body) {
			return Result{}, r.refused("registry_rollback: its document is not the one that its state lists")
		}
	}
	doc, err := shims.AdmitHere(got.body, a.hex)
	if err != nil {
		return Result{}, r.refused("its document is not used: " + err.Error())
	}
	if a.raw != nil && !sameBinary(a.raw, got.body) {
		return Result{}, r.refused("its document now speaks of another program or version for the same file")
	}
	bundle, err := c.bundleFor(ctx, r, strings.Replace(m.signatures, "{hash}", a.hex, 1))
	if err != nil {
		return Result{}, err
	}
	if err := c.signed(r, m, a.document(doc, got.body, bundle)); err != nil {
		return Result{}, err
	}
	return Result{Outcome: Stored, Registry: r.URL, Path: a.path}, shims.Store(a.path, got.body, bundle, meta)
}

// still verifies the document at hand, with the bundle that came with it, before a "not
// modified" renews it: who may sign can have changed since.
func (a *attempt) still(m manifest) error {
	doc, err := shims.AdmitHere(a.raw, a.hex)
	if err != nil {
		return a.r.withdrawn("its document at hand is not used: " + err.Error())
	}
	if err := a.c.signed(a.r, m, a.document(doc, a.raw, kept(a.path))); err != nil {
		var e *Error
		if errors.As(err, &e) {
			e.withdraws = true
		}
		return err
	}
	return nil
}

// header keeps validators that can be sent back as they are.
func header(h http.Header, name string) string {
	v := h.Get(name)
	if len(v) > 1024 || strings.ContainsAny(v, "\r\n\x00") {
		return ""
	}
	return v
}

// sameBinary holds the parts of "binary" that may never change for one file.
func sameBinary(a, b []byte) bool {
	part := func(raw []byte) []byte {
		var doc struct {
			Binary struct {
				Name, Version, Platform string
			} `json:"binary"`
		}
		if json.Unmarshal(raw, &doc) != nil {
			return nil
		}
		out, _ := json.Marshal(doc.Binary)
		return out
	}
	return bytes.Equal(part(a), part(b))
}
