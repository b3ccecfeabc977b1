package toollock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/trust"
)

var (
	one = strings.Repeat("1", 64)
	two = strings.Repeat("2", 64)
)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestLocks(t *testing.T) {
	config, workspace := t.TempDir(), t.TempDir()
	if l, err := ReadLocks(config, workspace); err != nil || l.User != nil || l.Project != nil {
		t.Fatalf("%+v, %v", l, err)
	}
	write(t, filepath.Join(config, UserFile), `{"tools":{"gh":{"`+Platform()+`":{"digest":"sha256:`+one+`","document":"sha256:`+one+`"},"other-platform":{"digest":"sha256:`+two+`"}}}}`)
	write(t, filepath.Join(workspace, ProjectFile), `{"tools":{"git":{"`+Platform()+`":{"digest":"sha256:`+two+`","signer":"someone"}}}}`)
	l, err := ReadLocks(config, workspace)
	if err != nil {
		t.Fatal(err)
	}
	p := l.Trust(trust.Policy{})
	if len(p.Locked) != 1 || p.Locked["gh"] != one || len(p.LockedByProject) != 1 || p.LockedByProject["git"] != two {
		t.Errorf("%+v %+v", p.Locked, p.LockedByProject)
	}
	gh, git := trust.Identity{Invoked: "x", Effective: "gh"}, trust.Identity{Invoked: "git"}
	if l.Differs(gh, one) || !l.Differs(gh, two) || l.Differs(git, two) || (Locks{}).Differs(gh, two) {
		t.Error("metadata that is another than when it was locked is not told from metadata that is the same")
	}
	for id, want := range map[string]bool{"gh": false, "git": true} {
		settled := []trust.Settled{{}}
		if l.Signers(trust.Identity{Invoked: id}, settled); settled[0].SignerLock != want {
			t.Errorf("the signer of %s: %v", id, settled[0].SignerLock)
		}
	}
	l.Signers(git, nil)
}

// TestTornLockIsAnError: a lock that cannot be read is not an empty one.
func TestTornLockIsAnError(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{}`, `{"tools":[]}`, `{"tools":{},"more":1}`, `{"tools":{"gh":[]}}`, `{"tools":{"gh":{"p":{}}}}`,
		`{"tools":{"gh":{"p":{"digest":"sha256:1"}}}}`, `{"tools":{"gh":{"p":{"digest":"sha256:` + one + `","unknown":"x"}}}}`, `{"tools":{"gh":{"p":{"digest":"sha256:` + one + `","source":1}}}}`} {
		file := filepath.Join(t.TempDir(), UserFile)
		write(t, file, text)
		if _, err := Read(file); err == nil || fault.From(err).Code != errcode.TrustConfig {
			t.Errorf("%s: %v", text, err)
		}
	}
	file := filepath.Join(t.TempDir(), UserFile)
	write(t, file, `{"tools":{}}`)
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(file); err == nil {
		t.Error("a lock that others can write was read")
	}
}
