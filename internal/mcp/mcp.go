// Package mcp serves tools over the Model Context Protocol. Each call starts one
// atip-exec, which decides and confines as for any command line: signals, the end of a
// process tree and the working directory belong to a process, so that a server of many
// calls must not be the process that runs them.
//
// It is the only importer of the SDK, whose package initialisation takes about a
// millisecond.
package mcp

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// Bounds of a server.
const (
	maxRunning = 4
	maxQueued  = 64
	maxStream  = 100_000 // bytes kept of each stream of a call, head and tail
	maxMessage = 4 << 20 // bytes of one message of a client
	maxState   = 15 * time.Minute
)

// Hints are the annotations of a tool: what a client may assume of it.
type Hints struct {
	ReadOnly, Destructive, Idempotent, OpenWorld bool
}

// Job is what one call of a tool runs.
type Job struct {
	Words   []string // of atip-exec, without the output mode
	Code    string   // handed over on descriptor 3, if it is not empty
	Stdin   string
	Session string // label of the run, "" for the server's
	Plan    bool   // the words print one document instead of running a command
	Parsed  bool   // standard output that is JSON becomes the structured result
	// Done, if not nil, is the whole answer: nothing is started.
	Done any
}

// Tool is one tool of the server.
type Tool struct {
	Name, Description string
	Schema            any // JSON Schema of the arguments: an object, inline
	Hints             Hints
	// Bind turns the arguments of a call into a job; its error is told the model.
	Bind  func(args json.RawMessage) (*Job, error)
	Prime bool // calling it primes the session
}

// PrimeMode says what happens before a session is primed.
type PrimeMode string

// Prime modes. The zero value primes for the client.
const (
	PrimeAuto    PrimeMode = "auto"
	PrimeEnforce PrimeMode = "enforce"
	PrimeOff     PrimeMode = "off"
)

// Config describes a server.
type Config struct {
	Name, Version, Instructions string
	Program                     string // path of atip-exec
	Environ                     []string
	Tools                       []Tool
	Prime                       PrimeMode
	Primed                      func(session string) any // our own prime response
}

// Server answers the requests of clients.
type Server struct {
	config  Config
	key     [32]byte
	session string // label of calls that name none
	slots   chan struct{}
	queue   chan struct{}
	running sync.WaitGroup
	stop    context.CancelFunc
	stopped context.Context

	mu     sync.Mutex
	primed map[string]bool
	last   string // the session that was primed last, on stdio
	stdio  bool
	gone   map[string]context.Context // of HTTP requests, by the id in their header
}

// New makes a server. A tool whose name or schema no client takes is an error.
func New(c Config) (*Server, error) {
	s := &Server{config: c, slots: make(chan struct{}, maxRunning), queue: make(chan struct{}, maxRunning+maxQueued), primed: map[string]bool{}, gone: map[string]context.Context{}}
	rand.Read(s.key[:])
	s.session = "mcp-" + base64.RawURLEncoding.EncodeToString(randomBytes(9))
	s.last = s.session
	s.stopped, s.stop = context.WithCancel(context.Background())
	seen := map[string]bool{}
	for _, t := range c.Tools {
		if seen[t.Name] {
			return nil, fault.New(errcode.RunfileSyntax, "two tools are called "+t.Name).WithFix("rename one of them, or serve fewer tools", "")
		}
		seen[t.Name] = true
		if err := checkTool(t); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}

// checkTool holds a tool to what every client takes: names of 64 characters, closed
// objects, inline, no unions.
func checkTool(t Tool) error {
	if t.Name == "" || len(t.Name) > 64 || strings.Trim(t.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return fault.New(errcode.RunfileSyntax, strconv.Quote(t.Name)+" is not a name that clients take").WithFix("use up to 64 letters, digits, - and _", "")
	}
	raw, err := json.Marshal(t.Schema)
	var root map[string]any
	if err != nil || json.Unmarshal(raw, &root) != nil || root["type"] != "object" {
		return fault.New(errcode.RunfileSyntax, t.Name+": its schema is not an object")
	}
	if why := unaccepted(root); why != "" {
		return fault.New(errcode.RunfileSyntax, t.Name+": "+why+" in its schema, which some clients drop a tool for")
	}
	return nil
}

func unaccepted(v any) string {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			switch key {
			case "$ref", "$defs", "oneOf", "anyOf", "allOf":
				if _, named := e.(map[string]any); !named || key == "$defs" || key == "$ref" {
					return key
				}
			case "type":
				if _, list := e.([]any); list {
					return "a type that is a list"
				}
			}
			if why := unaccepted(e); why != "" {
				return why
			}
		}
	case []any:
		for _, e := range v {
			if why := unaccepted(e); why != "" {
				return why
			}
		}
	}
	return ""
}

// sdk builds the server of the SDK. A stateless one serves all requests over HTTP.
func (s *Server) sdk() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: s.config.Name, Version: s.config.Version}, &mcp.ServerOptions{
		Instructions: s.config.Instructions,
		// Without this, logging would be advertised.
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range s.config.Tools {
		destructive, open := t.Hints.Destructive, t.Hints.OpenWorld
		server.AddTool(&mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema,
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: t.Hints.ReadOnly, DestructiveHint: &destructive, IdempotentHint: t.Hints.Idempotent, OpenWorldHint: &open}},
			func(ctx context.Context, req *mcp.CallToolRequest) (res *mcp.CallToolResult, err error) {
				defer func() {
					if r := recover(); r != nil {
						res, err = failed(fault.New(errcode.Internal, fmt.Sprintf("internal error: %v", r))), nil
					}
				}()
				return s.call(ctx, req, t), nil
			})
	}
	return server
}

// call answers one call of a tool.
func (s *Server) call(ctx context.Context, req *mcp.CallToolRequest, t Tool) *mcp.CallToolResult {
	job, err := t.Bind(req.Params.Arguments)
	if err != nil {
		return failed(err)
	}
	session := job.Session
	if session == "" {
		session = s.defaultSession()
	}
	first := s.prime(session, t.Prime)
	if first == nil && s.config.Prime == PrimeEnforce && !s.isPrimed(session) {
		return failed(fault.New(errcode.NotPrimed, "call prime before any other tool").With("session_id", session).WithFix("call the tool prime with this session_id as sessionId", `prime {"agentId":"me","sessionId":"`+session+`"}`))
	}
	var res *mcp.CallToolResult
	if job.Done != nil {
		res = answered(job.Done)
	} else {
		res = s.start(ctx, req, t, job, session)
	}
	if first != nil && !t.Prime && res.InputRequests == nil {
		if res.Meta == nil {
			res.Meta = mcp.Meta{}
		}
		res.Meta["atip-exec/prime"] = first
	}
	return res
}

func (s *Server) defaultSession() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdio {
		return s.last
	}
	return s.session
}

func (s *Server) isPrimed(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.primed[session]
}

// maxSessions bounds what clients can make the server remember.
const maxSessions = 10_000

// prime marks a session as primed, if that is what the call does or the mode lets the
// server do it. It returns the response that the client did not ask for.
func (s *Server) prime(session string, asked bool) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.primed[session] || !asked && s.config.Prime != PrimeAuto && s.config.Prime != "" {
		return nil
	}
	if len(s.primed) >= maxSessions {
		clear(s.primed)
	}
	s.primed[session] = true
	if asked {
		s.last = session
		return nil
	}
	if s.config.Primed == nil {
		return nil
	}
	return s.config.Primed(session)
}

// start runs a job and, where a person is needed, tells the client's user once.
func (s *Server) start(ctx context.Context, req *mcp.CallToolRequest, t Tool, job *Job, session string) *mcp.CallToolResult {
	ctx, cancel := s.until(ctx, req)
	defer cancel()
	select {
	case s.queue <- struct{}{}:
		defer func() { <-s.queue }()
	default:
		return failed(fault.New(errcode.OutOfResources, fmt.Sprintf("%d calls run or wait already", maxRunning+maxQueued)).WithFix("call again when some of them have ended", ""))
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return failed(fault.New(errcode.Cancelled, "cancelled before the start"))
	}
	s.running.Add(1)
	defer s.running.Done()
	o := s.carryOut(ctx, job, session, progressOf(ctx, req))
	if code, _ := o.failure["code"].(string); code == errcode.ApprovalRequired {
		if !s.stated(req, t) && elicits(req) {
			return s.notice(req, t, o)
		}
	}
	return o.result(job)
}

// until is a context that ends with the request, the server, or the HTTP request that
// carries the call.
func (s *Server) until(ctx context.Context, req *mcp.CallToolRequest) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.stopped, cancel)
	release := func() { stop(); cancel() }
	if req.Extra != nil && req.Extra.Header != nil {
		s.mu.Lock()
		gone := s.gone[req.Extra.Header.Get(requestHeader)]
		s.mu.Unlock()
		if gone != nil {
			left := context.AfterFunc(gone, cancel)
			return ctx, func() { left(); release() }
		}
	}
	return ctx, release
}

// elicits reports whether the client can show its user a message.
func elicits(req *mcp.CallToolRequest) bool {
	if req.Session == nil {
		return false
	}
	p := req.Session.InitializeParams()
	return p != nil && p.Capabilities != nil && p.Capabilities.Elicitation != nil
}

// notice asks the client to tell its user that a person must decide. The answer is not
// looked at: a client can give any, and only a signed permission counts.
func (s *Server) notice(req *mcp.CallToolRequest, t Tool, o *outcome) *mcp.CallToolResult {
	message, _ := o.failure["message"].(string)
	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{"approval": &mcp.ElicitParams{Mode: "form", Message: "Approval is required, and you give it on your own terminal. An answer here has no effect. " + message,
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}},
		RequestState: s.state(req, t, time.Now().Add(maxState)),
	}
}

// state says that the notice for this very call was given; only this server can make it.
func (s *Server) state(req *mcp.CallToolRequest, t Tool, until time.Time) string {
	stamp := strconv.FormatInt(until.Unix(), 10)
	mac := hmac.New(sha256.New, s.key[:])
	fmt.Fprintf(mac, "%s\x00%s\x00", stamp, t.Name)
	mac.Write(req.Params.Arguments)
	return stamp + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// stated reports a call that comes back after the notice. It gains nothing by that: the
// same decision is made again.
func (s *Server) stated(req *mcp.CallToolRequest, t Tool) bool {
	stamp, _, ok := strings.Cut(req.Params.RequestState, ".")
	if !ok {
		return len(req.Params.InputResponses) > 0
	}
	n, err := strconv.ParseInt(stamp, 10, 64)
	until := time.Unix(n, 0)
	return err == nil && time.Now().Before(until) && hmac.Equal([]byte(req.Params.RequestState), []byte(s.state(req, t, until)))
}

// progressOf reports the progress of a call at most once a second, if the client wants to
// hear of it.
func progressOf(ctx context.Context, req *mcp.CallToolRequest) func(bytes int, line string) {
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		return nil
	}
	var last time.Time
	return func(bytes int, line string) {
		if time.Since(last) < time.Second {
			return
		}
		last = time.Now()
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(bytes), Message: line})
	}
}

// failed is an error as the model sees it.
func failed(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: string(fault.From(err).JSON())}}}
}

// answered is a document as the result of a call.
func answered(doc any) *mcp.CallToolResult {
	raw, err := json.Marshal(doc)
	if err != nil {
		return failed(err)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(raw)}}, StructuredContent: json.RawMessage(raw)}
}

// ServeStdio answers one client on these streams until it closes them.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	s.stdio = true
	err := s.sdk().Run(ctx, &mcp.IOTransport{Reader: untilEOF{in, s.stop}, Writer: out, MaxLineLength: maxMessage})
	s.Close()
	return err
}

// untilEOF ends all calls when the client closes its side: the SDK waits for them to end
// before it does.
type untilEOF struct {
	io.ReadCloser
	stop func()
}

func (r untilEOF) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil {
		r.stop()
	}
	return n, err
}

// Close ends all calls and waits for them.
func (s *Server) Close() {
	s.stop()
	s.running.Wait()
}
