package main_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
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
		cmd := w.command("explain", "-o", "json", "--", w.tool)
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
