package approvals

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/atip"
	"github.com/atip-dev/atip-exec/internal/approve"
	"github.com/atip-dev/atip-exec/internal/caller"
	"github.com/atip-dev/atip-exec/internal/cli"
	"github.com/atip-dev/atip-exec/internal/cli/answer"
	"github.com/atip-dev/atip-exec/internal/delegation"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
	"github.com/atip-dev/atip-exec/policy"
)

// A delegation lives an hour and may be passed on three times unless it says else.
const (
	delegateTTL   = time.Hour
	delegateDepth = 3
)

// delegatedPolicy is as much of a policy document as can be delegated.
type delegatedPolicy struct {
	Schema    string `json:"$schema"`
	Version   int    `json:"version"`
	Profile   string `json:"profile"`
	Default   string `json:"default"`
	Delegable struct {
		MaxDepth *int     `json:"maxDepth"`
		Hosts    []string `json:"hosts"`
		Paths    []string `json:"paths"`
	} `json:"delegable"`
	Delegation struct {
		AllowedTools       []string        `json:"allowedTools"`
		DeniedCommands     []string        `json:"deniedCommands"`
		EffectRestrictions map[string]bool `json:"effectRestrictions"`
	} `json:"delegation"`
}

// DelegateVerb prints a token that takes away what its flags and file say, or runs a
// command under it.
func DelegateVerb(c *cli.Console, v *cli.Values) (int, error) {
	b := approve.Block{Agent: v.Get("name"), Depth: delegateDepth}
	ttl := delegateTTL
	if v.Has("ttl") {
		ttl = v.DurationOf("ttl")
	}
	b.Exp = time.Now().Add(ttl).Unix()
	files := append(v.All("spec"), v.All("policy")...)
	if len(files) > 1 {
		return 0, fault.New(errcode.FlagValue, "delegate: "+strconv.Itoa(len(files))+" files say what to take away").WithFix("name one; delegate once more under the token to take away more", "ATIP_DELEGATION=TOKEN atip delegate --spec more.json")
	}
	for _, file := range files {
		if err := readDelegation(file, &b); err != nil {
			return 0, err
		}
	}
	r := &b.Restrict
	var tools []string
	for _, list := range v.All("tools") {
		tools = append(tools, strings.Split(list, ",")...)
	}
	if tools != nil {
		r.AllowedTools = both(r.AllowedTools, tools)
	}
	r.DeniedCommands = append(r.DeniedCommands, v.All("deny-command")...)
	if v.Has("no-destructive") {
		if r.EffectRestrictions == nil {
			r.EffectRestrictions = map[string]bool{}
		}
		r.EffectRestrictions["destructive"] = false
	}
	if r.Profile == "" && r.Default == "" && r.AllowedTools == nil && len(r.DeniedCommands)+len(r.EffectRestrictions) == 0 && r.Hosts == nil && r.Paths == nil {
		return 0, fault.New(errcode.Arguments, "delegate: nothing is taken away").WithFix("say what the other may not do", "atip delegate --no-destructive --tools git --tools ls -- ls")
	}
	m := caller.Here()
	dirs, err := m.Dirs()
	if err != nil {
		return 0, err
	}
	token, err := delegation.Delegate(dirs, m.Getenv(delegation.Variable), b, v.Has("final"))
	if err != nil {
		return 0, err
	}
	if len(v.Rest) > 0 {
		return 0, runDelegated(m, token, v.Rest)
	}
	return 0, c.Answer(map[string]any{"kind": "atip-exec.delegation/1", "token": token, "variable": delegation.Variable, "expires": time.Unix(b.Exp, 0).UTC()}, token+"\n")
}

// both keeps what two lists of permitted tools have in common; a nil one permits all.
func both(a, b []string) []string {
	if a == nil {
		return b
	}
	out := []string{}
	for _, x := range a {
		if slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}

// readDelegation takes a policy document that says only what can be delegated.
func readDelegation(file string, b *approve.Block) error {
	raw, err := answer.ReadFile(file, 256<<10)
	if err != nil {
		return err
	}
	parsed, err := policy.Parse(policy.Source{File: file, Raw: raw, Layer: policy.LayerFlag})
	if err != nil {
		return err
	}
	plain, err := atip.StripComments(raw)
	if err != nil {
		return fault.New(errcode.PolicySyntax, file+": "+err.Error())
	}
	var doc delegatedPolicy
	d := json.NewDecoder(bytes.NewReader(plain))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return fault.New(errcode.PolicySyntax, file+": only profile, default, delegation and delegable.maxDepth, hosts, paths can be delegated: "+err.Error()).With("file", file)
	}
	// A token with another name would let nothing run: it has to mean the same everywhere.
	if _, err := policy.Compile([]*policy.Document{parsed}); err != nil {
		return err
	}
	b.Restrict = approve.Restrict{Profile: doc.Profile, Default: doc.Default, AllowedTools: doc.Delegation.AllowedTools, DeniedCommands: doc.Delegation.DeniedCommands,
		EffectRestrictions: doc.Delegation.EffectRestrictions, Hosts: doc.Delegable.Hosts, Paths: doc.Delegable.Paths}
	if doc.Delegable.MaxDepth != nil {
		b.Depth = *doc.Delegable.MaxDepth
	}
	return nil
}

// runDelegated replaces this process by atip-exec, beside our own executable.
func runDelegated(m caller.Machine, token string, argv []string) error {
	program := filepath.Join(filepath.Dir(m.Self), "atip-exec")
	if err := os.Setenv(delegation.Variable, token); err != nil {
		return err
	}
	err := syscall.Exec(program, append([]string{"atip-exec", "--"}, argv...), os.Environ())
	return fault.New(errcode.NoCompanion, program+": "+err.Error()).WithFix("install `atip-exec` beside `atip`", "go install github.com/atip-dev/atip-exec/cmd/...")
}
