package remote

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/shims"
)

const allowlist = `{"version":1,"policy":{"organization":"Acme","approval":{"mode":"allowlist"}}}`

// withPolicy serves a policy besides.
func withPolicy(text string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/policy.json" {
			fmt.Fprint(w, text)
			return
		}
		h(w, r)
	}
}

// TestNothingAnswersPastAnAllowlist: the registry that approves is asked first, and its
// "not found" is the end.
func TestNothingAnswersPastAnAllowlist(t *testing.T) {
	org := serve(t, withPolicy(allowlist, http.NotFound))
	community := serve(t, static(shim(hexA, "1"), `"1"`, ""))
	w := newWorld(t, Registry{URL: community.URL}, Registry{URL: org.URL})
	if err := w.Sync(t.Context(), func(s Synced) {
		if s.Err != nil {
			t.Error(s.Err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	w.Refresh = false
	if got := w.Approvers(); len(got) != 1 || got[0] != w.Config.Registries[1].ID {
		t.Errorf("%q", got)
	}
	before := community.count()
	if r, code := w.fetch(); r.Outcome != Missing || code != "" || community.count() != before {
		t.Errorf("%+v %s, the other one was asked %d times", r, code, community.count()-before)
	}
}

func TestApprove(t *testing.T) {
	answer := static(shim(hexA, "1"), `"1"`, "max-age=60")
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { answer(w, r) })
	w := newWorld(t, Registry{URL: s.URL})
	id := w.Config.Registries[0].ID
	path := w.Dirs.ApprovalPath(id, hexA)
	approve := func() (Outcome, string) {
		t.Helper()
		r, err := w.Approve(t.Context(), id, hexA)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatal(err)
		}
		if e != nil {
			return "", e.Code
		}
		return r.Outcome, ""
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for _, c := range []struct {
		name    string
		h       http.HandlerFunc
		outcome Outcome
		code    string
		kept    bool
		kind    shims.MissKind
	}{
		{"approved", answer, Stored, "", true, ""},
		{"still approved", answer, Renewed, "", true, ""},
		{"out of order", status(500), Stale, "", true, shims.Unavailable},
		{"withdrawn", http.NotFound, Missing, "", false, shims.Absent},
		{"unavailable and not known", status(503), "", "E4202", false, shims.Unavailable},
		{"about another file", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, shim(strings.Repeat("cd", 32), "1")) }, "", "E4204", false, shims.Refused},
		{"approved again", answer, Stored, "", true, ""},
	} {
		answer = c.h
		w.now = w.now.Add(25 * time.Hour)
		outcome, code := approve()
		if outcome != c.outcome || code != c.code {
			t.Errorf("%s: %s %s, want %s %s", c.name, outcome, code, c.outcome, c.code)
		}
		if _, _, ok := shims.Cached(path); ok != c.kept {
			t.Errorf("%s: an approval at hand: %v", c.name, ok)
		}
		if m, _ := shims.Missed(path, w.now); m.Kind != c.kind {
			t.Errorf("%s: remembered as %q, want %q", c.name, m.Kind, c.kind)
		}
		if _, _, ok := shims.Cached(w.Dirs.ShimPath(hexA)); ok {
			t.Errorf("%s: an approval became the metadata of look-ups", c.name)
		}
	}
	if _, err := w.Approve(t.Context(), "0123456789abcdef", hexA); err == nil {
		t.Error("a registry that is not configured approves")
	}
	before := s.count()
	if _, err := w.Approve(t.Context(), id, "../../etc/passwd"); err == nil || s.count() != before {
		t.Error("a path is asked for")
	}
}

// TestNotModifiedIsNoAnswer: taken for "there is none", a 304 to a question without a
// condition would lose what a manifest demands.
func TestNotModifiedIsNoAnswer(t *testing.T) {
	for _, path := range []string{manifestPath, statePath, "/shims/sha256/" + hexA + ".json", "/shims/sha256/" + hexA + ".json.bundle", "/policy.json", "/shims/index.json"} {
		h := static(shim(hexA, "1"), `"1"`, "")
		s := serve(t, nil)
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == path {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			h(w, r)
		})
		w := newWorld(t, Registry{URL: s.URL})
		_, err := w.Fetch(t.Context(), hexA)
		switch path {
		case "/policy.json":
			_, err = w.policy(t.Context(), &w.Config.Registries[0])
		case "/shims/index.json":
			_, err = w.Catalog(t.Context())
		}
		var e *Error
		if !errors.As(err, &e) || e.Code != "E4204" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestPlainHTTPStaysHere: a name that says it is this machine is looked at once it is
// resolved.
func TestPlainHTTPStaysHere(t *testing.T) {
	w := newWorld(t)
	for address, want := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "192.0.2.1:1": false, "169.254.169.254:80": false, "[fe80::1]:80": false} {
		c, err := w.transport(true).DialContext(t.Context(), "tcp", address)
		if err == nil {
			c.Close()
		}
		if refused := err != nil && strings.Contains(err.Error(), "this machine only"); refused == want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestPolicyThatCannotBeInForce(t *testing.T) {
	text := allowlist
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { withPolicy(text, http.NotFound)(w, r) })
	w := newWorld(t, Registry{URL: s.URL})
	w.CheckPolicy = func(_ string, raw []byte) error {
		if strings.Contains(string(raw), "nonsense") {
			return errors.New("unknown key")
		}
		return nil
	}
	r := &w.Config.Registries[0]
	if outcome, err := w.policy(t.Context(), r); err != nil || outcome != Stored {
		t.Fatalf("%s %v", outcome, err)
	}
	text = `{"nonsense":1}`
	if _, err := w.policy(t.Context(), r); err == nil || !w.approves(r) {
		t.Errorf("%v; the policy of before holds: %v", err, w.approves(r))
	}
}
