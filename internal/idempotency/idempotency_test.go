package idempotency

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// of is the fingerprint of a command.
func of(command string) func() string { return func() string { return command } }

// take claims the key of a test for a command.
func take(t *testing.T, dir, command string, began time.Time) (*Claim, *Record) {
	t.Helper()
	c, old, err := Take(dir, "key", of(command), "run-of-"+command, began, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return c, old
}

func TestKeyIsKept(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), "keys"), time.Now()
	c, old := take(t, dir, "a", now)
	if old != nil {
		t.Fatalf("%+v", old)
	}
	if _, _, err := Take(dir, "key", of("a"), "other", now, 30*time.Millisecond); err == nil || fault.From(err).Code != errcode.IdempotencyBusy {
		t.Errorf("while it is held: %v", err)
	}
	other, _, err := Take(dir, "another key", of("a"), "other", now, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
	var shown bytes.Buffer
	out, errs, err := c.Start(&shown, io.Discard)
	if err != nil || !c.Started() {
		t.Fatal(err)
	}
	io.WriteString(out, "result")
	io.WriteString(errs, strings.Repeat("e", maxStream-1))
	io.WriteString(errs, "cut")
	if err := c.Finish(3, "SIGTERM"); err != nil || shown.String() != "result" {
		t.Fatal(err, shown.String())
	}
	c.Close()
	c, old = take(t, dir, "a", now)
	if old == nil || !old.Finished() || old.ExitCode != 3 || old.Signal != "SIGTERM" || string(old.Stdout) != "result" || len(old.Stderr) != maxStream || !old.Truncated || old.Run != "run-of-a" {
		t.Errorf("%+v", old)
	}
	c.Close()
	c, _, err = Take(dir, "key", of("b"), "other", now, time.Second)
	if err == nil || fault.From(err).Code != errcode.IdempotencyReused || fault.From(err).Details["run"] != "run-of-a" {
		t.Errorf("another command: %v", err)
	}
	c.Close()
}

// TestUnknownOutcome: what was started and not finished is known as that, and what never
// started is not.
func TestUnknownOutcome(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	c, _ := take(t, dir, "a", now)
	c.Close()
	if c, old := take(t, dir, "a", now); old != nil {
		t.Errorf("never started: %+v", old)
	} else {
		if _, _, err := c.Start(io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	c, old := take(t, dir, "a", now)
	if old == nil || old.Finished() {
		t.Errorf("started: %+v", old)
	}
	c.Forget()
	c.Close()
	c, old = take(t, dir, "a", now)
	if old != nil {
		t.Errorf("forgotten: %+v", old)
	}
	c.Start(io.Discard, io.Discard)
	if err := os.WriteFile(c.file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Close()
	// Whose command it was is not known either.
	c, _, err := Take(dir, "key", of("a"), "run", now, time.Second)
	if err == nil || fault.From(err).Code != errcode.IdempotencyReused {
		t.Errorf("a torn file: %v", err)
	}
	c.Close()
}

func TestOldKeysAreForgotten(t *testing.T) {
	dir := t.TempDir()
	c, _ := take(t, dir, "a", time.Now().Add(-maxAge-time.Minute))
	if _, _, err := c.Start(io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	c.Close()
	c, old := take(t, dir, "b", time.Now())
	if old != nil {
		t.Errorf("%+v", old)
	}
	c.Close()
}

func TestCheck(t *testing.T) {
	for key, good := range map[string]bool{"a": true, strings.Repeat("a", 128): true, "": false, strings.Repeat("a", 129): false, "a b": false, "a\n": false, "ü": false} {
		if err := Check(key); (err == nil) != good {
			t.Errorf("%q: %v", key, err)
		}
	}
}
