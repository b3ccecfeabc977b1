package remote

import (
	"context"
	"runtime"
	"sort"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Offered is one tool of a catalog. It is for people: nothing is looked up by it on the
// path of a command, and no part of it becomes a path.
type Offered struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Versions    []string `json:"versions,omitempty"`
	Registry    string   `json:"registry"`

	here []string // digests for this platform
}

// Catalog reads what the registries offer.
func (c *Client) Catalog(ctx context.Context) ([]Offered, error) {
	if c.Config.Offline {
		return nil, &Error{Code: errcode.Offline, Msg: "offline: no catalog can be read"}
	}
	out := []Offered{}
	for _, r := range c.order() {
		m, err := c.manifest(ctx, r)
		if err != nil {
			return nil, err
		}
		got, err := c.get(ctx, r, m.catalog, maxCatalog, nil)
		if err != nil {
			return nil, err
		}
		if got.status != 200 {
			continue
		}
		offers, err := parseCatalog(r, got.body)
		if err != nil {
			return nil, err
		}
		out = append(out, offers...)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// parseCatalog reads name, version, platform and digest; what has another form is not
// offered.
func parseCatalog(r *Registry, raw []byte) ([]Offered, error) {
	root, err := atip.ParseTree(raw, atip.ParseOptions{MaxBytes: maxCatalog})
	if err != nil {
		return nil, r.refused("its catalog is not strict JSON: " + err.Error())
	}
	tools := root.Get("tools")
	if root.Kind != atip.KindObject || tools != nil && tools.Kind != atip.KindObject {
		return nil, r.refused("its catalog has no tools")
	}
	var out []Offered
	if tools == nil {
		return out, nil
	}
	for _, t := range tools.Items {
		o := Offered{Name: t.Key, Registry: r.URL}
		if d := t.Get("description"); d != nil && d.Kind == atip.KindString {
			o.Description = d.Text
		}
		if versions := t.Get("versions"); versions != nil {
			for _, v := range versions.Items {
				o.Versions = append(o.Versions, v.Key)
				for _, p := range v.Items {
					if hex, ok := Digest(p.Text); ok && (p.Key == runtime.GOOS+"-"+runtime.GOARCH || p.Key == "any") {
						o.here = append(o.here, hex)
					}
				}
			}
		}
		sort.Strings(o.Versions)
		out = append(out, o)
	}
	return out, nil
}

// maxPrefetch bounds how many versions of one tool are fetched by name.
const maxPrefetch = 64

// Prefetch fetches the documents that the catalogs name for a tool on this platform, so
// that they are here when it is installed. Which file is meant is still decided by its
// digest alone.
func (c *Client) Prefetch(ctx context.Context, name string) (map[string]Result, error) {
	offers, err := c.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]Result{}
	for _, o := range offers {
		if o.Name != name {
			continue
		}
		for _, hex := range o.here {
			if _, done := out[hex]; done || len(out) >= maxPrefetch {
				continue
			}
			result, err := c.Fetch(ctx, hex)
			if err != nil {
				return out, err
			}
			out[hex] = result
		}
	}
	return out, nil
}
