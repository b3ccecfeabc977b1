package nest

import (
	"encoding/json"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/atip-dev/atip-exec/internal/drive"
	"github.com/atip-dev/atip-exec/internal/errcode"
	"github.com/atip-dev/atip-exec/internal/fault"
)

// A stand-in is this program, started by the shell of a run under the name of a command that is a
// run of its own (an own step). It hands that command on and becomes its proxy:
//
//	stand-in                            run
//	own{}, reply, stdin, stdout, stderr ->
//	                                 <- who
//	here ->                             looks at the process that sent both, as the kernel names it:
//	                                    words, directory, umask and environment are those of /proc
//	                                 <- keep{path}: nothing of the kind was planned; it becomes that program
//	signal{n} ->                        to the process that runs the command, stop and continue included
//	(end of reply) ->                   ends it
//	                                 <- end{exit_code, child, error}
//
// Nothing that a stand-in says is believed, and anything in the sandbox may hold the socket. Which
// process asks is known from the kernel, and whether the shell itself started it from the gate.

// What stand-ins of one run may ask for.
const (
	maxOwn   = 1024 // in all
	maxOwnBy = 32   // at a time: pipelines need theirs together
)

// Stand is what the kernel says of a stand-in.
type Stand struct {
	Argv  []string
	Cwd   string
	Env   []string
	Umask int
	Typed bool // the shell of the run started it, and no code that the shell started
}

// Settled is what becomes of a stand-in: it keeps its command, which is Keep, or Own is carried out,
// or neither, because of Why. The zero value refuses.
type Settled struct {
	Keep string // the file that it executes in its own place
	Own  *Own
	Why  *fault.Fault
}

// Own is one own step, as it was planned and as it was started.
type Own struct {
	Argv  Words  `json:"argv"`
	Cwd   string `json:"cwd"`
	Umask int    `json:"umask"`
}

// OwnRun is what the run of a text records of one of its own steps.
type OwnRun struct {
	Run   string   `json:"run,omitempty"` // whose record tells the rest
	Argv  []string `json:"argv"`
	Exit  int      `json:"exit"`
	Error string   `json:"error,omitempty"` // its code
}

// stand answers a stand-in.
func (l *Listener) stand(files []*os.File, pid int) {
	drop := func() {
		for _, f := range files {
			f.Close()
		}
	}
	refuse := func(f *fault.Fault) { sendNow(files[0], Failed(f).encode()) }
	b := &l.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.owned == maxOwn || b.standing == maxOwnBy {
		refuse(fault.New(errcode.OutOfResources, "this run starts no further commands by themselves"))
		drop()
		return
	}
	b.owned++
	b.standing++
	b.ended.Go(func() {
		defer drop()
		defer func() {
			b.mu.Lock()
			b.standing--
			b.mu.Unlock()
		}()
		s := proven(files[0], pid, l.host.Typed)
		settled := l.host.Stands(s)
		switch {
		case settled.Keep != "":
			sendNow(files[0], Outcome{Kind: "keep", Path: settled.Keep}.encode())
			return
		case settled.Own == nil:
			if settled.Why == nil {
				settled.Why = fault.New(errcode.CredentialWithheld, "nothing of the kind was planned to run by itself")
			}
			refuse(settled.Why)
			return
		case !connectable(files[1:]):
			refuse(fault.New(errcode.CredentialWithheld, "a command that runs by itself accepts files, pipes and terminals only"))
			return
		}
		h := &helper{grace: l.host.Grace, stops: true}
		b.mu.Lock()
		if b.closed {
			b.mu.Unlock()
			return
		}
		if b.running == nil {
			b.running = map[*helper]bool{}
		}
		b.running[h] = true
		b.mu.Unlock()
		order := l.host.Order()
		order.Own = settled.Own
		raw := l.host.help(h, order, files)
		var out Outcome
		_ = json.Unmarshal(raw, &out)
		r := OwnRun{Run: out.Run, Argv: s.Argv, Exit: out.ExitCode}
		if out.Error != nil {
			r.Error = out.Error.Code
		}
		b.mu.Lock()
		delete(b.running, h)
		b.own = append(b.own, r)
		b.mu.Unlock()
	})
}

// OwnRuns are the own steps that ran.
func (l *Listener) OwnRuns() []OwnRun {
	l.broker.mu.Lock()
	defer l.broker.mu.Unlock()
	return l.broker.own
}

// StandsIn reports whether this process was started as a stand-in.
func StandsIn(getenv func(string) string) bool { return getenv(StandVariable) != "" }

// StandIn hands the command of this process on and waits for its end. An outcome that is kept leaves
// the command to this process, which is to become the program at its path.
func StandIn(getenv func(string) string) (Outcome, *fault.Fault) {
	lost := func(why string) (Outcome, *fault.Fault) {
		return Outcome{}, fault.New(errcode.LostChild, "the run of this command line cannot be reached: "+why).WithFix("start the command by itself", "")
	}
	text, _ := strings.CutPrefix(getenv(StandVariable), "fd:")
	fd, err := strconv.Atoi(text)
	if err != nil || fd <= 2 {
		return lost("no descriptor leads to it")
	}
	to := inherited(fd)
	if to == nil {
		return lost("its descriptor was closed")
	}
	signals := make(chan os.Signal, 16)
	for _, sig := range append(drive.Endings(), drive.Forwarded()...) {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	reply, theirs, err := pair()
	if err != nil {
		return lost(err.Error())
	}
	to.SetWriteDeadline(time.Now().Add(patience))
	err = send(to, []byte(`{"kind":"own"}`), theirs, present(os.Stdin), present(os.Stdout), present(os.Stderr))
	theirs.Close()
	if err != nil {
		return lost(err.Error())
	}
	go func() {
		for sig := range signals {
			sendNow(reply, Outcome{Kind: "signal", Signal: drive.SignalNumber(sig)}.encode())
			if drive.Stops(sig) {
				drive.StopSelf()
			}
		}
	}()
	buf := make([]byte, maxAnswer)
	for {
		var out Outcome
		n, err := reply.Read(buf)
		if err == nil {
			err = json.Unmarshal(buf[:n], &out)
		}
		switch {
		case err != nil:
			return lost("it ended without an answer")
		case out.Kind == "who":
			sendNow(reply, []byte(`{"kind":"here"}`))
		case out.Kind == "keep":
			signal.Reset()
			to.Close()
			return out, nil
		case out.Kind == "end":
			return out, nil
		}
	}
}

// present is a descriptor, or an empty file where it is closed.
func present(f *os.File) *os.File {
	if _, err := f.Stat(); err == nil {
		return f
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return f
	}
	return null
}

// Differs names a variable that a process does not have as it was handed to its shell, "" for none
// but those that a shell sets by itself.
func Differs(handed, has []string) string {
	for _, lists := range [...][2][]string{{handed, has}, {has, handed}} {
		for _, entry := range lists[0] {
			switch name, _, _ := strings.Cut(entry, "="); name {
			case "PWD", "OLDPWD", "SHLVL", "_":
			default:
				if !slices.Contains(lists[1], entry) {
					return name
				}
			}
		}
	}
	return ""
}
