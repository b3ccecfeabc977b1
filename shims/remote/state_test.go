package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/shims"
)

// TestRegistryState plays a registry that changes its mind.
func TestRegistryState(t *testing.T) {
	other, start := strings.Repeat("cd", 32), time.Now()
	type registry struct {
		*world
		www string
		url string
		o   PublishOptions
	}
	stateFile := func(r *registry) string { return filepath.Join(r.www, filepath.FromSlash(statePath)) }
	edit := func(r *registry, change func(map[string]any)) {
		t.Helper()
		raw, err := os.ReadFile(stateFile(r))
		if err != nil {
			t.Fatal(err)
		}
		doc := map[string]any{}
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		change(doc)
		raw, _ = json.Marshal(doc)
		if err := os.WriteFile(stateFile(r), raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	document := func(r *registry) string { return filepath.Join(r.www, "shims", "sha256", hexA+".json") }
	corrected := strings.Replace(shim(hexA, "1"), `"network":true`, `"network":true,"destructive":true`, 1)
	again := func(r *registry) (Result, string, error) {
		r.now = r.now.Add(26 * time.Hour)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		res, err := r.Fetch(ctx, hexA)
		code := ""
		if e, ok := err.(*Error); ok {
			code = e.Code
		}
		return res, code, err
	}
	for _, c := range []struct {
		name    string
		change  func(*registry)
		outcome Outcome
		code    string
		why     string
		kept    bool // the document of before is still used
	}{
		{"nothing", func(*registry) {}, Renewed, "", "", true},
		{"a correction", func(r *registry) {
			Publish(r.www, []Upload{{File: "x", Raw: []byte(corrected)}}, r.o)
		}, Stored, "", "", true},
		{"an older document under a new state", func(r *registry) {
			Publish(r.www, []Upload{{File: "x", Raw: []byte(corrected)}}, r.o)
			os.WriteFile(document(r), []byte(shim(hexA, "1")), 0o644)
			os.Chtimes(document(r), start.Add(time.Hour), start.Add(time.Hour))
		}, "", "E4204", "registry_rollback", true},
		{"an older state", func(r *registry) {
			edit(r, func(d map[string]any) { d["version"] = 1; d["issued"] = start.UTC().Format(time.RFC3339) })
		}, "", "E4204", "registry_rollback", true},
		{"two states with one number", func(r *registry) { edit(r, func(d map[string]any) { d["revoked"] = map[string]any{} }) }, "", "E4204", "registry_equivocation", true},
		{"no state any longer", func(r *registry) { os.Remove(stateFile(r)) }, "", "E4204", "registry_state_missing", true},
		{"a hidden document", func(r *registry) { os.Remove(document(r)) }, "", "E4204", "which its state lists", true},
		{"a document that was taken back", func(r *registry) {
			os.Remove(document(r))
			Publish(r.www, nil, r.o)
		}, Stale, "", "", true},
		{"a list that does not fit", func(r *registry) {
			Publish(r.www, []Upload{{File: "x", Raw: []byte(corrected)}}, r.o)
			os.WriteFile(filepath.Join(r.www, "shims", "sha256", "ab.list"), []byte(""), 0o644)
		}, "", "E4204", "registry_rollback", true},
		{"a file that is warned of", func(r *registry) {
			edit(r, func(d map[string]any) {
				d["version"] = 9
				d["revoked"] = map[string]any{"sha256": []string{"sha256:" + hexA}}
			})
		}, "", "E4204", "registry_revoked", false},
		{"a state that nobody renews", func(r *registry) { r.now = r.now.Add(9 * 24 * time.Hour) }, Stale, "", "registry_stale", true},
		{"not for longer than we allow", func(r *registry) {
			r.now = r.now.Add(9 * 24 * time.Hour)
			r.Config.Registries[0].MaxStateAge = 24 * time.Hour
		}, "", "E4204", "registry_stale", false},
		{"the state of another registry", func(r *registry) {
			edit(r, func(d map[string]any) { d["version"] = 9; d["registry"] = "https://other.invalid" })
		}, "", "E4204", "state of", true},
		{"good for a year", func(r *registry) {
			edit(r, func(d map[string]any) {
				d["version"] = 9
				d["expires"] = start.Add(365 * 24 * time.Hour).UTC().Format(time.RFC3339)
			})
		}, "", "E4204", "7 days", true},
		{"from the future", func(r *registry) {
			edit(r, func(d map[string]any) {
				d["version"] = 9
				d["issued"], d["expires"] = start.Add(100*time.Hour).UTC().Format(time.RFC3339), start.Add(120*time.Hour).UTC().Format(time.RFC3339)
			})
		}, "", "E4204", "future", true},
		{"an unknown part", func(r *registry) {
			edit(r, func(d map[string]any) { d["version"] = 9; d["withdrawn"] = []string{hexA} })
		}, "", "E4204", "withdrawn", true},
		{"HTML", func(r *registry) { os.WriteFile(stateFile(r), []byte("<html>"), 0o644) }, "", "E4204", "its state is not used", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &registry{www: t.TempDir()}
			s := httptest.NewServer(http.FileServer(http.Dir(r.www)))
			defer s.Close()
			r.url = s.URL
			r.o = PublishOptions{URL: s.URL, State: true, Now: start}
			for _, raw := range []string{shim(other, "1"), shim(hexA, "1")} {
				if _, err := Publish(r.www, []Upload{{File: "x", Raw: []byte(raw)}}, r.o); err != nil {
					t.Fatal(err)
				}
			}
			r.world = newWorld(t, Registry{URL: s.URL})
			r.State = filepath.Join(t.TempDir(), "state")
			if res, code := r.fetch(); res.Outcome != Stored || code != "" {
				miss, _ := shims.Missed(r.Dirs.ShimPath(hexA), r.now)
				t.Fatalf("%+v %s %s", res, code, miss.Why)
			}
			c.change(r)
			res, code, err := again(r)
			if res.Outcome != c.outcome || code != c.code || !strings.Contains(fmt.Sprint(err, res.Note), c.why) {
				t.Errorf("%+v %v, want %s %s %s", res, err, c.outcome, c.code, c.why)
			}
			if _, _, ok := shims.Cached(r.Dirs.ShimPath(hexA)); ok != c.kept {
				t.Errorf("the document at hand: %v, want %v", ok, c.kept)
			}
			if c.code == "E4204" {
				// The refusal lasts, without another question.
				s.Close()
				r.now = r.now.Add(time.Minute)
				if _, err := r.Fetch(t.Context(), hexA); err == nil || err.(*Error).Code != "E4204" {
					t.Errorf("asked again: %v", err)
				}
			}
		})
	}
}

func TestRequireState(t *testing.T) {
	s := serve(t, static(shim(hexA, "1"), `"1"`, ""))
	w := newWorld(t, Registry{URL: s.URL, RequireState: true})
	if r, code := w.fetch(); code != "E4204" {
		t.Errorf("%+v %s", r, code)
	}
	w = newWorld(t, Registry{URL: s.URL})
	w.State = t.TempDir()
	if r, code := w.fetch(); code != "" || r.Outcome != Stored {
		t.Errorf("%+v %s", r, code)
	}
	// What was seen and cannot be read is not taken for nothing.
	path := w.seenPath(&w.Config.Registries[0])
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"v":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(48 * time.Hour)
	if r, code := w.fetch(); code != "" || r.Outcome != Stale || !strings.Contains(r.Note, "damaged") {
		t.Errorf("%+v %s", r, code)
	}
}

func FuzzState(f *testing.F) {
	f.Add(`{"kind":"atip-registry-state","registry":"https://a.invalid","version":1,"issued":"2026-01-01T00:00:00Z","expires":"2026-01-02T00:00:00Z","shards":{"ab":"`+hexA+`"}}`, hexA+" "+hexA+" 1\n")
	f.Fuzz(func(t *testing.T, text, list string) {
		r := &Registry{}
		r.setURL("https://a.invalid")
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		if s, err := parseState(r, []byte(text), now); err == nil && (s.version <= 0 || s.expires.Sub(s.issued) > longest || s.issued.After(now.Add(clockSkew))) {
			t.Errorf("%+v", s)
		}
		lines, err := parseShard(r, "ab", []byte(list))
		for hex, sum := range lines {
			if err != nil || !strings.HasPrefix(hex, "ab") || !isHex(hex, 64) || !isHex(sum, 64) {
				t.Errorf("%q %q %v", hex, sum, err)
			}
		}
	})
}
