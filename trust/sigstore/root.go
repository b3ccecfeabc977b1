// Package sigstore checks Sigstore bundles, cosign's older bundles and their provenance
// against trusted roots and local signers, and makes bundles. It is the only importer of the
// Sigstore libraries, and only atip-verify links it. trust.md sections 4 and 5.
package sigstore

import (
	"bytes"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	prototrustroot "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/atip-dev/atip-exec/trust/request"
)

// Profiles: what a deployment has to offer as proof of time and of logging.
const (
	PublicGood = "public-good"
	GitHub     = "github"
	Private    = "private"
)

//go:embed roots/sigstore.json
var embeddedRoot []byte

//go:embed roots/sigstore.meta.json
var embeddedMeta []byte

// Embedded returns the root inside the program and what is known about it.
func Embedded() (raw []byte, meta Meta) {
	if json.Unmarshal(embeddedMeta, &meta) != nil {
		meta = Meta{}
	}
	return embeddedRoot, meta
}

// Meta is the side file of a root, NAME.meta.json.
type Meta struct {
	Fetched time.Time `json:"fetched"`
	SHA256  string    `json:"sha256,omitempty"`
	Profile string    `json:"profile,omitempty"`
}

// Root is a parsed trusted root.
type Root struct {
	Name    string
	Profile string
	Fetched time.Time
	Managed bool
	// Shadowed: only the administrator's signers are checked against it.
	Shadowed bool
	Skipped  []string // logs with a kind of key that nobody here reads

	material root.TrustedMaterial
}

// ParseRoot reads a trusted root. Logs with unknown kinds of keys are left out, any other
// defect is an error.
func ParseRoot(r request.Root) (*Root, error) {
	out := &Root{Name: r.Name, Profile: r.Profile, Fetched: r.Fetched, Managed: r.Managed, Shadowed: r.Shadowed}
	raw := r.Data
	if raw == nil {
		if r.Name != "sigstore" {
			return nil, errors.New("there is no root " + r.Name)
		}
		var meta Meta
		raw, meta = Embedded()
		out.Profile, out.Fetched, out.Managed = meta.Profile, meta.Fetched, true
	}
	if len(raw) > request.MaxRoot {
		return nil, errors.New("the root has more than 1 MiB")
	}
	pb := &prototrustroot.TrustedRoot{}
	if err := protojson.Unmarshal(raw, pb); err != nil {
		return nil, fmt.Errorf("the root cannot be read: %w", err)
	}
	var err error
	if pb.Tlogs, err = out.readable(pb.Tlogs); err != nil {
		return nil, err
	}
	if pb.Ctlogs, err = out.readable(pb.Ctlogs); err != nil {
		return nil, err
	}
	if len(pb.Tlogs)+len(pb.CertificateAuthorities)+len(pb.TimestampAuthorities) == 0 {
		return nil, errors.New("the root names no authority")
	}
	if out.material, err = root.NewTrustedRootFromProtobuf(pb); err != nil {
		return nil, fmt.Errorf("the root cannot be used: %w", err)
	}
	switch out.Profile {
	case PublicGood, GitHub, Private:
	case "":
		out.Profile = Private
		if r.Name == "sigstore" {
			out.Profile = PublicGood
		}
	default:
		return nil, errors.New("the root has an unknown profile " + out.Profile)
	}
	return out, nil
}

// readable leaves out what the library calls unsupported, one by one, since it refuses the
// whole root for one of them.
func (r *Root) readable(logs []*prototrustroot.TransparencyLogInstance) (out []*prototrustroot.TransparencyLogInstance, err error) {
	for _, log := range logs {
		if _, err := root.ParseTransparencyLogs([]*prototrustroot.TransparencyLogInstance{log}); err != nil {
			if !strings.Contains(err.Error(), "unsupported tlog public key type") {
				return nil, fmt.Errorf("the root cannot be used: %w", err)
			}
			r.Skipped = append(r.Skipped, log.GetBaseUrl())
			continue
		}
		out = append(out, log)
	}
	return out, nil
}

// knowsCA reports whether the root has the authority that a certificate names as its issuer.
func (r *Root) knowsCA(leaf *x509.Certificate) bool {
	for _, ca := range r.material.FulcioCertificateAuthorities() {
		f, ok := ca.(*root.FulcioCertificateAuthority)
		if !ok {
			continue
		}
		for _, c := range append([]*x509.Certificate{f.Root}, f.Intermediates...) {
			if c != nil && bytes.Equal(c.RawSubject, leaf.RawIssuer) &&
				(len(c.SubjectKeyId) == 0 || len(leaf.AuthorityKeyId) == 0 || bytes.Equal(c.SubjectKeyId, leaf.AuthorityKeyId)) {
				return true
			}
		}
	}
	return false
}

// Authority is one line of a root, for people.
type Authority struct {
	Kind  string    `json:"kind"` // ca, log, ctlog, tsa
	URI   string    `json:"uri"`
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
	Key   string    `json:"key,omitempty"`
}

// Authorities lists what the root trusts.
func (r *Root) Authorities() []Authority {
	var out []Authority
	for _, ca := range r.material.FulcioCertificateAuthorities() {
		if f, ok := ca.(*root.FulcioCertificateAuthority); ok {
			out = append(out, Authority{"ca", f.URI, f.ValidityPeriodStart, f.ValidityPeriodEnd, keyName(f.Root)})
		}
	}
	for kind, logs := range map[string]map[string]*root.TransparencyLog{"log": r.material.RekorLogs(), "ctlog": r.material.CTLogs()} {
		for id, l := range logs {
			out = append(out, Authority{kind, l.BaseURL, l.ValidityPeriodStart, l.ValidityPeriodEnd, id})
		}
	}
	for _, t := range r.material.TimestampingAuthorities() {
		if f, ok := t.(*root.SigstoreTimestampingAuthority); ok {
			out = append(out, Authority{"tsa", f.URI, f.ValidityPeriodStart, f.ValidityPeriodEnd, keyName(f.Root)})
		}
	}
	sortAuthorities(out)
	return out
}

// Lost lists the authorities of the old root that are still valid and that the new one has
// no more.
func Lost(old, new *Root, now time.Time) []Authority {
	have := map[string]bool{}
	for _, a := range new.Authorities() {
		have[a.Kind+a.Key] = true
	}
	var out []Authority
	for _, a := range old.Authorities() {
		if !have[a.Kind+a.Key] && (a.End.IsZero() || now.Before(a.End)) {
			out = append(out, a)
		}
	}
	return out
}
