package remote

import (
	"context"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// manifest is what a registry says about itself. It is the party being judged, so it
// may tighten and never loosen.
type manifest struct {
	shims, signatures, catalog string
	requireSignatures          bool
	signers                    []signer.Signer // that it names itself; nil for none
}

const manifestPath = "/.well-known/atip-registry.json"

func defaultManifest() manifest {
	return manifest{shims: "/shims/sha256/{hash}.json", signatures: "/shims/sha256/{hash}.json.bundle", catalog: "/shims/index.json"}
}

// manifest fetches the manifest or takes it from the cache. A registry without one has
// the default layout.
func (c *Client) manifest(ctx context.Context, r *Registry) (manifest, error) {
	path := c.registryFile(r, "manifest.json")
	if raw, m, ok := shims.Cached(path); ok && c.Now().Before(m.Expires) && !c.Refresh {
		return parseManifest(r, raw)
	}
	if _, missed := shims.Missed(path, c.Now()); missed && !c.Refresh {
		return defaultManifest(), nil
	}
	a, err := c.get(ctx, r, manifestPath, maxManifest, nil)
	if err != nil {
		return manifest{}, err
	}
	if a.status != 200 {
		if err := shims.StoreMiss(path, shims.Absent, "no manifest", c.Now(), missAll); err != nil {
			return manifest{}, err
		}
		return defaultManifest(), nil
	}
	m, err := parseManifest(r, a.body)
	if err != nil {
		return m, err
	}
	now := c.Now().UTC()
	return m, shims.Store(path, a.body, nil, shims.Meta{Registry: r.URL, FetchedAt: now, Expires: now.Add(lifetime(a.header, r))})
}

// registryFile is where a file of the registry itself is kept.
func (c *Client) registryFile(r *Registry, name string) string {
	return filepath.Join(c.Dirs.RegistryDir(r.ID), name)
}

func parseManifest(r *Registry, raw []byte) (manifest, error) {
	m := defaultManifest()
	root, err := atip.ParseTree(raw, atip.ParseOptions{MaxBytes: maxManifest})
	if err != nil || root.Kind != atip.KindObject {
		return m, r.refused("its manifest is not strict JSON")
	}
	for _, e := range [...]struct {
		key  string
		to   *string
		hash bool
	}{{"shims", &m.shims, true}, {"signatures", &m.signatures, true}, {"catalog", &m.catalog, false}} {
		n := root.Get("endpoints").Get(e.key)
		if n == nil {
			continue
		}
		path, ok := endpoint(r, n.Text, e.hash)
		if n.Kind != atip.KindString || !ok {
			return m, r.refused("its manifest has an endpoint that is not used: " + e.key)
		}
		*e.to = path
	}
	for _, key := range [...]string{"requireSignatures", "requireSignature"} {
		if v := root.Get("trust").Get(key); v != nil {
			required, ok := v.Bool()
			m.requireSignatures = m.requireSignatures || required || !ok
		}
	}
	if list := root.Get("trust").Get("signers"); list != nil {
		if m.signers, err = manifestSigners(list); err != nil {
			return m, r.refused("its manifest has signers that cannot be read: " + err.Error())
		}
		if m.signers == nil {
			m.signers = []signer.Signer{}
		}
	}
	return m, nil
}

// endpoint accepts a path below the registry, or an address of the same origin.
func endpoint(r *Registry, s string, hash bool) (path string, ok bool) {
	if strings.Contains(s, "://") {
		base, err := url.Parse(r.URL)
		if err != nil {
			return "", false
		}
		rest, same := strings.CutPrefix(s, base.Scheme+"://"+base.Host)
		if rest, under := strings.CutPrefix(rest, base.Path); same && under {
			s = rest
		} else {
			return "", false
		}
	}
	want := 0
	if hash {
		want = 1
	}
	plain := strings.ReplaceAll(s, "{hash}", "")
	if strings.Count(s, "{hash}") != want || !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") || strings.Contains(s, "..") {
		return "", false
	}
	for i := range len(plain) {
		c := plain[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-", c) >= 0) {
			return "", false
		}
	}
	return s, true
}
