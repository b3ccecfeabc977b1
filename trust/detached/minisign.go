package detached

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"aead.dev/minisign"

	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/signer"
)

func (in Input) now() time.Time { return in.Now }

func (in Input) minisign() Outcome {
	var sig minisign.Signature
	if err := sig.UnmarshalText(in.Raw); err != nil {
		return malformed("%v", err)
	}
	for i := range in.Signers {
		s := &in.Signers[i]
		var key minisign.PublicKey
		if s.Type != signer.Minisign || key.UnmarshalText([]byte(s.PublicKey)) != nil || key.ID() != sig.KeyID {
			continue
		}
		return in.byMinisign(s, key, sig)
	}
	return found(trust.VerifyNoKey, "no allowed signer has the minisign key %016X", sig.KeyID)
}

func (in Input) byMinisign(s *signer.Signer, key minisign.PublicKey, sig minisign.Signature) Outcome {
	good := false
	err := in.content(func(r io.Reader) error {
		if sig.Algorithm == minisign.HashEdDSA {
			m := minisign.NewReader(r)
			if _, err := io.Copy(io.Discard, m); err != nil {
				return err
			}
			good = m.Verify(key, in.Raw)
			return nil
		}
		message, err := io.ReadAll(io.LimitReader(r, maxWhole+1))
		if err != nil {
			return err
		}
		if len(message) > maxWhole {
			return errors.New("the file has more than 64 MiB, and its signature is not over a hash")
		}
		good = minisign.Verify(key, message, in.Raw)
		return nil
	})
	switch {
	case errors.Is(err, errOther):
		return found(trust.VerifyOtherArtifact, "%v", err)
	case err != nil:
		return found(trust.VerifyFailed, "%v", err)
	case !good:
		return found(trust.VerifySigInvalid, "the signature does not match")
	}
	// Only now is the comment known to be the signer's.
	stated, hasDigest := "", false
	e := &trust.Evidence{Identity: key.String(), TimeSource: "signature"}
	for _, word := range strings.Fields(sig.TrustedComment) {
		if digest, ok := strings.CutPrefix(word, "sha256:"); ok {
			stated, hasDigest = digest, true
		}
		if text, ok := strings.CutPrefix(word, "timestamp:"); ok {
			if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
				e.SignedAt = time.Unix(seconds, 0).UTC()
			}
		}
	}
	switch {
	case hasDigest && !strings.EqualFold(stated, in.SHA256):
		return found(trust.VerifyOtherArtifact, "the trusted comment is about sha256:%s", stated)
	case !hasDigest && s.RequireComment:
		return found(trust.VerifySigInvalid, "the trusted comment has no sha256:, which the signer %s requires", s.Name)
	}
	if e.SignedAt.IsZero() {
		e.TimeSource = ""
	}
	return in.holder(s, e, func(f *signer.Signer) bool { return f.Type == signer.Minisign && f.PublicKey == s.PublicKey }, s.PublicKey)
}
