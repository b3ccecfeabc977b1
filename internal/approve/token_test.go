package approve

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"
)

func tokenKey(seed byte) ed25519.PrivateKey { return newSigner(seed, false).private }

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

func chain(t testing.TB) (string, ed25519.PublicKey) {
	t.Helper()
	key := tokenKey(1)
	token, err := NewToken(key, Block{Exp: time.Now().Add(time.Hour).Unix(), Depth: 2, Restrict: Restrict{AllowedTools: []string{"git", "ls"}}})
	if err != nil {
		t.Fatal(err)
	}
	token, err = AppendToken(token, public(key), Block{Exp: time.Now().Add(2 * time.Hour).Unix(), Depth: 9, Restrict: Restrict{AllowedTools: []string{"ls"}}})
	if err != nil {
		t.Fatal(err)
	}
	return token, public(key)
}

// TestEmptyListsStay: a list that permits nothing is not one that is missing.
func TestEmptyListsStay(t *testing.T) {
	key := tokenKey(1)
	token, err := NewToken(key, Block{Exp: time.Now().Add(time.Hour).Unix(), Restrict: Restrict{AllowedTools: []string{}, Hosts: []string{}, Paths: []string{}}})
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := VerifyToken(token, public(key), time.Now())
	if err != nil || len(blocks) != 1 {
		t.Fatalf("%+v %v", blocks, err)
	}
	if r := blocks[0].Restrict; r.AllowedTools == nil || r.Hosts == nil || r.Paths == nil {
		t.Errorf("a list is gone: %+v", r)
	}
}

func TestToken(t *testing.T) {
	token, root := chain(t)
	blocks, err := VerifyToken(token, root, time.Now())
	if err != nil || len(blocks) != 2 || blocks[1].Restrict.AllowedTools[0] != "ls" {
		t.Fatalf("%+v %v", blocks, err)
	}
	if blocks[1].Depth != 1 || blocks[1].Exp > blocks[0].Exp {
		t.Errorf("the second link reaches further than the first: %+v", blocks[1])
	}
	closed, err := CloseToken(token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyToken(closed, root, time.Now()); err != nil {
		t.Errorf("closed: %v", err)
	}
	if _, err := AppendToken(closed, root, Block{}); err == nil {
		t.Error("appended to a closed token")
	}
	parts := strings.Split(strings.TrimPrefix(token, "v1."), "~")
	end := parts[2]
	bad := map[string]string{
		"cut":            "v1." + parts[0] + "~" + end,
		"cut, closed":    "v1." + parts[0] + "~" + closed[strings.LastIndexByte(closed, '~')+1:],
		"reordered":      "v1." + parts[1] + "~" + parts[0] + "~" + end,
		"twice":          "v1." + parts[0] + "~" + parts[0] + "~" + end,
		"edited":         strings.Replace(token, parts[0][:8], parts[0][:7]+"A", 1),
		"without end":    "v1." + parts[0] + "~" + parts[1] + "~",
		"without blocks": "v1." + end,
		"version":        strings.Replace(token, "v1.", "v2.", 1),
		"empty":          "",
		"long":           token + strings.Repeat("x", MaxToken),
	}
	for name, text := range bad {
		var e *TokenError
		if _, err := VerifyToken(text, root, time.Now()); !errors.As(err, &e) || e.FaultCode() != "E2002" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := VerifyToken(token, public(tokenKey(2)), time.Now()); err == nil {
		t.Error("signed by another user's key")
	}
	if _, err := VerifyToken(token, root, time.Now().Add(61*time.Minute)); err == nil {
		t.Error("expired")
	}
	last, err := NewToken(tokenKey(1), Block{Exp: time.Now().Add(time.Hour).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := AppendToken(last, root, Block{Exp: time.Now().Add(time.Hour).Unix()}); err == nil {
		t.Error("delegated deeper than was permitted")
	}
}

// FuzzToken: no change of a token but the one by its own key is a token.
func FuzzToken(f *testing.F) {
	token, root := chain(f)
	f.Add(token[:len(token)-1])
	f.Add("v1.~k")
	f.Fuzz(func(t *testing.T, text string) {
		if text != token {
			if _, err := VerifyToken(text, root, time.Now()); err == nil {
				t.Fatalf("verified: %q", text)
			}
		}
	})
}

func BenchmarkVerifyToken(b *testing.B) {
	token, root := chain(b)
	for b.Loop() {
		if _, err := VerifyToken(token, root, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestExtends(t *testing.T) {
	key := tokenKey(1)
	make := func() string {
		token, err := NewToken(key, Block{Exp: time.Now().Add(time.Hour).Unix(), Depth: 2})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	own, other := make(), make()
	more, err := AppendToken(own, public(key), Block{Exp: time.Now().Add(time.Hour).Unix(), Depth: 1})
	if err != nil {
		t.Fatal(err)
	}
	closed, err := CloseToken(more)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, token, outer string
		want               bool
	}{
		{"itself", own, own, true}, {"one more", more, own, true}, {"one more, closed", closed, own, true}, {"closed, of itself", closed, more, true},
		{"one less", own, more, false}, {"another", other, own, false}, {"nothing", "", own, false}, {"of nothing", own, "", false}, {"of nonsense", own, "~", false},
	} {
		if got := Extends(row.token, row.outer); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}
