package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Limits of what is read, after decoding; an answer that is encoded is refused.
const (
	maxManifest = 64 << 10
	maxShim     = 1 << 20
	maxCatalog  = 32 << 20
	maxPolicy   = 256 << 10
	maxHeaders  = 64 << 10
)

// answer is one answer that came whole.
type answer struct {
	status int // 200, 304, 404 (also for 410)
	body   []byte
	header http.Header
}

// transport makes connections that end in bounded time whatever the other side does.
// Without TLS they end on this machine: the address is looked at after the name was
// resolved, since nothing says that localhost is one.
func transport(plain bool) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: -1}
	proxy := http.ProxyFromEnvironment
	if plain {
		proxy = nil
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			if host, _, err := net.SplitHostPort(address); err != nil || !net.ParseIP(host).IsLoopback() {
				return errors.New("http is spoken with this machine only, and the name leads to " + address)
			}
			return nil
		}
	}
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		ResponseHeaderTimeout:  10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeaders,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        10 * time.Second,
	}
}

// get asks for one path of the registry, once. What is neither 200, 304 nor "not
// found" is an error.
func (c *Client) get(ctx context.Context, r *Registry, path string, limit int64, conditions map[string]string) (answer, error) {
	address := r.URL + path
	token, err := r.token(c.Getenv)
	if err != nil {
		return answer{}, err
	}
	// A host that sends one byte a second must not hold up all the others of a sync.
	patience := c.Patience
	if limit > maxShim {
		patience *= 4
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return answer{}, r.unavailable("the address cannot be asked", err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "atip-exec")
	for name, value := range conditions {
		req.Header.Set(name, value)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return r.take(&http.Client{Transport: c.transport(strings.HasPrefix(r.URL, "http://")), CheckRedirect: redirects(req.URL, token != "")}, req, limit)
}

// take sends a request and reads the answer whole.
func (r *Registry) take(client *http.Client, req *http.Request, limit int64) (answer, error) {
	res, err := client.Do(req)
	if err != nil {
		var ours *redirectError
		if errors.As(err, &ours) {
			return answer{}, r.refused(ours.Error())
		}
		return answer{}, r.unavailable(reachError(err), err)
	}
	defer res.Body.Close()
	// A server that hears of the end of our patience may answer just then, with what it has: a page
	// without content, that there is no such file. net/http hands such an answer on if it comes before
	// the connection is closed.
	if err := req.Context().Err(); err != nil {
		return answer{}, r.unavailable(reachError(err), err)
	}
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		if req.Header.Get("If-None-Match") == "" && req.Header.Get("If-Modified-Since") == "" {
			// Taken for "there is none", it would lose what the file demands.
			return answer{}, r.refused("says that nothing has changed, though nothing is at hand")
		}
		return answer{status: 304, header: res.Header}, nil
	case http.StatusNotFound, http.StatusGone:
		return answer{status: 404, header: res.Header}, nil
	default:
		return answer{}, r.unavailable("answered with status "+strconv.Itoa(res.StatusCode), nil)
	}
	if e := res.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return answer{}, r.refused("the answer is encoded, which was not asked for")
	}
	if res.ContentLength > limit {
		return answer{}, r.refused(fmt.Sprintf("the answer has more than %d bytes", limit))
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if late := req.Context().Err(); err == nil && late != nil {
		err = late
	}
	if err != nil {
		return answer{}, r.unavailable("the answer broke off: "+reachError(err), err)
	}
	if int64(len(body)) > limit {
		return answer{}, r.refused(fmt.Sprintf("the answer has more than %d bytes", limit))
	}
	return answer{status: 200, body: body, header: res.Header}, nil
}

type redirectError struct{ why string }

func (e *redirectError) Error() string { return e.why }

// redirects allows none with a token: Go sends Authorization on to subdomains, other
// ports and to http on the same host. Without one, at most three within the origin.
func redirects(from *url.URL, token bool) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		switch {
		case token:
			return &redirectError{"it redirects, which is not followed with a token"}
		case req.URL.Scheme != from.Scheme || req.URL.Host != from.Host:
			return &redirectError{"it redirects to another host"}
		case len(via) > 3:
			return &redirectError{"it redirects too often"}
		}
		return nil
	}
}

// reachError says why a host could not be reached, without the address, which the
// error of net/http repeats.
func reachError(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}

// lifetime is how long an answer stays fresh. "immutable" is ignored: the file that is
// described never changes, its description is corrected now and then.
func lifetime(h http.Header, r *Registry) time.Duration {
	keep, stated := 24*time.Hour, false
	if r.CacheExpiry > 0 {
		keep = r.CacheExpiry
	}
	for part := range strings.SplitSeq(strings.ToLower(strings.Join(h.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "no-store", "no-cache":
			return 0
		case "max-age":
			if seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil && !stated {
				keep, stated = time.Duration(seconds)*time.Second, true
			}
		}
	}
	if r.CacheExpiry > 0 {
		keep = min(keep, r.CacheExpiry)
	}
	return min(keep, longest)
}
