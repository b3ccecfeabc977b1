package sigstore_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	testdata "github.com/sigstore/sigstore-go/pkg/testing/data"

	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/signer"
	"github.com/atip-dev/atip-exec/trust/sigstore"
)

func keyless(edit func(*signer.Signer)) []signer.Signer {
	s := signer.Signer{Name: "acme", Type: signer.Cosign, Identity: workflow, Issuer: actions}
	if edit != nil {
		edit(&s)
	}
	return []signer.Signer{s}
}

func material(b object) object   { return b["verificationMaterial"].(object) }
func firstEntry(b object) object { return material(b)["tlogEntries"].([]any)[0].(object) }

// flip changes one bit of a base64 value.
func flip(o object, key string) {
	raw, _ := base64.StdEncoding.DecodeString(o[key].(string))
	raw[len(raw)/2] ^= 1
	o[key] = b64(raw)
}

// Every row differs from the twin, which verifies, in what it says and in nothing else.
func TestRefused(t *testing.T) {
	d, other := deploy(t), deploy(t)
	data := []byte("the tool")
	release := identity{san: workflow, issuer: actions, source: source}
	whom := d.certify(release)
	unlogged := leaf{key: newKey(t)}
	unlogged.cert = d.issue(release, unlogged.key.Public(), false)
	fresh := func() object { return d.message(whom, data) }
	if a := ask(t, question(d, data, keyless(nil), fresh())); a.Level != "VERIFIED" || a.Settled.Evidence == nil || a.Settled.Evidence.Signer != "acme" || a.Settled.Evidence.TimeSource != "log" || !a.Settled.Evidence.Logged {
		t.Fatalf("the twin is %s %s: %+v", a.Level, a.Reason, a.Settled.Evidence)
	}
	spliced := d.message(whom, []byte("another tool"))
	for _, row := range []struct {
		name string
		edit func(b object, r *request.Request)
		want string
	}{
		{"signature flipped", func(b object, _ *request.Request) { flip(b["messageSignature"].(object), "signature") }, "signature_invalid"},
		{"artifact flipped", func(_ object, r *request.Request) { r.Subject.SHA256 = strings.Repeat("ab", 32) }, "signature_for_other_artifact"},
		{"artifact empty", func(_ object, r *request.Request) {
			sum := sha256.Sum256(nil)
			r.Subject.SHA256 = hex.EncodeToString(sum[:])
		}, "signature_for_other_artifact"},
		{"promise flipped", func(b object, _ *request.Request) {
			flip(firstEntry(b)["inclusionPromise"].(object), "signedEntryTimestamp")
		}, "signature_invalid"},
		{"proof flipped", func(b object, _ *request.Request) { flip(firstEntry(b)["inclusionProof"].(object), "rootHash") }, "signature_invalid"},
		{"proof spliced", func(b object, _ *request.Request) {
			firstEntry(b)["inclusionProof"] = firstEntry(spliced)["inclusionProof"]
		}, "signature_invalid"},
		{"promise spliced", func(b object, _ *request.Request) {
			firstEntry(b)["inclusionPromise"] = firstEntry(spliced)["inclusionPromise"]
		}, "signature_invalid"},
		{"certificate spliced", func(b object, _ *request.Request) {
			material(b)["certificate"] = material(d.message(d.certify(release), data))["certificate"]
		}, "signature_invalid"},
		{"time changed", func(b object, _ *request.Request) { firstEntry(b)["integratedTime"] = "1700000000" }, "signature_invalid"},
		{"entry spliced", func(b object, _ *request.Request) { material(b)["tlogEntries"] = material(spliced)["tlogEntries"] }, "signature_invalid"},
		{"entry removed", func(b object, _ *request.Request) { delete(material(b), "tlogEntries") }, "no_trusted_time"},
		{"promise removed", func(b object, _ *request.Request) { delete(firstEntry(b), "inclusionPromise") }, "no_trusted_time"},
		{"log unknown", func(b object, _ *request.Request) {
			firstEntry(b)["logId"].(object)["keyId"] = b64(make([]byte, 32))
		}, "trust_root_unknown"},
		{"33 entries", func(b object, _ *request.Request) {
			list := []any{}
			for range 33 {
				list = append(list, firstEntry(b))
			}
			material(b)["tlogEntries"] = list
		}, "bundle_malformed"},
		{"version 0.4", func(b object, _ *request.Request) {
			b["mediaType"] = "application/vnd.dev.sigstore.bundle.v0.4+json"
		}, "bundle_malformed"},
		{"version 0.3.1", func(b object, _ *request.Request) {
			b["mediaType"] = "application/vnd.dev.sigstore.bundle.v0.3.1+json"
		}, "bundle_malformed"},
		{"unknown field", func(b object, _ *request.Request) { b["verified"] = true }, "bundle_malformed"},
		{"identity in other case", func(_ object, r *request.Request) {
			r.Signers[0].Identity = strings.Replace(workflow, "acme", "Acme", 1)
		}, "signer_not_allowed"},
		{"other ref", func(_ object, r *request.Request) { r.Signers[0].Identity = workflow + "0" }, "signer_not_allowed"},
		{"issuer with a slash", func(_ object, r *request.Request) { r.Signers[0].Issuer = actions + "/" }, "signer_not_allowed"},
		{"no signer", func(_ object, r *request.Request) { r.Signers = nil }, "signer_not_allowed"},
		{"signer of documents", func(_ object, r *request.Request) { r.Signers[0].VouchesFor = []string{"metadata"} }, "signer_not_allowed"},
		{"signer of another tool", func(_ object, r *request.Request) { r.Signers[0].Tools = []string{"gh"} }, "signer_not_allowed"},
		{"signer from later on", func(_ object, r *request.Request) { r.Signers[0].NotBefore = time.Now().Add(time.Hour) }, "signer_not_allowed"},
		{"a policy that tightens", func(_ object, r *request.Request) {
			r.Filters = [][]signer.Signer{{{Type: signer.Cosign, Identity: "somebody@else.example", Restricts: true}}}
		}, "signer_not_allowed"},
		{"the document names another", func(_ object, r *request.Request) { r.Signatures[0].Hint.Identity = "x@y.example" }, "signer_not_allowed"},
		{"revoked", func(_ object, r *request.Request) { r.Revoked = []signer.Revocation{{ID: workflow}} }, "signer_revoked"},
		{"other source", func(_ object, r *request.Request) { r.Signers[0].SourceRepository = source + "2" }, "signer_not_allowed"},
		{"root of another deployment", func(_ object, r *request.Request) { r.Roots[0].Data = other.root }, "trust_root_unknown"},
		{"root older than the signature", func(_ object, r *request.Request) {
			r.Roots[0].Data, r.Roots[0].Fetched = other.root, time.Now().AddDate(-1, 0, 0)
		}, "trust_root_stale"},
		{"log of certificates unknown", func(_ object, r *request.Request) {
			r.Roots[0].Profile, r.Roots[0].Data = "public-good", d.without(t, "ctlogs")
		}, "trust_root_unknown"},
		{"root older than the log of certificates", func(_ object, r *request.Request) {
			r.Roots[0].Profile, r.Roots[0].Data, r.Roots[0].Fetched = "public-good", d.without(t, "ctlogs"), time.Now().AddDate(-1, 0, 0)
		}, "trust_root_stale"},
		{"clock unknown", func(b object, r *request.Request) {
			d.stamped(b)
			delete(firstEntry(b), "inclusionPromise")
			r.Roots[0].Data = d.without(t, "timestampAuthorities")
		}, "trust_root_unknown"},
		{"timestamp of another signature", func(b object, _ *request.Request) {
			d.stamped(b)
			delete(firstEntry(b), "inclusionPromise")
			material(b)["timestampVerificationData"] = material(d.stamped(d.message(whom, []byte("another"))))["timestampVerificationData"]
		}, "signature_invalid"},
		{"certificate in no log", func(b object, r *request.Request) {
			r.Roots[0].Profile = "public-good"
			maps.Copy(b, d.message(unlogged, data))
		}, "signature_invalid"},
		{"root past its age", func(_ object, r *request.Request) {
			r.Require.MaxRootAge, r.Roots[0].Fetched = time.Minute, time.Now().Add(-time.Hour)
		}, "trust_root_stale"},
		{"root is no root", func(_ object, r *request.Request) { r.Roots[0].Data = []byte(`{"mediaType":"x"}`) }, "trust_root_invalid"},
		{"root is empty", func(_ object, r *request.Request) {
			r.Roots[0].Data = []byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`)
		}, "trust_root_invalid"},
		{"root under another name", func(_ object, r *request.Request) { r.Roots[0].Name = "private" }, "signer_not_allowed"},
		{"two bundles in one file", func(_ object, r *request.Request) {
			r.Signatures[0].Data = append(append([]byte{}, r.Signatures[0].Data...), r.Signatures[0].Data...)
		}, "bundle_malformed"},
		{"truncated", func(_ object, r *request.Request) {
			r.Signatures[0].Data = r.Signatures[0].Data[:len(r.Signatures[0].Data)/2]
		}, "bundle_malformed"},
		{"not UTF-8", func(_ object, r *request.Request) { r.Signatures[0].Data = []byte("{\"mediaType\":\"\xff\"}") }, "bundle_malformed"},
		{"HTML", func(_ object, r *request.Request) { r.Signatures[0].Data = []byte("<!doctype html><html>404</html>") }, "bundle_malformed"},
		{"1.2 MiB", func(_ object, r *request.Request) {
			r.Signatures[0].Data = append(r.Signatures[0].Data, bytes.Repeat([]byte(" "), 1200<<10)...)
			r.Signatures[0].Data = append(r.Signatures[0].Data, '{')
		}, "bundle_malformed"},
		{"a checksum that differs", func(_ object, r *request.Request) { r.Claims.Checksum = "sha256:" + strings.Repeat("ab", 32) }, "hash_mismatch"},
		{"a checksum nobody reads", func(_ object, r *request.Request) { r.Claims.Checksum = "md5:00" }, "verifier_failed"},
		{"a minimum and no provenance", func(_ object, r *request.Request) { r.Require.MinimumSLSALevel = 1 }, "provenance_required"},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := fresh()
			r := question(d, data, keyless(nil))
			r.Signatures = []request.Signature{{Format: "auto"}}
			raw, _ := json.Marshal(b)
			r.Signatures[0].Data = raw
			before := string(raw)
			row.edit(b, &r)
			if changed, _ := json.Marshal(b); string(changed) != before {
				r.Signatures[0].Data = changed
			}
			twin := question(d, data, keyless(nil))
			twin.Signatures = []request.Signature{{Data: []byte(before)}}
			if w := witnessOf(r, data, false); w.Identity != "" && !reflect.DeepEqual(w, witnessOf(twin, data, false)) {
				w.keep(t)
			}
			if a := ask(t, r); a.Reason != row.want || a.Level == "VERIFIED" || a.Action == "allow" {
				t.Errorf("%s %s %s, want %s: %s", a.Level, a.Reason, a.Action, row.want, a.Detail)
			}
		})
	}
}

// The versions and forms that verify.
func TestVerified(t *testing.T) {
	d := deploy(t)
	data := []byte("the tool")
	whom := d.certify(identity{san: workflow, issuer: actions, source: source})
	chain := func(version string) object {
		b := d.message(whom, data)
		b["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=" + version
		cert := material(b)["certificate"]
		delete(material(b), "certificate")
		material(b)["x509CertificateChain"] = object{"certificates": []any{cert}}
		return b
	}
	lines := func(list ...object) []byte {
		var out []byte
		for _, b := range list {
			raw, _ := json.Marshal(b)
			out = append(append(out, raw...), '\n')
		}
		return out
	}
	bad := d.message(whom, data)
	flip(bad["messageSignature"].(object), "signature")
	github := func(r *request.Request) { r.Roots[0].Profile = "github" }
	stampOnly := d.stamped(d.message(whom, data))
	delete(material(stampOnly), "tlogEntries")
	legacy := legacyOf(d.message(whom, data), d.logID())
	for _, row := range []struct {
		name   string
		bundle any
		edit   func(*request.Request)
		source string
	}{
		{"0.1", chain("0.1"), nil, "log"},
		{"0.2", chain("0.2"), nil, "log"},
		{"0.3 by its other name", func() object {
			b := d.message(whom, data)
			b["mediaType"] = "application/vnd.dev.sigstore.bundle+json;version=0.3"
			return b
		}(), nil, "log"},
		{"statement", d.statement(whom, slsa1(data, "https://b.example", source)), nil, "log"},
		{"timestamp only", stampOnly, github, "tsa"},
		{"legacy", legacy, nil, "log"},
		{"all that the public deployment proves", d.message(whom, data), func(r *request.Request) { r.Roots[0].Profile = "public-good" }, "log"},
		{"a clock beside the log", d.stamped(d.message(whom, data)), func(r *request.Request) { r.Roots[0].Data = d.without(t, "timestampAuthorities") }, "log"},
		{"a log without a promise, and a clock", func() object {
			b := d.stamped(d.message(whom, data))
			delete(firstEntry(b), "inclusionPromise")
			return b
		}(), nil, "tsa"},
		{"second line", lines(bad, d.message(whom, data)), nil, "log"},
		{"prefix", d.message(whom, data), func(r *request.Request) {
			r.Signers[0].Identity, r.Signers[0].IdentityPrefix = "", strings.SplitAfter(workflow, "@")[0]
		}, "log"},
		{"pattern", d.message(whom, data), func(r *request.Request) {
			r.Signers[0].Identity, r.Signers[0].IdentityPattern = "", `https://github\.com/acme/.*`
		}, "log"},
		{"a policy that tightens and lists it", d.message(whom, data), func(r *request.Request) {
			r.Filters = [][]signer.Signer{{{Type: signer.Cosign, Identity: workflow, Restricts: true}}}
		}, "log"},
		{"revoked later", d.message(whom, data), func(r *request.Request) {
			r.Revoked = []signer.Revocation{{ID: workflow, NotAfter: time.Now().Add(time.Hour)}}
		}, "log"},
		{"clock years off", d.message(whom, data), func(r *request.Request) { r.Now = time.Now().AddDate(9, 0, 0) }, "log"},
		{"the administrator's signer and a root of the user in front", d.message(whom, data), func(r *request.Request) {
			r.Signers[0].Managed = true
			mine := r.Roots[0]
			mine.Managed, mine.Shadowed = true, true
			r.Roots = []request.Root{r.Roots[0], mine}
		}, "log"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := question(d, data, keyless(nil), row.bundle)
			if row.edit != nil {
				row.edit(&r)
			}
			if w := witnessOf(r, data, true); w.Identity != "" && !bytes.Contains(w.Bundle, []byte("}\n{")) && !bytes.Contains(w.Bundle, []byte("base64Signature")) {
				w.keep(t)
			}
			a := ask(t, r)
			if a.Level != "VERIFIED" || a.Settled.Evidence.TimeSource != row.source {
				t.Errorf("%s %s: %s", a.Level, a.Reason, a.Detail)
			}
		})
	}
	t.Run("only line 1", func(t *testing.T) {
		r := question(d, data, keyless(nil), lines(bad, d.message(whom, data)))
		r.Signatures[0].Line = 1
		if a := ask(t, r); a.Reason != "signature_invalid" {
			t.Error(a.Reason)
		}
	})
	t.Run("a root of the user is not seen by the administrator's signer", func(t *testing.T) {
		r := question(d, data, keyless(func(s *signer.Signer) { s.Managed = true }), d.message(whom, data))
		if a := ask(t, r); a.Reason != "signer_not_allowed" {
			t.Error(a.Reason)
		}
	})
}

func legacyOf(b object, logID string) object {
	e := firstEntry(b)
	raw, _ := base64.StdEncoding.DecodeString(material(b)["certificate"].(object)["rawBytes"].(string))
	var seconds, index json.Number
	seconds, index = json.Number(e["integratedTime"].(string)), json.Number(e["logIndex"].(string))
	return object{"base64Signature": b["messageSignature"].(object)["signature"], "cert": pemText(raw),
		"rekorBundle": object{"SignedEntryTimestamp": e["inclusionPromise"].(object)["signedEntryTimestamp"],
			"Payload": object{"body": e["canonicalizedBody"], "integratedTime": seconds, "logIndex": index, "logID": logID}}}
}

func pemText(der []byte) string {
	return b64([]byte("-----BEGIN CERTIFICATE-----\n" + b64(der) + "\n-----END CERTIFICATE-----\n"))
}

func TestLegacyRefused(t *testing.T) {
	d := deploy(t)
	data := []byte("the tool")
	whom := d.certify(identity{san: workflow, issuer: actions, source: source})
	rekor := func(o object) object { return o["rekorBundle"].(object) }
	for _, row := range []struct {
		name string
		edit func(object)
		want string
	}{
		{"time changed", func(o object) { rekor(o)["Payload"].(object)["integratedTime"] = 1700000000 }, "signature_invalid"},
		{"entry spliced", func(o object) {
			o["rekorBundle"] = legacyOf(d.message(whom, []byte("another")), d.logID())["rekorBundle"]
		}, "signature_invalid"},
		{"log unknown", func(o object) { rekor(o)["Payload"].(object)["logID"] = strings.Repeat("00", 32) }, "trust_root_unknown"},
		{"no rekorBundle", func(o object) { delete(o, "rekorBundle") }, "no_trusted_time"},
		{"unknown field", func(o object) { o["verified"] = true }, "bundle_malformed"},
	} {
		o := legacyOf(d.message(whom, data), d.logID())
		row.edit(o)
		if a := ask(t, question(d, data, keyless(nil), o)); a.Reason != row.want {
			t.Errorf("%s: %s, want %s: %s", row.name, a.Reason, row.want, a.Detail)
		}
	}
}

// A workflow that any repository can call says nothing without the repository.
func TestSharedWorkflow(t *testing.T) {
	d := deploy(t)
	data := []byte("the tool")
	whom := d.certify(identity{san: shared, issuer: actions, source: source})
	by := func(edit func(*signer.Signer)) []signer.Signer {
		return keyless(func(s *signer.Signer) {
			s.Identity = shared
			if edit != nil {
				edit(s)
			}
		})
	}
	for _, row := range []struct {
		name    string
		signers []signer.Signer
		demand  string
		want    string
	}{
		{"no source", by(nil), "", "source_not_pinned"},
		{"right source", by(func(s *signer.Signer) { s.SourceRepository = source }), "", "signature"},
		{"other source", by(func(s *signer.Signer) { s.SourceRepository = "https://github.com/evil/tool" }), "", "signer_not_allowed"},
		{"demanded", by(nil), source, "signature"},
		{"other demanded", by(nil), "https://github.com/evil/tool", "signer_not_allowed"},
		{"any, said openly", by(func(s *signer.Signer) { s.AnySource = true }), "", "signature"},
	} {
		r := question(d, data, row.signers, d.message(whom, data))
		r.Require.SourceRepository = row.demand
		if a := ask(t, r); a.Reason != row.want {
			t.Errorf("%s: %s, want %s: %s", row.name, a.Reason, row.want, a.Detail)
		}
	}
}

func TestProvenance(t *testing.T) {
	d := deploy(t)
	data := []byte("the tool")
	own := identity{san: workflow, issuer: actions, source: source, runner: "github-hosted", config: workflow}
	generated := identity{san: shared, issuer: actions, source: source}
	allowed := append(keyless(nil), signer.Signer{Name: "generator", Type: signer.Cosign, Identity: shared, Issuer: actions, SourceRepository: source})
	const hosted = "https://github.com/actions/runner/github-hosted"
	bare := func(signatures string) []byte {
		return []byte(`{"payloadType":"application/vnd.in-toto+json","payload":"` + b64([]byte(slsa1(data, hosted, source))) + `","signatures":` + signatures + `}`)
	}
	for _, row := range []struct {
		name    string
		by      identity
		text    string
		raw     []byte
		minimum int
		builder []signer.Builder
		want    string
		level   int
	}{
		{"generator", generated, slsa02(data, shared, "git+"+source+"@refs/tags/v1"), nil, 3, nil, "signature+provenance", 3},
		{"v1, hosted, own workflow", own, slsa1(data, hosted, source), nil, 2, nil, "signature+provenance", 2},
		{"four reads as three", generated, slsa02(data, shared, "git+"+source+"@refs/tags/v1"), nil, 4, nil, "signature+provenance", 3},
		{"below the minimum", own, slsa1(data, hosted, source), nil, 3, nil, "slsa_level_below_minimum", 2},
		{"builder without hosted", own, slsa1(data, "https://github.com/actions/runner", source), nil, 2, nil, "slsa_level_below_minimum", 1},
		{"builder is not listed", own, slsa1(data, hosted, source), nil, 0, []signer.Builder{{ID: "https://github.com/actions/runner"}}, "provenance_builder_denied", 0},
		{"builder hidden in a query", own, slsa1(data, "https://evil.example/?x="+hosted, source), nil, 0, []signer.Builder{{ID: hosted}}, "provenance_builder_denied", 0},
		{"builder listed up to its version", generated, slsa02(data, shared, source), nil, 0, []signer.Builder{{ID: strings.Split(shared, "@")[0]}}, "signature+provenance", 3},
		{"builder listed with a level", own, slsa1(data, "https://ci.example", source), nil, 2, []signer.Builder{{ID: "https://ci.example", Level: 2}}, "signature+provenance", 2},
		{"predicate names another source", own, slsa1(data, hosted, "https://github.com/evil/tool"), nil, 0, nil, "provenance_source_mismatch", 0},
		{"for another file", own, slsa1([]byte("another"), hosted, source), nil, 0, nil, "provenance_subject_mismatch", 0},
		{"no provenance at all", own, strings.Replace(slsa1(data, hosted, source), "slsa.dev/provenance/v1", "example.com/test/v1", 1), nil, 0, nil, "provenance_invalid", 0},
		{"by a stranger", identity{san: "x@y.example", issuer: actions}, slsa1(data, hosted, source), nil, 0, nil, "provenance_invalid", 0},
		{"bare line", own, "", bare(`[{"sig":"AA=="}]`), 0, nil, "provenance_unavailable", 0},
		{"bare line without signatures", own, "", bare(`[]`), 0, nil, "provenance_invalid", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := question(d, data, allowed, d.message(d.certify(identity{san: workflow, issuer: actions, source: source}), data))
			raw := row.raw
			if raw == nil {
				raw, _ = json.Marshal(d.statement(d.certify(row.by), row.text))
			}
			r.Provenance, r.Builders, r.Require.MinimumSLSALevel = []request.Signature{{Format: "auto", Data: raw}}, row.builder, row.minimum
			a := ask(t, r)
			if a.Reason != row.want || a.Settled.SLSA != row.level {
				t.Errorf("%s, level %d, want %s %d: %s", a.Reason, a.Settled.SLSA, row.want, row.level, a.Detail)
			}
			if bad := row.want != "signature+provenance"; bad && a.Level == "VERIFIED" {
				t.Error("VERIFIED")
			}
		})
	}
	t.Run("envelopes as signatures", func(t *testing.T) {
		for signatures, want := range map[string]string{`[{"sig":"AA=="}]`: "bundle_incomplete", `[]`: "bundle_incomplete"} {
			if a := ask(t, question(d, data, allowed, bare(signatures))); a.Reason != want {
				t.Errorf("%s: %s", signatures, a.Reason)
			}
		}
		none := d.statement(d.certify(own), slsa1(data, hosted, source))
		none["dsseEnvelope"].(object)["signatures"] = []any{}
		if a := ask(t, question(d, data, allowed, none)); a.Reason != "bundle_malformed" {
			t.Errorf("no signature: %s", a.Reason)
		}
		two := d.statement(d.certify(own), slsa1(data, hosted, source))
		list := two["dsseEnvelope"].(object)["signatures"].([]any)
		two["dsseEnvelope"].(object)["signatures"] = append(list, list[0])
		if a := ask(t, question(d, data, allowed, two)); a.Reason != "bundle_malformed" {
			t.Errorf("two signatures: %s", a.Reason)
		}
	})
}

// A private authority may say what it likes about GitHub's identities: the signer is checked
// against the root it names.
func TestPrivateRootMintsNoForeignIdentity(t *testing.T) {
	good, private := deploy(t), deploy(t)
	data := []byte("the tool")
	id := identity{san: workflow, issuer: actions, source: source}
	both := func(b object) request.Request {
		r := question(good, data, keyless(nil), b)
		r.Roots = append(r.Roots, request.Root{Name: "private", Profile: "private", Data: private.root, Fetched: time.Now()})
		return r
	}
	if a := ask(t, both(good.message(good.certify(id), data))); a.Level != "VERIFIED" {
		t.Fatalf("the twin: %s", a.Reason)
	}
	if a := ask(t, both(private.message(private.certify(id), data))); a.Reason != "signer_not_allowed" || a.Action != "deny" {
		t.Errorf("%s %s", a.Reason, a.Action)
	}
}

func TestKeys(t *testing.T) {
	private, public, err := sigstore.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	_, strange, err := sigstore.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("the tool")
	b, err := sigstore.Sign(t.Context(), sigstore.Signing{Data: data, Key: private})
	if err != nil {
		t.Fatal(err)
	}
	d := deploy(t)
	by := func(key []byte, log string) []signer.Signer {
		return []signer.Signer{{Name: "k", Type: signer.Cosign, Key: "k.pub", Material: key, Log: log}}
	}
	for _, row := range []struct {
		name    string
		signers []signer.Signer
		bundle  []byte
		data    []byte
		want    string
	}{
		{"good", by(public, "none"), b, data, "signature"},
		{"must be logged", by(public, ""), b, data, "no_trusted_time"},
		{"another key", by(strange, "none"), b, data, "no_key_in_policy"},
		{"other file", by(public, "none"), b, []byte("another"), "signature_for_other_artifact"},
		{"flipped", by(public, "none"), bytes.Replace(b, []byte(`"signature":"MEU`), []byte(`"signature":"MEV`), 1), data, ""},
	} {
		a := ask(t, question(d, row.data, row.signers, row.bundle))
		if row.want != "" && a.Reason != row.want || row.want == "" && bytes.Equal(row.bundle, b) == (a.Level != "VERIFIED") {
			t.Errorf("%s: %s, want %s: %s", row.name, a.Reason, row.want, a.Detail)
		}
		if a.Level == "VERIFIED" && a.Settled.Evidence.Logged {
			t.Errorf("%s: it says that it was logged", row.name)
		}
	}
}

// Real bundles of the public deployment, checked with the root inside the program.
func TestRealBundle(t *testing.T) {
	raw, err := testdata.Bundle(t, "sigstore.js@2.0.0-provenance.sigstore.json").MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var b struct {
		Envelope struct {
			Payload []byte `json:"payload"`
		} `json:"dsseEnvelope"`
	}
	if err := json.Unmarshal(raw, &b); err != nil {
		t.Fatal(err)
	}
	var s struct {
		Subject []struct{ Digest map[string]string }
	}
	if err := json.Unmarshal(b.Envelope.Payload, &s); err != nil {
		t.Fatal(err)
	}
	r := request.Request{V: 1, ID: "1", Subject: request.Subject{Kind: "tool", Name: "sigstore", SHA256: strings.Repeat("ab", 32), SHA512: s.Subject[0].Digest["sha512"]},
		Signers:    []signer.Signer{{Name: "js", Type: signer.Cosign, IdentityPrefix: "https://github.com/sigstore/sigstore-js/.github/workflows/release.yml@", Issuer: actions}},
		Signatures: []request.Signature{{Format: "auto", Data: raw}}, Roots: []request.Root{{Name: "sigstore", Managed: true}}}
	a := ask(t, r)
	if a.Level != "VERIFIED" || a.Settled.Evidence.Root != "sigstore" {
		t.Fatalf("%s %s: %s", a.Level, a.Reason, a.Detail)
	}
	r.Subject.SHA512 = strings.Repeat("00", 64)
	if a := ask(t, r); a.Reason != "signature_for_other_artifact" {
		t.Errorf("%s: %s", a.Reason, a.Detail)
	}
}
