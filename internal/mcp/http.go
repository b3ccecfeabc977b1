package mcp

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// requestHeader tells a call which HTTP request it came with. What a client sends under
// this name is replaced.
const requestHeader = "Atip-Exec-Request"

// ServeHTTP answers clients on a listener until the context ends. Every request must carry
// the token, if there is one: other users and confined children reach the loopback, too.
func (s *Server) ServeHTTP(ctx context.Context, l net.Listener, token string) error {
	sdk := s.sdk()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{
		// The newest revision knows no other mode, and the older ones work in it.
		Stateless: true, MaxRequestBodyBytes: maxMessage, PropagateRequestCancellation: true})
	server := &http.Server{Handler: s.guard(http.NewCrossOriginProtection().Handler(handler), token), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	stop := context.AfterFunc(ctx, func() {
		s.stop()
		ending, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if server.Shutdown(ending) != nil {
			server.Close()
		}
	})
	defer stop()
	err := server.Serve(limited(l, maxConnections))
	s.Close()
	if err == http.ErrServerClosed {
		return nil
	}
	return err
}

// guard lets through what comes from this machine, from no web page, and with the token.
func (s *Server) guard(next http.Handler, token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ownHost(r.Host) || !sameOrigin(r) {
			http.Error(w, "forbidden: foreign Host or Origin", http.StatusForbidden)
			return
		}
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if token != "" && (!ok || subtle.ConstantTimeCompare([]byte(strings.TrimSpace(given)), []byte(token)) != 1) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="atip-exec"`)
			http.Error(w, "unauthorized: send the token of this server", http.StatusUnauthorized)
			return
		}
		id := base64.RawURLEncoding.EncodeToString(randomBytes(12))
		r.Header.Set(requestHeader, id)
		s.mu.Lock()
		s.gone[id] = r.Context()
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			delete(s.gone, id)
			s.mu.Unlock()
		}()
		next.ServeHTTP(w, r)
	})
}

// ownHost refuses names that a web page can make lead here (DNS rebinding).
func ownHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if name == "localhost" {
		return true
	}
	ip := net.ParseIP(name)
	return ip != nil && ip.IsLoopback()
}

func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host && ownHost(u.Host)
}

// maxConnections is how many clients are connected at a time; others wait.
const maxConnections = 512

func limited(l net.Listener, n int) net.Listener {
	return &limitedListener{l, make(chan struct{}, n)}
}

type limitedListener struct {
	net.Listener
	slots chan struct{}
}

func (l *limitedListener) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, slots: l.slots}, nil
}

type limitedConn struct {
	net.Conn
	slots chan struct{}
	once  sync.Once
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.slots })
	return err
}
