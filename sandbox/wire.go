package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// wireVersion changes with every change of these messages; both ends are the same
// executable, so no other version is ever accepted.
const wireVersion = 4

// maxPlan bounds the plan; arguments and environment can be two megabytes each.
const maxPlan = 8 << 20

// stagePlan is all that the stage is told. It comes through a sealed memory file, never
// through arguments or the environment, which the caller's user could see or set.
type stagePlan struct {
	V          int      `json:"v"`
	Profile    Profile  `json:"profile"`
	Tier       Tier     `json:"tier"`
	ABI        int      `json:"abi"`
	Path       string   `json:"path"`
	FD         int      `json:"fd"` // to execute, -1 for Path
	Argv       [][]byte `json:"argv"`
	Env        [][]byte `json:"env"`
	Dir        string   `json:"dir"`
	Umask      int      `json:"umask"`
	Pass       []int    `json:"pass"`
	Terminal   Terminal `json:"terminal"`
	Foreground bool     `json:"foreground"`
	Links      []link   `json:"links"`           // of the root directory
	Outer      *Outer   `json:"outer,omitempty"` // what runs inside are told
	Observe    bool     `json:"observe"`
	Try        bool     `json:"try"`    // make the root, start nothing
	Cgroup     bool     `json:"cgroup"` // enter the group whose descriptor follows this plan
}

// link is a symbolic link to make in a private root.
type link struct{ Name, Target string }

// stageMessage is one datagram from the stage.
type stageMessage struct {
	Kind     string `json:"kind"` // fail, ready, listening, listener, started, stopped, exit, left
	Step     string `json:"step,omitempty"`
	Path     string `json:"path,omitempty"`
	Code     string `json:"code,omitempty"`
	Text     string `json:"text,omitempty"`
	Errno    int    `json:"errno,omitempty"`
	Signal   int    `json:"signal,omitempty"`
	Status   uint32 `json:"status,omitempty"`
	UserNS   int64  `json:"user,omitempty"`
	SysNS    int64  `json:"sys,omitempty"`
	MaxRSSKB int64  `json:"rss,omitempty"`
	Left     int    `json:"left,omitempty"`
	Pid      int    `json:"pid,omitempty"` // of the child, as its namespace numbers it

	// Listeners describes the descriptors that come with the message.
	Listeners []Listener `json:"listeners,omitempty"`

	fd int // that came with the message, -1 for none
}

// encodePlan refuses paths that JSON cannot carry unchanged.
func encodePlan(p *stagePlan) ([]byte, error) {
	for _, g := range p.Profile.grants() {
		if !utf8.ValidString(g.Path) {
			return nil, fmt.Errorf("path %q is not UTF-8", g.Path)
		}
	}
	for _, s := range []string{p.Path, p.Dir, p.Profile.Workspace, p.Profile.Private, p.Profile.Home} {
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("path %q is not UTF-8", s)
		}
	}
	data, err := json.Marshal(p)
	if err == nil && len(data) > maxPlan {
		err = errors.New("plan is too large")
	}
	return data, err
}

// decodePlan accepts exactly what encodePlan writes.
func decodePlan(data []byte) (*stagePlan, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var p stagePlan
	if err := d.Decode(&p); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("trailing data")
	}
	switch {
	case p.V != wireVersion:
		return nil, fmt.Errorf("version %d", p.V)
	case p.Profile.Confine != ConfineKernel || p.Tier < T1:
		return nil, errors.New("the stage confines or does nothing")
	case len(p.Argv) == 0 && !p.Try:
		return nil, errors.New("no arguments")
	}
	return &p, nil
}

func toBytes(list []string) [][]byte {
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func toStrings(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}

// UnmarshalText is the inverse of MarshalText.
func (t *Tier) UnmarshalText(b []byte) error {
	tier, ok := TierByName(string(b))
	if !ok {
		return fmt.Errorf("tier %q", b)
	}
	*t = tier
	return nil
}

// UnmarshalText is the inverse of MarshalText.
func (r *Rights) UnmarshalText(b []byte) error {
	*r = 0
	if len(b) == 0 {
		return nil
	}
	for name := range strings.SplitSeq(string(b), ",") {
		bit := Read
		for ; bit <= Connect && bit.String() != name; bit <<= 1 {
		}
		if bit > Connect {
			return fmt.Errorf("right %q", name)
		}
		*r |= bit
	}
	return nil
}

// UnmarshalText is the inverse of MarshalText.
func (m *NetMode) UnmarshalText(b []byte) error {
	for mode := NetNone; mode <= NetFull; mode++ {
		if mode.String() == string(b) {
			*m = mode
			return nil
		}
	}
	return fmt.Errorf("network mode %q", b)
}
