package main_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/require"
)

// internet stands for everything beyond this machine: a proxy that a policy names as the
// machine's own, behind which every name leads to one server.
type internet struct {
	address string
	plain   *httptest.Server
	secure  *httptest.Server
}

func newInternet(t *testing.T) *internet {
	t.Helper()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		fmt.Fprintln(w, "hello from "+r.Host)
	})
	n := &internet{plain: httptest.NewServer(answer), secure: httptest.NewTLSServer(answer)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.address = l.Addr().String()
	t.Cleanup(func() { l.Close(); n.plain.Close(); n.secure.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go n.serve(c)
		}
	}()
	return n
}

func (n *internet) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	to := n.plain.Listener.Addr().String()
	if r.Method == http.MethodConnect {
		if strings.HasSuffix(r.Host, ":443") {
			to = n.secure.Listener.Addr().String()
		}
	}
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer up.Close()
	if r.Method == http.MethodConnect {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	} else if err := r.Write(up); err != nil {
		return
	}
	go func() { _, _ = io.Copy(up, in) }()
	_, _ = io.Copy(c, up)
}

// netStatus is what a status file says about the network.
type netStatus struct {
	Sandbox struct {
		Tier, Why string
		Gaps      []struct{ Guarantee, Why string }
		Net       struct {
			Mode             string
			Hosts, Unbounded []string
			Requests, Denied int
			Log              []struct{ Via, Host, Decision, Reason string }
		}
	}
}

// networked runs a command under a user's policy and returns its output and status.
func (w world) networked(policy string, args ...string) (string, int, netStatus) {
	w.t.Helper()
	config := filepath.Join(w.home, ".config", "agent-tools")
	if err := os.MkdirAll(config, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "policy.json"), []byte(policy), 0o600); err != nil {
		w.t.Fatal(err)
	}
	file := filepath.Join(w.home, "status.json")
	cmd := w.command(append([]string{"--status-file", file, "--"}, args...)...)
	out := run(w.t, cmd)
	var s netStatus
	if data, err := os.ReadFile(file); err != nil || json.Unmarshal(data, &s) != nil {
		w.t.Fatalf("status %q: %v\n%s", data, err, out)
	}
	return out, cmd.ProcessState.ExitCode(), s
}

// needTier skips where this machine has no private network, unless it is required.
func needTier3(t *testing.T) {
	t.Helper()
	w := newWorld(t)
	if _, code, _ := w.networked(`{"version":1,"sandbox":{"tier":"T3"}}`, "true"); code == 0 {
		return
	}
	require.Feature(t, "userns", errors.New("T3 does not start"))
}

// TestListedHosts: a command that was granted a host reaches it, and no other.
func TestListedHosts(t *testing.T) {
	needTier3(t)
	n := newInternet(t)
	w := newWorld(t)
	policy := `{"version":1,"switches":{"url_fetch":true},"network":{"allow":["also.example:80"],"deny":["no.example"],"upstream":"http://` + n.address + `"}}`
	for _, tc := range []struct {
		args   []string
		want   string // in the output
		code   int
		denied string // host and reason
	}{
		{[]string{"curl", "-sS", "http://api.example/"}, "hello from api.example", 0, ""},
		{[]string{"curl", "-sS", "http://API.example:80/"}, "hello from api.example", 0, ""},
		{[]string{"curl", "-sSk", "https://api.example/"}, "hello from api.example", 0, ""},
		{[]string{"wget", "-q", "-O-", "http://api.example/"}, "hello from api.example", 0, ""},
		{[]string{"curl", "-sSL", "http://api.example/?to=http://evil.example/"}, "evil.example:80: it is not on the list of hosts of this run [E4113]", 0, "evil.example not-listed"},
		{[]string{"curl", "-sSL", "http://api.example/?to=http://no.example/"}, "no.example:80: the policy denies it (network.deny) [E4113]", 0, "no.example denied"},
		{[]string{"curl", "-sS", "http://also.example/"}, "hello from also.example", 0, ""},
	} {
		if tc.args[0] == "wget" {
			if _, err := exec.LookPath("wget"); err != nil {
				continue
			}
		}
		began := time.Now()
		out, code, s := w.networked(policy, tc.args...)
		net := s.Sandbox.Net
		if !strings.Contains(out, tc.want) || code != tc.code || s.Sandbox.Tier != "T3" || net.Mode != "allowlist" || !strings.Contains(s.Sandbox.Why, "net") {
			t.Errorf("%v: exit %d, %+v\n%s", tc.args, code, s.Sandbox, out)
		}
		denied := ""
		for _, e := range net.Log {
			if e.Decision == "deny" {
				denied = e.Host + " " + e.Reason
			}
		}
		if denied != tc.denied || net.Requests != len(net.Log) || net.Requests == 0 || (net.Denied > 0) != (tc.denied != "") || strings.Contains(out, "E4113") != (tc.denied != "") {
			t.Errorf("%v: %+v\n%s", tc.args, net, out)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%v took %v", tc.args, took)
		}
	}
	// The audit has it too.
	records, err := filepath.Glob(filepath.Join(w.home, ".local/state/atip-exec/audit/*.jsonl"))
	if err != nil || len(records) == 0 {
		t.Fatalf("no audit: %v", err)
	}
	data, err := os.ReadFile(records[0])
	if err != nil || !strings.Contains(string(data), `"host":"evil.example","port":80,"decision":"deny","reason":"not-listed"`) {
		t.Errorf("%v %s", err, data)
	}
}

// TestHostListWithoutNamespaces: where hosts cannot be told apart, a known tool has the
// whole network and the receipt a gap; a policy that requires the guarantee is not run.
func TestHostListWithoutNamespaces(t *testing.T) {
	n := newInternet(t)
	w := newWorld(t)
	for _, tc := range []struct {
		sandbox string
		code    int
		mode    string
	}{
		{`"tier":"T2"`, 7, "full"}, // there is no api.example without the upstream proxy
		{`"tier":"T2","require":["net"]`, 69, ""},
	} {
		out, code, s := w.networked(`{"version":1,"switches":{"url_fetch":true},"network":{"upstream":"http://`+n.address+`"},"sandbox":{`+tc.sandbox+`}}`, "curl", "-sS", "http://127.0.0.1.nip.invalid:1/")
		if tc.mode == "" {
			if code != 69 || !strings.Contains(out, "E4101") || !strings.Contains(out, "net") {
				t.Errorf("%s: exit %d\n%s", tc.sandbox, code, out)
			}
			continue
		}
		gap := slices.ContainsFunc(s.Sandbox.Gaps, func(g struct{ Guarantee, Why string }) bool {
			return g.Guarantee == "net" && strings.Contains(g.Why, "in place of a list of hosts")
		})
		if code == 0 || code == 69 || s.Sandbox.Net.Mode != tc.mode || !gap || !slices.Equal(s.Sandbox.Net.Unbounded, []string{"127.0.0.1.nip.invalid:1"}) {
			t.Errorf("%s: exit %d, %+v\n%s", tc.sandbox, code, s.Sandbox, out)
		}
	}
}

// TestHostsOfAService: a tool whose metadata lists its hosts reaches those, where it would
// have the whole network.
func TestHostsOfAService(t *testing.T) {
	needTier3(t)
	w := newWorld(t)
	program, err := exec.LookPath("base64")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(w.home, ".config", "agent-tools", "overrides", "sha256")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for list, want := range map[string]string{
		``: "network full",
		`,"x-atip-hosts":["api.example","*.cdn.example:8443"]`: "may reach  api.example:443",
		`,"x-atip-hosts":["no host"]`:                          "may reach  none.invalid:443",
	} {
		doc := `{"atip":"0.6","name":"base64","version":"1","description":"Stands for a client","trust":{"source":"org"},"effects":{"filesystem":{"read":false,"write":false,"delete":false},"network":true,"subprocess":false,"idempotent":true,"destructive":false,"reversible":true,"cost":{"billable":false}},"x-atip-effects":{"v":1,"base":{"network":true,"remoteMutation":false}}` + list + `}`
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%x.json", sha256.Sum256(data))), []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		out := run(t, w.command("explain", "-o", "text", "--", "base64"))
		if !strings.Contains(out, want) || strings.Contains(out, "network allowlist") != (list != "") {
			t.Errorf("%s:\n%s", list, out)
		}
	}
}

// TestHostThatIsNotKnown: a host that only running the command tells cannot be on a list.
// Asking for it is not an error, and the plan says what a yes would mean.
func TestHostThatIsNotKnown(t *testing.T) {
	w := newWorld(t)
	out := run(t, w.command("explain", "-o", "text", "-c", `curl -sS "$(cat url)"`))
	if !strings.Contains(out, "CONFIRM") || !strings.Contains(out, "network full") || !strings.Contains(out, "not known before the command runs") {
		t.Error(out)
	}
}

// TestNamesThatLeadInside: names that resolve to addresses of this machine, of its network
// and of a cloud's metadata service are not connected to, unless the policy names the range.
// It has an /etc/hosts of its own, for which a user needs to be root of a namespace.
func TestNamesThatLeadInside(t *testing.T) {
	mounting := []string{"unshare", "--mount"}
	if os.Getuid() != 0 {
		mounting = []string{"unshare", "--map-root-user", "--mount"}
	}
	needTier3(t)
	n := newInternet(t)
	_, port, _ := net.SplitHostPort(n.plain.Listener.Addr().String())
	w := newWorld(t)
	hosts := filepath.Join(w.home, "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n127.0.0.1 here.example\n169.254.169.254 metadata.example\n10.0.0.1 inside.example\n::ffff:127.0.0.1 mapped.example\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// In the namespace of a user its owner cannot be seen, so the file is pinned.
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(curl)
	if err != nil {
		t.Fatal(err)
	}
	pin := fmt.Sprintf(`"trust":{"pins":{%q:["sha256:%x"]}},`, curl, sha256.Sum256(program))
	run := func(private, url string) (string, netStatus) {
		w.networked(`{"version":1,`+pin+`"switches":{"url_fetch":true},"network":{`+private+`}}`, "true")
		file := filepath.Join(w.home, "status.json")
		cmd := w.command("--status-file", file, "--", "curl", "-sS", url)
		cmd.Args = append(append(slices.Clone(mounting), "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, hosts), cmd.Args...)
		var err error
		if cmd.Path, err = exec.LookPath("unshare"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		out, _ := cmd.CombinedOutput()
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s took %v", url, took)
		}
		var s netStatus
		if data, err := os.ReadFile(file); err != nil || json.Unmarshal(data, &s) != nil {
			t.Fatalf("%v %s", err, data)
		}
		return string(out), s
	}
	for _, name := range []string{"here", "metadata", "inside", "mapped"} {
		out, s := run("", "http://"+name+".example:"+port+"/")
		if log := s.Sandbox.Net.Log; len(log) != 1 || log[0].Reason != "rebinding" || !strings.Contains(out, "E4113") {
			t.Errorf("%s: %+v\n%s", name, s.Sandbox, out)
		}
	}
	out, s := run(`"private":["127.0.0.0/8"]`, "http://here.example:"+port+"/")
	if !strings.Contains(out, "hello from here.example") || s.Sandbox.Net.Denied != 0 {
		t.Errorf("permitted: %+v\n%s", s.Sandbox, out)
	}
	if out, s := run(`"private":["169.254.0.0/16"]`, "http://metadata.example/"); len(s.Sandbox.Net.Log) != 1 || s.Sandbox.Net.Log[0].Reason != "rebinding" {
		t.Errorf("a range around the metadata address: %+v\n%s", s.Sandbox, out)
	}
}

// TestLoopbackServiceIsForwarded: with the switch for services of this machine one of them
// is there, at its port, although the run has a loopback of its own.
func TestLoopbackServiceIsForwarded(t *testing.T) {
	needTier3(t)
	n := newInternet(t)
	_, port, _ := net.SplitHostPort(n.plain.Listener.Addr().String())
	_, other, _ := net.SplitHostPort(n.secure.Listener.Addr().String())
	w := newWorld(t)
	policy := `{"version":1,"switches":{"loopback":true}}`
	for _, host := range []string{"localhost", "127.0.0.1"} {
		out, code, s := w.networked(policy, "curl", "-sS", "http://"+host+":"+port+"/", "-o", "got", "-w", "%{http_code}")
		if code != 0 || !strings.Contains(out, "200") || len(s.Sandbox.Net.Log) != 1 || s.Sandbox.Net.Log[0].Via != "forward" {
			t.Errorf("%s: exit %d %+v\n%s", host, code, s.Sandbox, out)
		}
	}
	// Docker's port is not among them, and where a service sends its client is not either.
	if out, code, _ := w.networked(policy, "curl", "-sS", "http://localhost:2375/"); code != 77 {
		t.Errorf("port 2375: exit %d\n%s", code, out)
	}
	if out, code, _ := w.networked(policy, "curl", "-sSL", "http://localhost:"+port+"/?to=http://localhost:"+other+"/"); code != 7 {
		t.Errorf("another port: exit %d\n%s", code, out)
	}
}

// TestCodeOfTheWorkspaceHasItsOwnLoopback: at T3 tests find their own servers, and none of
// the machine.
func TestCodeOfTheWorkspaceHasItsOwnLoopback(t *testing.T) {
	needTier3(t)
	n := newInternet(t)
	w := newWorld(t)
	script := `import http.client, socket, sys
s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); print("own server")
try: socket.create_connection(sys.argv[1].split(":"), 5); print("the machine's")
except OSError as e: print("refused", e.errno)
`
	if err := os.WriteFile(filepath.Join(w.ws, "t.py"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	address := n.plain.Listener.Addr().String()
	out, code, s := w.networked(`{"version":1,"sandbox":{"tier":"T3"}}`, "python3", "t.py", address)
	if code != 0 || !strings.Contains(out, "own server\nrefused 111") || s.Sandbox.Net.Mode != "loopback" {
		t.Errorf("exit %d %+v\n%s", code, s.Sandbox, out)
	}
	control := exec.Command("python3", filepath.Join(w.ws, "t.py"), address)
	if out := run(t, control); !strings.Contains(out, "the machine's") {
		t.Errorf("without the wrapper: %s", out)
	}
}
