package sigstore

import (
	"context"

	"github.com/sigstore/sigstore-go/pkg/tuf"
)

// Update is where a root comes from.
type Update struct {
	Mirror  string // URL of the TUF repository; "" is that of Sigstore
	TUFRoot []byte // its first root.json; nil is the one inside the program
	Cache   string // directory of TUF metadata, which keeps an older answer from passing for a newer one
}

// Fetch asks a TUF repository for its trusted root. It is the only function here that opens a
// connection but for signing.
func Fetch(ctx context.Context, u Update) ([]byte, error) {
	o := tuf.DefaultOptions().WithContext(ctx).WithCachePath(u.Cache)
	if u.Mirror != "" {
		o = o.WithRepositoryBaseURL(u.Mirror)
	}
	if u.TUFRoot != nil {
		o = o.WithRoot(u.TUFRoot)
	}
	c, err := tuf.New(o)
	if err != nil {
		return nil, err
	}
	if err := c.Refresh(); err != nil {
		return nil, err
	}
	return c.GetTarget("trusted_root.json")
}
