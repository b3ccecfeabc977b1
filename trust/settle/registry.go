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
	// Configured: a file or the environment names it.
	Configured bool
}

// badRegistries is the code of a registries.json that cannot be used.
const badRegistries = errcode.RegistryConfig

// EnvRegistries is the variable that adds registries, which bring neither signers nor tokens.
const EnvRegistries = "ATIP_REGISTRIES"

// RegistryOf finds what is configured about a registry by its address. The administrator's entry
// stands before the user's, and each can demand signatures. One that is not Configured, or not any
// more, has nothing to say: a document of it does not count.
func RegistryOf(d shims.Dirs, url string, getenv func(string) string) (Registry, error) {
	out := Registry{Rank: atip.Community}
	if url == "" {
		return out, nil
	}
	for _, dir := range [...]string{d.Managed, d.Config} {
		if dir == "" {
			continue
		}
		managed := dir == d.Managed
		file := filepath.Join(dir, "registries.json")
		root, err := shims.ReadSettings(file, badRegistries)
		if err != nil {
			return out, err
		}
		if root == nil {
			continue
		}
		var entries []*atip.Node
		if list := root.Get("registries"); list != nil {
			entries = list.Items
		}
		for _, e := range entries {
			if u := e.Get("url"); u == nil || sameAddress(u.Text) != url {
				continue
			}
			if on, ok := e.Get("enabled").Bool(); ok && !on {
				continue
			}
			r, err := RegistryEntry(file, e, managed)
			if err != nil {
				return r, err
			}
			if !out.Configured {
				required := out.Required
				out = r
				out.Configured, out.Required = true, required
			}
			for _, n := range [...]*atip.Node{e, root.Get("defaults")} {
				for _, key := range [...]string{"requireSignatures", "requireSignature"} {
					v, ok := n.Get(key).Bool()
					out.Required = out.Required || v || !ok && n.Get(key) != nil
				}
			}
		}
		if locked, _ := root.Get("locked").Bool(); locked && managed {
			return out, nil // the user's file and the environment are left out
		}
	}
	if !out.Configured {
		for word := range strings.SplitSeq(getenv(EnvRegistries), ",") {
			out.Configured = out.Configured || sameAddress(strings.TrimSpace(word)) == url
		}
	}
	return out, nil
}

// sameAddress is an address as package remote notes it beside documents. Of an odd one it may be
// another text, and then the registry counts as not configured.
func sameAddress(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	host, path, slash := strings.Cut(rest, "/")
	if slash {
		path = "/" + path
	}
	return strings.TrimRight(strings.ToLower(scheme+"://"+host)+path, "/")
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
