package main_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The tests of this file run examples of the seed documents on the built programs. The name
// says document and section; docs/seeds.md lists the tests of all others.

// seed reads an example as it stands in its document.
func seed(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// outcome is how a program ended.
type outcome struct {
	stdout, stderr string
	status         int
}

// runs starts one of the programs in the workspace.
func (w world) runs(stdin string, env []string, name string, args ...string) outcome {
	w.t.Helper()
	cmd := w.command()
	cmd.Path = filepath.Join(bin, name)
	cmd.Args = append([]string{name}, args...)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if _, ended := err.(*exec.ExitError); !ended {
			w.t.Fatal(err)
		}
	}
	return outcome{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// document binds a document to a tool of the workspace.
func (w world) document(tool, commands string) {
	w.t.Helper()
	raw, err := os.ReadFile(tool)
	if err != nil {
		w.t.Fatal(err)
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(raw))
	dir := filepath.Join(w.home, ".config", "agent-tools", "overrides", "sha256")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	doc := `{"atip":{"version":"0.6"},"name":"` + filepath.Base(tool) + `","version":"1","description":"a tool","binary":{"hash":"sha256:` + digest + `"},"trust":{"source":"user","verified":false},"commands":` + commands + `}`
	if err := os.WriteFile(filepath.Join(dir, digest+".json"), []byte(doc), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

const harmless = `"effects":{"network":false,"destructive":false,"filesystem":{"read":true,"write":true,"delete":false}}`

// TestPrimeDirectiveSection6 asks the tool of the example, with the flags of the example, and
// takes the response of the example.
func TestPrimeDirectiveSection6(t *testing.T) {
	w := newWorld(t)
	response := seed(t, "internal/prime/testdata/section6.json")
	put(t, w.ws, map[string]string{"response.json": response, "bin/example-tool": "#!/bin/sh\ncase $1 in\nprime) for w; do printf '<%s>' \"$w\"; done >asked; cat response.json ;;\n*) echo worked ;;\nesac\n"})
	tool := filepath.Join(w.ws, "bin", "example-tool")
	if err := os.Chmod(tool, 0o755); err != nil {
		t.Fatal(err)
	}
	option := func(name string) string {
		return `{"name":"` + name + `","flags":["--` + name + `"],"type":"string","description":"d"}`
	}
	w.document(tool, `{"prime":{"description":"prime","options":[`+option("agent-id")+`,`+option("session-id")+`,`+option("capabilities")+`,`+option("locale")+`,`+option("user-role")+`],`+harmless+`},`+
		`"analyze":{"description":"a",`+harmless+`},"legacy-run":{"description":"l",`+harmless+`}}`)
	path := []string{"PATH=" + filepath.Join(w.ws, "bin") + ":/usr/bin:/bin:" + bin, "ATIP_EXEC_OUTPUT=text", "ATIP_SESSION_ID=abc-123", "ATIP_AGENT_ID=agent"}

	o := w.runs("", path, "atip", "prime", "example-tool", "--agent-id", "agent", "--session-id", "abc-123", "--capabilities", `{"supportsStreaming": true}`, "--locale", "en-US", "--user-role", "end_user")
	if o.status != 0 || !sameJSON(o.stdout, response) {
		t.Errorf("atip prime: %+v", o)
	}
	asked, err := os.ReadFile(filepath.Join(w.ws, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(asked), `<prime><--agent-id><agent><--session-id><abc-123><--capabilities><{"supportsStreaming": true}><--locale><en-US><--user-role><end_user>`; got != want {
		t.Errorf("the tool was asked with %s", got)
	}
	// The response of the example expired in January: the next call asks again, and is held to it.
	if o := w.runs("", path, "atip-exec", "--prime", "enforce", "--", "example-tool", "analyze"); o.status != 0 || o.stdout != "worked\n" || !strings.Contains(o.stderr, "example-tool says: do: Use this tool only for batch operations.") {
		t.Errorf("analyze: %+v", o)
	}
	if o := w.runs("", path, "atip-exec", "--prime", "enforce", "--", "example-tool", "legacy-run"); o.status != 77 || o.stdout != "" || !strings.Contains(o.stderr, "E2030") || !strings.Contains(o.stderr, "analyze, execute") {
		t.Errorf("legacy-run: %+v", o)
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// TestRFC003Section3 runs the functions of sections 3.1 and 3.2, and prints what 4.1 prints.
func TestRFC003Section3(t *testing.T) {
	w := newWorld(t)
	put(t, w.ws, map[string]string{"Runfile": "# @desc Restarts the docker containers and tails the logs\nrestart() { echo restarted; }\n" +
		"docker() { printf '<%s>' \"$@\"; }\n" + seed(t, "internal/runfile/testdata/rfc003-section3.2.Runfile")})
	if o := w.runs("", nil, "atip", "run", "restart"); o.status != 0 || o.stdout != "restarted\n" {
		t.Errorf("%+v", o)
	}
	if o := w.runs("", nil, "atip", "run", "scale", "api", "3"); o.status != 0 || o.stdout != "<compose><scale><api=3>" {
		t.Errorf("%+v", o)
	}
	o := w.runs("", nil, "atip", "run", "--inspect")
	var got struct {
		Tools []map[string]any `json:"tools"`
	}
	if json.Unmarshal([]byte(o.stdout), &got) != nil || len(got.Tools) != 2 {
		t.Fatalf("%+v", o)
	}
	var want struct {
		Tools []map[string]any `json:"tools"`
	}
	if err := json.Unmarshal([]byte(seed(t, "internal/runfile/testdata/rfc003-section4.1.json")), &want); err != nil {
		t.Fatal(err)
	}
	// 4.1 shortens the texts of 3.2.
	texts := got.Tools[1]["input_schema"].(map[string]any)["properties"].(map[string]any)
	for _, p := range texts {
		p := p.(map[string]any)
		p["description"], _, _ = strings.Cut(p["description"].(string), " (")
	}
	if !reflect.DeepEqual(got.Tools[1], want.Tools[0]) {
		t.Errorf("%v\nwant %v", got.Tools[1], want.Tools[0])
	}
}

// TestTooliGlobalFlags takes each flag of the list, in both spellings.
func TestTooliGlobalFlags(t *testing.T) {
	w := newWorld(t)
	values := map[string]string{"--output": "json", "-o": "json", "--timeout": "20", "--idempotency-key": "k"}
	tried := 0
	for line := range strings.Lines(seed(t, "testdata/seeds/tooli-flags.txt")) {
		names, _, _ := strings.Cut(line, "  ")
		for name := range strings.SplitSeq(names, ", ") {
			words := []string{name}
			if values[name] != "" {
				words = append(words, values[name])
			}
			tried++
			o := w.runs("", nil, "atip-exec", append(words, "--", "echo", "x")...)
			if o.status != 0 || name != "--dry-run" && !strings.Contains(o.stdout, "x") || name == "--dry-run" && !strings.Contains(o.stdout, "ALLOW") && !strings.Contains(o.stdout, `"allow"`) {
				t.Errorf("%q: %+v", words, o)
			}
		}
	}
	if tried != 10 {
		t.Errorf("%d spellings, not 10", tried)
	}
	if o := w.runs("", nil, "atip-exec", "-vvv", "--", "true"); o.status != 0 || o.stderr == "" {
		t.Errorf("-vvv: %+v", o)
	}
}

// TestTooliOutputRouting: what a verb prints by flag, by variable and for a pipe.
func TestTooliOutputRouting(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		env, args []string
		json      bool
	}{
		{nil, []string{"explain", "true"}, true}, // piped
		{nil, []string{"explain", "-o", "text", "true"}, false},
		{nil, []string{"explain", "-o", "json", "true"}, true},
		{nil, []string{"explain", "-o", "jsonl", "true"}, true},
		{[]string{"TYPER_AGENT_OUTPUT=json"}, []string{"--", "echo", "x"}, true},
		{[]string{"TYPER_AGENT_OUTPUT=json", "ATIP_EXEC_OUTPUT=text"}, []string{"--", "echo", "x"}, false},
		{nil, []string{"--", "echo", "x"}, false}, // a wrapped command passes through
	} {
		o := w.runs("", c.env, "atip-exec", c.args...)
		if o.status != 0 || json.Valid([]byte(o.stdout)) != c.json {
			t.Errorf("%q %q: %+v", c.env, c.args, o)
		}
	}
}

// TestTooliErrorFormat holds our errors against the example: its keys, its words, and an exit
// status of the table.
func TestTooliErrorFormat(t *testing.T) {
	var want struct {
		Error map[string]any `json:"error"`
	}
	if err := json.Unmarshal([]byte(seed(t, "testdata/seeds/tooli-error.json")), &want); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	categories := map[byte]string{'1': "input", '2': "auth", '3': "state", '4': "runtime", '5': "internal"}
	for _, c := range []struct {
		status int
		args   []string
	}{
		{64, []string{"--nope"}}, {64, []string{"--timeout", "soon", "--", "true"}}, {66, []string{"script", "none.sh"}}, {77, []string{"--", "git", "push", "--force"}},
		{77, []string{"--", "rm", "-rf", "/"}}, {124, []string{"--timeout", "100ms", "--", "sleep", "9"}}, {127, []string{"--", "nosuchprogram"}},
	} {
		o := w.runs("", nil, "atip-exec", c.args...)
		var got struct {
			Error map[string]any `json:"error"`
		}
		lines := strings.Split(strings.TrimSpace(o.stderr), "\n")
		if o.status != c.status || json.Unmarshal([]byte(lines[len(lines)-1]), &got) != nil {
			t.Errorf("%q: %+v", c.args, o)
			continue
		}
		for key, example := range want.Error {
			if key == "details" && got.Error[key] == nil {
				continue // there are none
			}
			if reflect.TypeOf(got.Error[key]) != reflect.TypeOf(example) {
				t.Errorf("%q: %s is %v", c.args, key, got.Error[key])
			}
		}
		code, _ := got.Error["code"].(string)
		if len(code) != 5 || got.Error["category"] != categories[code[1]] {
			t.Errorf("%q: %s is of category %v", c.args, code, got.Error["category"])
		}
		suggestion, _ := got.Error["suggestion"].(map[string]any)
		for key, words := range map[string]string{"action": " retry_with_modified_input use_different_tool abort retry_later ", "applicability": " machine_applicable maybe_incorrect has_placeholders "} {
			if word, _ := suggestion[key].(string); !strings.Contains(words, " "+word+" ") {
				t.Errorf("%q: %s is %q", c.args, key, word)
			}
		}
		if suggestion["fix"] == "" || suggestion["fix"] == nil {
			t.Errorf("%q: no fix", c.args)
		}
	}
}

// TestTooliServeMCP: the two ways in which the document starts a server.
func TestTooliServeMCP(t *testing.T) {
	w := newWorld(t)
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
	stdio := w.command("--serve-mcp", "stdio")
	in, err := stdio.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := stdio.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stdio.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(30*time.Second, func() { stdio.Process.Kill() }).Stop()
	if _, err := io.WriteString(in, hello); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, `"serverInfo"`) {
		t.Errorf("%q %v", line, err)
	}
	in.Close()
	if err := stdio.Wait(); err != nil {
		t.Error(err)
	}
	cmd := w.command("--serve-mcp", "http", "--port", "0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); _ = cmd.Wait() }()
	defer time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() }).Stop()
	said := make([]byte, 512)
	n, err := io.ReadAtLeast(stderr, said, 40)
	if err != nil || !strings.Contains(string(said[:n]), "http://127.0.0.1:") {
		t.Errorf("%s %v", said[:n], err)
	}
}

// TestATIPSection3_1 prints our own metadata, whole and in part (3.1.1).
func TestATIPSection3_1(t *testing.T) {
	w := newWorld(t)
	var whole, part map[string]any
	if o := w.runs("", nil, "atip-exec", "--agent"); o.status != 0 || o.stderr != "" || json.Unmarshal([]byte(o.stdout), &whole) != nil || whole["partial"] != nil {
		t.Fatalf("%+v", o)
	}
	all := whole["commands"].(map[string]any)
	if o := w.runs("", nil, "atip-exec", "--agent", "--commands=explain,run"); o.status != 0 || json.Unmarshal([]byte(o.stdout), &part) != nil {
		t.Fatalf("%+v", o)
	}
	if got := part["commands"].(map[string]any); len(got) != 2 || !reflect.DeepEqual(got["run"], all["run"]) {
		t.Errorf("%v", got)
	}
	delete(part, "commands")
	for key, want := range map[string]string{"partial": "true", "filter": `{"commands":["explain","run"],"depth":null}`, "totalCommands": fmt.Sprint(len(all)), "includedCommands": "2",
		"omitted": `{"reason":"filtered","safetyAssumption":"unknown"}`} {
		raw, _ := json.Marshal(part[key])
		if string(raw) != want {
			t.Errorf("%s is %s, want %s", key, raw, want)
		}
	}
	var top map[string]any
	if o := w.runs("", nil, "atip-exec", "--agent", "--depth=1"); o.status != 0 || json.Unmarshal([]byte(o.stdout), &top) != nil || !reflect.DeepEqual(top, whole) {
		t.Errorf("--depth=1: %.300s", o.stdout)
	}
	for _, args := range [][]string{{"--agent", "--commands=nope"}, {"--commands=run", "--", "true"}, {"--depth=1", "--", "true"}, {"--agent", "--depth=0"}} {
		if o := w.runs("", nil, "atip-exec", args...); o.status != 64 || o.stdout != "" || !strings.Contains(o.stderr, "E1002") {
			t.Errorf("%q: %+v", args, o)
		}
	}
}

// TestATIPSection7 is the life of a call: the tools are declared, the model's response comes in
// the form of each provider, and the result goes back in that form. What the calls run is a
// stand-in that shows its arguments.
func TestATIPSection7(t *testing.T) {
	w := newWorld(t)
	put(t, w.ws, map[string]string{"bin/show": "#!/bin/sh\nprintf '<%s>' \"$@\"\n"})
	tool := filepath.Join(w.ws, "bin", "show")
	if err := os.Chmod(tool, 0o755); err != nil {
		t.Fatal(err)
	}
	w.document(tool, `{"pr":{"description":"p","commands":{"list":{"description":"List","options":[{"name":"state","flags":["--state"],"type":"string","description":"s"}],`+harmless+`}}}}`)
	path := []string{"PATH=" + filepath.Join(w.ws, "bin") + ":/usr/bin:/bin:" + bin}
	for provider, c := range map[string]struct{ response, result string }{
		"openai": {`{"choices":[{"message":{"tool_calls":[{"id":"call_1","type":"function","function":{"name":"show_pr_list","arguments":"{\"state\": \"open\"}"}}]}}]}`,
			`[{"role":"tool","tool_call_id":"call_1","content":"<pr><list><--state=open>"}]`},
		"gemini": {`{"candidates":[{"content":{"parts":[{"function_call":{"name":"show_pr_list","args":{"state":"open"}}}]}}]}`,
			`{"role":"user","parts":[{"function_response":{"name":"show_pr_list","response":{"result":"<pr><list><--state=open>"}}}]}`},
		"anthropic": {`{"content":[{"type":"text","text":"I will look."},{"type":"tool_use","id":"toolu_1","name":"show_pr_list","input":{"state":"open"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"<pr><list><--state=open>"}]}`},
	} {
		if o := w.runs("", path, "atip", "compile", "--provider", provider, "show"); o.status != 0 || !strings.Contains(o.stdout, "show_pr_list") {
			t.Errorf("%s: declared as %+v", provider, o)
		}
		if o := w.runs(c.response, path, "atip", "call", "--provider", provider, "show"); o.status != 0 || !sameJSON(o.stdout, c.result) {
			t.Errorf("%s: %+v", provider, o)
		}
	}
}

// TestATIPSection14_2 compiles the document of 14.1 as 14.2 prints it. Ours has more functions,
// as the document has, and lets what is not required be null, which rule 2 of section 8.2 asks for.
func TestATIPSection14_2(t *testing.T) {
	w := newWorld(t)
	put(t, w.ws, map[string]string{"gh.json": seed(t, "testdata/seeds/gh-0.6.json")})
	o := w.runs("", nil, "atip", "compile", "--provider", "openai", "--strict", "gh.json")
	type function struct {
		Type     string
		Function struct {
			Name, Description string
			Strict            bool
			Parameters        struct {
				Properties map[string]map[string]any
				Required   []string
				Closed     *bool `json:"additionalProperties"`
			}
		}
	}
	var got struct{ Functions []function }
	var list, want []function
	if json.Unmarshal([]byte(o.stdout), &list) != nil {
		if err := json.Unmarshal([]byte(o.stdout), &got); err != nil {
			t.Fatalf("%+v", o)
		}
		list = got.Functions
	}
	if err := json.Unmarshal([]byte(seed(t, "testdata/seeds/gh-openai-strict-0.6.json")), &want); err != nil {
		t.Fatal(err)
	}
	for _, f := range want {
		found := false
		for _, g := range list {
			if g.Function.Name != f.Function.Name {
				continue
			}
			found = true
			if g.Type != "function" || !g.Function.Strict || g.Function.Parameters.Closed == nil || *g.Function.Parameters.Closed || !reflect.DeepEqual(g.Function.Parameters.Required, f.Function.Parameters.Required) {
				t.Errorf("%+v", g)
			}
			// The example ends a text with a full stop that its document does not have.
			if strings.ReplaceAll(g.Function.Description, ".", "") != strings.ReplaceAll(f.Function.Description, ".", "") {
				t.Errorf("%q, want %q", g.Function.Description, f.Function.Description)
			}
		}
		if !found {
			t.Errorf("there is no %s", f.Function.Name)
		}
	}
}
