package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/shims"
)

// A registry may state what it holds: one file names the digest of a list for each two
// first digits, each list the digest of every document. So it cannot show one client an
// older document, or hide one, without showing everybody another state:
//
//	/.well-known/atip-state.json ──shards──► /shims/sha256/ab.list ──line──► document
//
// The highest version that was seen is kept for ever; a lower one is a rollback.

const (
	statePath = "/.well-known/atip-state.json"
	stateKind = "atip-registry-state"
	maxState  = 4 << 20
	maxShard  = 8 << 20
	clockSkew = 5 * time.Minute
)

// state is a registry's word about all of its documents at one time.
type state struct {
	version         int64
	issued, expires time.Time
	shards          map[string]string // first two digits: digest of the list
	revoked         map[string]bool   // files that it warns of
	sum             string            // of its bytes
}

// entry is what the state says about one document.
type entry struct {
	stated bool   // there is a state
	listed bool   // and the document is in it
	sum    string // with these bytes
}

// matches reports whether the state, if there is one, lists these bytes.
func (e entry) matches(raw []byte) bool {
	return !e.stated || e.listed && sumOf(raw) == e.sum
}

func sumOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// entry looks a document up in the state of a registry; again asks for the state even
// if the one at hand is fresh.
func (c *Client) entry(ctx context.Context, r *Registry, hex string, again bool) (entry, error) {
	s, err := c.state(ctx, r, again)
	if err != nil || s == nil {
		return entry{}, err
	}
	if s.revoked[hex] {
		return entry{}, r.withdrawn("registry_revoked: it withdrew what it said about sha256:" + hex)
	}
	if now := c.Now(); now.After(s.expires) {
		why := "registry_stale: its state was good until " + s.expires.UTC().Format(time.RFC3339)
		if r.MaxStateAge > 0 && now.After(s.expires.Add(r.MaxStateAge)) {
			return entry{}, r.withdrawn(why)
		}
		return entry{}, r.unavailable(why, nil)
	}
	sum, listed := s.shards[hex[:2]]
	if !listed {
		return entry{stated: true}, nil
	}
	list, err := c.shard(ctx, r, hex[:2], sum)
	if err != nil {
		return entry{}, err
	}
	document, listed := list[hex]
	return entry{stated: true, listed: listed, sum: document}, nil
}

// state fetches the state of a registry or takes it from the cache; nil if it has none
// and never had one.
func (c *Client) state(ctx context.Context, r *Registry, again bool) (*state, error) {
	path := c.registryFile(r, "state.json")
	seen, err := c.seen(r)
	if err != nil {
		return nil, err
	}
	if !again && !c.Refresh {
		if raw, m, ok := shims.Cached(path); ok && c.Now().Before(m.Expires) {
			if s, err := parseState(r, raw, c.Now()); err == nil && s.version == seen.Version && s.sum == seen.SHA256 {
				return s, nil
			}
		}
		if _, missed := shims.Missed(path, c.Now()); missed && seen.Version == 0 && !r.RequireState {
			return nil, nil
		}
	}
	got, err := c.get(ctx, r, statePath, maxState, nil)
	if err != nil {
		return nil, err
	}
	if got.status != 200 {
		if seen.Version > 0 || r.RequireState {
			return nil, r.refused("registry_state_missing: it has no state, which it had before or must have")
		}
		return nil, shims.StoreMiss(path, shims.Absent, "no state", c.Now(), missAll)
	}
	s, err := parseState(r, got.body, c.Now())
	if err != nil {
		return nil, err
	}
	bundle, err := c.bundleFor(ctx, r, statePath+".bundle")
	if err != nil {
		return nil, err
	}
	m, err := c.manifest(ctx, r)
	if err != nil {
		return nil, err
	}
	// Before its version is remembered: who forges a state could else lock out the real one.
	if err := c.signed(r, m, plain(r, "state", got.body, bundle)); err != nil {
		return nil, err
	}
	switch {
	case s.version < seen.Version:
		return nil, r.refused("registry_rollback: its state has version " + strconv.FormatInt(s.version, 10) + ", and had " + strconv.FormatInt(seen.Version, 10) + " before")
	case s.version == seen.Version && s.sum != seen.SHA256:
		return nil, r.refused("registry_equivocation: two states with version " + strconv.FormatInt(s.version, 10))
	}
	if err := c.saw(r, s); err != nil {
		return nil, err
	}
	now := c.Now().UTC()
	return s, shims.Store(path, got.body, bundle, shims.Meta{Registry: r.URL, FetchedAt: now, Expires: now.Add(lifetime(got.header, r))})
}

// parseState reads a state strictly; what is unknown in it is refused, because a part
// that we do not understand could be the one that withdraws something.
func parseState(r *Registry, raw []byte, now time.Time) (*state, error) {
	bad := func(why string) (*state, error) { return nil, r.refused("its state is not used: " + why) }
	root, err := atip.ParseTree(raw, atip.ParseOptions{MaxBytes: maxState})
	if err != nil {
		return bad(err.Error())
	}
	if root.Kind != atip.KindObject {
		return bad("it is not an object")
	}
	s := &state{shards: map[string]string{}, revoked: map[string]bool{}, sum: sumOf(raw)}
	kind, registry := "", ""
	for _, m := range root.Items {
		ok := true
		switch m.Key {
		case "kind":
			kind = m.Text
		case "registry":
			registry = strings.TrimRight(m.Text, "/")
		case "version":
			s.version, err = strconv.ParseInt(m.Text, 10, 64)
			ok = m.Kind == atip.KindNumber && err == nil && s.version > 0
		case "issued":
			s.issued, err = time.Parse(time.RFC3339, m.Text)
			ok = err == nil
		case "expires":
			s.expires, err = time.Parse(time.RFC3339, m.Text)
			ok = err == nil
		case "shards":
			ok = m.Kind == atip.KindObject
			for _, x := range m.Items {
				ok = ok && isHex(x.Key, 2) && isHex(x.Text, 64)
				s.shards[x.Key] = x.Text
			}
		case "revoked":
			ok = m.Kind == atip.KindObject
			for _, list := range m.Items {
				ok = ok && list.Kind == atip.KindArray && (list.Key == "sha256" || list.Key == "signers")
				if list.Key != "sha256" {
					continue // of signers nobody is believed here
				}
				for _, x := range list.Items {
					hex := strings.TrimPrefix(strings.ToLower(x.Text), "sha256:")
					ok = ok && isHex(hex, 64)
					s.revoked[hex] = true
				}
			}
		default:
			ok = strings.HasPrefix(m.Key, "x-")
		}
		if !ok {
			return bad("its " + m.Key + " cannot be read")
		}
	}
	switch {
	case kind != stateKind:
		return bad("its kind is not " + stateKind)
	case registry != r.URL:
		return bad("it is the state of " + strconv.Quote(registry))
	case s.version == 0:
		return bad("it has no version")
	case s.issued.IsZero() || !s.expires.After(s.issued) || s.expires.Sub(s.issued) > longest:
		return bad("it is not good for a time of at most 7 days")
	case s.issued.After(now.Add(clockSkew)):
		return bad("it was issued in the future")
	}
	return s, nil
}

func isHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}

// shard fetches the list of the documents that begin with two digits.
func (c *Client) shard(ctx context.Context, r *Registry, prefix, sum string) (map[string]string, error) {
	path := c.registryFile(r, "shard-"+prefix+".list")
	if raw, _, ok := shims.Cached(path); ok && sumOf(raw) == sum {
		return parseShard(r, prefix, raw)
	}
	got, err := c.get(ctx, r, "/shims/sha256/"+prefix+".list", maxShard, nil)
	if err != nil {
		return nil, err
	}
	if got.status != 200 || sumOf(got.body) != sum {
		return nil, r.refused("registry_rollback: its list " + prefix + " is not the one that its state names")
	}
	list, err := parseShard(r, prefix, got.body)
	if err != nil {
		return nil, err
	}
	return list, shims.Store(path, got.body, nil, shims.Meta{Registry: r.URL, FetchedAt: c.Now().UTC()})
}

// parseShard reads lines of "HASH SHA256-OF-THE-DOCUMENT REVISION" in rising order.
func parseShard(r *Registry, prefix string, raw []byte) (map[string]string, error) {
	list := map[string]string{}
	last := ""
	for line := range bytes.Lines(raw) {
		words := strings.Split(strings.TrimSuffix(string(line), "\n"), " ")
		if len(words) != 3 || !isHex(words[0], 64) || !isHex(words[1], 64) || !strings.HasPrefix(words[0], prefix) || words[0] <= last {
			return nil, r.refused("its list " + prefix + " cannot be read")
		}
		if _, err := strconv.ParseUint(words[2], 10, 63); err != nil {
			return nil, r.refused("its list " + prefix + " cannot be read")
		}
		last, list[words[0]] = words[0], words[1]
	}
	return list, nil
}

// seenState is the newest state of a registry that this machine ever saw.
type seenState struct {
	V       int       `json:"v"`
	URL     string    `json:"url"`
	Version int64     `json:"version"`
	SHA256  string    `json:"sha256"`
	Seen    time.Time `json:"seen"`
}

func (c *Client) seenPath(r *Registry) string {
	return filepath.Join(c.State, "verdict", "registry", r.ID+".json")
}

// seen reads it. What is there and cannot be read is an error: taken for nothing, it
// would let an old state pass for a new one.
func (c *Client) seen(r *Registry) (seenState, error) {
	var s seenState
	if c.State == "" {
		return s, nil
	}
	path := c.seenPath(r)
	raw, err := shims.ReadOwned(path, 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err == nil && (s.V != 1 || s.URL != r.URL || s.Version <= 0 || !isHex(s.SHA256, 64)) {
		err = errors.New("it is damaged")
	}
	if err != nil {
		return s, r.unavailable("its newest known state cannot be read: "+path+": "+err.Error(), err)
	}
	return s, nil
}

// saw keeps a state as the newest.
func (c *Client) saw(r *Registry, s *state) error {
	if c.State == "" {
		return nil
	}
	path := c.seenPath(r)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return r.unavailable("its newest known state cannot be stored: "+err.Error(), err)
	}
	return shims.Locked(path, func() error {
		// Another process may have seen a newer one meanwhile.
		if old, err := c.seen(r); err != nil || old.Version > s.version {
			return err
		}
		raw, err := json.Marshal(seenState{V: 1, URL: r.URL, Version: s.version, SHA256: s.sum, Seen: c.Now().UTC()})
		if err != nil {
			return err
		}
		return shims.WriteFile(path, append(raw, '\n'))
	})
}
