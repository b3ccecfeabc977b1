package main_test

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestPackageDatabase: a program under the name from before the merge of /bin into /usr/bin is
// as its package installed it; one byte more, and it does not run. Only root can put a program
// and its package where the database counts, in mounts of the test's own.
func TestPackageDatabase(t *testing.T) {
	t.Parallel()
	w := newSigning(t, `{"version":1,"trust":{"distroTrust":"db","systemPaths":[]}}`)
	step := w.explained("/bin/tar", "--version")
	if v := step.Trust; v.Level != "UNSIGNED" || v.Reason != "distro_db_match" || v.Action != "allow" {
		t.Errorf("tar of this machine: %+v", v)
	}
	if os.Geteuid() != 0 {
		return
	}
	script := `set -e
	mount -t tmpfs none "$1"; mkdir "$1/bin" "$1/bin.work" "$1/info" "$1/info.work"
	mount -t overlay none -o "lowerdir=/usr/bin,upperdir=$1/bin,workdir=$1/bin.work" /usr/bin
	mount -t overlay none -o "lowerdir=/var/lib/dpkg/info,upperdir=$1/info,workdir=$1/info.work" /var/lib/dpkg/info
	printf '#!/bin/sh\necho vendor\n' >/usr/bin/vtool; chmod 755 /usr/bin/vtool
	echo /bin/vtool >/var/lib/dpkg/info/vtool.list
	echo "$(md5sum </usr/bin/vtool | cut -c1-32)  bin/vtool" >/var/lib/dpkg/info/vtool.md5sums
	"$2" explain -o json -- /bin/vtool
	printf '#!/bin/sh\necho vendoR\n' >/usr/bin/vtool
	/bin/vtool >&2
	"$2" -- /bin/vtool >&2 || echo "status $?" >&2`
	cmd := exec.Command("unshare", "--mount", "sh", "-c", script, "sh", t.TempDir(), filepath.Join(bin, "atip-exec"))
	cmd.Dir, cmd.Env = w.ws, append(w.command().Env[:1:1], "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var d struct{ Steps []stepTrust }
	if err != nil || json.Unmarshal(out, &d) != nil || len(d.Steps) == 0 || d.Steps[0].Trust.Reason != "distro_db_match" || d.Steps[0].Trust.Level != "UNSIGNED" {
		t.Errorf("%v: %s %s", err, out, stderr.String())
	}
	if got := stderr.String(); !strings.HasPrefix(got, "vendoR\n") || strings.Count(got, "vendoR") != 1 || !strings.Contains(got, "distro_db_mismatch") || !strings.HasSuffix(got, "status 77\n") {
		t.Errorf("a changed byte: %s", got)
	}
}

// TestVerifiedButLed: a proven signature says nothing about the code that a variable brings.
func TestVerifiedButLed(t *testing.T) {
	t.Parallel()
	w := newSigning(t, `{"version":1,"trust":{"systemPaths":["/usr","/bin","/lib","/lib64"],"allowedSigners":[{"type":"cosign","key":"keys/release.pub","log":"none"}]},"env":{"pass":["NODE_OPTIONS"]}}`)
	raw, err := os.ReadFile(filepath.Join(bin, "probe"))
	if err != nil {
		t.Fatal(err)
	}
	w.tool = filepath.Join(w.home, "opt", "node")
	w.write(string(raw))
	w.atip(0, "sign", "--key", w.key, w.tool)
	w.atip(0, "verify", "--keep", w.tool)
	explained := func(env ...string) stepTrust {
		t.Helper()
		cmd := w.command("explain", "-o", "json", "--", w.tool, "--version")
		cmd.Env = append(cmd.Env, env...)
		out, err := cmd.Output()
		var d struct{ Steps []stepTrust }
		if err != nil || json.Unmarshal(out, &d) != nil || len(d.Steps) == 0 {
			t.Fatalf("%v %s", err, out)
		}
		return d.Steps[0]
	}
	if v := explained().Trust; v.Level != "VERIFIED" {
		t.Errorf("without the variable: %+v", v)
	}
	if v := explained("NODE_OPTIONS=--require=./x.js").Trust; v.Level != "UNVERIFIED" || v.Reason != "loader_environment" {
		t.Errorf("passed: %+v", v)
	}
	w.put(filepath.Join(w.home, ".config/agent-tools/policy.json"), strings.Replace(toolPolicy, `{"version":1,"trust":{`, `{"version":1,"trust":{"systemPaths":["/usr","/bin","/lib","/lib64"],`, 1), 0o600)
	if v := explained("NODE_OPTIONS=--require=./x.js").Trust; v.Level != "VERIFIED" {
		t.Errorf("dropped: %+v", v)
	}
}

// TestStatedChecksum: what a document states of its file's bytes condemns a file that differs, also
// where a rule allows it. A statement alone proves nothing.
func TestStatedChecksum(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, checksum, reason string
		sign                   bool
	}{
		{"none", "", "no_signature", false},
		{"right", "sha256:%x", "no_signature", false},
		{"right, in capitals", "sha256:%X", "no_signature", false},
		{"wrong", "sha256:" + strings.Repeat("ab", 32), "hash_mismatch", false},
		{"wrong, of a signed file", "sha256:" + strings.Repeat("ab", 32), "hash_mismatch", true},
		{"right, of a signed file", "sha256:%x", "signature", true},
		{"right, by SHA-512", "sha512:%x", "no_signature", false},
		{"right, by SHA-512 in capitals", "sha512:%X", "no_signature", false},
		{"wrong, by SHA-512", "sha512:" + strings.Repeat("ab", 64), "hash_mismatch", false},
		{"wrong, by SHA-512, of a signed file", "sha512:" + strings.Repeat("ab", 64), "hash_mismatch", true},
		{"right, by SHA-512, of a signed file", "sha512:%x", "signature", true},
		{"by an unknown algorithm", "crc32:%x", "no_signature", false},
		{"by an unknown algorithm, of a signed file", "crc32:%x", "verifier_failed", true},
	} {
		w := newSigning(t, strings.Replace(toolPolicy, `{"version":1,`, `{"version":1,"rules":[{"id":"go","decision":"allow","grants":["write","execOpaque","destructive"],"when":{"tool":"dep"}}],`, 1))
		raw, err := os.ReadFile(filepath.Join(bin, "probe"))
		if err != nil {
			t.Fatal(err)
		}
		w.tool = filepath.Join(w.home, "opt", "dep")
		w.write(string(raw) + "dep")
		if row.sign {
			w.atip(0, "sign", "--key", w.key, w.tool)
			w.atip(0, "verify", "--keep", w.tool)
		}
		checksum := row.checksum
		if strings.Contains(checksum, "%") {
			sum, err := hex.DecodeString(w.digest)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(checksum, "sha512") {
				long := sha512.Sum512([]byte(string(raw) + "dep"))
				sum = long[:]
			}
			checksum = fmt.Sprintf(checksum, sum)
		}
		if checksum != "" {
			checksum = `,"integrity":{"checksum":"` + checksum + `"}`
		}
		w.put(filepath.Join(w.home, ".local/share/agent-tools/shims/sha256", w.digest+".json"), `{"atip":{"version":"0.6"},"binary":{"hash":"sha256:`+w.digest+`","name":"dep","version":"1"},"description":"Deployments",
			"trust":{"source":"native","verified":true`+checksum+`},"effects":{"network":false}}`, 0o600)
		if v := w.explained(w.tool).Trust; v.Reason != row.reason || (v.Action == "deny") != (row.reason == "hash_mismatch") {
			t.Errorf("%s: %s %s %s, want %s", row.name, v.Level, v.Action, v.Reason, row.reason)
		}
	}
}

// TestSignatureOfInterpreter: the signature of a program that runs what its words say covers none of
// that. Where signatures are required, such a call is refused.
func TestSignatureOfInterpreter(t *testing.T) {
	t.Parallel()
	w := newSigning(t, toolPolicy)
	raw, err := os.ReadFile(filepath.Join(bin, "probe"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node", "npx", "env"} {
		w.tool = filepath.Join(w.home, "opt", name)
		w.write(string(raw) + name) // bytes of its own
		w.atip(0, "sign", "--key", w.key, w.tool)
		w.atip(0, "verify", "--keep", w.tool)
	}
	opt := filepath.Join(w.home, "opt")
	put(t, w.ws, map[string]string{"a.js": "1\n"})
	require := strings.Replace(toolPolicy, `"trust":{`, `"trust":{"requireSignature":"tool",`, 1)
	for _, row := range []struct {
		reason string // of the last step, "" for VERIFIED
		args   []string
	}{
		{"", []string{opt + "/node", "--version"}},
		{"executes_code_argument", []string{opt + "/node", "a.js"}},
		{"executes_code_argument", []string{opt + "/node", "-e", "1"}},
		{"executes_code_argument", []string{opt + "/node", "-"}},
		{"executes_code_argument", []string{opt + "/node", "--require", "./a.js", "--version"}},
		{"indirect_start", []string{opt + "/env", opt + "/node", "--version"}},
		{"fetches_code", []string{opt + "/npx", "-y", "cowsay"}},
	} {
		cmd := w.command(append([]string{"explain", "-o", "json", "--"}, row.args...)...)
		out, _ := cmd.Output()
		var d struct{ Steps []stepTrust }
		if json.Unmarshal(out, &d) != nil || len(d.Steps) == 0 {
			t.Fatalf("%q: %s", row.args, out)
		}
		v := d.Steps[len(d.Steps)-1].Trust
		if got := v.Reason; (v.Level == "VERIFIED") != (row.reason == "") || row.reason != "" && (v.Level != "UNVERIFIED" || got != row.reason) {
			t.Errorf("%q: %s %s", row.args, v.Level, got)
		}
	}
	w.put(filepath.Join(w.home, ".config/agent-tools/policy.json"), require, 0o600)
	if v := w.explained(opt+"/node", "--version").Trust; v.Action != "allow" {
		t.Errorf("required, and it runs nothing: %+v", v)
	}
	if code, out := w.exec("--", opt+"/node", "a.js"); code != 77 || !strings.Contains(out, "executes_code_argument") {
		t.Errorf("required, and it runs a file: %d %s", code, out)
	}
}

// TestRegistryRedirects: a token is sent to the address of the registry and nowhere else.
func TestRegistryRedirects(t *testing.T) {
	t.Parallel()
	w := newSigning(t, "")
	var elsewhere, moved atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { elsewhere.Add(1); http.NotFound(rw, r) }))
	defer other.Close()
	var to func(r *http.Request) string
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/moved") {
			moved.Add(1)
		}
		if at := to(r); at != "" {
			http.Redirect(rw, r, at, http.StatusFound)
			return
		}
		http.NotFound(rw, r)
	}))
	defer s.Close()
	fetch := func(auth string) (int, string) {
		t.Helper()
		w.put(filepath.Join(w.home, ".config/agent-tools/registries.json"), `{"registries":[{"name":"Acme","url":"`+s.URL+`"`+auth+`}]}`, 0o600)
		cmd := exec.Command(filepath.Join(bin, "atip"), "fetch-shim", "--refresh", "sha256:"+w.digest)
		cmd.Dir, cmd.Env = w.ws, append(w.command().Env, "ACME_ATIP_TOKEN=synthetic-"+"token")
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	once := func(r *http.Request) string {
		if strings.HasPrefix(r.URL.Path, "/moved") {
			return ""
		}
		return "/moved" + r.URL.Path
	}
	to = once
	if code, out := fetch(`,"auth":{"type":"bearer","tokenEnvVar":"ACME_ATIP_TOKEN"}`); code == 0 || moved.Load() != 0 || !strings.Contains(out, "not followed with a token") {
		t.Errorf("with a token: status %d, %d more requests: %s", code, moved.Load(), out)
	}
	if fetch(""); moved.Load() == 0 {
		t.Error("without one a redirect within the registry is not followed: the rows prove nothing")
	}
	to = func(r *http.Request) string { return other.URL + r.URL.Path }
	if code, out := fetch(""); code == 0 || elsewhere.Load() != 0 || !strings.Contains(out, "another host") {
		t.Errorf("another host: status %d, %d requests: %s", code, elsewhere.Load(), out)
	}
	to = func(r *http.Request) string { return "http://example.com" + r.URL.Path }
	if code, out := fetch(""); code == 0 || !strings.Contains(out, "another host") {
		t.Errorf("http elsewhere: status %d: %s", code, out)
	}
	moved.Store(0)
	to = func(r *http.Request) string { return "/moved" + r.URL.Path }
	if code, out := fetch(""); code == 0 || !strings.Contains(out, "too often") || moved.Load() > 3 {
		t.Errorf("a fourth hop: status %d, %d hops: %s", code, moved.Load(), out)
	}
}

// TestReasonsOfRuns: what is decided about a run rather than about evidence, each by what makes it
// so, with its level and its action (trust/sigstore's TestEveryRow holds the list against the table).
func TestReasonsOfRuns(t *testing.T) {
	t.Parallel()
	const signers = `"allowedSigners":[{"type":"cosign","key":"keys/release.pub","log":"none","vouchesFor":["binary","metadata"]}]`
	policy := func(w signing, trust string) {
		w.put(filepath.Join(w.home, ".config/agent-tools/policy.json"), `{"version":1,"trust":{`+trust+`}}`, 0o600)
	}
	for _, row := range []struct {
		reason, level, action string
		make                  func(w *signing) (word string)
	}{
		{"no_signature", "UNSIGNED", "confirm", func(*signing) string { return "./dep" }},
		{"revoked", "COMPROMISED", "deny", func(w *signing) string {
			policy(*w, `"pins":{"dep":["sha256:`+w.digest+`"]},"revoked":{"sha256":["`+strings.ToUpper(w.digest)+`"]}`)
			return "./dep"
		}},
		{"pinned", "UNSIGNED", "allow", func(w *signing) string {
			policy(*w, `"pins":{"dep":["sha256:`+w.digest+`"]}`)
			return "./dep"
		}},
		{"hash_mismatch", "COMPROMISED", "deny", func(w *signing) string {
			policy(*w, `"pins":{"dep":["sha256:`+strings.Repeat("ab", 32)+`"]}`)
			return "./dep"
		}},
		{"known_digest", "UNSIGNED", "allow", func(w *signing) string {
			policy(*w, signers)
			doc := filepath.Join(w.home, ".local/share/agent-tools/shims/sha256", w.digest+".json")
			text := `{"atip":{"version":"0.6"},"binary":{"hash":"sha256:` + w.digest + `","name":"dep","version":"1"},"description":"Deployments","effects":{"network":false}}`
			w.put(doc, text, 0o600)
			w.put(filepath.Join(w.ws, "doc"), text, 0o600)
			w.atip(0, "sign", "--key", w.key, "doc")
			raw, err := os.ReadFile(filepath.Join(w.ws, "doc.bundle"))
			if err != nil {
				w.t.Fatal(err)
			}
			w.put(doc+".bundle", string(raw), 0o600)
			return "./dep"
		}},
		{"system_path", "UNSIGNED", "allow", func(*signing) string { return "/usr/bin/env" }},
		{"unreadable", "UNSIGNED", "confirm", func(w *signing) string {
			raw, err := os.ReadFile(filepath.Join(bin, "probe"))
			if err != nil {
				w.t.Fatal(err)
			}
			w.put(w.tool, string(raw), 0o755)
			if err := os.Chmod(w.tool, 0o111); err != nil {
				w.t.Fatal(err)
			}
			return "./dep"
		}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			w := newSigning(t, "")
			word := row.make(&w)
			cmd := w.command("explain", "-o", "json", "--", word)
			if row.reason == "unreadable" && os.Geteuid() == 0 {
				// Root reads everything.
				for _, dir := range []string{w.home, w.ws} {
					if out, err := exec.Command("chown", "-R", fmt.Sprint(nobodyID), dir).CombinedOutput(); err != nil {
						t.Fatalf("%v %s", err, out)
					}
				}
				for dir := w.ws; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
					if err := os.Chmod(dir, 0o755); err != nil {
						t.Fatal(err)
					}
				}
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
			}
			out, err := cmd.Output()
			var d struct{ Steps []stepTrust }
			if err != nil || json.Unmarshal(out, &d) != nil || len(d.Steps) == 0 || d.Steps[0].Trust == nil {
				t.Fatalf("%v %s", err, out)
			}
			if v := d.Steps[0].Trust; v.Reason != row.reason || v.Level != row.level || v.Action != row.action {
				t.Errorf("%+v", v)
			}
			if code, said := w.exec("--", word); row.action == "deny" && (code != 77 || !strings.Contains(said, row.reason) || strings.Contains(said, "deployed\n")) {
				t.Errorf("status %d: %s", code, said)
			}
		})
	}
}

// TestFullDisk: where nothing can be stored the evidence is looked at each time, with the same
// answer, and a bundle or a root is written whole or not at all.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	w := newSigning(t, toolPolicy)
	// A program without an interpreter: in the user namespace of a normal user none is root's.
	program, err := os.ReadFile(filepath.Join(bin, "probe"))
	if err != nil {
		t.Fatal(err)
	}
	w.write(string(program))
	w.atip(0, "sign", "--key", w.key, "dep")
	w.atip(0, "verify", "--keep", "./dep")
	os.Remove(w.tool + ".bundle")
	want := w.explained("./dep").Trust
	if want.Evidence == nil || want.Action != "allow" {
		t.Fatalf("the twin: %+v", want)
	}
	script := `set -e
	mkdir -p "$HOME/.local/state" full
	for dir in "$HOME/.local/state" full; do
		mount -t tmpfs -o size=16k,mode=0700 none "$dir"
		cat /dev/zero >"$dir/fill" 2>/dev/null || true
	done
	"$1/atip-exec" explain -o json -- ./dep
	"$1/atip" sign --key release --bundle full/dep.bundle dep >&2 || echo "status $?" >&2
	ls -A full >&2`
	flags := []string{"--mount"}
	if os.Geteuid() != 0 {
		flags = append(flags, "--user", "--map-root-user")
	}
	cmd := exec.Command("unshare", append(flags, "sh", "-c", script, "sh", bin)...)
	cmd.Dir, cmd.Env = w.ws, w.command().Env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var d struct{ Steps []stepTrust }
	if err != nil || json.Unmarshal(out, &d) != nil || len(d.Steps) == 0 {
		t.Fatalf("%v: %s %s", err, out, stderr.String())
	}
	if v := d.Steps[0].Trust; v.Evidence == nil || v.Evidence.Signer != want.Evidence.Signer || v.Level != want.Level || v.Reason != want.Reason || v.Action != want.Action {
		t.Errorf("%+v, want %+v: %s", v, want, stderr.String())
	}
	if got := stderr.String(); !strings.Contains(got, "no space left on device") || !strings.HasSuffix(got, "fill\n") || strings.Contains(got, "dep.bundle\nfill") || !strings.Contains(got, "\nstatus ") {
		t.Errorf("%s", got)
	}
}
