package remote

import (
	"context"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/shims"
)

// Approve asks one registry whether it approves a file: whether it has a document about
// exactly this one. The answer is kept apart from the documents that look-ups find,
// since another registry may have the word there.
func (c *Client) Approve(ctx context.Context, id, digest string) (Result, error) {
	hex, ok := Digest(digest)
	if !ok {
		return Result{}, &Error{Code: errcode.RegistryAnswer, Msg: "that is no digest of an executable"}
	}
	q := question{hex: hex, path: c.Dirs.ApprovalPath(id, hex), none: "unapproved_binary: the registry has no document about it", strict: true}
	for i := range c.Config.Registries {
		if r := &c.Config.Registries[i]; r.ID == id {
			q.of = []*Registry{r}
		}
	}
	if q.of == nil {
		return Result{}, &Error{Code: errcode.RegistryUnavailable, Msg: "the registry that approves files is not configured any longer; `atip sync` drops its policy"}
	}
	return c.ask(ctx, q)
}

// Approvers lists the registries whose policy lets only approved files run.
func (c *Client) Approvers() []string {
	var out []string
	for i := range c.Config.Registries {
		if r := &c.Config.Registries[i]; c.approves(r) {
			out = append(out, r.ID)
		}
	}
	return out
}

// approves reports whether the policy that came from a registry demands its approval.
func (c *Client) approves(r *Registry) bool {
	raw, _, ok := shims.Cached(c.registryFile(r, "policy.json"))
	if !ok {
		return false
	}
	root, err := atip.ParseTree(raw, atip.ParseOptions{MaxBytes: maxPolicy})
	if err != nil {
		return false
	}
	mode := root.Get("policy").Get("approval").Get("mode")
	return mode != nil && mode.Text == "allowlist"
}

// order is that of the configuration, with registries that approve files in front.
func (c *Client) order() []*Registry {
	var first, rest []*Registry
	for i := range c.Config.Registries {
		if r := &c.Config.Registries[i]; c.approves(r) {
			first = append(first, r)
		} else {
			rest = append(rest, r)
		}
	}
	return append(first, rest...)
}
