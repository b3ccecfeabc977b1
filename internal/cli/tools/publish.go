package tools

import (
	"fmt"
	"time"

	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/shims/remote"
)

// publishVerb lays out a registry in a folder. It signs nothing and sends nothing.
func publishVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) == 0 {
		return 0, fault.New("E1004", "publish needs a directory").WithFix("name the directory to serve, then the documents", "atip publish www mytool.json")
	}
	uploads, err := remote.Uploads(v.Rest[1:])
	if err == nil {
		var p remote.Published
		o := remote.PublishOptions{Name: v.Get("name"), URL: v.Get("url"), RequireSignatures: v.Has("require-signatures"), State: v.Has("state"), Now: time.Now()}
		if p, err = remote.Publish(v.Rest[0], uploads, o); err == nil {
			return 0, published(c, p)
		}
	}
	if f := fault.From(err); f.Code != "E5001" {
		return 0, f
	}
	return 0, fault.New("E1005", err.Error())
}

func published(c *cli.Console, p remote.Published) error {
	if c.Documents() {
		return c.Document(struct {
			Kind string `json:"kind"`
			remote.Published
		}{"atip-exec.publish/1", p})
	}
	return c.Text(plain(fmt.Sprintf("%s: %d documents added, %d of %d tools in all, %d signed", p.Dir, len(p.Added), p.Total, p.Tools, p.Signed)) + "\n")
}
