package run

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/owner"
	"github.com/atip-dev/atip-exec/internal/place"
	"github.com/atip-dev/atip-exec/internal/regular"
	"github.com/atip-dev/atip-exec/policy"
)

// DelegationVariable carries the token of a delegation to whoever runs under it.
const DelegationVariable = "ATIP_DELEGATION"

// inheritToken puts the token that a descriptor holds, ATIP_DELEGATION=fd:N, into the
// variable itself: it can be read once only. What cannot be read is no token, and lets
// nothing run.
func inheritToken() {
	text, ok := strings.CutPrefix(os.Getenv(DelegationVariable), "fd:")
	if !ok {
		return
	}
	token := "unreadable"
	if fd, err := strconv.Atoi(text); err == nil && fd > 2 {
		f := os.NewFile(uintptr(fd), "delegation")
		if raw, err := io.ReadAll(io.LimitReader(f, approve.MaxToken+1)); err == nil && len(raw) > 0 {
			token = strings.TrimSpace(string(raw))
		}
		f.Close()
	}
	os.Setenv(DelegationVariable, token)
}

// delegate adds the restrictions of a delegation to what is decided. They hold for
// the whole tree of the run: its kernel domain, its environment and its decisions
// come from here, so a child that drops the variable gains nothing by it.
func (p *Plan) delegate(req *policy.Request) error {
	token := p.machine.Getenv(DelegationVariable)
	if token == "" {
		return nil
	}
	root, err := delegationPublic(p.dirs)
	if err != nil {
		return &approve.TokenError{Why: err.Error()}
	}
	blocks, err := approve.VerifyToken(token, root, time.Now())
	if err != nil {
		return err
	}
	req.Delegated = true
	for _, b := range blocks {
		r := b.Restrict
		req.Chain = append(req.Chain, policy.Restrict{Profile: r.Profile, Default: r.Default, AllowedTools: r.AllowedTools, DeniedCommands: r.DeniedCommands,
			EffectRestrictions: r.EffectRestrictions, Hosts: r.Hosts, Paths: r.Paths})
	}
	for _, d := range p.policies.Delegable() {
		req.Chain = append(req.Chain, withinDelegable(d))
		if d.MaxTTL > 0 && time.Until(time.Unix(blocks[0].Exp, 0)) > d.MaxTTL {
			return &approve.TokenError{Why: "it lives longer than the policy lets a delegation"}
		}
		if blocks[0].Depth > d.MaxDepth {
			return &approve.TokenError{Why: "it may be delegated further than the policy lets it"}
		}
	}
	return nil
}

// withinDelegable takes away what the policy lets no delegation carry.
func withinDelegable(d policy.Delegable) policy.Restrict {
	r := policy.Restrict{AllowedTools: d.Tools, Hosts: d.Hosts, Paths: d.Paths}
	if d.Effects == nil {
		return r
	}
	r.EffectRestrictions = map[string]bool{}
	for _, e := range dangerKeys() {
		if name := dangerName(e); !slices.Contains(d.Effects, name) && e != atip.Read && e != atip.Subprocess && e != atip.Idempotent {
			// Of reversible the harmless value is "yes".
			r.EffectRestrictions[e.String()] = e == atip.Reversible
		}
	}
	return r
}

// chainNames is the chain as an approval binds and the audit keeps it.
func (p *Plan) chainNames() []string {
	token := p.machine.Getenv(DelegationVariable)
	if token == "" {
		return nil
	}
	root, err := delegationPublic(p.dirs)
	if err != nil {
		return []string{"invalid"}
	}
	blocks, err := approve.VerifyToken(token, root, time.Now())
	if err != nil {
		return []string{"invalid"}
	}
	var out []string
	for _, b := range blocks {
		out = append(out, strings.TrimSpace(b.Agent+" "+b.Nonce))
	}
	return out
}

// maxDelegationKey bounds what is read of a key, in bytes.
const maxDelegationKey = 1024

// The public half lies in the configuration directory, which a confined run can read
// and not write: it has to verify, and must not need a secret for it.
func delegationPublic(dirs place.Dirs) (ed25519.PublicKey, error) {
	f, err := regular.Open(filepath.Join(dirs.Config, "delegation.pub"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("this user never delegated anything")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if why := owner.ForeignWriter(f.Name(), info, os.Geteuid()); why != "" {
		return nil, errors.New("delegation.pub " + why)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxDelegationKey))
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("delegation.pub is malformed")
	}
	return key, nil
}

// Delegate makes a token that takes away what b says: a first one, or one block more
// for the token that this process runs under.
func Delegate(m Machine, b approve.Block, final bool) (string, error) {
	dirs, err := m.Dirs()
	if err != nil {
		return "", err
	}
	var token string
	if held := m.Getenv(DelegationVariable); held != "" {
		root, err := delegationPublic(dirs)
		if err != nil {
			return "", &approve.TokenError{Why: err.Error()}
		}
		token, err = approve.AppendToken(held, root, b)
		if err != nil {
			return "", err
		}
	} else {
		key, err := delegationKey(dirs)
		if err != nil {
			return "", &approve.TokenError{Why: "no key to delegate with: " + err.Error()}
		}
		if token, err = approve.NewToken(key, b); err != nil {
			return "", err
		}
	}
	if final {
		return approve.CloseToken(token)
	}
	return token, nil
}

// delegationKey reads the key of the first block, and makes it when it is first used. Of two
// that make one at once, the first counts; the public half always follows the key.
func delegationKey(dirs place.Dirs) (ed25519.PrivateKey, error) {
	file, public := filepath.Join(dirs.State, "grants", "delegation.key"), filepath.Join(dirs.Config, "delegation.pub")
	for _, dir := range []string{filepath.Dir(file), dirs.Config} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	raw, err := regular.Read(file, maxDelegationKey)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDelegationKey(file); err != nil {
			return nil, err
		}
		raw, err = regular.Read(file, maxDelegationKey)
	}
	if err != nil {
		return nil, err
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, errors.New(file + " is malformed")
	}
	key := ed25519.NewKeyFromSeed(seed)
	text := hex.EncodeToString(key.Public().(ed25519.PublicKey)) + "\n"
	if was, err := regular.Read(public, maxDelegationKey); err == nil && string(was) == text {
		return key, nil
	}
	return key, approve.Replace(public, []byte(text))
}

// makeDelegationKey makes the file whole or not at all, and never in place of another.
func makeDelegationKey(file string) error {
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed)
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(hex.EncodeToString(seed) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Link(f.Name(), file)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}
