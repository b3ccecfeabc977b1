package sigstore_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/trust/request"
	"github.com/atip-dev/atip-exec/trust/signer"
	"github.com/atip-dev/atip-exec/trust/sigstore"
)

// asked puts requests to the verifier as it is shipped, in one start for up to 64.
func asked(t *testing.T, list []request.Request) []request.Answer {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	var out []request.Answer
	for len(list) > 0 {
		n := min(len(list), request.MaxLines)
		input, err := request.Encode(list[:n])
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(filepath.Join(bin, "atip-verify"), "verify", "--request", "-")
		cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stderr = "/", []string{}, bytes.NewReader(input), os.Stderr
		raw, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var version struct{ Verifier string }
		if err := json.Unmarshal(raw[:bytes.IndexByte(raw, '\n')], &version); err != nil {
			t.Fatal(err)
		}
		answers, err := request.Answers(raw, list[:n], version.Verifier)
		if err != nil {
			t.Fatal(err)
		}
		out, list = append(out, answers...), list[n:]
	}
	return out
}

// elsewhere are the reasons that are decided about a run rather than about evidence, and the
// tests of atip-exec that reach them.
var elsewhere = map[string]string{
	"revoked":                "TestReasonsOfRuns",
	"pinned":                 "TestReasonsOfRuns",
	"known_digest":           "TestReasonsOfRuns",
	"system_path":            "TestReasonsOfRuns",
	"own_path":               "TestToolchainAtHome",
	"lock_mismatch":          "TestScripts", // lock.txt
	"unreadable":             "TestReasonsOfRuns",
	"changed_since_verified": "TestSignedTool",
	"distro_db_match":        "TestPackageDatabase",
	"distro_db_mismatch":     "TestPackageDatabase",
	"verifier_missing":       "TestVerifierThatFails",
}

// TestEveryRow: each reason of the decision table is reached by the verifier as it is shipped, with
// real evidence, and each of its three rows, plain, offline and under a demand for signatures, has
// the level and the action of the table.
func TestEveryRow(t *testing.T) {
	d, other := deploy(t), deploy(t)
	data := []byte("the tool")
	whom := d.certify(identity{san: workflow, issuer: actions, source: source, runner: "github-hosted", config: workflow})
	called := d.certify(identity{san: shared, issuer: actions, source: source})
	const hosted = "https://github.com/actions/runner/github-hosted"
	private, public, err := sigstore.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	_, strange, err := sigstore.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	keyed, err := sigstore.Sign(t.Context(), sigstore.Signing{Data: data, Key: private})
	if err != nil {
		t.Fatal(err)
	}
	byKey := func(key []byte) []signer.Signer {
		return []signer.Signer{{Name: "k", Type: signer.Cosign, Key: "k.pub", Material: key, Log: "none"}}
	}
	plain := func(edit func(b object, r *request.Request)) request.Request {
		b := d.message(whom, data)
		r := question(d, data, keyless(nil))
		if edit != nil {
			edit(b, &r)
		}
		if r.Signatures == nil && r.Claims.Type == "" && !r.Claims.Expected && r.Claims.Checksum != "none" {
			raw, _ := json.Marshal(b)
			r.Signatures = []request.Signature{{Format: "auto", Data: raw}}
		}
		if r.Claims.Checksum == "none" {
			r.Claims.Checksum = ""
		}
		return r
	}
	built := func(text string, minimum int, builders ...signer.Builder) request.Request {
		return plain(func(_ object, r *request.Request) {
			raw, _ := json.Marshal(d.statement(whom, text))
			r.Provenance, r.Builders, r.Require.MinimumSLSALevel = []request.Signature{{Format: "auto", Data: raw}}, builders, minimum
		})
	}
	type row struct {
		reason, level string
		plain, under  string // action, and that under a demand for signatures
		request       request.Request
	}
	const (
		allow, ask, deny     = "allow", "confirm", "deny"
		unsigned, unverified = "UNSIGNED", "UNVERIFIED"
		failed, verified     = "PROVENANCE_FAIL", "VERIFIED"
	)
	rows := []row{
		{"hash_mismatch", "COMPROMISED", deny, deny, plain(func(_ object, r *request.Request) { r.Claims.Checksum = "sha256:" + strings.Repeat("ab", 32) })},
		{"signature_conflict", unsigned, deny, deny, plain(func(_ object, r *request.Request) { r.Claims.SigConflict = true })},
		{"downgrade", unsigned, deny, deny, plain(func(_ object, r *request.Request) { r.Claims.Expected = true })},
		{"no_signature", unsigned, ask, deny, plain(func(_ object, r *request.Request) { r.Claims.Checksum = "none" })},
		{"signature_type_unsupported", unverified, ask, deny, plain(func(_ object, r *request.Request) { r.Claims.Type = "notary" })},
		{"bundle_missing", unverified, ask, deny, plain(func(_ object, r *request.Request) { r.Claims.Type = "cosign" })},
		{"bundle_malformed", unsigned, deny, deny, plain(func(b object, _ *request.Request) { b["verified"] = true })},
		{"bundle_incomplete", unverified, ask, deny, question(d, data, keyless(nil), []byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":"AA=="}]}`))},
		{"signature_invalid", unsigned, deny, deny, plain(func(b object, _ *request.Request) { flip(b["messageSignature"].(object), "signature") })},
		{"signature_for_other_artifact", unsigned, deny, deny, question(d, []byte("another"), keyless(nil), d.message(whom, data))},
		{"signer_not_allowed", unsigned, deny, deny, plain(func(_ object, r *request.Request) { r.Signers = nil })},
		{"source_not_pinned", unsigned, deny, deny, question(d, data, keyless(func(s *signer.Signer) { s.Identity = shared }), d.message(called, data))},
		{"signer_revoked", unsigned, deny, deny, plain(func(_ object, r *request.Request) { r.Revoked = []signer.Revocation{{ID: workflow}} })},
		{"no_trusted_time", unsigned, deny, deny, plain(func(b object, _ *request.Request) { delete(firstEntry(b), "inclusionPromise") })},
		{"trust_root_unknown", unverified, ask, deny, plain(func(_ object, r *request.Request) { r.Roots[0].Data = other.root })},
		{"trust_root_stale", unverified, ask, deny, plain(func(_ object, r *request.Request) {
			r.Roots[0].Data, r.Roots[0].Fetched = other.root, time.Now().AddDate(-1, 0, 0)
		})},
		{"trust_root_invalid", unverified, ask, deny, plain(func(_ object, r *request.Request) { r.Roots[0].Data = []byte("{}") })},
		{"no_key_in_policy", unverified, ask, deny, question(d, data, byKey(strange), keyed)},
		{"verifier_failed", unverified, ask, deny, plain(func(_ object, r *request.Request) { r.Claims.Checksum = "md5:00" })},
		{"signature", verified, allow, allow, plain(nil)},
		{"signature", verified, allow, allow, question(d, data, byKey(public), keyed)},
		{"provenance_required", failed, deny, deny, plain(func(_ object, r *request.Request) { r.Require.MinimumSLSALevel = 1 })},
		{"provenance_unavailable", unverified, ask, ask, plain(func(_ object, r *request.Request) {
			r.Provenance = []request.Signature{{Format: "auto", Data: []byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"sig":"AA=="}]}`)}}
		})},
		{"provenance_invalid", failed, deny, deny, plain(func(_ object, r *request.Request) {
			r.Provenance = []request.Signature{{Format: "auto", Data: []byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[]}`)}}
		})},
		{"provenance_subject_mismatch", failed, deny, deny, built(slsa1([]byte("another"), hosted, source), 0)},
		{"provenance_builder_denied", failed, deny, deny, built(slsa1(data, hosted, source), 0, signer.Builder{ID: "https://ci.example"})},
		{"provenance_source_mismatch", failed, deny, deny, built(slsa1(data, hosted, "https://github.com/evil/tool"), 0)},
		{"slsa_level_below_minimum", failed, deny, deny, built(slsa1(data, hosted, source), 3)},
		{"signature+provenance", verified, allow, allow, built(slsa1(data, hosted, source), 2)},
	}
	// With a minimum, provenance that is not here is a failure.
	bare := rows[22]
	bare.request.Require.MinimumSLSALevel, bare.level, bare.plain, bare.under = 1, failed, deny, deny
	rows = append(rows, bare)
	var list []request.Request
	for _, row := range rows {
		for _, edit := range []func(*request.Request){func(*request.Request) {}, func(r *request.Request) { r.Offline = true }, func(r *request.Request) { r.Require.Signature = true }} {
			r := row.request
			r.ID = strconv.Itoa(len(list) + 1)
			edit(&r)
			list = append(list, r)
		}
	}
	reached := map[string]bool{}
	for i, a := range asked(t, list) {
		row := rows[i/3]
		want := [3]string{row.plain, row.plain, row.under}[i%3]
		reached[a.Reason] = true
		if strings.TrimSuffix(a.Reason, "_offline") != row.reason || a.Level != row.level || a.Action != want || strings.HasSuffix(a.Reason, "_offline") && i%3 != 1 {
			t.Errorf("%s: %s %s %s, want %s %s: %s", row.reason, a.Level, a.Reason, a.Action, row.level, want, a.Detail)
		}
	}
	for _, reason := range reasons(t) {
		if test := elsewhere[reason]; test != "" {
			if !testOfRuns(t, test) {
				t.Errorf("%s: there is no %s in cmd/atip-exec", reason, test)
			}
			continue
		}
		if !reached[reason] {
			t.Errorf("no row reaches %s", reason)
		}
	}
}

// reasons reads the reasons of the table out of its source.
func reasons(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../decide.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`^[a-z]+([_+][a-z]+)*$`)
	stages := map[string]bool{"policy": true, "artifact": true, "bundle": true, "root": true, "verify": true, "provenance": true}
	table := map[string]bool{"Decide": true, "signature": true, "provenance": true, "offline": true, "tool": true, "capped": true, "Limited": true, "vouched": true}
	found := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.FuncDecl:
			return table[d.Name.Name]
		case *ast.GenDecl:
			return d.Tok == token.CONST
		case *ast.ValueSpec:
			return strings.HasPrefix(d.Names[0].Name, "reason")
		}
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, _ := strconv.Unquote(l.Value); named.MatchString(text) && !stages[text] {
				found[text] = true
			}
		}
		return true
	})
	if len(found) < 36 {
		t.Fatalf("the table has only %d reasons: they are written in another way", len(found))
	}
	var out []string
	for reason := range found {
		out = append(out, reason)
	}
	for _, late := range []string{"bundle_missing_offline", "provenance_unavailable_offline"} {
		if !found[late] {
			out = append(out, late)
		}
	}
	return out
}

func testOfRuns(t *testing.T, name string) bool {
	t.Helper()
	files, err := filepath.Glob("../../cmd/atip-exec/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), fmt.Sprintf("\nfunc %s(t *testing.T)", name)) {
			return true
		}
	}
	return false
}

// fact is a line of `verify --decide -`.
type fact struct {
	Checksum   string `json:"checksum"`
	SigType    string `json:"sigType"`
	Bundle     string `json:"bundle"`
	Verify     string `json:"verify"`
	Provenance string `json:"provenance"`
	SLSA       int    `json:"slsaComputed"`
	Minimum    int    `json:"minimumSlsaLevel"`
	Offline    bool   `json:"offline"`
	Required   bool   `json:"requireSignature"`
	Expected   bool   `json:"expected"`
}

// model is the table of trust.md section 3, written from its text and not from our code.
func (f fact) model() (level, action string) {
	asks := "confirm"
	if f.Required {
		asks = "deny"
	}
	switch {
	case f.Checksum == "mismatch":
		return "COMPROMISED", "deny"
	case f.SigType == "none" && f.Expected:
		return "UNSIGNED", "deny"
	case f.SigType == "none":
		return "UNSIGNED", asks
	case f.SigType == "unknown", f.Bundle == "absent":
		return "UNVERIFIED", asks
	case f.Bundle == "unreadable":
		return "UNSIGNED", "deny"
	case f.Verify == "root_unknown", f.Verify == "no_key":
		return "UNVERIFIED", asks
	case f.Verify != "ok":
		return "UNSIGNED", "deny"
	case f.Provenance == "absent" && f.Minimum == 0, f.Provenance == "ok" && f.SLSA >= f.Minimum:
		return "VERIFIED", "allow"
	case f.Provenance == "unavailable" && f.Minimum == 0:
		return "UNVERIFIED", "confirm"
	}
	return "PROVENANCE_FAIL", "deny"
}

// TestDecideProgram: the shipped program agrees with the model on all rows.
func TestDecideProgram(t *testing.T) {
	u := newDesk(t)
	var list []fact
	for _, checksum := range []string{"absent", "match", "mismatch"} {
		for _, sig := range []string{"none", "cosign", "gpg", "minisign", "unknown"} {
			for _, bundle := range []string{"absent", "present", "unreadable"} {
				for _, verify := range []string{"ok", "sig_invalid", "digest_mismatch", "identity_mismatch", "no_trusted_time", "root_unknown", "no_key"} {
					for _, provenance := range []string{"absent", "unavailable", "invalid", "subject_mismatch", "builder_denied", "source_mismatch", "ok"} {
						for _, minimum := range []int{0, 2} {
							for bits := range 16 {
								list = append(list, fact{checksum, sig, bundle, verify, provenance, 1 + bits&1*2, minimum, bits&2 > 0, bits&4 > 0, bits&8 > 0})
							}
						}
					}
				}
			}
		}
	}
	var input bytes.Buffer
	e := json.NewEncoder(&input)
	for _, f := range list {
		if err := e.Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(bin, "atip"), "verify", "--decide", "-")
	cmd.Dir, cmd.Env, cmd.Stdin = u.ws, []string{"HOME=" + u.home, "PATH=/usr/bin:/bin"}, &input
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(out))
	wrong := 0
	for _, f := range list {
		var a struct{ Level, Reason, Action string }
		if err := d.Decode(&a); err != nil {
			t.Fatal(err)
		}
		level, action := f.model()
		if a.Level != level || a.Action != action || a.Reason == "" {
			if wrong++; wrong < 5 {
				t.Errorf("%+v: %+v, want %s %s", f, a, level, action)
			}
		}
	}
	t.Logf("%d rows", len(list))
}
