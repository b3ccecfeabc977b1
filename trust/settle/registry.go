package settle

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// Registry is what registries.json says about the signatures of one registry.
type Registry struct {
	Signers []signer.Signer
	// Rank is how far documents are believed whose signer only this entry names.
	Rank atip.Rank
	// Required: its documents count only with a proven signature.
	Required bool
}

// badRegistries is the code of a registries.json that cannot be used.
const badRegistries = errcode.RegistryConfig

// RegistryOf finds the entry of a registry by its address: the administrator's before the
// user's. One that the environment brought has no signers.
func RegistryOf(d shims.Dirs, url string) (Registry, error) {
	r := Registry{Rank: atip.Community}
	if url == "" {
		return r, nil
	}
	for _, dir := range [...]string{d.Managed, d.Config} {
		if dir == "" {
			continue
		}
		file := filepath.Join(dir, "registries.json")
		root, err := shims.ReadSettings(file, badRegistries)
		if err != nil {
			return r, err
		}
		if root == nil {
			continue
		}
		list := root.Get("registries")
		if list == nil {
			continue
		}
		for _, e := range list.Items {
			if u := e.Get("url"); u != nil && strings.TrimRight(u.Text, "/") == url {
				r, err := RegistryEntry(file, e, dir == d.Managed)
				for _, n := range [...]*atip.Node{e, root.Get("defaults")} {
					for _, key := range [...]string{"requireSignatures", "requireSignature"} {
						v, ok := n.Get(key).Bool()
						r.Required = r.Required || v || !ok && n.Get(key) != nil
					}
				}
				return r, err
			}
		}
	}
	return r, nil
}

// RegistryEntry reads signers and source of an entry of registries.json.
func RegistryEntry(file string, e *atip.Node, managed bool) (Registry, error) {
	r := Registry{Rank: atip.Community}
	bad := func(n *atip.Node, msg string) (Registry, error) {
		return r, &shims.SettingsError{Code: badRegistries, File: file, Line: n.Line, Col: n.Col, Msg: msg}
	}
	if source := e.Get("source"); source != nil {
		switch source.Text {
		case "community":
		case "org":
			r.Rank = atip.Org
		case "vendor":
			r.Rank = atip.Vendor
		default:
			return bad(source, "source must be community, org or vendor")
		}
	}
	list := e.Get("signers")
	if list == nil {
		return r, nil
	}
	name := "registry"
	if n := e.Get("name"); n != nil && n.Text != "" {
		name = n.Text
	}
	var err error
	r.Signers, _, err = signer.Parse(list, signer.Options{Name: "signers of " + name, Managed: managed})
	var at *signer.NodeError
	if errors.As(err, &at) {
		line, col := at.Position()
		return r, &shims.SettingsError{Code: badRegistries, File: file, Line: line, Col: col, Msg: at.Msg}
	}
	for i := range r.Signers {
		// What a registry signs are documents, whoever it names.
		r.Signers[i].VouchesFor = []string{signer.Metadata}
	}
	return r, nil
}
