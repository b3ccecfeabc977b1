package approve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

func TestLock(t *testing.T) {
	me, other := newSigner(1, false), newSigner(2, false)
	file := filepath.Join(t.TempDir(), "approvals.lock")
	l := &Lock{Version: 1, Entries: []LockEntry{{ID: "a", Kind: "digest", Digest: "sha256:00", Reason: "release", Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)}}}
	text, err := l.Signed()
	if err != nil {
		t.Fatal(err)
	}
	l.Signatures = []string{me.sign(LockNamespace, "sha512", text)}
	if err := WriteLock(file, l); err != nil {
		t.Fatal(err)
	}
	read, err := ReadLock(file)
	if err != nil || read.Verify([]string{other.line(), me.line()}) != nil {
		t.Errorf("a signed lock: %v", err)
	}
	if read.Verify([]string{other.line()}) == nil || read.Verify(nil) == nil {
		t.Error("verified by a key that did not sign")
	}
	read.Signatures = []string{me.sign(GrantNamespace, "sha512", text)}
	if read.Verify([]string{me.line()}) == nil {
		t.Error("a signature made for grants")
	}
	read.Signatures, read.Entries[0].Bind.Ref = l.Signatures, "refs/heads/x"
	if read.Verify([]string{me.line()}) == nil {
		t.Error("an entry was changed")
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string][2]string{
		"unknown key": {`"version"`, `"x": 1, "version"`}, "kind": {`"kind": "digest"`, `"kind": "any"`}, "no expiry": {`2027-01-01`, `0001-01-01`},
		"destructive by effects": {`"kind": "digest",`, `"kind": "effects", "scope": {"tool": "gh", "command": [], "effects": ["destructive"]},`}, "version": {`"version": 1`, `"version": 2`},
	} {
		text := strings.Replace(string(raw), edit[0], edit[1], 1)
		if strings.Contains(name, "effects") {
			text = strings.Replace(text, `"digest": "sha256:00",`, "", 1)
		}
		if text == string(raw) {
			t.Fatalf("%s: nothing replaced", name)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var bad *errcode.Error
		if _, err := ReadLock(file); !errors.As(err, &bad) || bad.FaultCode() != "E2044" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
