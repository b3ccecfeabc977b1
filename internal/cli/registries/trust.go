package registries

import (
	"crypto/x509"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/atip-dev/atip-exec/internal/authority"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/cli/approvals"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust/settle"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// TrustVerb keeps the signers of this machine. Roots are read by the program that links the
// libraries for them.
func TrustVerb(c *cli.Console, v *cli.Values) (int, error) {
	what, name := "", ""
	if len(v.Rest) > 0 {
		what = v.Rest[0]
	}
	if len(v.Rest) == 2 {
		name = v.Rest[1]
	}
	switch {
	case what == "update" || what == "status":
		return 0, cli.HandOver("atip-verify", os.Args[1:])
	case what == "list" && len(v.Rest) == 1:
		return listSigners(c, v)
	case (what == "add-signer" || what == "forget") && name != "":
		if !signer.IsName(name) {
			return 0, fault.New(errcode.Arguments, fmt.Sprintf("%q is no name of a signer", name)).WithFix("use letters, digits and . _ -", "atip trust "+what+" acme")
		}
		if what == "forget" {
			return 0, forgetSigner(v, name)
		}
		return 0, addSigner(v, name)
	}
	return 0, fault.New(errcode.Arguments, "trust needs one of update, status, list, add-signer NAME, forget NAME").WithFix("see `atip trust --help`", "atip trust list")
}

func trustDir(v *cli.Values) (string, error) {
	dirs, _, err := answer.Home()
	if err != nil {
		return "", err
	}
	if v.Has("system") {
		return filepath.Join(place.Managed, "trust"), nil
	}
	return filepath.Join(dirs.Config, "trust"), nil
}

func listSigners(c *cli.Console, v *cli.Values) (int, error) {
	m := caller.Here()
	dirs, _, err := answer.Home()
	if err != nil {
		return 0, err
	}
	policies, err := plan.Policies(m)
	if err != nil {
		return 0, err
	}
	config, err := authority.Session(m, dirs, policies.TrustPolicy()).Config()
	if err != nil {
		return 0, err
	}
	type line struct {
		Name    string          `json:"name"`
		Managed bool            `json:"managed"`
		Signer  json.RawMessage `json:"signer"`
	}
	lines := []line{}
	for _, s := range config.Signers {
		s.Material = nil
		raw, err := json.Marshal(s)
		if err != nil {
			return 0, fault.New(errcode.Internal, err.Error())
		}
		lines = append(lines, line{s.Name, s.Managed, raw})
	}
	end := ""
	if len(lines) == 0 {
		end = "no signer is allowed; `atip trust add-signer` adds one\n"
	}
	return 0, answer.List(c, v, map[string]any{"kind": "atip-exec.trust/1", "ok": true, "signers": lines}, config.Signers, func(s signer.Signer) string {
		return answer.Plain(s.Name) + "  " + answer.Plain(signerText(s)) + "\n"
	}, end)
}

// signerText is an entry in one line.
func signerText(s signer.Signer) string {
	text := s.Type + " " + s.Identity + s.IdentityPrefix + s.IdentityPattern + s.Key + s.Fingerprint + s.PublicKey
	if s.Issuer != "" {
		text += ", issuer " + s.Issuer
	}
	if s.SourceRepository != "" {
		text += ", built from " + s.SourceRepository
	}
	if s.AnySource {
		text += ", ANY repository"
	}
	if len(s.Tools) > 0 {
		text += ", only for " + strings.Join(s.Tools, " ")
	}
	if len(s.VouchesFor) > 0 {
		text += ", vouches for " + strings.Join(s.VouchesFor, " and ")
	}
	return text
}

// personTerminal is the terminal of a person, outside of every run.
func personTerminal() (*approvals.Terminal, error) {
	a, err := approvals.Open()
	if err != nil {
		return nil, err
	}
	return a.OwnTerminal()
}

// signersOf is where a person changes signers: on a terminal, in the directory that the flags name.
func signersOf(v *cli.Values) (*approvals.Terminal, string, error) {
	dir, err := trustDir(v)
	if err != nil {
		return nil, "", err
	}
	t, err := personTerminal()
	return t, dir, err
}

// addSigner writes one entry after a person has read it.
func addSigner(v *cli.Values, name string) error {
	t, dir, err := signersOf(v)
	if err != nil {
		return err
	}
	defer t.Close()
	s, key, err := describedSigner(v, name)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fault.New(errcode.Internal, err.Error())
	}
	path := filepath.Join(dir, "signers", name+".json")
	// The strict reader has the last word on what may stand in such a file.
	if _, _, err := settle.ParseSigners(path, raw, name, v.Has("system")); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		return fault.New(errcode.NoInputFile, path+" is there already").WithFix("forget it first, or choose another name", "atip trust forget "+name)
	}
	if err := t.Say(answer.Visible(strings.ReplaceAll(string(raw), "\n", "\r\n")) + "\r\n"); err != nil {
		return err
	}
	if err := t.Confirm("You will trust what this identity signs. Type yes to allow it: ", "nothing was added"); err != nil {
		return err
	}
	for _, sub := range []string{"signers", "keys"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return fault.New(errcode.NoInputFile, err.Error())
		}
	}
	if key != nil {
		if err := shims.WriteFile(filepath.Join(dir, filepath.FromSlash(s.Key+s.Keyring)), key); err != nil {
			return err
		}
	}
	return shims.WriteFile(path, append(raw, '\n'))
}

// describedSigner makes the entry out of the flags; key is the file that comes with it.
func describedSigner(v *cli.Values, name string) (s signer.Signer, key []byte, err error) {
	s = signer.Signer{Type: signer.Cosign, Identity: v.Get("identity"), IdentityPrefix: v.Get("identity-prefix"), IdentityPattern: v.Get("identity-pattern"), Issuer: v.Get("issuer"),
		SourceRepository: v.Get("source-repository"), AnySource: v.Has("any-source"), Tools: v.All("tool"), VouchesFor: v.All("vouches-for"), Root: v.Get("root")}
	if file := v.Get("from-bundle"); file != "" {
		raw, err := answer.ReadFile(file, 1<<20)
		if err != nil {
			return s, nil, err
		}
		if err := fromBundle(raw, &s); err != nil {
			return s, nil, fault.New(errcode.MetadataStructure, file+": "+err.Error()).With("file", file)
		}
	}
	switch {
	case v.Get("public-key") != "":
		s.Type, s.PublicKey = signer.Minisign, v.Get("public-key")
	case v.Get("key") != "":
		if key, err = answer.ReadFile(v.Get("key"), 1<<20); err != nil {
			return s, nil, err
		}
		if v.Get("fingerprint") != "" {
			s.Type, s.Fingerprint, s.Keyring = signer.GPG, v.Get("fingerprint"), "keys/"+name+".asc"
			break
		}
		if block, _ := pem.Decode(key); block == nil || block.Type != "PUBLIC KEY" {
			return s, nil, fault.New(errcode.MetadataStructure, v.Get("key")+" is no public key in PEM").WithFix("name the .pub file; of OpenPGP also --fingerprint", "")
		}
		s.Key, s.Log = "keys/"+name+".pub", v.Get("log")
	}
	return s, key, nil
}

// fromBundle takes identity, issuer and source repository out of the certificate of a bundle.
// Nothing of it is verified: a person reads it before it counts.
func fromBundle(raw []byte, s *signer.Signer) error {
	type certificate struct {
		RawBytes []byte `json:"rawBytes"`
	}
	var b struct {
		Cert     []byte `json:"cert"` // of a cosign bundle: PEM
		Material struct {
			Certificate certificate `json:"certificate"`
			Chain       struct {
				Certificates []certificate `json:"certificates"`
			} `json:"x509CertificateChain"`
		} `json:"verificationMaterial"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		return errors.New("it is no bundle: " + err.Error())
	}
	der := b.Material.Certificate.RawBytes
	if der == nil && len(b.Material.Chain.Certificates) > 0 {
		der = b.Material.Chain.Certificates[0].RawBytes
	}
	if block, _ := pem.Decode(b.Cert); der == nil && block != nil {
		der = block.Bytes
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return errors.New("it holds no certificate; a key is added with --key")
	}
	switch {
	case len(leaf.URIs) > 0:
		s.Identity = leaf.URIs[0].String()
	case len(leaf.EmailAddresses) > 0:
		s.Identity = leaf.EmailAddresses[0]
	}
	for _, x := range leaf.Extensions {
		// Fulcio's arc: 1 is the issuer as it was written first, 8 the same as DER, 12 the
		// repository that was built.
		number, ok := strings.CutPrefix(x.Id.String(), "1.3.6.1.4.1.57264.1.")
		text := ""
		switch {
		case !ok:
		case number == "1" && s.Issuer == "":
			s.Issuer = string(x.Value)
		case number == "8" || number == "12":
			if rest, err := asn1.Unmarshal(x.Value, &text); err != nil || len(rest) > 0 {
				return errors.New("an extension of its certificate cannot be read")
			}
		}
		switch {
		case text != "" && number == "8":
			s.Issuer = text
		case text != "" && number == "12" && s.SourceRepository == "":
			s.SourceRepository = text
		}
	}
	return nil
}

// forgetSigner removes an entry with its key.
func forgetSigner(v *cli.Values, name string) error {
	t, dir, err := signersOf(v)
	if err != nil {
		return err
	}
	defer t.Close()
	path := filepath.Join(dir, "signers", name+".json")
	if _, err := os.Lstat(path); err != nil {
		return fault.New(errcode.NoInputFile, path+" is not there").WithFix("`atip trust list` shows the signers", "atip trust list")
	}
	if err := t.Confirm("What "+name+" signed is then no longer VERIFIED. Type yes to forget it: ", "nothing was forgotten"); err != nil {
		return err
	}
	for _, file := range []string{path, filepath.Join(dir, "keys", name+".pub"), filepath.Join(dir, "keys", name+".asc")} {
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			return fault.New(errcode.OutputWrite, err.Error())
		}
	}
	return nil
}
