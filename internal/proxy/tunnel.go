package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"sync"
	"time"
)

// readHead reads up to the empty line that ends the head of a request or an answer.
func readHead(in *bufio.Reader) ([]byte, error) {
	var head []byte
	for {
		line, err := in.ReadSlice('\n')
		head = append(head, line...)
		switch {
		case len(head) > maxHead:
			return head, errors.New("the head is too long")
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return head, err
		case bytes.HasSuffix(head, []byte("\r\n\r\n")):
			return head, nil
		case !bytes.HasSuffix(head, []byte("\r\n")):
			return head, errors.New("a line of the head does not end in CR LF")
		}
	}
}

// asked is where a head that is no request wanted to go, for the log.
func asked(head []byte) string {
	line, _, _ := strings.Cut(string(head), "\r\n")
	_, rest, _ := strings.Cut(line, " ")
	uri, _, _ := strings.Cut(rest, " ")
	if _, after, ok := strings.Cut(uri, "://"); ok {
		uri = after
	}
	if i := strings.IndexAny(uri, "/?"); i >= 0 {
		uri = uri[:i]
	}
	if i := strings.LastIndexByte(uri, '@'); i >= 0 {
		uri = uri[i+1:] // what stands before may be a password
	}
	return printable(uri)
}

// tunnel passes bytes on, once their beginning names the host that was allowed.
func (x *client) tunnel(up stream, t target) {
	_ = x.c.SetDeadline(time.Now().Add(headPatience))
	switch t.port {
	case 443:
		if err := x.checkHello(t); err != nil {
			x.refuse("sni")
			// A fatal alert, unrecognized_name: the client says what is wrong.
			_, _ = x.c.Write([]byte{21, 3, 1, 0, 2, 2, 112})
			x.drain()
			return
		}
	case 80:
		head, err := readHead(x.in)
		if err != nil && len(head) == 0 {
			return
		}
		r, ok := parseRequest(head, &t)
		if err != nil || !ok {
			x.refuse("host")
			x.answer(403, "host")
			return
		}
		x.single(up, &r, nil)
		return
	}
	_ = x.c.SetDeadline(time.Time{})
	x.relay(up)
}

// checkHello waits for a whole ClientHello and compares its name. An address has none.
func (x *client) checkHello(t target) error {
	for n := 1; ; n = x.in.Buffered() + 1 {
		if n > x.in.Size() {
			return errNoHello
		}
		if _, err := x.in.Peek(n); err != nil {
			return err
		}
		seen, err := x.in.Peek(x.in.Buffered())
		if err != nil {
			return err
		}
		name, err := serverName(seen)
		if errors.Is(err, errShort) {
			continue
		}
		if err != nil {
			return err
		}
		if t.ip && name == "" || !t.ip && strings.EqualFold(name, t.host) {
			return nil
		}
		return errors.New("another name")
	}
}

// single sends one request with its body and returns the answer.
func (x *client) single(up stream, r *request, next *upstream) {
	defer x.ended()
	if _, err := up.Write(r.head(next)); err != nil {
		x.failed("unreachable")
		return
	}
	_ = x.c.SetDeadline(time.Time{})
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		n, err := copyBody(up, x.in, r)
		x.count(&x.entry.Up, n)
		if err != nil {
			x.failed("body")
			up.Close()
			return
		}
		// A second request on this connection would not be looked at; the end of the
		// connection makes the client open another.
		if _, err := x.in.Peek(1); err == nil {
			up.Close()
		}
	}()
	x.receive(up)
	up.Close()
	_ = x.c.CloseWrite()
	_ = x.c.SetDeadline(time.Now().Add(drainPatience))
	<-sent
	x.drain()
}

// relay passes bytes on both ways until both sides are done.
func (x *client) relay(up stream) {
	defer x.ended()
	var both sync.WaitGroup
	both.Go(func() {
		x.send(up)
		_ = up.CloseWrite()
	})
	x.receive(up)
	_ = x.c.CloseWrite()
	both.Wait()
}

// send passes on what the client says, out of the buffer that it is read into.
func (x *client) send(up stream) {
	for {
		if _, err := x.in.Peek(1); err != nil {
			return
		}
		b, err := x.in.Peek(x.in.Buffered())
		if err == nil {
			_, err = up.Write(b)
		}
		if err != nil {
			return
		}
		x.count(&x.entry.Up, int64(len(b)))
		_, _ = x.in.Discard(len(b)) // they are there
	}
}

func (x *client) receive(up stream) {
	buf := make([]byte, outBytes)
	for {
		n, err := up.Read(buf)
		if n > 0 {
			if _, werr := x.c.Write(buf[:n]); werr != nil {
				return
			}
			x.count(&x.entry.Down, int64(n))
		}
		if err != nil {
			return
		}
	}
}

func (x *client) count(total *int64, n int64) { x.s.amend(x.entry, func() { *total += n }) }

func (x *client) ended() {
	x.s.amend(x.entry, func() { x.entry.MS = time.Since(x.began).Milliseconds() })
}
