package sigstore

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/signer"
)

// Types of in-toto statements and SLSA predicates.
const (
	PayloadType = "application/vnd.in-toto+json"
	StatementV1 = "https://in-toto.io/Statement/v1"
	statement01 = "https://in-toto.io/Statement/v0.1"
	SLSA02      = "https://slsa.dev/provenance/v0.2"
	SLSA1       = "https://slsa.dev/provenance/v1"
)

// Statement is an in-toto statement: what is claimed of which digests.
type Statement struct {
	Type          string          `json:"_type"`
	Subject       []Subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate,omitempty"`
}

// Subject is one artifact of a statement, by digests in hex.
type Subject struct {
	Name   string            `json:"name,omitempty"`
	Digest map[string]string `json:"digest"`
}

func (s *Statement) has(algorithm string) bool {
	return slices.ContainsFunc(s.Subject, func(subject Subject) bool { return subject.Digest[algorithm] != "" })
}

// SLSA reports a statement that is provenance.
func (s *Statement) SLSA() bool {
	return s != nil && (s.PredicateType == SLSA02 || s.PredicateType == SLSA1)
}

// statementOf reads the payload of an envelope, nil for none; why says that it is none that
// we read.
func statementOf(e *protodsse.Envelope) (s *Statement, why string) {
	if e == nil {
		return nil, ""
	}
	if e.GetPayloadType() != PayloadType {
		return nil, "the envelope holds no in-toto statement but " + e.GetPayloadType()
	}
	raw := e.GetPayload()
	if err := atip.ScanStrict(raw, atip.ParseOptions{MaxBytes: request.MaxBundle}); err != nil {
		return nil, "the statement is not strict JSON: " + err.Error()
	}
	s = &Statement{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, "the statement cannot be read: " + err.Error()
	}
	if s.Type != StatementV1 && s.Type != statement01 {
		return nil, "the statement has the unknown type " + s.Type
	}
	return s, ""
}

// Built is what a verified provenance says.
type Built struct {
	Provenance trust.Provenance
	Level      int
	Builder    string
	Detail     string
}

const (
	actionsIssuer = "https://token.actions.githubusercontent.com"
	hosted        = "https://github.com/actions/runner/github-hosted"
	generator     = "https://github.com/slsa-framework/slsa-github-generator/.github/workflows/"
)

// Build judges the provenance in a verified outcome. The predicate is the workflow's word,
// the certificate is the identity provider's: where both speak of the source, they agree or
// the provenance is refused.
func Build(out Outcome, builders []signer.Builder, require request.Require) Built {
	refuse := func(p trust.Provenance, why string) Built { return Built{Provenance: p, Detail: why} }
	s := out.Statement
	if !s.SLSA() {
		return refuse(trust.ProvenanceInvalid, "the statement is no SLSA provenance")
	}
	if require.PredicateType != "" && require.PredicateType != s.PredicateType {
		return refuse(trust.ProvenanceInvalid, "the predicate is "+s.PredicateType+", not "+require.PredicateType)
	}
	builder, source, ok := predicate(s)
	if !ok || builder == "" {
		return refuse(trust.ProvenanceInvalid, "the predicate names no builder")
	}
	wanted := []string{require.SourceRepository}
	if out.signer != nil {
		wanted = append(wanted, out.signer.SourceRepository)
	}
	for _, want := range wanted {
		if want != "" && (source == "" || signer.Repository(source) != signer.Repository(want)) {
			return refuse(trust.ProvenanceSourceMismatch, "it was built from "+source+", not "+want)
		}
	}
	if cert := out.cert.SourceRepository; cert != "" && source != "" && signer.Repository(source) != signer.Repository(cert) {
		return refuse(trust.ProvenanceSourceMismatch, "the predicate says "+source+", the certificate "+cert)
	}
	level, allowed := computed(builder, out.cert), len(builders) == 0
	for _, b := range builders {
		if !same(b.ID, builder) || b.SignerIdentity != "" && !same(b.SignerIdentity, out.cert.SAN) {
			continue
		}
		allowed = true
		if b.Level > 0 {
			level = b.Level
		}
		break
	}
	if !allowed {
		return refuse(trust.ProvenanceBuilderDenied, "the builder "+builder+" is not among trust.builders")
	}
	return Built{Provenance: trust.ProvenanceOK, Level: level, Builder: builder}
}

// same compares an id of policy with a proven one: whole, or up to the "@" if policy names
// no version.
func same(policy, proven string) bool {
	if policy == proven {
		return true
	}
	before, _, versioned := strings.Cut(proven, "@")
	return versioned && !strings.Contains(policy, "@") && policy == before
}

// computed is the SLSA level that identity and builder amount to, whatever the predicate
// claims. Signed provenance is level 1.
func computed(builder string, c signer.Certificate) int {
	if c.Issuer != actionsIssuer {
		return 1
	}
	workflow, _, _ := strings.Cut(c.SAN, "@")
	id, _, _ := strings.Cut(builder, "@")
	switch {
	case strings.HasPrefix(workflow, generator) && strings.HasSuffix(workflow, "_slsa3.yml") && id == workflow && !strings.Contains(workflow[len(generator):], "/"):
		return 3
	case builder == hosted && c.RunnerEnvironment == "github-hosted" && c.BuildConfig != "":
		// A workflow that another one calls cannot be changed by the repository it builds.
		if c.SAN != c.BuildConfig {
			return 3
		}
		return 2
	}
	return 1
}

// predicate reads builder and source of either version.
func predicate(s *Statement) (builder, source string, ok bool) {
	type id struct {
		ID string `json:"id"`
	}
	if s.PredicateType == SLSA02 {
		var p struct {
			Builder    id `json:"builder"`
			Invocation struct {
				ConfigSource struct {
					URI string `json:"uri"`
				} `json:"configSource"`
			} `json:"invocation"`
		}
		err := json.Unmarshal(s.Predicate, &p)
		return p.Builder.ID, p.Invocation.ConfigSource.URI, err == nil
	}
	var p struct {
		BuildDefinition struct {
			ExternalParameters struct {
				Workflow struct {
					Repository string `json:"repository"`
				} `json:"workflow"`
				Source json.RawMessage `json:"source"`
			} `json:"externalParameters"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder id `json:"builder"`
		} `json:"runDetails"`
	}
	if json.Unmarshal(s.Predicate, &p) != nil {
		return "", "", false
	}
	if source = p.BuildDefinition.ExternalParameters.Workflow.Repository; source == "" {
		raw := bytes.TrimSpace(p.BuildDefinition.ExternalParameters.Source)
		var object struct {
			URI string `json:"uri"`
		}
		if json.Unmarshal(raw, &source) != nil && json.Unmarshal(raw, &object) == nil {
			source = object.URI
		}
	}
	return p.RunDetails.Builder.ID, source, true
}
