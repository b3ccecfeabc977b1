package detached

import (
	"bytes"
	"crypto"
	"encoding/hex"
	"errors"
	"io"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	openpgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// strict is what of OpenPGP is believed. Its defaults are the library's; they are written
// out so that an upgrade cannot loosen them.
func strict() *packet.Config {
	weak := map[crypto.Hash]bool{crypto.MD5: true, crypto.SHA1: true, crypto.RIPEMD160: true}
	return &packet.Config{
		MinRSABits:                  2048,
		RejectPublicKeyAlgorithms:   map[packet.PublicKeyAlgorithm]bool{packet.PubKeyAlgoDSA: true, packet.PubKeyAlgoElGamal: true},
		RejectHashAlgorithms:        weak,
		RejectMessageHashAlgorithms: weak,
	}
}

func (in Input) openpgp() Outcome {
	sig, why := signaturePackets(in.Raw)
	if why != "" {
		return malformed("%s", why)
	}
	var names []string
	for i := range in.Signers {
		s := &in.Signers[i]
		if s.Type != signer.GPG || len(s.Material) == 0 {
			continue
		}
		key, err := keyOf(s)
		if err != nil {
			return found(trust.VerifyNoKey, "the keyring of %s: %v", s.Name, err)
		}
		out, mine := in.withKey(sig, s, key)
		if mine {
			return out
		}
		names = append(names, s.Name)
	}
	return found(trust.VerifyNoKey, "no key of the policy made this signature (%d tried)", len(names))
}

// withKey verifies with the key of one entry; mine says that the signature names it.
func (in Input) withKey(sig []byte, s *signer.Signer, key *openpgp.Entity) (out Outcome, mine bool) {
	var made *packet.Signature
	config := strict()
	config.Time = in.now
	err := in.content(func(r io.Reader) (err error) {
		made, _, err = openpgp.VerifyDetachedSignature(openpgp.EntityList{key}, r, bytes.NewReader(sig), config)
		return err
	})
	switch {
	case errors.Is(err, openpgperrors.ErrUnknownIssuer):
		return out, false
	case errors.Is(err, errOther):
		return found(trust.VerifyOtherArtifact, "%v", err), true
	case err != nil:
		return found(trust.VerifySigInvalid, "%v", err), true
	case made == nil || made.CreationTime.IsZero():
		return found(trust.VerifyNoTime, "the signature has no time"), true
	case made.CreationTime.After(in.Now):
		return found(trust.VerifySigInvalid, "the signature is from the future"), true
	case key.Revoked(made.CreationTime):
		return found(trust.VerifySignerRevoked, "the key was revoked"), true
	}
	print := hex.EncodeToString(key.PrimaryKey.Fingerprint)
	e := &trust.Evidence{Identity: print, SignedAt: made.CreationTime.UTC(), TimeSource: "signature"}
	return in.holder(s, e, func(f *signer.Signer) bool { return f.Type == signer.GPG && f.Fingerprint == print }, print, s.Fingerprint), true
}

// keyOf finds the one key of a keyring that has the whole fingerprint: a key id is 8 bytes
// of it, which others can reach.
func keyOf(s *signer.Signer) (*openpgp.Entity, error) {
	var list openpgp.EntityList
	var err error
	if bytes.HasPrefix(bytes.TrimSpace(s.Material), []byte("-----BEGIN PGP PUBLIC KEY BLOCK-----")) {
		list, err = openpgp.ReadArmoredKeyRing(bytes.NewReader(s.Material))
	} else {
		list, err = openpgp.ReadKeyRing(bytes.NewReader(s.Material))
	}
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		if hex.EncodeToString(e.PrimaryKey.Fingerprint) == s.Fingerprint {
			return e, nil
		}
	}
	return nil, errors.New("it has no key " + s.Fingerprint)
}

// signaturePackets takes the armor off.
func signaturePackets(raw []byte) (sig []byte, why string) {
	if !bytes.HasPrefix(raw, []byte("-----BEGIN")) {
		return raw, ""
	}
	block, err := armor.Decode(bytes.NewReader(raw))
	if err != nil || block.Type != "PGP SIGNATURE" {
		return nil, "the armor is not that of a signature"
	}
	sig, err = io.ReadAll(block.Body)
	if err != nil {
		return nil, "the armor is damaged: " + err.Error()
	}
	return sig, ""
}
