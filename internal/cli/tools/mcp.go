package tools

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/mcp"
	"github.com/atip-dev/atip-exec/internal/prime"
	"github.com/atip-dev/atip-exec/internal/runfile"
)

// mcpVerb serves our own tools, and those of other programs, to MCP clients.
func mcpVerb(c *cli.Console, v *cli.Values) (int, error) {
	if len(v.Rest) > 0 {
		return 0, fault.New(errcode.Arguments, "mcp takes no words").WithFix("name tools with --tools", "atip mcp --tools gh,git")
	}
	pass := policyFlags(v)
	tools := ownTools(pass, v.Has("readonly"))
	for _, list := range v.All("tools") {
		for _, name := range strings.Split(list, ",") {
			more, err := commandTools(c, name, pass, v.Has("readonly"))
			if err != nil {
				return 0, err
			}
			tools = append(tools, more...)
		}
	}
	if v.Has("runfile") {
		more, err := functionTools(c, "", pass, v.Has("readonly"))
		if err != nil {
			return 0, err
		}
		tools = append(tools, more...)
	}
	return 0, serve(c, v, v.Get("transport") == "http", tools, "Commands run through atip-exec: identified, judged by policy, confined. Call explain to see what would happen; an error E2010 means that the user must approve the command; go on with something else.")
}

// serveRunfile serves the functions of a Runfile and nothing else.
func serveRunfile(c *cli.Console, v *cli.Values) (int, error) {
	http := false
	switch {
	case len(v.Rest) == 0 || slices.Equal(v.Rest, []string{"stdio"}):
	case slices.Equal(v.Rest, []string{"http"}):
		http = true
	default:
		return 0, fault.New(errcode.FlagValue, "--serve-mcp: "+strconv.Quote(v.Rest[0])+" is not stdio or http").With("flag", "--serve-mcp").WithFix("choose one", "atip run --serve-mcp http")
	}
	f, err := answer.Runfile(v.Get("runfile"))
	if err != nil {
		return 0, err
	}
	tools, err := toolsOf(c, f, policyFlags(v), v.Has("readonly"))
	if err != nil {
		return 0, err
	}
	return 0, serve(c, v, http, tools, f.Instructions)
}

func policyFlags(v *cli.Values) []string {
	var out []string
	for _, file := range v.All("policy") {
		if abs, err := filepath.Abs(file); err == nil {
			file = abs
		}
		out = append(out, "--policy", file)
	}
	return out
}

func serve(c *cli.Console, v *cli.Values, http bool, tools []mcp.Tool, instructions string) error {
	server, err := mcp.New(mcp.Config{Name: "atip-exec", Version: cli.Version, Instructions: instructions, Program: beside("atip-exec"), Environ: os.Environ(), Tools: tools, Prime: mcp.PrimeMode(v.Get("prime")),
		Primed: func(session string) any {
			own, err := ownPrime(session)
			if err != nil {
				return nil
			}
			return own
		}})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if http {
		return serveHTTP(ctx, c, v, server)
	}
	in, out, err := protocolStreams()
	if err != nil {
		return fault.New(errcode.OutputWrite, "stdout: "+err.Error())
	}
	if err := server.ServeStdio(ctx, in, out); err != nil && ctx.Err() == nil {
		c.Note("the client is gone: " + err.Error())
	}
	return nil
}

func serveHTTP(ctx context.Context, c *cli.Console, v *cli.Values, server *mcp.Server) error {
	port := 8080
	if v.Has("port") {
		if port = v.IntOf("port"); port > 65535 {
			return fault.New(errcode.FlagValue, "--port: "+v.Get("port")+" is not a port").With("flag", "--port").WithFix("choose one up to 65535, or 0 for any", "--port 0")
		}
	}
	token, where := "", ""
	var err error
	switch {
	case v.Has("no-auth"):
		c.Warn("--no-auth: every program and every user of this machine can call these tools")
	case v.Has("token-file"):
		where = v.Get("token-file")
		token, err = readToken(where)
	default:
		token, where, err = newToken()
	}
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fault.New(errcode.RegistryUnavailable, "cannot listen: "+err.Error()).WithFix("choose another port, or 0 for any", "--port 0")
	}
	c.Note("serving MCP at http://" + l.Addr().String() + "/")
	if where != "" {
		c.Note("each request needs the token in " + where)
	}
	if !v.Has("token-file") && where != "" {
		defer os.Remove(where)
	}
	return server.ServeHTTP(ctx, l, token)
}

// readToken takes the token from a file that nobody else can read.
func readToken(file string) (string, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return "", fault.New(errcode.NoInputFile, "--token-file: "+err.Error()).With("file", file)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0:
		return "", fault.New(errcode.FlagValue, "--token-file: "+file+" is no regular file that only you can read").With("flag", "--token-file").WithFix("restrict it", "chmod 600 "+file)
	}
	raw, err := answer.ReadFile(file, 4096)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	if len(token) < 16 || strings.ContainsAny(token, " \t\r\n") {
		return "", fault.New(errcode.FlagValue, "--token-file: the token is shorter than 16 characters, or more than one word").With("flag", "--token-file").WithFix("write a long random word", "openssl rand -hex 32 >"+file)
	}
	return token, nil
}

// newToken makes a token and a file for it, in the state directory, which no confined run
// can read.
func newToken() (token, file string, err error) {
	dirs, _, err := answer.Home()
	if err != nil {
		return "", "", err
	}
	raw := make([]byte, 32)
	rand.Read(raw)
	token = base64.RawURLEncoding.EncodeToString(raw)
	dir := filepath.Join(dirs.State, "mcp")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", fault.New(errcode.OutputWrite, err.Error())
	}
	f, err := os.CreateTemp(dir, "token-*") // 0600
	if err == nil {
		_, err = f.WriteString(token + "\n")
		if e := f.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		return "", "", fault.New(errcode.OutputWrite, "the token: "+err.Error())
	}
	return token, f.Name(), nil
}

// asked is what a call of exec or explain says.
type asked struct {
	Argv           []string `json:"argv"`
	Command        *string  `json:"command"`
	Cwd            string   `json:"cwd"`
	Stdin          string   `json:"stdin"`
	Timeout        string   `json:"timeout"`
	DryRun         bool     `json:"dry_run"`
	IdempotencyKey string   `json:"idempotency_key"`
	SessionID      string   `json:"session_id"`
}

// property is one property of a schema.
type property = map[string]any

func closedObject(required []string, properties property) property {
	if required == nil {
		required = []string{}
	}
	return property{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func textProperty(description string) property {
	return property{"type": "string", "description": description}
}

// flagProperty is an argument that is a flag of a command line, described as there. A default
// of the command line is none of a call.
func flagProperty(verb, flag string) property {
	spec, _ := cli.SpecOf(verb)
	i := slices.IndexFunc(spec.Flags, func(f cli.Flag) bool { return f.Name == flag })
	f := spec.Flags[i]
	text, _, _ := strings.Cut(f.Help, " (default")
	p := textProperty(text)
	switch f.Kind {
	case cli.Bool:
		p["type"] = "boolean"
	case cli.Int:
		p["type"] = "integer"
	case cli.Enum:
		p["enum"] = f.Enum
	}
	return p
}

// flagsOfCalls are the arguments of exec, and of other calls, that are flags of a run.
func flagsOfCalls() map[string]string {
	return map[string]string{"cwd": "directory", "timeout": "timeout", "dry_run": "dry-run", "idempotency_key": "idempotency-key"}
}

func callProperty(name string) property { return flagProperty("", flagsOfCalls()[name]) }

// callProperties are those that every tool for a command has besides its own.
func callProperties() property {
	return property{"timeout": callProperty("timeout"), "session_id": textProperty("label of the session that the call belongs to")}
}

// primeProperties are the arguments of prime, which the RFC spells in its own way.
func primeProperties() property {
	agent, session := flagProperty("prime", "agent-id"), flagProperty("prime", "session-id")
	role := flagProperty("prime", "user-role")
	role["enum"] = prime.Roles()
	capabilities, metadata := flagProperty("prime", "capabilities"), flagProperty("prime", "metadata")
	capabilities["type"], metadata["type"] = "object", "object"
	return property{"agentId": agent, "sessionId": session, "capabilities": capabilities, "locale": flagProperty("prime", "locale"), "userRole": role, "metadata": metadata}
}

func argvProperties() property {
	return property{
		"argv":    property{"type": "array", "items": property{"type": "string"}, "description": "the command and its arguments, each a word of its own; or command instead"},
		"command": textProperty("a shell string instead of argv, judged as a whole"),
	}
}

// ownTools are exec, explain and prime.
func ownTools(pass []string, readonly bool) []mcp.Tool {
	explain := argvProperties()
	explain["cwd"] = callProperty("cwd")
	tools := []mcp.Tool{
		{Name: "explain", Description: "Say what a command would do, what policy decides about it and how it would be confined. Starts nothing.", Schema: closedObject(nil, explain), Hints: mcp.Hints{ReadOnly: true, Idempotent: true},
			Bind: func(raw json.RawMessage) (*mcp.Job, error) {
				a, err := readAsked(raw, "argv", "command", "cwd")
				if err != nil {
					return nil, err
				}
				return &mcp.Job{Plan: true, Words: append(append([]string{"explain"}, a.flags(pass)...), a.words()...)}, nil
			}},
		{Name: "prime", Description: "Mandatory before any other tool of this server in a session, and idempotent: returns how to use it, and what policy forbids.", Prime: true,
			Schema: closedObject([]string{"agentId", "sessionId"}, primeProperties()),
			Hints:  mcp.Hints{ReadOnly: true, Idempotent: true},
			Bind: func(raw json.RawMessage) (*mcp.Job, error) {
				q, err := prime.ParseRequest(raw)
				if err != nil {
					return nil, err
				}
				own, err := ownPrime(q.SessionID)
				return &mcp.Job{Done: own, Session: q.SessionID}, err
			}},
	}
	if readonly {
		return tools
	}
	properties := argvProperties()
	maps.Copy(properties, callProperties())
	for name := range flagsOfCalls() {
		properties[name] = callProperty(name)
	}
	properties["stdin"] = textProperty("what the command reads on standard input")
	return append([]mcp.Tool{{Name: "exec", Description: "Run a command inside the limits of its declared effects. The exit status is its own; an error with origin atip-exec means that nothing ran or that it was ended.",
		Schema: closedObject(nil, properties), Hints: mcp.Hints{Destructive: true, OpenWorld: true},
		Bind: func(raw json.RawMessage) (*mcp.Job, error) {
			a, err := readAsked(raw, "argv", "command", "cwd", "stdin", "timeout", "dry_run", "idempotency_key", "session_id")
			if err != nil {
				return nil, err
			}
			return &mcp.Job{Plan: a.DryRun, Session: a.SessionID, Stdin: a.Stdin, Words: append(a.flags(pass), a.words()...)}, nil
		}}}, tools...)
}

func badArguments(msg string) error { return fault.New(errcode.ToolArguments, msg) }

// readAsked reads the arguments of a call strictly.
func readAsked(raw json.RawMessage, keys ...string) (asked, error) {
	var a asked
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	root, err := atip.ParseTree(raw, atip.ParseOptions{MaxBytes: 4 << 20})
	if err != nil {
		return a, badArguments("the arguments: " + err.Error())
	}
	for _, m := range root.Items {
		if !slices.Contains(keys, m.Key) {
			return a, badArguments("there is no argument " + strconv.Quote(m.Key))
		}
	}
	if err := json.Unmarshal(raw, &a); err != nil || root.Kind != atip.KindObject {
		return a, badArguments("an argument has the wrong type")
	}
	if (a.Argv == nil) == (a.Command == nil) {
		return a, badArguments("give either argv or command")
	}
	if a.Command == nil && (len(a.Argv) == 0 || a.Argv[0] == "") {
		return a, badArguments("argv is empty")
	}
	for _, word := range append(slices.Clone(a.Argv), a.Cwd, a.Timeout, a.IdempotencyKey, a.SessionID) {
		if strings.IndexByte(word, 0) >= 0 {
			return a, badArguments("an argument holds a NUL byte")
		}
	}
	if a.Command != nil && strings.IndexByte(*a.Command, 0) >= 0 {
		return a, badArguments("command holds a NUL byte")
	}
	return a, checkTimeout(a.Timeout)
}

func checkTimeout(timeout string) error {
	if timeout == "" || timeout == "declared" {
		return nil
	}
	if _, err := cli.ParseDuration(timeout); err != nil {
		return badArguments("timeout: " + strconv.Quote(timeout) + " " + err.Error())
	}
	return nil
}

func (a *asked) flags(pass []string) []string {
	words := slices.Clone(pass)
	for _, f := range [...][2]string{{"--directory", a.Cwd}, {"--timeout", a.Timeout}, {"--idempotency-key", a.IdempotencyKey}} {
		if f[1] != "" {
			words = append(words, f[0], f[1])
		}
	}
	if a.DryRun {
		words = append(words, "--dry-run")
	}
	return words
}

func (a *asked) words() []string {
	if a.Command != nil {
		return []string{"--command", *a.Command}
	}
	return append([]string{"--"}, a.Argv...)
}

// ofCall takes timeout and session_id out of the arguments of a function.
func ofCall(raw json.RawMessage) (arguments map[string]json.RawMessage, timeout, session string, err error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if root, e := atip.ParseTree(raw, atip.ParseOptions{MaxBytes: 4 << 20}); e != nil || root.Kind != atip.KindObject {
		return nil, "", "", badArguments("the arguments are no JSON object, or hold a key twice")
	}
	if json.Unmarshal(raw, &arguments) != nil {
		return nil, "", "", badArguments("the arguments are no JSON object")
	}
	for name, to := range map[string]*string{"timeout": &timeout, "session_id": &session} {
		if v, ok := arguments[name]; ok && json.Unmarshal(v, to) != nil {
			return nil, "", "", badArguments(name + " is not a string")
		}
		delete(arguments, name)
	}
	return arguments, timeout, session, checkTimeout(timeout)
}

// withCall adds the properties of every call to a schema, and closes it. It returns nil
// where the function has a parameter of such a name: which is meant could not be told.
func withCall(schema any) property {
	raw, err := json.Marshal(schema)
	var s property
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return nil
	}
	properties, _ := s["properties"].(map[string]any)
	if properties == nil {
		properties = property{}
	}
	for name, p := range callProperties() {
		if properties[name] != nil {
			return nil
		}
		properties[name] = p
	}
	s["properties"], s["additionalProperties"] = properties, false
	return s
}

// commandTools are the commands of a tool that has metadata.
func commandTools(c *cli.Console, name string, pass []string, readonly bool) ([]mcp.Tool, error) {
	s, err := answer.DocumentedSubject(name)
	if err != nil {
		return nil, err
	}
	compiled, err := s.Document().Compile(s.Provenance, atip.CompileOptions{Provider: "mcp"})
	if err != nil {
		return nil, err
	}
	for _, w := range compiled.Warnings {
		c.Warn(s.Name + ": " + w)
	}
	var out []mcp.Tool
	for _, f := range compiled.List(false) {
		hints := atip.HintsOf(f.Effects)
		schema := withCall(f.Schema)
		switch {
		case schema == nil:
			c.Warn(f.Name + " is not offered: it has a parameter timeout or session_id of its own")
			continue
		case readonly && !hints.ReadOnly:
			continue
		}
		out = append(out, mcp.Tool{Name: f.Name, Description: f.Description, Schema: schema, Hints: mcp.Hints(hints),
			Bind: func(raw json.RawMessage) (*mcp.Job, error) {
				arguments, timeout, session, err := ofCall(raw)
				if err != nil {
					return nil, err
				}
				argv, err := compiled.Call(f.Name, arguments)
				if err != nil {
					return nil, err
				}
				a := asked{Argv: argv, Timeout: timeout}
				return &mcp.Job{Session: session, Words: append(a.flags(pass), a.words()...)}, nil
			}})
	}
	return out, nil
}

func functionTools(c *cli.Console, file string, pass []string, readonly bool) ([]mcp.Tool, error) {
	f, err := answer.Runfile(file)
	if err != nil {
		return nil, err
	}
	return toolsOf(c, f, pass, readonly)
}

// toolsOf are the functions of a Runfile that have a description.
func toolsOf(c *cli.Console, f *runfile.File, pass []string, readonly bool) ([]mcp.Tool, error) {
	for _, w := range f.Warnings {
		c.Warn(w)
	}
	functions, err := f.Offered(false, readonly)
	if err != nil {
		return nil, err
	}
	out := []mcp.Tool{}
	for _, fn := range functions {
		schema := withCall(fn.Schema())
		if schema == nil {
			c.Warn(fn.Name + " is not offered: it has a parameter timeout or session_id of its own")
			continue
		}
		out = append(out, mcp.Tool{Name: fn.ToolName(), Description: fn.Desc, Schema: schema,
			Hints: mcp.Hints{ReadOnly: !fn.May("write") && !fn.May("delete"), Destructive: fn.May("destructive") && (fn.May("write") || fn.May("delete") || fn.May("network")), OpenWorld: fn.May("network")},
			Bind: func(raw json.RawMessage) (*mcp.Job, error) {
				arguments, timeout, session, err := ofCall(raw)
				if err != nil {
					return nil, err
				}
				args, err := fn.BindNamed(arguments)
				if err != nil {
					return nil, err
				}
				call, err := scriptOf(f, fn, args)
				if err != nil {
					return nil, err
				}
				if d, _ := cli.ParseDuration(timeout); d > 0 && (call.Timeout == 0 || d < call.Timeout) {
					call.Timeout = d
				}
				return &mcp.Job{Words: append(slices.Clone(pass), call.Words(3)...), Code: call.Code, Session: session, Parsed: true}, nil
			}})
	}
	return out, nil
}
