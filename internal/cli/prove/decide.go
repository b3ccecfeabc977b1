package prove

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strconv"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/request"
)

// row is one line of `verify --decide -`: facts about a signature, in words.
type row struct {
	Checksum         string `json:"checksum"`
	SigType          string `json:"sigType"`
	Bundle           string `json:"bundle"`
	Verify           string `json:"verify"`
	Provenance       string `json:"provenance"`
	SLSAComputed     int    `json:"slsaComputed"`
	MinimumSLSALevel int    `json:"minimumSlsaLevel"`
	Offline          bool   `json:"offline"`
	RequireSignature bool   `json:"requireSignature"`
	Expected         bool   `json:"expected"`
}

var (
	checksums = map[string]trust.Checksum{"": trust.ChecksumAbsent, "absent": trust.ChecksumAbsent, "match": trust.ChecksumMatch, "mismatch": trust.ChecksumMismatch}
	sigTypes  = map[string]trust.SigType{"": trust.SigNone, "none": trust.SigNone, "cosign": trust.SigCosign, "gpg": trust.SigGPG, "minisign": trust.SigMinisign, "unknown": trust.SigUnknown}
	bundles   = map[string]trust.Bundle{"": trust.BundleAbsent, "absent": trust.BundleAbsent, "present": trust.BundlePresent, "unreadable": trust.BundleUnreadable, "incomplete": trust.BundleIncomplete}
	verifies  = map[string]trust.Verify{"": trust.VerifyMissing, "missing": trust.VerifyMissing, "failed": trust.VerifyFailed, "ok": trust.VerifyOK, "sig_invalid": trust.VerifySigInvalid,
		"digest_mismatch": trust.VerifyOtherArtifact, "identity_mismatch": trust.VerifyIdentity, "source_not_pinned": trust.VerifySourceNotPinned, "signer_revoked": trust.VerifySignerRevoked,
		"no_trusted_time": trust.VerifyNoTime, "root_unknown": trust.VerifyRootUnknown, "root_stale": trust.VerifyRootStale, "root_invalid": trust.VerifyRootInvalid, "no_key": trust.VerifyNoKey}
	provenances = map[string]trust.Provenance{"": trust.ProvenanceAbsent, "absent": trust.ProvenanceAbsent, "unavailable": trust.ProvenanceUnavailable, "invalid": trust.ProvenanceInvalid,
		"subject_mismatch": trust.ProvenanceSubjectMismatch, "builder_denied": trust.ProvenanceBuilderDenied, "source_mismatch": trust.ProvenanceSourceMismatch, "ok": trust.ProvenanceOK}
)

// decide answers rows with the decision that a run would make of them.
func decide(in io.Reader, out io.Writer) error {
	s := bufio.NewScanner(in)
	s.Buffer(nil, 64<<10)
	w := bufio.NewWriter(out)
	e := json.NewEncoder(w)
	line := 0
	for s.Scan() {
		line++
		if len(bytes.TrimSpace(s.Bytes())) == 0 {
			continue
		}
		var r row
		if err := request.Strict(s.Bytes(), &r); err != nil {
			return fault.New(errcode.MetadataStructure, "line "+strconv.Itoa(line)+": "+err.Error()).With("line", line)
		}
		f := trust.Facts{SLSA: r.SLSAComputed, Offline: r.Offline, Expected: r.Expected}
		var ok [5]bool
		f.Checksum, ok[0] = checksums[r.Checksum]
		f.SigType, ok[1] = sigTypes[r.SigType]
		f.Bundle, ok[2] = bundles[r.Bundle]
		f.Verify, ok[3] = verifies[r.Verify]
		f.Provenance, ok[4] = provenances[r.Provenance]
		if ok != [5]bool{true, true, true, true, true} {
			return fault.New(errcode.MetadataStructure, "line "+strconv.Itoa(line)+": a field has an unknown value").With("line", line)
		}
		v := trust.Decide(f, trust.Policy{RequireTool: r.RequireSignature, MinimumSLSALevel: r.MinimumSLSALevel})
		if err := e.Encode(map[string]any{"level": v.Level, "reason": v.Reason, "action": v.Action}); err != nil {
			return fault.New(errcode.OutputWrite, err.Error())
		}
	}
	if err := s.Err(); err != nil {
		return fault.New(errcode.MetadataStructure, err.Error())
	}
	if err := w.Flush(); err != nil {
		return fault.New(errcode.OutputWrite, err.Error())
	}
	return nil
}
