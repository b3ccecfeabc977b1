// Package idempotency keeps what a run showed and how it ended under the key that its caller gave
// it, so that a repeated call of the same command is answered and not repeated.
package idempotency

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/internal/flock"
	"github.com/atip-dev/atip-exec/internal/regular"
)

// Bounds of what is kept under a key.
const (
	maxAge    = 24 * time.Hour
	maxStream = 1 << 20 // bytes of each stream

	// MaxWait is how long a run waits for another one with the same key.
	MaxWait = 10 * time.Minute
)

// Record is what is kept under a key. It says started from just before the child is started
// until its end, so that a run which was killed leaves that behind.
type Record struct {
	V           int    `json:"v"`
	Fingerprint string `json:"fingerprint"` // what must be the same for a key to mean the same
	At          int64  `json:"at"`          // ms
	Run         string `json:"run"`
	State       string `json:"state"` // started, finished
	ExitCode    int    `json:"exit_code"`
	Signal      string `json:"signal,omitempty"`
	Stdout      []byte `json:"stdout,omitempty"`
	Stderr      []byte `json:"stderr,omitempty"`
	Truncated   bool   `json:"truncated,omitempty"`
}

// Finished reports that the run ended by itself, and how is known.
func (r *Record) Finished() bool { return r.State == "finished" }

// Claim is the hold of a run on a key, until it ends.
type Claim struct {
	file           string
	lock           *os.File
	record         Record
	stdout, stderr stream
}

// stream keeps the beginning of what passes through it.
type stream struct {
	to        io.Writer
	kept      []byte
	truncated bool
}

func (k *stream) Write(p []byte) (int, error) {
	if room := maxStream - len(k.kept); room < len(p) {
		k.kept, k.truncated = append(k.kept, p[:room]...), true
	} else {
		k.kept = append(k.kept, p...)
	}
	return k.to.Write(p)
}

// Take takes a key for a run that began at a time, and returns what an earlier run has left
// under it: nil if none did. It waits so long for a run that holds the key, and asks for the
// fingerprint then. A key that was used for something else is an error, and the claim then is
// to be closed all the same, if there is one.
func Take(dir, key string, fingerprint func() string, run string, began time.Time, wait time.Duration) (*Claim, *Record, error) {
	hash := sha256.Sum256([]byte(key))
	c := &Claim{file: filepath.Join(dir, hex.EncodeToString(hash[:])+".json"),
		record: Record{V: 1, At: began.UnixMilli(), Run: run, State: "started"}}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		c.lock, err = os.OpenFile(c.file+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return nil, nil, fault.New(errcode.AuditWrite, "--idempotency-key: "+err.Error()).WithFix("use the key outside the parent run", "")
	}
	if !flock.Within(c.lock, wait) {
		c.lock.Close()
		return nil, nil, fault.New(errcode.IdempotencyBusy, "another run with this idempotency key has not ended").With("retry_after_ms", int64(1000))
	}
	c.record.Fingerprint = fingerprint()
	old := read(c.file)
	if old != nil && old.Fingerprint != c.record.Fingerprint {
		return c, nil, fault.New(errcode.IdempotencyReused, "the idempotency key was used for another command, directory or input").With("run", old.Run)
	}
	return c, old, nil
}

// Start records that the child is about to start, and returns the writers that keep what it
// shows on the way to those given.
func (c *Claim) Start(stdout, stderr io.Writer) (out, err io.Writer, failed error) {
	c.stdout.to, c.stderr.to = stdout, stderr
	return &c.stdout, &c.stderr, c.write()
}

// Started reports that Start was called.
func (c *Claim) Started() bool { return c.stdout.to != nil }

// Forget leaves nothing under the key: the child was not started after all.
func (c *Claim) Forget() { _ = os.Remove(c.file) }

// Finish records how the child ended.
func (c *Claim) Finish(exitCode int, signal string) error {
	c.record.State, c.record.ExitCode, c.record.Signal = "finished", exitCode, signal
	c.record.Stdout, c.record.Stderr, c.record.Truncated = c.stdout.kept, c.stderr.kept, c.stdout.truncated || c.stderr.truncated
	return c.write()
}

// Close gives the key back. A run that was started and neither forgotten nor finished leaves
// behind that its outcome is not known.
func (c *Claim) Close() { c.lock.Close() }

func (c *Claim) write() error {
	raw, err := json.Marshal(c.record)
	if err == nil {
		err = approve.Replace(c.file, raw)
	}
	if err != nil {
		return fault.New(errcode.AuditWrite, "--idempotency-key: "+err.Error())
	}
	return nil
}

func read(file string) *Record {
	f, err := regular.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 4*maxStream))
	var r Record
	if err != nil || json.Unmarshal(raw, &r) != nil || r.V != 1 {
		// A file that cannot be read is of a run whose result is not known.
		return &Record{State: "started"}
	}
	if age := time.Since(time.UnixMilli(r.At)); age > maxAge {
		return nil
	}
	return &r
}

// Check says what is wrong with a key.
func Check(key string) error {
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
