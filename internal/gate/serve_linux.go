package gate

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Config is a Gate's place in its process.
type Config struct {
	Rules
	// Reaped says that the caller reaps every child of this process and calls Stopped.
	Reaped bool
	// Other handles notifications that are no starts; nil answers EPERM.
	Other func(*Notification) Response
	// Seen hears of each start before it is decided; nil for nothing.
	Seen func(*Notification)
}

// Gate answers for the starts of one run.
type Gate struct {
	listener Listener
	c        Config
	reaped   bool
	turn     chan struct{} // decisions in work

	mu        sync.Mutex
	zones     zones
	followers map[int]chan Stop
	begun     bool // the first program has started
	queued    int
	count     int // starts that went on
	work      sync.WaitGroup
	ended     chan struct{}
}

// Serve answers for the listener until no process is left under its filter, then closes
// it. Ended tells.
func Serve(l Listener, c Config) *Gate {
	g := &Gate{listener: l, c: c, reaped: c.Reaped, turn: make(chan struct{}, atOnce), followers: map[int]chan Stop{}, ended: make(chan struct{})}
	go func() {
		defer close(g.ended)
		l.Serve(g.handle)
		g.work.Wait()
		unix.Close(int(l))
	}()
	return g
}

// Ended is closed when all is answered and the listener is closed.
func (g *Gate) Ended() <-chan struct{} { return g.ended }

// Starts is how many programs were let through, the first one included.
func (g *Gate) Starts() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

func (g *Gate) handle(n *Notification) {
	if n.Call.Nr != unix.SYS_EXECVE && n.Call.Nr != unix.SYS_EXECVEAT {
		if g.c.Other == nil {
			g.listener.Answer(Refuse(n, unix.EPERM))
		} else {
			g.listener.Answer(g.c.Other(n))
		}
		return
	}
	if g.c.Seen != nil {
		g.c.Seen(n)
	}
	if !g.begun {
		// The program of the run itself, which was identified and is checked by its starter. Nothing else
		// can run before it.
		g.begun = true
		g.mu.Lock()
		g.count++
		g.zones.set(int(n.PID), g.c.First)
		g.mu.Unlock()
		g.listener.Answer(Continue(n))
		return
	}
	g.mu.Lock()
	full := g.queued >= maxQueue
	if !full {
		g.queued++
	}
	g.mu.Unlock()
	if full {
		g.listener.Answer(Refuse(n, unix.EAGAIN))
		return
	}
	g.work.Add(1)
	go func() {
		defer g.work.Done()
		g.turn <- struct{}{}
		defer func() {
			<-g.turn
			g.mu.Lock()
			g.queued--
			g.mu.Unlock()
		}()
		g.start(n)
	}()
}

// start decides one call. Whatever goes wrong on the way refuses it.
func (g *Gate) start(n *Notification) {
	answered := false
	defer func() {
		if r := recover(); r != nil {
			if !answered {
				g.listener.Answer(Refuse(n, unix.EACCES))
			}
			g.refused(Start{PID: int(n.PID)}, fmt.Errorf("internal error: %v", r))
		}
	}()
	s, file, root, errno := g.read(n)
	if errno != 0 {
		answered = true
		g.listener.Answer(Refuse(n, errno))
		return
	}
	defer file.file.Close()
	defer unix.Close(root)
	verdict, err := g.decide(s)
	switch {
	case err != nil:
		answered = true
		g.listener.Answer(Refuse(n, unix.EACCES))
		g.refused(s, err)
		return
	case !verdict.Go:
		answered = true
		g.listener.Answer(Refuse(n, unix.EACCES))
		g.refused(s, verdict.Why)
		return
	}
	var want image
	if verdict.Words {
		if want, errno = expect(file, s.Argv, s.Env, root); errno != 0 {
			answered = true
			g.listener.Answer(Refuse(n, errno))
			return
		}
	}
	if !g.listener.Valid(n) {
		answered = true
		return // the process is gone
	}
	g.mu.Lock()
	g.count++
	if verdict.Code {
		g.zones.set(int(n.PID), Code)
	}
	g.mu.Unlock()
	answered = true
	if !verdict.Words {
		g.listener.Answer(Continue(n))
		return
	}
	if err := g.verified(n, want); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ECHILD) {
		g.refused(s, err)
	}
}

// read takes the words of a call from the memory of the process.
func (g *Gate) read(n *Notification) (Start, named, int, unix.Errno) {
	tid := int(n.PID)
	a := n.Call.Args
	dirfd, flags := int32(unix.AT_FDCWD), uint64(0)
	path, argv, env := a[0], a[1], a[2]
	if n.Call.Nr == unix.SYS_EXECVEAT {
		dirfd, path, argv, env, flags = int32(a[0]), a[1], a[2], a[3], a[4]
	}
	m := &memory{pid: tid}
	budget := maxWords
	word, errno := m.text(path)
	if errno != 0 {
		return Start{}, named{}, -1, errno
	}
	s := Start{PID: tid}
	if s.Argv, errno = m.list(argv, &budget); errno != 0 {
		return Start{}, named{}, -1, errno
	}
	if s.Env, errno = m.list(env, &budget); errno != 0 {
		return Start{}, named{}, -1, errno
	}
	root, err := unix.Open("/proc/"+strconv.Itoa(tid)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Start{}, named{}, -1, unix.EACCES
	}
	file, errno := openNamed(tid, dirfd, word, flags, root)
	if errno != 0 {
		unix.Close(root)
		return Start{}, named{}, -1, errno
	}
	s.Path, s.File = file.path, file.file
	if s.Cwd, err = readLink("/proc/" + strconv.Itoa(tid) + "/cwd"); err != nil {
		s.Cwd = "" // a directory that was removed
	}
	g.mu.Lock()
	s.Zone = g.zones.zone(tid)
	g.mu.Unlock()
	// What was read belongs to this call only if its caller still waits.
	if !g.listener.Valid(n) {
		file.file.Close()
		unix.Close(root)
		return Start{}, named{}, -1, unix.EACCES
	}
	return s, file, root, 0
}

var errSlow = errors.New("the decision took too long")

// decide bounds the time of one decision.
func (g *Gate) decide(s Start) (Verdict, error) {
	got := make(chan Verdict, 1)
	failed := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				failed <- fmt.Errorf("internal error: %v", r)
			}
		}()
		got <- g.c.Decide(s)
	}()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case v := <-got:
		return v, nil
	case err := <-failed:
		return Verdict{}, err
	case <-timer.C:
		return Verdict{}, errSlow
	}
}

func (g *Gate) refused(s Start, why error) {
	if g.c.Refused != nil {
		s.File = nil
		g.c.Refused(Report{s, why})
	}
}
