package approve

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/errcode"
)

// Bounds of a delegation token.
const (
	tokenVersion = "v1."
	maxBlocks    = 8
)

// MaxToken is how long a token may be.
const MaxToken = 8 << 10

// Restrict is what a block of a delegation takes away. A list that is empty permits nothing,
// one that is nil everything, so that only the latter may be left out.
type Restrict struct {
	Profile            string          `json:"profile,omitempty"`
	Default            string          `json:"default,omitempty"`
	AllowedTools       []string        `json:"allowedTools,omitzero"`
	DeniedCommands     []string        `json:"deniedCommands,omitempty"`
	EffectRestrictions map[string]bool `json:"effectRestrictions,omitempty"`
	Hosts              []string        `json:"hosts,omitzero"`
	Paths              []string        `json:"paths,omitzero"`
}

// Block is one link of a delegation: signed by the key that the link before it names,
// the first by the user's own.
type Block struct {
	V        int      `json:"v"`
	Next     string   `json:"next"` // hexadecimal public key of the next link
	Agent    string   `json:"agent,omitempty"`
	Exp      int64    `json:"exp"` // seconds since 1970
	Depth    int      `json:"depth"`
	Restrict Restrict `json:"restrict"`
	Nonce    string   `json:"nonce"`
}

// TokenError says that a delegation cannot be relied on: nothing runs under it.
type TokenError struct{ Why string }

// Error implements error.
func (e *TokenError) Error() string { return "delegation token: " + e.Why }

// FaultCode implements fault.Coded.
func (e *TokenError) FaultCode() string { return errcode.Delegation }

// FaultDetails implements fault.Coded.
func (e *TokenError) FaultDetails() map[string]any { return nil }

func badToken(format string, args ...any) error { return &TokenError{fmt.Sprintf(format, args...)} }

// NewToken starts a chain with a block signed by the user's delegation key.
func NewToken(key ed25519.PrivateKey, b Block) (string, error) {
	return extend(tokenVersion, key, b)
}

// AppendToken narrows a token by one more block. It needs nothing but the token: who
// holds one can only take away from it.
func AppendToken(token string, root ed25519.PublicKey, b Block) (string, error) {
	blocks, err := VerifyToken(token, root, time.Now())
	if err != nil {
		return "", err
	}
	last := blocks[len(blocks)-1]
	if len(blocks) == maxBlocks {
		return "", badToken("it has %d blocks already", maxBlocks)
	}
	if last.Depth == 0 {
		return "", badToken("it may not be delegated further")
	}
	b.Depth = min(b.Depth, last.Depth-1)
	b.Exp = min(b.Exp, last.Exp)
	at := strings.LastIndexByte(token, '~')
	seed, ok := strings.CutPrefix(token[at+1:], "k")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(seed)
	if !ok || err != nil || len(raw) != ed25519.SeedSize {
		return "", badToken("it is closed")
	}
	return extend(token[:at+1], ed25519.NewKeyFromSeed(raw), b)
}

// CloseToken ends a chain: nobody can append to it, and what it says cannot be cut.
func CloseToken(token string) (string, error) {
	at := strings.LastIndexByte(token, '~')
	if at < 0 || !strings.HasPrefix(token[at+1:], "k") {
		return "", badToken("it is closed already")
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token[at+2:])
	if err != nil || len(raw) != ed25519.SeedSize {
		return "", badToken("it is malformed")
	}
	sig := ed25519.Sign(ed25519.NewKeyFromSeed(raw), closing(token[:at+1]))
	return token[:at+1] + "s" + base64.RawURLEncoding.EncodeToString(sig), nil
}

func closing(blocks string) []byte { return append([]byte("atip-exec-delegation-end\x00"), blocks...) }

// linked is what a block's signature covers: the block and all that stands before it,
// so that no link can be moved into another chain.
func linked(before, body string) []byte {
	return append([]byte("atip-exec-delegation@v1\x00"), before+body...)
}

func extend(before string, key ed25519.PrivateKey, b Block) (string, error) {
	next, seed := make([]byte, ed25519.SeedSize), make([]byte, 12)
	rand.Read(next)
	rand.Read(seed)
	b.V, b.Nonce = 1, hex.EncodeToString(seed)
	b.Next = hex.EncodeToString(ed25519.NewKeyFromSeed(next).Public().(ed25519.PublicKey))
	raw, err := json.Marshal(b)
	if err != nil {
		return "", badToken("%v", err)
	}
	body := base64.RawURLEncoding.EncodeToString(raw)
	sig := ed25519.Sign(key, linked(before, body))
	out := before + body + "." + base64.RawURLEncoding.EncodeToString(sig) + "~k" + base64.RawURLEncoding.EncodeToString(next)
	if len(out) > MaxToken {
		return "", badToken("it is longer than %d bytes", MaxToken)
	}
	return out, nil
}

// VerifyToken checks a token and returns its blocks, outermost first.
func VerifyToken(token string, root ed25519.PublicKey, now time.Time) ([]Block, error) {
	if len(token) > MaxToken {
		return nil, badToken("it is longer than %d bytes", MaxToken)
	}
	rest, ok := strings.CutPrefix(token, tokenVersion)
	parts := strings.Split(rest, "~")
	if !ok || len(parts) < 2 || len(parts)-1 > maxBlocks {
		return nil, badToken("it is malformed")
	}
	key, before, depth := root, tokenVersion, 1<<30
	var out []Block
	for _, part := range parts[:len(parts)-1] {
		b, err := readBlock(part, before, key)
		if err != nil {
			return nil, err
		}
		if now.Unix() >= b.Exp {
			return nil, badToken("it expired %s", time.Unix(b.Exp, 0).UTC().Format(time.RFC3339))
		}
		if b.Depth < 0 || b.Depth >= depth {
			return nil, badToken("a link is deeper than the one before it permits")
		}
		next, err := hex.DecodeString(b.Next)
		if err != nil || len(next) != ed25519.PublicKeySize {
			return nil, badToken("it is malformed")
		}
		key, depth, before = next, b.Depth, before+part+"~"
		out = append(out, b)
	}
	// The end proves that no link was cut off: only the last one's key makes it.
	end := parts[len(parts)-1]
	raw, err := base64.RawURLEncoding.Strict().DecodeString(end[min(1, len(end)):])
	switch {
	case err != nil:
	case strings.HasPrefix(end, "k") && len(raw) == ed25519.SeedSize:
		if bytes.Equal(ed25519.NewKeyFromSeed(raw).Public().(ed25519.PublicKey), key) {
			return out, nil
		}
	case strings.HasPrefix(end, "s") && len(raw) == ed25519.SignatureSize:
		if ed25519.Verify(key, closing(before), raw) {
			return out, nil
		}
	}
	return nil, badToken("its end does not fit")
}

func readBlock(part, before string, key ed25519.PublicKey) (Block, error) {
	var b Block
	body, sig, ok := strings.Cut(part, ".")
	raw, err := base64.RawURLEncoding.Strict().DecodeString(body)
	signature, err2 := base64.RawURLEncoding.Strict().DecodeString(sig)
	if !ok || err != nil || err2 != nil || len(key) != ed25519.PublicKeySize || len(signature) != ed25519.SignatureSize || !ed25519.Verify(key, linked(before, body), signature) {
		return b, badToken("a signature does not fit")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return b, badToken("%v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) || b.V != 1 {
		return b, badToken("it is malformed")
	}
	return b, nil
}

// Extends reports whether a token has every block of another one, in front of its own:
// it can only take away more. Both are to be verified beside that.
func Extends(token, outer string) bool {
	at := strings.LastIndexByte(outer, '~')
	return at > 0 && strings.HasPrefix(token, outer[:at+1])
}
