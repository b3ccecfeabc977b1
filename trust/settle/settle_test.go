package settle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/shims"
	"github.com/atip-dev/atip-exec/trust"
	"github.com/atip-dev/atip-exec/trust/request"
)

// helper is a verifier that always answers the same, and counts.
func helper(t *testing.T) (path string, starts func() int) {
	t.Helper()
	dir := t.TempDir()
	path, count := filepath.Join(dir, "atip-verify"), filepath.Join(dir, "count")
	answer := `{"v":1,"id":"1","subject":"tool","level":"VERIFIED","reason":"signature","stage":"verify","action":"allow","cacheable":true,"verifier":"t","settled":{"sigType":1,"bundle":1,"verify":2,"evidence":{"signer":"s","identity":"i","logged":false}}}`
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncat >/dev/null\necho x >>"+count+"\necho '"+answer+"'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path, func() int { raw, _ := os.ReadFile(count); return strings.Count(string(raw), "x") }
}

func query() Query {
	return Query{Kind: "tool", Name: "tool", Place: "/w/tool", SHA256: strings.Repeat("ab", 32), Signatures: []request.Signature{{Format: "auto", Data: []byte("{}")}}}
}

func settle(t *testing.T, s *Session, q Query) trust.Settled {
	t.Helper()
	out, err := s.Settle(q)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func TestCache(t *testing.T) {
	path, starts := helper(t)
	state := filepath.Join(t.TempDir(), "state")
	session := func() *Session {
		return &Session{State: state, Helper: path, Version: "t", Dirs: Dirs{User: filepath.Join(state, "..", "trust")}}
	}
	if got := settle(t, session(), query()); !got.Proven() || starts() != 1 {
		t.Fatalf("%+v, %d starts", got, starts())
	}
	if got := settle(t, session(), query()); !got.Proven() || starts() != 1 {
		t.Fatalf("the record does not count: %+v, %d starts", got, starts())
	}
	records, err := filepath.Glob(filepath.Join(state, "verdict", "??", "*.json"))
	if err != nil || len(records) != 1 {
		t.Fatalf("%v %v", records, err)
	}
	record := records[0]
	// As with digests: what somebody else could have written is as if absent.
	for name, spoil := range map[string]func() func(){
		"mode": func() func() { os.Chmod(record, 0o644); return func() { os.Chmod(record, 0o600) } },
		"two links": func() func() {
			os.Link(record, record+".2")
			return func() { os.Remove(record + ".2") }
		},
		"symbolic link": func() func() {
			os.Rename(record, record+".real")
			os.Symlink(record+".real", record)
			return func() { os.Remove(record); os.Rename(record+".real", record) }
		},
		"owner": func() func() {
			if os.Geteuid() != 0 || os.Lchown(record, 65534, 65534) != nil {
				// Another user cannot give a file away, and so cannot plant one either: what it owns
				// it would have to move here.
				os.Remove(record)
			}
			return func() {}
		},
		"directory's owner": func() func() {
			if os.Geteuid() != 0 || os.Lchown(filepath.Dir(record), 65534, 65534) != nil {
				os.Remove(record)
			}
			return func() { os.Lchown(filepath.Dir(record), os.Geteuid(), os.Getegid()) }
		},
		"truncated": func() func() { os.Truncate(record, 20); return func() {} },
		"HTML":      func() func() { os.WriteFile(record, []byte("<html>"), 0o600); return func() {} },
		"directory": func() func() {
			os.Chmod(filepath.Dir(record), 0o755)
			return func() { os.Chmod(filepath.Dir(record), 0o700) }
		},
	} {
		before := starts()
		back := spoil()
		s := session()
		s.State = state
		settle(t, s, query())
		if starts() != before+1 {
			t.Errorf("%s: the record was believed", name)
		}
		os.Remove(record + ".2")
		back()
		// What the run stored in its place counts again.
		os.RemoveAll(filepath.Join(state, "verdict"))
		settle(t, session(), query())
	}
	nested := session()
	nested.Nested = true
	before := starts()
	settle(t, nested, query())
	if starts() != before+1 {
		t.Error("a nested run believes a record")
	}
	for name, change := range map[string]func(*Session, *Query){
		"digest":   func(_ *Session, q *Query) { q.SHA256 = strings.Repeat("cd", 32) },
		"bundle":   func(_ *Session, q *Query) { q.Signatures = []request.Signature{{Data: []byte("{ }")}} },
		"version":  func(s *Session, _ *Query) { s.Version = "u" },
		"minimum":  func(s *Session, _ *Query) { s.Stated.MinimumSLSALevel = 1 },
		"name":     func(_ *Session, q *Query) { q.Name = "other" },
		"recheck":  func(s *Session, _ *Query) { s.Stated.Recheck = "always" },
		"new root": func(s *Session, _ *Query) { newFile(t, filepath.Join(s.Dirs.User, "roots", "private.json")) },
	} {
		before := starts()
		s, q := session(), query()
		change(s, &q)
		settle(t, s, q)
		if starts() == before {
			t.Errorf("%s: an answer to another question was taken", name)
		}
	}
}

func newFile(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestExpectations(t *testing.T) {
	path, _ := helper(t)
	s := &Session{State: filepath.Join(t.TempDir(), "state"), Helper: path, Version: "t"}
	settle(t, s, query())
	bare := query()
	bare.Signatures = nil
	if got := settle(t, s, bare); !got.Expected || got.Changed {
		t.Errorf("a stripped signature: %+v", got)
	}
	bare.SHA256 = strings.Repeat("cd", 32)
	if got := settle(t, s, bare); !got.Expected || !got.Changed {
		t.Errorf("other bytes: %+v", got)
	}
	// Damage is no way around it.
	if err := os.WriteFile(s.expectPath(bare.Place), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := settle(t, s, bare); !got.Expected {
		t.Errorf("a damaged expectation: %+v", got)
	}
	s.Stated.ExpectationsOff = true
	if got := settle(t, s, bare); got.Expected {
		t.Errorf("switched off: %+v", got)
	}
}

func TestTrustFilesOfOthers(t *testing.T) {
	user := t.TempDir()
	file := filepath.Join(user, "signers", "acme.json")
	newFile(t, file)
	if err := os.WriteFile(file, []byte(`{"type":"cosign","identity":"a@b","issuer":"https://i"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(Dirs{User: user}, Stated{}); err != nil || len(c.Signers) != 1 {
		t.Fatalf("the twin: %v", err)
	}
	os.Chmod(file, 0o666)
	if _, err := Load(Dirs{User: user}, Stated{}); err == nil {
		t.Error("a signer that others can write is read")
	}
	os.Chmod(file, 0o600)
	if err := os.WriteFile(file, []byte(`{"type":"cosign","identityPattern":"sigstore-js","issuer":"https://i"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(Dirs{User: user}, Stated{})
	e, ok := err.(*shims.SettingsError)
	if !ok || e.FaultCode() != "E2102" || e.Line != 1 {
		t.Errorf("%v", err)
	}
}

// stored is a session whose cache has the answer to query.
func stored(b *testing.B) (s *Session, key string) {
	b.Helper()
	s = &Session{State: filepath.Join(b.TempDir(), "state"), Version: "t"}
	key, err := s.key(query())
	if err != nil {
		b.Fatal(err)
	}
	s.store(key, record{Settled: trust.Settled{SigType: trust.SigCosign, Bundle: trust.BundlePresent, Verify: trust.VerifyOK, Evidence: &trust.Evidence{Signer: "s", Identity: "i"}}})
	return s, key
}

func BenchmarkCachedVerdict(b *testing.B) {
	s, key := stored(b)
	for b.Loop() {
		if _, ok := s.cached(key); !ok {
			b.Fatal("no record")
		}
	}
}

// BenchmarkSettled is all that a run does about one subject whose answer is cached, with the
// configuration looked at anew, as each run does.
func BenchmarkSettled(b *testing.B) {
	first, _ := stored(b)
	q := query()
	for b.Loop() {
		s := &Session{State: first.State, Version: "t"}
		if out, err := s.Settle(q); err != nil || !out[0].Proven() {
			b.Fatalf("%+v %v", out, err)
		}
	}
}

func BenchmarkNothingToSettle(b *testing.B) {
	q := query()
	q.Signatures = nil
	for b.Loop() {
		s := &Session{State: "/nonexistent", Version: "t"}
		if _, err := s.Settle(q); err != nil {
			b.Fatal(err)
		}
	}
}

// What counts of a registry: its entry is enabled, nothing that the administrator locked out, and
// the environment names it without signers. Whoever demands signatures is heard.
func TestRegistryOf(t *testing.T) {
	const entry = `{"url":"https://Atip.Example.com/a/","requireSignatures":true,"source":"org","signers":[{"type":"cosign","key":"keys/a.pub","log":"none"}]}`
	const bare = `{"url":"https://atip.example.com/a"}`
	for _, row := range []struct {
		name, managed, user, env      string
		configured, required, signers bool
	}{
		{"the user's, in another spelling", "", `{"registries":[` + entry + `]}`, "", true, true, true},
		{"the administrator's", `{"registries":[` + entry + `]}`, "", "", true, true, true},
		{"nowhere", "", `{"registries":[{"url":"https://other.example.com/a"}]}`, "https://atip.example.com/b", false, false, false},
		{"switched off", "", `{"registries":[` + strings.Replace(entry, "{", `{"enabled":false,`, 1) + `]}`, "", false, false, false},
		{"switched off, and on in the other file", `{"registries":[` + strings.Replace(entry, "{", `{"enabled":false,`, 1) + `]}`, `{"registries":[` + bare + `]}`, "", true, false, false},
		{"locked out", `{"locked":true,"registries":[]}`, `{"registries":[` + entry + `]}`, "https://atip.example.com/a", false, false, false},
		{"of the environment", "", "", "http://127.0.0.1:1, https://ATIP.example.com/a/", true, false, false},
		{"the administrator's has no signers", `{"registries":[` + bare + `]}`, `{"registries":[` + entry + `]}`, "", true, true, false},
		{"demanded of all", "", `{"defaults":{"requireSignatures":true},"registries":[` + bare + `]}`, "", true, true, false},
	} {
		dir := t.TempDir()
		d := shims.Dirs{Managed: filepath.Join(dir, "managed"), Config: filepath.Join(dir, "user")}
		for at, text := range map[string]string{d.Managed: row.managed, d.Config: row.user} {
			if err := os.MkdirAll(at, 0o700); err != nil {
				t.Fatal(err)
			}
			if text != "" {
				if err := os.WriteFile(filepath.Join(at, "registries.json"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		r, err := RegistryOf(d, "https://atip.example.com/a", func(string) string { return row.env })
		if err != nil || r.Configured != row.configured || r.Required != row.required || (len(r.Signers) > 0) != row.signers {
			t.Errorf("%s: %+v %v", row.name, r, err)
		}
	}
}
