package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// signing is a world with a key that policy allows and a program of the workspace.
type signing struct {
	world
	key, tool, digest string
}

func newSigning(t *testing.T, policy string) signing {
	t.Helper()
	w := signing{world: newWorld(t)}
	// Of a name like release.key only a person on a terminal makes a file.
	w.key = filepath.Join(w.ws, "release")
	w.atip(0, "sign", "--new-key", w.key)
	config := filepath.Join(w.home, ".config", "agent-tools")
	if err := os.MkdirAll(filepath.Join(config, "trust", "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(w.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	w.put(filepath.Join(config, "trust", "keys", "release.pub"), string(public), 0o600)
	if policy != "" {
		w.put(filepath.Join(config, "policy.json"), policy, 0o600)
	}
	w.tool = filepath.Join(w.ws, "dep")
	w.write("#!/bin/sh\necho deployed\n")
	return w
}

func (w signing) put(path, text string, mode os.FileMode) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

func (w *signing) write(text string) {
	w.put(w.tool, text, 0o755)
	sum := sha256.Sum256([]byte(text))
	w.digest = hex.EncodeToString(sum[:])
}

func (w signing) atip(want int, args ...string) string {
	w.t.Helper()
	cmd := exec.Command(filepath.Join(bin, "atip"), args...)
	cmd.Dir, cmd.Env = w.ws, w.command().Env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != want {
		w.t.Fatalf("atip %s: status %d, want %d: %s", strings.Join(args, " "), got, want, out.String())
	}
	return out.String()
}

func (w signing) exec(args ...string) (int, string) {
	cmd := w.command(args...)
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

type stepTrust struct {
	Trust, MetadataTrust *struct {
		Level, Reason, Action string
		Evidence              *struct{ Signer, Identity string }
	}
	Metadata struct{ Rank, Source string }
}

func (w signing) explained(args ...string) stepTrust { return w.explainedWith("", args...) }

// explainedWith has one variable more.
func (w signing) explainedWith(variable string, args ...string) stepTrust {
	w.t.Helper()
	cmd := w.command(append([]string{"explain", "-o", "json", "--"}, args...)...)
	cmd.Env = append(cmd.Env, variable)
	out, err := cmd.Output()
	var d struct{ Steps []stepTrust }
	if err != nil || json.Unmarshal(out, &d) != nil || len(d.Steps) == 0 {
		w.t.Fatalf("explain: %v %s", err, out)
	}
	return d.Steps[0]
}

// A document is signed, served, required to be signed and VERIFIED; a flipped byte, a
// missing or foreign bundle and a rollback are refused, on the way and at rest.
func TestSignedRegistry(t *testing.T) {
	t.Parallel()
	w := newSigning(t, "")
	doc := filepath.Join(w.ws, "dep.json")
	w.put(doc, fmt.Sprintf(`{"atip":{"version":"0.6"},"binary":{"hash":"sha256:%s","name":"dep","version":"1"},"description":"Deployments","effects":{"network":false,"filesystem":{"write":false}}}`, w.digest), 0o644)
	www := filepath.Join(w.ws, "www")
	s := httptest.NewServer(http.FileServer(http.Dir(www)))
	defer s.Close()
	publish := func() {
		w.atip(0, "publish", "--key", w.key, "--url", s.URL, "--state", "--require-signatures", www, doc)
	}
	publish()
	w.put(filepath.Join(w.home, ".config/agent-tools/registries.json"), `{"registries":[{"name":"Acme","url":"`+s.URL+`","requireSignatures":true,
		"signers":[{"type":"cosign","key":"keys/release.pub","log":"none"}]}]}`, 0o600)
	w.atip(0, "fetch-shim", "sha256:"+w.digest)
	step := w.explained("./dep")
	if m := step.MetadataTrust; m == nil || m.Level != "VERIFIED" || m.Evidence == nil || !strings.Contains(m.Evidence.Signer, "Acme") || step.Metadata.Rank != "community" {
		t.Fatalf("the twin: %+v, rank %s", m, step.Metadata.Rank)
	}
	kept := filepath.Join(w.home, ".local/share/agent-tools/shims/sha256", w.digest+".json")
	served := filepath.Join(www, "shims/sha256", w.digest+".json")
	change := func(path string, f func([]byte) []byte) func() {
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if now := f(old); now == nil {
			os.Remove(path)
		} else {
			w.put(path, string(now), 0o644)
		}
		return func() { w.put(path, string(old), 0o644) }
	}
	flip := func(b []byte) []byte { return bytes.Replace(b, []byte("Deployments"), []byte("Deployment5"), 1) }
	gone := func([]byte) []byte { return nil }
	state := filepath.Join(www, ".well-known/atip-state.json")
	for _, row := range []struct {
		name, path string
		edit       func([]byte) []byte
		says       string
	}{
		{"a byte of the document", served, flip, ""},
		{"its bundle is missing", served + ".bundle", gone, "downgrade"},
		{"its bundle is HTML", served + ".bundle", func([]byte) []byte { return []byte("<html>") }, "bundle_malformed"},
		{"its bundle is that of the state", served + ".bundle", func([]byte) []byte { b, _ := os.ReadFile(state + ".bundle"); return b }, "signature_for_other_artifact"},
		{"a byte of the state", state, func(b []byte) []byte { return bytes.Replace(b, []byte(`"revoked"`), []byte(`"x-evoked"`), 1) }, "signature_for_other_artifact"},
		{"the state's bundle is missing", state + ".bundle", gone, "downgrade"},
	} {
		w.atip(0, "forget", "sha256:"+w.digest) // else "not modified" renews what is here, which still verifies
		back := change(row.path, row.edit)
		out := w.atip(65, "fetch-shim", "--refresh", "sha256:"+w.digest)
		if !strings.Contains(out, row.says) {
			t.Errorf("%s: %s", row.name, out)
		}
		back()
		w.atip(0, "fetch-shim", "--refresh", "sha256:"+w.digest)
	}
	// At rest: a process that can write the user's files still cannot sign.
	back := change(kept, flip)
	if step := w.explained("./dep"); step.MetadataTrust == nil || step.MetadataTrust.Action != "deny" || step.Metadata.Source != "none" {
		t.Errorf("a flipped document is used: %+v %+v", step.MetadataTrust, step.Metadata)
	}
	back()
	back = change(kept+".bundle", gone)
	if step := w.explained("./dep"); step.MetadataTrust == nil || step.MetadataTrust.Action != "deny" {
		t.Errorf("a document without its bundle is used: %+v", step.MetadataTrust)
	}
	back()
	if step := w.explained("./dep"); step.MetadataTrust == nil || step.MetadataTrust.Level != "VERIFIED" {
		t.Errorf("put back: %+v", step.MetadataTrust)
	}
	// Who chose the directory chose the document: a proven signature lifts nothing there.
	planted := filepath.Join(w.home, "planted")
	if out, err := exec.Command("cp", "-r", filepath.Join(w.home, ".local/share/agent-tools"), planted).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if step := w.explainedWith("ATIP_CACHE_DIR="+planted, "./dep"); step.Metadata.Rank != "user" || !strings.Contains(step.Metadata.Source, planted) {
		t.Errorf("ATIP_CACHE_DIR: %+v", step.Metadata)
	}
	// A document counts as long as its registry is configured; the environment brings no signers.
	os.Remove(filepath.Join(w.home, ".config/agent-tools/registries.json"))
	if step := w.explained("./dep"); step.Metadata.Source != "none" {
		t.Errorf("a document of a registry that is gone is used: %+v", step.Metadata)
	}
	if step := w.explainedWith("ATIP_REGISTRIES="+s.URL, "./dep"); step.MetadataTrust == nil || step.MetadataTrust.Level == "VERIFIED" || step.Metadata.Rank != "user" {
		t.Errorf("of the environment: %+v %+v", step.MetadataTrust, step.Metadata)
	}
}

const toolPolicy = `{"version":1,"trust":{"allowedSigners":[{"type":"cosign","key":"keys/release.pub","log":"none"}]}}`

// The signature of a program: proven, corrupted, stripped, and other bytes in its place.
func TestSignedTool(t *testing.T) {
	t.Parallel()
	w := newSigning(t, toolPolicy)
	if step := w.explained("./dep"); step.Trust.Reason != "no_signature" {
		t.Fatalf("unsigned: %+v", step.Trust)
	}
	w.atip(0, "sign", "--key", w.key, "dep")
	w.atip(0, "verify", "--keep", "./dep")
	os.Remove(w.tool + ".bundle")
	step := w.explained("./dep")
	if step.Trust.Evidence == nil || step.Trust.Evidence.Identity == "" || step.Trust.Action != "allow" {
		t.Fatalf("signed: %+v", step.Trust)
	}
	if code, out := w.exec("--", "./dep"); code != 0 || !strings.Contains(out, "deployed") {
		t.Fatalf("%d %s", code, out)
	}
	evidence := filepath.Join(w.home, ".local/share/agent-tools/shims/sha256", w.digest+".tool.bundle")
	good, err := os.ReadFile(evidence)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(name, reason string) {
		t.Helper()
		if code, out := w.exec("--", "./dep"); code != 77 || !strings.Contains(out, reason) || strings.Contains(out, "deployed\n") {
			t.Errorf("%s: %d %s", name, code, out)
		}
	}
	var b map[string]any
	if err := json.Unmarshal(good, &b); err != nil {
		t.Fatal(err)
	}
	sig := b["messageSignature"].(map[string]any)
	text := []byte(sig["signature"].(string))
	if text[30]++; text[30] > 'z' || text[30] == '[' {
		text[30] = 'a'
	}
	sig["signature"] = string(text)
	bad, _ := json.Marshal(b)
	w.put(evidence, string(bad), 0o600)
	refused("a corrupted signature", "signature_invalid")
	os.Remove(evidence)
	refused("a stripped signature", "downgrade")
	w.put(evidence, string(good), 0o600)
	if code, out := w.exec("--", "./dep"); code != 0 {
		t.Errorf("put back: %d %s", code, out)
	}
	w.write("#!/bin/sh\necho other\n")
	refused("other bytes", "changed_since_verified")
}

// A verifier that is missing, killed, slow, of another version or prints garbage never lets
// anything pass that must be signed, and is never taken from PATH.
func TestVerifierThatFails(t *testing.T) {
	t.Parallel()
	w := newSigning(t, `{"version":1,"trust":{"requireSignature":"tool","systemPaths":["/usr","/bin","/lib","/lib64"],"allowedSigners":[{"type":"cosign","key":"keys/release.pub","log":"none"}]}}`)
	w.put(w.tool, "", 0o755)
	raw, err := os.ReadFile(filepath.Join(bin, "probe"))
	if err != nil {
		t.Fatal(err)
	}
	w.write(string(raw))
	w.atip(0, "sign", "--key", w.key, "dep")
	w.atip(0, "verify", "--keep", "./dep")
	copies := filepath.Join(w.home, "bin")
	for _, name := range []string{"atip-exec", "atip"} {
		raw, err := os.ReadFile(filepath.Join(bin, name))
		if err != nil {
			t.Fatal(err)
		}
		w.put(filepath.Join(copies, name), string(raw), 0o755)
	}
	witness := filepath.Join(w.home, "started")
	w.put(filepath.Join(w.home, "path", "atip-verify"), "#!/bin/sh\ntouch "+witness+"\n", 0o755)
	real, err := os.ReadFile(filepath.Join(bin, "atip-verify"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ name, helper, reason string }{
		{"real", string(real), ""},
		{"absent", "", "verifier_missing"},
		{"fails", "#!/bin/sh\nexit 3\n", "verifier_failed"},
		{"killed", "#!/bin/sh\nkill -9 $$\n", "verifier_failed"},
		{"slow", "#!/bin/sh\nexec sleep 30\n", "verifier_failed"},
		{"garbage", "#!/bin/sh\necho VERIFIED\n", "verifier_failed"},
		{"endless", "#!/bin/sh\nexec yes '{}'\n", "verifier_failed"},
		{"another version", "#!/bin/sh\n" + `echo '{"v":1,"id":"1","subject":"tool","level":"VERIFIED","reason":"signature","stage":"verify","action":"allow","cacheable":true,"verifier":"9","settled":{"sigType":1,"bundle":1,"verify":2}}'` + "\n", "verifier_failed"},
		{"contradicts itself", "#!/bin/sh\n" + `echo '{"v":1,"id":"1","subject":"tool","level":"VERIFIED","reason":"signature","stage":"verify","action":"allow","cacheable":true,"verifier":"0.1.0-dev","settled":{}}'` + "\n", "verifier_failed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			helper := filepath.Join(copies, "atip-verify")
			os.Remove(helper)
			if row.helper != "" {
				w.put(helper, row.helper, 0o755)
			}
			os.RemoveAll(filepath.Join(w.home, ".local/state/atip-exec/verdict"))
			cmd := exec.Command(filepath.Join(copies, "atip-exec"), "explain", "-o", "json", "--", "./dep")
			cmd.Dir = w.ws
			cmd.Env = append(w.command().Env[:1:1], "PATH="+filepath.Join(w.home, "path")+":/usr/bin:/bin")
			began := time.Now()
			out, err := cmd.Output()
			took := time.Since(began)
			var d struct{ Steps []stepTrust }
			if err != nil || json.Unmarshal(out, &d) != nil {
				t.Fatalf("%v %s", err, out)
			}
			v := d.Steps[0].Trust
			if row.reason == "" {
				if v.Action == "deny" && v.Reason != "mutable_path" {
					t.Fatalf("the twin: %+v", v)
				}
				return
			}
			if v.Reason != row.reason || v.Action != "deny" || v.Level != "UNVERIFIED" {
				t.Errorf("%+v", v)
			}
			if took > 12*time.Second { // 2.5 s, and what a loaded machine adds
				t.Errorf("it took %v", took)
			}
		})
	}
	if _, err := os.Stat(witness); err == nil {
		t.Error("a program of PATH was started")
	}
}
