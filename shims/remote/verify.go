package remote

import (
	"context"
	"os"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/settle"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// Verifier judges bytes that a registry sent, before any of them is stored. detail is what a
// person should know beyond the verdict.
type Verifier func(q settle.Query, required bool) (v trust.Verdict, detail string, err error)

// unverified is the answer where a signature is required and there is no verifier.
const unverified = "signatures are required and cannot be verified here"

// signed judges what came with a bundle, or without one. Where a signature is required
// nothing less than a proven one passes; elsewhere a bundle that is there and bad is refused
// all the same, as is the lack of one where there was one before.
func (c *Client) signed(r *Registry, m manifest, q settle.Query) error {
	required := r.RequireSignatures || m.requireSignatures
	if c.Verify == nil {
		if required {
			return r.withdrawn(unverified)
		}
		return nil
	}
	q.Signers = append(q.Signers, r.Signers...)
	if m.signers != nil {
		q.Filters = append(q.Filters, m.signers)
	}
	v, detail, err := c.Verify(q, required)
	if err != nil {
		return err
	}
	if v.Action == trust.Deny {
		why := v.Level.String() + " (" + v.Reason + ")"
		if detail != "" {
			why += ": " + detail
		}
		return r.refused(why)
	}
	return nil
}

// bundleFor fetches the signature that lies beside a path; nil if there is none.
func (c *Client) bundleFor(ctx context.Context, r *Registry, path string) ([]byte, error) {
	got, err := c.get(ctx, r, path, request.MaxBundle, nil)
	if err != nil || got.status != 200 {
		return nil, err
	}
	return got.body, nil
}

// document is the query about a document as it came.
func (a *attempt) document(d *atip.Document, raw, bundle []byte) settle.Query {
	q := settle.DocumentQuery(d, "", sumOf(raw), a.hex, bundle)
	q.Data, q.Path, q.Place = raw, "", a.r.URL+"#"+a.hex
	if bundle == nil {
		q.Signatures = nil
	}
	return q
}

// plain is the query about something that is no document: a state or a policy. Signers who
// sign only for some tools do not sign these.
func plain(r *Registry, what string, raw, bundle []byte) settle.Query {
	q := settle.Query{Kind: "metadata", SHA256: sumOf(raw), Data: raw, Place: r.URL + "#" + what}
	if bundle != nil {
		q.Signatures = []request.Signature{{Format: "auto", Data: bundle}}
	}
	return q
}

// kept is the bundle of a document at hand.
func kept(path string) []byte {
	raw, err := os.ReadFile(path + ".bundle")
	if err != nil || len(raw) > request.MaxBundle {
		return nil
	}
	return raw
}

// manifestSigners reads whom a registry names itself. It is the party being judged: its list
// can only remove from the local one.
func manifestSigners(n *atip.Node) ([]signer.Signer, error) {
	list, _, err := signer.Parse(n, signer.Options{Name: "manifest", Restricts: true})
	return list, err
}
