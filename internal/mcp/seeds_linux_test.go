package mcp_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// put writes files below a directory, scripts so that they can be run.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(text, "#!") {
			if err := os.Chmod(file, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func contents(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// asRun starts the program under the name run, as the configuration of a client in section 7
// of run RFC 003 does.
func (w world) asRun(args ...string) *exec.Cmd {
	w.t.Helper()
	link := filepath.Join(w.home, "run")
	if err := os.Symlink(filepath.Join(bin, "atip"), link); err != nil {
		w.t.Fatal(err)
	}
	cmd := w.command(args...)
	cmd.Path, cmd.Args[0] = link, "run"
	return cmd
}

// TestRFC003Section7 is the whole example: the Runfile and the configuration as they stand
// there, and the calls that the agent makes.
func TestRFC003Section7(t *testing.T) {
	w := newWorld(t)
	put(t, w.ws, map[string]string{"Runfile": contents(t, "../runfile/testdata/rfc003-section7.Runfile"), "scripts/deploy.sh": "#!/bin/sh\necho \"deploying to $1\"\n"})
	var config struct {
		Servers map[string]struct {
			Command string
			Args    []string
			Cwd     string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(contents(t, "../runfile/testdata/rfc003-section7.config.json")), &config); err != nil {
		t.Fatal(err)
	}
	server := config.Servers["my-project"]
	if server.Command != "run" || server.Cwd == "" {
		t.Fatalf("%+v", config)
	}
	s := w.over(&mcp.CommandTransport{Command: w.asRun(server.Args...), TerminateDuration: 10 * time.Second}, "", nil)
	var names []string
	for tool, err := range s.Tools(context.Background(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if strings.Join(names, " ") != "deploy search" && strings.Join(names, " ") != "search deploy" {
		t.Errorf("the tools are %q", names)
	}
	if r := call(t, s, "search", object{"pattern": "TODO"}); r.IsError {
		t.Errorf("search: %s", said(r))
	}
	if r := call(t, s, "deploy", object{"env": "staging"}); r.IsError || said(r) != "deploying to staging\n\n" {
		t.Errorf("deploy: %q", said(r))
	}
	if r := call(t, s, "deploy", object{}); !r.IsError || !strings.Contains(said(r), "env") {
		t.Errorf("deploy without env: %s", said(r))
	}
}

// TestRFC003Section5_1 makes the call of that section: named parameters become $1 and $2.
func TestRFC003Section5_1(t *testing.T) {
	w := newWorld(t)
	put(t, w.ws, map[string]string{"Runfile": "docker() { printf '<%s>' \"$@\"; }\n" + contents(t, "../runfile/testdata/rfc003-section3.2.Runfile")})
	s := w.over(&mcp.CommandTransport{Command: w.asRun("--serve-mcp"), TerminateDuration: 10 * time.Second}, "", nil)
	if r := call(t, s, "scale", object{"service": "api", "replicas": 3}); r.IsError || strings.TrimSpace(said(r)) != "<compose><scale><api=3>" {
		t.Errorf("%s", said(r))
	}
	if r := call(t, s, "scale", object{"service": "api", "replicas": "three"}); !r.IsError || !strings.Contains(said(r), "E1202") {
		t.Errorf("%s", said(r))
	}
}

// shape is a schema without its texts and defaults.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, e := range v {
			switch key {
			case "description", "default", "title", "$id", "$schema":
			default:
				out[key] = shape(e)
			}
		}
		// An object is open unless it says that it is closed.
		if out["additionalProperties"] == true {
			delete(out, "additionalProperties")
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = shape(v[i])
		}
		return out
	}
	return v
}

// TestPrimeSection7 holds the tool prime against the RFC: its description, its parameters and
// its result.
func TestPrimeSection7(t *testing.T) {
	w := newWorld(t)
	s := w.connect("", nil, "mcp", "--prime", "enforce")
	var tool *mcp.Tool
	for one, err := range s.Tools(context.Background(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if one.Name == "prime" {
			tool = one
		}
	}
	if tool == nil || !strings.Contains(tool.Description, "Mandatory before any other tool") || !strings.Contains(tool.Description, "idempotent") || !tool.Annotations.IdempotentHint {
		t.Fatalf("%+v", tool)
	}
	var want any
	if err := json.Unmarshal([]byte(contents(t, "../../docs/prime-request.schema.json")), &want); err != nil {
		t.Fatal(err)
	}
	properties := func(v any) any { // a property named description, too, is a property
		return shape(v.(map[string]any)["properties"])
	}
	if got := tool.InputSchema; !reflect.DeepEqual(properties(got), properties(want)) || !reflect.DeepEqual(shape(got), shape(want)) {
		t.Errorf("%v\nwant %v", shape(got), shape(want))
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(contents(t, "../../docs/prime-response.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	first := call(t, s, "prime", object{"agentId": "a", "sessionId": "s"})
	if err := resolved.Validate(first.StructuredContent); err != nil {
		t.Errorf("the response: %v", err)
	}
	if again := call(t, s, "prime", object{"agentId": "a", "sessionId": "s"}); !reflect.DeepEqual(again.StructuredContent, first.StructuredContent) {
		t.Errorf("not idempotent: %v, then %v", first.StructuredContent, again.StructuredContent)
	}
}
