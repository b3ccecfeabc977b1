package remote

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/shims"
)

// Synced is one step of Sync.
type Synced struct {
	What     string  `json:"what"` // shim, policy, approval, dropped
	Digest   string  `json:"sha256,omitempty"`
	Registry string  `json:"registry,omitempty"`
	Outcome  Outcome `json:"outcome,omitempty"`
	Error    string  `json:"error,omitempty"`

	Err error `json:"-"`
}

// Sync renews every document that came from a registry, fetches the policies of the
// registries and drops what came from one that is no longer configured.
func (c *Client) Sync(ctx context.Context, step func(Synced)) error {
	if c.Config.Offline {
		return &Error{Code: errcode.Offline, Msg: "offline: nothing can be renewed"}
	}
	c.Refresh = true
	known := map[string]bool{}
	for i := range c.Config.Registries {
		r := &c.Config.Registries[i]
		known[r.URL] = true
		s := Synced{What: "policy", Registry: r.URL}
		if s.Outcome, s.Err = c.policy(ctx, r); s.Err != nil || s.Outcome != Missing {
			step(s.told())
		}
	}
	digests, err := listed(filepath.Join(c.Dirs.Data, "shims", "sha256"))
	if err != nil {
		return err
	}
	for _, hex := range digests {
		if ctx.Err() != nil {
			return &Error{Code: errcode.RegistryUnavailable, Msg: "the time for a sync is over", Err: ctx.Err()}
		}
		path := c.Dirs.ShimPath(hex)
		_, meta, ok := shims.Cached(path)
		if !ok || meta.Registry == "" {
			continue
		}
		if !known[meta.Registry] {
			_, err := shims.Forget(c.Dirs, hex)
			step(Synced{What: "dropped", Digest: hex, Registry: meta.Registry, Err: err}.told())
			continue
		}
		result, err := c.Fetch(ctx, hex)
		step(Synced{What: "shim", Digest: hex, Registry: result.Registry, Outcome: result.Outcome, Err: err}.told())
	}
	for i := range c.Config.Registries {
		r := &c.Config.Registries[i]
		approved, err := listed(c.registryFile(r, "approved"))
		if err != nil {
			return err
		}
		for _, hex := range approved {
			result, err := c.Approve(ctx, r.ID, hex)
			step(Synced{What: "approval", Digest: hex, Registry: r.URL, Outcome: result.Outcome, Err: err}.told())
		}
	}
	if err := c.dropDirectories(); err != nil {
		return err
	}
	return shims.Sweep(c.Dirs, c.Now())
}

func (s Synced) told() Synced {
	if s.Err != nil {
		s.Error = s.Err.Error()
	}
	return s
}

// listed is the digests of a directory that have a side file.
func listed(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{Code: errcode.RegistryUnavailable, Msg: err.Error(), Err: err}
	}
	var out []string
	for _, e := range entries {
		if hex, ok := strings.CutSuffix(e.Name(), ".json.meta"); ok && shims.IsDigest(hex) {
			out = append(out, hex)
		}
	}
	return out, nil
}

// policy fetches /policy.json of a registry. It can only tighten what others decide,
// so the one at hand stays until another has come.
func (c *Client) policy(ctx context.Context, r *Registry) (Outcome, error) {
	m, err := c.manifest(ctx, r)
	if err != nil {
		return "", err
	}
	got, err := c.get(ctx, r, "/policy.json", maxPolicy, nil)
	if err != nil {
		return "", err
	}
	if got.status != 200 {
		return Missing, nil
	}
	root, err := atip.ParseTree(got.body, atip.ParseOptions{MaxBytes: maxPolicy})
	if err != nil {
		return "", r.refused("its policy is not strict JSON: " + err.Error())
	}
	required, _ := root.Get("policy").Get("trust").Get("requireSignatures").Bool()
	m.requireSignatures = m.requireSignatures || required
	bundle, err := c.bundleFor(ctx, r, "/policy.json.bundle")
	if err != nil {
		return "", err
	}
	if err := c.signed(r, m, plain(r, "policy", got.body, bundle)); err != nil {
		return "", err
	}
	if c.CheckPolicy != nil {
		if err := c.CheckPolicy(r.URL+"/policy.json", got.body); err != nil {
			return "", r.refused("its policy is not used: " + err.Error())
		}
	}
	now := c.Now().UTC()
	return Stored, shims.Store(c.registryFile(r, "policy.json"), got.body, bundle, shims.Meta{Registry: r.URL, FetchedAt: now, Expires: now.Add(lifetime(got.header, r))})
}

// dropDirectories removes what registries said about themselves that are no longer
// configured.
func (c *Client) dropDirectories() error {
	dir := c.Dirs.Registries()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		keep := false
		for _, r := range c.Config.Registries {
			keep = keep || r.ID == e.Name()
		}
		if keep || !e.IsDir() {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return &Error{Code: errcode.RegistryUnavailable, Msg: err.Error(), Err: err}
		}
	}
	return nil
}
