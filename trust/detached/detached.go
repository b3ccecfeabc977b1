// Package detached verifies signatures that lie beside a file and carry no proof of time or
// log: OpenPGP, minisign, and either of them over a list of SHA-256 sums. Keys come from
// local policy alone: never from a key server, and never from ~/.gnupg. It is the only
// importer of its libraries. trust.md section 5.
package detached

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// Formats.
const (
	OpenPGP  = "openpgp"
	Minisign = "minisign"
	Sums     = "sums"
)

// maxWhole is the largest file whose bytes are held in memory, for the kind of minisign
// signature that is not over a hash.
const maxWhole = 64 << 20

// Input is one signature and what it is held against.
type Input struct {
	Raw    []byte
	Format string
	Kind   string // tool, metadata
	Tool   string
	SHA256 string // hex, of the subject
	// Open gives the subject's bytes; nil if there are none.
	Open    func() (io.ReadCloser, error)
	Sums    []byte // the signed list, for Sums
	Signers []signer.Signer
	Filters [][]signer.Signer
	Revoked []signer.Revocation
	Now     time.Time
}

// Outcome is what was found of one signature.
type Outcome struct {
	Bundle   trust.Bundle
	Verify   trust.Verify
	Evidence *trust.Evidence
	Detail   string
}

func found(v trust.Verify, format string, args ...any) Outcome {
	return Outcome{Bundle: trust.BundlePresent, Verify: v, Detail: fmt.Sprintf(format, args...)}
}

func malformed(format string, args ...any) Outcome {
	return Outcome{Bundle: trust.BundleUnreadable, Detail: fmt.Sprintf(format, args...)}
}

// Check verifies one signature.
func Check(in Input) Outcome {
	if len(in.Raw) > request.MaxBundle {
		return malformed("the signature has more than 1 MiB")
	}
	if in.Format == Sums {
		return in.sums()
	}
	var out Outcome
	if in.Format == Minisign {
		out = in.minisign()
	} else {
		out = in.openpgp()
	}
	if out.Evidence != nil {
		sum := sha256.Sum256(in.Raw)
		out.Evidence.BundleSHA256 = hex.EncodeToString(sum[:])
	}
	return out
}

// sums verifies a signed list and looks for the subject in it.
func (in Input) sums() Outcome {
	if len(in.Sums) == 0 {
		return Outcome{Bundle: trust.BundleAbsent, Detail: "the signed list of sums is missing"}
	}
	if len(in.Sums) > request.MaxSums {
		return malformed("the list of sums has more than 4 MiB")
	}
	over := in
	over.Format = Guess(in.Raw)
	if over.Format == "" {
		return malformed("the signature of the list is neither OpenPGP nor minisign")
	}
	sum := sha256.Sum256(in.Sums)
	over.SHA256, over.Sums = hex.EncodeToString(sum[:]), nil
	over.Open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(in.Sums)), nil }
	out := Check(over)
	if out.Verify != trust.VerifyOK {
		return out
	}
	switch n := Listed(in.Sums, in.SHA256); n {
	case 1:
		return out
	case 0:
		out.Verify, out.Detail = trust.VerifyOtherArtifact, "the signed list does not have sha256:"+in.SHA256
	default:
		out.Verify, out.Detail = trust.VerifyOtherArtifact, fmt.Sprintf("the signed list has sha256:%s in %d lines", in.SHA256, n)
	}
	return out
}

// Listed counts the lines of a list as sha256sum writes it that have this digest: the hex, a
// space, a space or "*", a name.
func Listed(list []byte, digest string) int {
	count := 0
	for line := range bytes.Lines(list) {
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if len(text) > 66 && strings.EqualFold(text[:64], digest) && text[64] == ' ' && (text[65] == ' ' || text[65] == '*') {
			count++
		}
	}
	return count
}

// Guess tells a detached signature by its first bytes, "" if it is none we know.
func Guess(raw []byte) string {
	switch {
	case bytes.HasPrefix(raw, []byte("untrusted comment:")):
		return Minisign
	case bytes.HasPrefix(raw, []byte("-----BEGIN PGP SIGNATURE-----")):
		return OpenPGP
	case len(raw) > 2 && raw[0]&0x80 != 0 && (raw[0]&0x40 != 0 && raw[0]&0x3f == 2 || raw[0]&0x40 == 0 && raw[0]>>2&0x0f == 2):
		return OpenPGP // a signature packet, RFC 9580 section 4.2
	}
	return ""
}

var errOther = errors.New("the file has another digest than the one that is judged")

// content hands the subject's bytes to f and makes sure that they are the ones judged.
func (in Input) content(f func(io.Reader) error) error {
	if in.Open == nil {
		return errors.New("the bytes of the file are not at hand")
	}
	file, err := in.Open()
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	tee := io.TeeReader(file, sum)
	failed := f(tee)
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != in.SHA256 {
		return errOther
	}
	return failed
}

// holder decides about the entry whose key made the signature.
func (in Input) holder(s *signer.Signer, e *trust.Evidence, same func(*signer.Signer) bool, names ...string) Outcome {
	at := e.SignedAt
	if at.IsZero() {
		at = in.Now
	}
	vouch := signer.Binary
	if in.Kind == "metadata" {
		vouch = signer.Metadata
	}
	out := Outcome{Bundle: trust.BundlePresent, Verify: trust.VerifyIdentity, Evidence: e}
	for _, v := range in.Revoked {
		// The time is the signer's own word: a revocation with a date does not trust it.
		if v.Hits(time.Time{}, append(names, s.Name)...) {
			out.Verify, out.Detail = trust.VerifySignerRevoked, names[0]+" is revoked"
			return out
		}
	}
	switch {
	case !s.For(vouch, in.Tool) || !s.During(at) || !s.During(in.Now) && e.SignedAt.IsZero():
		out.Detail = "the signer " + s.Name + " may not sign this"
	case !signer.Permitted(in.Filters, same):
		out.Detail = "a policy that tightens does not list " + names[0]
	default:
		out.Verify, e.Signer = trust.VerifyOK, s.Name
	}
	return out
}
