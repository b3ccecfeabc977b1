package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// wireVersion changes with every change of these messages; both ends are the same
// executable, so no other version is ever accepted.
const wireVersion = 11

// maxPlan bounds the plan; arguments and environment can be two megabytes each.
const maxPlan = 8 << 20

// stagePlan is all that the stage is told. It comes through a sealed memory file, never
// through arguments or the environment, which the caller's user could see or set.
type stagePlan struct {
	V          int
	Profile    Profile
	Tier       Tier
	ABI        int
	Path       string
	FD         int // to execute, -1 for Path
	Argv       []string
	Env        []string
	Dir        string
	DirID      DirID
	Umask      int
	Pass       []int
	Terminal   Terminal
	Foreground bool
	Links      []link // of the root directory
	Outer      string // what runs inside are told
	Observe    bool
	Gate       bool
	Logged     bool // refusals are recorded by the kernel
	Try        bool // make the root, start nothing
	Cgroup     bool // enter the group whose descriptor follows this plan
	Held       bool // wait for a word before the root is made
	Slack      int  // of the timers of the child, in ns (PR_SET_TIMERSLACK of prctl(2))
}

// link is a symbolic link to make in a private root.
type link struct{ Name, Target string }

// stageMessage is one datagram from the stage.
type stageMessage struct {
	Kind     string // fail, ready, listening, listener, started, stopped, exit, left
	Step     string
	Path     string
	Code     string
	Text     string
	Errno    int
	Signal   int
	Status   uint32
	UserNS   int64
	SysNS    int64
	MaxRSSKB int64
	Left     int
	Unrouted int

	// Listeners describes the descriptors that come with the message.
	Listeners []Listener

	// Beside the bytes:
	fd  int // a descriptor, -1 for none
	pid int // the process that the message is about
}

// wire is the one description of what a plan looks like on its way.
func (p *stagePlan) wire(c *coder) {
	number(c, &p.V)
	p.Profile.wire(c)
	number(c, &p.Tier)
	number(c, &p.ABI)
	c.text(&p.Path)
	number(c, &p.FD)
	series(c, &p.Argv, (*coder).text)
	series(c, &p.Env, (*coder).text)
	c.text(&p.Dir)
	number(c, &p.DirID.Dev)
	number(c, &p.DirID.Ino)
	number(c, &p.Umask)
	number(c, &p.Slack)
	series(c, &p.Pass, number)
	number(c, &p.Terminal)
	c.flag(&p.Foreground)
	series(c, &p.Links, wireLink)
	c.text(&p.Outer)
	c.flag(&p.Observe)
	c.flag(&p.Gate)
	c.flag(&p.Logged)
	c.flag(&p.Try)
	c.flag(&p.Cgroup)
	c.flag(&p.Held)
}

func (p *Profile) wire(c *coder) {
	number(c, &p.Confine)
	c.text(&p.Workspace)
	c.text(&p.Private)
	c.text(&p.Home)
	c.text(&p.Layers)
	for _, grants := range [...]*[]Grant{&p.Read, &p.Write, &p.Exec} {
		series(c, grants, func(c *coder, g *Grant) {
			c.text(&g.Path)
			c.flag(&g.Dir)
			number(c, &g.Rights)
			c.text(&g.Why)
		})
	}
	for _, names := range [...]*[]string{&p.Mask, &p.Protect, &p.Pins, &p.Loose, &p.Lifted, &p.GitNames, &p.Settings, &p.GitDirs, &p.Unix, &p.Caps} {
		series(c, names, (*coder).text)
	}
	p.Net.wire(c)
	c.flag(&p.SubprocessNo)
	c.flag(&p.Untraced)
	number(c, &p.Ceiling)
	series(c, &p.Scratch, (*coder).text)
	c.flag(&p.KeepLeftovers)
	number(c, &p.Tmp)
	c.flag(&p.HostWrite)
	c.flag(&p.PlainRead)
	c.flag(&p.Temporary)
	c.flag(&p.Layered)
	for _, env := range [...]*map[string]string{&p.Env, &p.OverlayEnv} {
		c.table(env)
	}
	series(c, &p.Overlays, func(c *coder, o *Overlay) {
		c.text(&o.Lower)
		c.text(&o.Name)
		c.text(&o.Upper)
	})
	series(c, &p.Links, wireLink)
	for _, n := range [...]*uint64{&p.Limits.OpenFiles, &p.Limits.CPU, &p.Limits.FileSize, &p.Limits.Memory, &p.Limits.Shm, &p.Limits.Processes} {
		number(c, n)
	}
	number(c, &p.Limits.Nice)
	for _, names := range [...]*[]Guarantee{&p.Need, &p.Accept} {
		series(c, names, func(c *coder, g *Guarantee) { c.text((*string)(g)) })
	}
	series(c, &p.Absent, func(c *coder, a *Absent) {
		c.text(&a.Path)
		c.text(&a.Why)
	})
	number(c, &p.Forced)
}

func (n *Net) wire(c *coder) {
	number(c, &n.Mode)
	series(c, &n.Allow, (*coder).text)
	series(c, &n.Forward, number)
	series(c, &n.Direct, func(c *coder, d *Direct) {
		c.text(&d.Host)
		number(c, &d.Port)
	})
	series(c, &n.Unbounded, (*coder).text)
	c.text(&n.Because)
}

func wireLink(c *coder, l *link) {
	c.text(&l.Name)
	c.text(&l.Target)
}

func (m *stageMessage) wire(c *coder) {
	for _, s := range [...]*string{&m.Kind, &m.Step, &m.Path, &m.Code, &m.Text} {
		c.text(s)
	}
	number(c, &m.Errno)
	number(c, &m.Signal)
	number(c, &m.Status)
	number(c, &m.UserNS)
	number(c, &m.SysNS)
	number(c, &m.MaxRSSKB)
	number(c, &m.Left)
	number(c, &m.Unrouted)
	series(c, &m.Listeners, func(c *coder, l *Listener) {
		c.text(&l.Service)
		c.text(&l.Host)
		number(c, &l.Port)
	})
}

func (m *stageMessage) encode() []byte {
	c := coder{}
	m.wire(&c)
	return c.data
}

func decodeMessage(data []byte) (stageMessage, error) {
	m := stageMessage{fd: -1}
	c := coder{data: data, reading: true}
	m.wire(&c)
	return m, c.end()
}

func encodePlan(p *stagePlan) ([]byte, error) {
	c := coder{data: make([]byte, 0, 16<<10)}
	p.wire(&c)
	if len(c.data) > maxPlan {
		return nil, errors.New("plan is too large")
	}
	return c.data, nil
}

// decodePlan accepts exactly what encodePlan writes.
func decodePlan(data []byte) (*stagePlan, error) {
	var p stagePlan
	c := coder{data: data, reading: true}
	p.wire(&c)
	if err := c.end(); err != nil {
		return nil, err
	}
	switch {
	case p.V != wireVersion:
		return nil, fmt.Errorf("version %d", p.V)
	case p.Profile.Confine != ConfineKernel || p.Tier < T1 || p.Tier > T3:
		return nil, errors.New("the stage confines or does nothing")
	case p.Profile.Net.Mode > NetFull || p.Profile.Tmp > TmpHost || p.Profile.Ceiling > ExecOpen || p.Profile.Forced > T3:
		return nil, errors.New("a value that has no meaning")
	case len(p.Argv) == 0 && !p.Try:
		return nil, errors.New("no arguments")
	}
	return &p, nil
}

// coder writes the values it is shown, or reads them back in the same order. There is one
// description of each message for both directions, and no reflection: a process that lives
// for milliseconds pays for that what it pays for a dozen mounts.
//
// A number is a varint (zigzag, as encoding/binary has it), a text its length and bytes, a
// list its length and elements.
type coder struct {
	data    []byte // written so far, or left to read
	reading bool
	err     error // of reading; everything after it is zero
}

// end is the error of reading, also of bytes that nobody asked for.
func (c *coder) end() error {
	if c.err == nil && len(c.data) != 0 {
		c.err = errors.New("trailing data")
	}
	return c.err
}

func (c *coder) fail() { c.data, c.err = nil, errors.New("damaged message") }

// number passes an integer that fits into its type.
func number[T ~int | ~int64 | ~uint8 | ~uint32 | ~uint64](c *coder, v *T) {
	if !c.reading {
		c.data = binary.AppendVarint(c.data, int64(*v))
		return
	}
	n, size := binary.Varint(c.data)
	if size <= 0 || int64(T(n)) != n {
		c.fail()
		return
	}
	*v, c.data = T(n), c.data[size:]
}

func (c *coder) flag(v *bool) {
	var n uint8
	if *v {
		n = 1
	}
	number(c, &n)
	if n > 1 {
		c.fail()
		n = 0
	}
	*v = n == 1
}

// length passes the number of the elements that follow, each at least a byte long.
func (c *coder) length(have int) int {
	number(c, &have)
	if c.reading && (have < 0 || have > len(c.data)) {
		c.fail()
		return 0
	}
	return have
}

func (c *coder) text(v *string) {
	n := c.length(len(*v))
	if c.reading {
		*v, c.data = string(c.data[:n]), c.data[n:]
		return
	}
	c.data = append(c.data, *v...)
}

// series passes a slice; an empty one arrives as nil.
func series[T any](c *coder, v *[]T, element func(*coder, *T)) {
	n := c.length(len(*v))
	if c.reading {
		if n == 0 {
			return
		}
		*v = make([]T, n)
	}
	for i := range *v {
		element(c, &(*v)[i])
	}
}

func (c *coder) table(v *map[string]string) {
	type pair struct{ key, value string }
	var pairs []pair
	for k, value := range *v {
		pairs = append(pairs, pair{k, value})
	}
	series(c, &pairs, func(c *coder, p *pair) {
		c.text(&p.key)
		c.text(&p.value)
	})
	if c.reading && len(pairs) > 0 {
		*v = make(map[string]string, len(pairs))
		for _, p := range pairs {
			(*v)[p.key] = p.value
		}
	}
}
