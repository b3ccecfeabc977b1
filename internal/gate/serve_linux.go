package gate

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
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

	turns chan *memory // as many as may still be answered at once
	watch watch
	other sync.Mutex // who handles what is no start
	work  sync.WaitGroup
	ended chan struct{}
}

// Serve answers for the listener until no process is left under its filter, then closes
// it. Ended tells.
func Serve(l Listener, c Config) *Gate {
	g := &Gate{listener: l, c: c, reaped: c.Reaped, followers: map[int]chan Stop{}, programs: map[FileID]bool{}, turns: make(chan *memory, atOnce), ended: make(chan struct{})}
	for range atOnce {
		g.turns <- &memory{}
	}
	// A thread that waits in the kernel by itself would keep the scheduler awake, which looks
	// after it fifty times in each millisecond: the goroutine waits where all do.
	_ = unix.SetNonblock(int(l), true)
	l.wakeHere()
	file := os.NewFile(uintptr(l), "listener")
	g.work.Add(1)
	go g.lead(file)
	go func() {
		g.work.Wait()
		file.Close() // without a listener each start fails
		close(g.ended)
	}()
	return g
}

// turn is the answer to one notification. One goroutine waits for the next one; who answers is that
// goroutine itself, as to wake another one costs more than most answers, until it may take longer.
type turn struct {
	g      *Gate
	file   *os.File
	memory *memory   // words of one start after the other
	handed bool      // another goroutine waits now
	began  time.Time // the decision
	state  atomic.Int32
}

// States of a turn after the zero one.
const (
	inTime int32 = iota + 1
	tooLate
)

// inTime reports whether the decision has not taken too long, so that others have the turn already.
func (t *turn) inTime() bool {
	return t.state.CompareAndSwap(0, inTime) || t.state.Load() == inTime
}

// lead takes notifications until another goroutine does, or there are no more.
func (g *Gate) lead(file *os.File) {
	conn, err := file.SyscallConn()
	if err != nil {
		g.work.Done()
		return
	}
	for {
		t := &turn{g: g, file: file, memory: <-g.turns}
		n := &Notification{}
		got, ended := false, false
		err := conn.Read(func(uintptr) bool {
			got, ended = g.listener.take(n)
			return got || ended
		})
		if err != nil { // epoll(7) passes on the POLLERR that take knows as an error of the descriptor
			got = g.listener.next(n)
			ended = !got
		}
		if got {
			t.answer(n)
		}
		if !t.inTime() {
			return // its turn was given to others
		}
		g.turns <- t.memory
		if ended || t.handed {
			g.work.Done()
			return
		}
	}
}

// hand lets another goroutine wait for notifications.
func (t *turn) hand() {
	if !t.handed {
		t.handed = true
		t.g.work.Add(1)
		go t.g.lead(t.file)
	}
}

// await sleeps until the kernel tells of a child (the SIGCHLD of a stop goes to the thread that traces) or
// that long. A notification that arrives meanwhile is left to another goroutine.
func (t *turn) await(d time.Duration) {
	l := t.g.listener
	if t.handed {
		l = -1 // poll(2) looks at none
	}
	if events, errno := l.poll(d); errno == 0 && events != 0 {
		t.hand()
	}
}

func (t *turn) answer(n *Notification) {
	g := t.g
	switch {
	case n.Call.Nr == unix.SYS_EXECVE || n.Call.Nr == unix.SYS_EXECVEAT:
		g.handle(n, t)
	case g.c.Other == nil:
		g.listener.Answer(Refuse(n, unix.EPERM))
	default:
		t.hand()
		g.other.Lock()
		g.listener.Answer(g.c.Other(n))
		g.other.Unlock()
	}
}

// Ended is closed when all is answered and the listener is closed.
func (g *Gate) Ended() <-chan struct{} { return g.ended }

// Starts is how many programs were let through, the first one included.
func (g *Gate) Starts() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.count
}

func (g *Gate) handle(n *Notification, t *turn) {
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
	g.start(n, t)
}

// start decides one call. Whatever goes wrong on the way refuses it.
func (g *Gate) start(n *Notification, t *turn) {
	defer func() {
		if r := recover(); r != nil {
			g.listener.Answer(Refuse(n, unix.EACCES))
			g.refused(Start{PID: int(n.PID)}, fmt.Errorf("internal error: %v", r))
		}
	}()
	s, file, root, errno := g.read(n, t.memory)
	if errno != 0 {
		g.listener.Answer(Refuse(n, errno))
		return
	}
	defer rawClose(root)
	defer rawClose(file.fd)
	var verdict Verdict
	known := false
	if g.c.Known != nil {
		verdict, known = g.c.Known(s)
	}
	if !known {
		if verdict = g.decide(n, s, t); !t.inTime() {
			return
		}
	}
	if !verdict.Go {
		g.listener.Answer(Refuse(n, unix.EACCES))
		g.refused(s, verdict.Why)
		return
	}
	want := image{dev: s.ID.Dev, ino: s.ID.Ino, fileOnly: true}
	if verdict.Words {
		if want, errno = g.expect(file, s, root); errno != 0 {
			g.listener.Answer(Refuse(n, errno))
			return
		}
	}
	if !g.listener.Valid(n) {
		return // the process is gone
	}
	g.mu.Lock()
	g.count++
	if verdict.Code {
		g.zones.set(int(n.PID), Code)
	}
	g.mu.Unlock()
	if !verdict.Words && !verdict.File {
		g.listener.Answer(Continue(n))
		return
	}
	if err := g.verified(n, s.leader, want, t); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ECHILD) {
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
	root, errno := rawOpen("/proc/"+strconv.Itoa(tid)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if errno != 0 {
		return Start{}, named{}, -1, unix.EACCES
	}
	file, errno := openNamed(tid, dirfd, word, flags, root)
	if errno != 0 {
		rawClose(root)
		return Start{}, named{}, -1, errno
	}
	s.Path, s.ID = file.path, file.id
	var err error
	if s.Cwd, err = readLink("/proc/" + strconv.Itoa(tid) + "/cwd"); err != nil {
		s.Cwd = "" // a directory that was removed
	}
	g.mu.Lock()
	s.Zone, s.leader = g.zones.zone(tid)
	g.mu.Unlock()
	// What was read belongs to this call only if its caller still waits.
	if !g.listener.Valid(n) {
		rawClose(file.fd)
		rawClose(root)
		return Start{}, named{}, -1, unix.EACCES
	}
	return s, file, root, 0
}

var errSlow = errors.New("the decision took too long")

// decide bounds the time of one decision: one that takes longer refuses, and gives its turn to
// others.
func (g *Gate) decide(n *Notification, s Start, t *turn) Verdict {
	g.watch.begin(t, func() {
		if t.state.CompareAndSwap(0, tooLate) {
			g.listener.Answer(Refuse(n, unix.EACCES))
			g.refused(s, errSlow)
			g.turns <- &memory{}
			g.work.Done()
		}
	})
	defer g.watch.end(t)
	return g.c.Decide(s)
}

// watch looks after decisions that take long. Most take less than it costs to arm a timer or to wake a
// goroutine for each, so that one timer serves all of them and stays armed for a while after the last one.
type watch struct {
	mu    sync.Mutex
	timer *time.Timer
	turns map[*turn]func() // decisions in work, and what happens to one that is late
	quiet bool             // none has begun since the last look
	rests bool             // the timer is not armed
}

// lookAfter is how long a decision keeps others waiting: once or twice as long.
const lookAfter = 20 * time.Millisecond

func (w *watch) begin(t *turn, late func()) {
	t.began = time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		w.turns = map[*turn]func(){}
		w.timer = time.AfterFunc(lookAfter, w.look)
	} else if w.rests {
		w.timer.Reset(lookAfter)
	}
	w.turns[t] = late
	w.quiet, w.rests = false, false
}

func (w *watch) end(t *turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.turns, t)
}

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t, late := range w.turns {
		age := time.Since(t.began)
		if age >= lookAfter {
			t.hand()
		}
		if age >= Patience {
			go late()
		}
	}
	if w.rests = w.quiet && len(w.turns) == 0; !w.rests {
		w.timer.Reset(lookAfter)
	}
	w.quiet = true
}

func (g *Gate) refused(s Start, why error) {
	if g.c.Refused != nil {
		g.c.Refused(Report{s, why})
	}
}
