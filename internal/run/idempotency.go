package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/flock"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/internal/status"
)

// Bounds of what is kept under an idempotency key.
const (
	keyAge    = 24 * time.Hour
	keyStream = 1 << 20 // bytes of each stream
	keyWait   = 10 * time.Minute
)

// keyRecord is what is kept under an idempotency key. It says started from just before the
// child is started until its end, so that a run which was killed leaves that behind.
type keyRecord struct {
	V           int    `json:"v"`
	Fingerprint string `json:"fingerprint"`
	At          int64  `json:"at"` // ms
	Run         string `json:"run"`
	State       string `json:"state"` // started, finished
	ExitCode    int    `json:"exit_code"`
	Signal      string `json:"signal,omitempty"`
	Stdout      []byte `json:"stdout,omitempty"`
	Stderr      []byte `json:"stderr,omitempty"`
	Truncated   bool   `json:"truncated,omitempty"`
}

// keyClaim is the hold of this run on a key, until it ends.
type keyClaim struct {
	file           string
	lock           *os.File
	record         keyRecord
	stdout, stderr keptStream
}

// keptStream keeps the beginning of what passes through it.
type keptStream struct {
	to        io.Writer
	kept      []byte
	truncated bool
}

func (k *keptStream) Write(p []byte) (int, error) {
	if room := keyStream - len(k.kept); room < len(p) {
		k.kept, k.truncated = append(k.kept, p[:room]...), true
	} else {
		k.kept = append(k.kept, p...)
	}
	return k.to.Write(p)
}

// claim takes the idempotency key of the run, if it has one. Replayed says that an earlier
// run has done the work, and that its output and status are those of this one. A refusal
// that a person could lift does not matter then: nothing is started.
func (x *execution) claim(refusal error) (replayed bool, err error) {
	p := x.plan
	key := p.inv.IdempotencyKey
	if key == "" || refusal != nil && fault.From(refusal).Code != errcode.ApprovalRequired {
		return false, nil
	}
	sum := sha256.Sum256([]byte(key))
	dir := filepath.Join(p.dirs.State, "idempotency")
	c := &keyClaim{file: filepath.Join(dir, hex.EncodeToString(sum[:])+".json")}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fault.New(errcode.AuditWrite, "--idempotency-key: "+err.Error()).WithFix("use the key outside the parent run", "")
	}
	if c.lock, err = os.OpenFile(c.file+".lock", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return false, fault.New(errcode.AuditWrite, "--idempotency-key: "+err.Error()).WithFix("use the key outside the parent run", "")
	}
	wait := keyWait
	if limit := p.limit(); limit > 0 {
		wait = min(wait, limit)
	}
	if !flock.Within(c.lock, wait) {
		c.lock.Close()
		return false, fault.New(errcode.IdempotencyBusy, "another run with this idempotency key has not ended").With("retry_after_ms", int64(1000))
	}
	x.claimed = c // from here on the end of the run gives the lock back
	c.record = keyRecord{V: 1, Fingerprint: p.fingerprint(), At: p.began.UnixMilli(), Run: p.Run, State: "started"}
	old := readKey(c.file)
	switch {
	case old == nil:
		return false, nil
	case old.Fingerprint != c.record.Fingerprint:
		return false, fault.New(errcode.IdempotencyReused, "the idempotency key was used for another command, directory or input").With("run", old.Run)
	case old.State == "finished":
		x.replay(old)
		return true, nil
	case !p.idempotent():
		return false, fault.New(errcode.IdempotencyUnknown, "an earlier run with this idempotency key was ended before its result was known").With("run", old.Run)
	}
	return false, nil
}

// replay shows what the earlier run showed.
func (x *execution) replay(old *keyRecord) {
	x.status.Child = &status.Child{ExitCode: old.ExitCode, Signal: old.Signal}
	x.note("replayed", old.Run)
	_, _ = x.out.Stdout.Write(old.Stdout)
	_, _ = x.out.Stderr.Write(old.Stderr)
	if old.Truncated {
		x.warn("of the output of the earlier run only the first MiB was kept")
	}
}

// hold records that the child is about to start, and begins to keep its output.
func (c *keyClaim) hold(x *execution) error {
	if c == nil {
		return nil
	}
	c.stdout.to, c.stderr.to = x.out.Stdout, x.out.Stderr
	x.out.Stdout, x.out.Stderr = &c.stdout, &c.stderr
	return c.write()
}

// release records how it ended and gives the key back. What never started leaves nothing.
func (c *keyClaim) release(x *execution) {
	if c == nil {
		return
	}
	defer c.lock.Close()
	switch {
	case c.stdout.to == nil:
	case x.proc == nil:
		_ = os.Remove(c.file)
	case x.killed || x.status.Child == nil:
		// Its outcome is not that of the command.
	default:
		c.record.State, c.record.ExitCode, c.record.Signal = "finished", x.status.Child.ExitCode, x.status.Child.Signal
		c.record.Stdout, c.record.Stderr, c.record.Truncated = c.stdout.kept, c.stderr.kept, c.stdout.truncated || c.stderr.truncated
		if err := c.write(); err != nil {
			x.warn("the result is not kept under its idempotency key: " + err.Error())
		}
	}
}

func (c *keyClaim) write() error {
	raw, err := json.Marshal(c.record)
	if err == nil {
		err = approve.Replace(c.file, raw)
	}
	if err != nil {
		return fault.New(errcode.AuditWrite, "--idempotency-key: "+err.Error())
	}
	return nil
}

func readKey(file string) *keyRecord {
	f, err := regular.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 4*keyStream))
	var r keyRecord
	if err != nil || json.Unmarshal(raw, &r) != nil || r.V != 1 {
		// A file that cannot be read is of a run whose result is not known.
		return &keyRecord{State: "started"}
	}
	if age := time.Since(time.UnixMilli(r.At)); age > keyAge {
		return nil
	}
	return &r
}

// fingerprint is what must be the same for a key to mean the same.
func (p *Plan) fingerprint() string {
	cwd, err := filepath.EvalSymlinks(p.Cwd)
	if err != nil {
		cwd = p.Cwd
	}
	raw, _ := json.Marshal([]any{p.inv.Argv, p.inv.IsShell, p.inv.Shell, p.inv.ShellArgs, p.inv.ShellSet, cwd, p.steps[0].ID.Digest, p.machine.UID, p.boundStdin(), p.inv.Ceiling})
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// idempotent reports that all commands of the run can be repeated.
func (p *Plan) idempotent() bool {
	for _, s := range p.steps {
		f := s.Call.Effects[atip.Idempotent]
		// What is said of a builtin says nothing of a file that it is redirected to.
		redirected := strings.HasPrefix(f.Source, "shell:") && s.Call.Effects[atip.Write].Value != atip.No
		if f.Value != atip.Yes || redirected {
			return false
		}
	}
	return true
}

// CheckKey says what is wrong with an idempotency key.
func CheckKey(key string) error {
	if len(key) < 1 || len(key) > 128 {
		return errors.New("it has " + strconv.Itoa(len(key)) + " characters, not 1 to 128")
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] >= 0x7f {
			return errors.New("it holds a blank or a character that is not ASCII")
		}
	}
	return nil
}
