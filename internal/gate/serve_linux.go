package gate

import (
	"errors"
	"fmt"
	"os"
	"runtime"
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

	mu        sync.Mutex
	zones     zones
	followers map[int]chan Stop
	programs  map[FileID]bool // files that are no scripts
	begun     bool            // the first program has started
	count     int             // starts that went on
	ended     chan struct{}
}

// Serve answers for the listener until no process is left under its filter, then closes
// it. Ended tells.
func Serve(l Listener, c Config) *Gate {
	g := &Gate{listener: l, c: c, reaped: c.Reaped, followers: map[int]chan Stop{}, programs: map[FileID]bool{}, ended: make(chan struct{})}
	q, err := l.queue()
	if err != nil { // without a listener each start fails
		unix.Close(int(l))
		close(g.ended)
		return g
	}
	var other sync.Mutex // who handles what is no start
	var work sync.WaitGroup
	for range atOnce {
		work.Go(func() {
			// A tracer is a thread, not a process; and a thread that is there needs not be woken by
			// another one.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			m := &memory{} // the words of one start after the other
			for {
				n := &Notification{}
				switch {
				case !q.next(n):
					return
				case n.Call.Nr == unix.SYS_EXECVE || n.Call.Nr == unix.SYS_EXECVEAT:
					g.handle(n, m)
				case c.Other == nil:
					l.Answer(Refuse(n, unix.EPERM))
				default:
					other.Lock()
					l.Answer(c.Other(n))
					other.Unlock()
				}
			}
		})
	}
	go func() {
		work.Wait()
		q.close()
		close(g.ended)
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

func (g *Gate) handle(n *Notification, m *memory) {
	g.mu.Lock()
	if g.c.Seen != nil {
		g.c.Seen(n)
	}
	first := !g.begun
	if first {
		// The program of the run itself, which was identified and is checked by its starter. Nothing else
		// can run before it.
		g.begun = true
		g.count++
		g.zones.set(int(n.PID), g.c.First)
	}
	g.mu.Unlock()
	if first {
		g.listener.Answer(Continue(n))
		return
	}
	g.start(n, m)
}

// start decides one call. Whatever goes wrong on the way refuses it.
func (g *Gate) start(n *Notification, m *memory) {
	answered := false
	defer func() {
		if r := recover(); r != nil {
			if !answered {
				g.listener.Answer(Refuse(n, unix.EACCES))
			}
			g.refused(Start{PID: int(n.PID)}, fmt.Errorf("internal error: %v", r))
		}
	}()
	s, file, root, errno := g.read(n, m)
	if errno != 0 {
		answered = true
		g.listener.Answer(Refuse(n, errno))
		return
	}
	defer func() {
		if s.File != nil {
			s.File.Close()
		} else {
			unix.Close(file.fd)
		}
		unix.Close(root)
	}()
	var verdict Verdict
	var err error
	known := false
	if g.c.Known != nil {
		verdict, known = g.c.Known(s)
	}
	if !known {
		s.File = os.NewFile(uintptr(file.fd), file.path)
		verdict, err = g.decide(s)
	}
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
	want := image{dev: s.ID.Dev, ino: s.ID.Ino, fileOnly: true}
	if verdict.Words {
		if want, errno = g.expect(file, s, root); errno != 0 {
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
	if !verdict.Words && !verdict.File {
		g.listener.Answer(Continue(n))
		return
	}
	if err := g.verified(n, s.leader, want); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ECHILD) {
		g.refused(s, err)
	}
}

// expect works out the image of a start. That a file is no script is remembered: if it becomes one
// without a new time, what starts is another image and is ended.
func (g *Gate) expect(n named, s Start, root int) (image, unix.Errno) {
	g.mu.Lock()
	program := g.programs[s.ID]
	g.mu.Unlock()
	if program {
		return n.image(s.Argv, s.Env), 0
	}
	want, errno := expect(n, s.Argv, s.Env, root)
	if errno == 0 && want.dev == s.ID.Dev && want.ino == s.ID.Ino {
		g.mu.Lock()
		if len(g.programs) < maxPrograms {
			g.programs[s.ID] = true
		}
		g.mu.Unlock()
	}
	return want, errno
}

const maxPrograms = 4096

// read takes the words of a call from the memory of the process.
func (g *Gate) read(n *Notification, m *memory) (Start, named, int, unix.Errno) {
	tid := int(n.PID)
	a := n.Call.Args
	dirfd, flags := int32(unix.AT_FDCWD), uint64(0)
	path, argv, env := a[0], a[1], a[2]
	if n.Call.Nr == unix.SYS_EXECVEAT {
		dirfd, path, argv, env, flags = int32(a[0]), a[1], a[2], a[3], a[4]
	}
	m.forget(tid)
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
	s.Path, s.ID = file.path, file.id
	if s.Cwd, err = readLink("/proc/" + strconv.Itoa(tid) + "/cwd"); err != nil {
		s.Cwd = "" // a directory that was removed
	}
	g.mu.Lock()
	s.Zone, s.leader = g.zones.zone(tid)
	g.mu.Unlock()
	// What was read belongs to this call only if its caller still waits.
	if !g.listener.Valid(n) {
		unix.Close(file.fd)
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
