package sigstore_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/atip-dev/atip-exec/internal/built"
)

// bin is the directory of the programs as users have them, built at the first use.
var bin string

var build = sync.OnceValue(func() (err error) {
	bin, err = built.Programs(bin, "atip", "atip-exec", "atip-verify")
	return err
})

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sigstore-test-")
	if err != nil {
		panic(err)
	}
	bin = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// desk is a user's home and working directory, with the programs.
type desk struct {
	t        *testing.T
	home, ws string
}

func newDesk(t *testing.T) desk {
	t.Helper()
	if err := build(); err != nil {
		t.Fatal(err)
	}
	d := desk{t, filepath.Join(t.TempDir(), "home"), ""}
	d.ws = filepath.Join(d.home, "ws")
	if err := os.MkdirAll(d.ws, 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d desk) file(name, text string) string {
	d.t.Helper()
	path := filepath.Join(d.ws, name)
	if filepath.IsAbs(name) {
		path = name
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return path
}

func (d desk) read(name string) []byte {
	d.t.Helper()
	raw, err := os.ReadFile(filepath.Join(d.ws, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return raw
}

// atip runs the program and demands a status; the answer is all that it printed.
func (d desk) atip(want int, args ...string) string {
	d.t.Helper()
	return d.run(want, filepath.Join(bin, "atip"), append(args, "-o", "text")...)
}

// typed is the same on a terminal of its own, as a person types it.
func (d desk) typed(want int, args ...string) string {
	d.t.Helper()
	line := "stty -onlcr; exec " + filepath.Join(bin, "atip") + " -o text '" + strings.Join(args, "' '") + "'"
	return d.run(want, "script", "-qec", line, "/dev/null")
}

func (d desk) run(want int, program string, args ...string) string {
	d.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = d.ws, []string{"HOME=" + d.home, "PATH=/usr/bin:/bin"}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != want {
		d.t.Errorf("%s: status %d, want %d: %s", strings.Join(args, " "), got, want, out.String())
	}
	return out.String()
}

// TestKeylessPrograms: a user without a key signs and attests with the services of a deployment,
// and what comes of it verifies with its root alone; what differs in one thing does not.
func TestKeylessPrograms(t *testing.T) {
	d := deploy(t)
	s := d.serve()
	u := newDesk(t)
	id := identity{san: workflow, issuer: actions, source: source, runner: "github-hosted", config: workflow}
	tool := "the tool\n"
	u.file("root.json", string(d.root))
	u.file("other.json", string(deploy(t).root))
	u.file("token", idToken(t, id))
	u.atip(0, "sign", "--new-key", "release")
	predicate := slsa1([]byte(tool), "https://github.com/actions/runner/github-hosted", source)
	var statement struct{ Predicate json.RawMessage }
	if err := json.Unmarshal([]byte(predicate), &statement); err != nil {
		t.Fatal(err)
	}
	u.file("build.json", string(statement.Predicate))
	keyless := []string{"--fulcio", s.fulcio.URL, "--identity-token", "token"}
	mine := []string{"--identity", workflow, "--issuer", actions}
	for _, row := range []struct {
		name    string
		signer  []string
		record  []string
		profile string
		verify  []string
		time    string
	}{
		{"log", keyless, []string{"--rekor", s.rekor.URL}, "private", mine, "by the log"},
		{"log, all that the public deployment proves", keyless, []string{"--rekor", s.rekor.URL}, "public-good", mine, "by the log"},
		{"log and timestamp", keyless, []string{"--rekor", s.rekor.URL, "--tsa", s.tsa.URL}, "private", mine, "by "},
		{"timestamp alone", keyless, []string{"--tsa", s.tsa.URL}, "github", mine, "by a timestamp authority"},
		{"log of version 2", keyless, []string{"--rekor", s.tiles.URL, "--rekor-v2", "--tsa", s.tsa.URL}, "public-good", mine, "by a timestamp authority"},
		{"key, logged", []string{"--key", "release"}, []string{"--rekor", s.rekor.URL}, "private", []string{"--key", "release.pub"}, "by the log"},
		{"key, log of version 2", []string{"--key", "release"}, []string{"--rekor", s.tiles.URL, "--rekor-v2", "--tsa", s.tsa.URL}, "private", []string{"--key", "release.pub"}, "by a timestamp authority"},
	} {
		for _, verb := range []string{"sign", "attest"} {
			t.Run(verb+", "+row.name, func(t *testing.T) {
				u := u
				u.t = t
				u.file("dep", tool)
				args := append(append([]string{verb}, row.signer...), row.record...)
				reason := "signature"
				if verb == "attest" {
					args, reason = append(args, "--type", "https://slsa.dev/provenance/v1", "--predicate", "build.json"), "signature+provenance"
				}
				u.atip(0, append(args, "dep")...)
				verify := append([]string{"verify", "--trusted-root", "root.json", "--profile", row.profile}, row.verify...)
				out := u.atip(0, append(verify, "dep")...)
				if !strings.HasPrefix(out, "VERIFIED  tool dep: "+reason+"\n") || !strings.Contains(out, row.time) {
					t.Errorf("%s", out)
				}
				if verb == "attest" && row.verify[0] == "--identity" {
					for _, flags := range []struct {
						want int
						says string
						args []string
					}{
						{0, "signature+provenance", []string{"--minimum-slsa", "2", "--source-repository", source, "--predicate-type", "https://slsa.dev/provenance/v1", "--builder", "https://github.com/actions/runner/github-hosted"}},
						{77, "slsa_level_below_minimum", []string{"--minimum-slsa", "3"}},
						{77, "provenance_builder_denied", []string{"--builder", "https://ci.example"}},
						{77, "signer_not_allowed", []string{"--source-repository", "https://github.com/evil/tool"}},
						{77, "provenance", []string{"--predicate-type", "https://slsa.dev/provenance/v0.2"}},
					} {
						if out := u.atip(flags.want, append(append(append([]string{}, verify...), flags.args...), "dep")...); !strings.Contains(out, flags.says) || flags.want != 0 && strings.HasPrefix(out, "VERIFIED") {
							t.Errorf("%q: %s", flags.args, out)
						}
					}
				}
				w := witness{Profile: row.profile, Root: d.root, Artifact: []byte(tool), Bundle: u.read("dep.bundle"), Logged: true, Good: true}
				if row.verify[0] == "--key" {
					w.Key = string(u.read("release.pub"))
				} else {
					w.Identity, w.Issuer = workflow, actions
				}
				w.keep(t)
				twins := []func(*witness){func(w *witness) { w.Artifact = []byte("The tool\n") }, func(w *witness) { w.Root = u.read("other.json") }}
				if w.Key == "" {
					twins = append(twins, func(w *witness) { w.Identity += "0" }, func(w *witness) { w.Issuer += "/" })
				}
				for n, change := range twins {
					twin := w
					twin.Name, twin.Good = fmt.Sprintf(", twin %d", n), false
					change(&twin)
					twin.keep(t)
				}
				for _, twin := range []struct {
					name string
					file string
					args []string
					says string
				}{
					{"a byte of the file", "The tool\n", verify, "signature_for_other_artifact"},
					{"another signer", tool, []string{"verify", "--trusted-root", "root.json", "--profile", row.profile, "--identity", workflow + "0", "--issuer", actions}, ""},
					{"a root that knows nothing of it", tool, append([]string{"verify", "--trusted-root", "other.json", "--profile", row.profile}, row.verify...), ""},
				} {
					u.file("dep", twin.file)
					if out := u.atip(77, append(twin.args, "dep")...); !strings.Contains(out, twin.says) || strings.Contains(out, "VERIFIED  tool") && !strings.HasPrefix(out, "UNVERIFIED") {
						t.Errorf("%s: %s", twin.name, out)
					}
				}
			})
		}
	}
	u.t = t
	u.file("dep", tool)
	s.certificateLogged.Store(false)
	u.atip(0, "sign", "--fulcio", s.fulcio.URL, "--identity-token", "token", "--rekor", s.rekor.URL, "dep")
	verify := append([]string{"verify", "--trusted-root", "root.json"}, mine...)
	if out := u.atip(77, append(verify, "--profile", "public-good", "dep")...); !strings.Contains(out, "signature_invalid") {
		t.Errorf("a certificate that no log promised to take in: %s", out)
	}
	u.atip(0, append(verify, "dep")...) // a private deployment need not have such a log
}

// TestSignRefuses: an identity token goes to the authority that the user named, over TLS or within
// this machine, and nothing is written if a service fails.
func TestSignRefuses(t *testing.T) {
	d := deploy(t)
	s := d.serve()
	u := newDesk(t)
	u.file("dep", "the tool\n")
	u.file("token", idToken(t, identity{san: workflow, issuer: actions}))
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		elsewhere.Add(1)
		http.Redirect(w, r, s.fulcio.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer other.Close()
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer moved.Close()
	answers := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	for _, row := range []struct {
		name, fulcio, rekor, tsa string
		status                   int
		says                     string
	}{
		{"redirected token", moved.URL, s.rekor.URL, "", 69, "redirect"},
		{"token in the clear", "http://fulcio.example.com", s.rekor.URL, "", 64, "https"},
		{"log in the clear", s.fulcio.URL, "http://rekor.example.com", "", 64, "https"},
		{"timestamp in the clear", s.fulcio.URL, "", "http://tsa.example.com", 64, "https"},
		{"no URL", "fulcio.example.com", s.rekor.URL, "", 64, "https"},
		{"file", "file:///etc/passwd", s.rekor.URL, "", 64, "https"},
		{"no proof of time", s.fulcio.URL, "", "", 64, "time"},
		{"an authority that fails", answers(500, "no"), s.rekor.URL, "", 69, "500"},
		{"an authority that serves HTML", answers(200, "<html>"), s.rekor.URL, "", 69, "nothing was written"},
		{"a log that fails", s.fulcio.URL, answers(503, "no"), "", 69, "nothing was written"},
		{"a log that serves HTML", s.fulcio.URL, answers(201, "<html>"), "", 69, "nothing was written"},
		{"a log that logs nothing", s.fulcio.URL, answers(201, "{}"), "", 69, "nothing was written"},
		{"a clock that serves HTML", s.fulcio.URL, "", answers(200, "<html>"), 69, "nothing was written"},
	} {
		t.Run(row.name, func(t *testing.T) {
			u := u
			u.t = t
			args := []string{"sign", "--fulcio", row.fulcio, "--identity-token", "token"}
			if row.rekor != "" {
				args = append(args, "--rekor", row.rekor)
			}
			if row.tsa != "" {
				args = append(args, "--tsa", row.tsa)
			}
			s.questions()
			if out := u.atip(row.status, append(args, "dep")...); !strings.Contains(out, row.says) || strings.Contains(out, "panic") {
				t.Errorf("it does not say %q: %s", row.says, out)
			}
			if n := s.questions(); row.status == 64 && n > 0 {
				t.Errorf("%d services were asked", n)
			}
			if _, err := os.Stat(filepath.Join(u.ws, "dep.bundle")); err == nil {
				t.Error("a bundle was written")
				os.Remove(filepath.Join(u.ws, "dep.bundle"))
			}
		})
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed with the token")
	}
	// The twin.
	u.atip(0, "sign", "--fulcio", s.fulcio.URL, "--identity-token", "token", "--rekor", s.rekor.URL, "dep")
	if err := os.Chmod(filepath.Join(u.ws, "token"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := u.atip(66, "sign", "--fulcio", s.fulcio.URL, "--identity-token", "token", "--rekor", s.rekor.URL, "dep"); !strings.Contains(out, "chmod 600") {
		t.Errorf("a token that others can read: %s", out)
	}
}

// TestTrustUpdate: a root comes by TUF from a repository whose first root.json is at hand, and one
// that is older, expired, changed, signed by others or poorer leaves the root that is there.
func TestTrustUpdate(t *testing.T) {
	d, next := deploy(t), deploy(t)
	repo := newRepository(t)
	repo.publish(d.root)
	u := newDesk(t)
	u.file("root.json", string(repo.root))
	config := filepath.Join(u.home, ".config/agent-tools/trust")
	at := filepath.Join(config, "roots/acme.json")
	update := []string{"trust", "update", "--name", "acme", "--mirror", repo.server.URL, "--tuf-root", "root.json"}
	has := func(t *testing.T, want []byte) {
		t.Helper()
		got, err := os.ReadFile(at)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("the root is not the expected one: %v, %d bytes", err, len(got))
		}
	}
	u.atip(77, update...) // not on a terminal
	u.typed(64, "trust", "update", "--name", "acme", "--mirror", repo.server.URL)
	u.typed(64, "trust", "update", "--name", "acme") // or it would get the public root
	u.typed(0, update...)
	has(t, d.root)
	if out := u.atip(0, "trust", "status"); !strings.Contains(out, "acme  user, private, 0 days old") || !strings.Contains(out, "https://"+logHost) {
		t.Errorf("%s", out)
	}
	// What it is for: a signer whose root it is.
	s := d.serve()
	u.file("token", idToken(t, identity{san: workflow, issuer: actions, source: source}))
	u.file("dep", "the tool\n")
	u.atip(0, "sign", "--fulcio", s.fulcio.URL, "--identity-token", "token", "--rekor", s.rekor.URL, "dep")
	u.file(filepath.Join(config, "signers/acme.json"), `{"type":"cosign","identity":"`+workflow+`","issuer":"`+actions+`","root":"acme"}`)
	if out := u.atip(0, "verify", "dep"); !strings.Contains(out, "VERIFIED  tool dep: signature\n") {
		t.Errorf("%s", out)
	}

	// A root from before the authorities of a signature is stale, and the update mends it.
	later := next.serve()
	u.file("new", "a newer tool\n")
	u.atip(0, "sign", "--fulcio", later.fulcio.URL, "--identity-token", "token", "--rekor", later.rekor.URL, "new")
	sum := sha256.Sum256(d.root)
	u.file(filepath.Join(config, "roots/acme.meta.json"), fmt.Sprintf(`{"fetched":"2025-01-01T00:00:00Z","sha256":"%x","profile":"private"}`, sum))
	if out := u.atip(77, "verify", "new"); !strings.Contains(out, "trust_root_stale") || !strings.Contains(out, "next       atip trust update\n") {
		t.Errorf("%s", out)
	}

	first := repo.get("/timestamp.json")
	both := d.with(next)
	repo.publish(both)
	u.typed(0, update...)
	u.atip(0, "verify", "new")
	has(t, both)
	if raw, err := os.ReadFile(at + ".prev"); err != nil || !bytes.Equal(raw, d.root) {
		t.Errorf("the root from before is not kept: %v", err)
	}
	repo.set("/timestamp.json", first)
	for _, row := range []struct {
		name   string
		change func()
	}{
		{"an older timestamp", func() {}},
		{"a changed target list", func() {
			repo.publish(next.root)
			repo.set("/3.targets.json", bytes.Replace(repo.get("/3.targets.json"), []byte(`trusted_root`), []byte(`trusted_r00t`), 1))
		}},
		{"signed by others", func() {
			stranger := newRepository(t)
			stranger.version = 5
			stranger.publish(next.root)
			repo.set("/timestamp.json", stranger.get("/timestamp.json"))
		}},
		{"HTML", func() { repo.set("/timestamp.json", []byte("<html>")) }},
		{"nothing there", func() { repo.set("/timestamp.json", nil) }},
	} {
		row.change()
		if out := u.typed(69, update...); !strings.Contains(out, "old one stays") {
			t.Errorf("%s: %s", row.name, out)
		}
		has(t, both)
	}
	repo.publish(next.root) // which knows nothing of the first deployment
	if out := u.typed(65, update...); !strings.Contains(out, "drops") || !strings.Contains(out, "--force") {
		t.Errorf("a root that drops an authority: %s", out)
	}
	has(t, both)
	repo.publish([]byte(`{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`))
	u.typed(65, update...)
	has(t, both)
	repo.publish(next.root)
	u.typed(0, append(update, "--force")...)
	has(t, next.root)
	if out := u.atip(77, "verify", "dep"); !strings.Contains(out, "trust_root_unknown") || !strings.Contains(out, "the root acme does not know") {
		t.Errorf("the signer's root is another one: %s", out)
	}
	repo.server.Close()
	if out := u.typed(69, update...); !strings.Contains(out, "old one stays") {
		t.Errorf("no network: %s", out)
	}
	has(t, next.root)
}

// TestVerifyExits: the status is 0 for VERIFIED, 77 for anything less, 65 for an input that cannot
// be read and 78 for a trust configuration that cannot be used.
func TestVerifyExits(t *testing.T) {
	u := newDesk(t)
	u.file("dep", "the tool\n")
	u.atip(0, "sign", "--new-key", "release")
	u.atip(0, "sign", "--key", "release", "dep")
	u.file("short", "the tool\n")
	u.file("short.bundle", string(u.read("dep.bundle")[:80]))
	u.file("plain", "no signature\n")
	u.file("huge.bundle", strings.Repeat(" ", 1200<<10))
	for _, row := range []struct {
		want int
		says string
		args []string
	}{
		{0, "VERIFIED  tool dep: signature\n", []string{"--key", "release.pub", "dep"}},
		{0, "VERIFIED  tool dep: signature\n", []string{"--key", "release.pub", "--bundle", "dep.bundle", "--bundle-line", "1", "dep"}},
		{77, "no_key_in_policy", []string{"dep"}},
		{77, "bundle_malformed", []string{"--key", "release.pub", "short"}},
		{77, "bundle_malformed", []string{"--key", "release.pub", "--bundle", "huge.bundle", "dep"}},
		{77, "bundle_malformed", []string{"--key", "release.pub", "--bundle", "dep.bundle", "--bundle-line", "2", "dep"}},
		{77, "no_signature", []string{"--key", "release.pub", "plain"}},
		{77, "hash_mismatch", []string{"--key", "release.pub", "--digest", strings.Repeat("ab", 32), "dep"}},
		{77, "provenance_required", []string{"--key", "release.pub", "--minimum-slsa", "1", "dep"}},
		{65, "can be read", []string{"--key", "release.pub", "gone/dep"}},
		{65, "can be read", []string{"--key", "gone.pub", "dep"}},
		{65, "can be read", []string{"--key", "release.pub", "--bundle", "gone", "dep"}},
		{65, "can be read", []string{"--key", "release.pub", u.ws + "/"}},
		{78, "https://host/", []string{"--identity-pattern", "sigstore-js", "--issuer", actions, "dep"}},
		{78, "--issuer", []string{"--identity", workflow, "dep"}},
		{78, "two signers", []string{"--identity", workflow, "--identity-pattern", "https://github.com/acme/.*", "--issuer", actions, "dep"}},
		{78, "neither a PEM", []string{"--key", "plain", "dep"}},
	} {
		if out := u.atip(row.want, append([]string{"verify"}, row.args...)...); !strings.Contains(out, row.says) {
			t.Errorf("%q does not say %q: %s", row.args, row.says, out)
		}
	}
	config := filepath.Join(u.home, ".config/agent-tools/trust/signers/a.json")
	for _, text := range []string{`{"type":"cosign","identityPattern":"sigstore-js","issuer":"` + actions + `"}`, `{"type":"cosign","identity":"` + workflow + `"}`, `{"type":"cosign","key":"keys/gone.pub"}`, `{`} {
		u.file(config, text)
		if out := u.atip(78, "verify", "dep"); !strings.Contains(out, "E2102") {
			t.Errorf("%s: %s", text, out)
		}
	}
}

// answered is typed, with an answer to the question once it is asked.
func (d desk) answered(want int, answer string, args ...string) string {
	d.t.Helper()
	cmd := exec.Command("script", "-qec", "stty -onlcr; exec "+filepath.Join(bin, "atip")+" -o text '"+strings.Join(args, "' '")+"'", "/dev/null")
	cmd.Dir, cmd.Env = d.ws, []string{"HOME=" + d.home, "PATH=/usr/bin:/bin"}
	in, err := cmd.StdinPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	var said bytes.Buffer
	buf := make([]byte, 4<<10)
	for asked := false; ; {
		n, err := out.Read(buf)
		said.Write(buf[:n])
		if !asked && strings.Contains(said.String(), "Type yes") {
			asked = true
			_, _ = in.Write([]byte(answer + "\n"))
		}
		if err != nil {
			break
		}
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != want {
		d.t.Errorf("%s: status %d, want %d: %s", strings.Join(args, " "), got, want, said.String())
	}
	return said.String()
}

// TestTrustSigners: a person reads who signed a bundle and allows it, sees it in the list, and
// forgets it; nobody else does.
func TestTrustSigners(t *testing.T) {
	d := deploy(t)
	s := d.serve()
	u := newDesk(t)
	u.file(filepath.Join(u.home, ".config/agent-tools/trust/roots/acme.json"), string(d.root))
	u.file("token", idToken(t, identity{san: workflow, issuer: actions, source: source}))
	u.file("dep", "the tool\n")
	u.atip(0, "sign", "--fulcio", s.fulcio.URL, "--identity-token", "token", "--rekor", s.rekor.URL, "dep")
	add := []string{"trust", "add-signer", "acme", "--from-bundle", "dep.bundle", "--root", "acme"}
	u.atip(77, "verify", "dep")
	u.atip(77, add...)
	u.run(77, "env", "ATIP_EXEC_SANDBOX=T3", "script", "-qec", filepath.Join(bin, "atip")+" "+strings.Join(add, " "), "/dev/null")
	u.answered(77, "no", add...)
	if out := u.atip(77, "verify", "dep"); !strings.Contains(out, "signer_not_allowed") {
		t.Errorf("nobody was added: %s", out)
	}
	if out := u.answered(0, "yes", add...); !strings.Contains(out, workflow) || !strings.Contains(out, actions) || !strings.Contains(out, source) {
		t.Errorf("it does not show whom it adds: %s", out)
	}
	if out := u.atip(0, "verify", "dep"); !strings.Contains(out, "signer     acme\n") || !strings.Contains(out, "root       acme\n") {
		t.Errorf("%s", out)
	}
	if out := u.atip(0, "trust", "list"); !strings.Contains(out, "acme  cosign "+workflow) {
		t.Errorf("%s", out)
	}
	u.file("dep", "another tool\n")
	u.atip(77, "verify", "dep")
	u.file("dep", "the tool\n")
	u.answered(77, "no", "trust", "forget", "acme")
	u.atip(0, "verify", "dep")
	u.answered(0, "yes", "trust", "forget", "acme")
	u.atip(77, "verify", "dep")
	for _, row := range []struct {
		want int
		says string
		args []string
	}{
		{64, "no name", []string{"trust", "add-signer", "../evil", "--from-bundle", "dep.bundle"}},
		{78, "https://host/", []string{"trust", "add-signer", "bad", "--identity-pattern", "sigstore-js", "--issuer", actions}},
		{78, "issuer is missing", []string{"trust", "add-signer", "bad", "--identity", workflow}},
		{65, "holds no certificate", []string{"trust", "add-signer", "bad", "--from-bundle", "root.json"}},
		{66, "is not there", []string{"trust", "forget", "bad"}},
	} {
		u.file("root.json", "{}")
		if out := u.typed(row.want, row.args...); !strings.Contains(out, row.says) {
			t.Errorf("%q does not say %q: %s", row.args, row.says, out)
		}
	}
}
