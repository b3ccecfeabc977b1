// Package priming asks the tools of a run that have the Prime Directive for their directives, once in a
// session, and holds the run to what they said.
package priming

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/flock"
	"github.com/atip-dev/atip-exec/internal/ledger"
	"github.com/atip-dev/atip-exec/internal/plan"
	"github.com/atip-dev/atip-exec/internal/prime"
	"github.com/atip-dev/atip-exec/internal/quote"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/step"
	"github.com/atip-dev/atip-exec/shims"
)

// defaultTimeout is how long priming takes if config.json says nothing else.
const defaultTimeout = 5 * time.Second

// settings are "prime" of config.json.
type settings struct {
	Minimum prime.Mode
	Tools   []string
	Timeout time.Duration
}

// readSettings reads "prime" of config.json of the configuration directory.
func readSettings(p *plan.Plan) (settings, error) {
	c := settings{Timeout: defaultTimeout, Minimum: prime.Off}
	file := filepath.Join(p.Dirs.Config, "config.json")
	root, err := shims.ReadSettings(file, errcode.MetadataStructure)
	if err != nil || root == nil {
		return c, err
	}
	section := root.Get("prime")
	if section == nil {
		return c, nil
	}
	bad := func(line int, msg string) error {
		return fault.New(errcode.MetadataStructure, file+":"+strconv.Itoa(line)+": "+msg).WithFix("correct the object prime", `"prime": {"minimum": "auto", "tools": ["mytool"], "timeoutMs": 5000}`)
	}
	for _, m := range section.Items {
		switch m.Key {
		case "minimum":
			mode, ok := prime.ModeByName(m.Text)
			if !ok || m.Text == "" {
				return c, bad(m.Line, "prime.minimum is not auto, enforce or off")
			}
			c.Minimum = mode
		case "tools":
			for _, e := range m.Items {
				c.Tools = append(c.Tools, e.Text)
			}
		case "timeoutMs":
			n, err := strconv.Atoi(m.Text)
			if err != nil || n < 1 || n > 60_000 {
				return c, bad(m.Line, "prime.timeoutMs is not a number from 1 to 60000")
			}
			c.Timeout = time.Duration(n) * time.Millisecond
		default:
			return c, bad(m.KeyLine, "prime has no key "+m.Key)
		}
	}
	return c, nil
}

// primeRetry is how long a failure of it is remembered.
const primeRetry = time.Minute

// primeFormat is the version of the files that keep answers.
const primeFormat = 2

// primeEntry is what is kept for a tool, an agent and a session: one line of JSON, and the
// response behind it as the tool wrote it, so that it is read once.
type primeEntry struct {
	V        int    `json:"v"`
	At       int64  `json:"at"`             // ms
	Until    int64  `json:"until"`          // ms: it is asked again then
	Code     string `json:"code,omitempty"` // of a failure
	Message  string `json:"message,omitempty"`
	Response []byte `json:"-"`
}

// Priming is that of one run.
type Priming struct {
	Tools []Tool // whose directives hold for this run, for its record

	plan  *plan.Plan
	warn  func(string)
	clean func(string) string // takes secrets out of what a tool says
	own   *ownPrime           // what the caller asks a tool itself
}

// New is the priming of a plan.
func New(p *plan.Plan, warn func(string), clean func(string) string) *Priming {
	return &Priming{plan: p, warn: warn, clean: clean}
}

// Ask asks each tool of the run that has the Prime Directive, once in a session, and
// holds the run to what it said. It comes after the decision: what is denied starts
// nothing.
func (x *Priming) Ask() error {
	p := x.plan
	config, err := readSettings(p)
	if err != nil {
		return err
	}
	var seen []string
	for _, s := range p.Steps {
		if s.Primes == nil && slices.Contains(config.Tools, s.Call.Tool) {
			s.Primes = &step.Primes{}
		}
		if s.Missing != nil || s.Primes == nil || s.ID.Digest == "" || slices.Contains(seen, s.ID.Digest) || p.Inside() {
			continue
		}
		seen = append(seen, s.ID.Digest)
		if len(s.Call.Path) > 0 && s.Call.Path[0] == "prime" || len(s.Argv) > 1 && s.Argv[1] == "prime" {
			continue // what the caller asks itself
		}
		if err := x.primeStep(s, config); err != nil {
			return err
		}
	}
	return nil
}

func (x *Priming) primeStep(s *step.Step, config settings) error {
	p := x.plan
	asked, _ := prime.ModeByName(p.Invocation.Prime)
	mode := asked.AtLeast(config.Minimum)
	if mode == prime.Off {
		return nil
	}
	// fails is an error where directives are enforced, and a warning elsewhere.
	fails := func(f *fault.Fault) error {
		if mode == prime.Enforce {
			return f.With("tool", s.Call.Tool)
		}
		x.warn(f.Message)
		return nil
	}
	q := prime.Request{AgentID: p.Agent(), SessionID: p.PrimeSession()}
	entry, fresh, changed, err := primed(p, s, q, config.Timeout)
	if err != nil {
		return fails(fault.New(errcode.PrimeFailed, s.Call.Tool+" could not be primed: "+err.Error()))
	}
	x.notePrime(Tool{s.Call.Tool, fresh, changed, entry.Code})
	if entry.Code != "" {
		return fails(fault.New(entry.Code, entry.Message))
	}
	r, err := prime.Parse(entry.Response)
	if err != nil {
		return fails(fault.From(err))
	}
	if said := r.Said(); fresh && said != "" {
		x.warn(s.Call.Tool + " says: " + x.clean(said))
	}
	version := p.Machine.Getenv("ATIP_AGENT_VERSION")
	if version == "" {
		version = p.Invocation.Version
	}
	if why := r.TooOld(version); why != "" {
		if err := fails(fault.New(errcode.PrimeAgent, s.Call.Tool+": "+why)); err != nil {
			return err
		}
	}
	if entry := r.IsDeprecated(s.Call.Tool, s.Call.Path); entry != "" {
		f := fault.New(errcode.Deprecated, quote.Words(append([]string{s.Call.Tool}, s.Call.Path...))+" is deprecated by its tool")
		if len(r.Preferred) > 0 {
			f.WithFix("the tool prefers "+strings.Join(r.Preferred, ", "), s.Call.Tool+" "+r.Preferred[0])
		}
		if err := fails(f); err != nil {
			return err
		}
	}
	if r.Limited {
		wait, err := takePrimeToken(p, s, r)
		if err == nil && wait > 0 {
			err = fault.New(errcode.RateLimit, s.Call.Tool+" asks for "+strconv.FormatFloat(r.PerMinute, 'g', -1, 64)+" calls in a minute at most: wait "+wait.Round(time.Millisecond).String()).
				With("retry_after_ms", wait.Milliseconds()+1)
		}
		if err != nil {
			return fails(fault.From(err))
		}
	}
	return nil
}

// primed returns what is kept for a tool, or asks it under a lock, so that eight first
// calls at once ask once.
func primed(p *plan.Plan, s *step.Step, q prime.Request, timeout time.Duration) (entry *primeEntry, fresh bool, changed []string, err error) {
	file := primeFile(p, s, q)
	if e := readPrime(file); e != nil {
		return e, false, nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, false, nil, err
	}
	lock, err := os.OpenFile(file+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, nil, err
	}
	defer lock.Close() // which unlocks
	if err := flock.Exclusive(lock); err != nil {
		return nil, false, nil, err
	}
	if e := readPrime(file); e != nil {
		return e, false, nil, nil
	}
	old := keptPrime(file)
	e := askPrime(p, s, q, timeout)
	return e, true, e.changed(old), writePrime(file, e)
}

// changed names what differs from an earlier entry of the session, nil if either has no answer.
func (e *primeEntry) changed(old *primeEntry) []string {
	if old == nil || old.Code != "" || e.Code != "" {
		return nil
	}
	was, err := prime.Parse(old.Response)
	if err != nil {
		return nil
	}
	now, err := prime.Parse(e.Response)
	if err != nil {
		return nil
	}
	return now.Changed(was)
}

// Tool is what the record of a run says of the directives of one tool.
type Tool struct {
	Tool    string   `json:"tool"`
	Asked   bool     `json:"asked,omitempty"`   // by this run
	Changed []string `json:"changed,omitempty"` // since the earlier answer of the session
	Failed  string   `json:"failed,omitempty"`  // the code of what is remembered in place of an answer
}

func (x *Priming) notePrime(t Tool) {
	x.Tools = append(x.Tools, t)
	if len(t.Changed) > 0 {
		x.warn(t.Tool + " changed " + strings.Join(t.Changed, ", ") + " of its directives within the session")
	}
}

// ownPrime keeps what a tool answers its caller, who asks it by the words of the RFC.
type ownPrime struct {
	step    *step.Step
	request prime.Request
	to      io.Writer
	kept    []byte
}

// Write implements io.Writer.
func (o *ownPrime) Write(b []byte) (int, error) {
	// One byte more than an answer may have says that it is too long.
	o.kept = append(o.kept, b[:min(len(b), prime.MaxResponse+1-len(o.kept))]...)
	return o.to.Write(b)
}

// Watch keeps the output of a run that is the prime of one tool, with both ids.
func (x *Priming) Watch(stdout io.Writer) io.Writer {
	p := x.plan
	if len(p.Steps) != 1 || p.Inside() || p.Steps[0].Primes == nil || p.Steps[0].ID.Digest == "" {
		return stdout
	}
	s := p.Steps[0]
	if len(s.Call.Path) != 1 || s.Call.Path[0] != "prime" {
		return stdout
	}
	var q prime.Request
	for _, o := range s.Call.Options {
		switch o.Name {
		case "agent-id":
			q.AgentID = o.Value
		case "session-id":
			q.SessionID = o.Value
		}
	}
	if q.Check() == nil {
		x.own = &ownPrime{step: s, request: q, to: stdout}
		return x.own
	}
	return stdout
}

// Keep makes a good answer to the caller the one that later calls of the session find.
func (x *Priming) Keep() {
	o := x.own
	if o == nil {
		return
	}
	now := time.Now()
	e := answeredPrime(now, o.kept)
	if e.Code != "" {
		return
	}
	file := primeFile(x.plan, o.step, o.request)
	changed := e.changed(keptPrime(file))
	// No lock: a run that primes holds it while it waits for the prime that it started.
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = writePrime(file, e)
	}
	if err != nil {
		x.warn("the directives of " + o.step.Call.Tool + " are not kept: " + err.Error())
		return
	}
	x.notePrime(Tool{Tool: o.step.Call.Tool, Asked: true, Changed: changed})
}

func primeFile(p *plan.Plan, s *step.Step, q prime.Request) string {
	sum := sha256.Sum256([]byte(q.AgentID + "\x00" + q.SessionID))
	return filepath.Join(p.Dirs.State, "prime", s.ID.Digest, hex.EncodeToString(sum[:])+".json")
}

// keptPrime reads an entry, whatever its age; nil if there is none that can be read.
func keptPrime(file string) *primeEntry {
	raw, err := regular.Read(file, 2*prime.MaxResponse)
	head, response, whole := bytes.Cut(raw, []byte{'\n'})
	var e primeEntry
	if err != nil || !whole || json.Unmarshal(head, &e) != nil || e.V != primeFormat {
		return nil
	}
	e.Response = response
	return &e
}

func readPrime(file string) *primeEntry {
	e := keptPrime(file)
	now := time.Now().UnixMilli()
	if e == nil || e.Until <= now || e.At > now+60_000 || now-e.At > prime.MaxAge.Milliseconds() {
		return nil
	}
	return e
}

func writePrime(file string, e *primeEntry) error {
	head, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return approve.Replace(file, append(append(head, '\n'), e.Response...))
}

// askPrime starts the tool with prime, through the whole of atip-exec: policy and sandbox
// are those of that command.
func askPrime(p *plan.Plan, s *step.Step, q prime.Request, timeout time.Duration) *primeEntry {
	now := time.Now()
	raw, f := runPrime(p, q.Words(s.Argv[0], s.Primes.Metadata), timeout)
	if f == nil {
		e := answeredPrime(now, raw)
		if e.Code != "" {
			e.Message = s.Call.Tool + ": " + e.Message
		}
		return e
	}
	code := f.Code
	if code[:2] != "E2" && code != errcode.PrimeAnswer {
		code = errcode.PrimeFailed
	}
	return failedPrime(now, code, s.Call.Tool+" could not be primed: "+f.Message)
}

func failedPrime(now time.Time, code, msg string) *primeEntry {
	return &primeEntry{V: primeFormat, At: now.UnixMilli(), Until: now.Add(primeRetry).UnixMilli(), Code: code, Message: msg}
}

// answeredPrime is the entry of what a tool printed.
func answeredPrime(now time.Time, raw []byte) *primeEntry {
	r, err := prime.Parse(raw)
	if err != nil {
		return failedPrime(now, errcode.PrimeAnswer, err.Error())
	}
	until := now.Add(prime.MaxAge)
	if !r.ExpiresAt.IsZero() && r.ExpiresAt.Before(until) {
		until = r.ExpiresAt
	}
	// An answer that has expired already counts for this call.
	return &primeEntry{V: primeFormat, At: now.UnixMilli(), Until: until.UnixMilli(), Response: raw}
}

// runPrime runs a prime command and returns what it printed.
func runPrime(p *plan.Plan, words []string, timeout time.Duration) ([]byte, *fault.Fault) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout+time.Second)
	defer cancel()
	args := []string{"--output", "json", "--timeout", strconv.FormatInt(timeout.Milliseconds(), 10) + "ms", "--kill-after", "200ms", "--stdin", "null"}
	for _, file := range p.Invocation.Policies {
		args = append(args, "--policy", file)
	}
	for _, name := range p.Invocation.Profiles {
		args = append(args, "--profile", name)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(p.Machine.Self), "atip-exec"), append(append(args, "--"), words...)...)
	cmd.Env, cmd.Dir = p.Machine.Environ, p.Cwd
	out, err := cmd.Output()
	var envelope struct {
		Result struct {
			ExitCode  int             `json:"exit_code"`
			Stdout    string          `json:"stdout"`
			Truncated map[string]bool `json:"truncated"`
		} `json:"result"`
		Error *fault.Fault `json:"error"`
	}
	switch {
	case json.Unmarshal(out, &envelope) != nil:
		if err == nil {
			err = errors.New("it gave no result")
		}
		return nil, fault.New(errcode.PrimeFailed, err.Error())
	case envelope.Error != nil:
		return nil, envelope.Error
	case envelope.Result.ExitCode != 0:
		return nil, fault.New(errcode.PrimeFailed, "prime ended with status "+strconv.Itoa(envelope.Result.ExitCode))
	case envelope.Result.Truncated["stdout"]:
		return nil, fault.New(errcode.PrimeAnswer, "the response is longer than 256 KiB")
	}
	return []byte(envelope.Result.Stdout), nil
}

// takePrimeToken takes one token from the bucket of the tool's own limit.
func takePrimeToken(p *plan.Plan, s *step.Step, r *prime.Response) (wait time.Duration, err error) {
	wait, err = ledger.Draw(p.LedgerDir(), "prime:"+s.ID.Digest, r.Capacity(), r.PerSecond())
	if errors.Is(err, fs.ErrPermission) {
		return 0, nil // inside another run, which took its own
	}
	return wait, err
}

// Of asks a tool for its directives, or finds what it said in this session, and returns
// its response.
func Of(tool string, q prime.Request, m caller.Machine) (json.RawMessage, error) {
	p, err := plan.Make(plan.Invocation{Argv: []string{tool, "prime"}}, m)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	config, err := readSettings(p)
	if err != nil {
		return nil, err
	}
	s := p.Steps[0]
	if s.Primes == nil && slices.Contains(config.Tools, s.Call.Tool) {
		s.Primes = &step.Primes{}
	}
	switch {
	case s.Missing != nil:
		return nil, s.Missing
	case s.Primes == nil:
		// Its command prime may be real work.
		return nil, fault.New(errcode.PrimeFailed, s.Call.Tool+" does not say that it has the Prime Directive").WithFix("name it under prime.tools of config.json if it has", `"prime": {"tools": ["`+s.Call.Tool+`"]}`)
	}
	entry, _, _, err := primed(p, s, q, config.Timeout)
	if err != nil {
		return nil, fault.New(errcode.PrimeFailed, s.Call.Tool+" could not be primed: "+err.Error())
	}
	if entry.Code != "" {
		return nil, fault.New(entry.Code, entry.Message)
	}
	return entry.Response, nil
}
