package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/atip-dev/atip-exec/internal/ip"
)

// Bounds of what one run may ask of this process.
const (
	maxConnections = 256
	inBytes        = 20 << 10 // what a client sent: a whole ClientHello must fit
	outBytes       = 32 << 10
	headPatience   = 10 * time.Second
	dialPatience   = 10 * time.Second
	drainPatience  = time.Second
)

// stream is a connection.
type stream interface {
	io.ReadWriteCloser
	CloseWrite() error
	SetDeadline(time.Time) error
	// Reset has Close end the connection as a host does on which nothing listens.
	Reset() error
}

// Server is the proxy of one run.
type Server struct {
	rules  *Rules
	ctx    context.Context
	cancel context.CancelFunc

	// The ways out. Tests replace them.
	lookup func(ctx context.Context, name string) ([]ip.Addr, error)
	dial   func(ctx context.Context, a ip.Addr, port int) (stream, error)
	own    func() ([]ip.Addr, error)

	mu       sync.Mutex
	closed   bool
	kept     map[io.Closer]bool
	clients  int
	log      []*Entry
	requests int
	denied   int
	running  sync.WaitGroup
}

// New makes a server for a run with these rules.
func New(rules *Rules) *Server {
	s := &Server{rules: rules, kept: map[io.Closer]bool{}, lookup: lookupHost, dial: dialAddr, own: ownAddrs}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// ServeHTTP accepts HTTP proxy requests from a listening socket, which it takes over.
func (s *Server) ServeHTTP(l *os.File) { s.accept(l, s.http) }

// ServeSOCKS accepts SOCKS5 requests.
func (s *Server) ServeSOCKS(l *os.File) { s.accept(l, s.socks) }

// ServeForward connects every connection with one service, "host:port".
func (s *Server) ServeForward(l *os.File, service string) error {
	t, ok := parseTarget(service, 0)
	if !ok {
		l.Close()
		return errors.New("network.forward: " + strconv.Quote(service) + " is not host:port")
	}
	s.accept(l, func(c stream) { s.forward(c, t, service) })
	return nil
}

// ServeDirect takes every connection for one to a host, as if the client had asked for it.
func (s *Server) ServeDirect(l *os.File, host string, port int) {
	s.accept(l, func(c stream) { s.direct(c, host, port) })
}

// Close ends all connections and tells what was asked for.
func (s *Server) Close() Report {
	s.mu.Lock()
	s.closed = true
	for c := range s.kept {
		c.Close()
	}
	s.mu.Unlock()
	s.cancel()
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(drainPatience):
	}
	return s.report()
}

// keep remembers what Close has to end; false if it has run already.
func (s *Server) keep(c io.Closer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close()
		return false
	}
	s.kept[c] = true
	return true
}

func (s *Server) drop(c io.Closer) {
	s.mu.Lock()
	delete(s.kept, c)
	s.mu.Unlock()
	c.Close()
}

func (s *Server) accept(l *os.File, handle func(stream)) {
	if !s.keep(l) {
		return
	}
	s.running.Go(func() {
		defer s.drop(l)
		for {
			c, err := acceptFrom(l)
			if err != nil {
				return // closed, or out of descriptors: the run loses its network, nothing else
			}
			if !s.enter() {
				s.note(s.open("connect"), "busy")
				c.Close()
				continue
			}
			s.running.Go(func() {
				defer s.leave()
				if s.keep(c) {
					defer s.drop(c)
					handle(c)
				}
			})
		}
	})
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients >= maxConnections {
		return false
	}
	s.clients++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	s.clients--
	s.mu.Unlock()
}

// client is one connection of the run.
type client struct {
	s     *Server
	c     stream
	in    *bufio.Reader
	entry *Entry
	began time.Time
}

func (s *Server) client(c stream, via string) *client {
	_ = c.SetDeadline(time.Now().Add(headPatience))
	return &client{s: s, c: c, in: bufio.NewReaderSize(c, inBytes), entry: s.open(via), began: time.Now()}
}

func (s *Server) http(c stream) {
	x := s.client(c, "http")
	head, err := readHead(x.in)
	if err != nil {
		if len(head) > 0 {
			x.malformed("")
		}
		return
	}
	r, ok := parseRequest(head, nil)
	if !ok {
		x.malformed(asked(head))
		return
	}
	if r.connect {
		x.entry.Via = "connect"
	}
	up, status, reason := x.connect(r.target, !r.connect)
	if up == nil && status == 502 && !r.connect {
		// A client would take an answer for the host's: outside there is none.
		_ = c.Reset()
		return
	}
	if up == nil {
		x.answer(status, reason)
		return
	}
	defer s.drop(up)
	if !r.connect {
		x.single(up, &r, s.rules.upstream)
		return
	}
	if _, err := c.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err == nil {
		x.tunnel(up, r.target)
	}
}

func (s *Server) socks(c stream) {
	x := s.client(c, "socks")
	free, err := readGreeting(x.in)
	if err != nil || !free {
		_, _ = c.Write([]byte{5, 0xff})
		return
	}
	if _, err := c.Write([]byte{5, 0}); err != nil {
		return
	}
	t, reply, err := readSocks(x.in)
	if err != nil {
		return
	}
	var up stream
	switch reply {
	case socksOK:
		var status int
		var reason string
		if up, status, reason = x.connect(t, false); up == nil {
			switch reply = socksUnreachable; {
			case status == 403:
				reply = socksRefused
			case reason == "refused":
				reply = socksClosed
			}
		}
	default:
		x.entry.Host, x.entry.Port = t.host, t.port
		reason := "malformed"
		if reply == socksCommand {
			reason = "method"
		}
		s.note(x.entry, reason)
	}
	_, err = c.Write([]byte{5, reply, 0, 1, 0, 0, 0, 0, 0, 0})
	if up != nil {
		defer s.drop(up)
		if err == nil {
			x.tunnel(up, t)
		}
	}
}

func (s *Server) direct(c stream, host string, port int) {
	x := s.client(c, "direct")
	t, ok := parseHost(host)
	if t.port = port; !ok {
		return
	}
	up, _, _ := x.connect(t, false)
	if up == nil {
		_ = c.Reset()
		return
	}
	defer s.drop(up)
	x.tunnel(up, t)
}

// forward needs no list: the policy names this very service.
func (s *Server) forward(c stream, t target, rule string) {
	x := s.client(c, "forward")
	x.entry.Host, x.entry.Port, x.entry.Rule = t.host, t.port, rule
	s.note(x.entry, "")
	addrs := []ip.Addr{t.addr}
	var err error
	ctx, cancel := context.WithTimeout(s.ctx, dialPatience)
	defer cancel()
	if !t.ip {
		if addrs, err = s.lookup(ctx, t.host); err != nil {
			x.failed("unresolved")
			return
		}
	}
	up, _ := x.reach(ctx, addrs, t.port)
	if up == nil {
		_ = c.Reset()
		return
	}
	defer s.drop(up)
	_ = c.SetDeadline(time.Time{})
	x.relay(up)
}

// connect decides and connects. Without a connection it says what to answer.
func (x *client) connect(t target, plain bool) (up stream, status int, reason string) {
	s, e := x.s, x.entry
	e.Host, e.Port = t.host, t.port
	e.Rule, reason = s.rules.name(t)
	if reason == "" && plain && t.port == 443 {
		reason = "sni" // there is no TLS in it
	}
	if reason != "" {
		s.note(e, reason)
		return nil, 403, reason
	}
	ctx, cancel := context.WithTimeout(s.ctx, dialPatience)
	defer cancel()
	if next := s.rules.upstream; next != nil {
		// What a name leads to only the upstream learns; an address is known here.
		if t.ip && s.rules.address(t.addr, t, nil) != "" {
			e.Addr = t.host
			s.note(e, "denied")
			return nil, 403, "denied"
		}
		s.note(e, "")
		return x.through(ctx, next, t, plain)
	}
	addrs := []ip.Addr{t.addr}
	if !t.ip {
		var err error
		if addrs, err = s.lookup(ctx, t.host); err != nil || len(addrs) == 0 {
			s.note(e, "")
			x.failed("unresolved")
			return nil, 502, "unresolved"
		}
	}
	own, err := s.own()
	if err != nil {
		s.note(e, "interfaces")
		return nil, 403, "interfaces"
	}
	var good []ip.Addr
	for _, a := range addrs {
		why := s.rules.address(a, t, own)
		if why == "" {
			good = append(good, a)
			continue
		}
		e.Addr = a.String()
		if reason = "rebinding"; why == "denied" {
			reason = why
		}
	}
	if len(good) == 0 {
		s.note(e, reason)
		return nil, 403, reason
	}
	s.note(e, "")
	if up, reason = x.reach(ctx, good, t.port); up == nil {
		return nil, 502, reason
	}
	return up, 0, ""
}

// maxDials bounds how many addresses of one name are tried.
const maxDials = 4

// reach connects to the first address that answers. Without one it says why.
func (x *client) reach(ctx context.Context, addrs []ip.Addr, port int) (up stream, reason string) {
	reason = "refused"
	for _, a := range addrs[:min(len(addrs), maxDials)] {
		up, err := x.s.dial(ctx, a, port)
		if err != nil {
			if !errors.Is(err, syscall.ECONNREFUSED) {
				reason = "unreachable"
			}
			continue
		}
		if !x.s.keep(up) {
			return nil, "unreachable"
		}
		x.s.amend(x.entry, func() { x.entry.Addr = a.String() })
		return up, ""
	}
	x.failed(reason)
	return nil, reason
}

// through connects by way of the upstream proxy, which looks the name up itself. The
// upstream is named by the policy, so its own address may be a private one.
func (x *client) through(ctx context.Context, next *upstream, t target, plain bool) (stream, int, string) {
	addrs := []ip.Addr{next.target.addr}
	if !next.target.ip {
		var err error
		if addrs, err = x.s.lookup(ctx, next.target.host); err != nil {
			x.failed("unresolved")
			return nil, 502, "unresolved"
		}
	}
	up, reason := x.reach(ctx, addrs, next.target.port)
	if up == nil {
		return nil, 502, reason
	}
	if plain {
		return up, 0, ""
	}
	_ = up.SetDeadline(time.Now().Add(headPatience))
	if err := next.ask(up, t); err != nil {
		x.s.drop(up)
		x.failed("upstream")
		return nil, 502, "upstream"
	}
	_ = up.SetDeadline(time.Time{})
	return up, 0, ""
}

// failed notes why an allowed request came to nothing.
func (x *client) failed(reason string) {
	x.s.amend(x.entry, func() { x.entry.Reason = reason })
}

// refuse turns an allowed request into a refused one.
func (x *client) refuse(reason string) {
	x.s.amend(x.entry, func() { x.entry.Decision, x.entry.Reason = "deny", reason })
}

// malformed answers what is no request.
func (x *client) malformed(host string) {
	x.entry.Host = host
	x.s.note(x.entry, "malformed")
	x.answer(400, "malformed")
}

func (x *client) answer(status int, reason string) {
	text := "atip-exec: " + x.entry.Host
	if x.entry.Port != 0 {
		text += ":" + strconv.Itoa(x.entry.Port)
	}
	e := *x.entry
	e.Reason = reason
	text += ": " + e.Explain() + "\n"
	words := map[int]string{400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway"}[status]
	if status == 502 {
		words = e.Explain() // Go and Python print these words and nothing of the body
	}
	_, _ = x.c.Write([]byte("HTTP/1.1 " + strconv.Itoa(status) + " " + words + "\r\nX-Atip-Denied: " + reason +
		"\r\nContent-Type: text/plain\r\nContent-Length: " + strconv.Itoa(len(text)) + "\r\nConnection: close\r\n\r\n" + text))
	x.drain()
}

// drain lets the client read an answer: closing a connection with bytes unread resets it.
func (x *client) drain() {
	_ = x.c.CloseWrite()
	_ = x.c.SetDeadline(time.Now().Add(drainPatience))
	_, _ = io.CopyN(io.Discard, x.in, 1<<20)
}
