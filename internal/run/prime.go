package run

import (
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
	"github.com/atip-dev/atip-exec/internal/effects"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/flock"
	"github.com/atip-dev/atip-exec/internal/ledger"
	"github.com/atip-dev/atip-exec/internal/prime"
	"github.com/atip-dev/atip-exec/internal/procstat"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/shims"
)

// How long priming takes and how long its failure is remembered.
const (
	primeTimeout = 5 * time.Second
	primeRetry   = time.Minute
)

// primeEntry is what is kept for a tool, an agent and a session.
type primeEntry struct {
	V        int             `json:"v"`
	At       int64           `json:"at"`    // ms
	Until    int64           `json:"until"` // ms: it is asked again then
	Response json.RawMessage `json:"response,omitempty"`
	Code     string          `json:"code,omitempty"` // of a failure
	Message  string          `json:"message,omitempty"`
}

// primeSettings is "prime" of config.json.
type primeSettings struct {
	Minimum prime.Mode
	Tools   []string
	Timeout time.Duration
}

// primeConfig reads "prime" of config.json of the configuration directory.
func (p *Plan) primeConfig() (primeSettings, error) {
	c := primeSettings{Timeout: primeTimeout, Minimum: prime.Off}
	file := filepath.Join(p.dirs.Config, "config.json")
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

// prime asks each tool of the run that has the Prime Directive, once in a session, and
// holds the run to what it said. It comes after the decision: what is denied starts
// nothing.
func (x *execution) prime() error {
	p := x.plan
	config, err := p.primeConfig()
	if err != nil {
		return err
	}
	var seen []string
	for _, s := range p.steps {
		if s.Primes == nil && slices.Contains(config.Tools, s.Call.Tool) {
			s.Primes = &effects.Primes{}
		}
		if s.Missing != nil || s.Primes == nil || s.ID.Digest == "" || slices.Contains(seen, s.ID.Digest) || p.inside() {
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

func (x *execution) primeStep(s *effects.Step, config primeSettings) error {
	p := x.plan
	asked, _ := prime.ModeByName(p.inv.Prime)
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
	q := prime.Request{AgentID: p.agent(), SessionID: p.primeSession()}
	entry, fresh, err := p.primed(s, q, config.Timeout, x.warn)
	if err != nil {
		return fails(fault.New(errcode.PrimeFailed, s.Call.Tool+" could not be primed: "+err.Error()))
	}
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
	version := p.machine.Getenv("ATIP_AGENT_VERSION")
	if version == "" {
		version = p.inv.Version
	}
	if why := r.TooOld(version); why != "" {
		if err := fails(fault.New(errcode.PrimeAgent, s.Call.Tool+": "+why)); err != nil {
			return err
		}
	}
	if entry := r.IsDeprecated(s.Call.Tool, s.Call.Path); entry != "" {
		f := fault.New(errcode.Deprecated, Quote(append([]string{s.Call.Tool}, s.Call.Path...))+" is deprecated by its tool")
		if len(r.Preferred) > 0 {
			f.WithFix("the tool prefers "+strings.Join(r.Preferred, ", "), s.Call.Tool+" "+r.Preferred[0])
		}
		if err := fails(f); err != nil {
			return err
		}
	}
	if r.Limited {
		wait, err := p.takePrimeToken(s, r)
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

// primeSession is the label of the session, or else of the process that started us.
func (p *Plan) primeSession() string {
	for _, name := range append(SessionVariables(), "BUILDKITE_JOB_ID", "BUILD_ID") {
		if v := p.machine.Getenv(name); v != "" {
			return v
		}
	}
	return "ppid-" + strconv.Itoa(os.Getppid()) + "-" + parentStarted()
}

// parentStarted tells processes apart that had the same number one after the other.
func parentStarted() string {
	parent, err := procstat.Of(os.Getppid())
	if err != nil {
		return "0"
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return parent.Fields[procstat.Start] + "-" + strings.TrimSpace(string(boot))
}

// primed returns what is kept for a tool, or asks it under a lock, so that eight first
// calls at once ask once.
func (p *Plan) primed(s *effects.Step, q prime.Request, timeout time.Duration, warn func(string)) (entry *primeEntry, fresh bool, err error) {
	file := p.primeFile(s, q)
	if e := readPrime(file); e != nil {
		return e, false, nil
	}
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, false, err
	}
	lock, err := os.OpenFile(file+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, err
	}
	defer lock.Close() // which unlocks
	if err := flock.Exclusive(lock); err != nil {
		return nil, false, err
	}
	if e := readPrime(file); e != nil {
		return e, false, nil
	}
	old := keptPrime(file)
	e := p.askPrime(s, q, timeout)
	if old != nil && old.Code == "" && e.Code == "" {
		was, _ := prime.Parse(old.Response)
		now, _ := prime.Parse(e.Response)
		if was != nil && now != nil {
			if changed := now.Changed(was); len(changed) > 0 {
				warn(s.Call.Tool + " changed " + strings.Join(changed, ", ") + " of its directives within the session")
			}
		}
	}
	return e, true, writePrime(file, e)
}

func (p *Plan) primeFile(s *effects.Step, q prime.Request) string {
	sum := sha256.Sum256([]byte(q.AgentID + "\x00" + q.SessionID))
	return filepath.Join(p.dirs.State, "prime", s.ID.Digest, hex.EncodeToString(sum[:])+".json")
}

// keptPrime reads an entry, whatever its age; nil if there is none that can be read.
func keptPrime(file string) *primeEntry {
	f, err := regular.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 2*prime.MaxResponse))
	var e primeEntry
	if err != nil || json.Unmarshal(raw, &e) != nil || e.V != 1 {
		return nil
	}
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
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return approve.Replace(file, raw)
}

// askPrime starts the tool with prime, through the whole of atip-exec: policy and sandbox
// are those of that command.
func (p *Plan) askPrime(s *effects.Step, q prime.Request, timeout time.Duration) *primeEntry {
	now := time.Now()
	e := &primeEntry{V: 1, At: now.UnixMilli(), Until: now.Add(primeRetry).UnixMilli()}
	fail := func(code, msg string) *primeEntry {
		e.Code, e.Message = code, msg
		return e
	}
	raw, f := p.runPrime(q.Words(s.Argv[0], s.Primes.Metadata), timeout)
	if f != nil {
		code := f.Code
		if code[:2] != "E2" && code != errcode.PrimeAnswer {
			code = errcode.PrimeFailed
		}
		return fail(code, s.Call.Tool+" could not be primed: "+f.Message)
	}
	r, err := prime.Parse(raw)
	if err != nil {
		return fail(errcode.PrimeAnswer, s.Call.Tool+": "+err.Error())
	}
	e.Response = raw
	until := now.Add(prime.MaxAge)
	if !r.ExpiresAt.IsZero() && r.ExpiresAt.Before(until) {
		until = r.ExpiresAt
	}
	// An answer that has expired already counts for this call.
	e.Until = until.UnixMilli()
	return e
}

// runPrime runs a prime command and returns what it printed.
func (p *Plan) runPrime(words []string, timeout time.Duration) ([]byte, *fault.Fault) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout+time.Second)
	defer cancel()
	args := []string{"--output", "json", "--timeout", strconv.FormatInt(timeout.Milliseconds(), 10) + "ms", "--kill-after", "200ms", "--stdin", "null"}
	for _, file := range p.inv.Policies {
		args = append(args, "--policy", file)
	}
	for _, name := range p.inv.Profiles {
		args = append(args, "--profile", name)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(p.machine.Self), "atip-exec"), append(append(args, "--"), words...)...)
	cmd.Env, cmd.Dir = p.machine.Environ, p.Cwd
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
func (p *Plan) takePrimeToken(s *effects.Step, r *prime.Response) (wait time.Duration, err error) {
	wait, err = ledger.Draw(p.ledgerDir(), "prime:"+s.ID.Digest, r.Capacity(), r.PerSecond())
	if errors.Is(err, fs.ErrPermission) {
		return 0, nil // inside another run, which took its own
	}
	return wait, err
}

// Identity is the agent and the session that this process belongs to: labels, which give
// no authority.
func Identity(m Machine) (agent, session string) {
	p := &Plan{machine: m}
	return p.agent(), p.primeSession()
}

// Prime asks a tool for its directives, or finds what it said in this session, and returns
// its response.
func Prime(tool string, q prime.Request, m Machine) (json.RawMessage, error) {
	p, err := MakePlan(Invocation{Argv: []string{tool, "prime"}}, m)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	config, err := p.primeConfig()
	if err != nil {
		return nil, err
	}
	s := p.steps[0]
	if s.Primes == nil && slices.Contains(config.Tools, s.Call.Tool) {
		s.Primes = &effects.Primes{}
	}
	switch {
	case s.Missing != nil:
		return nil, s.Missing
	case s.Primes == nil:
		// Its command prime may be real work.
		return nil, fault.New(errcode.PrimeFailed, s.Call.Tool+" does not say that it has the Prime Directive").WithFix("name it under prime.tools of config.json if it has", `"prime": {"tools": ["`+s.Call.Tool+`"]}`)
	}
	entry, _, err := p.primed(s, q, config.Timeout, func(string) {})
	if err != nil {
		return nil, fault.New(errcode.PrimeFailed, s.Call.Tool+" could not be primed: "+err.Error())
	}
	if entry.Code != "" {
		return nil, fault.New(entry.Code, entry.Message)
	}
	return entry.Response, nil
}
