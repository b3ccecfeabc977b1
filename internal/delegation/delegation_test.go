//go:build unix

package delegation

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/place"
)

func user(t *testing.T) place.Dirs {
	t.Helper()
	top := t.TempDir()
	return place.Dirs{Home: top, Config: filepath.Join(top, "config"), State: filepath.Join(top, "state")}
}

// block lends something for an hour.
func block(agent string) approve.Block {
	return approve.Block{Agent: agent, Exp: time.Now().Add(time.Hour).Unix(), Depth: 3, Restrict: approve.Restrict{AllowedTools: []string{"git"}}}
}

func TestChain(t *testing.T) {
	dirs := user(t)
	if _, err := Chain(dirs.Config, "x"); err == nil || !strings.Contains(err.Error(), "never delegated") {
		t.Errorf("without a key: %v", err)
	}
	first, err := Delegate(dirs, "", block("a"), false)
	if err != nil {
		t.Fatal(err)
	}
	last, err := Delegate(dirs, first, block("b"), true)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := Chain(dirs.Config, last)
	if err != nil || len(blocks) != 2 || blocks[0].Agent != "a" || blocks[1].Agent != "b" {
		t.Errorf("%+v, %v", blocks, err)
	}
	if _, err := Delegate(dirs, last, block("c"), false); err == nil {
		t.Error("a final token was passed on")
	}
	var bad *approve.TokenError
	other := user(t)
	if _, err := Delegate(other, "", block("x"), false); err != nil {
		t.Fatal(err)
	}
	if _, err := Chain(other.Config, last); !errors.As(err, &bad) {
		t.Errorf("the token of another user: %v", err)
	}
}

// TestKey: only the user can have written the public half, and many that delegate for the first
// time at once use one key.
func TestKey(t *testing.T) {
	dirs := user(t)
	var wg sync.WaitGroup
	tokens := make([]string, 8)
	for i := range tokens {
		wg.Go(func() { tokens[i], _ = Delegate(dirs, "", block(strconv.Itoa(i)), false) })
	}
	wg.Wait()
	for i, token := range tokens {
		if _, err := Chain(dirs.Config, token); err != nil {
			t.Errorf("token %d: %v", i, err)
		}
	}
	info, err := os.Stat(filepath.Join(dirs.State, "grants", "delegation.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	public := filepath.Join(dirs.Config, "delegation.pub")
	if err := os.Chmod(public, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Chain(dirs.Config, tokens[0]); err == nil || !strings.Contains(err.Error(), "written by others") {
		t.Errorf("a key that others can write: %v", err)
	}
	if err := errors.Join(os.Chmod(public, 0o600), os.WriteFile(public, []byte("00"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Chain(dirs.Config, tokens[0]); err == nil || !strings.Contains(err.Error(), "malformed") {
		t.Errorf("a key that is cut: %v", err)
	}
	// The public half follows the key.
	if _, err := Delegate(dirs, "", block("again"), false); err != nil {
		t.Fatal(err)
	}
	if _, err := Chain(dirs.Config, tokens[0]); err != nil {
		t.Error(err)
	}
}

// TestInherit: what cannot be read is no token.
func TestInherit(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.WriteString("token\n")
	w.Close()
	fd, err := syscall.Dup(int(r.Fd()))
	r.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][2]string{{"plain", "plain"}, {"fd:2", "unreadable"}, {"fd:x", "unreadable"}, {"fd:999", "unreadable"}, {"fd:" + strconv.Itoa(fd), "token"}} {
		t.Setenv(Variable, row[0])
		if Inherit(); os.Getenv(Variable) != row[1] {
			t.Errorf("%s: %s, want %s", row[0], os.Getenv(Variable), row[1])
		}
	}
}
