package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/excerpt"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// grace is how long atip-exec has to end a process tree before it is killed itself.
const grace = 8 * time.Second

// outcome is how a job ended.
type outcome struct {
	stdout, stderr excerpt.Ends
	last           map[string]any // the last event: of type exit or error
	document       json.RawMessage
	failure        map[string]any // the error object of atip-exec, nil if there is none
}

// event is one line of `atip-exec --output jsonl`.
type event struct {
	Type string `json:"type"`
	Data string `json:"data"`
	B64  []byte `json:"data_b64"`
}

// carryOut starts atip-exec and reads its events until it has ended.
func (s *Server) carryOut(ctx context.Context, job *Job, session string, progress func(int, string)) *outcome {
	// The parent-death signal is that of the thread which started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	o := &outcome{stdout: excerpt.Ends{Limit: maxStream}, stderr: excerpt.Ends{Limit: maxStream}}
	mode := "jsonl"
	if job.Plan {
		mode = "json"
	}
	cmd := exec.CommandContext(ctx, s.config.Program, append([]string{"--output", mode}, job.Words...)...)
	cmd.Env = append(append([]string{}, s.config.Environ...), "ATIP_SESSION_ID="+session)
	cmd.Cancel = func() error { return cmd.Process.Signal(ending) }
	cmd.WaitDelay = grace
	cmd.SysProcAttr = dieWithUs()
	var messages tail
	cmd.Stderr = &messages
	if job.Stdin != "" {
		cmd.Stdin = strings.NewReader(job.Stdin)
	}
	if job.Code != "" {
		code, err := codeFile(job.Code)
		if err != nil {
			o.fail(fault.New(errcode.OutOfResources, "pipe: "+err.Error()))
			return o
		}
		defer code.Close()
		cmd.ExtraFiles = []*os.File{code}
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		o.fail(fault.New(errcode.NoCompanion, s.config.Program+": "+err.Error()).WithFix("install `atip-exec` beside `atip`", ""))
		return o
	}
	if job.Plan {
		raw, _ := io.ReadAll(io.LimitReader(out, maxMessage))
		_, _ = io.Copy(io.Discard, out)
		if json.Valid(raw) {
			o.document = raw
		}
	} else {
		o.events(out, progress)
	}
	err = cmd.Wait()
	o.settle(err, messages.text(), ctx)
	return o
}

// codeFile hands code to the process: a pipe that a goroutine fills.
func codeFile(code string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.WriteString(w, code) // a process that ends early reads no further
		w.Close()
	}()
	return r, nil
}

// events reads the lines of a run.
func (o *outcome) events(from io.Reader, progress func(int, string)) {
	in := bufio.NewReaderSize(from, 64<<10)
	total := 0
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			// An event of 64 KiB of data is longer in JSON.
			long := append([]byte{}, line...)
			for errors.Is(err, bufio.ErrBufferFull) && len(long) < maxMessage {
				line, err = in.ReadSlice('\n')
				long = append(long, line...)
			}
			line = long
		}
		var e event
		if json.Unmarshal(line, &e) == nil {
			data := e.B64
			if data == nil {
				data = []byte(e.Data)
			}
			switch e.Type {
			case "stdout", "stderr":
				to := &o.stdout
				if e.Type == "stderr" {
					to = &o.stderr
				}
				to.Write(data)
				if total += len(data); progress != nil {
					progress(total, lastLine(data))
				}
			case "exit", "error":
				o.last = nil
				_ = json.Unmarshal(line, &o.last)
			}
		}
		if err != nil {
			_, _ = io.Copy(io.Discard, in)
			return
		}
	}
}

func lastLine(data []byte) string {
	text := strings.TrimRight(string(data), "\n")
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}

// settle finds the error of a run that failed: in its last event, or else in what it said
// on standard error.
func (o *outcome) settle(err error, messages string, ctx context.Context) {
	if e, ok := o.last["error"].(map[string]any); ok {
		o.failure = e
		return
	}
	if o.last != nil || o.document != nil && err == nil {
		return
	}
	for _, line := range strings.Split(messages, "\n") {
		var said struct {
			Error map[string]any `json:"error"`
		}
		if json.Unmarshal([]byte(line), &said) == nil && said.Error != nil {
			o.failure = said.Error
		}
	}
	switch {
	case o.failure != nil, o.document != nil:
	case ctx.Err() != nil:
		o.fail(fault.New(errcode.Cancelled, "cancelled"))
	default:
		text := "atip-exec ended without a result"
		if err != nil {
			text += ": " + err.Error()
		}
		o.fail(fault.New(errcode.Internal, text))
	}
}

func (o *outcome) fail(f *fault.Fault) {
	_ = json.Unmarshal(f.JSON(), &struct {
		Error *map[string]any `json:"error"`
	}{&o.failure})
}

// result is what the model sees of a run.
func (o *outcome) result(job *Job) *mcp.CallToolResult {
	res := &mcp.CallToolResult{Content: []mcp.Content{}}
	text := func(s string) { res.Content = append(res.Content, &mcp.TextContent{Text: s}) }
	if o.failure != nil {
		res.IsError = true
		raw, _ := json.Marshal(map[string]any{"error": o.failure})
		text(string(raw))
	}
	if job.Plan {
		if o.document != nil {
			text(string(o.document))
			res.StructuredContent = o.document
		}
		return res
	}
	out, outCut := kept(&o.stdout)
	errors, errCut := kept(&o.stderr)
	status := 0
	if n, ok := o.last["exit_code"].(float64); ok {
		status = int(n)
	}
	res.IsError = res.IsError || status != 0
	structured := map[string]any{"exit_code": status, "stdout": out, "truncated": map[string]bool{"stdout": outCut, "stderr": errCut}}
	if meta, ok := o.last["meta"].(map[string]any); ok {
		structured["decision"], structured["effects"] = meta["decision"], meta["effects"]
	}
	if r, ok := o.last["redactions"]; ok {
		structured["redactions"] = r
	}
	if o.failure != nil && out == "" && errors == "" {
		return res // nothing ran
	}
	if out != "" || errors == "" && status == 0 {
		text(out)
	}
	if errors != "" {
		text("[stderr]\n" + errors)
	}
	if status != 0 {
		text("[exit status " + strconv.Itoa(status) + "]")
	}
	if !job.Parsed {
		res.StructuredContent = structured
		return res
	}
	if doc := json.RawMessage(strings.TrimSpace(out)); !outCut && len(doc) > 0 && json.Valid(doc) {
		if doc[0] != '{' {
			doc, _ = json.Marshal(map[string]json.RawMessage{"result": doc})
		}
		res.StructuredContent = doc
	}
	return res
}

// kept is the part of a stream that was kept, as UTF-8.
func kept(stream *excerpt.Ends) (string, bool) {
	data, truncated := stream.Bytes()
	return strings.ToValidUTF8(string(data), "\uFFFD"), truncated
}

// tail keeps the end of what atip-exec says on standard error.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if len(t.b) > 128<<10 {
		t.b = append(t.b[:0], t.b[len(t.b)-64<<10:]...)
	}
	return len(p), nil
}

func (t *tail) text() string { return string(t.b) }
