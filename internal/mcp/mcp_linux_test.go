package mcp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atip-dev/atip-exec/internal/built"
	"github.com/atip-dev/atip-exec/internal/procstat"
	"github.com/atip-dev/atip-exec/internal/require"
)

// bin is the directory of the real programs that every test drives.
var bin string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "atip-mcp-bin-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if bin, err = built.Programs(dir, "atip-exec", "atip"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

const functions = `# @instructions Tools of the project
# @desc Show words
# @arg 1:first string A word
show(first, second = "d", ...rest) { printf '<%s>\n' "$@"; }
# @desc Show words by Python
# @shell python3
pyshow(first) {
    import sys
    print("<%s>" % first)
}
# @desc Show words by Node
# @shell node
jsshow(first) {
    console.log("<" + first + ">");
}
# @desc Show words by Ruby
# @shell ruby
rbshow(first) {
    puts "<#{first}>"
}
# @desc An object
object() { echo '{"a": [1, 2]}'; echo noise >&2; }
# @desc A list
list() { echo '[1, 2]'; }
# @desc Fails
fails() { echo before; exit 3; }
# @desc Writes
# @safe
safe() { echo x >written; }
# @desc Writes for real
unsafe() { echo x >written; }
# @desc Never ends
endless() { yes; }
# @desc Waits
waits() { sleep 4711; }
# @desc Not offered
owns(timeout) { :; }
hidden() { :; }
`

// world is a home and a workspace of its own.
type world struct {
	t        testing.TB
	home, ws string
}

func newWorld(t testing.TB) world {
	t.Helper()
	dir := t.TempDir()
	w := world{t, filepath.Join(dir, "home"), filepath.Join(dir, "ws")}
	for _, d := range []string{w.home, w.ws} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", w.ws).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(w.ws, "Runfile"), []byte(functions), 0o644); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "atip"), args...)
	cmd.Dir = w.ws
	// A server built with the race detector ends at its first report, and its client is not answered.
	cmd.Env = []string{"HOME=" + w.home, "PATH=/usr/local/bin:/usr/bin:/bin:" + bin, "GORACE=halt_on_error=1"}
	return cmd
}

// revisions are all that the protocol has had.
var revisions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// connect starts a server on stdio and a client that answers every elicitation with yes.
func (w world) connect(revision string, asked *atomic.Int32, args ...string) *mcp.ClientSession {
	w.t.Helper()
	return w.over(&mcp.CommandTransport{Command: w.command(args...), TerminateDuration: 10 * time.Second}, revision, asked)
}

func (w world) over(transport mcp.Transport, revision string, asked *atomic.Int32) *mcp.ClientSession {
	w.t.Helper()
	options := &mcp.ClientOptions{}
	if asked != nil {
		options.ElicitationHandler = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked.Add(1)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	session, err := client.Connect(context.Background(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		w.t.Fatalf("%s: %v", revision, err)
	}
	w.t.Cleanup(func() { session.Close() })
	return session
}

func call(t testing.TB, s *mcp.ClientSession, name string, arguments any) *mcp.CallToolResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

func said(r *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			b.WriteString(text.Text + "\n")
		}
	}
	return b.String()
}

func structured(r *mcp.CallToolResult) object {
	o, _ := r.StructuredContent.(object)
	return o
}

func TestEveryRevision(t *testing.T) {
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			w := newWorld(t)
			var asked atomic.Int32
			s := w.connect(revision, &asked, "mcp", "--runfile", "--tools", "git")
			tools := map[string]*mcp.Tool{}
			for tool, err := range s.Tools(context.Background(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				tools[tool.Name] = tool
			}
			for _, name := range []string{"exec", "explain", "prime", "git_status", "show", "safe"} {
				if tools[name] == nil {
					t.Errorf("there is no tool %s", name)
				}
			}
			if tools["owns"] != nil || tools["hidden"] != nil {
				t.Error("a function is offered that must not be")
			}
			if a := tools["git_status"].Annotations; a == nil || !a.ReadOnlyHint {
				t.Errorf("git status: %+v", a)
			}
			if a := tools["safe"].Annotations; !a.ReadOnlyHint || *a.OpenWorldHint {
				t.Errorf("safe: %+v", a)
			}
			if a := tools["exec"].Annotations; a.ReadOnlyHint || !*a.DestructiveHint || !*a.OpenWorldHint {
				t.Errorf("exec: %+v", a)
			}
			r := call(t, s, "exec", object{"argv": []string{"sh", "-c", "cat; echo err >&2"}, "stdin": "in"})
			if o := structured(r); r.IsError || o["stdout"] != "in" || o["exit_code"] != 0.0 || o["stderr"] != nil || o["decision"] != "allow" || !strings.Contains(said(r), "err") {
				t.Errorf("%+v %s", o, said(r))
			}
			if r = call(t, s, "exec", object{"command": "exit 9"}); !r.IsError || structured(r)["exit_code"] != 9.0 {
				t.Errorf("%s", said(r))
			}
			if r = call(t, s, "git_status", object{}); r.IsError || len(said(r)) < 10 {
				t.Errorf("%s", said(r))
			}
			if r = call(t, s, "explain", object{"argv": []string{"git", "push", "--force"}}); structured(r)["decision"] != "confirm" {
				t.Errorf("%s", said(r))
			}
			// A client that says yes to everything gets no further than one that cannot be asked.
			r = call(t, s, "exec", object{"argv": []string{"git", "push", "--force"}})
			if !r.IsError || !strings.Contains(said(r), `"E2010"`) || strings.Contains(said(r), "atip approve") {
				t.Errorf("%s", said(r))
			}
			if asked.Load() != 1 {
				t.Errorf("the client was told %d times, not once", asked.Load())
			}
			if r = call(t, s, "exec", object{"argv": []string{"rm", "-rf", "/"}}); !strings.Contains(said(r), `"E2`) {
				t.Errorf("%s", said(r))
			}
			if _, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: "nothing"}); err == nil || !strings.Contains(err.Error(), "nothing") {
				t.Errorf("an unknown tool: %v", err)
			}
		})
	}
}

func TestArgumentsStayWords(t *testing.T) {
	w := newWorld(t)
	s := w.connect("", nil, "run", "--serve-mcp")
	for name, program := range map[string]string{"show": "bash", "pyshow": "python3", "jsshow": "node", "rbshow": "ruby"} {
		t.Run(program, func(t *testing.T) {
			_, err := exec.LookPath(program)
			require.Feature(t, program, err)
			for _, word := range []string{"$(touch hacked)", "`touch hacked`", `a"b'c`, "x\ny", "; touch hacked", "--flag", ""} {
				r := call(t, s, name, object{"first": word})
				if want := "<" + word + ">\n"; !strings.HasPrefix(said(r), want) {
					t.Errorf("%q: %s", word, said(r))
				}
			}
		})
	}
	if _, err := os.Stat(filepath.Join(w.ws, "hacked")); err == nil {
		t.Error("a word ran")
	}
	if r := call(t, s, "show", object{"first": "a", "rest": []string{"p q"}}); said(r) != "<a>\n<d>\n<p q>\n\n" {
		t.Errorf("%q", said(r))
	}
}

func TestFunctions(t *testing.T) {
	w := newWorld(t)
	s := w.connect("", nil, "run", "--serve-mcp")
	if r := call(t, s, "object", object{}); r.IsError || fmt.Sprint(structured(r)) != "map[a:[1 2]]" || !strings.Contains(said(r), "noise") {
		t.Errorf("%v %s", r.StructuredContent, said(r))
	}
	if r := call(t, s, "list", object{}); fmt.Sprint(structured(r)) != "map[result:[1 2]]" {
		t.Errorf("%v", r.StructuredContent)
	}
	if r := call(t, s, "fails", object{}); !r.IsError || !strings.Contains(said(r), "before") || !strings.Contains(said(r), "exit status 3") {
		t.Errorf("%s", said(r))
	}
	if r := call(t, s, "safe", object{}); !r.IsError {
		t.Errorf("%s", said(r))
	}
	if _, err := os.Stat(filepath.Join(w.ws, "written")); err == nil {
		t.Error("@safe wrote")
	}
	if r := call(t, s, "unsafe", object{}); r.IsError {
		t.Errorf("%s", said(r))
	}
	if _, err := os.Stat(filepath.Join(w.ws, "written")); err != nil {
		t.Error("the control did not write")
	}
	for name, arguments := range map[string]object{"show": {}, "pyshow": {"first": 5}, "jsshow": {"other": "x"}} {
		if r := call(t, s, name, arguments); !r.IsError || !regexp.MustCompile(`"E120[12]"`).MatchString(said(r)) {
			t.Errorf("%s: %s", name, said(r))
		}
	}
	if r := call(t, s, "waits", object{"timeout": "300ms"}); !r.IsError || !strings.Contains(said(r), `"E4001"`) {
		t.Errorf("%s", said(r))
	}
	if r := call(t, s, "endless", object{"timeout": "1s"}); !r.IsError || len(said(r)) > 150_000 || !strings.Contains(said(r), "bytes omitted") {
		t.Errorf("%d bytes", len(said(r)))
	}
}

func TestBadArguments(t *testing.T) {
	w := newWorld(t)
	s := w.connect("", nil, "mcp")
	for _, arguments := range []any{object{}, object{"argv": []string{"a"}, "command": "b"}, object{"argv": "ls"}, object{"argv": []string{}}, object{"argv": []string{"ls"}, "env": object{}},
		object{"argv": []string{"ls"}, "timeout": "soon"}, object{"argv": []string{"l\x00s"}}, object{"command": "x\x00"}, object{"argv": []any{1}}} {
		if r := call(t, s, "exec", arguments); !r.IsError || !strings.Contains(said(r), `"E1401"`) {
			t.Errorf("%v: %s", arguments, said(r))
		}
	}
}

func TestPrime(t *testing.T) {
	w := newWorld(t)
	s := w.connect("", nil, "mcp", "--prime", "enforce")
	echo := object{"argv": []string{"echo", "hi"}, "session_id": "s1"}
	if r := call(t, s, "exec", echo); !r.IsError || !strings.Contains(said(r), `"E3202"`) {
		t.Errorf("%s", said(r))
	}
	r := call(t, s, "prime", object{"agentId": "a", "sessionId": "s1"})
	if o := structured(r); r.IsError || o["version"] == nil || o["session"].(object)["sessionId"] != "s1" {
		t.Errorf("%s", said(r))
	}
	if r := call(t, s, "exec", echo); r.IsError {
		t.Errorf("%s", said(r))
	}
	if r := call(t, s, "exec", object{"argv": []string{"echo"}, "session_id": "s2"}); !r.IsError {
		t.Error("another session counts as primed")
	}
	if r := call(t, s, "exec", object{"argv": []string{"echo"}}); r.IsError {
		t.Errorf("the session that was primed last is not the default: %s", said(r))
	}
	for _, bad := range []object{{"agentId": "a"}, {"agentId": "a", "sessionId": "s", "extra": 1}, {"agentId": "a", "sessionId": "s", "userRole": "root"}} {
		if r := call(t, s, "prime", bad); !r.IsError || !strings.Contains(said(r), `"E1301"`) {
			t.Errorf("%v: %s", bad, said(r))
		}
	}
	auto := w.connect("", nil, "mcp")
	if r := call(t, auto, "exec", object{"argv": []string{"true"}}); r.Meta["atip-exec/prime"] == nil {
		t.Errorf("%+v", r.Meta)
	}
	if r := call(t, auto, "exec", object{"argv": []string{"true"}}); r.Meta["atip-exec/prime"] != nil {
		t.Error("primed twice")
	}
	off := w.connect("", nil, "mcp", "--prime", "off")
	if r := call(t, off, "exec", object{"argv": []string{"true"}}); r.IsError || r.Meta["atip-exec/prime"] != nil {
		t.Errorf("%+v", r)
	}
}

// lasts is a duration that no other suite on this machine sleeps for.
func lasts(seconds int) string { return fmt.Sprintf("%d.%d", seconds, os.Getpid()) }

// alive counts the processes with a word of their own on their command line.
func alive(word string) int {
	n := 0
	for _, line := range procstat.Lines() {
		if strings.Contains("\x00"+line, "\x00"+word+"\x00") {
			n++
		}
	}
	return n
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("not within a minute: %s", what)
}

// TestCancelLeavesNothing ends calls in three ways: by the client's cancellation, by the
// client's end, and by the end of the server.
func TestCancelLeavesNothing(t *testing.T) {
	start := func(s *mcp.ClientSession, ctx context.Context, seconds string) {
		go func() {
			_, _ = s.CallTool(ctx, &mcp.CallToolParams{Name: "exec", Arguments: object{"command": "sh -c 'sleep " + seconds + " & sleep " + seconds + "'; :"}})
		}()
		until(t, "sleep "+seconds+" runs", func() bool { return alive(seconds) >= 2 })
	}
	w := newWorld(t)
	s := w.connect("", nil, "mcp")
	ctx, cancel := context.WithCancel(context.Background())
	start(s, ctx, lasts(5101))
	cancel()
	until(t, "a cancelled call ends", func() bool { return alive(lasts(5101)) == 0 })

	raw := func(seconds string) (*exec.Cmd, io.Closer) {
		cmd := w.command("mcp")
		in, _ := cmd.StdinPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"+
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+
			`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":{"command":"sh -c 'sleep `+seconds+` & sleep `+seconds+`'; :"}}}`+"\n")
		until(t, "sleep "+seconds+" runs", func() bool { return alive(seconds) >= 2 })
		return cmd, in
	}
	cmd, in := raw(lasts(5102))
	in.Close()
	until(t, "calls end with the client", func() bool { return alive(lasts(5102)) == 0 })
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	cmd, _ = raw(lasts(5103))
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	until(t, "calls end with the server", func() bool { return alive(lasts(5103)) == 0 })
}

// TestStdoutIsProtocolOnly sends raw lines, good and bad, and reads every line as JSON-RPC.
func TestStdoutIsProtocolOnly(t *testing.T) {
	w := newWorld(t)
	cmd := w.command("mcp", "--runfile", "-vv")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	init := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	go func() {
		io.WriteString(in, init+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
		io.WriteString(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":{"command":"echo out; echo err >&2; cat /nothing"}}}`+"\n")
		io.WriteString(in, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"nothing"}}`+"\n")
		io.WriteString(in, `{"jsonrpc":"2.0","id":4,"method":"no/such"}`+"\n")
	}()
	seen := map[float64]object{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 8<<20)
	for len(seen) < 4 && lines.Scan() {
		var m object
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m["jsonrpc"] != "2.0" {
			t.Fatalf("%v: %q", err, lines.Text())
		}
		if id, ok := m["id"].(float64); ok {
			seen[id] = m
		}
	}
	if e, _ := seen[3]["error"].(object); e["code"] != -32602.0 {
		t.Errorf("an unknown tool: %v", seen[3])
	}
	in.Close()
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil || len(bytes.TrimSpace(rest)) > 0 {
		t.Errorf("%v %q", err, rest)
	}
}

// FuzzFrames: whatever a client sends, what the server writes is JSON-RPC, and it ends when
// the client does.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{"{}", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"argv":["true"]}}}`, "[]", `{"jsonrpc":"2.0","id":null,"method":""}`, "\x00", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}`} {
		f.Add([]byte(seed))
	}
	home := f.TempDir()
	f.Fuzz(func(t *testing.T, frame []byte) {
		cmd := exec.Command(filepath.Join(bin, "atip"), "mcp", "--readonly")
		cmd.Dir, cmd.Env, cmd.Stdin = home, []string{"HOME=" + home, "PATH=/usr/bin:/bin"}, io.MultiReader(bytes.NewReader(frame), strings.NewReader("\n"))
		var out bytes.Buffer
		cmd.Stdout = &out
		timer := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
		err := cmd.Run()
		if !timer.Stop() {
			t.Fatalf("%q: the server did not end", frame)
		}
		if exit, ok := err.(*exec.ExitError); ok && (exit.ExitCode() == 70 || exit.ExitCode() == 2) {
			t.Fatalf("%q: %v", frame, err)
		}
		for _, line := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
			if len(line) > 0 && !json.Valid(line) {
				t.Fatalf("%q: %q", frame, line)
			}
		}
	})
}

// serve starts a server over HTTP and returns its address and token.
func (w world) serve(args ...string) (url, token string) {
	w.t.Helper()
	cmd := w.command(append([]string{"mcp", "--runfile", "--transport", "http", "--port", "0"}, args...)...)
	stderr, _ := cmd.StderrPipe()
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { cmd.Process.Signal(syscall.SIGTERM); cmd.Wait() })
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		text := lines.Text()
		if m := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(text); m != "" {
			url = m
		}
		if _, file, ok := strings.Cut(text, "the token in "); ok {
			raw, err := os.ReadFile(file)
			if err != nil {
				w.t.Fatal(err)
			}
			if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
				w.t.Errorf("the token has mode %v", info.Mode())
			}
			token = strings.TrimSpace(string(raw))
		}
		if url != "" && (token != "" || len(args) > 0) {
			break
		}
	}
	go io.Copy(io.Discard, stderr)
	return url, token
}

// bearer adds the token to each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

func TestHTTP(t *testing.T) {
	w := newWorld(t)
	url, token := w.serve()
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
	post := func(change func(*http.Request)) int {
		r, _ := http.NewRequest("POST", url, strings.NewReader(list))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("Authorization", "Bearer "+token)
		change(r)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return res.StatusCode
	}
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		want   int
	}{
		{"good", func(*http.Request) {}, 200},
		{"no token", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		{"wrong token", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token+"x") }, 401},
		{"foreign host", func(r *http.Request) { r.Host = "evil.example:80" }, 403},
		{"foreign origin", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"origin of another port", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") }, 403},
		{"null origin", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"cross site", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"too long", func(r *http.Request) { r.Body = io.NopCloser(io.LimitReader(zeros{}, 5<<20)); r.ContentLength = -1 }, 413},
	} {
		if got := post(c.change); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	for _, revision := range revisions {
		s := w.over(&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{token}}}, revision, new(atomic.Int32))
		if r := call(t, s, "show", object{"first": "$(x)"}); said(r) != "<$(x)>\n<d>\n\n" {
			t.Errorf("%s: %q", revision, said(r))
		}
		if r := call(t, s, "exec", object{"argv": []string{"git", "push", "--force"}}); !strings.Contains(said(r), `"E2010"`) {
			t.Errorf("%s: %s", revision, said(r))
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestHTTPClientVanishes closes the connection in the middle of a call.
func TestHTTPClientVanishes(t *testing.T) {
	w := newWorld(t)
	url, token := w.serve()
	ctx, cancel := context.WithCancel(context.Background())
	r, _ := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"argv":["sleep","`+lasts(5201)+`"]}}}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+token)
	go http.DefaultClient.Do(r)
	until(t, "the call runs", func() bool { return alive(lasts(5201)) > 0 })
	cancel()
	until(t, "the call ends", func() bool { return alive(lasts(5201)) == 0 })
}

// TestFlood sends two thousand calls, as many at once as it has connections; the server answers all and lives.
// ATIP_TEST_WHOLE=1 sends ten thousand.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	url, token := w.serve()
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 400, DialContext: (&net.Dialer{Timeout: 30 * time.Second}).DialContext}}
	var answered, ran, busy atomic.Int32
	var all sync.WaitGroup
	n := 2_000
	switch {
	case os.Getenv("ATIP_TEST_WHOLE") != "":
		n = 10_000
	case testing.Short():
		n = 150
	}
	for range n {
		all.Go(func() {
			r, _ := http.NewRequest("POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"argv":["true"]}}}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("Authorization", "Bearer "+token)
			res, err := client.Do(r)
			if err != nil {
				return
			}
			raw, _ := io.ReadAll(res.Body)
			res.Body.Close()
			answered.Add(1)
			switch {
			case bytes.Contains(raw, []byte("E4003")):
				busy.Add(1)
			case bytes.Contains(raw, []byte(`"exit_code":0`)):
				ran.Add(1)
			default:
				t.Logf("%d %.600s", res.StatusCode, raw)
			}
		})
	}
	all.Wait()
	if int(answered.Load()) != n || ran.Load() == 0 || int(ran.Load()+busy.Load()) != n {
		t.Errorf("%d of %d were answered, %d ran, %d were told to wait", answered.Load(), n, ran.Load(), busy.Load())
	}
	s := w.over(&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{token}}}, "", nil)
	if r := call(t, s, "exec", object{"argv": []string{"true"}}); r.IsError {
		t.Error(said(r))
	}
}

// BenchmarkCall compares a call with the command line that it stands for, one after the
// other, so that what else the machine does weighs on both.
func BenchmarkCall(b *testing.B) {
	w := newWorld(b)
	s := w.connect("", nil, "mcp")
	var alone, called []time.Duration
	for b.Loop() {
		began := time.Now()
		cmd := w.command("--output", "jsonl", "--", "true")
		cmd.Path = filepath.Join(bin, "atip-exec")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		alone = append(alone, time.Since(began))
		began = time.Now()
		if r := call(b, s, "exec", object{"argv": []string{"true"}}); r.IsError {
			b.Fatal(said(r))
		}
		called = append(called, time.Since(began))
	}
	middle := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)/2].Microseconds()) / 1000
	}
	b.ReportMetric(middle(alone), "ms-alone")
	b.ReportMetric(middle(called), "ms-called")
	b.ReportMetric(middle(called)-middle(alone), "ms-more")
}
